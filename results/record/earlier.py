"""Facts that runs of earlier versions do not record.

Do not extend: newer runs record these themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.common.counters import CounterFigure, DaemonCounters
from weighbridge.common.layers import StoreLayer

STORE_LAYERS: Final[Mapping[str, StoreLayer]] = {"rgw": "rados", "swift": "object-server"}
"""The layer that is the store itself, by kind of gateway; now `Structure.layer`."""

DAEMONS: Final[tuple[DaemonCounters, ...]] = (
    DaemonCounters(
        daemon="haproxy",
        figures=(
            CounterFigure(words="{} sessions", reckon="sum", counters=("frontend.scur",)),
            CounterFigure(words="{} requests queued", reckon="sum", counters=("backend.qcur",)),
            CounterFigure(words="{} retries/s", reckon="rate", counters=("backend.wretr",)),
        ),
        waiting="backend.qcur",
    ),
    DaemonCounters(
        daemon="apache",
        figures=(
            CounterFigure(words="{} workers busy", reckon="sum", counters=("workers_busy",)),
            CounterFigure(words="{} idle", reckon="sum", counters=("workers_idle",)),
        ),
        busy="workers_busy",
        idle="workers_idle",
    ),
    DaemonCounters(
        daemon="radosgw",
        figures=(
            CounterFigure(words="{} requests in work", reckon="sum", counters=("qactive",)),
            CounterFigure(
                words="first byte of a read after {} ms",
                reckon="latency",
                counters=("get_initial_lat",),
            ),
            CounterFigure(
                words="a write takes {} ms", reckon="latency", counters=("put_initial_lat",)
            ),
            CounterFigure(
                words="{} % of metadata from its cache",
                reckon="hits",
                counters=("cache_hit", "cache_miss"),
            ),
        ),
        waiting="qlen",
        working="qactive",
    ),
    DaemonCounters(
        daemon="osd",
        figures=(
            CounterFigure(words="{} op/s", reckon="rate", counters=("op",)),
            CounterFigure(
                words="an operation takes {} ms", reckon="latency", counters=("op_latency",)
            ),
            CounterFigure(
                words="a commit {} ms", reckon="latency", counters=("bluestore_commit_lat",)
            ),
            CounterFigure(
                words="{} % of onodes cached",
                reckon="hits",
                counters=("bluestore_onode_hits", "bluestore_onode_misses"),
            ),
        ),
    ),
    DaemonCounters(
        daemon="memcached",
        figures=(
            CounterFigure(words="{} % hits", reckon="hits", counters=("get_hits", "get_misses")),
        ),
    ),
    DaemonCounters(
        daemon="swift",
        figures=(
            CounterFigure(
                words="{} folders of container updates put off",
                reckon="sum",
                counters=("async_folders",),
            ),
            CounterFigure(words="{} TCP sockets in use", reckon="sum", counters=("tcp_inuse",)),
        ),
    ),
)
"""The daemon counters to show; now `Head.daemons` of a step's telemetry."""
