"""The tornado of a tuning: how far each setting moved a metric from the baseline, the largest
change on top.

Of every setting that was changed a bar goes from no change to what was measured, with its interval;
what is not shown to have an effect is grey, and is listed below the title, since that list is half
of what a tuning teaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.tuning.ledger_table import short_names
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.change_map import in_bins
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, at_count, upper
from weighbridge.results.charts.placing import nice_top
from weighbridge.results.figures import UNKNOWN
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.percent import percent, show_percent
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

ROW_PX: Final = 38
WIDTH: Final = 460
LISTED: Final = 6
"""So many settings without an effect are named in the title; with more, how many."""
ROOM: Final = 1.5
"""How much longer the scale is than what reaches farthest: figures stand at the outer end of each
bar.
"""
LONG: Final = 28
"""Characters of a setting's name from which on panels stand one below the other."""
MOST: Final = 20
"""Bars of a tuning's figure."""
CROWDED: Final = 12
"""From so many bars on they stand nearer to each other."""
LONGEST: Final = 64
"""Characters of a setting's name from which on a tuning's figure leaves out what keys begin with;
its data have all of it.
"""
NAME_PX: Final = 7.0
"""Width of a letter of such a name, on average."""
WIDEST: Final = 2.0
"""So many times the largest change is drawn of an interval; what is beyond it is cut off."""
CLAIMED: Final = {"better": 2 / 3, "worse": -2 / 3}
"""How strong the colour of what may be claimed is."""


class Tuned(Record):
    """A setting that was changed, and what that did."""

    setting: str
    effect: Effect


def tuned(comparison: Comparison, layouts: Sequence[PlannedLayout]) -> tuple[Tuned, ...]:
    """What each layout of a comparison sets otherwise than its baseline, over all worker counts or
    at the only one there is.

    Empty unless all layouts are the baseline's gateway at other settings: what differs in more than
    settings is no tuning. Latencies that are told in bins have no change to draw, and are not among
    them.
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
        Tuned(setting=named[effect.subject], effect=effect)
        for effect in comparison.effects
        if effect.subject in named
        and (effect.workers is None) == (len(counts[kind_of(effect)]) != 1)
        and not in_bins(effect)
    )


def tornado_charts(source: ChartSource) -> tuple[Figure, ...]:
    """Of a tuning a chart for each objective; of other runs one for throughput and one for p90
    where their layouts differ in settings alone.
    """
    if source.tuned is not None:
        return tornados(source.tuned)
    changed = () if source.comparison is None else tuned(source.comparison, source.layouts)
    return tuple(
        one for metric in ("throughput", "p90") if (one := tornado(changed, metric)) is not None
    )


def tornados(result: TuningResult) -> tuple[Figure, ...]:
    """The figures of a tuning: for each objective one, of the settings that move it most; the
    ledger's table has the rest.
    """
    return tuple(
        figure
        for number in range(len(result.run.objectives))
        if (figure := _of_objective(result, number))
    )


def _of_objective(result: TuningResult, number: int) -> Figure | None:
    """The tornado of one objective; None where nothing is known of it."""
    objective, called = result.run.objectives[number], result.called(number)
    mine = [
        Tuned(setting=one.name, effect=one.effects[number])
        for one in result.ledger.entries
        if len(one.effects) > number
    ]
    known = sorted((one for one in mine if one.effect.ratio is not None), key=_size, reverse=True)
    if not known:
        return None
    shown = known[:MOST]
    if max(len(one.setting) for one in shown) > LONGEST:
        brief = short_names([one.setting for one in known])
        shown = [one.model_copy(update={"setting": brief[one.setting]}) for one in shown]
    metric = objective.of
    same = [one.of for one in result.run.objectives[: number + 1]].count(metric)
    name = f"{'tornado' if metric == 'throughput' else f'tornado-{metric}'}{f'-{same}' if same > 1 else ''}"
    left = len(known) - len(shown)
    looks = result.ledger.looks
    sure = f"95 % interval, widened for {looks} looks" if looks > 1 else "95 % interval"
    better = "more" if METRICS[metric].better == "more" else "shorter"
    worst = f" {left} that move it less are in the table alone." if left else ""
    return Figure(
        name=name,
        title=f"What each setting does to the {called}",
        finding=finding(mine, called),
        caption=f"Change from {result.ledger.baseline.name} beside it in time; line: {sure}. "
        f"Blue: better, {better}. "
        f"Orange: worse. Grey, ~: no effect that can be claimed.{worst}",
        data=tornado_csv(mine),
        panels=(
            _panel(
                shown,
                f"objective-{number + 1}",
                upper(called),
                ("Setting", "Change", "Interval", "Trials", "Verdict"),
            ).model_copy(
                update={
                    "lines": tuple(_line(one) for one in sorted(mine, key=_size, reverse=True)),
                    "width": WIDTH + 60,
                    "height": (ROW_PX - 6 if len(shown) > CROWDED else ROW_PX) * len(shown),
                }
            ),
        ),
        columns=1,
        labels_px=round(NAME_PX * max(len(one.setting) for one in shown)),
    )


def settings_of(layouts: Sequence[PlannedLayout], baseline: str) -> dict[str, str] | None:
    """By layout, what it sets otherwise than the baseline: `radosgw.threads 512 → 64`; its name
    where that is not one setting.

    None where a layout is not the baseline with other settings, and where there is none beside it.
    """
    first = next((layout for layout in layouts if layout.name == baseline), None)
    others = [layout for layout in layouts if layout.name != baseline]
    if first is None or not others:
        return None
    told = {}
    for layout in others:
        if layout.gateway != first.gateway or layout.place != first.place:
            return None
        before, after = (_flat({"release": one.release, **one.settings}) for one in (first, layout))
        names = [
            name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)
        ]
        # Without settings in the plan, as in runs of long ago, all that is known is the layouts'
        # names.
        if not names and not layout.name.startswith(baseline):
            return None
        changes = [
            f"{name} {_shown(before.get(name))} → {_shown(after.get(name))}" for name in names
        ]
        told[layout.name] = changes[0] if len(changes) == 1 else layout.name
    return told


def tornado(found: Sequence[Tuned], metric: MetricKey = "throughput") -> Figure | None:
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
        "Blue: better, "
        f"{better}. Orange: worse. Grey: {_without(mine)}",
        data=tornado_csv(mine),
        panels=panels,
        columns=1 if len(panels) == 1 or max(len(one.setting) for one in mine) > LONG else 2,
    )


def finding(found: Sequence[Tuned], called: str = "") -> str:
    """The setting with the largest effect that can be claimed, or that none has one; `called`: on
    what, of a tuning's objective.
    """
    metric = found[0].effect.metric
    known = [one for one in found if one.effect.ratio is not None]
    shown = [one for one in known if one.effect.verdict in {"better", "worse"}]
    settings = len({one.setting for one in found})
    if not shown:
        few = all(one.effect.verdict == "provisional" for one in known)
        why = f": fewer than {REPEATS_FOR_A_CLAIM} repeats" if few else ""
        what = f"the {called}" if called else METRICS[metric].name
        return (
            f"Of {settings} setting{'s' * (settings > 1)} none has an effect on {what} that "
            f"can be claimed{why}"
        )
    most = max(shown, key=_size)
    change = show_percent(most.effect.ratio.value) if most.effect.ratio is not None else UNKNOWN
    if called:
        return f"{most.setting} changes the {called} most: {change}"
    return f"{most.setting} changes {METRICS[metric].name} most: {change} in {most.effect.about}"


def tornado_csv(found: Sequence[Tuned]) -> str:
    """All settings with their changes, a line each; of p90 more is worse."""
    head = (
        "setting",
        "about",
        "workers",
        "metric",
        "baseline",
        "subject",
        "change_percent",
        "low_percent",
        "high_percent",
    )
    lines = []
    for one in found:
        ratio = one.effect.ratio
        ends = (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)
        change = [None if end is None else percent(end) for end in ends]
        place = (one.setting, one.effect.about, one.effect.workers or "all", one.effect.metric)
        repeats = None if ratio is None else ratio.repeats
        lines.append(
            (
                *place,
                one.effect.baseline,
                one.effect.subject,
                *change,
                repeats,
                one.effect.q,
                one.effect.verdict,
            )
        )
    return csv_lines((*head, "repeats", "q", "verdict"), lines)


def _without(found: Sequence[Tuned]) -> str:
    """Settings that were measured and nowhere have an effect that can be claimed."""
    shown = {one.setting for one in found if one.effect.verdict in {"better", "worse"}}
    measured = dict.fromkeys(one.setting for one in found if one.effect.ratio is not None)
    rest = [name for name in measured if name not in shown]
    told = (
        ""
        if not rest
        else f": {'; '.join(rest)}"
        if len(rest) <= LISTED
        else f": {len(rest)} settings"
    )
    return f"no effect that can be claimed{told}."


def _size(one: Tuned) -> float:
    """How far a change is from none, either way: half as much is as far as twice as much."""
    ratio = one.effect.ratio
    return 0.0 if ratio is None else max(ratio.value, 1 / ratio.value)


def _kind_panel(group: Sequence[Tuned]) -> Panel:
    ordered = sorted(group, key=_size, reverse=True)
    first = group[0].effect
    over = "over all worker counts" if first.workers is None else at_count(first.workers)
    head = ("Setting", "Change", "95 % interval", "Repeats", "Verdict")
    return _panel(ordered, "-".join(kind_of(first)), f"{upper(first.about)}, {over}", head)


def _panel(ordered: Sequence[Tuned], key: str, title: str, head: tuple[str, ...]) -> Panel:
    changes = [percent(one.effect.ratio.value) for one in ordered if one.effect.ratio is not None]
    furthest = max((abs(change) for change in changes), default=1.0) or 1.0
    reached = [
        percent(end)
        for one in ordered
        if (ratio := one.effect.ratio)
        for end in (ratio.low, ratio.high)
        if end is not None
    ]
    bound = min(max([furthest, *(abs(end) for end in reached)]), WIDEST * furthest)
    end = ROOM * bound
    _, step = nice_top(end)
    ticks = tuple(step * number for number in range(-int(end / step), int(end / step) + 1))
    known = [one for one in ordered if one.effect.ratio is not None]
    whiskers = [
        Spot(x=max(low, -bound), x2=min(high, bound), y=one.setting)
        for one in known
        for low, high in [_reach(one)]
        if low < high
    ]
    marks = [
        Mark(kind="bar", spots=tuple(_bar(one) for one in known)),
        Mark(kind="whisker", spots=tuple(whiskers)),
        Mark(kind="zero", spots=(Spot(x=0.0, tone="ink"),)),
    ]
    for right in (True, False):
        mine = tuple(_words(one, bound) for one in ordered if (_change(one) >= 0) is right)
        marks.append(
            Mark(
                kind="strong text",
                spots=mine,
                align="left" if right else "right",
                dx=8 if right else -8,
            )
        )
    return Panel(
        key=key,
        title=title,
        x=AxisScale(low=-end, high=end, ticks=ticks, expression=_PERCENT),
        y=AxisScale.of_names([one.setting for one in ordered]),
        marks=tuple(marks),
        head=head,
        lines=tuple(_line(one) for one in ordered),
        width=WIDTH,
        height=ROW_PX * len(ordered),
    )


_PERCENT: Final = "datum.value == 0 ? '0' : format(datum.value, '+,.3~r') + ' %'"


def _change(one: Tuned) -> float:
    return 0.0 if one.effect.ratio is None else percent(one.effect.ratio.value)


def _reach(one: Tuned) -> tuple[float, float]:
    """The ends of its interval; its change alone where there is none."""
    ratio = one.effect.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return _change(one), _change(one)
    return percent(ratio.low), percent(ratio.high)


def _bar(one: Tuned) -> Spot:
    return Spot(
        x=_change(one),
        y=one.setting,
        tone=CLAIMED.get(one.effect.verdict, "axis"),
        tip=one.effect.text,
    )


def _words(one: Tuned, bound: float) -> Spot:
    """Its change, at the outer end of its bar and interval; `~` and brackets where nothing is
    claimed.
    """
    ratio, verdict = one.effect.ratio, one.effect.verdict
    change, (low, high) = _change(one), _reach(one)
    edge = min(bound, max(change, high)) if change >= 0 else max(-bound, min(change, low))
    label = "× not comparable" if ratio is None else show_percent(ratio.value)
    text = (
        f"({label})"
        if verdict == "provisional"
        else f"{label} ~"
        if verdict == "not shown"
        else label
    )
    return Spot(x=edge, y=one.setting, text=text, tone="ink" if verdict in CLAIMED else "muted")


def _line(one: Tuned) -> tuple[str, ...]:
    ratio = one.effect.ratio
    if ratio is None:
        return (one.setting, UNKNOWN, UNKNOWN, UNKNOWN, one.effect.verdict)
    known = ratio.low is not None and ratio.high is not None
    interval = (
        f"{show_percent(ratio.low or 1)} to {show_percent(ratio.high or 1)}" if known else UNKNOWN
    )
    return (
        one.setting,
        show_percent(ratio.value),
        interval,
        str(ratio.repeats),
        one.effect.verdict,
    )


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Settings within settings by names with dots."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= (
            _flat(value, f"{before}{name}.")
            if isinstance(value, dict)
            else {f"{before}{name}": value}
        )
    return found


def _shown(value: object) -> str:
    return (
        "unset"
        if value is None
        else {True: "on", False: "off"}[value]
        if isinstance(value, bool)
        else str(value)
    )
