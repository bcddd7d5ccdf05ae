"""Settings of Swift that follow the size of its hosts, by the rule of `gateways.sizing`.

Its caches follow by themselves: they are the kernel's page cache.
"""

from __future__ import annotations

from typing import Final

from weighbridge.gateways.front import front_by_size
from weighbridge.gateways.sizing import Role, Sized, Sizes, bits
from weighbridge.gateways.swift.settings import SERVERS, SwiftPlacement, SwiftSettings

_LEAST_PART_POWER: Final = 10
_MOST_PART_POWER: Final = 32


def by_size(place: SwiftPlacement, settings: SwiftSettings, sizes: Sizes) -> tuple[Sized, ...]:
    """All of them, with those of the front."""
    stores = Role(place.storage, sizes)
    servers = [
        stores.processes(f"{server}.workers")
        for server in SERVERS
        if server != "object" or not settings.object.servers_per_port
    ]
    used = [sizes[name].disks for name in place.storage if name in sizes]
    disks = sum(min(count, settings.disks or count) for count in used)
    return (
        Role(place.proxy, sizes).processes("proxy.workers", shared_by=settings.proxy.daemons),
        *servers,
        *(
            (bits("part_power", disks, least=_LEAST_PART_POWER, most=_MOST_PART_POWER),)
            * bool(disks)
        ),
        *front_by_size(place, sizes),
    )
