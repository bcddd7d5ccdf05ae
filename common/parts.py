"""The parts of a gateway that can die: its services, their hosts, and what each is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from weighbridge.common.document import did_you_mean

Role = Literal["gateway-daemon", "storage-daemon", "storage-host", "storage-disk"]
"""What any layout has: a radosgw or Swift proxy; an OSD or object server; a host of the latter; a
disk that keeps objects.
"""
ROLES: Final[tuple[Role, ...]] = get_args(Role)


@dataclass(frozen=True)
class Part:
    """A service of a gateway before it runs."""

    host: str
    service: str
    role: Literal["gateway-daemon", "storage-daemon"] | None = None
    """None: something else."""
    lone: str = ""
    """Why nothing is left to measure without it, such as `the only mon`; empty: there are others.
    """
    disks: tuple[str, ...] = ()
    """Those of its host that it keeps data on: `/dev/wb0`."""


@dataclass(frozen=True)
class Target:
    """What a fault happens to: one service of a host, a disk of it, or a host with all of its
    services.
    """

    host: str
    service: str | None = None
    disk: str | None = None
    """`/dev/wb0`."""

    def __str__(self) -> str:
        part = self.service or (self.disk or "").removeprefix("/dev/")
        return f"{self.host}/{part}" if part else self.host


def targets(parts: Sequence[Part], what: str) -> tuple[Target, ...]:
    """What `what` may mean in a layout with these parts: all of a role, or the one that it names.

    Raises ValueError with the reason if nothing of it may die.
    """
    if what == "storage-host":
        hosts = dict.fromkeys(one.host for one in parts if one.role == "storage-daemon")
        found = [Target(host) for host in hosts]
    elif what == "storage-disk":
        storing = [one for one in parts if one.role == "storage-daemon"]
        found = [Target(one.host, disk=disk) for one in storing for disk in one.disks]
    elif what in ROLES:
        found = [Target(one.host, one.service) for one in parts if one.role == what]
    else:
        found = [_named(parts, what)]
    found = list(dict.fromkeys(found))
    if not found:
        raise ValueError(f"it has no {what}")
    fit = [one for one in found if not _lone(parts, one)]
    if not fit:
        raise ValueError(f"{found[0]} may not die: {_lone(parts, found[0])}")
    return tuple(fit)


def _named(parts: Sequence[Part], what: str) -> Target:
    host, _, service = what.partition("/")
    hosts = list(dict.fromkeys(one.host for one in parts))
    if host not in hosts:
        raise ValueError(f"it has no service on {host!r}{did_you_mean(host, [*hosts, *ROLES])}")
    disks = {
        disk.removeprefix("/dev/"): disk for one in parts if one.host == host for disk in one.disks
    }
    if service in disks:
        return Target(host, disk=disks[service])
    services = [one.service for one in parts if one.host == host]
    if service and service not in services:
        known = [*services, *disks]
        raise ValueError(f"{host} has no {service!r}{did_you_mean(service, known)}")
    return Target(host, service or None)


def parts_of(parts: Sequence[Part], target: Target) -> tuple[Part, ...]:
    """Those that a target is, or that keep data on it."""
    return tuple(
        one
        for one in parts
        if one.host == target.host
        and target.service in {None, one.service}
        and (target.disk is None or target.disk in one.disks)
    )


def _lone(parts: Sequence[Part], target: Target) -> str:
    """Why a target may not die; empty if it may."""
    mine = parts_of(parts, target)
    lone = [one.lone for one in mine if one.lone]
    if lone:
        return f"{lone[0]} is there" if target.service is None else f"it is {lone[0]}"
    served = {one.host for one in parts if one.role == "gateway-daemon"}
    if target.service is None and target.disk is None and served <= {target.host}:
        return "all its gateway daemons are there"
    return ""
