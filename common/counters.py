"""Which of a daemon's counters are worth showing, and how.

The probe of a daemon declares them; they are recorded with the counts, so that a run can be read
where the daemon is unknown.
"""

from __future__ import annotations

from typing import Literal

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
