"""The tables of a run as data: summary (a line a cell of the study's table), steps (every repeat)
and seconds (the series).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import DataColumn, DataTable, Kind, TableSchema, utc
from weighbridge.results.metric_figure import MetricFigure
from weighbridge.results.metrics import METRICS, Figures, MetricKey, compared
from weighbridge.results.record.measurement import Measurement, Second, Tally
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.suites import Operation, Workload

Line = TypeVar("Line")


@dataclass(frozen=True)
class RowLine:
    """A row of the study's table, the name of its run, and the layout that its own is once more."""

    run: str
    row: Row
    twin_of: str | None = None


@dataclass(frozen=True)
class OfStep:
    """What is of one step of one repeat, and its run."""

    data: RunData
    key: StepKey

    @property
    def run(self) -> str:
        """The run's name."""
        return self.data.manifest.run_id

    @property
    def twin_of(self) -> str | None:
        """The layout that its own is once more."""
        return self.data.plan.twins.get(self.key.layout)


@dataclass(frozen=True)
class StepLine(OfStep):
    """One operation of a step; without a measurement there is no tally, and no point."""

    step: StepResult
    operation: Operation | None
    tally: Tally | None

    @property
    def measurement(self) -> Measurement | None:
        """What the step gave, all operations together."""
        return self.step.measurement

    @property
    def visit(self) -> JudgedStep:
        """What is kept of the step."""
        return self.data.visits[self.key]

    @property
    def point(self) -> Point | None:
        """The operation's figures."""
        return None if self.operation is None else self.visit.points.get(self.operation)


@dataclass(frozen=True)
class SecondLine(OfStep):
    """One second of one operation of a step."""

    second: Second


KEY: Final[tuple[DataColumn[OfStep], ...]] = (
    DataColumn("run", "text", "Name of the run.", lambda one: one.run),
    DataColumn("layout", "text", "What was weighed.", lambda one: one.key.layout),
    DataColumn(
        "twin_of",
        "text",
        "The layout that this one is once more, to know this machine's noise; else unknown.",
        lambda one: one.twin_of,
    ),
    DataColumn("api", "text", "The interface that requests used.", lambda one: one.key.api),
    DataColumn("driver", "text", "What made the load.", lambda one: one.key.driver),
    DataColumn(
        "layer",
        "text",
        "The layer that was asked below or beside the gateway; unknown for the gateway.",
        lambda one: one.key.layer,
    ),
    DataColumn(
        "workload", "text", "Name of the workload in the suite.", lambda one: one.key.workload
    ),
    DataColumn(
        "workers",
        "whole",
        "Clients that each kept one request outstanding.",
        lambda one: one.key.workers,
    ),
    DataColumn(
        "repeat", "whole", "Which visit of the step, from 1.", lambda one: one.key.repeat + 1
    ),
)
"""What tells a step from every other of all runs."""


def _row_column(name: str, kind: str, about: str, unit: str = "") -> DataColumn[RowLine]:
    return DataColumn(name, kind, about, lambda one: getattr(one.row, name), unit)  # type: ignore[arg-type]  # literals, just below


def _of_row(one: RowLine) -> Row:
    return one.row


def _of_point(one: StepLine) -> Point | None:
    return one.point


def _values(of: Callable[[Line], Figures | None]) -> Iterator[DataColumn[Line]]:
    """A column for each metric."""
    for metric in METRICS.values():
        kind: Kind = "whole" if metric.whole else "number"
        yield DataColumn(
            metric.column,
            kind,
            metric.about,
            _reading(of, metric.key, lambda one: one.value),
            metric.unit,
        )


def _bins(of: Callable[[Line], Figures | None]) -> Iterator[DataColumn[Line]]:
    """Both ends of what a metric lies in, where the driver counts in bins."""
    for metric in METRICS.values():
        if metric.binned:
            low, high = metric.bin_columns
            about = (
                f"end of the interval that {metric.name} lies in, where the driver counts in bins."
            )
            read = _reading(
                of, metric.key, lambda one: None if one.within is None else one.within.low_ms
            )
            yield DataColumn(low, "number", f"Lower {about}", read, metric.unit)
            read = _reading(
                of, metric.key, lambda one: None if one.within is None else one.within.high_ms
            )
            yield DataColumn(high, "number", f"Upper {about}", read, metric.unit)


def _intervals(of: Callable[[Line], Figures | None]) -> Iterator[DataColumn[Line]]:
    """Both ends of the 95 % interval of a metric that is compared."""
    for metric in compared():
        low, high = metric.spread_columns
        about = (
            f"end of the 95 % interval of {metric.name} over the repeats; unknown of one repeat."
        )
        yield DataColumn(
            low,
            "number",
            f"Lower {about}",
            _reading(of, metric.key, lambda one: one.low),
            metric.unit,
        )
        yield DataColumn(
            high,
            "number",
            f"Upper {about}",
            _reading(of, metric.key, lambda one: one.high),
            metric.unit,
        )


def _reading(
    of: Callable[[Line], Figures | None],
    metric: MetricKey,
    read: Callable[[MetricFigure], float | None],
) -> Callable[[Line], float | None]:
    def reading(line: Line) -> float | None:
        found = of(line)
        return None if found is None else read(found.figure(metric))

    return reading


SUMMARY: Final[TableSchema[RowLine]] = TableSchema(
    "summary",
    "A line for each layout, kind of requests and worker count: geometric means of the figures of "
    "the repeats that are valid.",
    (
        DataColumn("run", "text", "Name of the run.", lambda one: one.run),
        _row_column("layout", "text", "What was weighed."),
        DataColumn(
            "twin_of",
            "text",
            "The layout that this one is once more, to know this machine's noise; else unknown.",
            lambda one: one.twin_of,
        ),
        _row_column("api", "text", "The interface that requests used."),
        _row_column("driver", "text", "What made the load."),
        _row_column(
            "layer",
            "text",
            "The layer that was asked below or beside the gateway; unknown for the gateway.",
        ),
        _row_column("workload", "text", "Name of the workload in the suite."),
        _row_column("operation", "text", "What was done to objects."),
        _row_column(
            "object_size_bytes",
            "number",
            "Size of an object, or the expected mean of its distribution.",
            "B",
        ),
        _row_column("workers", "whole", "Clients that each kept one request outstanding."),
        _row_column("repeats", "whole", "How many repeats the figures are made of."),
        *_values(_of_row),
        *_intervals(_of_row),
        *_bins(_of_row),
        _row_column("saturated", "text", "The resource that may have been the limit, in words."),
        _row_column(
            "valid",
            "truth",
            "Whether failures, the driver's own load and Little's law were within bounds.",
        ),
        _row_column(
            "steady",
            "truth",
            "Whether it did the same from the first second to the last; unknown where it cannot "
            "be told.",
        ),
        _row_column(
            "ranked",
            "truth",
            "Whether anything may be concluded: valid, not unsteady, and in no grave doubt.",
        ),
        DataColumn(
            "lower_bounds",
            "texts",
            "Metrics of which the figure is a lower bound: requests that were not seen to end "
            "took as long or longer.",
            lambda one: one.row.lower_bounds,
        ),
        _row_column(
            "provisional",
            "truth",
            "Whether it is ranked, but something is in doubt: nothing may be claimed by it.",
        ),
        DataColumn(
            "doubts",
            "texts",
            "What is in doubt, its grade first: grave (not comparable) or mild (provisional); "
            "with the metrics that it touches.",
            lambda one: tuple(doubt_text(doubt) for doubt in one.row.doubts),
        ),
        _row_column("notes", "texts", "What a reader must know."),
    ),
)


def _tally_ms(total_us: int | None) -> float | None:
    return None if total_us is None else total_us / 1000


def _errors(line: StepLine) -> tuple[str, ...]:
    return (
        tuple(f"{name}: {count}" for name, count in line.tally.errors.items())
        if line.tally is not None
        else ()
    )


def _driver_cpu(line: StepLine) -> float | None:
    measured = line.measurement
    return measured.load.share if measured is not None and measured.load is not None else None


STEPS: Final[TableSchema[StepLine]] = TableSchema(
    "steps",
    "A line for each step, repeat and operation, of a step that was measured again the last; also "
    "of steps that gave nothing.",
    (
        *KEY,
        DataColumn("operation", "text", "What was done to objects.", lambda one: one.operation),
        DataColumn(
            "visit",
            "whole",
            "Which step of the run it was, from 1, in the order in which they were visited.",
            lambda one: one.step.order + 1,
        ),
        DataColumn(
            "measured",
            "truth",
            "Whether the step gave a measurement; where not, notes say why.",
            lambda one: one.measurement is not None,
        ),
        DataColumn(
            "valid",
            "truth",
            "Whether failures, the driver's load and Little's law were within bounds.",
            lambda one: one.visit.valid,
        ),
        DataColumn(
            "steady",
            "truth",
            "Whether it did the same from the first second to the last; unknown where it cannot "
            "be told.",
            lambda one: one.visit.steady,
        ),
        DataColumn(
            "ranked",
            "truth",
            "Whether anything may be concluded: valid and not unsteady.",
            lambda one: one.visit.ranked,
        ),
        DataColumn(
            "started_at",
            "time",
            "Start of the window, UTC.",
            lambda one: utc(one.measurement.started_at) if one.measurement else None,
        ),
        DataColumn(
            "window_s",
            "number",
            "Length of the window.",
            lambda one: one.measurement.window_s if one.measurement else None,
            "s",
        ),
        DataColumn(
            "warmup_s",
            "number",
            "Length of the warm-up before it.",
            lambda one: one.measurement.warmup_s if one.measurement else None,
            "s",
        ),
        DataColumn(
            "tool",
            "text",
            "The driver's own name for what made the requests.",
            lambda one: one.measurement.driver if one.measurement else None,
        ),
        *_values(_of_point),
        *_bins(_of_point),
        DataColumn(
            "min_ms",
            "number",
            "The fastest operation that succeeded.",
            lambda one: _tally_ms(one.tally.min_us) if one.tally else None,
            "ms",
        ),
        DataColumn(
            "lower_bounds",
            "texts",
            "Metrics of which the figure is a lower bound: requests that were not seen to end "
            "took as long or longer.",
            lambda one: one.point.lower_bounds if one.point is not None else (),
        ),
        DataColumn(
            "bytes",
            "whole",
            "Bytes of their complete bodies.",
            lambda one: one.tally.bytes if one.tally else None,
            "B",
        ),
        DataColumn(
            "error_classes",
            "texts",
            "Operations that failed by class, each `class: count`.",
            _errors,
        ),
        DataColumn(
            "driver_cpu_share",
            "number",
            "Share of the CPU it may use that the driver used, of 1.",
            _driver_cpu,
        ),
        DataColumn(
            "notes",
            "texts",
            "Why it is not valid, and what else a reader must know.",
            lambda one: one.visit.notes,
        ),
        DataColumn(
            "remarks",
            "texts",
            "What the driver said beside its figures.",
            lambda one: one.measurement.notes if one.measurement else (),
        ),
    ),
)

SECONDS: Final[TableSchema[SecondLine]] = TableSchema(
    "seconds",
    "A line for each second inside the window, of each operation of each step that tells its "
    "seconds.",
    (
        *KEY,
        DataColumn(
            "operation", "text", "What was done to objects.", lambda one: one.second.operation
        ),
        DataColumn(
            "second",
            "whole",
            "Seconds since the start of the window.",
            lambda one: one.second.second,
            "s",
        ),
        DataColumn(
            "operations", "whole", "Operations that succeeded.", lambda one: one.second.count
        ),
        DataColumn(
            "bytes", "whole", "Bytes of their complete bodies.", lambda one: one.second.bytes, "B"
        ),
        DataColumn("errors", "whole", "Operations that failed.", lambda one: one.second.errors),
        DataColumn(
            "mean_ms",
            "number",
            "Mean latency; unknown where nothing succeeded.",
            lambda one: one.second.sum_us / one.second.count / 1000 if one.second.count else None,
            "ms",
        ),
        DataColumn(
            "max_ms",
            "number",
            "Highest latency; unknown where nothing succeeded.",
            lambda one: one.second.max_us / 1000 if one.second.count else None,
            "ms",
        ),
    ),
)


def summary_table(runs: Sequence[RunData]) -> DataTable:
    """The study's tables of these runs, gateways first, then layers."""
    return SUMMARY.fill(
        line
        for data in runs
        for line in _row_lines((*data.rows, *data.layers), data.manifest.run_id, data.plan.twins)
    )


def rows_table(
    rows: Iterable[Row], run: str, twins: Mapping[str, str] = MappingProxyType({})
) -> DataTable:
    """The same table of these rows alone; `twins` are the layouts that are another one once more,
    and which.
    """
    return SUMMARY.fill(_row_lines(rows, run, twins))


def _row_lines(rows: Iterable[Row], run: str, twins: Mapping[str, str]) -> Iterator[RowLine]:
    return (RowLine(run, row, twins.get(row.layout)) for row in rows)


def steps_table(runs: Sequence[RunData]) -> DataTable:
    """Every repeat of every step of these runs, in the order in which they were first written
    down.
    """
    return STEPS.fill(line for data in runs for line in _step_lines(data))


def seconds_table(runs: Sequence[RunData]) -> DataTable:
    """The series of these runs."""
    return SECONDS.fill(
        SecondLine(data, key, second)
        for data in runs
        for key, step in data.steps.items()
        if step.measurement is not None
        for second in step.measurement.seconds
    )


def _step_lines(data: RunData) -> Iterator[StepLine]:
    operations = {workload.name: tuple(workload.operations) for workload in _workloads(data)}
    for key, step in data.steps.items():
        if step.measurement is None:
            # A line for each operation that was asked for, so that none is missing where lines are
            # counted by operation.
            for operation in operations.get(key.workload, (None,)):
                yield StepLine(data, key, step, operation, None)
            continue
        for tally in step.measurement.tallies:
            yield StepLine(data, key, step, tally.operation, tally)


def _workloads(data: RunData) -> Iterator[Workload]:
    for layout in data.plan.layouts:
        for one in data.plan.passes_of(layout.name):
            yield from one.workloads
