"""Which daemons of a layout run where: names, addresses, ports and disks."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from weighbridge.common.endpoint import host_port
from weighbridge.gateways.front import front_url
from weighbridge.gateways.gateway import Site
from weighbridge.gateways.rgw.settings import MON_IDS, RgwPlacement, RgwSettings

MON_PORTS = (3300, 6789)
"""Ports of a mon: of protocol v2 and v1."""


@dataclass(frozen=True)
class Osd:
    """A planned OSD. `device` is None for memstore; `journal_disk` only of separate journals;
    `more` are further disks that its file system stripes over.
    """

    number: int
    host: str
    address: str
    device: str | None = None
    journal_disk: str | None = None
    more: tuple[str, ...] = ()
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()), compare=False)

    @property
    def disks(self) -> tuple[str, ...]:
        return tuple(one for one in (self.device, *self.more, self.journal_disk) if one is not None)


@dataclass(frozen=True)
class Mon:
    """A planned mon, `mon.a`, and the mgr beside it, `mgr.a`."""

    id: str
    host: str
    address: str

    @property
    def places(self) -> str:
        """Where it listens, as Ceph writes it."""
        v2, v1 = (host_port(self.address, port) for port in MON_PORTS)
        return f"[v2:{v2},v1:{v1}]"


@dataclass(frozen=True)
class Radosgw:
    """A planned radosgw. `name` is its name in Ceph, `service` its service on the host."""

    name: str
    service: str
    host: str
    address: str
    port: int


class CephRoster:
    """The daemons that a placement and its settings make on these hosts."""

    def __init__(
        self, place: RgwPlacement, settings: RgwSettings, sites: Mapping[str, Site]
    ) -> None:
        self.sites: Mapping[str, Site] = {name: sites[name] for name in place.hosts}
        self.mons = tuple(
            Mon(letter, name, sites[name].address)
            for letter, name in zip(MON_IDS, place.mon, strict=False)
        )
        self.front = None if place.front is None else sites[place.front]
        self.front_url = front_url(place, settings, sites)
        self._place = place
        self._settings = settings

    @cached_property
    def osds(self) -> tuple[Osd, ...]:
        """OSDs numbered host by host: one a disk, or for memstore as many as the layout says."""
        places = [
            (self.sites[name], disks)
            for name in self._place.osd
            for disks in self._disks(self.sites[name])
        ]
        return tuple(
            Osd(number, site.name, site.address, next(iter(devices), None), journal, devices[1:])
            for number, (site, (devices, journal)) in enumerate(places)
        )

    @cached_property
    def radosgws(self) -> tuple[Radosgw, ...]:
        settings = self._settings.radosgw
        found = []
        for name in self._place.radosgw:
            for index in range(settings.daemons):
                more = f".{index}" if settings.daemons > 1 else ""
                address, port = self.sites[name].address, settings.port + index
                found.append(
                    Radosgw(f"client.rgw.{name}{more}", f"radosgw{more}", name, address, port)
                )
        return tuple(found)

    def _disks(self, site: Site) -> Iterator[tuple[tuple[str, ...], str | None]]:
        osd = self._settings.osd
        if osd.objectstore == "memstore":
            yield from [((), None)] * osd.memstore.per_host
            return
        data, journals = osd.split(len(site.disks))
        apart = site.disks[journals[0]] if journals else None
        disks = tuple(site.disks[number] for number in data)
        yield from [(disks, apart)] if osd.striped else (((disk,), apart) for disk in disks)
