"""Charts of throughput, and of p90 and the first byte, by workers: a panel for each workload.

Lines join neighbouring worker counts that are both comparable; a step that is missing or invalid
leaves a gap. With one worker count there are no lines: each layout has a row with its repeats and
its interval. Where a driver reports latencies in bins, a bar spans the bin. No line joins bars,
since the place of a latency in its bin is unknown, and layouts are side by side so that bars do not
overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any, Final

from weighbridge.results.figures.doubt import graves, touching
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.reading import show_latency
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.validity import least_samples
from weighbridge.results.judge.comparison import Kind, kind_of
from weighbridge.results.judge.words import distinguished, headline, title
from weighbridge.results.numbers import counted, show_figure, upper
from weighbridge.results.show.chart import (
    COLOUR,
    FULL_WIDTH,
    INK,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    End,
    Panel,
    Spec,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import (
    CeilingLine,
    ChartSource,
    drawn_ends_ms,
    place_of,
    repeats_words,
)
from weighbridge.results.show.scales import AxisScale, names_encoding, spread

SECOND: Final[dict[MetricKey, MetricKey]] = {"p90": "max", "first-byte": "first-byte-p50"}
"""The metrics of charts of latency, with the one that each is shown with."""
_CROSSED: Final = "×: not comparable or not measured."
_BIN_APART: Final = 1.08
"""The ratio of the places of two layouts' bins."""
NEAR: Final = 1.6
"""A ceiling up to so many times the highest mark is drawn; a higher one is in words."""


def throughput_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of throughput, with the ceilings of the layers below where those are known."""
    planned, layouts = source.plan.suite.repeats, source.layouts
    counts = [row.repeats for row in source.by_workers if row.ranked and row.repeats] or [planned]
    drawn = f"Geometric mean of {repeats_words(counts)} (dots) with its 95 % interval."
    parts = [drawn if planned > 1 else "One repeat.", *_standing_words(source, "throughput")]
    if any(source.ceilings.values()):
        parts.append("Dashed: the ceilings of the layers below.")
    if planned < REPEATS_FOR_A_CLAIM and len(layouts) > 1:
        parts.append(f"Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional.")
    return _charts(
        source,
        "throughput",
        key="throughput-by-workers",
        title="Throughput by workers",
        finding=headline(source.leads, source.stores)
        if len(layouts) > 1
        else f"What {layouts[0].name} serves by worker count",
        caption=f"{' '.join(parts)}{source.caveat}",
    )


def latency_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of p90 and the slowest requests."""
    return _latency_charts(
        source,
        "p90",
        "Points: p90, with its 95 % interval over the repeats (dots). Dash: the slowest request.",
        key="latency-by-workers",
        title="Latency by workers: p90 and max",
    )


def first_byte_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of the time to first byte, of runs whose driver times it."""
    if not any(row.value("first-byte-p50") is not None for row in source.by_workers):
        return ()
    return _latency_charts(
        source,
        "first-byte",
        "From the start of a read or listing to the first byte of its answer. Points: p90 with its "
        "95 % interval. Dash: the median.",
        key="first-byte-by-workers",
        title="Time to first byte by workers: p50 and p90",
    )


def _latency_charts(
    source: ChartSource, metric: MetricKey, marks: str, **about: Any
) -> tuple[Chart, ...]:
    parts = [marks, *_standing_words(source, metric)]
    keys = (metric, SECOND[metric])
    if any(row.within(key) is not None for row in source.by_workers for key in keys):
        parts.append("Bars: the bin that holds the latency.")
    finding = _latency_finding(source, metric) or about["title"]
    return _charts(source, metric, finding=finding, caption=" ".join(parts), **about)


def _charts(source: ChartSource, metric: MetricKey, **about: Any) -> tuple[Chart, ...]:
    """None where something was measured, but nothing over worker counts."""
    if not source.by_workers and source.data.every_row:
        return ()
    panels = _panels(source, metric)
    return (Chart(panels=panels, layouts=source.layouts, section="workers", **about),)


def _standing_words(source: ChartSource, metric: MetricKey) -> list[str]:
    doubted = any(source.standing(row, metric) == PROVISIONAL for row in source.by_workers)
    return [*["Hollow: provisional."] * doubted, _CROSSED]


# ---- panels


def _panels(source: ChartSource, metric: MetricKey) -> tuple[Panel, ...]:
    leads = {lead.kind: lead for lead in source.leads}
    panels = []
    for kind, cells in source.cells(source.by_workers).items():
        if metric == "first-byte" and not any(row.value("first-byte-p50") for row in cells):
            continue
        key, lead, findings = "-".join(kind), leads.get(kind), []
        ceilings = source.ceilings.get(key, ()) if metric not in SECOND else ()
        scale = _scale(cells, metric, ceilings)
        if metric not in SECOND:
            findings = [] if lead is None else [title(lead, source.stores)]
            findings += _far_ceilings(ceilings, scale.high)
        elif not any(row.value(metric) or row.within(metric) for row in cells):
            findings.append(f"too few samples for a p90: it needs {least_samples(90)}")
        layouts = list(dict.fromkeys(row.layout for row in cells))
        rows = []
        for number, layout in enumerate(layouts):
            shift = _BIN_APART ** (number - (len(layouts) - 1) / 2)
            line = [row for row in cells if row.layout == layout]
            rows += list(_rows(line, metric, source, scale.low, shift))
        counts = sorted({row.workers for row in cells})
        layers = _layers(metric, binned=any("_x" in row for row in rows))
        about: dict[str, Any] = {"key": key, "rows": rows, "finding": "; ".join(findings)}
        about["alt_text"] = lead.effect.text if lead is not None and lead.effect else ""
        title_of = upper(source.names[kind])
        if len(counts) == 1:
            about |= {"spec": _in_rows(layers, layouts, scale), "height": 44 * len(layouts) + 40}
            panels.append(Panel(title=f"{title_of}, {counted(counts[0], 'worker')}", **about))
            continue
        x = AxisScale.workers(counts).encoding("workers")
        spec = {
            "encoding": {"x": x, "y": scale.encoding(), "color": COLOUR},
            "layer": [*_ceiling_layers(ceilings, scale, lone=len(layouts) == 1), *layers],
        }
        last = {row["layout"]: row for row in rows if row["_end"] is not None}
        ends = [
            End(layout, last[layout]["workers"], last[layout]["_end"])
            if layout in last
            else End(layout, None, scale.low, text=f"{layout} (none)")
            for layout in layouts
        ]
        panels.append(Panel(title=title_of, spec=spec, ends=tuple(ends), y=scale, **about))
    return tuple(panels)


def _scale(cells: Sequence[Row], metric: MetricKey, ceilings: Sequence[CeilingLine]) -> AxisScale:
    """The scale of a panel: throughput from 0 with the ceilings that are near, latency by its
    logarithm; an interval without bounds does not squeeze it.
    """
    second = SECOND.get(metric)
    values = [point.value(metric) for row in cells for point in row.points if point.valid]
    values += [row.value(key) for row in cells for key in (metric, second or metric)]
    known = [value for value in values if value]
    if second is None:
        largest = max(known, default=0.0)
        highs = [min(row.figure(metric).high or 0.0, 1.6 * largest) for row in cells]
        top = max([largest, *highs])
        near = [line.value for line in ceilings if line.value <= NEAR * top]
        return AxisScale.from_zero(max([top, *near]), METRICS[metric].unit)
    bins = [row.within(key) for row in cells for key in (metric, second)]
    known += [end_ms for within in bins if within is not None for end_ms in drawn_ends_ms(within)]
    return AxisScale.logarithmic(known, "ms (log scale)")


def _rows(
    line: Sequence[Row], metric: MetricKey, source: ChartSource, floor: float, shift: float
) -> Iterator[Spec]:
    """The rows of one layout. `_stretch` numbers the runs of neighbours that can be joined."""
    shown_as, second = METRICS[metric], SECOND.get(metric)
    low_column, high_column = shown_as.spread_columns
    standings = [source.standing(row, metric) for row in line]
    stretches: list[int | None] = []
    for number, (row, standing) in enumerate(zip(line, standings, strict=True)):
        joined = standing != NOT_COMPARABLE and row.value(metric) is not None
        before = stretches[-1] if stretches else None
        stretches.append(None if not joined else number if before is None else before)
    for row, standing, stretch in zip(line, standings, stretches, strict=True):
        figure, comparable = row.figure(metric), standing != NOT_COMPARABLE
        cells: dict[str, Any] = {
            **place_of(row),
            shown_as.column: figure.value,
            low_column: None if stretch is None else figure.low,
            high_column: None if stretch is None else figure.high,
        }
        top = None if second is None else row.value(second)
        if second is not None:
            cells[METRICS[second].column] = top
        repeats = (point.value(metric) for point in row.points if point.valid)
        cells["each"] = tuple(value for value in repeats if value is not None)
        cells["samples"] = row.count("samples")
        cells["standing"] = standing
        notes = (*(doubt.words for doubt in graves(touching(row.doubts, metric))), *row.notes)
        cells["notes"] = "; ".join(dict.fromkeys(notes))
        cells["_stretch"] = None if stretch is None else f"{row.layout}-{stretch}"
        cells["_alone"] = stretches.count(stretch) == 1
        cells["_at"] = figure.value or floor
        cells["_end"] = (figure.value or top) if comparable else None
        cells["_text"] = show_latency(figure.value, figure.within)
        for key, name in ((metric, ""), (second, "_max")):
            within = None if key is None else row.within(key)
            if key is not None and within is not None:
                _, high_ms = drawn_ends_ms(within)
                edges = zip(METRICS[key].bin_columns, (within.low_ms, within.high_ms), strict=True)
                cells |= edges
                cells["_x"] = row.workers * shift
                cells[f"_low{name}"] = max(within.low_ms, floor)
                cells[f"_high{name}"] = high_ms
                cells["_end"] = cells["_end"] or (high_ms if comparable else None)
        yield cells


def _layers(metric: MetricKey, *, binned: bool) -> list[Spec]:
    """The repeats, intervals, lines, bins, and the points of the figures."""
    column, (low, high) = METRICS[metric].column, METRICS[metric].spread_columns
    comparable, joined = f"datum.standing != '{NOT_COMPARABLE}'", "isValid(datum._stretch)"
    known = f"isValid(datum.{low}) && isValid(datum.{high})"
    repeats = layer("circle", "repeat", comparable, y="each")
    repeats["transform"].append({"flatten": ["each"]})
    layers = [
        repeats,
        layer("area", "band", f"{joined} && {known}", y=low, y2=high, detail="_stretch"),
        layer("line", "path", joined, y=column, detail="_stretch"),
        # The interval of what no line joins.
        layer("rule", "interval", f"datum._alone && {known}", y=low, y2=high),
    ]
    for name in ("", "_max") if binned else ():
        ends = {"x": "_x", "y": f"_low{name}", "y2": f"_high{name}"}
        within = layer("rule", "bin", f"isValid(datum._high{name})", **ends)
        within["mark"] |= {"opacity": 0.25} if name else {}
        layers.append(within)
    if metric in SECOND:
        second = METRICS[SECOND[metric]].column
        layers.append(
            layer("point", "second", f"isValid(datum.{second}) && {comparable}", y=second)
        )
    return [*layers, *standing_layers(column)]


def _in_rows(layers: Sequence[Spec], layouts: Sequence[str], scale: AxisScale) -> Spec:
    """The layers on their side: a row for each layout with its figure, at one worker count."""
    turned = []
    for part in layers:
        if part["mark"]["type"] not in ("area", "line"):
            channels = {"y": "x", "y2": "x2"}
            encoding = {
                channels.get(name, name): field
                for name, field in part["encoding"].items()
                if name != "x"
            }
            angle = {"angle": 90} if part["mark"].get("style") == "second" else {}
            turned.append({**part, "mark": {**part["mark"], **angle}, "encoding": encoding})
    figures = layer("text", "figure", x="_at", text="_text", color=INK)
    figures["mark"]["dy"] = -18
    return {
        "encoding": {
            "x": scale.encoding(grid=True),
            "y": names_encoding(layouts, "layout"),
            "color": COLOUR,
        },
        "layer": [*turned, figures],
    }


# ---- findings of latencies


def _latency_finding(source: ChartSource, metric: MetricKey) -> str:
    """The largest gap between comparable layouts' latencies at one worker count, if any."""
    apart = {
        (kind_of(effect), effect.workers, frozenset((effect.baseline, effect.subject)))
        for effect in source.effects
        if effect.ratio is None
    }
    cells: dict[tuple[Kind, int], list[tuple[Row, float, float]]] = {}
    for row in source.by_workers:
        within, value = row.within(metric), row.value(metric)
        if may_rank(row, metric) and (within is not None or value):
            ends = (
                (value or 0.0, value or 0.0) if within is None else (within.low_ms, within.top_ms)
            )
            cells.setdefault((kind_of(row), row.workers), []).append((row, *ends))
    widest, low, high = 0.0, None, None
    for place, ranked in cells.items():
        for (one, _, top_ms), (other, low_ms, _) in permutations(ranked, 2):
            pair = (*place, frozenset((one.layout, other.layout)))
            if low_ms / top_ms > widest and pair not in apart:
                widest, low, high = low_ms / top_ms, one, other
    if low is None or high is None:
        return ""
    first, last = low.within(metric), high.within(metric)
    said = ", ".join(
        f"{shown(row, metric, spread=False)} ms on {row.layout}" for row in (low, high)
    )
    if first is not None and last is not None:
        if first.touches(last):
            return "No two p90s can be distinguished: their bins touch"
        said = f"{distinguished(first, last)}, {low.layout} vs {high.layout}"
    doubted = any(source.standing(row, metric) == PROVISIONAL for row in (low, high))
    reasons = {doubt.what: "" for row in (low, high) for doubt in touching(row.doubts, metric)}
    caveat = f" (caveat: {', '.join(reasons)})" if reasons else ""
    return (
        f"{METRICS[metric].name} {'differed' if doubted else 'differs'} most in "
        f"{source.names[kind_of(low)]} at {counted(low.workers, 'worker')}: {said}{caveat}"
    )


# ---- ceilings


def _ceiling_layers(lines: Sequence[CeilingLine], scale: AxisScale, *, lone: bool) -> list[Spec]:
    """The ceilings on a scale, with their names; one of several layouts has its colour."""
    drawn = [line for line in lines if line.value <= scale.high]
    if not drawn:
        return []
    gap = 0.07
    places = spread([scale.share(line.value) + gap / 2 for line in drawn], gap)
    rows = [
        {
            "layout": line.layouts[0] if len(line.layouts) == 1 and not lone else "",
            "value": line.value,
            "at": scale.value(place),
            "text": f"{line.label} {show_figure(line.value)}",
        }
        for line, place in zip(drawn, places, strict=True)
    ]
    layers = []
    for whose, colour in (("datum.layout", COLOUR), ("!datum.layout", MUTED)):
        left = {"value": 0}
        layers += [
            layer("rule", "level", whose, rows, y="value", color=colour, **FULL_WIDTH),
            layer("text", "note", whose, rows, x=left, y="at", text="text", color=colour),
        ]
    return layers


def _far_ceilings(lines: Sequence[CeilingLine], top: float) -> list[str]:
    """The ceilings above the scale: `↑ disks 9,370, network 6,250 to 18,900`; none without any."""
    far: dict[str, list[float]] = {}
    for line in lines:
        if line.value > top:
            far.setdefault(line.layer, []).append(line.value)
    spans = []
    for name, values in far.items():
        low, high = show_figure(min(values)), show_figure(max(values))
        spans.append(f"{name} {low if low == high else f'{low} to {high}'}")
    return [f"↑ {', '.join(spans)}"] if spans else []
