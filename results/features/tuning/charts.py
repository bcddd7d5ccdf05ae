"""Charts of settings: how far each moved a metric from the baseline, and a tuning's trials in time.

The tornado has the largest change on top. A bar goes from no change to the measured one, with its
interval. Settings without a significant effect are grey and listed below the title, since that
list is half of what a tuning teaches. In the chart of trials the baseline's are joined by a line,
so that drift and interleaving can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from weighbridge.results.features.tuning.setting_effects import Reading
from weighbridge.results.features.tuning.tuning_result import (
    TuningResult,
    change_figure,
    short_names,
    tuned,
)
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, kind_of
from weighbridge.results.numbers import UNKNOWN, counted, percent, show_percent, upper
from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.run.trial import Trial
from weighbridge.results.show.chart import (
    FULL_HEIGHT,
    INK,
    MUTED,
    Chart,
    Panel,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.charts.change_map import TONE, change_cells, in_bins
from weighbridge.results.show.scales import CLAIMED, AxisScale, names_encoding, nice_top

ROW_PX: Final = 38
MAX_SETTINGS: Final = 20
"""Of a chart; all are in the table."""
LISTED: Final = 6
"""The most settings without an effect that the title names; of more it gives the number."""
ROOM: Final = 1.6
"""How much longer the scale is than the farthest end, for the figures at the right."""
LONG: Final = 24
"""With settings' names of more characters, panels are below each other."""
WIDEST: Final = 2.0
"""Intervals are cut off at so many times the largest change."""
LONGEST: Final = 40
"""Of settings' names in a tuning's chart; longer ones are shortened, not in the data."""
_PERCENT: Final = "datum.value == 0 ? '0' : format(datum.value, '+,.3~r') + ' %'"


@dataclass(frozen=True)
class SettingChange:
    """A changed setting and its effect."""

    setting: str
    effect: Effect

    @property
    def percent(self) -> float:
        return 0.0 if self.effect.ratio is None else percent(self.effect.ratio.value)

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of its interval in per cent; without one, the change."""
        ratio = self.effect.ratio
        if ratio is None or ratio.low is None or ratio.high is None:
            return self.percent, self.percent
        return percent(ratio.low), percent(ratio.high)

    @property
    def size(self) -> float:
        """How far the change is from none, either way: a half is as far as a double."""
        return 0.0 if self.effect.ratio is None else self.effect.ratio.either_way


def tornado_charts(source: ChartSource) -> tuple[Chart, ...]:
    """A tornado for each objective; of other runs one for throughput and one for p90."""
    result = tuned(source.data)
    if result is not None:
        return tornados(result)
    changes = (
        () if source.comparison is None else setting_changes(source.comparison, source.layouts)
    )
    metrics: tuple[MetricKey, ...] = ("throughput", "p90")
    charts = (tornado(changes, metric) for metric in metrics)
    return tuple(chart for chart in charts if chart is not None)


def setting_changes(
    comparison: Comparison, layouts: Sequence[PlannedLayout]
) -> tuple[SettingChange, ...]:
    """The effect of each layout's settings compared with the baseline's.

    Over all worker counts, or at the only one. Empty unless all layouts are the baseline's gateway
    with other settings. Latencies in bins have no change to draw and are left out.
    """
    named = settings_of(layouts, comparison.baseline)
    if named is None:
        return ()
    counts: dict[Kind, set[int]] = {}
    for effect in comparison.effects:
        counts.setdefault(kind_of(effect), set()).update(
            [effect.workers] if effect.workers is not None else []
        )
    return tuple(
        SettingChange(setting=named[effect.subject], effect=effect)
        for effect in comparison.effects
        if effect.subject in named
        and (effect.workers is None) == (len(counts[kind_of(effect)]) != 1)
        and not in_bins(effect)
    )


def settings_of(layouts: Sequence[PlannedLayout], baseline: str) -> dict[str, str] | None:
    """By layout its change: `radosgw.threads 512 → 64`. None where layouts differ in more than
    settings, or there is one.
    """
    first = next((layout for layout in layouts if layout.name == baseline), None)
    others = [layout for layout in layouts if layout.name != baseline]
    if first is None or not others:
        return None
    named = {}
    for layout in others:
        if layout.gateway != first.gateway or layout.place != first.place:
            return None
        before, after = (_flat({"release": one.release, **one.settings}) for one in (first, layout))
        names = [
            name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)
        ]
        # Without settings in the plan, as in old runs, only the layouts' names are known.
        if not names and not layout.name.startswith(baseline):
            return None
        changes = [
            f"{name} {_shown(before.get(name, first.by_size.get(name)))} → "
            f"{_shown(after.get(name, layout.by_size.get(name)))}"
            for name in names
        ]
        named[layout.name] = changes[0] if len(changes) == 1 else layout.name
    return named


def tornado(changes: Sequence[SettingChange], metric: MetricKey = "throughput") -> Chart | None:
    """The chart of one metric; None where nothing could be compared."""
    mine = [one for one in changes if one.effect.metric == metric]
    known = [one for one in mine if one.effect.ratio is not None]
    if not known:
        return None
    groups: dict[Kind, list[SettingChange]] = {}
    for one in mine:
        groups.setdefault(kind_of(one.effect), []).append(one)
    panels = []
    for kind, group in groups.items():
        first = group[0].effect
        over = "all worker counts" if first.workers is None else counted(first.workers, "worker")
        if any(one.effect.ratio is not None for one in group):
            title = f"{upper(first.about)}, {over}"
            ordered = sorted(group, key=lambda one: one.size, reverse=True)
            panels.append(change_panel(ordered, "-".join(kind), title))
    better = "more" if metric == "throughput" else "shorter"
    return Chart(
        key="tornado" if metric == "throughput" else f"tornado-{metric}",
        title=f"What each setting does to {METRICS[metric].name}",
        finding=finding(mine),
        caption=f"Change of {METRICS[metric].name} from {known[0].effect.baseline}; line: 95 % "
        f"interval. Blue: better, {better}. Orange: worse. Grey: {_without(mine)}",
        panels=tuple(panels),
        columns=1 if max(len(one.setting) for one in mine) > LONG else 2,
    )


def tornados(result: TuningResult) -> tuple[Chart, ...]:
    """A chart for each objective of a tuning, of the settings that change it most."""
    charts = (_of_objective(result, number) for number in range(len(result.run.objectives)))
    return tuple(chart for chart in charts if chart is not None)


def _of_objective(result: TuningResult, number: int) -> Chart | None:
    objective, called = result.run.objectives[number], result.called(number)
    mine = [
        SettingChange(setting=one.name, effect=one.effects[number])
        for one in result.table.entries
        if len(one.effects) > number
    ]
    ordered = sorted(mine, key=lambda one: one.size, reverse=True)
    known = [one for one in ordered if one.effect.ratio is not None]
    if not known:
        return None
    metric = objective.of
    same = [one.of for one in result.run.objectives[: number + 1]].count(metric)
    base = "tornado" if metric == "throughput" else f"tornado-{metric}"
    left = len(known) - MAX_SETTINGS
    looks = result.table.looks
    sure = f"95 % interval, widened for {looks} looks" if looks > 1 else "95 % interval"
    better = "more" if METRICS[metric].better == "more" else "shorter"
    more = f" {left} with smaller effects are only in the table." if left > 0 else ""
    names = [one.setting for one in known]
    brief = short_names(names) if max(map(len, names)) > LONGEST else {}
    shown = [replace(one, setting=brief.get(one.setting, one.setting)) for one in known]
    panel = change_panel(shown[:MAX_SETTINGS], f"objective-{number + 1}", upper(called))
    rest = [_change_row(one) for one in mine if one.effect.ratio is None]
    # In the data, settings have their whole names.
    rows = [{**row, "setting": one.setting} for row, one in zip(panel.rows, known, strict=False)]
    rows += [_change_row(one) for one in known[MAX_SETTINGS:]]
    return Chart(
        key=f"{base}-{same}" if same > 1 else base,
        title=f"What each setting does to the {called}",
        finding=finding(mine, called),
        caption=f"Change from {result.table.baseline.name} beside it in time; line: {sure}. "
        f"Blue: better, {better}. Orange: worse. Grey, ~: no significant effect.{more}",
        panels=(replace(panel, rows=[*rows, *rest]),),
        columns=1,
    )


def finding(found: Sequence[SettingChange], called: str = "") -> str:
    """The setting with the largest significant effect, if any; `called`: a tuning's objective."""
    metric = found[0].effect.metric
    known = [one for one in found if one.effect.ratio is not None]
    shown = [one for one in known if one.effect.verdict in {"better", "worse"}]
    settings = len({one.setting for one in found})
    if not shown:
        few = all(one.effect.verdict == "provisional" for one in known)
        why = f": fewer than {REPEATS_FOR_A_CLAIM} repeats" if few else ""
        what = f"the {called}" if called else METRICS[metric].name
        return (
            f"Of {settings} setting{'s' * (settings > 1)} none has a significant effect on "
            f"{what}{why}"
        )
    most = max(shown, key=lambda one: one.size)
    change = show_percent(most.effect.ratio.value) if most.effect.ratio is not None else UNKNOWN
    if called:
        return f"{most.setting} changes the {called} most: {change}"
    return f"{most.setting} changes {METRICS[metric].name} most: {change} in {most.effect.about}"


def _without(found: Sequence[SettingChange]) -> str:
    """Settings that were measured and have no significant effect anywhere."""
    shown = {one.setting for one in found if one.effect.verdict in {"better", "worse"}}
    measured = dict.fromkeys(one.setting for one in found if one.effect.ratio is not None)
    rest = [name for name in measured if name not in shown]
    if not rest:
        return "no significant effect."
    names = "; ".join(rest) if len(rest) <= LISTED else f"{len(rest)} settings"
    return f"no significant effect: {names}."


def change_panel(ordered: Sequence[SettingChange], key: str, title: str) -> Panel:
    """The panel of changes in this order. Nothing can fall by more than 100 %."""
    known = [one for one in ordered if one.effect.ratio is not None]
    farthest = max((abs(one.percent) for one in known), default=1.0) or 1.0
    reached = max((abs(end) for one in known for end in one.ends), default=0.0)
    bound = min(max(farthest, reached), WIDEST * farthest)
    low, high = max(-100.0, -bound), ROOM * bound
    _, step = nice_top((high - low) / 2)
    ticks = [step * number for number in range(-int(-low / step), int(bound / step) + 1)]
    rows = []
    for one in ordered:
        ends = [min(max(end, low), bound) for end in one.ends]
        drawn = {"_name": one.setting, "_low": ends[0], "_high": ends[1], "_to": max(ends[1], 0.0)}
        rows.append({**_change_row(one), **drawn})
    bars = []
    for style, sign, colour in (
        ("", "", {**TONE, "field": "_tone"}),
        ("grey", "!", {"value": "$axis"}),
    ):
        where = f"isValid(datum._name) && {sign}isValid(datum._tone)"
        bar = layer("bar", style, where, x="change_percent", x2={"datum": 0}, color=colour)
        bar["mark"]["height"] = {"band": 0.62}
        bars.append(bar)
    whiskers = [
        layer("rule", style, "datum._low < datum._high", x="_low", x2="_high")
        for style in ("whisker-edge", "whisker")
    ]
    zero = layer("rule", "zero", x={"datum": 0})
    zero["encoding"] |= FULL_HEIGHT
    scale = AxisScale(low=low, high=high, ticks=tuple(ticks))
    names = {**names_encoding([one.setting for one in ordered]), "field": "_name"}
    return Panel(
        key=key,
        title=title,
        rows=rows,
        spec={
            "encoding": {"x": scale.encoding(labelExpr=_PERCENT, grid=True), "y": names},
            "layer": [*bars, *whiskers, zero, layer("text", "figure", x="_to", text="_text")],
        },
        height=ROW_PX * len(ordered) + 30,
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
    for number, _ in enumerate(result.run.objectives):
        readings = [
            one for one in result.table.readings if one.objective == number and one.trial in trials
        ]
        if any(one.value is not None for one in readings):
            panels.append(_trials_panel(result, number, readings, trials))
    drifts = [one.words for one in result.table.drift]
    chart = Chart(
        key="drift",
        title="Every trial, in order of time",
        finding=upper(drifts[0].rstrip("."))
        if drifts
        else "The drift of the baseline is not known",
        caption=f"Line: {result.table.baseline.name}, repeated before and after every few "
        "settings. Blue: a setting that is better, orange: worse, grey: no significant effect. "
        "Dashed: a restart. Each trial is compared with the line beside it.",
        panels=tuple(panels),
        columns=1,
    )
    return (chart,) if panels else ()


def _trials_panel(
    result: TuningResult, number: int, readings: Sequence[Reading], trials: dict[int, Trial]
) -> Panel:
    metric = METRICS[result.run.objectives[number].of]
    drift = next((one for one in result.table.drift if one.objective == number), None)
    verdicts = {one.variant.name: one.verdict for one in result.table.entries}
    names = {one.variant.name: one.name for one in result.table.entries}
    rows = []
    for one in readings:
        trial, arm = trials[one.trial], trials[one.trial].arm
        rows.append(
            {
                "trial": one.trial + 1,
                "round": trial.round + 1,
                "deployment": trial.deployment,
                "started_s": trial.started_s,
                "setting": "baseline" if arm.is_baseline else names.get(arm.name, arm.name),
                "objective": result.run.objectives[number].words,
                "value": one.value,
                "baseline_beside": one.reference,
                "why": one.why,
                "_baseline": arm.is_baseline,
                "_tone": CLAIMED.get(verdicts.get(arm.name, "")),
            }
        )
    high, step = nice_top(max(trials) + 1)
    step = max(1.0, step)
    last = max(trials) + 1
    ticks = [step * place for place in range(1, int(high / step) + 1) if step * place <= last]
    x = AxisScale(low=0.5, high=max(last + 0.5, 2.0), ticks=tuple(ticks), title="trial")
    y = AxisScale.around([one.value for one in readings if one.value is not None], metric.unit)
    restarts = layer("rule", "level", x={"field": "at"})
    restarts["encoding"] |= FULL_HEIGHT
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
        one_kind = layer("point", "sure", f"!datum._baseline && {where}", y="value", color=colour)
        one_kind["mark"]["shape"] = "diamond"
        settings.append(one_kind)
    baseline = "datum._baseline && isValid(datum.value)"
    line = layer("line", "path", baseline, y="value", color=INK)
    line["encoding"]["detail"] = {"field": "deployment", "type": "nominal"}
    points = layer("point", "sure", baseline, y="value", color=INK)
    finding_words = "" if drift is None or number == 0 else _drift_finding(drift.words)
    return Panel(
        key=f"objective-{number + 1}",
        title=upper(result.called(number)),
        finding=finding_words,
        rows=rows,
        spec={
            "encoding": {"x": {**x.encoding(), "field": "trial"}, "y": y.encoding()},
            "layer": [restarts, *settings, line, points],
        },
        height=250,
    )


def _drift_finding(words: str) -> str:
    """The part of a drift's words about the baseline: the title has the objective."""
    return upper(words.partition(": ")[2].partition(";")[0])


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in settings.items():
        key = f"{before}{name}"
        found |= _flat(value, f"{key}.") if isinstance(value, dict) else {key: value}
    return found


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "unset" if value is None else str(value)
