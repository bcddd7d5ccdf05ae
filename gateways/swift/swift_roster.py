"""Which servers of a layout run where: names, addresses, ports and disks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weighbridge.gateways.front import Backend
from weighbridge.gateways.gateway import Site
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.settings import SERVERS, SwiftPlacement, SwiftSettings

_PROXY: Final = "proxy-server"


def is_proxy(service: str) -> bool:
    """Whether a service is a proxy server."""
    return service.startswith(_PROXY)


@dataclass(frozen=True)
class Proxy:
    """A planned proxy server. `service` is its service on the host, `conf` its file."""

    service: str
    host: str
    address: str
    port: int
    conf: str


@dataclass(frozen=True)
class Device:
    """One disk in the ring of one server."""

    server: str
    host: str
    address: str
    zone: int
    port: int
    name: str


class SwiftRoster:
    """The servers that a placement and its settings make on these hosts."""

    def __init__(
        self, place: SwiftPlacement, settings: SwiftSettings, sites: Mapping[str, Site]
    ) -> None:
        self.sites: Mapping[str, Site] = {name: sites[name] for name in place.hosts}
        self.stores = tuple(sites[name] for name in place.storage)
        self.caches = tuple(sites[name] for name in place.proxy)
        """Hosts of a memcached."""
        self.front = None if place.front is None else sites[place.front]
        self._settings = settings

    @property
    def proxies(self) -> tuple[Proxy, ...]:
        """Every proxy server, host by host."""
        settings = self._settings.proxy
        found = []
        for site in self.caches:
            for index in range(settings.daemons):
                name = f"{_PROXY}-{index}" if settings.daemons > 1 else _PROXY
                conf = f"/etc/swift/{name}.conf"
                found.append(Proxy(name, site.name, site.address, settings.port + index, conf))
        return tuple(found)

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The proxies as backends of a front."""
        return tuple(
            Backend(f"{one.host}-{one.port}", one.address, one.port) for one in self.proxies
        )

    def folders(self, store: Site) -> list[tuple[str, ...]]:
        """Where each disk of a storage host is mounted: the first one for databases, the others for
        objects; a single one for both.
        """
        count = len(store.disks[: self._settings.disks])
        first = f"{config.DATABASES}/db0"
        if count == 1:
            return [(f"{config.OBJECTS}/d0", first)]
        return [(first,), *((f"{config.OBJECTS}/d{index}",) for index in range(count - 1))]

    def disks(self, store: Site, server: str) -> tuple[str, ...]:
        """The disks of a storage host that a server keeps data on."""
        return tuple(
            disk
            for disk, folders in zip(store.disks, self.folders(store), strict=False)
            if any(_keeps(folder, server) for folder in folders)
        )

    @property
    def devices(self) -> tuple[Device, ...]:
        """All disks of all rings."""
        return tuple(
            Device(server, store.name, store.address, zone, self._port(server, index), name)
            for zone, store in enumerate(self.stores, 1)
            for server in SERVERS
            for index, name in enumerate(self._names(store, server))
        )

    def ports(self, store: Site, server: str) -> tuple[int, ...]:
        """The ports of a server on a storage host."""
        return tuple(
            dict.fromkeys(
                one.port for one in self.devices if (one.host, one.server) == (store.name, server)
            )
        )

    def _names(self, store: Site, server: str) -> list[str]:
        return [
            folder.rsplit("/", 1)[-1]
            for folders in self.folders(store)
            for folder in folders
            if _keeps(folder, server)
        ]

    def _port(self, server: str, index: int) -> int:
        own = server == "object" and self._settings.object.servers_per_port > 0
        return config.DISK_PORT + index if own else config.PORTS[server]


def _keeps(folder: str, server: str) -> bool:
    """Whether a server keeps data in a folder of `SwiftRoster.folders`."""
    return folder.startswith(f"{config.DATABASES}/") != (server == "object")
