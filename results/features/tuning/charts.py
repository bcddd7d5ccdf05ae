"""Charts of settings: how far each moved a metric from the baseline, and a tuning's trials in time.

The tornado has the largest change on top. A bar goes from no change to the measured one, with its
interval. Settings without a significant effect are grey and listed below the title, since that
list is half of what a tuning teaches. In the chart of trials the baseline's are joined by a line,
so that drift and interleaving can be seen.
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
    own = [one for one in changes if one.effect.metric == metric]
    groups: dict[Kind, list[SettingChange]] = {}
    for one in own:
        groups.setdefault(kind_of(one.effect), []).append(one)
    panels = []
    for kind, group in groups.items():
        first = group[0].effect
        over = "all worker counts" if first.workers is None else counted(first.workers, "worker")
        if any(one.effect.ratio is not None for one in group):
            ordered = sorted(group, key=lambda one: one.size, reverse=True)
            panels.append(change_panel(ordered, "-".join(kind), f"{upper(first.about)}, {over}"))
    if not panels:
        return None
    called = METRICS[metric].name
    return Chart(
        key=_key(metric),
        title=f"What each setting does to {called}",
        finding=finding(own, called, of_workload=True),
        caption=f"Change of {called} from {own[0].effect.baseline}; line: 95 % interval. "
        f"{_colours(metric)} Grey: {_without(own)}",
        panels=tuple(panels),
        columns=1 if max(len(one.setting) for one in own) > LONG else 2,
    )


def tornados(result: TuningResult) -> tuple[Chart, ...]:
    """A chart for each objective of a tuning, of the settings that change it most."""
    charts = []
    keys: list[str] = []
    for number, called in enumerate(result.called):
        metric = result.run.objectives[number].of
        keys.append(_key(metric))
        changes = changes_of(result, number)
        known = [one for one in changes if one.effect.ratio is not None]
        if not known:
            continue
        looks, left = result.table.looks, len(known) - MAX_SETTINGS
        sure = f"95 % interval, widened for {looks} looks" if looks > 1 else "95 % interval"
        more = f" {left} with smaller effects are only in the table." if left > 0 else ""
        charts.append(
            Chart(
                key=keys[-1] if keys.count(keys[-1]) == 1 else f"{keys[-1]}-{keys.count(keys[-1])}",
                title=f"What each setting does to the {called}",
                finding=finding(changes, f"the {called}"),
                caption=f"Change from {result.table.baseline.name} beside it in time; line: "
                f"{sure}. {_colours(metric)} Grey, ~: no significant effect.{more}",
                panels=(change_panel(changes, f"objective-{number + 1}", upper(called), known),),
                columns=1,
                section="tuning",
            )
        )
    return tuple(charts)


def changes_of(result: TuningResult, objective: int) -> list[SettingChange]:
    """What a tuning's settings did to one objective, the largest change first."""
    changes = [SettingChange(one.name, one.effects[objective]) for one in result.table.entries]
    return sorted(changes, key=lambda one: one.size, reverse=True)


def _key(metric: MetricKey) -> str:
    return "tornado" if metric == "throughput" else f"tornado-{metric}"


def _colours(metric: MetricKey) -> str:
    better = "more" if METRICS[metric].better == "more" else "shorter"
    return f"Blue: better, {better}. Orange: worse."


def finding(changes: Sequence[SettingChange], called: str, *, of_workload: bool = False) -> str:
    """The setting with the largest significant effect on what is called so, if any."""
    known = [one for one in changes if one.effect.ratio is not None]
    shown = [one for one in known if one.effect.verdict in ("better", "worse")]
    if not shown:
        settings = counted(len({one.setting for one in changes}), "setting")
        few = all(one.effect.verdict == "provisional" for one in known)
        why = f": fewer than {REPEATS_FOR_A_CLAIM} repeats" if few else ""
        return f"Of {settings} none has a significant effect on {called}{why}"
    most = max(shown, key=lambda one: one.size)
    change = UNKNOWN if most.effect.ratio is None else show_percent(most.effect.ratio.value)
    where = f" in {most.effect.about}" if of_workload else ""
    return f"{most.setting} changes {called} most: {change}{where}"


def _without(found: Sequence[SettingChange]) -> str:
    """Settings that were measured and have no significant effect anywhere."""
    shown = {one.setting for one in found if one.effect.verdict in {"better", "worse"}}
    measured = dict.fromkeys(one.setting for one in found if one.effect.ratio is not None)
    rest = [name for name in measured if name not in shown]
    if not rest:
        return "no significant effect."
    names = "; ".join(rest) if len(rest) <= LISTED else f"{len(rest)} settings"
    return f"no significant effect: {names}."


def change_panel(
    changes: Sequence[SettingChange],
    key: str,
    title: str,
    known: Sequence[SettingChange] | None = None,
) -> Panel:
    """The panel of changes in this order, the first of those that are `known` if only these are
    drawn; its data have all. Nothing can fall by more than 100 %.
    """
    drawn = list(changes if known is None else known[:MAX_SETTINGS])
    names = [one.setting for one in drawn]
    brief = short_names(names) if max(map(len, names)) > LONGEST else {}
    sizes = [abs(percent(one.effect.ratio.value)) for one in drawn if one.effect.ratio is not None]
    farthest = max(sizes, default=1.0) or 1.0
    reached = max((abs(end) for one in drawn for end in one.ends), default=0.0)
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
    named = {**names_encoding([brief.get(name, name) for name in names]), "field": "_name"}
    return Panel(
        key=key,
        title=title,
        rows=rows,
        spec={
            "encoding": {"x": scale.encoding(labelExpr=_PERCENT, grid=True), "y": named},
            "layer": [*bars, *whiskers, zero, layer("text", "figure", x="_to", text="_text")],
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
        points = layer("point", "sure", f"!datum._baseline && {where}", y="value", color=colour)
        points["mark"]["shape"] = "diamond"
        settings.append(points)
    where = "datum._baseline && isValid(datum.value)"
    line = layer("line", "path", where, y="value", color=INK)
    line["encoding"]["detail"] = {"field": "deployment", "type": "nominal"}
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
