"""The tornado: how far each setting moved a metric from the baseline, the largest change on top.

A bar goes from no change to the measured one, with its interval. Settings without a significant
effect are grey and listed below the title, since that list is half of what a tuning teaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.tuning.setting_lines import change_figure
from weighbridge.results.charts.change_map import in_bins
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Tone
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.figures import UNKNOWN, counted, percent, show_percent, upper
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

ROW_PX: Final = 38
WIDTH: Final = 460
LISTED: Final = 6
"""The most settings without an effect that the title names; of more it gives the number."""
ROOM: Final = 1.5
"""How much longer the scale is than the farthest end: figures are at the outer end of each bar."""
LONG: Final = 28
"""With settings' names of more characters, panels are below each other."""
WIDEST: Final = 2.0
"""Intervals are cut off at so many times the largest change."""
CLAIMED: Final = {"better": 2 / 3, "worse": -2 / 3}
"""The strength of the colour of significant changes."""


class SettingChange(Record):
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

    @property
    def line(self) -> tuple[str, ...]:
        """The cells of a table: setting, change, interval, repeats, verdict."""
        ratio = self.effect.ratio
        if ratio is None:
            return (self.setting, UNKNOWN, UNKNOWN, UNKNOWN, self.effect.verdict)
        interval = UNKNOWN
        if ratio.low is not None and ratio.high is not None:
            interval = f"{show_percent(ratio.low)} to {show_percent(ratio.high)}"
        change = show_percent(ratio.value)
        return (self.setting, change, interval, str(ratio.repeats), self.effect.verdict)


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


def tornado(found: Sequence[SettingChange], metric: MetricKey = "throughput") -> Figure | None:
    """The figure of one metric; None where nothing could be compared."""
    mine = [one for one in found if one.effect.metric == metric]
    known = [one for one in mine if one.effect.ratio is not None]
    if not known:
        return None
    kinds = list(dict.fromkeys(kind_of(one.effect) for one in mine))
    groups = [[one for one in mine if kind_of(one.effect) == kind] for kind in kinds]
    panels = tuple(
        _kind_panel(group) for group in groups if any(one.effect.ratio is not None for one in group)
    )
    better = "more" if metric == "throughput" else "shorter"
    interval = (
        " with its 95 % interval"
        if any(one.effect.ratio and one.effect.ratio.low for one in known)
        else ""
    )
    return Figure(
        name="tornado" if metric == "throughput" else f"tornado-{metric}",
        title=f"What each setting does to {METRICS[metric].name}",
        finding=finding(mine),
        caption=f"Change of {METRICS[metric].name} from {known[0].effect.baseline}{interval}. "
        f"Blue: better, {better}. Orange: worse. Grey: {_without(mine)}",
        data=tornado_csv(mine),
        panels=panels,
        columns=1 if len(panels) == 1 or max(len(one.setting) for one in mine) > LONG else 2,
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


def tornado_csv(found: Sequence[SettingChange]) -> str:
    """All settings with their changes, a line each; for p90 more is worse."""
    head = (
        *("setting", "about", "workers", "metric", "baseline", "subject"),
        *("change_percent", "low_percent", "high_percent", "repeats", "q", "verdict"),
    )
    lines = []
    for one in found:
        ratio, effect = one.effect.ratio, one.effect
        ends = (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)
        lines.append(
            (
                *(one.setting, effect.about, effect.workers or "all", effect.metric),
                *(effect.baseline, effect.subject),
                *(None if end is None else percent(end) for end in ends),
                *(None if ratio is None else ratio.repeats, effect.q, effect.verdict),
            )
        )
    return csv_lines(head, lines)


def _without(found: Sequence[SettingChange]) -> str:
    """Settings that were measured and have no significant effect anywhere."""
    shown = {one.setting for one in found if one.effect.verdict in {"better", "worse"}}
    measured = dict.fromkeys(one.setting for one in found if one.effect.ratio is not None)
    rest = [name for name in measured if name not in shown]
    if not rest:
        return "no significant effect."
    names = "; ".join(rest) if len(rest) <= LISTED else f"{len(rest)} settings"
    return f"no significant effect: {names}."


def _kind_panel(group: Sequence[SettingChange]) -> Panel:
    ordered = sorted(group, key=lambda one: one.size, reverse=True)
    first = group[0].effect
    over = "over all worker counts" if first.workers is None else counted(first.workers, "worker")
    head = ("Setting", "Change", "95 % interval", "Repeats", "Verdict")
    return change_panel(ordered, "-".join(kind_of(first)), f"{upper(first.about)}, {over}", head)


def change_panel(
    ordered: Sequence[SettingChange], key: str, title: str, head: tuple[str, ...]
) -> Panel:
    """The panel of changes in this order, with the columns of its table."""
    known = [one for one in ordered if one.effect.ratio is not None]
    farthest = max((abs(one.percent) for one in known), default=1.0) or 1.0
    reached = max((abs(end) for one in known for end in one.ends), default=0.0)
    bound = min(max(farthest, reached), WIDEST * farthest)
    end = ROOM * bound
    _, step = nice_top(end)
    ticks = tuple(step * number for number in range(-int(end / step), int(end / step) + 1))
    whiskers = [
        Spot(x=max(low, -bound), x2=min(high, bound), y=one.setting)
        for one in known
        for low, high in [one.ends]
        if low < high
    ]
    right, left = (
        tuple(_label(one, bound) for one in ordered if (one.percent >= 0) is wanted)
        for wanted in (True, False)
    )
    return Panel(
        key=key,
        title=title,
        x=AxisScale(low=-end, high=end, ticks=ticks, expression=_PERCENT),
        y=AxisScale.of_names([one.setting for one in ordered]),
        marks=(
            Mark(kind="bar", spots=tuple(_bar(one) for one in known)),
            Mark(kind="whisker", spots=tuple(whiskers)),
            Mark(kind="zero", spots=(Spot(x=0.0, tone="ink"),)),
            Mark(kind="strong text", spots=right, align="left", dx=8),
            Mark(kind="strong text", spots=left, align="right", dx=-8),
        ),
        head=head,
        lines=tuple(one.line for one in ordered),
        width=WIDTH,
        height=ROW_PX * len(ordered),
    )


_PERCENT: Final = "datum.value == 0 ? '0' : format(datum.value, '+,.3~r') + ' %'"


def _bar(one: SettingChange) -> Spot:
    return Spot(
        x=one.percent,
        y=one.setting,
        tone=CLAIMED.get(one.effect.verdict, "axis"),
        tip=one.effect.text,
    )


def _label(one: SettingChange, bound: float) -> Spot:
    low, high = one.ends
    edge = (
        min(bound, max(one.percent, high))
        if one.percent >= 0
        else max(-bound, min(one.percent, low))
    )
    text = "× not comparable" if one.effect.ratio is None else change_figure(one.effect)
    tone: Tone = "ink" if one.effect.verdict in CLAIMED else "muted"
    return Spot(x=edge, y=one.setting, text=text, tone=tone)


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
