"""Maps of change: kinds of requests and layouts down, worker counts across; for a study, sizes and
workers across. With one worker count each change has its interval beside it instead.

Better is blue and worse is orange, for throughput as for p90. Only significant changes have their
full colour; `~` is not significant, brackets are provisional, and an empty frame is not comparable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from weighbridge.results.figures.metrics import METRICS, MetricKey, compared
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.numbers import all_of, counted, listed, percent, show_percent, upper
from weighbridge.results.show.chart import MUTED, Chart, Panel, Spec, layer
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.charts.bars import intervals_spec
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
_ON_COLOUR: Final = {"condition": {"test": "$strong", "value": "$background"}, "value": "$ink"}


def change_charts(source: ChartSource) -> tuple[Chart, ...]:
    """The map of a comparison; none without comparable cells."""
    return () if source.comparison is None else change_maps(source.comparison)


def change_maps(comparison: Comparison) -> tuple[Chart, ...]:
    """The map of a comparison, also one of two runs, with panels for each comparable metric."""
    panels: list[Panel] = []
    columns: set[str] = set()
    for metric in compared():
        effects = [effect for effect in comparison.effects if effect.metric == metric.key]
        if any(effect.ratio is not None for effect in effects):
            counts = sorted({effect.workers for effect in effects if effect.workers is not None})
            across = [*(str(count) for count in counts), *[ALL] * (len(counts) > 1)]
            panels += _panels(comparison, metric.key, effects, across)
            columns.update(across)
    if not panels:
        return ()
    who = f"vs {_reference(comparison.effects, comparison)}"
    if len(comparison.subjects) == 1:
        who = f"{comparison.subjects[0]} {who}"
    grey = "~ not significant, a number alone too small to matter, in brackets provisional"
    parts = [
        f"Change {who}. Blue: better (more throughput, shorter latency). Orange: worse.",
        f"Grey: {grey}.",
        "× not comparable.",
        "Line: the 95 % interval."
        if len(columns) == 1
        else f"Full colour from {CLIP * 100:.0f} %. Columns: workers.",
    ]
    noise = [
        f"{show_percent(floor.floor, signed=False)} of {METRICS[floor.metric].name}"
        for floor in comparison.noise
        if floor.floor is not None
    ]
    if noise:
        parts.append(f"The noise floor of this test bed is {listed(noise)}.")
    if comparison.unlike:
        parts.append(f"The runs differ in {counted(len(comparison.unlike), 'guard fact')}.")
    chart = Chart(
        key="recap-map",
        section="certainty",
        title="Recap",
        finding=panels[0].finding,
        caption=" ".join(parts),
        panels=(replace(panels[0], finding=""), *panels[1:]),
        columns=1 if len(panels) == 1 or len(columns) > MAX_COLUMNS else 2,
    )
    return (chart,)


def _panels(
    comparison: Comparison, metric: MetricKey, effects: Sequence[Effect], columns: Sequence[str]
) -> list[Panel]:
    """A panel with a row for each workload, or of several layouts one for each workload; the first
    has the finding of the metric.
    """
    name, alone = METRICS[metric].name, len(comparison.subjects) == 1
    # `p90` stays as it is at the beginning of a title.
    name = name if name[1:2].isdigit() else upper(name)
    at = f"at {columns[0]} workers" if len(columns) == 1 else "by workers"
    groups: dict[str, list[Effect]] = {}
    for effect in effects:
        title = f"{name} {at}" if alone else f"{upper(effect.about)}, {METRICS[metric].name}"
        groups.setdefault(title, []).append(effect)
    panels = []
    for number, (title, group) in enumerate(groups.items()):
        rows = [
            _row(effect, upper(effect.about) if alone else effect.subject, columns)
            for effect in group
        ]
        names = list(dict.fromkeys(row["_y"] for row in rows))
        panels.append(
            Panel(
                key=f"{metric}-{number}",
                title=title,
                rows=rows,
                spec=_intervals(names, rows) if len(columns) == 1 else _cells(names, columns),
                finding="" if number else _finding(effects, comparison),
                height=ROW_PX * len(names) + 40,
            )
        )
    return panels


def _row(effect: Effect, name: str, columns: Sequence[str]) -> dict[str, Any]:
    column = ALL if effect.workers is None else str(effect.workers)
    ratio, binned = effect.ratio, in_bins(effect)
    low, high = (None, None) if ratio is None else (ratio.low, ratio.high)
    return {
        **{name: getattr(effect, name) for name in _ABOUT},
        "workers": column,
        **{name: getattr(effect, name) for name in _SIDES},
        **change_cells(ratio, binned=binned),
        **{name: getattr(effect, name) for name in ("p", "q", "verdict")},
        "_x": column if column in columns else None,
        "_y": name,
        "_tone": tone(effect),
        "_text": cell_text(effect),
        "_ratio": None if ratio is None or binned else _within(ratio.value),
        "_low": None if low is None else _within(low),
        "_high": None if high is None else _within(high),
    }


def change_cells(ratio: Ratio | None, *, binned: bool = False) -> dict[str, float | None]:
    """A ratio as columns, in per cent. Of bins only the least change that they allow is known."""
    ends = (None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)
    value, low, high = (None if end is None else percent(end) for end in ends)
    return {
        "change_percent": None if binned else value,
        "low_percent": low,
        "high_percent": high,
        "repeats": None if ratio is None else ratio.repeats,
    }


def _within(ratio: float) -> float:
    return min(max(ratio, 1 / WIDEST), WIDEST)


def tone(effect: Effect) -> float | None:
    """How much better, from -1 to 1; None where nothing is claimed. For p90 more is worse."""
    if effect.ratio is None or effect.verdict not in ("better", "worse"):
        return None
    change = (_least(effect.ratio) if in_bins(effect) else effect.ratio.value) - 1
    better = change if METRICS[effect.metric].better == "more" else -change
    return max(-1.0, min(1.0, better / CLIP))


def _cells(names: Sequence[str], columns: Sequence[str]) -> Spec:
    across = names_encoding(columns, "_x", orient="top", labelAngle=0)
    return {
        "encoding": {"x": across, "y": names_encoding(names, "_y")},
        "layer": cell_layers("isValid(datum._x)"),
    }


def cell_layers(where: str) -> list[Spec]:
    """The cells of a map: a fill by `_tone`, and `_text` on it."""
    claimed, empty = f"{where} && isValid(datum._tone)", f"{where} && datum._text == '×'"
    plain = f"{where} && datum._text != '×' && !isValid(datum._tone)"
    unclaimed = f"{where} && !isValid(datum._tone)"
    return [
        layer("rect", "cell", claimed, color={**TONE, "field": "_tone"}),
        layer("rect", "plain", plain),
        layer("rect", "frame", empty),
        layer("text", "cell-figure", claimed, text="_text", color=_ON_COLOUR),
        layer("text", "cell-text", unclaimed, text="_text"),
    ]


def _intervals(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> Spec:
    """The change of each row with its interval, on a scale of ratios, at the only worker count."""
    known = [row[name] for row in rows for name in ("_ratio", "_low", "_high") if row[name]]
    reach = 2.0 ** max([1, *(math.ceil(abs(math.log2(ratio))) for ratio in known)])
    where = "isValid(datum._x) && isValid(datum._ratio)"
    claimed, unclaimed = (f"{where} && {sign}isValid(datum._tone)" for sign in ("", "!"))
    points = [
        layer("point", "sure", claimed, x="_ratio", color={**TONE, "field": "_tone"}),
        layer("point", "doubted", unclaimed, x="_ratio", color=MUTED),
    ]
    label = "format(datum.value, '~g') + '×'"
    spec = intervals_spec(names, reach, points, label=label, title="ratio (log scale)")
    # What is over all worker counts is the same as what is at the only one.
    return {**spec, "transform": [{"filter": "isValid(datum._x)"}]}


def _finding(effects: Sequence[Effect], comparison: Comparison) -> str:
    """In how many cells a subject, or several together, is better or worse than the baseline."""
    metric, reference = METRICS[effects[0].metric], _reference(effects, comparison)
    known = [
        effect for effect in effects if effect.workers is not None and effect.ratio is not None
    ]
    if not known:
        return f"Nothing could be compared with {reference}"
    where = "the only comparable cell"
    if all(effect.verdict == "provisional" for effect in known):
        if len(known) > 1:
            where = all_of(len(known), "comparable cells")
        why = ", ".join(dict.fromkeys(doubt.what for effect in known for doubt in effect.doubts))
        # `p90` stays as it is at the beginning of a sentence.
        name = metric.name if metric.name[1:2].isdigit() else upper(metric.name)
        return f"{name} is provisional in {where}: {why}"
    several = len(comparison.subjects) > 1
    if metric.key == "throughput":
        verb, words = "are" if several else "is", {"better": "faster", "worse": "slower"}
    else:
        verb = "have" if several else "has"
        words = {"better": f"a shorter {metric.name}", "worse": f"a longer {metric.name}"}
    parts = []
    for verdict, word in words.items():
        count = sum(effect.verdict == verdict for effect in known)
        if count:
            parts.append(f"{word} in {count} of {counted(len(known), 'cell')}")
    if not parts:
        where = f"any of {len(known)} cells" if len(known) > 1 else where
        return f"No significant difference of {metric.name} from {reference} in {where}"
    who = comparison.subjects[0]
    if several:
        within = reference == comparison.baseline
        who = "the other layouts" if within else "layouts of the other run"
    return f"Compared with {reference}, {who} {verb} {' and '.join(parts)}"


def _reference(effects: Sequence[Effect], comparison: Comparison) -> str:
    """The baseline; where each layout has its own baseline in another run, that run."""
    within = comparison.baseline in {effect.baseline for effect in effects}
    return comparison.baseline if within else f"run {comparison.baseline}"


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
    at_one_count = effect.workers is not None and effect.ratio is not None
    return effect.metric == "p90" and at_one_count and unvalued


def _least(ratio: Ratio) -> float:
    """The end of an interval that is nearer to no change; 1 where the interval holds it."""
    low, high = ratio.low or 1.0, ratio.high or 1.0
    return 1.0 if low <= 1 <= high else low if low > 1 else high
