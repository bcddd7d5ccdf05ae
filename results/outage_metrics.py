"""Metrics of workloads in whose steps something dies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weighbridge.results.metric import Metric, OperationReader
from weighbridge.results.metric_figure import MetricFigure, average, largest

_OF: Final = "Of workloads with `fault`."
WHOLE_SECOND: Final = 1.0
"""They are read from complete seconds: the first after the fault begins up to this much later."""


def _until(reached_s: float | None, within_s: float) -> MetricFigure:
    """A time, or that it was longer than was looked for."""
    if reached_s is None:
        return MetricFigure(value=within_s, at_least=True)
    return MetricFigure(value=reached_s)


def _detect(one: OperationReader) -> MetricFigure | None:
    found = one.outage
    return None if found is None else _until(found.detect_s, found.detect_within_s)


def _recover(one: OperationReader) -> MetricFigure | None:
    found = one.outage
    return None if found is None else _until(found.recover_s, found.recover_within_s)


def _shown(
    key: str,
    name: str,
    unit: str,
    about: str,
    read: Callable[[OperationReader], float | None],
    **more: Any,
) -> Metric:
    """A figure that is shown, and not compared: it may be 0, or is coarse."""
    return Metric(
        key=key,
        name=name,
        title=name[0].upper() + name[1:],
        unit=unit,
        suffix={"%": "percent", "op/s": "ops_s"}.get(unit, unit),
        group="count",
        about=f"{about} {_OF}",
        of_outage=True,
        read=read,
        page=False,
        **{"merge": average, "over_repeats": "Mean over the repeats.", **more},
    )


def _time(
    key: str,
    name: str,
    about: str,
    read: Callable[[OperationReader], MetricFigure | float | None],
    resolution: float = 0.0,
) -> Metric:
    """A time that is compared."""
    return Metric(
        key=key,
        name=name,
        title=name[0].upper() + name[1:],
        unit="s",
        suffix="s",
        group="latency",
        about=f"{about} {_OF}",
        over_repeats="Geometric mean over the repeats. ≥: not within the time observed.",
        of_outage=True,
        read=read,
        better="less",
        bound=1.25,
        resolution=resolution,
        page=False,
    )


OUTAGE_METRICS: Final = (
    _time(
        "stall",
        "longest stall",
        "The longest time in which a worker got no success, over all its tries.",
        lambda one: None if one.outage is None or one.stall_us is None else one.stall_us / 1e6,
    ),
    _time(
        "detect",
        "time to detect",
        "From the fault to the first of five seconds without errors and with half of the rate "
        "before the fault, looked for until what died comes back.",
        _detect,
        resolution=WHOLE_SECOND,
    ),
    _time(
        "recover",
        "time to 90 %",
        "From the fault to the first of five seconds with 90 % of the rate before the fault.",
        _recover,
        resolution=WHOLE_SECOND,
    ),
    _shown(
        "rate-before",
        "rate before",
        "op/s",
        "Median of the seconds of the window before the fault.",
        lambda one: None if one.outage is None else one.outage.before_ops_s,
    ),
    _shown(
        "unanswered",
        "seconds without an answer",
        "s",
        "Complete seconds after the fault in which nothing succeeded.",
        lambda one: None if one.outage is None else float(one.outage.unanswered_s),
    ),
    _shown(
        "missed",
        "work missed",
        "s",
        "Work missed from the fault to the end of the window, in seconds at the rate before the "
        "fault.",
        lambda one: None if one.outage is None else one.outage.missed_s,
    ),
    _shown(
        "away-p99",
        "p99 while away",
        "ms",
        "99 % of what succeeded between the fault and the return took at most this long, from "
        "bands that are 19 to 25 % wide.",
        lambda one: None if one.outage is None else one.outage.away_p99_ms,
    ),
    _shown(
        "away-max",
        "max while away",
        "ms",
        "The slowest success between the fault and the return.",
        lambda one: None if one.outage is None else one.outage.away_max_ms,
        merge=largest,
        over_repeats="The largest.",
    ),
    _shown(
        "lowest-back",
        "lowest rate after the return",
        "%",
        "Mean of five seconds, in % of the rate before the fault.",
        lambda one: (
            None
            if one.outage is None or one.outage.lowest_back is None
            else 100 * one.outage.lowest_back
        ),
    ),
)
"""In the order of tables."""
