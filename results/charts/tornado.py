"""The tornado of a tuning: how far each setting moved throughput or p90 from the baseline, the largest change on top.

Of every setting that was changed a bar goes from no change to what was measured, with its interval; what is not shown to have an
effect is grey, and is listed below the title, since that list is half of what a tuning teaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.tuning.ledger_table import short_names
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.charts.chart_theme import LIGHT, Look, diverging
from weighbridge.results.charts.figure import Figure, Plot
from weighbridge.results.charts.recap_map import in_bins
from weighbridge.results.figures import UNKNOWN
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.percent import percent, show_percent
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

ROW_PX: Final = 38
BAR_PX: Final = 20
WIDTH: Final = 460
LISTED: Final = 6
"""So many settings without an effect are named in the title; with more, how many."""
ROOM: Final = 1.5
"""How much longer the scale is than what reaches farthest: figures stand at the outer end of each bar."""
LONG: Final = 28
"""Characters of a setting's name from which on panels stand one below the other."""
MOST: Final = 20
"""Bars of a tuning's figure."""
CROWDED: Final = 12
"""From so many bars on they stand nearer to each other."""
NAMES_PX: Final = 560
"""Room for the name of a setting in a tuning's figure, which may have a long one."""
LONGEST: Final = 64
"""Characters of a setting's name from which on a tuning's figure leaves out what keys begin with; its data have all of it."""
NAME_PX: Final = 7.0
"""Width of a letter of such a name, on average."""
WIDEST: Final = 2.0
"""So many times the largest change is drawn of an interval; what is beyond it is cut off."""


class Tuned(Record):
    """A setting that was changed, and what that did."""

    setting: str
    effect: Effect


def tuned(comparison: Comparison, layouts: Sequence[PlannedLayout]) -> tuple[Tuned, ...]:
    """What each layout of a comparison sets otherwise than its baseline, over all worker counts or at the only one there is.

    Empty unless all layouts are the baseline's gateway at other settings: what differs in more than settings is no tuning.
    Latencies that are told in bins have no change to draw, and are not among them.
    """
    named = settings_of(layouts, comparison.baseline)
    if named is None:
        return ()
    counts: dict[Kind, set[int]] = {}
    for effect in comparison.effects:
        counts.setdefault(kind_of(effect), set()).update([effect.workers] if effect.workers is not None else [])
    return tuple(
        Tuned(setting=named[effect.subject], effect=effect)
        for effect in comparison.effects
        if effect.subject in named and (effect.workers is None) == (len(counts[kind_of(effect)]) != 1) and not in_bins(effect)
    )


def tornados(result: TuningResult, look: Look = LIGHT) -> tuple[Figure, ...]:
    """The figures of a tuning: for each objective one, of the settings that move it most; the ledger's table has the rest."""
    return tuple(figure for number in range(len(result.run.objectives)) if (figure := _of_objective(result, number, look)))


def _of_objective(result: TuningResult, number: int, look: Look) -> Figure | None:
    """The tornado of one objective; None where nothing is known of it."""
    objective, called = result.run.objectives[number], result.called(number)
    mine = [Tuned(setting=one.name, effect=one.effects[number]) for one in result.ledger.entries if len(one.effects) > number]
    known = sorted((one for one in mine if one.effect.ratio is not None), key=_size, reverse=True)
    if not known:
        return None
    shown = known[:MOST]
    if max(len(one.setting) for one in shown) > LONGEST:
        brief = short_names([one.setting for one in known])
        shown = [one.model_copy(update={"setting": brief[one.setting]}) for one in shown]
    metric = objective.of
    same = [one.of for one in result.run.objectives[: number + 1]].count(metric)
    name = f"{'tornado' if metric == 'throughput' else 'tornado-p90'}{f'-{same}' if same > 1 else ''}"
    left = len(known) - len(shown)
    looks = result.ledger.looks
    sure = f"95 % interval, widened for {looks} looks" if looks > 1 else "95 % interval"
    better = "more" if metric == "throughput" else "shorter"
    worst = f" {left} that move it less are in the table alone." if left else ""
    return Figure(
        name=name,
        title=f"What each setting does to the {called}",
        finding=finding(mine, called),
        caption=f"Change from {result.ledger.baseline.name} beside it in time; line: {sure}. Blue: better, {better}. "
        f"Orange: worse. Grey, ~: no effect that can be claimed.{worst}",
        csv=tornado_csv(mine),
        plots=(
            Plot(
                key=f"objective-{number + 1}",
                title=f"{called[:1].upper()}{called[1:]}",
                finding="",
                spec=_spec(shown, look, limit=NAMES_PX),
                head=("Setting", "Change", "Interval", "Trials", "Verdict"),
                lines=tuple(_line(one) for one in sorted(mine, key=_size, reverse=True)),
                width=WIDTH + 60,
                height=(ROW_PX - 6 if len(shown) > CROWDED else ROW_PX) * len(shown),
            ),
        ),
        columns=1,
        look=look,
        labels_px=min(NAMES_PX, round(NAME_PX * max(len(one.setting) for one in shown))),
    )


def settings_of(layouts: Sequence[PlannedLayout], baseline: str) -> dict[str, str] | None:
    """By layout, what it sets otherwise than the baseline: `radosgw.threads 512 → 64`; its name where that is not one setting.

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
        names = [name for name in dict.fromkeys((*before, *after)) if before.get(name) != after.get(name)]
        # Without settings in the plan, as in runs of long ago, all that is known is the layouts' names.
        if not names and not layout.name.startswith(baseline):
            return None
        changes = [f"{name} {_shown(before.get(name))} → {_shown(after.get(name))}" for name in names]
        told[layout.name] = changes[0] if len(changes) == 1 else layout.name
    return told


def tornado(found: Sequence[Tuned], look: Look = LIGHT, metric: MetricKey = "throughput") -> Figure | None:
    """The figure of one metric; None where nothing could be compared."""
    mine = [one for one in found if one.effect.metric == metric]
    known = [one for one in mine if one.effect.ratio is not None]
    if not known:
        return None
    kinds = list(dict.fromkeys(kind_of(one.effect) for one in mine))
    groups = [[one for one in mine if kind_of(one.effect) == kind] for kind in kinds]
    plots = tuple(_plot(group, look) for group in groups if any(one.effect.ratio is not None for one in group))
    better = "more" if metric == "throughput" else "shorter"
    interval = " with its 95 % interval" if any(one.effect.ratio and one.effect.ratio.low for one in known) else ""
    return Figure(
        name="tornado" if metric == "throughput" else "tornado-p90",
        title=f"What each setting does to {METRICS[metric].name}",
        finding=finding(mine),
        caption=f"Change of {METRICS[metric].name} from {known[0].effect.baseline}{interval}. Blue: better, "
        f"{better}. Orange: worse. Grey: {_without(mine)}",
        csv=tornado_csv(mine),
        plots=plots,
        columns=1 if len(plots) == 1 or max(len(one.setting) for one in mine) > LONG else 2,
        look=look,
    )


def finding(found: Sequence[Tuned], called: str = "") -> str:
    """The setting with the largest effect that can be claimed, or that none has one; `called`: on what, of a tuning's objective."""
    metric = found[0].effect.metric
    known = [one for one in found if one.effect.ratio is not None]
    shown = [one for one in known if one.effect.verdict in {"better", "worse"}]
    settings = len({one.setting for one in found})
    if not shown:
        few = all(one.effect.verdict == "provisional" for one in known)
        why = f": fewer than {REPEATS_FOR_A_CLAIM} repeats" if few else ""
        what = f"the {called}" if called else METRICS[metric].name
        return f"Of {settings} setting{'s' * (settings > 1)} none has an effect on {what} that can be claimed{why}"
    most = max(shown, key=_size)
    change = show_percent(most.effect.ratio.value) if most.effect.ratio is not None else UNKNOWN
    if called:
        return f"{most.setting} changes the {called} most: {change}"
    return f"{most.setting} changes {METRICS[metric].name} most: {change} in {most.effect.about}"


def tornado_csv(found: Sequence[Tuned]) -> str:
    """All settings with their changes, a line each; of p90 more is worse."""
    head = ("setting", "about", "workers", "metric", "baseline", "subject", "change_percent", "low_percent", "high_percent")
    lines = []
    for one in found:
        ratio = one.effect.ratio
        ends = (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)
        change = [None if end is None else percent(end) for end in ends]
        place = (one.setting, one.effect.about, one.effect.workers or "all", one.effect.metric)
        repeats = None if ratio is None else ratio.repeats
        lines.append((*place, one.effect.baseline, one.effect.subject, *change, repeats, one.effect.q, one.effect.verdict))
    return csv_lines((*head, "repeats", "q", "verdict"), lines)


def _without(found: Sequence[Tuned]) -> str:
    """Settings that were measured and nowhere have an effect that can be claimed."""
    shown = {one.setting for one in found if one.effect.verdict in {"better", "worse"}}
    measured = dict.fromkeys(one.setting for one in found if one.effect.ratio is not None)
    rest = [name for name in measured if name not in shown]
    told = "" if not rest else f": {'; '.join(rest)}" if len(rest) <= LISTED else f": {len(rest)} settings"
    return f"no effect that can be claimed{told}."


def _size(one: Tuned) -> float:
    """How far a change is from none, either way: half as much is as far as twice as much."""
    ratio = one.effect.ratio
    return 0.0 if ratio is None else max(ratio.value, 1 / ratio.value)


def _plot(group: Sequence[Tuned], look: Look) -> Plot:
    ordered = sorted(group, key=_size, reverse=True)
    about = group[0].effect.about
    workers = group[0].effect.workers
    over = "over all worker counts" if workers is None else f"{workers} worker{'s' * (workers > 1)}"
    return Plot(
        key="-".join(kind_of(group[0].effect)),
        title=f"{about[:1].upper()}{about[1:]}, {over}",
        finding="",
        spec=_spec(ordered, look),
        head=("Setting", "Change", "95 % interval", "Repeats", "Verdict"),
        lines=tuple(_line(one) for one in ordered),
        width=WIDTH,
        height=ROW_PX * len(ordered),
    )


def _spec(ordered: Sequence[Tuned], look: Look, limit: int = 420) -> dict[str, Any]:
    changes = [percent(one.effect.ratio.value) for one in ordered if one.effect.ratio is not None]
    furthest = max((abs(change) for change in changes), default=1.0) or 1.0
    reached = [percent(end) for one in ordered if (ratio := one.effect.ratio) for end in (ratio.low, ratio.high) if end is not None]
    bound = min(max([furthest, *(abs(end) for end in reached)]), WIDEST * furthest)
    values = [_drawn(one, bound, look) for one in ordered]
    order = [value["setting"] for value in values]
    end = ROOM * bound
    scale = alt.Scale(domain=[-end, end], nice=False)
    marks = alt.Axis(
        format="+,.3~r", tickCount=5, labelExpr="datum.value == 0 ? '0' : datum.label + ' %'", domain=False, ticks=False
    )
    x = {field: alt.X(f"{field}:Q", scale=scale, title=None, axis=marks) for field in ("change", "low", "edge")}
    axis = alt.Axis(domain=False, ticks=False, labelFontSize=14, labelLimit=limit, labelPadding=8, labelOverlap=False)
    y = alt.Y("setting:N", sort=order, title=None, scale=alt.Scale(domain=order), axis=axis)
    base = alt.Chart(alt.InlineData(values=values))
    known = base.transform_filter("datum.known")
    bars = known.mark_bar(height=BAR_PX, cornerRadiusEnd=3).encode(
        x=x["change"], x2=alt.datum(0), y=y, color=alt.Color("colour:N", scale=None), tooltip=[alt.Tooltip("told:N", title=" ")]
    )
    ends = known.transform_filter("datum.low !== null").encode(x=x["low"], x2="high:Q", y=y)
    whiskers = [ends.mark_rule(strokeWidth=5, color=look.background), ends.mark_rule(strokeWidth=2, color=look.ink)]
    zero = alt.Chart(alt.InlineData(values=[{"change": 0}])).mark_rule(color=look.ink, strokeWidth=1.4).encode(x=x["change"])
    words = base.encode(x=x["edge"], y=y, text="label:N", color=alt.Color("ink:N", scale=None))
    right = words.transform_filter("datum.right").mark_text(align="left", dx=8, fontSize=14, fontWeight=600)
    left = words.transform_filter("!datum.right").mark_text(align="right", dx=-8, fontSize=14, fontWeight=600)
    layers = [bars, *whiskers, zero, right, left]
    return dict(alt.layer(*layers).to_dict(validate=False))


def _drawn(one: Tuned, bound: float, look: Look) -> dict[str, Any]:
    ratio, verdict = one.effect.ratio, one.effect.verdict
    claimed = verdict in {"better", "worse"}
    worst, best = diverging(look)[1], diverging(look)[-2]
    change = 0.0 if ratio is None else percent(ratio.value)
    ends = (None, None) if ratio is None else (ratio.low, ratio.high)
    low, high = (None if end is None else percent(end) for end in ends)
    right = change >= 0
    whisker = change if low is None or high is None else high if right else low
    label = "× not comparable" if ratio is None else show_percent(ratio.value)
    return {
        "setting": one.setting,
        "change": change,
        "low": None if low is None else max(low, -bound),
        "high": None if high is None else min(high, bound),
        "edge": min(bound, max(change, whisker)) if right else max(-bound, min(change, whisker)),
        "right": right,
        "known": ratio is not None,
        "colour": look.axis if not claimed else best if verdict == "better" else worst,
        "ink": look.ink if claimed else look.muted,
        "label": f"({label})" if verdict == "provisional" else f"{label} ~" if verdict == "not shown" else label,
        "told": one.effect.text,
    }


def _line(one: Tuned) -> tuple[str, ...]:
    ratio = one.effect.ratio
    if ratio is None:
        return (one.setting, UNKNOWN, UNKNOWN, UNKNOWN, one.effect.verdict)
    known = ratio.low is not None and ratio.high is not None
    interval = f"{show_percent(ratio.low or 1)} to {show_percent(ratio.high or 1)}" if known else UNKNOWN
    return (one.setting, show_percent(ratio.value), interval, str(ratio.repeats), one.effect.verdict)


def _flat(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Settings within settings by names with dots."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, dict) else {f"{before}{name}": value}
    return found


def _shown(value: object) -> str:
    return "unset" if value is None else {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
