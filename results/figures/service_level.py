"""What a layout serves within a latency bound: the largest throughput whose p90 stays within it.

Between neighbouring measured points the path of latency over throughput is assumed to be straight;
beyond the first and last point nothing is claimed. A path that ends within the bound says `at
least`: more workers were not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Final

from weighbridge.results.figures.doubt import graves, touching
from weighbridge.results.figures.summary import Row
from weighbridge.results.numbers import show_figure

_NICE: Final = (1, 2, 5)


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One worker count on a path: op/s and p90 in ms, with ranges over repeats. `p90_ms` is None
    with few samples, and in bins: `low_ms` to `high_ms`.
    """

    workers: int
    throughput_ops_s: float
    low_ops_s: float
    high_ops_s: float
    p90_ms: float | None
    low_ms: float | None
    high_ms: float | None
    ranked: bool
    repeats: int
    at_least: bool = False
    """Whether p90 is a lower bound: requests not seen to end took at least as long."""
    note: str = ""

    @property
    def joined(self) -> bool:
        """Whether the path goes through it: it may be ranked and has a p90."""
        return self.ranked and self.p90_ms is not None


@dataclass(frozen=True, kw_only=True)
class Served:
    """What one layout serves within the bound; `ops_s` is None if not even the lowest load does."""

    layout: str
    ops_s: float | None
    at_least: bool = False
    """The path ends, or breaks, within the bound: the layout may serve more."""
    at_ms: float | None = None
    """p90 at that throughput: the bound, or less if throughput fell as workers were added."""
    low_ops_s: float | None = None
    high_ops_s: float | None = None
    """The range of the figure over single repeats; None unless each of two or more gives one."""
    known: bool = True
    """Whether any p90 is known."""

    @property
    def words(self) -> str:
        """`1,230 op/s`, `≥ 1,230 op/s`, `not within it`, or `no p90`."""
        if self.ops_s is None:
            return "not within it" if self.known else "no p90"
        return f"{'≥ ' * self.at_least}{show_figure(self.ops_s)} op/s"


def may_rank(row: Row, metric: str) -> bool:
    """Whether a metric of a row may be ranked: no grave doubt about the row or the metric."""
    return row.ranked and not graves(touching(row.doubts, metric))


def path(cells: Sequence[Row]) -> tuple[Stop, ...]:
    """A layout's path through its rows of one kind of requests; unmeasured ones are left out."""
    rows = sorted(cells, key=lambda row: row.workers)
    return tuple(_stop(row) for row in rows if row.value("throughput") is not None)


def _stop(row: Row) -> Stop:
    rates = [point.ops_s for point in row.used]
    p90, within = row.figure("p90"), row.within("p90")
    # With too few samples in one repeat there is no median: the others are another set.
    known = [point.value("p90") for point in row.used if p90.value is not None]
    latencies = [latency for latency in known if latency is not None]
    low_ms, high_ms = min(latencies, default=None), max(latencies, default=None)
    if within is not None:
        low_ms, high_ms = within.low_ms, within.high_ms
    doubts = graves(touching(row.doubts, "p90"))
    return Stop(
        workers=row.workers,
        throughput_ops_s=row.value("throughput") or 0.0,
        low_ops_s=min(rates, default=0.0),
        high_ops_s=max(rates, default=0.0),
        p90_ms=p90.value,
        low_ms=low_ms,
        high_ms=high_ms,
        ranked=may_rank(row, "p90"),
        repeats=row.repeats,
        at_least=p90.at_least,
        note="; ".join((*row.notes, *(doubt.words for doubt in doubts))),
    )


def stretches(stops: Sequence[Stop]) -> list[list[Stop]]:
    """The parts of a path that can be joined: ranked neighbours without a gap between them."""
    return [list(part) for joined, part in groupby(stops, key=lambda stop: stop.joined) if joined]


def most_within(
    points: Sequence[tuple[float, float | None]], bound_ms: float
) -> tuple[float, float, bool] | None:
    """The largest throughput of a path with a p90 within the bound, that p90, and whether it may be
    more; None if there is none.

    `points` are (op/s, p90 in ms) in order of workers; one without a p90 breaks the path. It may be
    more if the path ends within the bound, or breaks there and continues beyond it: the crossing is
    then unknown.
    """
    best, more = (0.0, 0.0), False
    for place, (rate, latency) in enumerate(points):
        if latency is None:
            continue
        within = latency <= bound_ms
        if within:
            best = max(best, (rate, latency))
        later = [after for _, after in points[place + 1 :]]
        known = next((after for after in later if after is not None), None)
        if within and (known is None or (later[0] is None and known > bound_ms)):
            more = True
        if later and later[0] is not None and within != (later[0] <= bound_ms):
            share = (bound_ms - latency) / (later[0] - latency)
            crossing = rate + share * (points[place + 1][0] - rate)
            best = max(best, (crossing, bound_ms))
    return (*best, more) if best[0] > 0 else None


def served(layout: str, cells: Sequence[Row], bound_ms: float) -> Served:
    """What a layout serves within the bound, from its rows of one kind of requests."""
    rows = sorted(cells, key=lambda row: row.workers)
    of_rows = [_load(row, row.value("throughput"), row.value("p90")) for row in rows]
    best = most_within(of_rows, bound_ms)
    if best is None:
        known = any(latency is not None for _, latency in of_rows)
        return Served(layout=layout, ops_s=None, known=known)
    repeats = sorted({point.repeat for row in rows for point in row.used})
    own = []
    for repeat in repeats:
        loads = []
        for row in rows:
            point = next((one for one in row.used if one.repeat == repeat), None)
            ops_s = None if point is None else point.ops_s
            loads.append(_load(row, ops_s, None if point is None else point.value("p90")))
        most = most_within(loads, bound_ms)
        own += [] if most is None else [most[0]]
    spread = len(own) == len(repeats) > 1
    return Served(
        layout=layout,
        ops_s=best[0],
        at_least=best[2],
        at_ms=best[1],
        low_ops_s=min(own) if spread else None,
        high_ops_s=max(own) if spread else None,
    )


def _load(row: Row, ops_s: float | None, p90_ms: float | None) -> tuple[float, float | None]:
    return ops_s or 0.0, p90_ms if may_rank(row, "p90") else None


def default_bound_ms(paths: Sequence[Sequence[Stop]]) -> float | None:
    """A bound that separates layouts, if none is given: the round figure that most paths cross.

    Of several, the one closest to the median p90 by ratio. None without two p90s to lie between.
    """
    known = [
        [stop.p90_ms for stop in stops if stop.ranked and stop.p90_ms is not None]
        for stops in paths
    ]
    flat = sorted(latency for latencies in known for latency in latencies)
    if len(flat) < 2 or flat[0] == flat[-1]:
        return None
    middle = median(flat)
    best, most = None, (-1, 0.0)
    for figure in (unit * 10.0**power for power in range(-4, 7) for unit in _NICE):
        crossed = sum(min(each) <= figure < max(each) for each in known if each)
        rank = (crossed, -max(figure / middle, middle / figure))
        if flat[0] <= figure <= flat[-1] and (best is None or rank > most):
            best, most = figure, rank
    return best
