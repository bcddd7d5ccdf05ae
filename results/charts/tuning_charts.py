"""The charts of a tuning: its trials in order of time, and what each setting did.

The baseline's trials are joined by a line, so that drift and interleaving can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.tuning.setting_effects import Reading
from weighbridge.results.analysis.tuning.setting_lines import short_names
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Trace
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.charts.tornado import (
    CLAIMED,
    ROW_PX,
    SettingChange,
    change_panel,
    finding,
    setting_changes,
    tornado,
    tornado_csv,
)
from weighbridge.results.figures import UNKNOWN, show_figure, upper
from weighbridge.results.metrics import METRICS
from weighbridge.results.record.trial import Trial

WIDTH: Final = 960
HEIGHT: Final = 250
TORNADO_WIDTH: Final = 520
MOST: Final = 20
CROWDED: Final = 12
"""With more bars, rows are less high."""
LONGEST: Final = 64
"""Of settings' names in a tuning's figure; longer ones are shortened, not in the data."""
NAME_PX: Final = 7.0
"""The average width of a letter of such a name."""


def drift_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The trials of a tuning, a panel for each objective; none where nothing was measured."""
    result = source.tuned
    if result is None:
        return ()
    trials = {one.number: one for one in result.trials}
    panels = []
    for number, _ in enumerate(result.run.objectives):
        readings = [
            one for one in result.table.readings if one.objective == number and one.trial in trials
        ]
        if any(one.value is not None for one in readings):
            panels.append(_panel(result, number, readings, trials))
    drifts = [one.words for one in result.table.drift]
    figure = Figure(
        name="drift",
        title="Every trial, in order of time",
        finding=upper(drifts[0].rstrip("."))
        if drifts
        else "The drift of the baseline is not known",
        caption=f"Line: {result.table.baseline.name}, repeated before and after every few "
        "settings. Blue: a setting that is better, orange: worse, grey: no significant effect. "
        "Each trial is compared with the line beside it, so a drift of both cancels out.",
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
    drift = next((one for one in result.table.drift if one.objective == number), None)
    verdicts = {one.variant.name: one.verdict for one in result.table.entries}
    names = {one.variant.name: one.name for one in result.table.entries}
    base: list[tuple[int, Spot]] = []
    others: list[Spot] = []
    for one in readings:
        variant = trials[one.trial].arm
        if one.value is None:
            continue
        tip = f"{names.get(variant.name, variant.name)}: {show_figure(one.value)} {unit}"
        spot = Spot(x=one.trial + 1, y=one.value, tip=tip, tone="ink")
        if variant.is_baseline:
            base.append((trials[one.trial].deployment, spot))
        else:
            others.append(
                spot.model_copy(
                    update={"tone": CLAIMED.get(verdicts.get(variant.name, ""), "axis")}
                )
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
    restarts = [
        Spot(x=one.number + 0.5, tone="muted")
        for before, one in pairwise(result.trials)
        if one.deployment != before.deployment
    ]
    return Panel(
        key=f"objective-{number + 1}",
        title=upper(result.called(number)),
        finding="" if drift is None or number == 0 else _drift_finding(drift.words),
        x=_trials(max(trials) + 1),
        y=AxisScale.around([one.value for one in readings if one.value is not None], unit),
        marks=(
            Mark(kind="diamond", spots=tuple(others)),
            Mark(kind="line", traces=tuple(lines)),
            Mark(kind="small point", spots=tuple(spot for _, spot in base)),
            Mark(kind="rule", spots=tuple(restarts)),
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
        *("trial", "round", "deployment", "started_s", "arm"),
        *("objective", "value", "baseline_beside", "why"),
    )
    lines = [
        (
            *(one.trial + 1, trial.round + 1, trial.deployment, trial.started_s, trial.arm.name),
            *(result.run.objectives[one.objective].words, one.value, one.reference, one.why),
        )
        for one in result.table.readings
        if (trial := trials.get(one.trial)) is not None
    ]
    return csv_lines(head, lines)


def _drift_finding(words: str) -> str:
    """The part of a drift's words about the baseline: the title has the objective."""
    return upper(words.partition(": ")[2].partition(";")[0])


def tornado_charts(source: ChartSource) -> tuple[Figure, ...]:
    """A tornado for each objective; of other runs one for throughput and one for p90."""
    if source.tuned is not None:
        return tornados(source.tuned)
    changed = (
        () if source.comparison is None else setting_changes(source.comparison, source.layouts)
    )
    return tuple(
        one for metric in ("throughput", "p90") if (one := tornado(changed, metric)) is not None
    )


def tornados(result: TuningResult) -> tuple[Figure, ...]:
    """A figure for each objective of a tuning, of the settings that change it most."""
    return tuple(
        figure
        for number in range(len(result.run.objectives))
        if (figure := _of_objective(result, number))
    )


def _of_objective(result: TuningResult, number: int) -> Figure | None:
    objective, called = result.run.objectives[number], result.called(number)
    mine = [
        SettingChange(setting=one.name, effect=one.effects[number])
        for one in result.table.entries
        if len(one.effects) > number
    ]
    known = sorted(
        (one for one in mine if one.effect.ratio is not None),
        key=lambda one: one.size,
        reverse=True,
    )
    if not known:
        return None
    shown = known[:MOST]
    if max(len(one.setting) for one in shown) > LONGEST:
        brief = short_names([one.setting for one in known])
        shown = [one.model_copy(update={"setting": brief[one.setting]}) for one in shown]
    metric = objective.of
    same = [one.of for one in result.run.objectives[: number + 1]].count(metric)
    base = "tornado" if metric == "throughput" else f"tornado-{metric}"
    name = f"{base}-{same}" if same > 1 else base
    left = len(known) - len(shown)
    looks = result.table.looks
    sure = f"95 % interval, widened for {looks} looks" if looks > 1 else "95 % interval"
    better = "more" if METRICS[metric].better == "more" else "shorter"
    worst = f" {left} with smaller effects are only in the table." if left else ""
    head = ("Setting", "Change", "Interval", "Trials", "Verdict")
    table = tuple(one.line for one in sorted(mine, key=lambda one: one.size, reverse=True))
    height = (ROW_PX - 6 if len(shown) > CROWDED else ROW_PX) * len(shown)
    panel = change_panel(shown, f"objective-{number + 1}", upper(called), head)
    size: dict[str, Any] = {"width": TORNADO_WIDTH, "height": height}
    return Figure(
        name=name,
        title=f"What each setting does to the {called}",
        finding=finding(mine, called),
        caption=f"Change from {result.table.baseline.name} beside it in time; line: {sure}. "
        f"Blue: better, {better}. Orange: worse. Grey, ~: no significant effect.{worst}",
        data=tornado_csv(mine),
        panels=(panel.model_copy(update={"lines": table, **size}),),
        columns=1,
        labels_px=round(NAME_PX * max(len(one.setting) for one in shown)),
    )
