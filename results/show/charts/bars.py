"""Figures side by side: bars of throughput and of rates, and ratios, each with its interval.

Bars begin at 0, and whiskers are intervals. Each workload has its own scale, since small and large
objects differ a hundredfold; figures at the bars' ends replace a grid. Of ratios a row is a
workload; with more than two layouts it is a layout beside the first, and each workload has a panel.
Both sides of the line at 1 count upwards: to the left the first layout is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import reason
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.judge.leads import faster
from weighbridge.results.judge.words import group_name, headline
from weighbridge.results.numbers import counted, grouped, show_figure, show_ratio, upper
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    FULL_HEIGHT,
    INK,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    Panel,
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource, place_of, repeats_words
from weighbridge.results.show.scales import names_encoding

ROW_PX: Final = 44
ROOM: Final = 1.5
"""How much longer the scale is than the longest bar or whisker, for the figures."""
CUT: Final = 1.6
"""An interval of two repeats may be many times the figure: it is cut off, or bars get short."""
_LONGEST: Final = 34
"""Characters beside a missing bar."""
MIN_REACH: Final = 2.2
"""A scale of ratios reaches at least so far to both sides of 1."""
MAX_REACH: Final = 16.0
_TICKS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)
_ABOUT: Final = ("about", "workload", "operation", "api", "driver", "baseline", "subject")


# ---- bars


def throughput_bars(source: ChartSource) -> tuple[Chart, ...]:
    """All layouts, each workload at the requested worker count, else at the largest at which most
    layouts are ranked; none without ranked figures.
    """
    groups = source.at_one_count()
    rows = [row for group in groups.values() for row in group]
    repeats = [row.repeats for row in rows if row.ranked and row.value("throughput") is not None]
    if not repeats:
        return ()
    drawn = "One repeat."
    if max(repeats) > 1:
        drawn = f"Geometric mean of {repeats_words(repeats)}, with its 95 % interval."
    parts = [drawn, "Each panel has its own scale, from 0."]
    if any(source.standing(row, "throughput") == PROVISIONAL for row in rows):
        parts.append("Pale: provisional.")
    several = any(len({row.workers for row in cells}) > 1 for cells in source.cells().values())
    if several and source.leads:
        parts.append("The title is over all worker counts.")
    if min(repeats) < REPEATS_FOR_A_CLAIM and len(source.layouts) > 1:
        parts.append(f"Fewer than {REPEATS_FOR_A_CLAIM} repeats: no claim.")
    panels = [
        bar_panel(
            [_throughput_row(source, row) for row in group],
            "throughput_ops_s",
            key="-".join(kind),
            title=f"{upper(source.names[kind])}, {counted(group[0].workers, 'worker')}",
        )
        for kind, group in groups.items()
    ]
    chart = Chart(
        key="throughput-bars",
        title="Throughput of every layout",
        finding=headline(source.leads, source.stores) if source.leads else "What was measured",
        caption=" ".join(parts),
        panels=tuple(panels),
    )
    return source.measured(chart)


def _throughput_row(source: ChartSource, row: Row) -> dict[str, Any]:
    figure = row.figure("throughput")
    known = row.ranked and figure.value is not None
    why = reason(row) if row.points else "not measured"
    return {
        **place_of(row),
        "throughput_ops_s": figure.value if known else None,
        "low": figure.low if known else None,
        "high": figure.high if known else None,
        "standing": source.standing(row, "throughput"),
        "why": "" if known else why,
        "_text": f"{show_figure(figure.value)} op/s",
    }


def bar_panel(rows: Sequence[dict[str, Any]], column: str, **about: Any) -> Panel:
    """A bar for each row, with its whisker and figure; `about`: fields of the panel."""
    longest = max((row[column] or 0.0 for row in rows), default=0.0) or 1.0
    reach = min(max([longest, *(row["high"] or 0.0 for row in rows)]), CUT * longest)
    for row in rows:
        value, why = row[column], row["why"]
        row["_end"] = min(max(value or 0.0, row["high"] or 0.0), reach)
        short = why if len(why) <= _LONGEST else f"{why[: _LONGEST - 1].rstrip()}…"
        row["_why"] = f"× {short}" if value is None else None
    sure, zero = f"datum.standing == '{COMPARABLE}'", {"datum": 0}
    doubted = sure.replace("==", "!=")
    known, whole = f"isValid(datum.{column})", "isValid(datum.low) && isValid(datum.high)"
    edge, left = {"value": "$background"}, {"value": 0}
    scale = {"domain": [0, reach * ROOM], "nice": False}
    return Panel(
        rows=rows,
        spec={
            "encoding": {
                "x": {"type": "quantitative", "scale": scale, "axis": None},
                "y": names_encoding([row["layout"] for row in rows], "layout"),
                "color": COLOUR,
            },
            "layer": [
                layer("bar", "sure", sure, x=column, x2=zero),
                layer("bar", "doubted-bar", doubted, x=column, x2=zero, stroke=COLOUR),
                # An edge in the background's colour makes a whisker visible on any bar.
                layer("rule", "whisker-edge", whole, x="low", x2="_end", color=edge),
                layer("rule", "whisker", whole, x="low", x2="_end", color=INK),
                layer("text", "figure", known, x="_end", text="_text", color=INK),
                layer("text", "note", "isValid(datum._why)", x=left, text="_why", color=MUTED),
            ],
        },
        height=ROW_PX * len(rows),
        **about,
    )


# ---- ratios


def ratio_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The ratios over all worker counts; none where nothing can be compared."""
    comparison = source.comparison
    effects = [
        effect
        for effect in (() if comparison is None else comparison.effects)
        if effect.metric == "throughput" and effect.workers is None
    ]
    if comparison is None or not any(effect.ratio is not None for effect in effects):
        return ()
    several = len(comparison.subjects) > 1
    every = (comparison.baseline, *comparison.subjects)
    baseline = group_name([comparison.baseline], every, source.stores)
    subject = "the other" if several else group_name(comparison.subjects, every, source.stores)
    groups = grouped(effects, lambda effect: upper(effect.about) if several else "")
    ends = [end for effect in effects for end in _ends(effect) if end]
    reach = min(max([MIN_REACH, *(1.1 * max(end, 1 / end) for end in ends)]), MAX_REACH)
    title = f"← {baseline} is faster · {subject} is faster → (ratio, log scale)"
    panels = []
    for number, (about, group) in enumerate(groups.items()):
        rows = [
            _ratio_row(effect, effect.subject if several else upper(effect.about), reach)
            for effect in group
        ]
        panels.append(
            Panel(
                key=f"ratios-{number}",
                title=about or f"{baseline} vs {subject}",
                rows=rows,
                spec=_ratio_spec([row["_y"] for row in rows], reach, title),
                height=ROW_PX * len(rows) + 40,
            )
        )
    hollow = any(row["standing"] == PROVISIONAL for panel in panels for row in panel.rows)
    chart = Chart(
        key="ratios",
        title="Ratios of throughput",
        finding=headline(source.leads, source.stores),
        caption=f"How many times as fast the faster of two layouts is, over all worker counts, "
        f"with the 95 % interval: {baseline} to the left, {subject} to the right."
        f"{' Hollow: provisional.' * hollow}",
        panels=tuple(panels),
        columns=2 if several else 1,
    )
    return source.measured(chart)


def _ends(effect: Effect) -> tuple[float | None, ...]:
    ratio = effect.ratio
    return (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)


def _ratio_row(effect: Effect, name: str, reach: float) -> dict[str, Any]:
    value, low, high = _ends(effect)
    standing = PROVISIONAL if effect.verdict == "provisional" else COMPARABLE
    return {
        **{column: getattr(effect, column) for column in _ABOUT},
        "ratio": value,
        "low": low,
        "high": high,
        "verdict": effect.verdict,
        "standing": NOT_COMPARABLE if effect.ratio is None else standing,
        "layout": faster(effect)[0],
        "_y": name,
        "_low": None if low is None else max(low, 1 / reach),
        "_high": None if high is None else min(high, reach),
        "_text": show_ratio(effect.ratio.either_way) if effect.ratio else "× not comparable",
    }


def _ratio_spec(names: Sequence[str], reach: float, title: str) -> Spec:
    label = "format(max(datum.value, 1 / datum.value), '~g') + '×'"
    points = [
        layer("point", style, f"datum.standing == '{standing}'", x="ratio")
        for style, standing in (("sure", COMPARABLE), ("doubted", PROVISIONAL))
    ]
    spec = intervals_spec(names, reach, points, label=label, title=title)
    spec["encoding"]["color"] = COLOUR
    return spec


def intervals_spec(
    names: Sequence[str], reach: float, points: Sequence[Spec], *, label: str, title: str
) -> Spec:
    """Ratios on a logarithmic scale about 1: of each row `_y` an interval from `_low` to `_high`
    below its point, and its `_text` right of all intervals.
    """
    ticks = [tick for tick in _TICKS if 1 / reach <= tick <= reach]
    axis = {"values": ticks, "labelExpr": label, "grid": True}
    scale = {"type": "log", "domain": [1 / reach, reach**1.4], "nice": False}
    whole = "isValid(datum._low) && isValid(datum._high)"
    return {
        "encoding": {
            "x": {"type": "quantitative", "scale": scale, "axis": axis, "title": title},
            "y": names_encoding(list(dict.fromkeys(names)), "_y"),
        },
        "layer": [
            layer("rule", "zero", x={"datum": 1}, color=MUTED, **FULL_HEIGHT),
            layer("rule", "interval", whole, x="_low", x2="_high"),
            *points,
            layer("text", "figure", x={"datum": reach}, text="_text", color=INK),
        ],
    }
