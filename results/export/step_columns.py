from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.data_table import DataColumn, Kind, attribute
from weighbridge.results.metric import MetricFigure
from weighbridge.results.metrics import METRICS, Figures, Metric, compared
from weighbridge.results.record.step import StepKey

Line = TypeVar("Line")


@dataclass(frozen=True)
class OfStep:
    """A source of lines about a repeat of a step."""

    data: RunData
    key: StepKey

    @property
    def run(self) -> str:
        return self.data.manifest.run_id

    @property
    def twin_of(self) -> str | None:
        """The layout that its own is an A/A control of."""
        return self.data.plan.twins.get(self.key.layout)


def place_columns(of: str) -> tuple[DataColumn[Any], ...]:
    """The columns of a step's place, read from the key or the row of a line."""
    return (
        attribute("run", "text", "Name of the run."),
        attribute("layout", "text", "The layout that was measured.", f"{of}.layout"),
        attribute(
            "twin_of",
            "text",
            "The layout that this one repeats as an A/A control, for the noise of this machine; "
            "else unknown.",
        ),
        attribute("api", "text", "The interface that requests used.", f"{of}.api"),
        attribute("driver", "text", "The program that made the load.", f"{of}.driver"),
        attribute(
            "layer",
            "text",
            "The layer below or beside the gateway that got the load; unknown for the gateway.",
            f"{of}.layer",
        ),
        attribute("workload", "text", "Name of the workload in the suite.", f"{of}.workload"),
    )


WORKERS: Final = "Clients that each kept one request outstanding."
KEY: Final[tuple[DataColumn[OfStep], ...]] = (
    *place_columns("key"),
    attribute("workers", "integer", WORKERS, "key.workers"),
    DataColumn(
        "repeat", "integer", "Which visit of the step, from 1.", lambda one: one.key.repeat + 1
    ),
    attribute(
        "rate_per_s",
        "number",
        "The rate of a step of a search for one; unknown for ordinary steps.",
        "key.rate_per_s",
        "1/s",
    ),
    attribute("search_step", "integer", "Which step of that search, from 1.", "key.search_step"),
)
"""What identifies a step among those of all runs."""


def _metric_column(
    of: Callable[[Line], Figures | None],
    metric: Metric,
    name: str,
    about: str,
    read: Callable[[MetricFigure], float | None],
    kind: Kind = "number",
) -> DataColumn[Line]:
    def value(line: Line) -> float | None:
        found = of(line)
        return None if found is None else read(found.figure(metric.key))

    return DataColumn(name, kind, about, value, metric.unit)


def value_columns(of: Callable[[Line], Figures | None]) -> Iterator[DataColumn[Line]]:
    """A column for each metric."""
    for one in METRICS.values():
        kind: Kind = "integer" if one.is_integer else "number"
        yield _metric_column(of, one, one.column, one.about, lambda found: found.value, kind)


def bin_columns(of: Callable[[Line], Figures | None]) -> Iterator[DataColumn[Line]]:
    """The ends of the bin that holds a metric, where the driver counts in bins."""
    for one in METRICS.values():
        if one.binned:
            low, high = one.bin_columns
            about = f"end of the bin that holds {one.name}, where the driver counts in bins."
            yield _metric_column(of, one, low, f"Lower {about}", _bin_low)
            yield _metric_column(of, one, high, f"Upper {about}", _bin_high)


def _bin_low(found: MetricFigure) -> float | None:
    return None if found.within is None else found.within.low_ms


def _bin_high(found: MetricFigure) -> float | None:
    return None if found.within is None else found.within.high_ms


def interval_columns(of: Callable[[Line], Figures | None]) -> Iterator[DataColumn[Line]]:
    """The ends of the 95 % interval of a metric that is compared."""
    for one in compared():
        low, high = one.spread_columns
        about = f"end of the 95 % interval of {one.name} over the repeats; unknown for one repeat."
        yield _metric_column(of, one, low, f"Lower {about}", lambda found: found.low)
        yield _metric_column(of, one, high, f"Upper {about}", lambda found: found.high)
