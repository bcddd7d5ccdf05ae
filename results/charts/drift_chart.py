"""Every trial of a tuning in the order of time: the baseline's joined by a line, so that drift and interleaving are seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.tuning.ledger import Reading
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.chart_data import nice_top
from weighbridge.results.charts.chart_theme import LIGHT, Look, diverging
from weighbridge.results.charts.figure import Figure, Plot
from weighbridge.results.charts.labels import AxisScale, Frame, chart_of
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record.trial import Trial

WIDTH: Final = 960
HEIGHT: Final = 250
_UNITS: Final = {"throughput": "op/s", "p90": "p90, ms"}


def drift_chart(result: TuningResult, look: Look = LIGHT) -> Figure | None:
    """The chart, a panel for each objective; None where nothing was measured."""
    trials = {one.number: one for one in result.trials}
    plots = []
    for number, _ in enumerate(result.run.objectives):
        readings = [one for one in result.ledger.readings if one.objective == number and one.trial in trials]
        if any(one.value is not None for one in readings):
            plots.append(_plot(result, number, readings, trials, look))
    if not plots:
        return None
    moved = [one.words for one in result.ledger.drift]
    return Figure(
        name="drift",
        title="Every trial, in the order of time",
        finding=_upper(moved[0].rstrip(".")) if moved else "How the baseline moved is not known",
        caption=f"Line: {result.ledger.baseline.name}, tried again before and after every few settings. Blue: a setting that is "
        "better, orange: worse, grey: no effect shown. Each trial is set against the line beside it, so what moves both is in no "
        "difference.",
        csv=_csv(result, trials),
        plots=tuple(plots),
        columns=1,
        look=look,
    )


def _plot(result: TuningResult, number: int, readings: Sequence[Reading], trials: dict[int, Trial], look: Look) -> Plot:
    objective = result.run.objectives[number]
    known = [one for one in readings if one.value is not None]
    values = [one.value for one in known if one.value is not None]
    drift = next((one for one in result.ledger.drift if one.objective == number), None)
    frame = Frame(
        across=_trials(max(trials) + 1),
        up=_around(values, _UNITS[objective.of]),
        width=WIDTH,
        height=HEIGHT,
    )
    verdicts = {one.arm.name: one.verdict for one in result.ledger.entries}
    names = {one.arm.name: one.name for one in result.ledger.entries}
    colours = diverging(look)
    toned = {"better": colours[-2], "worse": colours[1]}
    base: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    for one in known:
        arm = trials[one.trial].arm
        spot = {
            "x": one.trial + 1,
            "y": one.value,
            "told": f"{names.get(arm.name, arm.name)}: {show_figure(one.value)} {_UNITS[objective.of]}",
            "colour": toned.get(verdicts.get(arm.name, ""), look.axis),
            "deployment": trials[one.trial].deployment,
        }
        (base if arm.is_baseline else others).append(spot)
    layers: list[Any] = [_spots(others, frame)] if others else []
    if base:
        tip = alt.Tooltip("told:N", title=" ")
        line = chart_of(base).mark_line(strokeWidth=2.5, color=look.ink)
        layers.append(line.encode(x=frame.x(), y=frame.y(), detail=alt.Detail("deployment:N")))
        layers.append(
            chart_of(base).mark_point(size=55, filled=True, opacity=1, color=look.ink).encode(x=frame.x(), y=frame.y(), tooltip=tip)
        )
    anew = [
        {"x": one.number + 0.5}
        for before, one in zip(result.trials, result.trials[1:], strict=False)
        if one.deployment != before.deployment
    ]
    if anew:
        layers.append(chart_of(anew).mark_rule(strokeDash=[5, 4], color=look.muted).encode(x=frame.x()))
    return Plot(
        key=f"objective-{number + 1}",
        title=_upper(result.called(number)),
        finding="" if drift is None or number == 0 else _moved(drift.words),
        spec=dict(alt.layer(*layers).to_dict(validate=False)),
        head=("Trial", "Round", "Setting", "Figure", "Baseline beside it", "Why none"),
        lines=tuple(_line(one, trials[one.trial], names) for one in readings),
        width=WIDTH,
        height=HEIGHT,
    )


def _spots(values: list[dict[str, Any]], frame: Frame) -> Any:
    tip = alt.Tooltip("told:N", title=" ")
    drawn = chart_of(values).mark_point(size=70, filled=True, opacity=0.85, shape="diamond")
    return drawn.encode(x=frame.x(), y=frame.y(), color=alt.Color("colour:N", scale=None), tooltip=tip)


def _trials(count: int) -> AxisScale:
    high, step = nice_top(count)
    step = max(1.0, step)
    return AxisScale(
        kind="linear",
        low=0.0,
        high=max(count + 0.5, 2.0),
        ticks=tuple(number * step for number in range(1, int(high / step) + 1) if number * step <= count),
        title="Trial",
        grid=False,
    )


def _around(values: Sequence[float], title: str) -> AxisScale:
    """A scale that holds all values with its ticks at round figures. It need not begin at 0: nothing on it is an area."""
    low, high = min(values), max(values)
    spread = high - low
    if low <= 0.5 * high:
        return AxisScale.from_zero(high * 1.02, title)
    _, step = nice_top(spread or high * 0.1)
    first, last = int(low // step), -int(-high // step)
    last = max(last, first + 1)
    return AxisScale(
        kind="linear", low=first * step, high=last * step, ticks=tuple(n * step for n in range(first, last + 1)), title=title
    )


def _line(one: Reading, trial: Trial, names: dict[str, str]) -> tuple[str, ...]:
    name = "baseline" if trial.arm.is_baseline else names.get(trial.arm.name, trial.arm.name)
    beside = UNKNOWN if one.reference is None else show_figure(one.reference)
    return (str(one.trial + 1), str(trial.round + 1), name, show_figure(one.value), beside, one.why)


def _csv(result: TuningResult, trials: dict[int, Trial]) -> str:
    head = ("trial", "round", "deployment", "started_s", "arm", "objective", "value", "baseline_beside", "why")
    lines = []
    for one in result.ledger.readings:
        trial = trials.get(one.trial)
        if trial is not None:
            place = (one.trial + 1, trial.round + 1, trial.deployment, trial.started_s, trial.arm.name)
            lines.append((*place, result.run.objectives[one.objective].words, one.value, one.reference, one.why))
    return csv_lines(head, lines)


def _moved(words: str) -> str:
    """What a drift says of the baseline alone: its panel has the objective as its title."""
    return _upper(words.partition(": ")[2].partition(";")[0])


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
