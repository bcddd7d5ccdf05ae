"""`ceph tell osd.N bench`: what each OSD's store takes by itself, without replicas and without the
network.

An OSD refuses more than it would do in `osd_bench_duration` seconds: at
`osd_bench_small_size_max_iops` requests a second below 1 MiB, at
`osd_bench_large_size_max_throughput` bytes a second from there, and requests above
`osd_bench_max_block_size`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.drivers.rados.cluster import RadosCluster

LARGE_BYTES: Final = 2**20
MOST_BYTES: Final = 256 * 2**20
"""What is written for one figure, where the OSD allows so much: more than a second of a disk of 200
MB/s.
"""
_LIMITS: Final = (
    "osd_bench_duration",
    "osd_bench_small_size_max_iops",
    "osd_bench_large_size_max_throughput",
)
_MAX_BLOCK: Final = "osd_bench_max_block_size"


class OsdFigure(Record):
    """Bytes a second that one OSD wrote in requests of one size."""

    host: str
    number: int
    request_bytes: int
    bytes_per_s: float


def total_bytes(request_bytes: int, limits: Mapping[str, int]) -> int:
    """How much an OSD may be asked to write in requests of this size: whole requests, within its
    limits and ours.
    """
    duration_s, iops, throughput = (limits[name] for name in _LIMITS)
    allowed = duration_s * (iops * request_bytes if request_bytes < LARGE_BYTES else throughput)
    return max(1, min(allowed, MOST_BYTES) // request_bytes) * request_bytes


def osd_figures(
    cluster: RadosCluster, osds: Mapping[int, str], sizes: Iterable[int]
) -> tuple[OsdFigure, ...]:
    """What each OSD (host by number) writes, asked one after the other, at each of these sizes of
    requests in bytes.

    Sizes above what an OSD takes at once are asked as that. Raises CommandFailed, TargetError.
    """
    found = []
    for number, host in osds.items():
        name = f"osd.{number}"
        limits = {option: _option(cluster, name, option) for option in (*_LIMITS, _MAX_BLOCK)}
        for size in _asked(sizes, limits[_MAX_BLOCK]):
            total = total_bytes(size, limits)
            told = cluster.ask("tell", name, "bench", str(total), str(size))
            try:
                rate = float(told["bytes_per_sec"])
            except (KeyError, OverflowError, TypeError, ValueError) as error:
                raise TargetError(
                    f"{name} on {host}: {error!r} in the answer to bench: {str(told)[:300]}"
                ) from error
            if not 0 < rate < math.inf:
                raise TargetError(
                    f"{name} on {host}: no bytes_per_sec in the answer to bench: {str(told)[:300]}"
                )
            found.append(OsdFigure(host=host, number=number, request_bytes=size, bytes_per_s=rate))
    return tuple(found)


def _asked(sizes: Iterable[int], most: int) -> Collection[int]:
    return dict.fromkeys(min(size, most) for size in sizes)


def _option(cluster: RadosCluster, name: str, option: str) -> int:
    told = cluster.ask("tell", name, "config", "get", option)
    try:
        # 14.2 answers the value alone.
        value = int(told[option] if isinstance(told, dict) else told)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise TargetError(
            f"{name}: {error!r} in the answer to config get {option}: {str(told)[:300]}"
        ) from error
    if value < 1:
        raise TargetError(
            f"{name}: {option} is {value}: it takes no bench", advice=f"Set {option} to 1 or more."
        )
    return value
