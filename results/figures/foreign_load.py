"""What other programs on the machine of the hosts cost: a slope of each figure over the share of
the machine's CPUs that they used.

Not the neighbour spoils a comparison, but what it did to the figures. Over all windows of a layout
in a run the logarithm of a metric is a level of its cell, which is the layout's workload and worker
count, and a slope that its cells share (least squares within cells: the analysis of covariance of
R. A. Fisher, Statistical Methods for Research Workers, 1932). Slopes of earlier runs on the machine
are averaged with it, weighted by the inverse of their variances. A comparison moves both sides to a
quiet machine, and its interval has the slopes' errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from weighbridge.results.figures.doubt import spoilt
from weighbridge.results.figures.metrics import Metric, MetricKey
from weighbridge.results.figures.summary import Point, Row
from weighbridge.results.run.machine import MAX_LOG, LoadSlope

QUIET: Final = 0.05
"""Up to this share of the CPUs others cost nothing: an idle machine uses 1 to 2 %, and a slope over
so little would be noise.
"""
FEWEST: Final = 4
"""Windows beyond the levels and the slope, from which a slope is estimated."""
LEAST_ERROR: Final = 1e-6
"""No slope is known better."""

Slopes = Mapping[tuple[str, MetricKey], LoadSlope]
"""By layout and metric."""


def figures(row: Row, metric: Metric) -> dict[int, float]:
    """The repeats' figures; empty if one is unknown: the others would be other repeats."""
    values = {point.repeat: point.value(metric.key) for point in row.used}
    positive = {repeat: value for repeat, value in values.items() if value and value > 0}
    return positive if len(positive) == len(values) else {}


def load_of(point: Point) -> float:
    """What others used of the CPUs beyond QUIET; 0 where it is not known."""
    return max(0.0, (point.others or 0.0) - QUIET)


def _loads(row: Row) -> dict[int, float]:
    return {point.repeat: load_of(point) for point in row.used}


def load_slopes(
    rows: Iterable[Row], metrics: Sequence[Metric], earlier: Iterable[LoadSlope] = ()
) -> dict[tuple[str, MetricKey], LoadSlope]:
    """The slope of each layout and metric whose windows had different loads; `earlier`: others."""
    table = list(rows)
    disturbed = {row.layout for row in table if any(_loads(row).values())}
    cells: dict[tuple[str, MetricKey], list[list[tuple[float, float]]]] = {}
    for row in table:
        if row.layout not in disturbed:
            continue
        loads = _loads(row)
        for metric in metrics:
            values = figures(row, metric)
            windows = [(loads[repeat], math.log(value)) for repeat, value in values.items()]
            cells.setdefault((row.layout, metric.key), []).append(windows)
    before = list(earlier)
    slopes = {}
    for (layout, key), of_layout in cells.items():
        same = [slope for slope in before if (slope.layout, slope.metric) == (layout, key)]
        own = slope_of(of_layout)
        if own is not None:
            same.append(LoadSlope(layout=layout, metric=key, slope=own[0], error=own[1]))
        if same:
            slopes[layout, key] = _average(same)
    return slopes


def slope_of(cells: Iterable[Sequence[tuple[float, float]]]) -> tuple[float, float] | None:
    """The common slope of cells of windows, each a load and a logarithm, with its standard error;
    None if too few differ, or by so little that it says nothing.
    """
    places: list[tuple[float, float]] = []
    levels = 0
    for windows in cells:
        if len(windows) > 1:
            load, level = (fmean(window[part] for window in windows) for part in (0, 1))
            places += [(window[0] - load, window[1] - level) for window in windows]
            levels += 1
    across = math.fsum(load**2 for load, _ in places)
    freedom = len(places) - levels - 1
    if not across or freedom < FEWEST:
        return None
    slope = math.fsum(load * log for load, log in places) / across
    rest = math.fsum((log - slope * load) ** 2 for load, log in places)
    error = math.sqrt(rest / freedom / across)
    return (slope, error) if max(abs(slope), error) <= MAX_LOG else None


def _average(slopes: Sequence[LoadSlope]) -> LoadSlope:
    """By inverse variances."""
    weights = [1 / max(slope.error, LEAST_ERROR) ** 2 for slope in slopes]
    total = math.fsum(weights)
    value = math.fsum(weight * slope.slope for weight, slope in zip(weights, slopes, strict=True))
    return slopes[-1].model_copy(update={"slope": value / total, "error": 1 / math.sqrt(total)})


@dataclass(frozen=True)
class CellSides:
    """The figures of a metric on both sides of a cell, by repeat, as on a quiet machine."""

    baseline: Mapping[int, float]
    subject: Mapping[int, float]
    adjusted: float = 1.0
    """The factor by which that changes the ratio."""
    error: float = 0.0
    """The standard error of its logarithm."""
    quiet: float | None = None
    """The ratio by the windows that nobody disturbed; None if none was, or too few are left."""


def cell_sides(metric: Metric, baseline: Row, subject: Row, slopes: Slopes) -> CellSides:
    """Both sides of a cell as on a quiet machine, as far as slopes are known; `error` is theirs."""
    rows = (baseline, subject)
    values = [figures(row, metric) for row in rows]
    loads = [_loads(row) for row in rows]
    if not all(values) or not any(any(of_side.values()) for of_side in loads):
        return CellSides(values[0], values[1])
    moved, variance = [], 0.0
    for row, of_side, figures_of in zip(rows, loads, values, strict=True):
        slope = slopes.get((row.layout, metric.key))
        if slope is None:
            moved.append(figures_of)
            continue
        moved.append(
            {n: value / math.exp(slope.slope * of_side[n]) for n, value in figures_of.items()}
        )
        variance += (fmean(of_side[n] for n in figures_of) * slope.error) ** 2
    before, after = _log_ratio(*values), _log_ratio(*moved)
    return CellSides(
        moved[0],
        moved[1],
        adjusted=math.exp(after - before),
        error=math.sqrt(variance),
        quiet=_undisturbed(rows, values),
    )


def _undisturbed(rows: Sequence[Row], values: Sequence[Mapping[int, float]]) -> float | None:
    """The ratio by undisturbed windows: at least two of each side, and not all."""
    quiet, disturbed = [], False
    for row, figures_of in zip(rows, values, strict=True):
        calm = {point.repeat for point in row.used if not spoilt(point.others)}
        disturbed = disturbed or len(calm) < len(figures_of)
        quiet.append({repeat: value for repeat, value in figures_of.items() if repeat in calm})
    return math.exp(_log_ratio(*quiet)) if disturbed and min(map(len, quiet)) >= 2 else None


def _log_ratio(baseline: Mapping[int, float], subject: Mapping[int, float]) -> float:
    base, sub = (fmean(map(math.log, side.values())) for side in (baseline, subject))
    return sub - base
