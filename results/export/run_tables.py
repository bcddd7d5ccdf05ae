"""The tables of a run: summary (a line per cell) and steps (every repeat)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from weighbridge.results.analysis.endpoint_use import endpoint_text
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.doubt import doubt_text
from weighbridge.results.export.data_table import (
    DataColumn,
    DataTable,
    Kind,
    TableSchema,
    attribute,
    utc,
)
from weighbridge.results.export.step_columns import (
    KEY,
    WORKERS,
    OfStep,
    bin_columns,
    interval_columns,
    place_columns,
    value_columns,
)
from weighbridge.results.record.measurement import EndpointTally, Measurement, Tally
from weighbridge.results.record.step import StepResult
from weighbridge.suites import (
    DEFAULT_DRIVER,
    ENCRYPTION,
    SIGNING,
    Factor,
    Operation,
    Workload,
    parts_of,
)


@dataclass(frozen=True)
class RowLine:
    """A row of the study's table, its run, and the layout that its own is an A/A control of."""

    run: str
    row: Row
    twin_of: str | None = None


@dataclass(frozen=True)
class StepLine(OfStep):
    """One operation of a step; without a measurement it has no tally and no point."""

    step: StepResult
    operation: Operation | None
    tally: Tally | None

    @property
    def measurement(self) -> Measurement | None:
        return self.step.measurement

    @property
    def visit(self) -> JudgedStep:
        return self.data.visits[self.key]

    @property
    def point(self) -> Point | None:
        return None if self.operation is None else self.visit.points.get(self.operation)


def _of_row(one: RowLine) -> Row:
    return one.row


def _power_words(one: RowLine) -> str | None:
    return None if one.row.power is None else one.row.power.words


def _of_point(one: StepLine) -> Point | None:
    return one.point


def _row_column(name: str, kind: Kind, about: str, unit: str = "") -> DataColumn[RowLine]:
    return attribute(name, kind, about, f"row.{name}", unit)


SUMMARY: Final[TableSchema[RowLine]] = TableSchema(
    "summary",
    "A line for each layout, kind of requests and worker count: geometric means of the valid "
    "repeats.",
    (
        *place_columns("row"),
        _row_column("operation", "text", "The operation on objects."),
        _row_column(
            "object_size_bytes",
            "number",
            "Size of an object, or of the part that a request is about, or the expected mean.",
            "B",
        ),
        _row_column("sent", "text", "What the engine sends, in the terms of HTTP."),
        _row_column("workers", "integer", WORKERS),
        _row_column("repeats", "integer", "Number of repeats that count."),
        *value_columns(_of_row),
        *interval_columns(_of_row),
        *bin_columns(_of_row),
        _row_column(
            "saturated", "text", "The resource that may have been the bottleneck, in words."
        ),
        _row_column(
            "limited_by",
            "text",
            "What limited it, by kind: the gateway's or the stores' CPU, disks, the network, the "
            "load generator, or nothing seen; empty if unknown.",
        ),
        _row_column(
            "valid",
            "boolean",
            "Whether failures, the driver's own load and Little's law were within bounds.",
        ),
        _row_column(
            "steady",
            "boolean",
            "Whether it kept its level over the window; unknown where that cannot be determined.",
        ),
        _row_column(
            "ranked",
            "boolean",
            "Whether it allows conclusions: valid, not unsteady, and in no grave doubt.",
        ),
        attribute(
            "lower_bounds",
            "texts",
            "Metrics whose figure is a lower bound: requests that had not ended took as long or "
            "longer.",
            "row.lower_bounds",
        ),
        _row_column(
            "provisional",
            "boolean",
            "Whether it is ranked, but in doubt: it allows no claim.",
        ),
        DataColumn(
            "doubts",
            "texts",
            "Doubts, each with its grade, grave (not comparable) or mild (provisional), and the "
            "metrics that it applies to.",
            lambda one: tuple(doubt_text(doubt) for doubt in one.row.doubts),
        ),
        DataColumn(
            "power_cuts",
            "text",
            "What power cuts did to objects of this layout, and what it has on disk when it "
            "acknowledges a write, for operations that write; unknown where no layout was tried "
            "and none acknowledges what is not on disk.",
            _power_words,
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


def _endpoints(line: StepLine) -> tuple[EndpointTally, ...]:
    return line.measurement.endpoints if line.measurement is not None else ()


def _driver_cpu(line: StepLine) -> float | None:
    measured = line.measurement
    return measured.load.share if measured is not None and measured.load is not None else None


def _factor(factor: Factor, line: StepLine) -> str | None:
    suite = line.data.plan.suite
    named = [one for one in suite.workloads if one.name == line.key.workload]
    # Other drivers decide it themselves.
    if line.key.api != "s3" or line.key.driver != DEFAULT_DRIVER or not named:
        return None
    return suite.factor_label(factor, named[0])


STEPS: Final[TableSchema[StepLine]] = TableSchema(
    "steps",
    "A line for each step, repeat and operation, with the last result of a step that was repeated; "
    "also for steps without a measurement.",
    (
        *KEY,
        attribute("operation", "text", "The operation on objects."),
        DataColumn(
            "visit",
            "integer",
            "Which step of the run it was, from 1, in order of time.",
            lambda one: one.step.order + 1,
        ),
        DataColumn(
            "measured",
            "boolean",
            "Whether the step has a measurement; if not, notes say why.",
            lambda one: one.measurement is not None,
        ),
        attribute(
            "valid",
            "boolean",
            "Whether failures, the driver's load and Little's law were within bounds.",
            "visit.valid",
        ),
        attribute(
            "steady",
            "boolean",
            "Whether it kept its level over the window; unknown where that cannot be determined.",
            "visit.steady",
        ),
        attribute(
            "ranked",
            "boolean",
            "Whether it allows conclusions by itself: valid and not unsteady.",
            "visit.ranked",
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
            "The driver's name for the tool that made the requests.",
            lambda one: one.measurement.driver if one.measurement else None,
        ),
        *value_columns(_of_point),
        *bin_columns(_of_point),
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
            "Metrics whose figure is a lower bound: requests that had not ended took as long or "
            "longer.",
            lambda one: one.point.lower_bounds if one.point is not None else (),
        ),
        DataColumn(
            "bytes",
            "integer",
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
            "connections",
            "integer",
            "Connections that were made inside the window, for all operations of the step; unknown "
            "if the driver does not count them.",
            lambda one: one.measurement.connections if one.measurement else None,
        ),
        DataColumn(
            "endpoints",
            "texts",
            "Each of several endpoints, for all requests of the step: those that succeeded, its "
            "p90, failures by class, and whether it was left out.",
            lambda one: tuple(endpoint_text(each) for each in _endpoints(one)),
        ),
        DataColumn(
            "endpoint_imbalance",
            "number",
            "How many times the mean of all endpoints the busiest one served; unknown for one.",
            lambda one: one.measurement.imbalance if one.measurement else None,
        ),
        DataColumn(
            "driver_cpu_share",
            "number",
            "Share of its CPU limit that the driver used, from 0 to 1.",
            _driver_cpu,
        ),
        DataColumn(
            "driver_cpu_us_per_op",
            "number",
            "CPU time of the driver for a successful operation of any kind; unknown if the driver "
            "does not measure it.",
            lambda one: one.measurement.driver_cpu_us_per_op if one.measurement else None,
            "us",
        ),
        DataColumn(
            "signing",
            "text",
            "How S3 requests were signed; empty for other APIs, and for drivers that decide it.",
            partial(_factor, SIGNING),
        ),
        DataColumn(
            "encryption",
            "text",
            "How stores were asked to encrypt S3 objects; empty as for `signing`.",
            partial(_factor, ENCRYPTION),
        ),
        attribute(
            "notes",
            "texts",
            "Why it is not valid, and what else a reader must know.",
            "visit.notes",
        ),
        DataColumn(
            "remarks",
            "texts",
            "Messages of the driver.",
            lambda one: one.measurement.notes if one.measurement else (),
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
    rows: Iterable[Row], run: str, controls: Mapping[str, str] = MappingProxyType({})
) -> DataTable:
    """The same table of these rows; `controls`: A/A controls with the layouts that they repeat."""
    return SUMMARY.fill(_row_lines(rows, run, controls))


def _row_lines(rows: Iterable[Row], run: str, controls: Mapping[str, str]) -> Iterator[RowLine]:
    return (RowLine(run, row, controls.get(row.layout)) for row in rows)


def steps_table(runs: Sequence[RunData]) -> DataTable:
    """Every repeat of every step of these runs, in the order in which they were first recorded."""
    return STEPS.fill(line for data in runs for line in _step_lines(data))


def _step_lines(data: RunData) -> Iterator[StepLine]:
    operations = {workload.name: parts_of(workload.operations) for workload in _workloads(data)}
    for key, step in data.steps.items():
        if step.measurement is None:
            # A line for each planned operation, so that counts by operation are complete.
            for operation in operations.get(key.workload, (None,)):
                yield StepLine(data, key, step, operation, None)
            continue
        for tally in step.measurement.tallies:
            yield StepLine(data, key, step, tally.operation, tally)


def _workloads(data: RunData) -> Iterator[Workload]:
    for layout in data.plan.layouts:
        for one in data.plan.passes_of(layout.name):
            yield from one.workloads
