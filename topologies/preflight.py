"""Checks of layouts' configurations by their own programs, before a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from weighbridge.common.cleanup import CleanupStack
from weighbridge.common.errors import MissingPrerequisite, UsageError
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.deployment import StateFolders, hosts_request, new_label, start_hosts
from weighbridge.topologies.hardware import Hardware, HostsRequest
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.loader import Planned

Look = Callable[[Planned, Hosts], None]
"""A further check of a layout on its hosts. Raises UsageError."""


def see_nothing(_planned: Planned, _hosts: Hosts) -> None:
    """A look that checks nothing."""


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
    hardware.of.build([_asked(one, hardware, place, attest=attest) for one in planneds], say)


def preflight(
    planned: Planned,
    hardware: Hardware,
    place: StateFolders,
    say: Say,
    *,
    attest: bool = False,
    look: Look = see_nothing,
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
    look: Look = see_nothing,
) -> dict[str, UsageError]:
    """By name of layout, of layouts that differ in settings alone and share their hosts."""
    first = planneds[0]
    prepared = hardware.of.prepared(_asked(first, hardware, place, attest=attest), say)
    found: dict[str, UsageError] = {}
    endings = CleanupStack()
    try:
        folder = place.deployments / new_label(first.layout.name)
        hosts = start_hosts(prepared, folder, endings)
        for planned in planneds:
            try:
                # Each layout writes all the files that its programs read, over the one before.
                planned.gateway.preflight(hosts.hosts, say)
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


def _asked(
    planned: Planned, hardware: Hardware, place: StateFolders, *, attest: bool
) -> HostsRequest:
    gateway = planned.gateway
    # A gateway that already runs is checked from the client: it is on none of the hosts.
    wanted = hardware.clients if gateway.already_runs else gateway.needs()
    names = [name for name in hardware.hosts if name in wanted]
    tools = attest and hardware.of.measurable
    return hosts_request(gateway, hardware, place, names, tools=tools)
