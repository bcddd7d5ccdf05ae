"""Every trial of a tuning in the order of time: the baseline's joined by a line, so that drift and
interleaving are seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.tuning.ledger import Reading
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Trace, upper
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.charts.tornado import CLAIMED
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import METRICS
from weighbridge.results.record.trial import Trial

WIDTH: Final = 960
HEIGHT: Final = 250


def drift_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The chart, a panel for each objective; none where nothing was measured."""
    result = source.tuned
    if result is None:
        return ()
    trials = {one.number: one for one in result.trials}
    panels = []
    for number, _ in enumerate(result.run.objectives):
        readings = [
            one for one in result.ledger.readings if one.objective == number and one.trial in trials
        ]
        if any(one.value is not None for one in readings):
            panels.append(_panel(result, number, readings, trials))
    moved = [one.words for one in result.ledger.drift]
    figure = Figure(
        name="drift",
        title="Every trial, in the order of time",
        finding=upper(moved[0].rstrip(".")) if moved else "How the baseline moved is not known",
        caption=f"Line: {result.ledger.baseline.name}, tried again before and after every few "
        "settings. Blue: a setting that is "
        "better, orange: worse, grey: no effect shown. Each trial is set against the line beside "
        "it, so what moves both is in no "
        "difference.",
        data=_csv(result, trials),
        panels=tuple(panels),
        columns=1,
    )
    return (figure,) if panels else ()


def _panel(
    result: TuningResult, number: int, readings: Sequence[Reading], trials: dict[int, Trial]
) -> Panel:
    metric = METRICS[result.run.objectives[number].of]
    unit = metric.unit if metric.key == "throughput" else f"{metric.name}, {metric.unit}"
    drift = next((one for one in result.ledger.drift if one.objective == number), None)
    verdicts = {one.arm.name: one.verdict for one in result.ledger.entries}
    names = {one.arm.name: one.name for one in result.ledger.entries}
    base: list[tuple[int, Spot]] = []
    others: list[Spot] = []
    for one in readings:
        arm = trials[one.trial].arm
        if one.value is None:
            continue
        tip = f"{names.get(arm.name, arm.name)}: {show_figure(one.value)} {unit}"
        spot = Spot(x=one.trial + 1, y=one.value, tip=tip, tone="ink")
        if arm.is_baseline:
            base.append((trials[one.trial].deployment, spot))
        else:
            others.append(
                spot.model_copy(update={"tone": CLAIMED.get(verdicts.get(arm.name, ""), "axis")})
            )
    lines = [
        Trace(
            x=tuple(float(spot.x or 0) for _, spot in mine),
            y=tuple(float(spot.y or 0) for _, spot in mine),
            tone="ink",
        )
        for _, group in groupby(base, key=lambda one: one[0])
        for mine in [list(group)]
    ]
    anew = [
        Spot(x=one.number + 0.5, tone="muted")
        for before, one in pairwise(result.trials)
        if one.deployment != before.deployment
    ]
    return Panel(
        key=f"objective-{number + 1}",
        title=upper(result.called(number)),
        finding="" if drift is None or number == 0 else _moved(drift.words),
        x=_trials(max(trials) + 1),
        y=AxisScale.around([one.value for one in readings if one.value is not None], unit),
        marks=(
            Mark(kind="diamond", spots=tuple(others)),
            Mark(kind="line", traces=tuple(lines)),
            Mark(kind="small point", spots=tuple(spot for _, spot in base)),
            Mark(kind="rule", spots=tuple(anew)),
        ),
        head=("Trial", "Round", "Setting", "Figure", "Baseline beside it", "Why none"),
        lines=tuple(_line(one, trials[one.trial], names) for one in readings),
        width=WIDTH,
        height=HEIGHT,
    )


def _trials(count: int) -> AxisScale:
    high, step = nice_top(count)
    step = max(1.0, step)
    ticks = tuple(
        number * step for number in range(1, int(high / step) + 1) if number * step <= count
    )
    return AxisScale(high=max(count + 0.5, 2.0), ticks=ticks, title="Trial", grid=False)


def _line(one: Reading, trial: Trial, names: dict[str, str]) -> tuple[str, ...]:
    name = "baseline" if trial.arm.is_baseline else names.get(trial.arm.name, trial.arm.name)
    beside = UNKNOWN if one.reference is None else show_figure(one.reference)
    return (str(one.trial + 1), str(trial.round + 1), name, show_figure(one.value), beside, one.why)


def _csv(result: TuningResult, trials: dict[int, Trial]) -> str:
    head = (
        "trial",
        "round",
        "deployment",
        "started_s",
        "arm",
        "objective",
        "value",
        "baseline_beside",
        "why",
    )
    lines = []
    for one in result.ledger.readings:
        trial = trials.get(one.trial)
        if trial is not None:
            place = (
                one.trial + 1,
                trial.round + 1,
                trial.deployment,
                trial.started_s,
                trial.arm.name,
            )
            lines.append(
                (
                    *place,
                    result.run.objectives[one.objective].words,
                    one.value,
                    one.reference,
                    one.why,
                )
            )
    return csv_lines(head, lines)


def _moved(words: str) -> str:
    """What a drift says of the baseline alone: its panel has the objective as its title."""
    return upper(words.partition(": ")[2].partition(";")[0])
