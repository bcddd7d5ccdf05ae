"""Settings of a Ceph cluster that follow the size of its hosts: see `gateways.sizing`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.gateways.front import front_by_size
from weighbridge.gateways.rgw.placement import RgwPlacement
from weighbridge.gateways.rgw.settings import LEAST_OSD_MEMORY_BYTES, PoolSettings, RgwSettings
from weighbridge.gateways.sizing import Role, Sized, Sizes, pieces

_THREADS_PER_CPU: Final = 32
_LEAST_THREADS: Final = 512
"""Ceph's default of `rgw_thread_pool_size`, which suits 16 CPUs by 32 each."""
_MOST_PG_NUM: Final = 32768
_MOST_OTHER_PG_NUM: Final = 32
"""Ceph's default of `osd_pool_default_pg_num`: these pools have little in them."""


def by_size(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> tuple[Sized, ...]:
    """All of them, with those of the front."""
    return (
        *_radosgw(place, settings, sizes),
        *_memory(place, settings, sizes),
        *_placement_groups(settings.pools, sum(_osds(place, settings, sizes).values())),
        *front_by_size(place, sizes),
    )


def _radosgw(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> Iterator[Sized]:
    hosts, own = Role(place.radosgw, sizes), settings.radosgw
    yield hosts.waiting(
        "radosgw.threads",
        per_cpu=_THREADS_PER_CPU,
        least=_LEAST_THREADS,
        shared_by=own.daemons,
    )
    yield hosts.waiting(
        "radosgw.max_concurrent_requests",
        per_cpu=2 * _THREADS_PER_CPU,
        least=2 * _LEAST_THREADS,
        of="per daemon",
    )


def _memory(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> Iterator[Sized]:
    if settings.osd.objectstore == "memstore":
        return  # its objects are in memory, and it has no cache
    found = Role(place.osd, sizes).cache(
        "osd.memory_target", _osds(place, settings, sizes), least_bytes=LEAST_OSD_MEMORY_BYTES
    )
    if found is not None:
        yield found


def _placement_groups(pools: PoolSettings, osds: int) -> Iterator[Sized]:
    if not osds:
        return
    parts = pools.replicas if pools.ec is None else pools.ec.fragments.count
    for key, percent, copies, most in (
        ("data_pg_num", 64, parts, _MOST_PG_NUM),
        ("index_pg_num", 16, pools.replicas, _MOST_PG_NUM),
        ("other_pg_num", 4, pools.replicas, _MOST_OTHER_PG_NUM),
    ):
        yield pieces(key, osds, copies, percent=percent, most=most).below("pools")


def _osds(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> dict[str, int]:
    """OSDs by host."""
    osd = settings.osd
    found = {}
    for name in place.osd:
        disks = sizes[name].disks if name in sizes else 0
        count = len(osd.split(disks)[0])
        found[name] = min(1, count) if osd.striped else count
        if osd.objectstore == "memstore":
            found[name] = osd.memstore.per_host
    return found
