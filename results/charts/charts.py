"""The charts: throughput by workers, p90 and max by workers; for the screen as PNG, SVG and PDF, for the report as specs.

Small multiples by workload and operation; direct labels in place of a legend; a layout has one colour and one shape in
every chart; what is not valid or not measured is a cross that no line passes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final

import altair as alt

from weighbridge.common.record import Record
from weighbridge.results.analysis.contrast import ALWAYS
from weighbridge.results.analysis.findings import Finding, headline, kind_of, subjects, told_apart
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.bin_bars import bars, ends_of, height_of, told_in_bins
from weighbridge.results.charts.ceiling_lines import ceiling_layers, stretched
from weighbridge.results.charts.chart_data import (
    CeilingLine,
    Mark,
    Panel,
    in_doubt,
    latency_csv,
    latency_panels,
    log_ticks,
    nice_top,
    spread,
    throughput_csv,
    throughput_panels,
)
from weighbridge.results.charts.chart_theme import LIGHT, Look, Style, config, styles
from weighbridge.results.charts.figure import in_lines, together
from weighbridge.results.charts.pictures import Drawing, write_charts
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

__all__ = ["Chart", "Drawing", "charts", "colour_of", "shape_of", "told_repeats", "workers_axis", "write_charts"]

WIDTH: Final = 440
HEIGHT: Final = 260
_CEILINGS: Final = " Dashed: what disks, network and store can do for clients; ↑ far above the scale."
LABEL_PX: Final = 19
"""Height of a line's label."""


class Chart(Record):
    """One chart: what it says, its panels, and the CSV it is drawn from. `finding` is its title, one sentence."""

    name: str
    title: str
    finding: str
    caption: str
    csv: str
    panels: tuple[Panel, ...]
    styles: tuple[Style, ...]
    logarithmic: bool
    look: Look = LIGHT

    def panel_spec(self, panel: Panel) -> dict[str, Any]:
        """The Vega-Lite spec of one panel that takes the width it is given."""
        spec: dict[str, Any] = self._draw(panel, "container").to_dict(validate=False)
        # On a page the panel's title is a heading, and the page gives the margins.
        return {**spec, "config": {**config(self.look), "padding": 4, "background": None}}

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec of the whole chart."""
        drawn = [
            self._draw(panel, WIDTH)
            .properties(
                title=alt.Title(
                    panel.title, subtitle=panel.finding or " ", fontSize=18, fontWeight=600, subtitleFontSize=15, offset=14
                )
            )
            .to_dict(validate=False)
            for panel in self.panels
        ]
        title = {
            "text": in_lines(self.finding, 64 if len(drawn) > 1 else 38),
            "subtitle": in_lines(self.caption, 150 if len(drawn) > 1 else 62),
        }
        spec = together(drawn, "concat", columns=2 if len(drawn) > 1 else 1, title=title)
        return {**spec, "config": config(self.look)}

    def _draw(self, panel: Panel, width: int | str) -> alt.LayerChart | alt.FacetChart:
        return (_latency if self.logarithmic else _throughput)(panel, self.styles, self.look, width)


def charts(
    rows: Sequence[Row],
    findings: Sequence[Finding],
    layouts: Sequence[PlannedLayout],
    *,
    repeats: int,
    ceilings: Mapping[str, tuple[CeilingLine, ...]] = MappingProxyType({}),
    look: Look = LIGHT,
) -> tuple[Chart, ...]:
    """The charts of a table; `ceilings` by the keys of the panels of throughput."""
    styled = styles(layouts, look)
    dots = (
        f"line: geometric mean of {told_repeats(rows, repeats)}, each a faint dot; band: its 95 % interval"
        if repeats > 1
        else "one repeat"
    )
    each = " Faint dots: p90 of each repeat." if repeats > 1 else ""
    doubted = any(in_doubt(row, metric, findings) for row in rows if row.valid for metric in ALWAYS)
    restless = " Hollow on a line: provisional or not comparable." if doubted else ""
    above = _CEILINGS if any(ceilings.values()) else ""
    crossed = "× not valid or not measured."
    latencies = latency_panels(rows, findings)
    binned = "Bars: the bin in which either lies, where the driver tells no more. " if told_in_bins(latencies) else ""
    few = f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional." if repeats < REPEATS_FOR_A_CLAIM and len(layouts) > 1 else ""
    return (
        Chart(
            name="throughput-by-workers",
            title="Throughput by workers",
            finding=headline(findings) if len(layouts) > 1 else f"What {layouts[0].name} serves by worker count",
            caption=f"Operations per second by worker count; {dots}.{restless} {crossed}{above}{few}",
            csv=throughput_csv(rows),
            panels=throughput_panels(rows, findings, ceilings),
            styles=styled,
            look=look,
            logarithmic=False,
        ),
        Chart(
            name="latency-by-workers",
            title="Latency by workers: p90 and max",
            finding=_latency_headline(rows, findings),
            caption="Filled, joined: p90, where at least 200 samples give one. Hollow: the slowest request."
            f"{each}{restless} {binned}{crossed}",
            csv=latency_csv(rows),
            panels=latencies,
            styles=styled,
            look=look,
            logarithmic=True,
        ),
    )


def told_repeats(rows: Sequence[Row], planned: int) -> str:
    """`5 repeats`, or `3 to 5 repeats` where not all could be used; as planned where nothing was measured."""
    counts = sorted({row.repeats for row in rows if row.ranked and row.repeats}) or [planned]
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{span} repeat{'s' * (counts[-1] > 1)}"


def _latency_headline(rows: Sequence[Row], findings: Sequence[Finding]) -> str:
    """The widest of the gaps between p90s at one worker count, in words; none of layouts that are not comparable."""
    best: tuple[float, Row, Row] | None = None
    names = subjects(rows)
    apart = {(kind_of(one), one.workers, frozenset((one.faster, one.slower))) for one in findings if one.ratio is None}
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if may_rank(row, "p90") and row.p90_ms:
            groups.setdefault((*kind_of(row), row.workers), []).append(row)
    for cells in groups.values():
        for low, high in permutations(cells, 2):
            gap = (high.p90_ms or 0) / (low.p90_ms or 1)
            pair = (kind_of(low), low.workers, frozenset((low.layout, high.layout)))
            if pair not in apart and (best is None or gap > best[0]):
                best = (gap, low, high)
    if best is None:
        return _widest_of_bins(rows) or "p90 and the slowest request by worker count"
    _, low, high = best
    doubted = in_doubt(low, "p90", findings) or in_doubt(high, "p90", findings)
    return (
        f"{'Provisional: ' * doubted}p90 differs most in {names[kind_of(low)]} at {low.workers} worker{'s' * (low.workers > 1)}: "
        f"{shown(low, 'p90', spread=False)} ms on {low.layout}, {shown(high, 'p90', spread=False)} ms on {high.layout}"
    )


def _widest_of_bins(rows: Sequence[Row]) -> str:
    """The same of p90s that were told in bins, by the gap between two bins; empty where none lie apart."""
    names = subjects(rows)
    known = [(row, row.p90_in) for row in rows if may_rank(row, "p90") and row.p90_in is not None]
    pairs = [
        (slow_in.low_ms / fast_in.top_ms, fast, slow, told_apart(fast_in, slow_in))
        for fast, fast_in in known
        for slow, slow_in in known
        if (kind_of(fast), fast.workers) == (kind_of(slow), slow.workers) and slow_in.low_ms > fast_in.top_ms
    ]
    if not pairs:
        return "No p90 is told apart from another: their bins touch" if len({row.layout for row, _ in known}) > 1 else ""
    _, fast, slow, words = max(pairs, key=lambda pair: pair[0])
    at = f"{fast.workers} worker{'s' * (fast.workers > 1)}"
    return f"p90 differs most in {names[kind_of(fast)]} at {at}: {words}, {fast.layout} against {slow.layout}"


def _throughput(panel: Panel, styled: Sequence[Style], look: Look, width: int | str) -> alt.LayerChart | alt.FacetChart:
    largest = max([dot.value for dot in panel.dots] + [mark.value for mark in panel.marks if mark.value is not None], default=0.0)
    top, step = nice_top(stretched(largest, panel.ceilings))
    scale = alt.Scale(domain=[0, top], nice=False)
    ticks = [number * step for number in range(round(top / step) + 1)]
    y, low = (alt.Y(f"{field}:Q", scale=scale, title="op/s", axis=_y_axis(ticks)) for field in ("value", "low"))
    under = [
        *ceiling_layers(panel.ceilings, styled, y, top, HEIGHT, look),
        *_bands(panel, styled, low, top),
        _dots(panel, styled, y),
    ]
    return _layers(panel, styled, look, width, y, under, 0.0, lambda value: value / top, lambda share: share * top, "op/s")


def _latency(panel: Panel, styled: Sequence[Style], look: Look, width: int | str) -> alt.LayerChart | alt.FacetChart:
    each = [dot.value for dot in panel.dots if dot.valid and dot.value]
    known = [value for mark in panel.marks for value in (mark.value, mark.top) if value] + each + ends_of(panel)
    low, high, ticks = log_ticks(min(known, default=1.0), max(known, default=10.0))
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    y = alt.Y("value:Q", scale=scale, title="ms (log scale)", axis=_y_axis(ticks))
    tops = (
        alt.Chart(_data([mark.model_dump() for mark in panel.marks if mark.top]))
        .mark_point(size=60, filled=False, strokeWidth=1.6, opacity=0.75)
        .encode(
            x=workers_axis(panel.workers),
            y=alt.Y("top:Q", scale=scale),
            color=colour_of(styled),
            shape=shape_of(styled),
            tooltip=[alt.Tooltip("layout:N"), alt.Tooltip("workers:Q"), alt.Tooltip("top:Q", title="max ms", format=",.4~g")],
        )
        .transform_filter("datum.valid")
    )
    span = math.log(high / low)
    return _layers(
        panel,
        styled,
        look,
        width,
        y,
        [_dots(panel, styled, y), tops, *bars(panel, workers_axis(panel.workers), scale, colour_of(styled), (low, high))],
        low,
        lambda value: math.log(value / low) / span,
        lambda share: low * math.exp(share * span),
        "p90 ms",
    )


def _layers(
    panel: Panel,
    styled: Sequence[Style],
    look: Look,
    width: int | str,
    y: alt.Y,
    under: list[alt.Chart],
    floor: float,
    share_of: Callable[[float], float],
    value_at: Callable[[float], float],
    unit: str,
) -> alt.LayerChart | alt.FacetChart:
    """The lines, marks, crosses and labels that both charts share; `share_of` is the height of a value as a share of the panel."""
    x, colour = workers_axis(panel.workers), colour_of(styled)
    good = _data([mark.model_dump() for mark in panel.marks if mark.stretch is not None])
    crosses = [
        {**mark.model_dump(), "value": _crossed(mark, floor), "why": mark.note or "not valid"}
        for mark in panel.marks
        if not mark.valid
    ]
    tooltip = [alt.Tooltip("layout:N"), alt.Tooltip("workers:Q"), alt.Tooltip("value:Q", title=unit, format=",.4~g")]
    lines = alt.Chart(good).mark_line().encode(x=x, y=y, color=colour, detail=["layout:N", "stretch:O"])
    marks = (
        alt.Chart(good)
        .mark_point(size=95, filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape_of(styled), tooltip=tooltip)
    )
    restless = (
        alt.Chart(good)
        .transform_filter("datum.provisional")
        .mark_point(size=95, filled=True, color=look.background, stroke=look.background, opacity=1)
        .encode(x=x, y=y, shape=shape_of(styled)),
        alt.Chart(good)
        .transform_filter("datum.provisional")
        .mark_point(size=95, filled=False, strokeWidth=2.5, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape_of(styled), tooltip=tooltip),
    )
    cross = (
        alt.Chart(_data(crosses))
        .mark_point(size=230, shape="M-.6,-.6L.6,.6M.6,-.6L-.6,.6", filled=False, strokeWidth=2.5, opacity=1, clip=False)
        .encode(x=x, y=y, color=colour, tooltip=[alt.Tooltip("layout:N"), alt.Tooltip("workers:Q"), alt.Tooltip("why:N")])
    )
    text = (
        alt.Chart(_data(_labels(panel, share_of, value_at)))
        .mark_text(align="left", dx=14, fontSize=15, fontWeight=600, clip=False)
        .encode(x=x, y=y, color=colour, text="text:N")
    )
    return alt.layer(*under, lines, marks, *restless, cross, text).properties(width=width, height=HEIGHT)


def _dots(panel: Panel, styled: Sequence[Style], y: alt.Y) -> alt.Chart:
    """Every repeat that is valid, faint."""
    kept = _data([dot.model_dump() for dot in panel.dots if dot.valid])
    mark = alt.Chart(kept).mark_point(size=30, filled=True, opacity=0.35)
    drawn: alt.Chart = mark.encode(x=workers_axis(panel.workers), y=y, color=colour_of(styled))
    return drawn


def _bands(panel: Panel, styled: Sequence[Style], low: alt.Y, top: float) -> list[alt.Chart]:
    """Intervals: a band along the line, a bar where a mark stands alone. What is beyond the scale is cut off at its end."""
    ended = [{**mark.model_dump(), "high": min(mark.high, top)} for mark in panel.marks if mark.high is not None]
    base = alt.Chart(_data(ended))
    x, colour = workers_axis(panel.workers), colour_of(styled)
    # Where many bands lie on one another each must be paler for their lines to be seen.
    opacity = 0.16 if len({mark.layout for mark in panel.marks}) <= 3 else 0.1
    bands = base.transform_filter("!datum.alone").mark_area(opacity=opacity, line=False)
    bars_alone = base.transform_filter("datum.alone").mark_rule(strokeWidth=9, opacity=0.2)
    return [
        bands.encode(x=x, y=low, y2="high:Q", color=colour, detail=["layout:N", "stretch:O"]),
        bars_alone.encode(x=x, y=low, y2="high:Q", color=colour),
    ]


def _crossed(mark: Mark, floor: float) -> float:
    """Where the cross of a mark that is not valid stands: at its figure where there is one, else at the foot of the panel."""
    return height_of(mark) or floor


def _labels(panel: Panel, share_of: Callable[[float], float], value_at: Callable[[float], float]) -> list[dict[str, Any]]:
    """A label for each layout right of the end of its line, moved up or down where two would overlap."""
    ends: dict[str, float] = {}
    last: dict[str, int] = {}
    for mark in panel.marks:
        figure = height_of(mark)
        if figure and mark.valid:
            ends[mark.layout] = share_of(figure)
            last[mark.layout] = mark.workers
    bare = [layout for layout in dict.fromkeys(mark.layout for mark in panel.marks) if layout not in ends]
    ends |= dict.fromkeys(bare, 0.0)
    spots: dict[str, float] = {}
    for workers in {last.get(layout, panel.workers[-1]) for layout in ends}:
        there = {layout: share for layout, share in ends.items() if last.get(layout, panel.workers[-1]) == workers}
        spots |= dict(zip(there, spread(list(there.values()), LABEL_PX / HEIGHT), strict=True))
    return [
        {
            "layout": layout,
            "workers": last.get(layout, panel.workers[-1]),
            "value": value_at(spots[layout]),
            "text": f"{layout} (none)" if layout in bare else layout,
        }
        for layout in ends
    ]


def workers_axis(workers: Sequence[int], title: str | None = "workers") -> alt.X:
    """The axis of worker counts: logarithmic, a tick for each of them."""
    first, last = workers[0], workers[-1]
    ends = [first / 1.2, last * 1.08] if first != last else [first / 2, last * 2]
    axis = alt.Axis(values=list(workers), format="d", grid=False, tickSize=5)
    return alt.X("workers:Q", scale=alt.Scale(type="log", base=2, domain=ends, nice=False), title=title, axis=axis)


def _y_axis(ticks: Sequence[float]) -> alt.Axis:
    return alt.Axis(
        values=list(ticks),
        format=",.6~g",
        domain=False,
        ticks=False,
        titleAngle=0,
        titleAlign="left",
        titleAnchor="end",
        titleX=-4,
        titleY=-12,
    )


def colour_of(styled: Sequence[Style], *, legend: bool = False) -> alt.Color:
    """Each layout in its colour."""
    scale = alt.Scale(domain=[style.layout for style in styled], range=[style.colour for style in styled])
    return alt.Color("layout:N", scale=scale, legend=alt.Undefined if legend else None)


def shape_of(styled: Sequence[Style], *, legend: bool = False) -> alt.Shape:
    """Each layout in its shape."""
    scale = alt.Scale(domain=[style.layout for style in styled], range=[style.shape for style in styled])
    return alt.Shape("layout:N", scale=scale, legend=alt.Undefined if legend else None)


def _data(values: list[dict[str, Any]]) -> alt.InlineData:
    # A tuple: Altair copies lists, value by value, whenever charts are put together.
    return alt.InlineData(values=tuple(values))
