"""The recap of a comparison: a map of per cent change, kinds of requests and layouts down, worker counts across.

Better is blue and worse is orange, of throughput as of p90; only what may be claimed has a colour. What was not shown is `~`, what
makes no claim is in brackets, and what could not be compared is an empty frame: a reader from the last row sees only what is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.charts.chart_theme import LIGHT, Look, colour_at, diverging, ink_on, neutral
from weighbridge.results.charts.figure import Figure, Plot
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.percent import percent, show_percent
from weighbridge.results.statistics import Ratio

RECAP_MAP: Final = "recap-map"
"""What the names of these figures begin with."""
CLIP: Final = 0.5
"""The change that has the full colour: 50 %."""
WIDTH: Final = 780
"""Wide enough for the title above it."""
CELL_WIDTH: Final = 104
CELL_WIDEST: Final = 160
CELL_HEIGHT: Final = 46
GAP: Final = 0.06
"""Of a cell, between two."""
LABEL_PX: Final = 15
ALL: Final = "all"


def recap_maps(comparison: Comparison, look: Look = LIGHT) -> tuple[Figure, ...]:
    """A map of each metric; those without anything to compare are left out."""
    made = (_figure(comparison, metric, look) for metric in METRICS)
    return tuple(figure for figure in made if figure is not None)


def _figure(comparison: Comparison, metric: MetricKey, look: Look) -> Figure | None:
    effects = [effect for effect in comparison.effects if effect.metric == metric]
    if not any(effect.ratio is not None for effect in effects):
        return None
    against = f"against {_against(effects, comparison)}"
    about = f"{comparison.subjects[0]} {against}" if len(comparison.subjects) == 1 else against
    better, worse = ("more", "less") if metric == "throughput" else ("shorter", "longer")
    head = (
        *("About", "Subject", "Workers", f"{comparison.baseline} {METRICS[metric].unit}", f"Subject {METRICS[metric].unit}"),
        *("Change", "95 % interval", "Repeats", "Verdict"),
    )
    columns, rows = _columns(effects), _rows(effects)
    plot = Plot(
        key=metric,
        title=f"Change of {METRICS[metric].name} by workers, {about}",
        finding="",
        spec=_spec(effects, columns, rows, look),
        head=head,
        lines=tuple(_line(effect) for effect in effects),
        width=len(columns) * min(CELL_WIDEST, max(CELL_WIDTH, WIDTH // len(columns))),
        height=len(rows) * CELL_HEIGHT,
    )
    return Figure(
        name=RECAP_MAP if metric == "throughput" else f"{RECAP_MAP}-{metric}",
        title=f"Recap: {METRICS[metric].name}",
        finding=finding(effects, comparison),
        caption=f"Blue: better, {better} {METRICS[metric].name}. Orange: worse, {worse}. Full colour from {CLIP * 100:.0f} %. "
        f"Grey: no claim: ~ no difference shown, a number alone too small to matter, in brackets provisional."
        f" × not comparable.{_noise(comparison, metric)}{_unlike(comparison)}",
        csv=recap_csv(effects),
        plots=(plot,),
        columns=1,
        look=look,
    )


def finding(effects: Sequence[Effect], comparison: Comparison) -> str:
    """In how many cells a subject is better or worse than the baseline; of several subjects together."""
    metric = effects[0].metric
    cells = [effect for effect in effects if effect.workers is not None]
    known = [effect for effect in cells if effect.ratio is not None]
    noun = "cell" if len(known) == 1 else "cells"
    if not known:
        return f"Nothing could be compared with {_against(effects, comparison)}"
    if all(effect.verdict == "provisional" for effect in known):
        where = f"{'each' if len(known) > 2 else 'both'} of {len(known)} cells" if len(known) > 1 else "the one cell"
        why = "; ".join(dict.fromkeys(doubt.words for effect in known for doubt in effect.doubts))
        return f"{_upper(METRICS[metric].name)} is provisional in {where} that could be compared: {why}"
    better, worse = (sum(effect.verdict == verdict for effect in known) for verdict in ("better", "worse"))
    one = len(comparison.subjects) == 1
    against = _against(effects, comparison)
    others = "the other layouts" if against == comparison.baseline else "layouts of the other run"
    who = comparison.subjects[0] if one else others
    words = ("faster", "slower") if metric == "throughput" else ("a shorter", "a longer")
    tail = "" if metric == "throughput" else f" {METRICS[metric].name}"
    verb = ("is" if one else "are") if metric == "throughput" else ("has" if one else "have")
    parts = [f"{word}{tail} in {count} of {len(known)} {noun}" for word, count in zip(words, (better, worse), strict=True) if count]
    if not parts:
        where = f"any of {len(known)} cells" if len(known) > 1 else "the one cell that could be compared"
        return f"No difference of {METRICS[metric].name} from {against} can be claimed in {where}"
    return f"Against {against}, {who} {verb} {' and '.join(parts)}"


def _upper(name: str) -> str:
    """The name of a metric at the head of a sentence; a percentile's stays as it is."""
    return name if name[1:2].isdigit() else f"{name[:1].upper()}{name[1:]}"


def recap_csv(effects: Sequence[Effect]) -> str:
    """All cells of a map, a line each; changes in per cent, of p90 more is worse."""
    head = (
        *("about", "workload", "operation", "api", "driver", "workers", "metric", "baseline", "subject"),
        *("baseline_value", "subject_value", "change_percent", "low_percent", "high_percent", "repeats", "p", "q", "verdict"),
    )
    lines = []
    for one in effects:
        ratio = one.ratio
        ends = (None, None, None) if ratio is None else (None if in_bins(one) else ratio.value, ratio.low, ratio.high)
        change = (None if end is None else percent(end) for end in ends)
        place = (one.about, one.workload, one.operation, one.api, one.driver, one.workers or ALL, one.metric)
        repeats = None if one.ratio is None else one.ratio.repeats
        values = (one.baseline_value, one.subject_value)
        lines.append((*place, one.baseline, one.subject, *values, *change, repeats, one.p, one.q, one.verdict))
    return csv_lines(head, lines)


def _noise(comparison: Comparison, metric: MetricKey) -> str:
    floor = max((one.ratio for one in comparison.noise if one.metric == metric), default=None)
    return "" if floor is None else f" The rig’s noise floor is {show_percent(floor, signed=False)}."


def _unlike(comparison: Comparison) -> str:
    count = len(comparison.unlike)
    return "" if not count else f" The runs are not alike: {count} guard fact{'s differ' if count > 1 else ' differs'}."


def _against(effects: Sequence[Effect], comparison: Comparison) -> str:
    """The baseline; of two runs, whose layouts each have their own, the run."""
    within = comparison.baseline in {effect.baseline for effect in effects}
    return comparison.baseline if within else f"run {comparison.baseline}"


def _columns(effects: Sequence[Effect]) -> list[str]:
    """Worker counts from few to many, and all of them together where there is more than one."""
    counts = sorted({effect.workers for effect in effects if effect.workers is not None})
    return [*(str(count) for count in counts), *[ALL] * (len(counts) > 1)]


def _rows(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    """Kinds of requests and subjects, in the order of the comparison."""
    kinds = list(dict.fromkeys(kind_of(effect) for effect in effects))
    pairs = dict.fromkeys((kind_of(effect), effect.about, effect.subject) for effect in effects)
    return [(about, subject) for kind in kinds for one, about, subject in pairs if one == kind]


def _spec(effects: Sequence[Effect], columns: Sequence[str], rows: Sequence[tuple[str, str]], look: Look) -> dict[str, Any]:
    several = len({subject for _, subject in rows}) > 1
    names = [_key(*row) for row in rows]
    cells = [_cell(effect, look) for effect in effects if (str(effect.workers) if effect.workers else ALL) in columns]
    base = alt.Chart(alt.InlineData(values=cells))
    bare: dict[str, Any] = {"domain": False, "ticks": False, "grid": False, "labelOverlap": False}
    across = alt.Axis(orient="top", labelAngle=0, labelFontSize=16, labelFontWeight=600, titlePadding=8, **bare)
    x = alt.X(
        "across:N",
        sort=list(columns),
        title="workers",
        axis=across,
        scale=alt.Scale(domain=list(columns), paddingInner=GAP, paddingOuter=0),
    )
    # Only the last part of a row's key is told on the inner axis; kinds of requests stand once, on an axis outside of it.
    part = 1 if several else 0
    label = f"split(datum.value, '\\n')[{part}]"
    inner = alt.Axis(labelExpr=label, labelFontSize=LABEL_PX, labelLimit=330, labelPadding=10, **bare)
    y = alt.Y("row:N", sort=names, title=None, axis=inner, scale=_cells(names))
    tooltip = [
        alt.Tooltip(f"{field}:N", title=title) for field, title in (("about", "of"), ("subject", "subject"), ("told", "what"))
    ]
    heat = base.transform_filter("datum.known").mark_rect(cornerRadius=4)
    filled = heat.encode(x=x, y=y, color=alt.Color("colour:N", scale=None), tooltip=tooltip)
    empty = base.transform_filter("!datum.known").mark_rect(
        cornerRadius=4, filled=False, stroke=look.axis, strokeWidth=1.2, strokeDash=[4, 4]
    )
    frames = empty.encode(x=x, y=y, tooltip=tooltip)
    words = base.encode(x=x, y=y, text="text:N", color=alt.Color("ink:N", scale=None))
    # Vega-Lite takes no weight from data, so that what may be claimed is drawn by a mark of its own.
    bold = words.transform_filter("datum.claimed").mark_text(fontSize=17, fontWeight=700)
    plain = words.transform_filter("!datum.claimed").mark_text(fontSize=17)
    cells_drawn = alt.layer(filled, frames, plain, bold)
    if not several:
        return dict(cells_drawn.to_dict(validate=False))
    return dict(alt.layer(cells_drawn, _groups(rows, names, look)).resolve_scale(y="independent").to_dict(validate=False))


def _groups(rows: Sequence[tuple[str, str]], names: Sequence[str], look: Look) -> alt.Chart:
    """Kinds of requests left of the subjects, each at the first of its rows, and a line between two kinds."""
    first = [number for number, (about, _) in enumerate(rows) if not number or rows[number - 1][0] != about]
    longest = max(len(subject) for _, subject in rows)
    axis = alt.Axis(
        values=[names[number] for number in first],
        labelExpr="split(datum.value, '\\n')[0]",
        labelFontSize=16,
        labelFontWeight=600,
        labelLimit=330,
        offset=min(340, 26 + 8.2 * longest),
        domain=False,
        ticks=False,
        grid=False,
        orient="left",
    )
    starts = alt.Chart(alt.InlineData(values=[{"row": names[number], "line": number > 0} for number in first]))
    y = alt.Y(
        "row:N", sort=list(names), title=None, axis=axis, scale=alt.Scale(domain=list(names), paddingInner=GAP, paddingOuter=0)
    )
    rule = starts.transform_filter("datum.line").mark_rule(yOffset=-CELL_HEIGHT / 2, strokeWidth=1, color=look.axis)
    drawn: alt.Chart = rule.encode(y=y)
    return drawn


def _cells(names: Sequence[str]) -> alt.Scale:
    return alt.Scale(domain=list(names), paddingInner=GAP, paddingOuter=0)


def _key(about: str, subject: str) -> str:
    return f"{about[:1].upper()}{about[1:]}\n{subject}"


def _cell(effect: Effect, look: Look) -> dict[str, Any]:
    claimed = effect.verdict in {"better", "worse"}
    known = effect.ratio is not None
    colour = look.background if not known else neutral(look)
    if claimed and effect.ratio is not None:
        change = _least(effect.ratio) - 1 if in_bins(effect) else effect.ratio.value - 1
        colour = colour_at((change if effect.metric == "throughput" else -change) / CLIP, diverging(look))
    return {
        "row": _key(effect.about, effect.subject),
        "across": str(effect.workers) if effect.workers is not None else ALL,
        "about": effect.about,
        "subject": effect.subject,
        "text": cell_text(effect),
        "verdict": effect.text,
        "colour": colour,
        "ink": ink_on(colour) if claimed else look.muted,
        "claimed": claimed,
        "known": known,
    }


def cell_text(effect: Effect) -> str:
    """`+34 %`, `~`, `(+34 %)` without a claim, a cross where nothing can be compared.

    Of latencies that are told in bins the least change that the bins allow: `≥ +20 %`, or `~` where they allow none.
    """
    if effect.ratio is None:
        return "×"
    if effect.verdict == "not shown":
        return "~"
    words = show_percent(effect.ratio.value)
    if in_bins(effect):
        least = _least(effect.ratio)
        words = "~" if least == 1 else f"{'≥' if least > 1 else '≤'} {show_percent(least)}"
    return f"({words})" if effect.verdict == "provisional" else words


def in_bins(effect: Effect) -> bool:
    """Whether latencies are known as bins alone: then a worker count has a ratio, of what the bins allow, and no values.

    Over all worker counts nothing has a value, and bins have no ratio.
    """
    unvalued = effect.baseline_value is None and effect.subject_value is None
    return effect.metric == "p90" and effect.workers is not None and effect.ratio is not None and unvalued


def _least(ratio: Ratio) -> float:
    """The end of an interval that is nearer to no change; 1 where it holds that."""
    low, high = ratio.low or 1.0, ratio.high or 1.0
    return 1.0 if low <= 1 <= high else low if low > 1 else high


def _line(effect: Effect) -> tuple[str, ...]:
    interval = change = repeats = UNKNOWN
    if effect.ratio is not None:
        change, repeats = UNKNOWN if in_bins(effect) else show_percent(effect.ratio.value), str(effect.ratio.repeats)
        if effect.ratio.low is not None and effect.ratio.high is not None:
            interval = f"{show_percent(effect.ratio.low)} to {show_percent(effect.ratio.high)}"
    workers = ALL if effect.workers is None else str(effect.workers)
    values = (show_figure(effect.baseline_value), show_figure(effect.subject_value))
    return (effect.about, effect.subject, workers, *values, change, interval, repeats, effect.verdict)
