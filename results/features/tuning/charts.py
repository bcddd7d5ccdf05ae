"""Charts of a tuning: how far each setting moved an objective from the baseline, and its trials.

The tornado has the largest change on top. A bar goes from no change to the measured one, with its
interval. Settings without a significant effect are grey: they are half of what a tuning teaches. In
the chart of trials the baseline's are joined by a line, so that drift and interleaving can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from weighbridge.results.features.tuning.setting_table import Reading
from weighbridge.results.features.tuning.tuning_result import (
    TuningResult,
    change_figure,
    short_names,
    tuned,
)
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.numbers import counted, percent, upper
from weighbridge.results.run.trial import Trial
from weighbridge.results.show.chart import FULL_HEIGHT, INK, MUTED, Chart, Panel, layer
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.charts.change_map import TONE, change_cells
from weighbridge.results.show.scales import CLAIMED, AxisScale, names_encoding, nice_top

ROW_PX: Final = 38
MAX_SETTINGS: Final = 20
"""Of a chart; all are in the table."""
ROOM: Final = 1.6
"""How much longer the scale is than the farthest end, for the figures at the right."""
WIDEST: Final = 2.0
"""Intervals are cut off, and axes of slides end, at so many times the largest change."""
LONGEST: Final = 40
"""Of settings' names in a tuning's chart; longer ones are shortened, not in the data."""
_PERCENT: Final = "datum.value == 0 ? '0' : format(datum.value, '+,.3~r') + ' %'"


@dataclass(frozen=True)
class SettingChange:
    """A changed setting and its effect."""

    setting: str
    effect: Effect

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of its interval in per cent; without one, the change; 0 if unknown."""
        ratio = self.effect.ratio
        if ratio is None:
            return 0.0, 0.0
        return percent(ratio.low or ratio.value), percent(ratio.high or ratio.value)

    @property
    def size(self) -> float:
        """How far the change is from none, either way: a half is as far as a double."""
        return 0.0 if self.effect.ratio is None else self.effect.ratio.either_way


def tornado_charts(source: ChartSource) -> tuple[Chart, ...]:
    """A chart for each objective of a tuning, of the settings that change it most."""
    result = tuned(source.data)
    return () if result is None else tornados(result)


def tornados(result: TuningResult) -> tuple[Chart, ...]:
    """By objective; none for one of which nothing is known."""
    charts = []
    keys: list[str] = []
    for number, called in enumerate(result.called):
        metric = result.run.objectives[number].of
        key = "tornado" if metric == "throughput" else f"tornado-{metric}"
        keys.append(key)
        changes = changes_of(result, number)
        known = [one for one in changes if one.effect.ratio is not None]
        if not known:
            continue
        looks, left = result.table.looks, len(known) - MAX_SETTINGS
        sure = f"95 % interval, widened for {looks} looks" if looks > 1 else "95 % interval"
        more = f" {left} with smaller effects are only in the table." if left > 0 else ""
        better = "more" if METRICS[metric].better == "more" else "shorter"
        charts.append(
            Chart(
                key=key if keys.count(key) == 1 else f"{key}-{keys.count(key)}",
                title=f"What each setting does to the {called}",
                finding=finding(changes, called),
                caption=f"Change from {result.table.baseline.name} beside it in time; line: "
                f"{sure}. Blue: better, {better}. Orange: worse. Grey, ~: no significant effect."
                f"{more}",
                panels=(_change_panel(changes, f"objective-{number + 1}", upper(called)),),
                columns=1,
                section="tuning",
            )
        )
    return tuple(charts)


def changes_of(result: TuningResult, objective: int) -> list[SettingChange]:
    """What a tuning's settings did to one objective, the largest change first."""
    changes = [SettingChange(one.name, one.effects[objective]) for one in result.table.entries]
    return sorted(changes, key=lambda one: one.size, reverse=True)


def finding(changes: Sequence[SettingChange], called: str) -> str:
    """The setting with the largest significant effect on the objective called so, if any."""
    known = [one for one in changes if one.effect.ratio is not None]
    shown = [one for one in known if one.effect.verdict in ("better", "worse")]
    if not shown:
        settings = counted(len({one.setting for one in changes}), "setting")
        few = all(one.effect.verdict == "provisional" for one in known)
        why = f": fewer than {REPEATS_FOR_A_CLAIM} repeats" if few else ""
        return f"Of {settings} none has a significant effect on the {called}{why}"
    most = max(shown, key=lambda one: one.size)
    return f"{most.setting} changes the {called} most: {change_figure(most.effect)}"


def _change_panel(changes: Sequence[SettingChange], key: str, title: str) -> Panel:
    """The panel of the largest known changes; its data have all. Nothing falls by over 100 %."""
    drawn = [one for one in changes if one.effect.ratio is not None][:MAX_SETTINGS]
    names = [one.setting for one in drawn]
    brief = short_names(names) if max(map(len, names)) > LONGEST else {}
    changed = [abs(percent(one.effect.ratio.value)) for one in drawn if one.effect.ratio]
    farthest = max(changed) or 1.0
    reached = max(abs(end) for one in drawn for end in one.ends)
    bound = min(max(farthest, reached), WIDEST * farthest)
    low, high = max(-100.0, -bound), ROOM * bound
    _, step = nice_top((high - low) / 2)
    ticks = [step * number for number in range(-int(-low / step), int(bound / step) + 1)]
    rows = []
    for one in drawn:
        ends = [min(max(end, low), bound) for end in one.ends]
        place = {"_low": ends[0], "_high": ends[1], "_to": max(ends[1], 0.0)}
        rows.append({**_change_row(one), "_name": brief.get(one.setting, one.setting), **place})
    rows += [_change_row(one) for one in changes if one not in drawn]
    bars, zero = [], {"datum": 0}
    for style, sign, colour in (
        ("", "", {**TONE, "field": "_tone"}),
        ("grey", "!", {"value": "$axis"}),
    ):
        where = f"isValid(datum._name) && {sign}isValid(datum._tone)"
        bars.append(layer("bar", style, where, x="change_percent", x2=zero, color=colour))
    whiskers = [
        layer("rule", style, "datum._low < datum._high", x="_low", x2="_high")
        for style in ("whisker-edge", "whisker")
    ]
    scale = AxisScale(low=low, high=high, ticks=tuple(ticks))
    named = {**names_encoding([brief.get(name, name) for name in names]), "field": "_name"}
    return Panel(
        key=key,
        title=title,
        rows=rows,
        spec={
            "encoding": {"x": scale.encoding(labelExpr=_PERCENT, grid=True), "y": named},
            "layer": [
                *bars,
                *whiskers,
                layer("rule", "zero", x=zero, **FULL_HEIGHT),
                layer("text", "figure", x="_to", text="_text"),
            ],
        },
        height=ROW_PX * len(drawn) + 30,
    )


def _change_row(one: SettingChange) -> dict[str, Any]:
    """A row of data; for p90 more is worse."""
    effect = one.effect
    return {
        "setting": one.setting,
        "about": effect.about,
        "workers": "all" if effect.workers is None else str(effect.workers),
        **{name: getattr(effect, name) for name in ("metric", "baseline", "subject")},
        **change_cells(effect.ratio),
        "q": effect.q,
        "verdict": effect.verdict,
        "_tone": CLAIMED.get(effect.verdict),
        "_text": "× not comparable" if effect.ratio is None else change_figure(effect),
    }


# ---- trials


def drift_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The trials of a tuning, a panel for each objective; none where nothing was measured."""
    result = tuned(source.data)
    if result is None:
        return ()
    trials = {one.number: one for one in result.trials}
    panels = []
    for number, called in enumerate(result.called):
        readings = [one for one in result.table.readings if one.objective == number]
        if any(one.value is not None for one in readings):
            panels.append(_trials_panel(result, number, called, readings, trials))
    if not panels:
        return ()
    chart = Chart(
        key="drift",
        title="Every trial, in order of time",
        finding=upper(result.table.drift[0].words.rstrip(".")),
        caption=f"Line: {result.table.baseline.name}, repeated before and after every few "
        "settings. Blue: a setting that is better, orange: worse, grey: no significant effect. "
        "Dashed: a restart. Each trial is compared with the line beside it.",
        panels=tuple(panels),
        columns=1,
        section="tuning",
    )
    return (chart,)


def _trials_panel(
    result: TuningResult,
    number: int,
    called: str,
    readings: Sequence[Reading],
    trials: Mapping[int, Trial],
) -> Panel:
    entries = {one.variant.name: one for one in result.table.entries}
    rows = []
    for one in readings:
        trial, arm = trials[one.trial], trials[one.trial].arm
        entry = entries.get(arm.name)
        name = arm.name if entry is None else entry.name
        rows.append(
            {
                "trial": one.trial + 1,
                "round": trial.round + 1,
                "deployment": trial.deployment,
                "started_s": trial.started_s,
                "setting": "baseline" if arm.is_baseline else name,
                "objective": result.run.objectives[number].words,
                "value": one.value,
                "baseline_beside": one.reference,
                "why": one.why,
                "_baseline": arm.is_baseline,
                "_tone": None if entry is None else CLAIMED.get(entry.verdict),
            }
        )
    last = max(trials) + 1
    high, step = nice_top(last)
    step = max(1.0, step)
    ticks = [step * place for place in range(1, int(high / step) + 1) if step * place <= last]
    x = AxisScale(low=0.5, high=max(last + 0.5, 2.0), ticks=tuple(ticks), title="trial")
    unit = METRICS[result.run.objectives[number].of].unit
    y = AxisScale.around([one.value for one in readings if one.value is not None], unit)
    restarts = layer("rule", "level", x="at", **FULL_HEIGHT)
    restarts["data"] = {
        "values": [
            {"at": one.number + 0.5}
            for before, one in pairwise(result.trials)
            if one.deployment != before.deployment
        ]
    }
    settings = []
    for where, colour in (
        ("isValid(datum._tone)", {**TONE, "field": "_tone"}),
        ("!isValid(datum._tone)", MUTED),
    ):
        points = layer("point", "sure", f"!datum._baseline && {where}", y="value", color=colour)
        points["mark"]["shape"] = "diamond"
        settings.append(points)
    where = "datum._baseline && isValid(datum.value)"
    line = layer("line", "path", where, y="value", color=INK, detail="deployment")
    baselines = layer("point", "sure", where, y="value", color=INK)
    # The chart's finding is of the first objective; a panel's title has its own.
    words = result.table.drift[number].words.partition(": ")[2].partition(";")[0] if number else ""
    return Panel(
        key=f"objective-{number + 1}",
        title=upper(called),
        finding=upper(words),
        rows=rows,
        spec={
            "encoding": {"x": {**x.encoding(), "field": "trial"}, "y": y.encoding()},
            "layer": [restarts, *settings, line, baselines],
        },
        height=250,
    )
