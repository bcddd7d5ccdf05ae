"""`weighbridge clean LAYOUT...`: what killed runs left where it outlives them: buckets on gateways
that run without us, and objects in the pool of layer `rados`.

Raises UsageError if the suite itself starts a layout's gateway; TargetError, after all others were
looked at, if something could not be looked at or deleted.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.line_options import endpoints
from weighbridge.cli.options import named, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from weighbridge.common.endpoint import Endpoint
    from weighbridge.drivers.rados import GivenPool
    from weighbridge.gateways.existing.existing import Existing
    from weighbridge.selection import EndpointLine
    from weighbridge.topologies.hardware import Hardware


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
def command(
    layouts: tuple[str, ...], line: EndpointLine, hardware: str, older_s: float, *, deleting: bool
) -> None:
    """List what killed runs left on gateways that already run; --delete deletes it."""
    import os
    from datetime import UTC, datetime, timedelta

    from weighbridge import selection
    from weighbridge.common.errors import TargetError, UsageError, WeighbridgeError
    from weighbridge.gateways.existing import credentials
    from weighbridge.screen.terminal import console, print_line

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
    screen = console()
    faults = []

    def say(text: str) -> None:
        print_line(screen, text)

    for endpoint in found:
        try:
            _clean(endpoint, youngest, say, deleting=deleting)
        except TargetError as error:
            faults.append(error.message)
    for gateway in gateways:
        try:
            with _pool(gateway, hosts) as given:
                if given is not None:
                    _clean_pool(given, youngest, say, deleting=deleting)
        except WeighbridgeError as error:
            faults.append(error.message)
    if faults:
        raise TargetError("\n".join(faults))


def _gateways(layouts: tuple[str, ...], line: EndpointLine, hardware: Hardware) -> list[Existing]:
    import os

    from weighbridge import selection
    from weighbridge.common.errors import UsageError
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


def _clean(
    endpoint: Endpoint, youngest: datetime, say: Callable[[str], None], *, deleting: bool
) -> None:
    """List an account's buckets, or delete them. Raises TargetError with all that failed."""
    from datetime import UTC

    from weighbridge.common.errors import TargetError
    from weighbridge.gateways.existing.leftover_buckets import EndpointSilent, Sweep

    sweep = Sweep(endpoint, say)
    try:
        names = sweep.named()
    except TargetError as error:
        raise TargetError(f"{error.message}: nothing was swept there") from error
    buckets = objects = kept = 0
    faults: list[str] = []
    for number, (name, made) in enumerate(names):
        try:
            one = sweep.content(name, made)
            if one is None:
                continue
            reason, count = _kept(one.newest, one.strange, youngest), one.objects
            if not reason and deleting:
                count = sweep.delete(name)
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
        newest = f"{one.newest.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        say(f"{sweep.there} {name}: {one.objects} objects, the newest from {newest}: {verdict}")
    if not (buckets or kept or faults):
        say(f"{sweep.there}: no run has left a bucket there")
    else:
        what = "deleted" if deleting else "can be deleted"
        say(f"{sweep.there}: {buckets} buckets with {objects} objects {what}, {kept} kept")
    if faults:
        raise TargetError("\n".join(faults))


@contextmanager
def _pool(gateway: Existing, hardware: Hardware) -> Iterator[GivenPool | None]:
    """The pool of a layout, over ssh; None: it names none. Raises UsageError, TargetError."""
    if gateway.pool is None:
        yield None
        return
    import tempfile
    from contextlib import closing
    from pathlib import Path

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


def _clean_pool(
    given: GivenPool, youngest: datetime, say: Callable[[str], None], *, deleting: bool
) -> None:
    """List what runs left in a pool, or delete it. Raises DriverError or TargetError."""
    from datetime import UTC

    from weighbridge.common.errors import LeftBehind, TargetError
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
        newest = f"{one.newest.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        say(
            f"{where}: namespace {one.namespace}: {one.objects} objects, the newest from {newest}: "
            f"{verdict}"
        )
    if not found:
        say(f"{where}: no run has left an object there")
    else:
        what = f"{deleted} objects deleted" if deleting else f"{len(found) - kept} can be deleted"
        say(f"{where}: {len(found)} namespaces, {what}, {kept} kept")
    if faults:
        raise TargetError("\n".join(faults))


def _kept(newest: datetime, strange: Sequence[str], youngest: datetime) -> str:
    """Why something is kept; empty if it may be deleted."""
    if strange:
        names = ", ".join(map(repr, strange))
        return f"kept: it holds something that this suite did not make ({names})"
    if newest > youngest:
        return "kept: so recent that a run may still be using it (--older-than)"
    return ""
