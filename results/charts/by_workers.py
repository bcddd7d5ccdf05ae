"""Throughput by workers, and p90 and max by workers: small multiples by workload and operation.

What is not valid or not measured is a cross that no line passes through. Of latencies that a driver
tells in bins a bar goes from end to end of the bin, filled for p90, hollow for the slowest request;
no line joins them, since where in its bin a latency lies is not known, and layouts stand beside
each other, since two bars at one place would hide one another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Final

from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.findings import Finding, headline, kind_of, subjects, told_apart
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import (
    HEIGHT,
    WIDTH,
    AxisScale,
    Figure,
    Label,
    Mark,
    Panel,
    Spot,
    Trace,
)
from weighbridge.results.charts.worker_data import (
    WorkerPanel,
    WorkerPoint,
    beyond,
    ceiling_lines,
    ceiling_mark,
    in_doubt,
    latency_csv,
    latency_panels,
    stretched,
    throughput_csv,
    throughput_panels,
)
from weighbridge.results.figures import show_figure
from weighbridge.results.interval import Interval, show_latency
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

APART_PX: Final = 11
"""From one layout's bars to the next one's."""
LEAST_PX: Final = 4
"""A bar of a bin that is narrow on the scale is still seen."""
_CROSSED: Final = "× not valid or not measured."
_CEILINGS: Final = (
    " Dashed: what disks, network and store can do for clients; ↑ far above the scale."
)


def throughput_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of throughput, with what the layers below can do where that is known."""
    rows, layouts, repeats = source.rows, source.layouts, source.plan.suite.repeats
    panels = throughput_panels(rows, source.findings, ceiling_lines(source.stairs))
    dots = (
        f"line: geometric mean of {told_repeats(rows, repeats)}, each a faint dot; band: its 95 % "
        "interval"
        if repeats > 1
        else "one repeat"
    )
    above = _CEILINGS if any(panel.ceilings for panel in panels) else ""
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional."
        if repeats < REPEATS_FOR_A_CLAIM and len(layouts) > 1
        else ""
    )
    figure = Figure(
        name="throughput-by-workers",
        section="workers",
        title="Throughput by workers",
        finding=headline(source.findings)
        if len(layouts) > 1
        else f"What {layouts[0].name} serves by worker count",
        caption=f"Operations per second by worker count; {dots}.{_restless(source)} "
        f"{_CROSSED}{above}{few}",
        data=throughput_csv(rows),
        panels=tuple(throughput_panel(panel) for panel in panels),
        layouts=layouts,
    )
    return (figure,)


def latency_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of p90 and of the slowest requests."""
    panels = latency_panels(source.rows, source.findings)
    each = " Faint dots: p90 of each repeat." if source.plan.suite.repeats > 1 else ""
    binned = (
        "Bars: the bin in which either lies, where the driver tells no more. "
        if told_in_bins(panels)
        else ""
    )
    figure = Figure(
        name="latency-by-workers",
        section="workers",
        title="Latency by workers: p90 and max",
        finding=latency_headline(source.rows, source.findings),
        caption="Filled, joined: p90, where at least 200 samples give one. Hollow: the slowest "
        "request."
        f"{each}{_restless(source)} {binned}{_CROSSED}",
        data=latency_csv(source.rows),
        panels=tuple(latency_panel(panel) for panel in panels),
        layouts=source.layouts,
    )
    return (figure,)


def _restless(source: ChartSource) -> str:
    doubted = any(
        in_doubt(row, metric, source.findings)
        for row in source.rows
        if row.valid
        for metric in ALWAYS
    )
    return " Hollow on a line: provisional or not comparable." if doubted else ""


def told_repeats(rows: Sequence[Row], planned: int) -> str:
    """`5 repeats`, or `3 to 5 repeats` where not all could be used; as planned where nothing was
    measured.
    """
    counts = sorted({row.repeats for row in rows if row.ranked and row.repeats}) or [planned]
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{span} repeat{'s' * (counts[-1] > 1)}"


def latency_headline(rows: Sequence[Row], findings: Sequence[Finding]) -> str:
    """The widest of the gaps between p90s at one worker count, in words; none of layouts that are
    not comparable.
    """
    best: tuple[float, Row, Row] | None = None
    names = subjects(rows)
    apart = {
        (kind_of(one), one.workers, frozenset((one.faster, one.slower)))
        for one in findings
        if one.ratio is None
    }
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if may_rank(row, "p90") and row.value("p90"):
            groups.setdefault((*kind_of(row), row.workers), []).append(row)
    for cells in groups.values():
        for low, high in permutations(cells, 2):
            gap = (high.value("p90") or 0) / (low.value("p90") or 1)
            pair = (kind_of(low), low.workers, frozenset((low.layout, high.layout)))
            if pair not in apart and (best is None or gap > best[0]):
                best = (gap, low, high)
    if best is None:
        return _widest_of_bins(rows) or "p90 and the slowest request by worker count"
    _, low, high = best
    doubted = in_doubt(low, "p90", findings) or in_doubt(high, "p90", findings)
    return (
        f"{'Provisional: ' * doubted}p90 differs most in {names[kind_of(low)]} at {low.workers} "
        f"worker{'s' * (low.workers > 1)}: "
        f"{shown(low, 'p90', spread=False)} ms on {low.layout}, "
        f"{shown(high, 'p90', spread=False)} ms on {high.layout}"
    )


def _widest_of_bins(rows: Sequence[Row]) -> str:
    """The same of p90s that were told in bins, by the gap between two bins; empty where none lie
    apart.
    """
    names = subjects(rows)
    known = [
        (row, found)
        for row in rows
        if may_rank(row, "p90") and (found := row.within("p90")) is not None
    ]
    pairs = [
        (slow_in.low_ms / fast_in.top_ms, fast, slow, told_apart(fast_in, slow_in))
        for fast, fast_in in known
        for slow, slow_in in known
        if (kind_of(fast), fast.workers) == (kind_of(slow), slow.workers)
        and slow_in.low_ms > fast_in.top_ms
    ]
    if not pairs:
        return (
            "No p90 is told apart from another: their bins touch"
            if len({row.layout for row, _ in known}) > 1
            else ""
        )
    _, fast, slow, words = max(pairs, key=lambda pair: pair[0])
    at = f"{fast.workers} worker{'s' * (fast.workers > 1)}"
    return (
        f"p90 differs most in {names[kind_of(fast)]} at {at}: {words}, {fast.layout} against "
        f"{slow.layout}"
    )


def throughput_panel(data: WorkerPanel) -> Panel:
    """A panel of throughput: its scale begins at 0 and holds the ceilings that are near."""
    values = [dot.value for dot in data.dots] + [
        mark.value for mark in data.marks if mark.value is not None
    ]
    y = AxisScale.from_zero(stretched(max(values, default=0.0), data.ceilings), "op/s")
    lone = len({mark.layout for mark in data.marks}) == 1
    bands = [
        Trace(layout=run[0].layout, **_ends(run, y.high))
        for run in _runs(data)
        if sum(one.high is not None for one in run) > 1
    ]
    alone = [
        one for one in data.marks if one.alone and one.low is not None and one.high is not None
    ]
    strips = [_spot(one, one.low, y2=min(one.high or 0.0, y.high)) for one in alone]
    repeats = {(mark.layout, mark.workers): "" for mark in data.marks}
    for dot in data.dots:
        known = repeats[dot.layout, dot.workers]
        repeats[dot.layout, dot.workers] = (
            f"{known}{' · ' if known else ''}{show_figure(dot.value)}{'' if dot.valid else ' ×'}"
        )
    lines = [
        (
            mark.layout,
            str(mark.workers),
            show_figure(mark.value),
            repeats[mark.layout, mark.workers],
            mark.note,
        )
        for mark in data.marks
    ]
    return _panel(
        data,
        y,
        under=(
            ceiling_mark(data.ceilings, y.high, lone=lone),
            Mark(kind="band", traces=tuple(bands)),
            Mark(kind="strip", spots=tuple(strips)),
        ),
        unit="op/s",
    ).model_copy(
        update={
            "aside": beyond(data.ceilings, y.high),
            "head": ("Layout", "Workers", "op/s", "Each repeat", "Notes"),
            "lines": tuple(lines),
        }
    )


def latency_panel(data: WorkerPanel) -> Panel:
    """A panel of p90 and max on one logarithmic scale."""
    each = [dot.value for dot in data.dots if dot.valid and dot.value]
    known = (
        [value for mark in data.marks for value in (mark.value, mark.top) if value]
        + each
        + bin_ends(data)
    )
    y = AxisScale.logarithmic(known, "ms (log scale)")
    tops = [
        _spot(one, one.top, f"max {show_figure(one.top)} ms")
        for one in data.marks
        if one.top and one.valid
    ]
    lines = [
        (
            mark.layout,
            str(mark.workers),
            show_latency(mark.value, mark.within),
            show_latency(mark.top, mark.top_within),
            mark.note,
        )
        for mark in data.marks
    ]
    return _panel(
        data,
        y,
        under=(Mark(kind="outline", spots=tuple(tops)), *bin_marks(data, (y.low, y.high))),
        unit="ms of p90",
    ).model_copy(
        update={"head": ("Layout", "Workers", "p90 ms", "max ms", "Notes"), "lines": tuple(lines)}
    )


def _panel(data: WorkerPanel, y: AxisScale, *, under: tuple[Mark, ...], unit: str) -> Panel:
    """The lines, marks, crosses and labels that both charts share."""
    good = [mark for mark in data.marks if mark.stretch is not None]
    sure, doubted = ([one for one in good if one.provisional is hollow] for hollow in (False, True))
    crosses = [
        _spot(one, height_of(one) or y.low, one.note or "not valid")
        for one in data.marks
        if not one.valid
    ]
    lines = [
        Trace(
            layout=run[0].layout,
            x=tuple(one.workers for one in run),
            y=tuple(one.value or 0.0 for one in run),
        )
        for run in _runs(data)
    ]
    dots = [Spot(x=dot.workers, y=dot.value, layout=dot.layout) for dot in data.dots if dot.valid]
    return Panel(
        key=data.key,
        title=data.title,
        finding=data.finding,
        told=" ".join(data.sentences),
        x=AxisScale.workers(data.workers),
        y=y,
        marks=(
            Mark(kind="dot", spots=tuple(dots)),
            *under,
            Mark(kind="line", traces=tuple(lines)),
            Mark(
                kind="point",
                spots=tuple(
                    _spot(one, one.value, f"{show_figure(one.value)} {unit}") for one in sure
                ),
            ),
            Mark(
                kind="hollow",
                spots=tuple(
                    _spot(one, one.value, f"{show_figure(one.value)} {unit}, in doubt")
                    for one in doubted
                ),
            ),
            Mark(kind="cross", spots=tuple(crosses)),
        ),
        labels=_labels(data, y.low),
    )


def _spot(mark: WorkerPoint, y: float | None, tip: str = "", *, y2: float | None = None) -> Spot:
    told = f"{mark.layout}, {mark.workers} workers: {tip}" if tip else ""
    return Spot(x=mark.workers, y=y, y2=y2, layout=mark.layout, tip=told)


def _runs(data: WorkerPanel) -> list[list[WorkerPoint]]:
    """Neighbours that are joined."""
    runs: dict[tuple[str, int], list[WorkerPoint]] = {}
    for mark in data.marks:
        if mark.stretch is not None:
            runs.setdefault((mark.layout, mark.stretch), []).append(mark)
    return list(runs.values())


def _ends(run: Sequence[WorkerPoint], top: float) -> dict[str, tuple[float, ...]]:
    """A band along a line; what is beyond the scale is cut off at its end."""
    known = [one for one in run if one.low is not None and one.high is not None]
    ends = [(one.workers, one.low or 0.0, min(one.high or 0.0, top)) for one in known]
    return dict(zip(("x", "y", "y2"), zip(*ends, strict=True), strict=True))


def _labels(data: WorkerPanel, floor: float) -> tuple[Label, ...]:
    """The name of each layout, at the last of its marks that has a figure and is valid."""
    last = {mark.layout: mark for mark in data.marks if mark.valid and height_of(mark)}
    return tuple(
        Label(layout=layout, x=last[layout].workers, y=height_of(last[layout]) or floor)
        if layout in last
        else Label(layout=layout, x=None, y=floor, text=f"{layout} (none)")
        for layout in dict.fromkeys(mark.layout for mark in data.marks)
    )


# ---- bins


def told_in_bins(panels: Sequence[WorkerPanel]) -> bool:
    """Whether any latency of these is a bin."""
    return any(mark.top_within is not None for panel in panels for mark in panel.marks)


def bin_ends(panel: WorkerPanel) -> list[float]:
    """What the scale must hold: the ends of all bars.

    Of the first bin, which begins at 0, half its height is enough.
    """
    found = [
        within
        for mark in panel.marks
        for within in (mark.within, mark.top_within)
        if within is not None
    ]
    return [
        end
        for one in found
        for end in (one.low_ms or one.top_ms / 2, _top(one))
        if math.isfinite(end)
    ]


def height_of(mark: WorkerPoint) -> float | None:
    """Where the label or the cross of a mark stands: at its figure, else at the upper end of its
    bar, else at its max.
    """
    tops = [_top(within) for within in (mark.within, mark.top_within) if within is not None]
    return mark.value or (tops[0] if tops else mark.top)


def bin_marks(panel: WorkerPanel, ends: tuple[float, float]) -> tuple[Mark, ...]:
    """The bars on a logarithmic scale that goes from end to end: of p90s, then of maxima."""
    layouts = list(dict.fromkeys(mark.layout for mark in panel.marks))
    doublings = math.log2(panel.workers[-1] / panel.workers[0]) or 2.0
    filled: list[Spot] = []
    hollow: list[Spot] = []
    for mark in panel.marks:
        shift_px = APART_PX * (layouts.index(mark.layout) - (len(layouts) - 1) / 2)
        for within, about, found in (
            (mark.within, "p90", filled),
            (mark.top_within, "max", hollow),
        ):
            if within is not None and mark.valid:
                low, high = _drawn(within, ends)
                told = f"{mark.layout}, {mark.workers} workers: {about} in {within} ms"
                x = mark.workers * 2 ** (doublings * shift_px / WIDTH)
                found.append(Spot(x=x, y=low, y2=high, layout=mark.layout, tip=told))
    return (Mark(kind="bin", spots=tuple(filled)), Mark(kind="hollow bin", spots=tuple(hollow)))


def _drawn(within: Interval, ends: tuple[float, float]) -> tuple[float, float]:
    """From where to where a bar goes: within the scale, and never less high than can be seen (a dot
    would be higher).
    """
    low, high = max(within.low_ms, ends[0]), min(within.top_ms, ends[1])
    least = (ends[1] / ends[0]) ** (LEAST_PX / HEIGHT)
    widen = max(1.0, math.sqrt(least / (high / low)))
    return low / widen, high * widen


def _top(within: Interval) -> float:
    """The upper end; of the last bin, which has none, the lower."""
    return within.low_ms if within.high_ms is None else within.high_ms
