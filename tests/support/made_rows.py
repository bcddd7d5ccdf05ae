"""Made-up rows and points, by column names: `p90_ms=12.0`; `p90_in` is the bin of a metric."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import BaseModel

from weighbridge.results.figures.metrics import METRICS, Figures
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.summary import Point, Row, rows_of, visit, workloads_of
from weighbridge.results.figures.use import StepUse
from weighbridge.results.run.resolved import ResolvedPlan
from weighbridge.results.run.step import Measurement, StepKey, StepResult
from weighbridge.results.show.tables import rows_table
from weighbridge.suites import DEFAULT_DRIVER, Suite, Workload

Of = TypeVar("Of", bound=Figures)
Kept = TypeVar("Kept")
READS = {
    "api": "swift",
    "workload": "small-read",
    "operation": "read",
    "object_size_bytes": 1e6,
    "workers": 8,
    "repeats": 1,
}


def made_point(**given: Any) -> Point:
    """A repeat; by default it has one sample and no errors."""
    return Point.model_validate(_by_metric({"samples": 1, "errors": 0, **given}))


def made_points(throughputs_ops_s: Iterable[float], **each: Any) -> tuple[Point, ...]:
    return tuple(
        made_point(**{"repeat": repeat, "valid": True, "throughput_ops_s": rate, **each})
        for repeat, rate in enumerate(throughputs_ops_s)
    )


def made_row(**given: Any) -> Row:
    """A row, by default of 1 MB reads by 8 workers.

    `at_least`: keys of lower bounds, `intervals`: 95 % intervals by key.
    """
    return Row.model_validate({**READS, **_by_metric(given)})


def made_workload(size: float = 1_000_000, **given: Any) -> Workload:
    usual = {"name": "w", "operations": {"read": 1}, "workers": (4,), "runtime": 20.0}
    return Workload.model_validate({**usual, "objects": {"size": size}, **given})


def changed(one: Of, **given: Any) -> Of:
    """A copy with some figures or other fields changed; None: unknown."""
    fields = _by_metric(given, one.figures)
    return type(one).model_validate({**dict(one), **fields})


def plan_of(workload: Workload, *, repeats: int = 1) -> ResolvedPlan:
    suite = Suite(name="s", about="a", workloads=(workload,), repeats=repeats)
    return ResolvedPlan.model_validate(
        {
            "suite": suite.model_dump(),
            "hardware": {"name": "h"},
            "layouts": [{"name": "swift", "gateway": "swift"}],
        }
    )


def summarize(
    plan: ResolvedPlan,
    steps: Iterable[StepResult],
    uses: Mapping[StepKey, StepUse] = MappingProxyType({}),
) -> tuple[Row, ...]:
    """The table of a plan's workloads; the last result of a step counts."""
    workloads, judged = workloads_of(plan), {}
    for step in steps:
        workload = workloads.get(step.key.workload)
        judged[step.key] = visit(step, uses.get(step.key), workload=workload)
    return rows_of(plan, judged)


def step_of(
    measurement: Measurement,
    repeat: int = 0,
    notes: tuple[str, ...] = (),
    *,
    valid: bool = True,
    driver: str = DEFAULT_DRIVER,
) -> StepResult:
    """A step of such a plan, whose workload is `w` at 4 workers."""
    about = {"layout": "swift", "api": "swift", "workload": "w", "workers": 4}
    key = StepKey.model_validate({**about, "repeat": repeat, "driver": driver})
    return StepResult(key=key, measurement=measurement, valid=valid, notes=notes, order=repeat)


def altered(record: Kept, /, **given: Any) -> Kept:
    """A copy with other values, which are not validated: what is there may be as wrong."""
    original: Any = record
    is_model = isinstance(original, BaseModel)
    copy: Kept = original.model_copy(update=given) if is_model else replace(original, **given)
    return copy


def present(value: Kept | None) -> Kept:
    assert value is not None
    return value


@functools.cache  # asked a million times by simulations
def _columns() -> Mapping[str, tuple[str, str]]:
    metrics = METRICS.values()
    return {one.column: (one.key, "value") for one in metrics} | {
        f"{one.stem}_in": (one.key, "within") for one in metrics
    }


def _by_metric(
    given: Mapping[str, Any], before: Mapping[str, MetricFigure] | None = None
) -> dict[str, Any]:
    rest, figures = dict(given), dict(before or {})

    def change(key: str, **fields: Any) -> None:
        known = figures[key].model_dump() if key in figures else {}
        figures[key] = MetricFigure.model_validate({**known, **fields})

    for name in [one for one in rest if one in _columns()]:
        key, field = _columns()[name]
        change(key, **{field: rest.pop(name)})
    for key, (low, high) in rest.pop("intervals", {}).items():
        change(key, low=low, high=high)
    for key in rest.pop("at_least", ()):
        change(key, at_least=True)
    return {**rest, "figures": {key: one for key, one in figures.items() if one.known}}


def csv_of(rows: Iterable[Row]) -> str:
    return rows_table(rows, "run").csv
