"""`ceph tell osd.N bench`: what each OSD's store can write, without replicas and network.

An OSD refuses more than it would do in `osd_bench_duration` seconds: below 1 MiB at
`osd_bench_small_size_max_iops` requests a second, from there on at
`osd_bench_large_size_max_throughput` bytes a second; and requests above `osd_bench_max_block_size`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from weighbridge.common.errors import TargetError
from weighbridge.common.record import Record
from weighbridge.drivers.rados.cluster import RadosCluster

LARGE_BYTES: Final = 2**20
MOST_BYTES: Final = 256 * 2**20
"""Written for each figure, if the OSD allows it: more than a second of a disk with 200 MB/s."""
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
    """The bytes to write in requests of this size: a multiple, within the OSD's limits and ours."""
    duration_s, iops, throughput = (limits[name] for name in _LIMITS)
    allowed = duration_s * (iops * request_bytes if request_bytes < LARGE_BYTES else throughput)
    return max(1, min(allowed, MOST_BYTES) // request_bytes) * request_bytes


def osd_figures(
    cluster: RadosCluster, osds: Mapping[int, str], sizes: Iterable[int]
) -> tuple[OsdFigure, ...]:
    """What OSDs write at these sizes, or at their maximum. Raises CommandFailed, TargetError."""
    found = []
    for number, host in osds.items():
        name = f"osd.{number}"
        limits = {option: _option(cluster, name, option) for option in (*_LIMITS, _MAX_BLOCK)}
        for size in dict.fromkeys(min(size, limits[_MAX_BLOCK]) for size in sizes):
            total = total_bytes(size, limits)
            answer = cluster.ask("tell", name, "bench", str(total), str(size))
            shown = f"in the answer to bench: {str(answer)[:300]}"
            try:
                rate = float(answer["bytes_per_sec"])
            except (KeyError, OverflowError, TypeError, ValueError) as error:
                raise TargetError(f"{name} on {host}: {error!r} {shown}") from error
            if not 0 < rate < math.inf:
                raise TargetError(f"{name} on {host}: no bytes_per_sec {shown}")
            found.append(OsdFigure(host=host, number=number, request_bytes=size, bytes_per_s=rate))
    return tuple(found)


def _option(cluster: RadosCluster, name: str, option: str) -> int:
    answer = cluster.ask("tell", name, "config", "get", option)
    try:
        # 14.2 answers with the value alone.
        value = int(answer[option] if isinstance(answer, dict) else answer)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise TargetError(
            f"{name}: {error!r} in the answer to config get {option}: {str(answer)[:300]}"
        ) from error
    if value < 1:
        advice = f"Set {option} to 1 or more."
        raise TargetError(f"{name}: {option} is {value}: no benchmark is allowed", advice=advice)
    return value
