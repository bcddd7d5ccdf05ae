"""What a layout serves within a latency bound: the largest throughput whose p90 stays within it.

Between neighbouring measured points the path of latency over throughput is assumed to be straight;
beyond the first and last point nothing is claimed. A path that ends within the bound says `at
least`: more workers were not tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat

from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import graves, touching
from weighbridge.results.figures.summary import Row
from weighbridge.results.numbers import show_figure

_NICE: Final = (1, 2, 5)


class Stop(Record):
    """One worker count on a path: op/s and p90 in ms, with ranges over repeats. `p90_ms` is None
    with few samples, and in bins: `low_ms` to `high_ms`.
    """

    workers: int
    throughput_ops_s: NonNegativeFloat
    low_ops_s: NonNegativeFloat
    high_ops_s: NonNegativeFloat
    p90_ms: NonNegativeFloat | None
    low_ms: NonNegativeFloat | None
    high_ms: NonNegativeFloat | None
    valid: bool
    ranked: bool
    repeats: NonNegativeInt
    at_least: bool = False
    """Whether p90 is a lower bound: requests not seen to end took at least as long."""
    note: str = ""

    @property
    def joined(self) -> bool:
        """Whether the path goes through it: it may be ranked and has a p90."""
        return self.ranked and self.p90_ms is not None


class Served(Record):
    """What one layout serves within the bound; `ops_s` is None if not even the lowest load does."""

    layout: str
    ops_s: PositiveFloat | None
    at_least: bool = False
    """The path ends, or breaks, within the bound: the layout may serve more."""
    at_ms: PositiveFloat | None = None
    """p90 at that throughput: the bound, or less if throughput fell as workers were added."""
    low_ops_s: PositiveFloat | None = None
    high_ops_s: PositiveFloat | None = None
    """The range of the figure over single repeats; None unless each of two or more gives one."""
    known: bool = True
    """Whether any p90 is known."""

    @property
    def words(self) -> str:
        """`1,230 op/s`, `≥ 1,230 op/s`, `not within`, or a dash."""
        if self.ops_s is None:
            return "not within it" if self.known else "no p90"
        return f"{'≥ ' * self.at_least}{show_figure(self.ops_s)} op/s"

    @property
    def span(self) -> str:
        """`words` with the range over repeats."""
        if self.low_ops_s is None or self.high_ops_s is None:
            return self.words
        low, high = show_figure(self.low_ops_s), show_figure(self.high_ops_s)
        return self.words if low == high else f"{self.words} ({low}–{high})"


def path(cells: Sequence[Row]) -> tuple[Stop, ...]:
    """A layout's path through its rows of one kind of requests; unmeasured ones are left out."""
    return tuple(
        _stop(row)
        for row in sorted(cells, key=lambda row: row.workers)
        if row.value("throughput") is not None
    )


def _stop(row: Row) -> Stop:
    rates = [point.ops_s for point in row.used]
    # With too few samples in one repeat there is no median: the others are another set.
    latencies = [
        p90_ms
        for point in row.used
        if row.value("p90") is not None and (p90_ms := point.value("p90")) is not None
    ]
    within = row.within("p90")
    return Stop(
        workers=row.workers,
        throughput_ops_s=row.value("throughput") or 0.0,
        low_ops_s=min(rates, default=0.0),
        high_ops_s=max(rates, default=0.0),
        p90_ms=row.value("p90"),
        low_ms=within.low_ms if within is not None else min(latencies, default=None),
        high_ms=within.high_ms if within is not None else max(latencies, default=None),
        valid=row.valid,
        ranked=may_rank(row, "p90"),
        repeats=row.repeats,
        at_least=row.figure("p90").at_least,
        note="; ".join((*row.notes, *(one.words for one in graves(touching(row.doubts, "p90"))))),
    )


def stretches(stops: Sequence[Stop]) -> list[list[Stop]]:
    """The parts of a path that can be joined: ranked neighbours without a gap between them."""
    return [list(part) for joined, part in groupby(stops, key=lambda stop: stop.joined) if joined]


class LargestThroughput(Record):
    """The largest throughput within a bound, its p90, and whether it may be more."""

    ops_s: PositiveFloat
    at_ms: PositiveFloat
    more: bool


def most_within(
    points: Sequence[tuple[float, float | None]], bound_ms: float
) -> LargestThroughput | None:
    """The largest throughput of a path with a p90 within the bound; None if there is none.

    `points` are (op/s, p90 in ms) in order of workers; one without a p90 breaks the path. It may be
    more if the path ends within the bound, or breaks there and continues beyond it: the crossing is
    then unknown.
    """
    found: list[tuple[float, float]] = []
    more = False
    for place, (rate, latency) in enumerate(points):
        if latency is None:
            continue
        if latency <= bound_ms:
            found.append((rate, latency))
        later = [after for _, after in points[place + 1 :]]
        known = next((after for after in later if after is not None), None)
        if latency <= bound_ms and (known is None or (later[0] is None and known > bound_ms)):
            more = True
        if later and later[0] is not None and (latency <= bound_ms) != (later[0] <= bound_ms):
            next_rate = points[place + 1][0]
            found.append(
                (rate + (bound_ms - latency) / (later[0] - latency) * (next_rate - rate), bound_ms)
            )
    rate, latency = max(found, default=(0.0, 0.0))
    return LargestThroughput(ops_s=rate, at_ms=latency, more=more) if rate > 0 else None


def may_rank(row: Row, metric: str) -> bool:
    """Whether a metric of a row may be ranked: no grave doubt about the row or the metric."""
    return row.ranked and not graves(touching(row.doubts, metric))


def served(layout: str, cells: Sequence[Row], bound_ms: float) -> Served:
    """What a layout serves within the bound, from its rows of one kind of requests."""
    rows = sorted(cells, key=lambda row: row.workers)
    medians = [
        (row.value("throughput") or 0.0, row.value("p90") if may_rank(row, "p90") else None)
        for row in rows
    ]
    best = most_within(medians, bound_ms)
    if best is None:
        return Served(
            layout=layout, ops_s=None, known=any(latency is not None for _, latency in medians)
        )
    repeats = sorted({point.repeat for row in rows for point in row.used})
    own = [
        one.ops_s
        for repeat in repeats
        if (one := most_within(_path_of(rows, repeat), bound_ms)) is not None
    ]
    spread = len(own) == len(repeats) > 1
    return Served(
        layout=layout,
        ops_s=best.ops_s,
        at_least=best.more,
        at_ms=best.at_ms,
        low_ops_s=min(own) if spread else None,
        high_ops_s=max(own) if spread else None,
    )


def _path_of(rows: Sequence[Row], repeat: int) -> list[tuple[float, float | None]]:
    points = [(row, next((one for one in row.used if one.repeat == repeat), None)) for row in rows]
    return [
        (0.0, None)
        if point is None
        else (point.ops_s, point.value("p90") if may_rank(row, "p90") else None)
        for row, point in points
    ]


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
    round_figures = [unit * 10.0**power for power in range(-4, 7) for unit in _NICE]
    between = [figure for figure in round_figures if flat[0] <= figure <= flat[-1]]

    def crossed(figure: float) -> int:
        return sum(min(latencies) <= figure < max(latencies) for latencies in known if latencies)

    return max(
        between,
        key=lambda figure: (crossed(figure), -max(figure / middle, middle / figure)),
        default=None,
    )
