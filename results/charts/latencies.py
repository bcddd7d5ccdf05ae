"""Measured latencies, decoded once for all charts: of each kind of requests at one worker count.

Histograms are decoded only here. What cannot be read is a gap with its reason, and leaves the rest
intact. A percentile is of one repeat; over repeats it is the geometric mean of theirs, never a
percentile of pooled repeats.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby
from statistics import median
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.common.record import Record
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.tail_causes import delayed_share, tail_cause
from weighbridge.results.analysis.steps.validity import SAMPLES_BEYOND
from weighbridge.results.analysis.steps.visit import Point
from weighbridge.results.doubt import doubt_words
from weighbridge.results.figures import counted, upper
from weighbridge.results.record.histogram import Histogram, rank_of
from weighbridge.results.record.measurement import Second, Tally
from weighbridge.results.record.resolved import ResolvedPlan
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.statistics import geometric_mean

NORMAL_95: Final = 1.959964
"""A normal distribution has 95 % within so many standard deviations of its mean."""


class RepeatLatencies(Record):
    """Latencies of one kind of requests in one repeat on one layout. `repeat` counts from 0."""

    repeat: NonNegativeInt
    ranked: bool
    """Whether it counts in figures: it is valid, and nothing else excludes it."""
    note: str = ""
    """Why it does not count."""
    tops_us: tuple[int, ...] = ()
    """The top of each bucket that is not empty, ascending."""
    reached: tuple[int, ...] = ()
    """The samples at or below each top."""
    max_us: NonNegativeInt = 0
    window_s: NonNegativeFloat = 0.0
    seconds: tuple[Second, ...] = ()
    gap: str = ""
    """Why no latencies are known; empty where they are."""

    @property
    def count(self) -> int:
        return self.reached[-1] if self.reached else 0

    def percentile_us(self, percent: float) -> int:
        """At rank ceil(n * percent / 100). Raises InvalidMeasurement without samples."""
        if not self.count:
            raise InvalidMeasurement("there is no percentile of no samples")
        return self._at(rank_of(self.count, percent))

    def interval_us(self, percent: float) -> tuple[int, int] | None:
        """The 95 % interval of a percentile within this repeat, by order statistics.

        None where there are too few samples. The number of samples below the true percentile is
        binomial, here by its normal approximation, which `SAMPLES_BEYOND` makes good enough. It
        assumes that requests are independent, which those of one second seldom are: the true
        uncertainty is at least this. Source: W. J. Conover, Practical Nonparametric Statistics,
        section 3.2.
        """
        share = percent / 100
        reach = NORMAL_95 * math.sqrt(self.count * share * (1 - share))
        low, high = (
            math.floor(self.count * share - reach),
            math.ceil(self.count * share + reach) + 1,
        )
        return (self._at(low), self._at(high)) if low >= 1 and high <= self.count else None

    def _at(self, rank: int) -> int:
        return min(self.tops_us[bisect_left(self.reached, rank)], self.max_us)


class LayoutLatencies(Record):
    """The repeats of one layout."""

    layout: str
    repeats: tuple[RepeatLatencies, ...]
    tail_cause: str = ""
    """What lengthened its slowest requests, in words; empty if nothing is known of it."""

    @property
    def known(self) -> tuple[RepeatLatencies, ...]:
        return tuple(one for one in self.repeats if one.count)

    @property
    def ranked(self) -> tuple[RepeatLatencies, ...]:
        return tuple(one for one in self.known if one.ranked)

    @property
    def count(self) -> int:
        """The samples of the repeat with the fewest: what holds for it holds for all."""
        return min((one.count for one in self.ranked), default=0)

    @property
    def largest_us(self) -> int | None:
        """The slowest request of all repeats that count."""
        return max((one.max_us for one in self.ranked), default=None)

    def reaches(self, percent: float) -> bool:
        """Whether a percentile may be shown: every repeat has enough samples beyond it."""
        return bool(self.ranked) and self.count * (100 - percent) / 100 >= SAMPLES_BEYOND - 1e-6

    def middle_us(self, percent: float) -> float:
        """The geometric mean of the repeats' percentiles. Raises InvalidMeasurement without any."""
        if not self.ranked:
            raise InvalidMeasurement(f"{self.layout}: no latencies are known")
        return geometric_mean([max(1, one.percentile_us(percent)) for one in self.ranked])

    @property
    def why_not(self) -> str:
        """Why none of it counts in figures, in a few words; empty where some does."""
        if self.ranked:
            return ""
        if self.known:
            return "not ranked"
        return "not known" if any(one.gap for one in self.repeats) else "not measured"


class KindLatencies(Record):
    """One kind of requests at one worker count, on every layout in order."""

    kind: Kind
    key: str
    """A slug that is unique among the kinds of its run."""
    about: str
    workers: int
    layouts: tuple[LayoutLatencies, ...]

    @property
    def at(self) -> str:
        return counted(self.workers, "worker")

    @property
    def title(self) -> str:
        return f"{upper(self.about)} at {self.at}"

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is not known and why; a reason that several repeats share is given once."""
        said: dict[tuple[str, str], list[str]] = {}
        for one in self.layouts:
            reasons: dict[str, list[str]] = {}
            for repeat in one.repeats:
                if repeat.gap:
                    reasons.setdefault(repeat.gap, []).append(str(repeat.repeat + 1))
            for why, repeats in reasons.items():
                which = f"repeat{'s' * (len(repeats) > 1)} {', '.join(repeats)}"
                said.setdefault((which, why), []).append(one.layout)
        return tuple(
            f"no latencies of {self.about} at {self.at} in {which} on {', '.join(layouts)}: {why}"
            for (which, why), layouts in said.items()
        )


def read_latencies(
    plan: ResolvedPlan,
    rows: Sequence[Row],
    steps: Iterable[StepResult],
    *,
    workers: int | None = None,
) -> tuple[KindLatencies, ...]:
    """The latencies of every kind of requests but A/A controls', at `workers`, else at the largest
    count at which most layouts have ranked figures.
    """
    own = [row for row in rows if row.layout not in plan.twins]
    names, keys = subjects(own), _keys(own)
    chosen: dict[Kind, list[Row]] = {}
    for kind, cells in groupby(own, key=kind_of):
        chosen.setdefault(kind, []).extend(cells)
    picked = {kind: _at_one_count(cells, workers) for kind, cells in chosen.items()}
    wanted = {key for cells in picked.values() for row in cells for key in _step_keys(plan, row)}
    found = {step.key: step for step in steps if step.key in wanted}
    return tuple(
        KindLatencies(
            kind=kind,
            key=keys[kind],
            about=names[kind],
            workers=cells[0].workers,
            layouts=tuple(_layout(plan, row, found) for row in cells),
        )
        for kind, cells in picked.items()
    )


def _at_one_count(cells: Sequence[Row], workers: int | None) -> list[Row]:
    counts = {row.workers for row in cells}
    best = max(
        counts, key=lambda count: (sum(row.ranked for row in cells if row.workers == count), count)
    )
    return [row for row in cells if row.workers == (workers if workers in counts else best)]


def _step_keys(plan: ResolvedPlan, row: Row) -> list[StepKey]:
    first = StepKey(
        layout=row.layout,
        api=row.api,
        workload=row.workload,
        workers=row.workers,
        repeat=0,
        driver=row.driver,
        layer=row.layer,
    )
    return [first.model_copy(update={"repeat": repeat}) for repeat in range(plan.suite.repeats)]


def _layout(plan: ResolvedPlan, row: Row, found: Mapping[StepKey, StepResult]) -> LayoutLatencies:
    points = {point.repeat: point for point in row.points}
    repeats = [
        _repeat(found[key], row, points.get(key.repeat))
        for key in _step_keys(plan, row)
        if key in found
    ]
    delayed = [delayed_share(one.tops_us, one.reached) for one in repeats if one.ranked]
    cause = tail_cause(row, median(delayed) if delayed else 0.0)
    return LayoutLatencies(layout=row.layout, repeats=tuple(repeats), tail_cause=cause)


def _repeat(step: StepResult, row: Row, point: Point | None) -> RepeatLatencies:
    measurement = step.measurement
    if measurement is None:
        return RepeatLatencies(repeat=step.key.repeat, ranked=False, gap="; ".join(step.notes))
    tally = next((one for one in measurement.tallies if one.operation == row.operation), None)
    if tally is None or not tally.count:
        return RepeatLatencies(repeat=step.key.repeat, ranked=False, gap="nothing succeeded")
    ranked = point is not None and point.ranked and not row.condemned
    known_part = RepeatLatencies(
        repeat=step.key.repeat,
        ranked=ranked,
        note=""
        if ranked
        else doubt_words(row.condemned)
        or next(iter(point.notes if point is not None else step.notes), "not ranked"),
        window_s=measurement.window_s,
        seconds=tuple(
            second for second in measurement.seconds if second.operation == row.operation
        ),
    )
    if tally.latency is None:
        why = (
            "the driver reports latencies only in bins"
            if tally.bins is not None
            else "the driver reports only the extreme latencies"
        )
        return known_part.model_copy(update={"gap": why})
    try:
        buckets = _buckets(tally.latency, tally)
    except InvalidMeasurement as error:
        return known_part.model_copy(update={"gap": str(error)})
    return known_part.model_copy(
        update={
            "tops_us": tuple(top for top, _ in buckets),
            "reached": tuple(accumulate(count for _, count in buckets)),
            "max_us": tally.max_us or buckets[-1][0],
        }
    )


def _buckets(encoded: str, tally: Tally) -> tuple[tuple[int, int], ...]:
    """A histogram's buckets. Raises InvalidMeasurement if unreadable, or of another count."""
    buckets = Histogram.decode(encoded).buckets()
    samples = sum(count for _, count in buckets)
    if samples != tally.count:
        raise InvalidMeasurement(
            f"a histogram counts {samples} samples, but {tally.count} requests succeeded"
        )
    return buckets


def _keys(rows: Sequence[Row]) -> dict[Kind, str]:
    """Short unique slugs of kinds: the workload, with operation, API and driver where needed."""
    kinds = list(dict.fromkeys(kind_of(row) for row in rows))
    ways = {(api, driver) for _, _, api, driver in kinds}
    slugs = {}
    for workload, operation, api, driver in kinds:
        several = len({kind[1] for kind in kinds if kind[0] == workload}) > 1
        parts = [
            workload,
            *([operation] if several else []),
            *([api, driver] if len(ways) > 1 else []),
        ]
        slugs[workload, operation, api, driver] = "-".join(parts)
    return slugs
