"""Which counters of Ceph's daemons are told every second: those that say what limits a gateway."""

from __future__ import annotations

# Each is the name of a group and of a counter in it, as `perf dump` gives them. A release that lacks one does not tell it.

RADOSGW: tuple[str, ...] = (
    *(f"rgw.{name}" for name in ("req", "failed_req", "qlen", "qactive", "cache_hit", "cache_miss", "gc_retire_object")),
    *(f"rgw.{name}" for name in ("get", "get_b", "get_initial_lat", "put", "put_b", "put_initial_lat")),
)
OSD: tuple[str, ...] = ("osd.op",)
