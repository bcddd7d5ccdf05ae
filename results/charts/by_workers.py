"""Charts of throughput, and of p90 and max latency, by workers: a panel per workload and operation.

What is invalid or not measured is a cross that no line passes through. Where a driver reports
latencies in bins, a bar spans the bin, filled for p90, hollow for the max. No line joins bars,
since the place of a latency in its bin is unknown, and layouts are side by side so that bars do not
overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Final

from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.findings import (
    Finding,
    headline,
)
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.words import distinguished
from weighbridge.results.charts.bin_bars import any_bins, bin_ends, bin_marks, height_of
from weighbridge.results.charts.ceiling_lines import (
    ceiling_lines,
    ceiling_mark,
    far_ceilings,
    top_with_ceilings,
)
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import (
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
    first_byte_panels,
    in_doubt,
    latency_csv,
    latency_panels,
    throughput_csv,
    throughput_panels,
)
from weighbridge.results.figures import counted, show_figure
from weighbridge.results.interval import show_latency
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

_CROSSED: Final = "× invalid, in grave doubt or not measured."
_CEILINGS: Final = (
    " Dashed: the ceilings of disks, network and store for clients; ↑ far above the scale."
)


def throughput_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of throughput, with the ceilings of the layers below where those are known."""
    rows, layouts, repeats = source.by_workers, source.layouts, source.plan.suite.repeats
    if not rows and (source.rows or source.outages.kinds):
        return ()
    panels = throughput_panels(rows, source.findings, ceiling_lines(source.stairs))
    dots = (
        f"line: geometric mean of {repeats_used(rows, repeats)}, each a faint dot; band: its 95 % "
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
        caption=f"Operations per second by worker count; {dots}.{_doubt_words(source)} "
        f"{_CROSSED}{above}{few}",
        data=throughput_csv(rows),
        panels=tuple(throughput_panel(panel) for panel in panels),
        layouts=layouts,
    )
    return (figure,)


def latency_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of p90 and the slowest requests."""
    rows = source.by_workers
    if not rows and (source.rows or source.outages.kinds):
        return ()
    panels = latency_panels(rows, source.findings)
    each = " Faint dots: p90 of each repeat." if source.plan.suite.repeats > 1 else ""
    binned = (
        "Bars: the bin that holds the latency, where the driver reports no more. "
        if any_bins(panels)
        else ""
    )
    figure = Figure(
        name="latency-by-workers",
        section="workers",
        title="Latency by workers: p90 and max",
        finding=latency_headline(rows, source.findings),
        caption="Filled, joined: p90, where there are the 200 samples that it needs. Hollow: the "
        "slowest request."
        f"{each}{_doubt_words(source)} {binned}{_CROSSED}",
        data=latency_csv(rows),
        panels=tuple(latency_panel(panel) for panel in panels),
        layouts=source.layouts,
    )
    return (figure,)


def first_byte_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of the time to first byte, of runs whose driver times it."""
    rows = source.by_workers
    panels = first_byte_panels(rows, source.findings)
    if not panels:
        return ()
    figure = Figure(
        name="first-byte-by-workers",
        section="workers",
        title="Time to first byte by workers: p50 and p90",
        finding=latency_headline(rows, source.findings, "first-byte"),
        caption="From the start of a read or listing to the first byte of its answer. Filled, "
        f"joined: p90. Hollow: the median.{_doubt_words(source)} {_CROSSED}",
        data=latency_csv(
            [row for row in rows if row.value("first-byte-p50") is not None], "first-byte"
        ),
        panels=tuple(latency_panel(panel, ("p90", "p50")) for panel in panels),
        layouts=source.layouts,
    )
    return (figure,)


def _doubt_words(source: ChartSource) -> str:
    doubted = any(
        in_doubt(row, metric, source.findings)
        for row in source.rows
        if row.valid
        for metric in ALWAYS
    )
    return " Hollow on a line: provisional or not comparable." if doubted else ""


def repeats_used(rows: Sequence[Row], planned: int) -> str:
    """`5 repeats`, or `3 to 5 repeats` where not all were usable; as planned without results."""
    counts = sorted({row.repeats for row in rows if row.ranked and row.repeats}) or [planned]
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{span} repeat{'s' * (counts[-1] > 1)}"


def latency_headline(
    rows: Sequence[Row], findings: Sequence[Finding], metric: MetricKey = "p90"
) -> str:
    """The largest gap between two p90s at one worker count, among layouts that are comparable."""
    best: tuple[float, Row, Row] | None = None
    names = subjects(rows)
    apart = {
        (kind_of(one), one.workers, frozenset((one.faster, one.slower)))
        for one in findings
        if one.ratio is None
    }
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if may_rank(row, metric) and row.value(metric):
            groups.setdefault((*kind_of(row), row.workers), []).append(row)
    for cells in groups.values():
        for low, high in permutations(cells, 2):
            gap = (high.value(metric) or 0) / (low.value(metric) or 1)
            pair = (kind_of(low), low.workers, frozenset((low.layout, high.layout)))
            if pair not in apart and (best is None or gap > best[0]):
                best = (gap, low, high)
    name = METRICS[metric].name
    if best is None and metric != "p90":
        return f"{name} by worker count"
    if best is None:
        return _widest_of_bins(rows) or "p90 and the slowest request by worker count"
    _, low, high = best
    doubted = in_doubt(low, metric, findings) or in_doubt(high, metric, findings)
    return (
        f"{'Provisional: ' * doubted}{name} differs most in {names[kind_of(low)]} at "
        f"{counted(low.workers, 'worker')}: "
        f"{shown(low, metric, spread=False)} ms on {low.layout}, "
        f"{shown(high, metric, spread=False)} ms on {high.layout}"
    )


def _widest_of_bins(rows: Sequence[Row]) -> str:
    """The largest gap between two bins of p90; empty where all touch."""
    names = subjects(rows)
    known = [
        (row, found)
        for row in rows
        if may_rank(row, "p90") and (found := row.within("p90")) is not None
    ]
    pairs = [
        (slow_in.low_ms / fast_in.top_ms, fast, slow, distinguished(fast_in, slow_in))
        for fast, fast_in in known
        for slow, slow_in in known
        if (kind_of(fast), fast.workers) == (kind_of(slow), slow.workers)
        and slow_in.low_ms > fast_in.top_ms
    ]
    if not pairs:
        return (
            "No two p90s can be distinguished: their bins touch"
            if len({row.layout for row, _ in known}) > 1
            else ""
        )
    _, fast, slow, words = max(pairs, key=lambda pair: pair[0])
    at = counted(fast.workers, "worker")
    return (
        f"p90 differs most in {names[kind_of(fast)]} at {at}: {words}, {fast.layout} vs "
        f"{slow.layout}"
    )


def throughput_panel(data: WorkerPanel) -> Panel:
    """A panel of throughput. Its scale begins at 0 and holds the ceilings that are near."""
    values = [dot.value for dot in data.dots] + [
        mark.value for mark in data.marks if mark.value is not None
    ]
    y = AxisScale.from_zero(top_with_ceilings(max(values, default=0.0), data.ceilings), "op/s")
    lone = len({mark.layout for mark in data.marks}) == 1
    bands = [
        Trace(layout=run[0].layout, **_ends(run, y.high))
        for run in _runs(data)
        if sum(one.high is not None for one in run) > 1
    ]
    strips = [
        _spot(run[0], run[0].low, y2=min(run[0].high, y.high))
        for run in _runs(data)
        if len(run) == 1 and run[0].high is not None
    ]
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
            "aside": far_ceilings(data.ceilings, y.high),
            "head": ("Layout", "Workers", "op/s", "Each repeat", "Notes"),
            "lines": tuple(lines),
        }
    )


def latency_panel(data: WorkerPanel, names: tuple[str, str] = ("p90", "max")) -> Panel:
    """A panel of p90 and a second figure on one logarithmic scale."""
    first, second = names
    each = [dot.value for dot in data.dots if dot.valid and dot.value]
    known = (
        [value for mark in data.marks for value in (mark.value, mark.top) if value]
        + each
        + bin_ends(data)
    )
    y = AxisScale.logarithmic(known, "ms (log scale)")
    tops = [
        _spot(one, one.top, f"{second} {show_figure(one.top)} ms")
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
        unit=f"ms of {first}",
    ).model_copy(
        update={
            "head": ("Layout", "Workers", f"{first} ms", f"{second} ms", "Notes"),
            "lines": tuple(lines),
        }
    )


def _panel(data: WorkerPanel, y: AxisScale, *, under: tuple[Mark, ...], unit: str) -> Panel:
    good = [mark for mark in data.marks if mark.stretch is not None]
    sure, doubted = ([one for one in good if one.provisional is hollow] for hollow in (False, True))
    crosses = [
        _spot(one, height_of(one) or y.low, one.note or "invalid")
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
        alt_text=" ".join(data.sentences),
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
    tip_text = f"{mark.layout}, {mark.workers} workers: {tip}" if tip else ""
    return Spot(x=mark.workers, y=y, y2=y2, layout=mark.layout, tip=tip_text)


def _runs(data: WorkerPanel) -> list[list[WorkerPoint]]:
    runs: dict[tuple[str, int], list[WorkerPoint]] = {}
    for mark in data.marks:
        if mark.stretch is not None:
            runs.setdefault((mark.layout, mark.stretch), []).append(mark)
    return list(runs.values())


def _ends(run: Sequence[WorkerPoint], top: float) -> dict[str, tuple[float, ...]]:
    """A band along a line, cut off at the end of the scale."""
    known = [one for one in run if one.low is not None and one.high is not None]
    ends = [(one.workers, one.low or 0.0, min(one.high or 0.0, top)) for one in known]
    return dict(zip(("x", "y", "y2"), zip(*ends, strict=True), strict=True))


def _labels(data: WorkerPanel, floor: float) -> tuple[Label, ...]:
    last = {mark.layout: mark for mark in data.marks if mark.valid and height_of(mark)}
    return tuple(
        Label(layout=layout, x=last[layout].workers, y=height_of(last[layout]) or floor)
        if layout in last
        else Label(layout=layout, x=None, y=floor, text=f"{layout} (none)")
        for layout in dict.fromkeys(mark.layout for mark in data.marks)
    )
