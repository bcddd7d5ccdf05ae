"""The study's table: throughput, percentiles and errors by layout, API, workload, operation and worker count.

Over repeats: throughput, bandwidth and percentiles are the median of the repeats' own figures (percentiles are never
averaged and never taken of a mixture of repeats); max is the largest; mean is the total of latencies over the total of
samples; samples are a total. Only valid repeats go in, and all of them; where none is valid, those that there are go in
and the row says `valid = no`. Errors alone are of every repeat: none is hidden by leaving its repeat out. What is
unknown is None, an empty cell, never a number. What the hosts used is of whole steps: of a step with several operations
each has the same figures. Of a driver that tells latencies in bins each percentile and the max is the interval that it lies
in, in fields and columns of their own; the figure beside it is then None.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from statistics import median
from types import MappingProxyType
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt

from ground.record import Record
from results.daemons import figure_words
from results.histogram import Histogram
from results.interval import Interval, highest, middle, percentile
from results.measurement import Measurement, Tally
from results.resolved import ResolvedPlan
from results.step import StepKey, StepResult
from results.use import Resource, StepUse, beside_words, limit_words, over_repeats, queue_words
from results.validity import enough_samples, samples_needed
from suites import Api, DriverName, Layer, Operation

COLUMNS: Final = (
    "layout",
    "api",
    "driver",
    "workload",
    "operation",
    "object_size_bytes",
    "workers",
    "repeats",
    "throughput_ops_s",
    "bandwidth_mb_s",
    "p50_ms",
    "p90_ms",
    "p99_ms",
    "max_ms",
    "mean_ms",
    "p50_low_ms",
    "p50_high_ms",
    "p90_low_ms",
    "p90_high_ms",
    "p99_low_ms",
    "p99_high_ms",
    "max_low_ms",
    "max_high_ms",
    "samples",
    "errors",
    "gateway_cpu_s_per_1000_ops",
    "storage_cpu_s_per_1000_ops",
    "saturated",
    "valid",
    "notes",
)
"""Columns of `derived/summary.csv`, in order. Those with low and high are the ends of intervals; the last bin has no high one."""

INTERVALS: Final = {"p50_in": "p50", "p90_in": "p90", "p99_in": "p99", "max_in": "max"}
"""Fields of intervals, and what their columns begin with."""

WITH_BODIES: Final = ("read", "write")


class Point(Record):
    """One operation in one repeat of one step. Bandwidth is in MB/s of 10^6 bytes, of complete bodies of reads and writes."""

    repeat: NonNegativeInt
    valid: bool
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What the driver said beside its figures: never why a repeat is not valid."""
    throughput_ops_s: NonNegativeFloat
    bandwidth_mb_s: NonNegativeFloat | None = None
    p50_ms: NonNegativeFloat | None = None
    p90_ms: NonNegativeFloat | None = None
    p99_ms: NonNegativeFloat | None = None
    max_ms: NonNegativeFloat | None = None
    p50_in: Interval | None = None
    p90_in: Interval | None = None
    p99_in: Interval | None = None
    max_in: Interval | None = None
    total_ms: NonNegativeFloat | None
    """Sum of all latencies; None where the driver tells none."""
    samples: NonNegativeInt
    errors: NonNegativeInt
    gateway_cpu_s_per_1000_ops: NonNegativeFloat | None = None
    storage_cpu_s_per_1000_ops: NonNegativeFloat | None = None
    """CPU seconds of all hosts of the tier by all operations of the step that succeeded, whatever their kind."""


class Row(Record):
    """One line of the table; `points` are the repeats it was made of and those that were left out as not valid."""

    layout: str
    api: Api
    driver: DriverName = "locust"
    layer: Layer | None = None
    """None: the gateway as its clients find it."""
    workload: str
    operation: Operation
    object_size_bytes: NonNegativeFloat | None
    """The size of an object, or the expected mean of its distribution."""
    workers: int
    repeats: NonNegativeInt
    """How many repeats the figures are made of."""
    throughput_ops_s: NonNegativeFloat | None = None
    bandwidth_mb_s: NonNegativeFloat | None = None
    p50_ms: NonNegativeFloat | None = None
    p90_ms: NonNegativeFloat | None = None
    p99_ms: NonNegativeFloat | None = None
    max_ms: NonNegativeFloat | None = None
    p50_in: Interval | None = None
    p90_in: Interval | None = None
    p99_in: Interval | None = None
    max_in: Interval | None = None
    """Where the driver tells latencies in bins: what each is known to lie in."""
    mean_ms: NonNegativeFloat | None = None
    samples: NonNegativeInt | None = None
    errors: NonNegativeInt | None = None
    gateway_cpu_s_per_1000_ops: NonNegativeFloat | None = None
    storage_cpu_s_per_1000_ops: NonNegativeFloat | None = None
    resources: tuple[Resource, ...] = ()
    """Medians over the repeats; empty where no telemetry was recorded."""
    aside: str = ""
    """Where requests waited in a queue, and that much else ran on the hosts' machine, in words."""
    told: str = ""
    """What the gateway's daemons told of themselves, in words."""
    valid: bool
    notes: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()

    @property
    def saturated(self) -> str | None:
        """What was the limit, in words; None where nothing is known."""
        words = limit_words(self.resources)
        return f"{words}; {self.aside}" if words and self.aside else words

    @property
    def used(self) -> tuple[Point, ...]:
        """The repeats that the figures are made of."""
        return tuple(point for point in self.points if point.valid) or self.points


def summarize(
    plan: ResolvedPlan, steps: Iterable[StepResult], uses: Mapping[StepKey, StepUse] = MappingProxyType({})
) -> tuple[Row, ...]:
    """The table of a run: a row for everything planned, measured or not, in the order of the plan; without its layers.

    `uses` is what the hosts used in each step, of those that have telemetry. Of a step that was measured more than once
    the last result counts. Raises InvalidMeasurement on a histogram that cannot be read.
    """
    return _rows(plan, steps, uses, layers=False)


def summarize_layers(
    plan: ResolvedPlan, steps: Iterable[StepResult], uses: Mapping[StepKey, StepUse] = MappingProxyType({})
) -> tuple[Row, ...]:
    """The same of what was measured below and beside the gateways."""
    return _rows(plan, steps, uses, layers=True)


def _rows(plan: ResolvedPlan, steps: Iterable[StepResult], uses: Mapping[StepKey, StepUse], *, layers: bool) -> tuple[Row, ...]:
    latest = {step.key: step for step in steps}
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    ways: dict[tuple[Api, DriverName, Layer | None], int] = {}
    cells = []
    for standing, layout in enumerate(plan.layouts):
        for one in plan.passes_of(layout.name):
            if (one.layer is not None) != layers:
                continue
            way = ways.setdefault((one.api, one.driver, one.layer), len(ways))
            for workload in one.workloads:
                for number, operation in enumerate(workload.operations):
                    for workers in workload.workers:
                        key = StepKey(
                            layout=layout.name,
                            api=one.api,
                            workload=workload.name,
                            workers=workers,
                            repeat=0,
                            driver=one.driver,
                            layer=one.layer,
                        )
                        cells.append(((places[workload.name], number, way, workers, standing), key, operation))
    return tuple(_row(plan, key, operation, latest, uses) for _, key, operation in sorted(cells, key=itemgetter(0)))


def _row(
    plan: ResolvedPlan,
    first: StepKey,
    operation: Operation,
    latest: dict[StepKey, StepResult],
    uses: Mapping[StepKey, StepUse],
) -> Row:
    (size,) = (one.objects.mean_bytes for one in plan.suite.workloads if one.name == first.workload)
    keys = [first.model_copy(update={"repeat": repeat}) for repeat in range(plan.suite.repeats)]
    found = [latest[key] for key in keys if key in latest]
    points = tuple(point for step in found for point in _points(step, operation, uses.get(step.key)))
    used = tuple(point for point in points if point.valid) or points
    notes = (*_missing(found, plan.suite.repeats), *_notes(found))
    head = {
        "layout": first.layout,
        "api": first.api,
        "driver": first.driver,
        "layer": first.layer,
        "workload": first.workload,
        "operation": operation,
        "object_size_bytes": size,
        "workers": first.workers,
        "repeats": len(used),
        "notes": notes,
        "points": points,
    }
    if not used:
        return Row(**head, valid=False)
    samples = sum(point.samples for point in used)
    known = [uses[key] for key in keys if key in uses and key.repeat in {point.repeat for point in used}]
    return Row(
        **head,
        throughput_ops_s=median(point.throughput_ops_s for point in used),
        bandwidth_mb_s=_median([point.bandwidth_mb_s for point in used]),
        p50_ms=_median([point.p50_ms for point in used]),
        p90_ms=_median([point.p90_ms for point in used]),
        p99_ms=_median([point.p99_ms for point in used]),
        max_ms=max((point.max_ms for point in used if point.max_ms is not None), default=None),
        p50_in=_over([point.p50_in for point in used], middle),
        p90_in=_over([point.p90_in for point in used], middle),
        p99_in=_over([point.p99_in for point in used], middle),
        max_in=_over([point.max_in for point in used if point.samples], highest),
        mean_ms=_mean_ms(used, samples),
        samples=samples,
        errors=sum(point.errors for point in points),
        gateway_cpu_s_per_1000_ops=_median([point.gateway_cpu_s_per_1000_ops for point in used]),
        storage_cpu_s_per_1000_ops=_median([point.storage_cpu_s_per_1000_ops for point in used]),
        resources=over_repeats(known),
        aside="; ".join(words for words in (queue_words(known), beside_words(known)) if words),
        told=figure_words([use.told for use in known]),
        valid=any(point.valid for point in points),
    )


def _missing(found: Sequence[StepResult], repeats: int) -> Iterator[str]:
    """What is said first of a row: that repeats were not measured or were left out."""
    if not found:
        yield "not measured"
        return
    if len(found) < repeats:
        yield f"{len(found)} of {repeats} repeats measured"
    left_out = sum(not step.valid for step in found)
    if left_out:
        yield "not valid" if left_out == len(found) else f"{left_out} of {len(found)} repeats left out as not valid"


def _notes(found: Sequence[StepResult]) -> Iterator[str]:
    """What the repeats say, each thing once, with the repeats that say it where not all do."""
    sayers: dict[str, list[str]] = {}
    for step in found:
        own = step.measurement.notes if step.measurement is not None else ()
        for note in dict.fromkeys((*step.notes, *own)):
            sayers.setdefault(note, []).append(str(step.key.repeat + 1))
    for note, repeats in sayers.items():
        label = "" if len(repeats) == len(found) else f"repeat{'s' * (len(repeats) > 1)} {', '.join(repeats)}: "
        yield f"{label}{note}"


def _mean_ms(used: Sequence[Point], samples: int) -> float | None:
    totals = [point.total_ms for point in used if point.total_ms is not None]
    return sum(totals) / samples if samples and len(totals) == len(used) else None


def _median(values: Sequence[float | None]) -> float | None:
    """The median, or None where one of the values is unknown: that of the others would be of another set of repeats."""
    known = [value for value in values if value is not None]
    return median(known) if known and len(known) == len(values) else None


def _over(values: Sequence[Interval | None], whole: Callable[[Sequence[Interval]], Interval]) -> Interval | None:
    """The interval over repeats, or None where one of theirs is unknown."""
    known = [value for value in values if value is not None]
    return whole(known) if known and len(known) == len(values) else None


def _points(step: StepResult, operation: Operation, use: StepUse | None) -> Iterator[Point]:
    if step.measurement is None:
        return
    for tally in step.measurement.tallies:
        if tally.operation == operation:
            done = sum(one.count for one in step.measurement.tallies)
            yield _point(step, step.measurement, tally, use or StepUse(), done)


def _point(step: StepResult, measurement: Measurement, tally: Tally, use: StepUse, done: int) -> Point:
    percentiles, intervals = _percentiles_ms(tally), _percentiles_in(tally)
    return Point(
        repeat=step.key.repeat,
        valid=step.valid,
        notes=step.notes,
        remarks=measurement.notes,
        throughput_ops_s=tally.count / measurement.window_s,
        bandwidth_mb_s=tally.bytes / 1e6 / measurement.window_s if tally.operation in WITH_BODIES else None,
        p50_ms=percentiles[50],
        p90_ms=percentiles[90],
        p99_ms=percentiles[99],
        max_ms=None if tally.max_us is None else tally.max_us / 1000,
        p50_in=intervals[50],
        p90_in=intervals[90],
        p99_in=intervals[99],
        max_in=percentile(tally.bins, 100) if tally.max_us is None and tally.bins is not None else None,
        total_ms=None if tally.sum_us is None else tally.sum_us / 1000,
        samples=tally.count,
        errors=tally.failed,
        gateway_cpu_s_per_1000_ops=_per_1000(use.gateway_cpu_s, done),
        storage_cpu_s_per_1000_ops=_per_1000(use.storage_cpu_s, done),
    )


def _per_1000(value: float | None, done: int) -> float | None:
    return value / done * 1000 if value is not None and done else None


def _percentiles_ms(tally: Tally) -> dict[int, float | None]:
    """p50, p90 and p99 in ms, None where too few samples lie beyond. A bucket's top is never above the exact max."""
    wanted: dict[int, float | None] = dict.fromkeys((50, 90, 99))
    if tally.latency is None or tally.max_us is None or tally.count < samples_needed(50):
        return wanted
    histogram = Histogram.decode(tally.latency)
    for percent in wanted:
        if enough_samples(histogram.count, percent):
            wanted[percent] = min(histogram.percentile_us(percent), tally.max_us) / 1000
    return wanted


def _percentiles_in(tally: Tally) -> dict[int, Interval | None]:
    """The same of a tally with bins and without a histogram: what each lies in."""
    wanted: dict[int, Interval | None] = dict.fromkeys((50, 90, 99))
    if tally.latency is None and tally.bins is not None:
        for percent in wanted:
            if enough_samples(tally.bins.count, percent):
                wanted[percent] = percentile(tally.bins, percent)
    return wanted


def summary_csv(rows: Iterable[Row], columns: Sequence[str] = COLUMNS) -> str:
    """The table as CSV with these columns: three decimals, empty where unknown, `yes` or `no` for valid, notes joined by `; `."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        ends = interval_ends(row)
        writer.writerow([csv_cell(ends[column] if column in ends else getattr(row, column)) for column in columns])
    return out.getvalue()


def interval_ends(row: Row) -> dict[str, float | None]:
    """The ends of a row's intervals by column: `p90_low_ms`, `p90_high_ms` ...; both None where a latency is not an interval."""
    found: dict[str, float | None] = {}
    for field, name in INTERVALS.items():
        within: Interval | None = getattr(row, field)
        found[f"{name}_low_ms"] = None if within is None else within.low_ms
        found[f"{name}_high_ms"] = None if within is None else within.high_ms
    return found


def csv_cell(value: object) -> str:
    """A value as a cell of a CSV file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return "; ".join(str(part) for part in value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else f"{value:.3f}"
    return str(value)
