"""Where hosts of a hardware file would be, for showing configuration files of a layout that does not stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.topologies.hardware import Hardware


@dataclass(frozen=True)
class HostSite:
    """Name, address and disks that a host of this hardware gets when it stands."""

    name: str
    address: str
    disks: tuple[str, ...]


def sites(hardware: Hardware) -> Mapping[str, HostSite]:
    """All hosts by name. Pretended hosts get addresses by chance: theirs are stand-ins."""
    if hardware.kind == "ssh":
        return {
            name: HostSite(name, spec.address or "", tuple(disk.id or "" for disk in spec.disks))
            for name, spec in hardware.hosts.items()
        }
    from weighbridge.topologies.lab import network  # noqa: PLC0415 - the lab is wanted only where there is one

    return {
        name: HostSite(
            name,
            network.address(index) if hardware.kind == "lab" else f"127.0.0.{10 + index}",
            tuple(f"/dev/wb{number}" for number in range(len(spec.disks))),
        )
        for index, (name, spec) in enumerate(hardware.hosts.items())
    }
