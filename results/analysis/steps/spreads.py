"""A figure with the spread of its repeats, as people read it: `594 ±3 %`."""

from __future__ import annotations

from typing import Final

from weighbridge.results.analysis.steps.interval import Interval
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import SHOWN, Metric, MetricKey, ShownKey, Spread

ALIKE: Final = 1.25
"""An interval of a geometric mean runs from its figure divided by a factor to it times that factor. Up to this factor the two sides
are within a tenth of each other, and `±` says both."""

INTERVALS: Final = {"p50_in": "p50", "p90_in": "p90", "p99_in": "p99", "max_in": "max"}
"""Fields of intervals, and what their columns begin with."""


def spread_column(metric: Metric, *, high: bool) -> str:
    """The column of one end of the interval over repeats: `throughput_over_repeats_low_ops_s`, `p90_over_repeats_high_ms`."""
    unit = metric.unit.replace("op/s", "ops_s")
    return f"{metric.key.replace('-', '_')}_over_repeats_{'high' if high else 'low'}_{unit}"


def spread_end(row: Row, metric: MetricKey, *, high: bool) -> float | None:
    """One end of the 95 % interval of a metric over a row's repeats; None where it is not known."""
    found = row.spread(metric)
    return None if found is None else found.high if high else found.low


def shown(row: Row, key: ShownKey, *, spread: bool = True) -> str:
    """A metric of a row as people read it: its bin where the driver counts in bins; `≥ 2,000` where it is a lower bound; else with
    the spread of its repeats, or of one repeat with few samples the interval of its order statistics: `87 [61-140]`.

    `spread`: whether there is room for that.
    """
    metric = SHOWN[key]
    within: Interval | None = getattr(row, metric.bins) if metric.bins else None
    if within is not None:
        return str(within)
    value, found = metric.of(row), row.spread(key) if spread else None
    least = "≥ " * (value is not None and key in row.at_least)
    # A row shows the highest maximum of its repeats, and no interval is about that one.
    if key == "max" or value is None:
        return f"{least}{show_figure(value)}"
    if found is not None and row.repeats == 1:
        high = UNKNOWN if found.high is None else show_figure(found.high)
        return f"{least}{show_figure(value)} [{show_figure(found.low)}–{high}]"
    return f"{least}{show_spread(value, found)}"


def show_spread(value: float | None, spread: Spread | None) -> str:
    """`594 ±3 %`: half the width of the 95 % interval over repeats; its ends in brackets where it is too lopsided.

    The figure alone where no interval is known, as of one repeat.
    """
    figure = show_figure(value)
    if not value or spread is None:
        return figure
    if spread.high is None:
        return f"{figure} (≥ {show_figure(spread.low)})"
    if spread.high <= value * ALIKE and spread.low * ALIKE >= value:
        half = (spread.high - spread.low) / 2 / value * 100
        return f"{figure} ±{f'{half:.0f}' if half >= 1 else '<1'} %"
    return f"{figure} ({show_figure(spread.low)}–{show_figure(spread.high)})"


def interval_ends(row: Row) -> dict[str, float | None]:
    """The ends of a row's intervals by column: `p90_low_ms`, `p90_high_ms` ...; both None where a latency is not an interval."""
    found: dict[str, float | None] = {}
    for field, name in INTERVALS.items():
        within: Interval | None = getattr(row, field)
        found[f"{name}_low_ms"] = None if within is None else within.low_ms
        found[f"{name}_high_ms"] = None if within is None else within.high_ms
    return found
