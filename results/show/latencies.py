"""Measured latencies for charts, decoded once: each workload at one worker count.

What cannot be read is a gap with its reason, and leaves the rest intact. The share of requests done
within a latency is of one repeat, by the same product-limit as the percentiles of tables: requests
that were not seen to end count with their age. Over repeats it is the geometric mean of theirs,
never of a mixture of repeats.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.figures.doubt import doubt_words
from weighbridge.results.figures.reading import CLOSE, product_limit
from weighbridge.results.figures.statistics import geometric_mean
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.validity import least_samples
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.numbers import counted, grouped, upper
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Second, StepResult, Tally

PLACE: Final = attrgetter("layout", "api", "workload", "workers", "driver", "layer")
"""What a row of the table and the keys of its steps have in common."""


@dataclass(frozen=True)
class RepeatLatencies:
    """Latencies of one workload in one repeat on one layout. `repeat` counts from 0."""

    repeat: int
    ranked: bool = False
    """Whether it counts in figures: it is valid, and nothing else excludes it."""
    note: str = ""
    """Why it does not count."""
    count: int = 0
    tops_us: tuple[int, ...] = ()
    """The top of each bucket that is not empty, ascending."""
    shares: tuple[float, ...] = ()
    """The share of requests done within each top, from 0 to 1."""
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
    """The repeats of one layout: `known` those with latencies, `ranked` those that count."""

    layout: str
    repeats: tuple[RepeatLatencies, ...]

    @property
    def known(self) -> tuple[RepeatLatencies, ...]:
        return tuple(repeat for repeat in self.repeats if repeat.count)

    @property
    def ranked(self) -> tuple[RepeatLatencies, ...]:
        return tuple(repeat for repeat in self.known if repeat.ranked)

    @property
    def count(self) -> int:
        """The samples of the repeat with the fewest: what holds for it holds for all."""
        return min((repeat.count for repeat in self.ranked), default=0)

    def reaches(self, percent: float) -> bool:
        """Whether every repeat has enough samples for a percentile."""
        return self.count >= least_samples(percent)

    def middle_us(self, percent: float) -> float | None:
        """The geometric mean of the repeats' percentiles; None if one is unknown."""
        latencies = []
        for repeat in self.ranked:
            latency_us = repeat.within_us(percent)
            if latency_us is None:
                return None
            latencies.append(max(1, latency_us))
        return geometric_mean(latencies) if latencies else None

    @property
    def why_not(self) -> str:
        """Why none of it counts in figures, in a few words; empty where some does."""
        if self.ranked:
            return ""
        if self.known:
            return "not ranked"
        return "not known" if any(repeat.gap for repeat in self.repeats) else "not measured"


@dataclass(frozen=True)
class KindLatencies:
    """One workload at one worker count, on every layout in order."""

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
        layouts: dict[tuple[str, str], list[str]] = {}
        for layout in self.layouts:
            for why in dict.fromkeys(repeat.gap for repeat in layout.repeats if repeat.gap):
                numbers = [str(one.repeat + 1) for one in layout.repeats if one.gap == why]
                repeats = f"repeat{'s' * (len(numbers) > 1)} {', '.join(numbers)}"
                layouts.setdefault((repeats, why), []).append(layout.layout)
        return tuple(
            f"no latencies of {self.about} at {self.at} in {repeats} on {', '.join(names)}: {why}"
            for (repeats, why), names in layouts.items()
        )


def gap_words(kinds: Sequence[KindLatencies]) -> list[str]:
    """What is not known, as sentences, including repeats that would not be ranked."""
    gaps = [gap for kind in kinds for gap in kind.gaps]
    words = [f"Not known: {gap}." for gap in gaps[:3]]
    return [*words, f"{len(gaps) - 3} more are not known."] if len(gaps) > 3 else words


def read_latencies(
    cells: Mapping[Kind, Sequence[Row]], names: Mapping[Kind, str], steps: Iterable[StepResult]
) -> tuple[KindLatencies, ...]:
    """The latencies of each workload: `cells` are its rows at one worker count."""
    # A search's own steps have the same place as those of its workload.
    own = [step for step in steps if step.key.rate_per_s is None]
    own.sort(key=lambda step: step.key.repeat)
    repeats = grouped(own, lambda step: PLACE(step.key))
    kinds = []
    for kind, rows in cells.items():
        layouts = [
            LayoutLatencies(
                row.layout, tuple(_repeat(step, row) for step in repeats.get(PLACE(row), ()))
            )
            for row in rows
        ]
        kinds.append(
            KindLatencies(
                kind=kind,
                key=_slug(kind, list(cells)),
                about=names[kind],
                workers=rows[0].workers,
                layouts=tuple(layouts),
            )
        )
    return tuple(kinds)


def _repeat(step: StepResult, row: Row) -> RepeatLatencies:
    measurement, number = step.measurement, step.key.repeat
    if measurement is None:
        return RepeatLatencies(number, gap="; ".join(step.notes))
    tally = next((one for one in measurement.tallies if one.operation == row.operation), None)
    if tally is None or not tally.count:
        return RepeatLatencies(number, gap="nothing succeeded")
    point = next((point for point in row.points if point.repeat == number), None)
    ranked = point is not None and point.ranked and not row.condemned
    notes = step.notes if point is None else point.notes
    curve: list[tuple[int, float]] = []
    gap = ""
    try:
        curve = _curve(tally)
    except InvalidMeasurement as error:
        gap = str(error)
    return RepeatLatencies(
        repeat=number,
        ranked=ranked,
        note="" if ranked else doubt_words(row.condemned) or next(iter(notes), "not ranked"),
        count=tally.count if curve else 0,
        tops_us=tuple(top_us for top_us, _ in curve),
        shares=tuple(1 - longer for _, longer in curve),
        window_s=measurement.window_s,
        seconds=tuple(one for one in measurement.seconds if one.operation == row.operation),
        gap=gap,
    )


def _curve(tally: Tally) -> list[tuple[int, float]]:
    """By latency in us the share that takes longer. Raises InvalidMeasurement if a histogram is
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
    return list(product_limit(buckets, cut))


def _slug(kind: Kind, kinds: Sequence[Kind]) -> str:
    """Short and unique: the workload, with operation, API and driver where they differ."""
    workload, operation, api, driver = kind
    parts = [workload]
    if len({other[1] for other in kinds if other[0] == workload}) > 1:
        parts.append(operation)
    if len({other[2:] for other in kinds}) > 1:
        parts += [api, driver]
    return "-".join(parts)
