"""A deployment: a layout started on the hardware, verified, limited, and torn down completely."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from weighbridge.common import safe_files
from weighbridge.common.cleanup import CleanupStack
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import (
    MissingPrerequisite,
    ServiceFailed,
    TargetError,
    UsageError,
)
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.gateways.gateway import Gateway, RunningGateway, Say
from weighbridge.topologies.attestation import Apart, Attestation, AttestOptions
from weighbridge.topologies.attestation import attest as attestation_of
from weighbridge.topologies.hardware import HOSTS, Hardware, HostsRequest
from weighbridge.topologies.hosts import (
    DeploymentOwner,
    Hosts,
    Label,
    keep_all,
    own_folder,
    owners_below,
    remove_folder,
)
from weighbridge.topologies.loader import Planned

RECORD = "deployment.json"
"""The file in a deployment's folder that describes it; only root reads it, for its credentials."""


class StateFolders(Record):
    """Folders on this machine for deployments."""

    home: Path
    """Images, and the deployments' own folders."""
    state: Path
    """What must not survive a reboot: runc's state and the lock."""

    @property
    def images(self) -> Path:
        """Root images, shared by all deployments."""
        return self.home / "images"

    @property
    def deployments(self) -> Path:
        """A folder for each running deployment."""
        return self.home / "deployments"


class DeploymentRecord(Record):
    """A running deployment as `status` shows it, written to its folder."""

    label: Label
    layout: str
    hardware: str
    kind: str = "lab"
    """The hardware's kind."""
    since: str
    hosts: dict[str, str]  # addresses by name
    clients: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]


class Deployment:
    """A gateway running on hosts; a context manager that tears everything down at its end."""

    def __init__(
        self,
        planned: Planned,
        hardware: Hardware,
        *,
        hosts: Hosts,
        running_gateway: RunningGateway,
        attestation: Attestation | None,
        kept: Path,
        took_s: float,
        endings: CleanupStack,
    ) -> None:
        self.label = hosts.deployment
        self.layout = planned.layout
        self.hardware = hardware
        self.sizing = planned.sizing
        self.machines = hosts
        """All hosts together: their power, links, disks, and those that are only observed."""
        self.hosts: Mapping[str, Host] = hosts.hosts
        self.running_gateway = running_gateway
        self.took_s = took_s
        """From cached images to verified and limited, without attestation."""
        self.attestation = attestation
        """None: not asked for, or the hosts cannot be measured."""
        self._kept, self._endings = kept, endings

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        return self.running_gateway.endpoints

    @property
    def client(self) -> Host:
        """The first load generator, which runs the drivers and involves the others."""
        return self.clients[0]

    @property
    def clients(self) -> tuple[Host, ...]:
        return tuple(self.hosts[name] for name in self.hardware.clients)

    def facts(self) -> dict[str, str]:
        tuned = self.layout.tuned or "none: settings as shipped, except what the layout's name says"
        spread = {
            f"{one.api}: several endpoints": one.spread_words
            for one in self.endpoints
            if one.spread_words
        }
        sized = {f"by size: {one.key}": f"{one.shown} ({one.why})" for one in self.sizing}
        facts = {**self.machines.facts(), **self.running_gateway.facts}
        return {**facts, **spread, **sized, "tuned": tuned}

    def may_change(self, planned: Planned, scope: Scope) -> None:
        """Raise UsageError where `change` would refuse this layout; changes nothing."""
        self.running_gateway.may_change(planned.gateway, scope)

    def change(self, planned: Planned, scope: Scope, say: Say) -> tuple[str, ...]:
        """Reconfigure the gateway as another layout says, which differs in settings alone; returns
        a description of what was done.

        Limits are off while daemons start, as in `deploy`, and on again when this returns or fails,
        so that it can be changed back. Raises as `RunningGateway.change` does; `layout` is then
        unchanged.
        """
        try:
            self.machines.unlimit()
            with _logs_kept(self.machines, self._kept):
                done = self.running_gateway.change(planned.gateway, scope, say)
        finally:
            self.machines.limit()
        self.layout = planned.layout
        self.sizing = planned.sizing
        return done

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Lift limits of CPU and disks in the block, which is not measured. Raises TargetError."""
        self.machines.unlimit(("cpu", "disk"))
        try:
            yield
        finally:
            self.machines.limit(("cpu", "disk"))

    def mend_disk(self, name: str, disk: str) -> None:
        """Have a disk answer again, and run the services on it. Raises as `start_again`."""
        self.machines.fail_disk(name, disk, on=False)
        with _logs_kept(self.machines, self._kept):
            self.running_gateway.mend_disk(name, disk)

    def start_again(self, names: Collection[str], say: Say) -> None:
        """Start services on hosts that lost power and are on again.

        Raises UsageError, TargetError; ServiceFailed, naming the log as it will be kept.
        """
        with _logs_kept(self.machines, self._kept):
            self.running_gateway.start_again(names, say)

    def drop_caches(self, *, kernel_alone: bool = False) -> tuple[str, ...]:
        """Drop caches of the gateway (not if `kernel_alone`) and of kernels; returns which."""
        dropped = [] if kernel_alone else list(self.running_gateway.drop_caches())
        dropped += dict.fromkeys(host.drop_kernel_caches() for host in self.hosts.values())
        return tuple(dropped)

    def check(self) -> None:
        """Raise ServiceFailed, with the place where its log will be kept, if a service has died."""
        with _logs_kept(self.machines, self._kept):
            self.machines.check()
            self.running_gateway.check()

    def keep(self) -> None:
        """Leave it running when this object goes (`weighbridge up`)."""
        self._endings.drop()

    def close(self) -> None:
        """Tear everything down. May be called more than once."""
        self._endings.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.close()
        finally:
            self.close()


def deploy(
    planned: Planned,
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    logs: Path | None = None,
    attest: bool | AttestOptions = False,
    apart: Apart = lambda _: False,
    tools: bool = False,
    cuts: bool = False,
) -> Deployment:
    """Start a checked layout and put the limits of the hardware on.

    Hosts' logs are kept in `logs` at the end; without it only if a service does not start, in the
    home folder. `attest` measures hosts that can be measured before the gateway gets their disks
    (True: what deployments are compared by): some 20 s for five hosts; `apart` is as in `attest`.
    `tools` installs the tools.
    `cuts` is for `power_cuts`: hosts then have no limits but that of memory, and their disks take
    no time.

    Raises ServiceFailed, CommandFailed or VerificationFailed after tearing everything down.
    """
    needed = {*planned.gateway.needs(), *hardware.clients}
    names = [name for name in hardware.hosts if name in needed]
    endings = CleanupStack()
    try:
        asked = attest if isinstance(attest, AttestOptions) else AttestOptions(sameness=attest)
        tools = hardware.of.measurable and (tools or bool(asked))
        request = hosts_request(planned.gateway, hardware, place, names, tools=tools)
        prepared = hardware.of.prepared(replace(request, cuts=cuts), say)
        started = time.monotonic()
        label = new_label(planned.layout.name)
        kept = place.home / "logs" / label if logs is None else logs
        keep_logs = None if logs is None else partial(keep_all, folder=kept, say=say)
        hosts = start_hosts(prepared, place.deployments / label, endings, keep_logs)
        attestation = None
        if hardware.of.measurable and asked:
            needs = planned.gateway.needs()
            attestation = attestation_of(hosts, hardware, needs, say, asked, apart)
        client = hosts.hosts[hardware.clients[0]]
        with _logs_kept(hosts, kept):
            try:
                running_gateway = planned.gateway.bring_up(hosts.hosts, client, say)
            except ServiceFailed:
                keep_all(hosts.hosts, kept, say)
                raise
        if not cuts:
            hosts.limit()
        took_s = time.monotonic() - started - (attestation.took_s if attestation else 0.0)
        _write(place.deployments / label, planned, hardware, hosts, running_gateway)
        # From here on the caller tears it down; any error before tears it down here.
        return Deployment(
            planned,
            hardware,
            hosts=hosts,
            running_gateway=running_gateway,
            attestation=attestation,
            kept=kept,
            took_s=took_s,
            endings=endings,
        )
    except BaseException:
        try:
            endings.close()
        finally:
            endings.close()  # does what a signal made the first one skip
        raise


def new_label(name: str) -> str:
    """The label of a new deployment of what has this name."""
    return f"{name[:20]}-{secrets.token_hex(3)}"


def start_hosts(
    prepared: Callable[[str, Path], Hosts],
    folder: Path,
    endings: CleanupStack,
    keep_logs: Callable[[Mapping[str, Host]], None] | None = None,
) -> Hosts:
    """Start hosts in a new folder of this process, which has the deployment's label as its name;
    `endings` tear them down, and keep their logs before the folder goes.
    """
    own_folder(folder)
    endings.add(partial(remove_folder, folder))
    hosts = prepared(folder.name, folder)
    if keep_logs is not None:
        endings.add(partial(keep_logs, hosts.hosts))
    endings.add(hosts.close, hosts.hurry)
    return hosts


def hosts_request(
    gateway: Gateway,
    hardware: Hardware,
    place: StateFolders,
    names: Sequence[str],
    *,
    tools: bool,
) -> HostsRequest:
    """What hosts of these names are for this gateway."""
    image = gateway.image
    return HostsRequest(hardware, names, image, images=place.images, state=place.state, tools=tools)


def deployment_owners(place: StateFolders) -> tuple[DeploymentOwner, ...]:
    """Owners of the deployments' folders, running or not; unreadable ones are left out."""
    return owners_below(place.deployments)


def _write(
    folder: Path,
    planned: Planned,
    hardware: Hardware,
    hosts: Hosts,
    running_gateway: RunningGateway,
) -> None:
    record = DeploymentRecord(
        label=hosts.deployment,
        layout=planned.layout.name,
        hardware=hardware.name,
        kind=hardware.kind,
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        hosts={name: host.address for name, host in hosts.hosts.items()},
        clients=hardware.clients,
        # The credentials of a gateway that already ran are the user's, not this deployment's.
        endpoints=() if planned.gateway.already_runs else running_gateway.endpoints,
    )
    safe_files.write(folder, RECORD, record.model_dump_json(indent=1).encode(), mode=0o600)


def running_deployments(place: StateFolders) -> tuple[DeploymentRecord, ...]:
    """The recorded deployments that are running on this machine. Raises TargetError."""
    found = []
    at_work = {one.deployment for one in deployment_owners(place) if one.at_work}
    for path in sorted(place.deployments.glob(f"*/{RECORD}")):
        with suppress(FileNotFoundError):  # it is being torn down
            try:
                text = safe_files.read(path.parent, RECORD, largest_bytes=2**22)
                record = DeploymentRecord.model_validate_json(text)
            except (ValidationError, safe_files.Refused) as error:
                raise TargetError(
                    f"{path}: is not a valid record of a deployment",
                    advice=f"`weighbridge down` tears it down; then remove {path.parent}.",
                ) from error
            # Hosts that end with their command do not outlive one that was killed.
            if record.label in at_work or not HOSTS[record.kind].passing:
                found.append(record)
    return tuple(found)


@contextmanager
def _logs_kept(hosts: Hosts, kept: Path) -> Iterator[None]:
    """Have a ServiceFailed of the block name the place where its log will be kept."""
    try:
        yield
    except ServiceFailed as error:
        log = Path(error.log)
        host = hosts.hosts.get(error.host)
        if host is None or not log.is_relative_to(host.log("")):
            raise
        where = kept / error.host / log.relative_to(host.log(""))
        raise error.with_log(str(where)) from error


# Checks of layouts' configurations by their own programs, before a run.

Look = Callable[[Planned, Hosts], None]
"""A further check of a layout on its hosts. Raises UsageError."""


def build_images(
    planneds: Sequence[Planned],
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    attest: bool = False,
) -> None:
    """Build the missing images of several layouts' hosts, with `attest` that of the tools too.

    Raises CommandFailed, MissingPrerequisite.
    """
    hardware.of.build([_preflight_request(one, hardware, place, attest) for one in planneds], say)


def preflight(
    planned: Planned,
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    attest: bool = False,
    look: Look | None = None,
) -> None:
    """Have a layout's own programs check its configuration, on hosts that run only for this, and
    then `look`.

    A run does this for all layouts before it measures the first: a mistake in the last one would
    otherwise be found hours later. Builds missing images, with `attest` that of the tools too.
    Raises UsageError with what is wrong, CommandFailed.
    """
    for error in _refusals([planned], hardware, place, say, attest=attest, look=look).values():
        raise error


def preflight_all(
    planneds: Sequence[Planned],
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    attest: bool = False,
) -> dict[str, str]:
    """What their own programs refuse of layouts' configurations, by name of layout.

    Starts hosts once for all layouts of a kind, release and placement. Otherwise as `preflight`;
    raises CommandFailed, and MissingPrerequisite, which is about this machine and not about a
    layout.
    """
    build_images(planneds, hardware, place, say, attest=attest)
    alike: dict[str, list[Planned]] = {}
    for planned in planneds:
        layout = planned.layout
        hosts = json.dumps([layout.gateway, layout.release, layout.place], sort_keys=True)
        alike.setdefault(hosts, []).append(planned)
    found: dict[str, str] = {}
    for same_hosts in alike.values():
        refused = _refusals(same_hosts, hardware, place, say, attest=attest)
        found |= {name: str(error) for name, error in refused.items()}
    names = [planned.layout.name for planned in planneds]
    return {name: found[name] for name in names if name in found}


def _refusals(
    planneds: Sequence[Planned],
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    attest: bool,
    look: Look | None = None,
) -> dict[str, UsageError]:
    """By name of layout, of layouts that differ in settings alone and share their hosts."""
    first = planneds[0]
    prepared = hardware.of.prepared(_preflight_request(first, hardware, place, attest), say)
    found: dict[str, UsageError] = {}
    endings = CleanupStack()
    try:
        folder = place.deployments / new_label(first.layout.name)
        hosts = start_hosts(prepared, folder, endings)
        for planned in planneds:
            try:
                # Each layout writes all the files that its programs read, over the one before.
                planned.gateway.preflight(hosts.hosts, say)
                if look is not None:
                    look(planned, hosts)
            except MissingPrerequisite:
                raise
            except UsageError as error:
                found[planned.layout.name] = error
    finally:
        try:
            endings.close()
        finally:
            endings.close()
    return found


def _preflight_request(
    planned: Planned, hardware: Hardware, place: StateFolders, attest: bool
) -> HostsRequest:
    gateway = planned.gateway
    # A gateway that already runs is checked from the client: it is on none of the hosts.
    wanted = hardware.clients if gateway.already_runs else gateway.needs()
    names = [name for name in hardware.hosts if name in wanted]
    tools = attest and hardware.of.measurable
    return hosts_request(gateway, hardware, place, names, tools=tools)
