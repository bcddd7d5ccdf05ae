from __future__ import annotations

from typing import Final

from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metric import MetricFigure, geometric_mean
from weighbridge.results.metrics import METRICS, MetricKey

ALIKE: Final = 1.25
"""The interval of a geometric mean runs from the figure divided by a factor to the figure times it.
Up to this factor the two sides differ by less than a tenth, and `±` describes both.
"""


def shown(row: Row, key: MetricKey, *, spread: bool = True) -> str:
    """A metric of a row as text: its bin if the driver counts in bins; `≥ 2,000` for a lower bound;
    else with the spread of its repeats, or for one repeat with few samples `87 [61-140]` or
    `87 [≥ 61]`.

    `spread`: whether there is room for that.
    """
    metric, figure = METRICS[key], row.figure(key)
    if figure.within is not None:
        return str(figure.within)
    if figure.value is None:
        return UNKNOWN
    if metric.is_integer:
        return f"{figure.value:,.0f}"
    least = "≥ " * figure.at_least
    # The interval is of a geometric mean; figures such as the highest maximum have none.
    if metric.merge is not geometric_mean or not spread:
        return f"{least}{show_figure(figure.value, metric.digits)}"
    if figure.low is not None and row.repeats == 1:
        low, high = figure.low, figure.high
        ends = (
            f"{show_figure(low)}–{show_figure(high)}"
            if high is not None
            else f"≥ {show_figure(low)}"
        )
        return f"{least}{show_figure(figure.value)} [{ends}]"
    return f"{least}{show_spread(figure, metric.digits)}"


def show_spread(figure: MetricFigure, digits: int = 3) -> str:
    """`594 ±3 %`: half the 95 % interval over repeats, or its ends if lopsided; the figure alone
    without an interval.
    """
    value, low, high = figure.value, figure.low, figure.high
    text = show_figure(value, digits)
    if not value or low is None:
        return text
    if high is None:
        return f"{text} (≥ {show_figure(low)})"
    if high <= value * ALIKE and low * ALIKE >= value:
        half = (high - low) / 2 / value * 100
        return f"{text} ±{f'{half:.0f}' if half >= 1 else '<1'} %"
    return f"{text} ({show_figure(low)}–{show_figure(high)})"
