"""What is worth showing of what a daemon counts.

Whoever brings a daemon declares it with its probe; it is kept with what was counted, so that a run
can be read where nobody knows the daemon.
"""

from __future__ import annotations

from typing import Literal

from weighbridge.common.record import Record


class CounterFigure(Record):
    """One figure of all daemons of a kind, made of counters of theirs, over a window.

    `sum`: the mean of a gauge, added up. `rate`: by how much a counter grows in a second, added up.
    `latency`: milliseconds, what `NAME_sum_s` grew by for each of `NAME_count`. `hits`: percent,
    the growth of the first counter of that of both.
    """

    words: str
    """What it is, with `{}` for the value: `{} requests queued`."""
    reckon: Literal["sum", "rate", "latency", "hits"]
    counters: tuple[str, ...]


class DaemonCounters(Record):
    """What is shown of a kind of daemon. Its queue is told by gauges; empty: it does not tell.

    `waiting` less `working` are requests that wait, `busy` and `idle` workers.
    """

    daemon: str
    """Its kind: what the names of its probes begin with, before the first dot."""
    figures: tuple[CounterFigure, ...] = ()
    waiting: str = ""
    working: str = ""
    busy: str = ""
    idle: str = ""
