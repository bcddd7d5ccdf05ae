"""Maps of change: kinds of requests and layouts down, worker counts across; for a study, sizes and
workers across. With one worker count each change has its interval beside it instead.

Better is blue and worse is orange, for throughput as for p90. Only significant changes have their
full colour; `~` is not significant, brackets are provisional, and an empty frame is not comparable.
The colours of a study follow the logarithm of the ratio: half and double are equally far from
neutral.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weighbridge.results.figures.metrics import METRICS, MetricKey, compared
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect, kind_of
from weighbridge.results.numbers import percent, show_percent, upper
from weighbridge.results.show.chart import (
    FULL_HEIGHT,
    MUTED,
    Chart,
    Panel,
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.scales import names_encoding

_ABOUT: Final = ("about", "workload", "operation", "api", "driver")
_SIDES: Final = ("metric", "baseline", "subject", "baseline_value", "subject_value")
CLIP: Final = 0.5
"""The change that has the full colour: 50 %."""
ROW_PX: Final = 46
ALL: Final = "all"
MAX_COLUMNS: Final = 5
"""Of a map that has another one beside it."""
WIDEST: Final = 8.0
"""Intervals of changes are drawn up to this ratio, and down to its inverse."""
TONE: Final = {
    "type": "quantitative",
    "scale": {"domain": [-1, 1], "range": "diverging", "interpolate": "rgb"},
    "legend": None,
}
"""The colour of a place from worse, -1, to better, 1."""
_ON_COLOUR: Final = {
    "condition": {"test": "$strong", "value": "$background"},
    "value": "$ink",
}
FULL: Final = 1.5
"""Log2 of the ratio with the full colour in a study's map; -1 is half as fast, 1 twice as fast."""
FADED: Final = 0.45
"""The strength of colour of a study's cell that is not significant."""


def change_charts(source: ChartSource) -> tuple[Chart, ...]:
    """A map for each metric of a comparison; none for a metric without comparable cells."""
    return () if source.comparison is None else change_maps(source.comparison)


def change_maps(comparison: Comparison) -> tuple[Chart, ...]:
    """The maps of a comparison, also one of two runs."""
    charts = []
    for metric in compared():
        effects = [effect for effect in comparison.effects if effect.metric == metric.key]
        if any(effect.ratio is not None for effect in effects):
            charts.append(_map(comparison, metric.key, effects))
    return tuple(charts)


def _map(comparison: Comparison, metric: MetricKey, effects: Sequence[Effect]) -> Chart:
    name = METRICS[metric].name
    better = "more" if METRICS[metric].better == "more" else "shorter"
    counts = sorted({effect.workers for effect in effects if effect.workers is not None})
    columns = [*(str(count) for count in counts), *[ALL] * (len(counts) > 1)]
    single = len(columns) < 2
    subjects = list(dict.fromkeys(effect.subject for effect in effects))
    groups: dict[str, list[Effect]] = {}
    for effect in effects:
        # With one subject, its kinds of requests are rows; with several, each kind is a panel.
        about = upper(effect.about) if len(subjects) > 1 else ""
        groups.setdefault(about, []).append(effect)
    versus = f"vs {_reference(effects, comparison)}"
    who = f"{subjects[0]} {versus}" if len(subjects) == 1 else versus
    at = f"at {columns[0]} workers" if single else "by workers"
    panels = []
    for number, (about, mine) in enumerate(groups.items()):
        rows = [_row(one, one.subject if about else upper(one.about), columns) for one in mine]
        names = list(dict.fromkeys(row["_y"] for row in rows))
        title = about or f"Change of {name} {at}, {who}"
        spec = _intervals(names, rows) if single else _cells(names, columns)
        panels.append(
            Panel(f"{metric}-{number}", title, rows, spec, height=ROW_PX * len(names) + 40)
        )
    marks = (
        "Line: the 95 % interval."
        if single
        else f"Full colour from {CLIP * 100:.0f} %. Columns: workers."
    )
    return Chart(
        key="recap-map" if metric == "throughput" else f"recap-map-{metric}",
        section="certainty",
        title=f"Recap: {name}",
        finding=finding(effects, comparison),
        caption=f"Change {who}. Blue: better, {better} {name}. Orange: worse. Grey: ~ not "
        f"significant, a number alone too small to matter, in brackets provisional. × not "
        f"comparable. {marks}{_noise_words(comparison, metric)}{_guard_words(comparison)}",
        panels=tuple(panels),
        columns=1 if len(panels) == 1 or len(columns) > MAX_COLUMNS else 2,
    )


def _row(effect: Effect, name: str, columns: Sequence[str]) -> dict[str, Any]:
    """A row of data; for p90 more is worse."""
    column = ALL if effect.workers is None else str(effect.workers)
    ratio = effect.ratio
    return {
        **{name: getattr(effect, name) for name in _ABOUT},
        "workers": column,
        **{name: getattr(effect, name) for name in _SIDES},
        **change_cells(ratio, binned=in_bins(effect)),
        **{name: getattr(effect, name) for name in ("p", "q", "verdict")},
        "_x": column if column in columns else None,
        "_y": name,
        "_tone": _tone(effect),
        "_text": cell_text(effect),
        "_ratio": None if ratio is None or in_bins(effect) else _within(ratio.value),
        "_low": None if ratio is None or ratio.low is None else _within(ratio.low),
        "_high": None if ratio is None or ratio.high is None else _within(ratio.high),
    }


def change_cells(ratio: Ratio | None, *, binned: bool = False) -> dict[str, float | None]:
    """A ratio as columns, in per cent. Of bins only the least change that they allow is known."""
    ends = (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)
    names = ("change_percent", "low_percent", "high_percent")
    found = {
        name: None if end is None else percent(end) for name, end in zip(names, ends, strict=True)
    }
    if binned:
        found["change_percent"] = None
    return {**found, "repeats": None if ratio is None else ratio.repeats}


def _within(ratio: float) -> float:
    return min(max(ratio, 1 / WIDEST), WIDEST)


def _tone(effect: Effect) -> float | None:
    """How much better, from -1 to 1; None where nothing is claimed."""
    if effect.ratio is None or effect.verdict not in ("better", "worse"):
        return None
    change = (_least(effect.ratio) if in_bins(effect) else effect.ratio.value) - 1
    better = change if METRICS[effect.metric].better == "more" else -change
    return max(-1.0, min(1.0, better / CLIP))


def _cells(names: Sequence[str], columns: Sequence[str]) -> Spec:
    across = {**names_encoding(columns, orient="top", labelAngle=0), "field": "_x"}
    return {
        "encoding": {"x": across, "y": {**names_encoding(names), "field": "_y"}},
        "layer": cell_layers("isValid(datum._x)"),
    }


def cell_layers(where: str) -> list[Spec]:
    """The cells of a map: a fill by `_tone`, and `_text` on it."""
    compared_cell = f"{where} && datum._text != '×'"
    claimed, plain = f"{where} && isValid(datum._tone)", f"{compared_cell} && !isValid(datum._tone)"
    colour = {**TONE, "field": "_tone"}
    return [
        layer("rect", "cell", claimed, color=colour),
        layer("rect", "plain", plain),
        layer("rect", "frame", f"{where} && datum._text == '×'"),
        layer("text", "cell-figure", claimed, text="_text", color=_ON_COLOUR),
        layer("text", "cell-text", f"{where} && !isValid(datum._tone)", text="_text"),
    ]


def _intervals(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> Spec:
    """The change of each row with its interval, on a scale of ratios, at the only worker count."""
    known = [row[name] for row in rows for name in ("_ratio", "_low", "_high") if row[name]]
    reach = max([1, *(math.ceil(abs(math.log2(ratio))) for ratio in known)])
    end = 2.0**reach
    scale = {"type": "log", "domain": [1 / end, end**1.6], "nice": False}
    ticks = [2.0**power for power in range(-reach, reach + 1)]
    axis = {"values": ticks, "labelExpr": "format(datum.value, '~g') + '×'", "grid": True}
    x = {"type": "quantitative", "scale": scale, "axis": axis, "title": "ratio (log scale)"}
    where = "isValid(datum._x)"
    one = layer("rule", "zero", where, x={"datum": 1})
    one["encoding"] |= FULL_HEIGHT
    both = f"{where} && isValid(datum._low) && isValid(datum._high)"
    claimed, open_ones = (
        f"{where} && isValid(datum._ratio) && {sign}isValid(datum._tone)" for sign in ("", "!")
    )
    colour = {**TONE, "field": "_tone"}
    hollow = layer("point", "doubted", open_ones, x="_ratio")
    hollow["encoding"]["color"] = MUTED
    return {
        "encoding": {"x": x, "y": {**names_encoding(names), "field": "_y"}},
        "layer": [
            one,
            layer("rule", "interval", both, x="_low", x2="_high"),
            layer("point", "sure", claimed, x="_ratio", color=colour),
            hollow,
            layer("text", "figure", where, x={"datum": end}, text="_text"),
        ],
    }


def finding(effects: Sequence[Effect], comparison: Comparison) -> str:
    """In how many cells a subject, or several together, is better or worse than the baseline."""
    metric = effects[0].metric
    cells = [effect for effect in effects if effect.workers is not None]
    known = [effect for effect in cells if effect.ratio is not None]
    noun = "cell" if len(known) == 1 else "cells"
    if not known:
        return f"Nothing could be compared with {_reference(effects, comparison)}"
    if all(effect.verdict == "provisional" for effect in known):
        where = "the only comparable cell"
        if len(known) > 1:
            where = f"{'each' if len(known) > 2 else 'both'} of {len(known)} comparable cells"
        why = ", ".join(dict.fromkeys(doubt.what for effect in known for doubt in effect.doubts))
        return f"{_upper(METRICS[metric].name)} is provisional in {where}: {why}"
    better, worse = (
        sum(effect.verdict == verdict for effect in known) for verdict in ("better", "worse")
    )
    one = len(comparison.subjects) == 1
    reference = _reference(effects, comparison)
    others = "the other layouts" if reference == comparison.baseline else "layouts of the other run"
    who = comparison.subjects[0] if one else others
    words = ("faster", "slower") if metric == "throughput" else ("a shorter", "a longer")
    tail = "" if metric == "throughput" else f" {METRICS[metric].name}"
    verb = ("is" if one else "are") if metric == "throughput" else ("has" if one else "have")
    parts = [
        f"{word}{tail} in {count} of {len(known)} {noun}"
        for word, count in zip(words, (better, worse), strict=True)
        if count
    ]
    if not parts:
        where = f"any of {len(known)} cells" if len(known) > 1 else "the only comparable cell"
        return f"No significant difference of {METRICS[metric].name} from {reference} in {where}"
    return f"Compared with {reference}, {who} {verb} {' and '.join(parts)}"


def _upper(name: str) -> str:
    """A metric's name at the beginning of a sentence; `p90` stays as it is."""
    return name if name[1:2].isdigit() else upper(name)


def _noise_words(comparison: Comparison, metric: MetricKey) -> str:
    noise = max((one.ratio for one in comparison.noise if one.metric == metric), default=None)
    if noise is None:
        return ""
    return f" The noise floor of this test bed is {show_percent(noise, signed=False)}."


def _guard_words(comparison: Comparison) -> str:
    count = len(comparison.unlike)
    if not count:
        return ""
    return f" The runs differ in {count} guard fact{'s' * (count > 1)}."


def _reference(effects: Sequence[Effect], comparison: Comparison) -> str:
    """The baseline; where each layout has its own baseline in another run, that run."""
    within = comparison.baseline in {effect.baseline for effect in effects}
    return comparison.baseline if within else f"run {comparison.baseline}"


def _columns(effects: Sequence[Effect]) -> list[str]:
    """Worker counts in ascending order, and `all` where there are several."""
    counts = sorted({effect.workers for effect in effects if effect.workers is not None})
    return [*(str(count) for count in counts), *[ALL] * (len(counts) > 1)]


def _rows(effects: Sequence[Effect]) -> list[tuple[str, str]]:
    kinds = list(dict.fromkeys(kind_of(effect) for effect in effects))
    pairs = dict.fromkeys((kind_of(effect), effect.about, effect.subject) for effect in effects)
    return [(about, subject) for kind in kinds for one, about, subject in pairs if one == kind]


def cell_text(effect: Effect) -> str:
    """`+34 %`, `~` if not significant, `(+34 %)` if provisional, a cross if not comparable. In bins
    the least change that they allow: `≥ +20 %`, or `~`.
    """
    if effect.ratio is None:
        return "×"
    if effect.verdict == "not significant":
        return "~"
    words = show_percent(effect.ratio.value)
    if in_bins(effect):
        least = _least(effect.ratio)
        words = "~" if least == 1 else f"{'≥' if least > 1 else '≤'} {show_percent(least)}"
    return f"({words})" if effect.verdict == "provisional" else words


def in_bins(effect: Effect) -> bool:
    """Whether latencies are known only as bins: then there is a ratio at one count, by the bins,
    and no values; over all counts neither.
    """
    unvalued = effect.baseline_value is None and effect.subject_value is None
    return (
        effect.metric == "p90"
        and effect.workers is not None
        and effect.ratio is not None
        and unvalued
    )


def _least(ratio: Ratio) -> float:
    """The end of an interval that is nearer to no change; 1 where the interval holds it."""
    low, high = ratio.low or 1.0, ratio.high or 1.0
    return 1.0 if low <= 1 <= high else low if low > 1 else high
