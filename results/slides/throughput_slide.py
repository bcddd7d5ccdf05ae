from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.results.analysis.findings import Finding, undecided
from weighbridge.results.analysis.leads import NEAR
from weighbridge.results.analysis.power_mark import power_brief, power_words, with_losses
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.words import percent
from weighbridge.results.doubt import graves, touching
from weighbridge.results.figures import counted, show_figure, show_ratio, upper
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.slides.evidence import Evidence, repeats, rests_on, spanned, why_not
from weighbridge.results.slides.request_group import (
    CROSSES,
    RequestGroup,
    group_pairs,
    whisker_words,
)
from weighbridge.results.slides.slide import (
    BarChart,
    ChartPoint,
    Series,
    SeriesChart,
    Slide,
    SlideBar,
)

_NO_PERCENTILES: Final = "no percentiles"
"""In the note of `results.analysis.steps.validity` about a driver that reports none."""


def throughput_slide(evidence: Evidence, group: RequestGroup) -> Slide:
    """The slide; without any figure, a line for each layout says why."""
    counts = tuple(dict.fromkeys(row.workers for row in group.rows))
    series = [one for layout in group.layouts for one in _series(layout, group.of(layout), counts)]
    pairs = group_pairs(evidence, group)
    title = with_losses(f"{_title(group, pairs)}{group.part}", group.power)
    marks = power_words(group.power) if not pairs else ""  # of pairs, their sentences have it
    notes = (
        *([f"{upper(marks)}."] if marks else []),
        *(pair.text for pair in pairs),
        *(_row_words(row) for row in group.rows),
    )
    if not series:
        why = dict.fromkeys(f"{row.layout}: {why_not(row)}" for row in group.rows)
        return Slide(key=f"throughput-{group.key}", title=title, lines=tuple(why), notes=notes)
    absent = [
        f"{row.layout} at {row.workers}" for row in group.rows if row.value("throughput") is None
    ]
    foot = [whisker_words(group)]
    foot += [CROSSES] if any(not one.joined for one in series) else []
    foot += [f"not measured: {', '.join(absent)}"] if absent else []
    foot += [_no_p90(group)] if _no_p90(group) else []
    foot += [power_brief(group.power)] if group.power else []
    return Slide(
        key=f"throughput-{group.key}",
        title=title,
        lead=f"Throughput of {group.about} by workers; {rests_on(*repeats(group.rows))}",
        chart=_chart(evidence, counts, series),
        foot=f"{upper('; '.join(foot))}.",
        notes=notes,
    )


def _title(group: RequestGroup, pairs: Sequence[Finding]) -> str:
    """Which layout serves most compared with the first, and which least; of one its best."""
    by_name = {
        name: pair for pair in pairs for name in (pair.faster, pair.slower) if name != pair.baseline
    }
    of_first = {
        name: 1 / pair.ratio.value if pair.faster == pair.baseline else pair.ratio.value
        for name, pair in by_name.items()
        if pair.ratio is not None
    }
    if of_first:
        most, least = (
            max(of_first, key=of_first.__getitem__),
            min(of_first, key=of_first.__getitem__),
        )
        if most == least or of_first[most] < 1:
            at = _at(group, {group.layouts[0], least})
            return f"{_relation(by_name[least], group.about)}{at}"
        mark = " (provisional)" * (by_name[least].verdict == "provisional" != by_name[most].verdict)
        at = _at(group, {group.layouts[0], most, least})
        return (
            f"{_relation(by_name[most], group.about)}{at}, {least} "
            f"{show_ratio(of_first[least])}{mark}"
        )
    best = max(
        (row for row in group.rows if row.ranked and row.value("throughput")),
        key=lambda row: row.value("throughput") or 0,
        default=None,
    )
    if len(group.layouts) == 1 and best is not None:
        rate = f"{show_figure(best.value('throughput'))} op/s of {group.about}"
        return f"{best.layout} serves at most {rate}, at {counted(best.workers, 'worker')}"
    return f"{upper(group.about)} cannot be compared"


def _at(group: RequestGroup, layouts: set[str]) -> str:
    """` at 1 to 16 workers`: the counts at which these layouts are comparable; empty if none."""
    rows = [row for row in group.rows if row.layout in layouts]
    left_out = {
        row.workers
        for row in rows
        if not row.value("throughput") or not may_rank(row, "throughput")
    }
    counts = {row.workers for row in rows} - left_out
    return f" at {spanned((min(counts), max(counts)))}" if counts else ""


def _relation(pair: Finding, about: str) -> str:
    """The ratio of two layouts' throughput with its interval, as far as it is claimed."""
    ratio = pair.ratio
    if ratio is None:
        return pair.brief
    if pair.verdict == "too small to matter":
        return (
            f"{pair.faster} and {pair.slower} serve {about} within {percent(ratio)} of each other"
        )
    provisional = pair.verdict == "provisional"
    if ratio.value < 1 + NEAR and not pair.shown:
        alike = f"{about} by {pair.faster} and {pair.slower}: {undecided(ratio)}"
        return f"Provisional: {alike}" if provisional else upper(alike)
    interval = ""
    if ratio.low is not None and ratio.high is not None:
        interval = f" ({show_ratio(ratio.low)} to {show_ratio(ratio.high)})"
    text = f"{show_ratio(ratio.value)}{interval} {pair.slower}’s {about}"
    if provisional:
        return f"Provisional: {pair.faster} served {text}"
    if not pair.shown:
        return f"No difference found: {pair.faster} served {text}"
    return f"{pair.faster} serves {text}"


def _row_words(row: Row) -> str:
    at = f"{row.layout}, {counted(row.workers, 'worker')}"
    if row.value("throughput") is None:
        return f"{at}: {why_not(row)}."
    why = "; ".join(one.words for one in graves(touching(row.doubts, "p90"))) if row.ranked else ""
    p90 = f"{shown(row, 'p90', spread=False)} ms{f' (not comparable: {why})' if why else ''}"
    each = " · ".join(
        f"{show_figure(point.ops_s)}{'' if point.valid else ' (not ranked)'}"
        for point in row.points
    )
    valid = "" if row.ranked else f"; not ranked: {why_not(row)}"
    return (
        f"{at}: {show_figure(row.value('throughput'))} op/s, p90 {p90}, n = {row.repeats} "
        f"({each}){valid}."
    )


def _series(layout: str, rows: Sequence[Row], counts: Sequence[int]) -> Iterator[Series]:
    """The line of a layout, a series for each stretch without a gap, and its crosses."""
    known = [row for row in rows if row.value("throughput") is not None]
    runs: list[list[Row]] = []
    for row in (row for row in known if row.ranked):
        if runs and counts.index(runs[-1][-1].workers) + 1 == counts.index(row.workers):
            runs[-1].append(row)
        else:
            runs.append([row])
    for number, run in enumerate(runs, start=1):
        name = layout if number == 1 else f"{layout} ({number})"
        yield Series(name=name, layout=layout, points=tuple(map(_point, run)))
    crosses = tuple(_point(row) for row in known if not row.ranked)
    if crosses:
        yield Series(name=f"{layout}, not ranked", layout=layout, points=crosses, joined=False)


def _point(row: Row) -> ChartPoint:
    rates = [point.ops_s for point in row.used]
    several = len(rates) > 1
    return ChartPoint(
        x=row.workers,
        y=row.value("throughput") or 0.0,
        low=min(rates) if several else None,
        high=max(rates) if several else None,
    )


def _chart(
    evidence: Evidence, counts: Sequence[int], series: Sequence[Series]
) -> SeriesChart | BarChart:
    largest = max(max(point.y, point.high or 0.0) for one in series for point in one.points)
    layouts = evidence.plan.layouts
    if len(counts) == 1:
        x = AxisScale.from_zero(largest, f"op/s at {counted(counts[0], 'worker')}")
        return BarChart(x=x, bars=tuple(map(_bar, series)), layouts=layouts)
    return SeriesChart(
        form="lines",
        x=AxisScale.workers(counts),
        y=AxisScale.from_zero(largest, "op/s"),
        series=tuple(series),
        layouts=layouts,
    )


def _bar(one: Series) -> SlideBar:
    point = one.points[0]
    return SlideBar(
        name=one.name,
        value=point.y,
        low=point.low,
        high=point.high,
        layout=one.layout,
        label=f"{'' if one.joined else '× '}{show_figure(point.y)}",
    )


def _no_p90(group: RequestGroup) -> str:
    """Why latency has no slide, in a few words; empty where a p90 is known."""
    if any(row.ranked and row.value("p90") is not None for row in group.rows):
        return ""
    if any(row.within("p90") is not None for row in group.rows):
        return "p90: known only in bins, see the notes"
    unreported = any(_NO_PERCENTILES in note for row in group.rows for note in row.notes)
    return "p90: the driver reports none" if unreported else "p90: too few samples for one"
