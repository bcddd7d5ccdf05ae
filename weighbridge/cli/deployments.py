"""Verbs about gateways that are left running, and about what killed runs left."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections import Counter
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import (
    as_json,
    checked,
    endpoints,
    hardware,
    hardware_file,
    named,
    seconds,
    ssh_hardware,
)
from weighbridge.common.errors import (
    EXIT_FINE,
    LeftBehind,
    TargetError,
    UsageError,
    WeighbridgeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from weighbridge.common.endpoint import Endpoint
    from weighbridge.documents import ReachedEndpoint, StatusDocument
    from weighbridge.drivers.rados import GivenPool
    from weighbridge.gateways.existing.existing import Existing
    from weighbridge.gateways.gateway import Say
    from weighbridge.selection import EndpointLine
    from weighbridge.topologies.deployment import DeploymentRecord
    from weighbridge.topologies.hardware import Hardware
    from weighbridge.topologies.ssh.leftovers import ClaimedDeployment


@click.command("up")
@click.argument("layout", shell_complete=complete.layouts)
@hardware
def up_verb(layout: str, hardware: str | None) -> None:
    """Start LAYOUT (a file, or NAME[@RELEASE][:KEY=VALUE]... of one that ships), verify it, and
    leave it running.
    """
    from weighbridge import selection
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.running import print_running
    from weighbridge.topologies.deployment import deploy

    hosts = selection.hardware_named(hardware)
    if hosts.of.passing:
        raise UsageError(
            f"the hosts of {hosts.name!r} {hosts.of.passing}", advice="Choose hardware of kind lab."
        )
    named = selection.layout_named(layout, hosts)
    screen = console()
    say = partial(print_line, screen)
    hosts, (planned,), where = checked([named], hosts, screen, say)
    with interruptible(), deploy(planned, hosts, where, say) as deployment:
        deployment.keep()
    real = f" --hardware {hardware}" if hosts.of.by_ssh else ""
    say(
        f"{deployment.label} is running after {deployment.took_s:.1f} s; "
        f"`weighbridge down{real}` tears it down"
    )
    print_running(where, screen)


@click.command("status")
@hardware_file("Show what is running on the real hosts of this hardware file.")
@as_json
def status_verb(hardware: str | None, *, as_json: bool) -> int:
    """Show running deployments: what has died, hosts, endpoints and credentials."""
    from weighbridge.environment import place
    from weighbridge.results.show.terminal import console
    from weighbridge.running import print_running

    hosts = ssh_hardware(hardware)
    if as_json:
        from weighbridge.results_output import print_document

        document = status_here() if hosts is None else status_there(hosts)
        print_document(document)
        return document.exit_code
    if hosts is not None:
        show_real(hosts)
    else:
        print_running(place(), console())
    return EXIT_FINE


def show_real(hardware: Hardware) -> None:
    """What runs, has died, or was left on real hosts. Raises TargetError naming those that do not
    answer, after the others.
    """
    from weighbridge.environment import place
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.running import dead_there, describe
    from weighbridge.topologies.deployment import running_deployments
    from weighbridge.topologies.ssh import leftovers

    screen = console()
    there = leftovers.find(hardware, include_suites=True, daemons=True)
    known = {one.label: one for one in running_deployments(place())}
    lines = []
    for found in there.deployments:
        claimed = found.claimed
        if found.elsewhere:
            state = "made on another machine"
        else:
            state = "in use" if found.at_work else "left running, its process has ended"
        lines.append(
            f"{claimed.deployment} on {', '.join(found.hosts)} since {claimed.since}: "
            f"{claimed.by}; {state}"
        )
        record = known.get(claimed.deployment)
        lines += dead_there(found, record, there, hardware)
        if record is not None:
            lines += describe(record)[1:]
    for host in hardware.hosts:
        own = [one for one in there.found if one.host == host]
        for label in dict.fromkeys(one.deployment for one in own):
            what = counted(Counter(one.kind for one in own if one.deployment == label))
            lines.append(f"  {host}: {what}" + (f" of {label}" if label else ""))
    if not lines and not there.failed:
        lines = [f"nothing is running on the hosts of {hardware.name}"]
    for line in lines:
        print_line(screen, line)
    if there.failed:
        raise TargetError("\n".join(error.message for error in there.failed.values()))


def status_here() -> StatusDocument:
    """What is running on this machine. Raises TargetError if that cannot be found out."""
    from weighbridge.documents import DeadDaemon, RunningDeployment, StatusDocument
    from weighbridge.environment import place
    from weighbridge.running import lab_daemons
    from weighbridge.topologies.deployment import running_deployments

    return StatusDocument(
        deployments=tuple(
            RunningDeployment(
                label=one.label,
                layout=one.layout,
                hardware=one.hardware,
                since=one.since,
                state="running",
                addresses=one.hosts,
                endpoints=_endpoints(one),
                dead=tuple(
                    DeadDaemon(host=daemon.host, service=daemon.service, log=daemon.log)
                    for daemon in lab_daemons(one, place())
                    if not daemon.alive
                ),
            )
            for one in running_deployments(place())
        )
    )


def status_there(hardware: Hardware) -> StatusDocument:
    """What is running on real hosts, as far as they answer."""
    from weighbridge.documents import DeadDaemon, RunningDeployment, StatusDocument
    from weighbridge.environment import place
    from weighbridge.topologies.deployment import running_deployments
    from weighbridge.topologies.ssh import leftovers

    there = leftovers.find(hardware, include_suites=True, daemons=True)
    known = {one.label: one for one in running_deployments(place())}
    found = []
    for one in there.deployments:
        label, record = one.claimed.deployment, known.get(one.claimed.deployment)
        addresses = {name: hardware.hosts[name].address or "" for name in one.hosts}
        found.append(
            RunningDeployment(
                label=label,
                layout="" if record is None else record.layout,
                hardware=hardware.name,
                since=one.claimed.since,
                state="made on another machine"
                if one.elsewhere
                else "in use"
                if one.at_work
                else "left running",
                addresses=addresses if record is None else record.hosts,
                endpoints=() if record is None else _endpoints(record),
                dead=tuple(
                    DeadDaemon(host=daemon.host, service=daemon.service, log=daemon.log)
                    for daemon in there.daemons
                    if daemon.deployment == label and not daemon.alive
                ),
            )
        )
    silent = {name: error.message for name, error in there.failed.items()}
    return StatusDocument(
        deployments=tuple(found), silent=silent, exit_code=TargetError.exit_code if silent else 0
    )


def _endpoints(record: DeploymentRecord) -> tuple[ReachedEndpoint, ...]:
    from weighbridge.documents import ReachedEndpoint

    return tuple(
        ReachedEndpoint(
            api=one.api,
            urls=tuple(each.url for each in one.each()),
            user=one.user,
            key=one.key.get_secret_value(),
        )
        for one in record.endpoints
    )


@click.command("exec", context_settings={"ignore_unknown_options": True})
@hardware_file("HOST is a real host of this hardware file.")
@click.argument("host")
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_verb(hardware: str | None, host: str, argv: tuple[str, ...]) -> int:
    """Run a COMMAND on a HOST of a running deployment, such as `weighbridge exec client-1 -- curl
    -i http://...`.
    """
    hosts = ssh_hardware(hardware)
    return exec_lab(host, argv) if hosts is None else exec_real(hosts, host, argv)


def exec_real(hardware: Hardware, host: str, argv: tuple[str, ...]) -> int:
    """A command's status on a real host, with the files of its deployment. Raises UsageError."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.topologies.ssh import claim, ending
    from weighbridge.topologies.ssh.connection import SshConnection

    if host not in hardware.hosts:
        raise UsageError(
            f"hardware {hardware.name!r} has no host "
            f"{host!r}{did_you_mean(host, list(hardware.hosts))}"
        )
    with closing(SshConnection(host, hardware.hosts[host], hardware.access)) as connection:
        connection.open()
        claimed = claim.read(connection, hardware.access.folder)
        if claimed is None or claimed.holder is None:
            raise UsageError(
                f"nothing is running on {host}",
                advice="`weighbridge up LAYOUT --hardware FILE` starts a deployment.",
            )
        services = ending.services_of(claimed)
        words = (*services.enter(), *services.environment("exec"), *argv)
        return connection.pass_through(words)


def exec_lab(host: str, argv: tuple[str, ...]) -> int:
    """Replace this program by a command in a lab host. Raises UsageError if no such host runs."""
    from weighbridge.common.document import did_you_mean
    from weighbridge.environment import place
    from weighbridge.topologies.lab.bundle import PATH
    from weighbridge.topologies.lab.runc import Runc

    runc = Runc(place().state / "runc")
    containers = {container.host: container for container in runc.containers()}
    if host not in containers:
        advice = "" if containers else "`weighbridge up LAYOUT` starts a deployment."
        raise UsageError(
            f"no host {host!r} is running{did_you_mean(host, list(containers))}", advice=advice
        )
    terminal = ["--tty"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    # Clients that this suite installed (swift, and the python that has boto3) are on the PATH of
    # hosts that see this machine's files.
    path = f"PATH={sysconfig.get_path('scripts')}:{PATH}"
    # The command replaces this program, so that status, signals and terminal are its own.
    words = runc.argv("exec", "--cwd", "/", "--env", path, *terminal, containers[host].id, *argv)
    os.execvp(words[0], words)  # noqa: S606 - an argv list, no shell


@click.command("down")
@click.argument("label", required=False)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="All deployments, and all that killed runs left; on real hosts the suite's files, too.",
)
@hardware_file("Tear down on the real hosts of this hardware file.")
def down_verb(label: str | None, hardware: str | None, *, everything: bool) -> None:
    """Tear down the deployment LABEL; without one, the only one that is running."""
    hosts = ssh_hardware(hardware)
    if hosts is not None:
        down_real(label, hosts, everything=everything)
    else:
        down(label, everything=everything)


def down(label: str | None, *, everything: bool) -> None:
    """Tear down a deployment here. Raises UsageError if it is not clear which, or, after all
    others, if one is in use.
    """
    from weighbridge.environment import place
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.topologies.lab import ending

    screen = console()
    where = place()
    found = ending.find_leftovers(home=where.home, state=where.state)
    busy = {one.deployment: one for one in ending.lab_at_work(home=where.home, state=where.state)}
    labels = {one.deployment for one in found if one.deployment}
    _refuse_unclear(label, sorted(labels | set(busy)), everything=everything)
    if not found and not busy:
        print_line(screen, "nothing is running, and nothing was left")
        return
    wanted = None if everything else label
    removed = (
        ()
        if wanted in busy
        else ending.remove_leftovers(wanted, home=where.home, state=where.state)
    )
    for line in _removed((one.deployment, one.kind) for one in removed):
        print_line(screen, line)
    left = [one for name, one in busy.items() if wanted in (None, name)]
    if left:
        lines = [
            f"{one.deployment} was left alone: process {one.pid} has been using it since "
            f"{one.since}"
            for one in left
        ]
        raise UsageError("\n".join(lines), advice="End that process: it tears its deployment down.")


def down_real(label: str | None, hardware: Hardware, *, everything: bool) -> None:
    """Tear down on real hosts. Raises UsageError if it is not clear which deployment, or if it may
    be in use; after the others TargetError naming what did not answer or stayed.
    """
    from weighbridge.conductor.interruption import interruptible
    from weighbridge.environment import place
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.topologies.hosts import remove_folder
    from weighbridge.topologies.ssh import leftovers

    screen = console()
    with interruptible():
        there = leftovers.find(hardware, include_suites=everything)
        labels = sorted({one.deployment for one in there.found if one.deployment})
        if label is None or label in labels or not there.failed:
            _refuse_unclear(label, labels, everything=everything)
        # A deployment made on another machine is removed only by its name: whether its run is
        # still going is not known here.
        wanted = None if label is None else {label}
        swept = leftovers.remove(
            hardware,
            wanted,
            include_suites=everything,
            elsewhere=label is not None,
            silent=there.failed,
        )
    for line in _removed((one.deployment, one.kind) for one in swept.found):
        print_line(screen, line)
    for deployment in {one.deployment for one in swept.found if one.deployment}:
        remove_folder(place().deployments / deployment)
    failed = {**there.failed, **swept.failed}
    if not swept.found and not failed and not swept.spared:
        print_line(
            screen, f"nothing is running on the hosts of {hardware.name}, and nothing was left"
        )
    if failed:
        raise TargetError(
            "\n".join(error.message for error in failed.values()),
            advice="The other hosts are clean. Try again when these answer.",
        )
    if swept.spared:
        raise UsageError(
            "\n".join(map(spared, swept.spared)),
            advice="End that run: it tears its deployment down.",
        )


def spared(found: ClaimedDeployment) -> str:
    """Why a deployment was left alone, and how to remove it all the same."""
    claimed, hosts = found.claimed, ", ".join(found.hosts)
    if found.at_work:
        return f"{claimed.deployment} was left alone: {claimed.by} is using it on {hosts}"
    return (
        f"{claimed.deployment} was left alone: it was made on another machine ({claimed.by}) on "
        f"{hosts} at {claimed.since}, and its run may still be active. If it is not: "
        f"weighbridge down {claimed.deployment} --hardware FILE"
    )


def _refuse_unclear(label: str | None, labels: list[str], *, everything: bool) -> None:
    from weighbridge.common.document import did_you_mean

    if label is not None and label not in labels:
        raise UsageError(f"no deployment {label!r} is running{did_you_mean(label, labels)}")
    if label is None and not everything and len(labels) > 1:
        raise UsageError(
            f"several deployments are running: {', '.join(labels)}",
            advice="Name one of them, or use --all.",
        )


def _removed(removed: Iterable[tuple[str, str]]) -> list[str]:
    kinds: dict[str, Counter[str]] = {}
    for deployment, kind in removed:
        kinds.setdefault(deployment, Counter())[kind] += 1
    return [
        f"removed {deployment or 'of no deployment'}: {counted(some)}"
        for deployment, some in sorted(kinds.items())
    ]


def counted(kinds: Mapping[str, int]) -> str:
    """As `3 disks, 2 processes, 1 claim`."""
    many = {kind: f"{kind}es" if kind.endswith("s") else f"{kind}s" for kind in kinds}
    return ", ".join(
        f"{count} {many[kind] if count > 1 else kind}" for kind, count in kinds.items()
    )


@endpoints
@click.command("clean")
@click.argument("layouts", metavar="[LAYOUT]...", nargs=-1, shell_complete=complete.layouts)
@click.option(
    "--hardware",
    metavar="FILE",
    default="this-machine",
    show_default=True,
    shell_complete=complete.hardware,
    callback=named,
    help="Hardware whose `observed` hosts have the pools that layouts name (`ceph`).",
)
@click.option(
    "--delete",
    "deleting",
    is_flag=True,
    help="Delete those that hold nothing but what runs of this suite made.",
)
@click.option(
    "--older-than",
    "older_s",
    metavar="TIME",
    default="6h",
    show_default=True,
    callback=seconds,
    help="Keep what holds anything younger: a run may still be using it.",
)
def clean_verb(
    layouts: tuple[str, ...], line: EndpointLine, hardware: str, older_s: float, *, deleting: bool
) -> None:
    """List what killed runs left on gateways that already run; --delete deletes it."""
    from weighbridge import selection
    from weighbridge.gateways.existing import credentials
    from weighbridge.results.show.terminal import console, print_line

    if not layouts and not line.given:
        raise UsageError(
            "name a layout of a gateway that already runs, or --s3 or --swift NAME=URL"
        )
    hosts = selection.hardware_named(hardware)
    gateways = _gateways(layouts, line, hosts)
    found = [
        endpoint
        for gateway in gateways
        for endpoint in credentials.endpoints(gateway.settings, os.environ)
    ]
    youngest = datetime.now(UTC) - timedelta(seconds=older_s)
    say = partial(print_line, console())
    faults = []
    for endpoint in found:
        faults += _clean(endpoint, youngest, say, deleting=deleting)
    for gateway in gateways:
        try:
            with _pool(gateway, hosts) as given:
                if given is not None:
                    faults += _clean_pool(given, youngest, say, deleting=deleting)
        except WeighbridgeError as error:
            faults.append(error.message)
    if faults:
        raise TargetError("\n".join(faults))


def _gateways(layouts: tuple[str, ...], line: EndpointLine, hardware: Hardware) -> list[Existing]:
    from weighbridge import selection
    from weighbridge.gateways.existing.existing import Existing
    from weighbridge.selection import endpoint_layouts

    advice = "`weighbridge down --all` removes what killed runs left of gateways that they started."
    planned = [*endpoint_layouts(line, hardware, os.environ)]
    for layout in layouts:
        try:
            planned.append(selection.layout_named(layout, hardware))
        except UsageError as error:
            raise UsageError(error.message, advice=advice) from None
    found = []
    for one in planned:
        if not isinstance(one.gateway, Existing):
            raise UsageError(
                f"{one.layout.name}: a {one.gateway.kind} gateway is not one that already runs",
                advice=advice,
            )
        found.append(one.gateway)
    return found


def _clean(endpoint: Endpoint, youngest: datetime, say: Say, *, deleting: bool) -> list[str]:
    """List an account's buckets, or delete them; returns what failed."""
    from weighbridge.gateways.existing.clear import EndpointSilent, Sweep

    sweep = Sweep([one.model_dump(mode="json") for one in endpoint.each()], say)
    try:
        names = sweep.named()
    except TargetError as error:
        return [f"{error.message}: nothing was swept there"]
    buckets = objects = kept = 0
    faults: list[str] = []
    for number, (name, made) in enumerate(names):
        try:
            one = sweep.content(name, made)
            if one is None:
                continue
            reason, count = _kept(one.newest, one.strange, youngest), one.objects
            if not reason and deleting:
                count = sweep.delete(name) or 0
        except EndpointSilent as error:
            rest = ", ".join(each for each, _ in names[number:])
            faults.append(f"{error.message}: not swept: {rest}")
            break
        except TargetError as error:
            faults.append(f"{error.message}: not swept: {name}")
            continue
        verdict = reason or "holds only what runs of this suite made: --delete deletes it"
        if reason:
            kept += 1
        else:
            buckets, objects = buckets + 1, objects + count
            verdict = f"deleted, with {count} objects" if deleting else verdict
        say(_leftover_line(f"{sweep.there} {name}", one.objects, one.newest, verdict))
    if not (buckets or kept or faults):
        say(f"{sweep.there}: no run has left a bucket there")
    else:
        what = "deleted" if deleting else "can be deleted"
        say(f"{sweep.there}: {buckets} buckets with {objects} objects {what}, {kept} kept")
    return faults


@contextmanager
def _pool(gateway: Existing, hardware: Hardware) -> Iterator[GivenPool | None]:
    """The pool of a layout, over ssh; None: it names none. Raises UsageError, TargetError."""
    if gateway.pool is None:
        yield None
        return
    import tempfile

    from weighbridge.drivers.rados import GivenPool
    from weighbridge.topologies.ssh.observed import ObservedHosts

    name = gateway.pool.host
    alone = hardware.model_copy(update={"observed": {name: hardware.observed[name]}})
    with (
        tempfile.TemporaryDirectory(prefix="weighbridge-") as folder,
        closing(ObservedHosts(alone, Path(folder))) as hosts,
    ):
        log = Path(folder) / "pool.log"
        yield GivenPool(hosts.hosts[name], gateway.pool, namespace="", log=log)


def _clean_pool(given: GivenPool, youngest: datetime, say: Say, *, deleting: bool) -> list[str]:
    """List what runs left in a pool, or delete it; returns what failed. Raises DriverError or
    TargetError.
    """
    from weighbridge.drivers.rados import leftovers

    where = f"pool {given.pool.pool} by {given.machine.name}"
    deleted = kept = 0
    faults: list[str] = []
    found = leftovers(given)
    for one in found:
        reason = _kept(one.newest, one.strange, youngest)
        kept += bool(reason)
        verdict = reason or "only objects of runs of this suite: --delete deletes them"
        if deleting and not reason:
            try:
                count = given.within(one.namespace).sweep()
            except LeftBehind as error:
                faults.append(error.message)
                continue
            verdict, deleted = f"deleted, with {count} objects", deleted + count
        say(_leftover_line(f"{where}: namespace {one.namespace}", one.objects, one.newest, verdict))
    if not found:
        say(f"{where}: no run has left an object there")
    else:
        what = f"{deleted} objects deleted" if deleting else f"{len(found) - kept} can be deleted"
        say(f"{where}: {len(found)} namespaces, {what}, {kept} kept")
    return faults


def _leftover_line(where: str, objects: int, newest: datetime, verdict: str) -> str:
    when = f"{newest.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{where}: {objects} objects, the newest from {when}: {verdict}"


def _kept(newest: datetime, strange: Sequence[str], youngest: datetime) -> str:
    """Why something is kept; empty if it may be deleted."""
    if strange:
        names = ", ".join(map(repr, strange))
        return f"kept: it holds something that this suite did not make ({names})"
    if newest > youngest:
        return "kept: so recent that a run may still be using it (--older-than)"
    return ""
