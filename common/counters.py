"""Counters that rooms pass on: of daemons, which are worth showing and how, and of disks at a power
cut.

The probe of a daemon declares its own; they are recorded with the counts, so that a run can be read
where the daemon is unknown.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from weighbridge.common.quantities import Count
from weighbridge.common.record import Record


class CounterFigure(Record):
    """One figure computed from the counters of all daemons of a kind over a window.

    `sum`: the sum of a gauge's means. `rate`: the sum of the counters' growth per second.
    `latency`: growth of `NAME_sum_s` per `NAME_count`, in ms. `hits`: growth of the first counter
    as a percentage of both.
    """

    words: str
    """The text, with `{}` for the value: `{} requests queued`."""
    reckon: Literal["sum", "rate", "latency", "hits"]
    counters: tuple[str, ...]


class DaemonCounters(Record):
    """Which counters of a kind of daemon are shown.

    Gauges describe its queue (empty: it reports none): `waiting` minus `working` requests are
    queued; `busy` and `idle` count workers.
    """

    daemon: str
    """Its kind: the part of its probes' names before the first dot."""
    figures: tuple[CounterFigure, ...] = ()
    waiting: str = ""
    working: str = ""
    busy: str = ""
    idle: str = ""


class CutDisk(Record):
    """A disk at a cut: what it had been given since the load began, and what the cut took."""

    name: str
    """Host and device, such as `store-1/dev/wb0`; `store-1/` is the host's own root."""
    writes: Count
    flushes: Count
    unflushed_blocks: Count
    """Blocks of 4 KiB that were written and not flushed at the cut."""
    kept_blocks: Count
    """Of these, those that the disk had written by itself, by chance."""

    @model_validator(mode="after")
    def _kept_some(self) -> Self:
        if self.kept_blocks > self.unflushed_blocks:
            raise ValueError("more blocks were kept than were unflushed")
        return self
