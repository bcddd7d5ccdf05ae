"""Measured latencies for charts, decoded once: each kind of requests at one worker count.

What cannot be read is a gap with its reason, and leaves the rest intact. The share of requests done
within a latency is of one repeat, by the same product-limit as the percentiles of tables: requests
that were not seen to end count with their age. Over repeats it is the geometric mean of theirs,
never of a mixture of repeats.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median
from typing import Final

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.figures.doubt import doubt_words
from weighbridge.results.figures.statistics import geometric_mean
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import NOTHING_SEEN
from weighbridge.results.figures.validity import least_samples
from weighbridge.results.figures.visit import CLOSE, Point, product_limit
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.numbers import counted, upper
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Second, StepKey, StepResult, Tally


@dataclass(frozen=True)
class RepeatLatencies:
    """Latencies of one kind of requests in one repeat on one layout. `repeat` counts from 0."""

    repeat: int
    ranked: bool
    """Whether it counts in figures: it is valid, and nothing else excludes it."""
    note: str = ""
    """Why it does not count."""
    count: int = 0
    tops_us: tuple[int, ...] = ()
    """The top of each bucket that is not empty, ascending."""
    shares: tuple[float, ...] = ()
    """The share of requests done within each top, from 0 to 1."""
    delayed: float = 0.0
    window_s: float = 0.0
    seconds: tuple[Second, ...] = field(default=(), repr=False)
    gap: str = ""
    """Why no latencies are known; empty where they are."""

    def within_us(self, percent: float) -> int | None:
        """The latency within which so many were done; None: not within any that was seen."""
        at = bisect_left(self.shares, percent / 100 - CLOSE)
        return self.tops_us[at] if at < len(self.tops_us) else None


@dataclass(frozen=True)
class LayoutLatencies:
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

    def reaches(self, percent: float) -> bool:
        """Whether every repeat has enough samples for a percentile."""
        return self.count >= least_samples(percent)

    def middle_us(self, percent: float) -> float | None:
        """The geometric mean of the repeats' percentiles; None if one is unknown."""
        each = [one.within_us(percent) for one in self.ranked]
        known = [max(1, latency) for latency in each if latency is not None]
        return geometric_mean(known) if known and len(known) == len(each) else None

    @property
    def why_not(self) -> str:
        """Why none of it counts in figures, in a few words; empty where some does."""
        if self.ranked:
            return ""
        if self.known:
            return "not ranked"
        return "not known" if any(one.gap for one in self.repeats) else "not measured"


@dataclass(frozen=True)
class KindLatencies:
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
    cells: Mapping[Kind, Sequence[Row]],
    names: Mapping[Kind, str],
    found: Iterable[StepResult],
    planned: int,
) -> tuple[KindLatencies, ...]:
    """The latencies of each kind of requests: `cells` are its rows at one worker count, `planned`
    the repeats.
    """
    keys = _keys(list(cells))
    steps = {step.key: step for step in found}
    return tuple(
        KindLatencies(
            kind=kind,
            key=keys[kind],
            about=names[kind],
            workers=rows[0].workers,
            layouts=tuple(_layout(planned, row, steps) for row in rows),
        )
        for kind, rows in cells.items()
    )


def _layout(planned: int, row: Row, steps: dict[StepKey, StepResult]) -> LayoutLatencies:
    points = {point.repeat: point for point in row.points}
    keys = [
        StepKey(
            layout=row.layout,
            api=row.api,
            workload=row.workload,
            workers=row.workers,
            repeat=repeat,
            driver=row.driver,
            layer=row.layer,
        )
        for repeat in range(planned)
    ]
    repeats = [_repeat(steps[key], row, points.get(key.repeat)) for key in keys if key in steps]
    delayed = [one.delayed for one in repeats if one.ranked]
    cause = tail_cause(row, median(delayed) if delayed else 0.0)
    return LayoutLatencies(layout=row.layout, repeats=tuple(repeats), tail_cause=cause)


def _repeat(step: StepResult, row: Row, point: Point | None) -> RepeatLatencies:
    measurement, repeat = step.measurement, step.key.repeat
    if measurement is None:
        return RepeatLatencies(repeat, ranked=False, gap="; ".join(step.notes))
    tally = next((one for one in measurement.tallies if one.operation == row.operation), None)
    if tally is None or not tally.count:
        return RepeatLatencies(repeat, ranked=False, gap="nothing succeeded")
    ranked = point is not None and point.ranked and not row.condemned
    notes = point.notes if point is not None else step.notes
    why = doubt_words(row.condemned) or next(iter(notes), "not ranked")
    seconds = [second for second in measurement.seconds if second.operation == row.operation]
    try:
        buckets, curve = _curve(tally)
        gap = ""
    except InvalidMeasurement as error:
        buckets, curve, gap = (), (), str(error)
    tops = tuple(top for top, _ in buckets)
    reached = tuple(accumulate(count for _, count in buckets))
    return RepeatLatencies(
        repeat=repeat,
        ranked=ranked,
        note="" if ranked else why,
        count=reached[-1] if reached else 0,
        tops_us=tops,
        shares=curve,
        delayed=delayed_share(tops, reached) if reached else 0.0,
        window_s=measurement.window_s,
        seconds=tuple(seconds),
        gap=gap,
    )


def _curve(tally: Tally) -> tuple[tuple[tuple[int, int], ...], tuple[float, ...]]:
    """A histogram's buckets, and the share done within each. Raises InvalidMeasurement if it is
    unreadable, of another count, or not there.
    """
    if tally.latency is None:
        only = "latencies only in bins" if tally.bins is not None else "only the extreme latencies"
        raise InvalidMeasurement(f"the driver reports {only}")
    buckets = Histogram.decode(tally.latency).buckets()
    samples = sum(count for _, count in buckets)
    if samples != tally.count:
        raise InvalidMeasurement(
            f"a histogram counts {samples} samples, but {tally.count} requests succeeded"
        )
    cut = () if tally.in_flight is None else Histogram.decode(tally.in_flight).buckets()
    return buckets, tuple(1 - longer for _, longer in product_limit(buckets, cut))


def _keys(kinds: Sequence[Kind]) -> dict[Kind, str]:
    """Short unique slugs of kinds: the workload, with operation, API and driver where needed."""
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


DELAY_US: Final = (38_000, 48_000)
"""How much longer requests take that wait for a delayed acknowledgement: at least 40 ms on Linux
(TCP_DELACK_MIN in include/net/tcp.h), by which Nagle’s algorithm holds a last small segment back.
"""


DELAYED_SHARE: Final = 0.01
"""Share of requests from which such a group is named."""


_AROUND_US: Final = ((24_000, 34_000), (52_000, 62_000))
"""Nearly empty if the group stands alone."""


_ALONE: Final = 4
"""How many times as many requests the group has."""


def delayed_share(tops_us: Sequence[int], reached: Sequence[int]) -> float:
    """The share of requests that took the time of a delayed acknowledgement longer than the fastest
    tenth, if they stand apart from all others; else 0.

    `tops_us` are the tops of a histogram's buckets, `reached` the samples up to each.
    """
    if not reached:
        return 0.0
    fast_us = next(top for top, n in zip(tops_us, reached, strict=True) if 10 * n >= reached[-1])
    counts = [after - before for before, after in pairwise((0, *reached))]

    def between(low_us: int, high_us: int) -> int:
        return sum(
            count
            for top, count in zip(tops_us, counts, strict=True)
            if fast_us + low_us <= top < fast_us + high_us
        )

    delayed = between(*DELAY_US)
    share = delayed / reached[-1]
    alone = all(delayed >= _ALONE * between(*span) for span in _AROUND_US)
    # What takes still longer has another cause, and then the group does not make the tail.
    beyond = sum(
        count for top, count in zip(tops_us, counts, strict=True) if top >= fast_us + DELAY_US[1]
    )
    return share if share >= DELAYED_SHARE and alone and beyond < delayed else 0.0


def tail_cause(row: Row, delayed: float) -> str:
    """What lengthened a row's slowest requests; empty: unknown. `delayed`: of `delayed_share`."""
    quota = next((one for one in row.doubts if one.what == "set by the CPU limit"), None)
    if quota is not None:
        return quota.words
    if delayed:
        return (
            f"{delayed * 100:.0f} % of its requests took 40 ms longer, as with a delayed "
            "acknowledgement (Nagle’s algorithm)"
        )
    if row.limited_by is None:
        return ""
    if row.limited_by == NOTHING_SEEN:
        return "no resource was seen at its limit"
    return f"limited by {row.limited_by}"
