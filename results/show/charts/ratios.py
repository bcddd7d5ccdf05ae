"""The ratios of throughputs with their intervals, a row for each workload: the answer as a picture.

With two layouts a row is a workload; with more it is a layout beside the first, and each workload
has a panel. Both sides of the line at 1 count upwards: to the left the first layout is faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weighbridge.results.judge.comparison import Effect
from weighbridge.results.judge.leads import faster
from weighbridge.results.judge.words import group_name, headline
from weighbridge.results.numbers import show_ratio, upper
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
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.scales import names_encoding

ROW_PX: Final = 44
MIN_REACH: Final = 2.2
"""The scale reaches at least so far to both sides of 1, as a ratio."""
MAX_REACH: Final = 16.0
"""Intervals of two repeats may have no end: they are cut off."""
_PLACE: Final = ("about", "workload", "operation", "api", "driver", "baseline", "subject")
_TICKS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16)


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
    groups: dict[str, list[Effect]] = {}
    for effect in effects:
        groups.setdefault(upper(effect.about) if several else "", []).append(effect)
    reach = _reach(effects)
    hollow = any(_standing(effect) == PROVISIONAL for effect in effects)
    chart = Chart(
        key="ratios",
        title="Ratios of throughput",
        finding=headline(source.leads, source.stores),
        caption=f"How many times as fast the faster of two layouts is, over all worker counts, "
        f"with the 95 % interval: {baseline} to the left, {subject} to the right."
        f"{' Hollow: provisional.' * hollow}",
        panels=tuple(
            Panel(
                key=f"ratios-{number}",
                title=about or f"{baseline} vs {subject}",
                rows=[_row(effect, reach, several=several) for effect in mine],
                spec=_spec(
                    [_name(effect, several=several) for effect in mine],
                    reach,
                    f"← {baseline} is faster · {subject} is faster → (ratio, log scale)",
                ),
                height=ROW_PX * len(mine) + 40,
            )
            for number, (about, mine) in enumerate(groups.items())
        ),
        columns=2 if several else 1,
    )
    return source.measured(chart)


def _name(effect: Effect, *, several: bool) -> str:
    return effect.subject if several else upper(effect.about)


def _standing(effect: Effect) -> str:
    if effect.ratio is None:
        return NOT_COMPARABLE
    return PROVISIONAL if effect.verdict == "provisional" else COMPARABLE


def _reach(effects: Sequence[Effect]) -> float:
    """How far the scale goes to both sides of 1."""
    ratios = [effect.ratio for effect in effects if effect.ratio is not None]
    ends = [end for ratio in ratios for end in (ratio.value, ratio.low, ratio.high) if end]
    return min(max([MIN_REACH, *(1.1 * max(end, 1 / end) for end in ends)]), MAX_REACH)


def _row(effect: Effect, reach: float, *, several: bool) -> dict[str, Any]:
    ratio = effect.ratio
    low, high = (None, None) if ratio is None else (ratio.low, ratio.high)
    return {
        **{name: getattr(effect, name) for name in _PLACE},
        "ratio": None if ratio is None else ratio.value,
        "low": low,
        "high": high,
        "verdict": effect.verdict,
        "standing": _standing(effect),
        "layout": faster(effect)[0],
        "_y": _name(effect, several=several),
        "_low": None if low is None else max(low, 1 / reach),
        "_high": None if high is None else min(high, reach),
        "_text": "× not comparable" if ratio is None else show_ratio(ratio.either_way),
    }


def _spec(names: Sequence[str], reach: float, title: str) -> Spec:
    ticks = [tick for tick in _TICKS if 1 / reach <= tick <= reach]
    label = "format(max(datum.value, 1 / datum.value), '~g') + '×'"
    axis = {"values": ticks, "labelExpr": label, "grid": True}
    # The figures stand right of all intervals.
    domain = [1 / reach, reach * math.exp(0.35 * math.log(reach))]
    scale = {"type": "log", "domain": domain, "nice": False}
    x = {"type": "quantitative", "scale": scale, "axis": axis, "title": title}
    alike = layer("rule", "zero", x={"datum": 1})
    alike["encoding"] |= {**FULL_HEIGHT, "color": MUTED}
    figures = layer("text", "figure", x={"datum": reach}, text="_text")
    figures["encoding"]["color"] = INK
    whole = "isValid(datum._low) && isValid(datum._high)"
    return {
        "encoding": {
            "x": x,
            "y": {**names_encoding(names), "field": "_y"},
            "color": COLOUR,
        },
        "layer": [
            alike,
            layer("rule", "interval", whole, x="_low", x2="_high"),
            layer("point", "sure", f"datum.standing == '{COMPARABLE}'", x="ratio"),
            layer("point", "doubted", f"datum.standing == '{PROVISIONAL}'", x="ratio"),
            figures,
        ],
    }
