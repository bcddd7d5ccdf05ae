"""Charts of throughput, and of p90 and the first byte, by workers: a panel per kind of requests.

Lines join neighbouring worker counts that are both comparable; a step that is missing or invalid
leaves a gap. With one worker count there are no lines: each layout has a row with its repeats and
its interval. Where a driver reports latencies in bins, a bar spans the bin. No line joins bars,
since the place of a latency in its bin is unknown, and layouts are side by side so that bars do not
overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from types import MappingProxyType
from typing import Any, Final

from weighbridge.results.figures.doubt import graves, touching
from weighbridge.results.figures.metric import show_latency
from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.figures.validity import least_samples
from weighbridge.results.judge.comparison import Effect, kind_of, subjects
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
from weighbridge.results.show.chart_source import CeilingLine, ChartSource, in_doubt, place_of
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
    repeats, layouts = source.plan.suite.repeats, source.layouts
    counted_repeats = repeats_used(source.by_workers, repeats)
    drawn = (
        f"Geometric mean of {counted_repeats} (dots) with its 95 % interval."
        if repeats > 1
        else "One repeat."
    )
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: provisional."
        if repeats < REPEATS_FOR_A_CLAIM and len(layouts) > 1
        else ""
    )
    ceilings = source.ceilings
    dashed = " Dashed: the ceilings of the layers below." if any(ceilings.values()) else ""
    return _charts(
        source,
        "throughput",
        key="throughput-by-workers",
        title="Throughput by workers",
        finding=headline(source.leads, source.stores)
        if len(layouts) > 1
        else f"What {layouts[0].name} serves by worker count",
        caption=f"{drawn}{_doubt_words(source, 'throughput')} {_CROSSED}{dashed}{few}",
        ceilings=ceilings,
    )


def latency_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of p90 and the slowest requests."""
    rows = source.by_workers
    binned = any(row.within(metric) is not None for row in rows for metric in ("p90", "max"))
    bins = " Bars: the bin that holds the latency." if binned else ""
    return _charts(
        source,
        "p90",
        key="latency-by-workers",
        title="Latency by workers: p90 and max",
        finding=latency_headline(rows, source.effects),
        caption="Points: p90, with its 95 % interval over the repeats (dots). Dash: the slowest "
        f"request.{_doubt_words(source, 'p90')} {_CROSSED}{bins}",
    )


def first_byte_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of the time to first byte, of runs whose driver times it."""
    if not any(row.value("first-byte-p50") is not None for row in source.by_workers):
        return ()
    return _charts(
        source,
        "first-byte",
        key="first-byte-by-workers",
        title="Time to first byte by workers: p50 and p90",
        finding=latency_headline(source.by_workers, source.effects, "first-byte"),
        caption="From the start of a read or listing to the first byte of its answer. Points: p90 "
        f"with its 95 % interval. Dash: the median.{_doubt_words(source, 'first-byte')} {_CROSSED}",
    )


def _charts(
    source: ChartSource,
    metric: MetricKey,
    *,
    ceilings: Mapping[str, tuple[CeilingLine, ...]] = MappingProxyType({}),
    **about: Any,
) -> tuple[Chart, ...]:
    rows = source.by_workers
    if not rows and source.data.every_row:
        return ()
    leads = {lead.kind: lead for lead in source.leads}
    panels = []
    for kind, cells in source.cells(rows).items():
        if metric == "first-byte" and not any(one.value("first-byte-p50") for one in cells):
            continue
        lead, key = leads.get(kind), "-".join(kind)
        if metric in SECOND:
            said = _slowest(cells, metric)
        else:
            said = "" if lead is None else title(lead, source.stores)
        panels.append(
            _panel(
                cells,
                metric,
                source,
                ceilings.get(key, ()),
                key=key,
                title=upper(source.names[kind]),
                finding=said,
                alt_text=lead.effect.text if lead is not None and lead.effect is not None else "",
            )
        )
    if metric not in SECOND:
        about["caption"] += source.caveat
    chart = Chart(panels=tuple(panels), layouts=source.layouts, section="workers", **about)
    return (chart,)


def _panel(
    cells: Sequence[Row],
    metric: MetricKey,
    source: ChartSource,
    ceilings: Sequence[CeilingLine],
    **about: Any,
) -> Panel:
    counts = sorted({row.workers for row in cells})
    layouts = list(dict.fromkeys(row.layout for row in cells))
    scale = _scale(cells, metric, ceilings)
    rows = []
    for number, layout in enumerate(layouts):
        shift = _BIN_APART ** (number - (len(layouts) - 1) / 2)
        mine = [row for row in cells if row.layout == layout]
        rows += list(_rows(mine, metric, source, scale.low, shift))
    if far := far_ceilings(ceilings, scale.high):
        about["finding"] = "; ".join(part for part in (about["finding"], far) if part)
    if len(counts) == 1:
        about["title"] += f", {counted(counts[0], 'worker')}"
        return Panel(
            rows=rows,
            spec=_dots(layouts, scale, metric, binned=any("_x" in row for row in rows)),
            height=44 * len(layouts) + 40,
            **about,
        )
    ends = []
    for layout in layouts:
        known = [one for one in rows if one["layout"] == layout and one["_end"] is not None]
        if known:
            ends.append(End(layout, known[-1]["workers"], known[-1]["_end"]))
        else:
            ends.append(End(layout, None, scale.low, text=f"{layout} (none)"))
    lines = _lines(counts, scale, metric, [row for row in rows if "_x" in row])
    ceiling = ceiling_layers(ceilings, scale, lone=len(layouts) == 1)
    spec = {**lines, "layer": [*ceiling, *lines["layer"]]}
    return Panel(rows=rows, spec=spec, ends=tuple(ends), y=scale, **about)


def _scale(cells: Sequence[Row], metric: MetricKey, ceilings: Sequence[CeilingLine]) -> AxisScale:
    """The scale of a panel: throughput from 0 with the ceilings that are near, latency by its
    logarithm; an interval without bounds does not squeeze it.
    """
    values = [point.value(metric) for row in cells for point in row.points if point.valid]
    values += [row.value(key) for row in cells for key in (metric, SECOND.get(metric, metric))]
    known = [value for value in values if value]
    if metric not in SECOND:
        largest = max(known, default=0.0)
        highs = [min(row.figure(metric).high or 0.0, 1.6 * largest) for row in cells]
        return AxisScale.from_zero(
            top_with_ceilings(max([largest, *highs]), ceilings), METRICS[metric].unit
        )
    # The first bin begins at 0, which a logarithmic scale cannot show: half of it is shown.
    for row in cells:
        for within in (row.within(metric), row.within(SECOND[metric])):
            if within is not None:
                top_ms = within.low_ms if within.high_ms is None else within.high_ms
                known += [within.low_ms or top_ms / 2, top_ms]
    return AxisScale.logarithmic(known, "ms (log scale)")


def _rows(
    mine: Sequence[Row],
    metric: MetricKey,
    source: ChartSource,
    floor: float,
    shift: float,
) -> Iterator[Spec]:
    """The rows of one layout. `_stretch` numbers the runs of neighbours that can be joined."""
    shown_as, second = METRICS[metric], SECOND.get(metric)
    low_column, high_column = shown_as.spread_columns
    stretches: list[int] = []
    for number, row in enumerate(mine):
        joined = number > 0 and _counts(mine[number - 1], metric) and _counts(row, metric)
        stretches.append(stretches[-1] if joined else number)
    for row, stretch in zip(mine, stretches, strict=True):
        figure, grave = row.figure(metric), graves(touching(row.doubts, metric))
        valid = row.valid and not row.condemned and not grave
        counts = _counts(row, metric)
        value = figure.value
        found: dict[str, Any] = {
            **place_of(row),
            shown_as.column: value,
            low_column: figure.low if counts else None,
            high_column: figure.high if counts else None,
        }
        top = None
        if second is not None:
            top = row.value(second)
            found[METRICS[second].column] = top
        found["each"] = tuple(
            each for one in row.points if one.valid and (each := one.value(metric)) is not None
        )
        found["samples"] = row.count("samples")
        found["standing"] = source.standing(row, metric)
        notes = (*(doubt.words for doubt in grave), *row.notes)
        found["notes"] = "; ".join(dict.fromkeys(notes))
        found["_stretch"] = f"{row.layout}-{stretch}" if counts else None
        found["_alone"] = stretches.count(stretch) == 1
        found["_at"] = value or floor
        found["_end"] = (value or top) if valid else None
        found["_text"] = show_latency(value, row.within(metric))
        bins = (row.within(metric), row.within(second) if second else None)
        for within, name in zip(bins, ("", "_max"), strict=True):
            if within is not None:
                ends = METRICS[second or metric].bin_columns if name else shown_as.bin_columns
                found |= {ends[0]: within.low_ms, ends[1]: within.high_ms}
                found["_x"] = row.workers * shift
                found[f"_low{name}"] = max(within.low_ms, floor)
                found[f"_high{name}"] = within.low_ms if within.high_ms is None else within.high_ms
                found["_end"] = found["_end"] or (found[f"_high{name}"] if valid else None)
        yield found


def _counts(row: Row, metric: MetricKey) -> bool:
    """Whether a line may pass through a row."""
    grave = graves(touching(row.doubts, metric))
    return row.valid and not row.condemned and not grave and row.value(metric) is not None


def _lines(
    counts: Sequence[int], scale: AxisScale, metric: MetricKey, bins: Sequence[Spec]
) -> Spec:
    low, high = METRICS[metric].spread_columns
    repeats = layer("circle", "repeat", f"datum.standing != '{NOT_COMPARABLE}'", y="each")
    repeats["transform"].append({"flatten": ["each"]})
    joined = "isValid(datum._stretch)"
    interval = f"{joined} && isValid(datum.{low}) && isValid(datum.{high})"
    stretch = {"field": "_stretch", "type": "nominal"}
    band = layer("area", "band", interval, y=low, y2=high, detail=stretch)
    alone = layer("rule", "interval", f"{interval} && datum._alone", y=low, y2=high)
    layers = [repeats, band, alone]
    for one in layers[1:]:
        one["mark"]["clip"] = True
    if bins:
        for name in ("", "_max"):
            within = layer(
                "rule", "bin", f"isValid(datum._high{name})", y=f"_low{name}", y2=f"_high{name}"
            )
            within["encoding"]["x"] = {"field": "_x"}
            within["mark"] |= {"opacity": 0.25} if name else {}
            layers.append(within)
    layers.append(layer("line", "path", joined, y=METRICS[metric].column, detail=stretch))
    if metric in SECOND:
        column = METRICS[SECOND[metric]].column
        valid = f"isValid(datum.{column}) && datum.standing != '{NOT_COMPARABLE}'"
        layers.append(layer("point", "second", valid, y=column))
    return {
        "encoding": {
            "x": {**AxisScale.workers(counts).encoding(), "field": "workers"},
            "y": scale.encoding(),
            "color": COLOUR,
        },
        "layer": [*layers, *standing_layers(METRICS[metric].column)],
    }


def _dots(layouts: Sequence[str], scale: AxisScale, metric: MetricKey, *, binned: bool) -> Spec:
    """A row for each layout, at the only worker count."""
    low, high = METRICS[metric].spread_columns
    column, valid = METRICS[metric].column, f"datum.standing != '{NOT_COMPARABLE}'"
    repeats = layer("circle", "repeat", valid, x="each")
    repeats["transform"].append({"flatten": ["each"]})
    interval = layer("rule", "interval", f"isValid(datum.{low})", x=low, x2=high)
    interval["mark"]["clip"] = True
    layers = [repeats, interval]
    if binned:
        layers.append(layer("rule", "bin", "isValid(datum._high)", x="_low", x2="_high"))
    if metric in SECOND:
        second = METRICS[SECOND[metric]].column
        layers.append(layer("tick", "upright", f"isValid(datum.{second}) && {valid}", x=second))
    for one in standing_layers(column):
        place = one["encoding"].pop("y")
        layers.append({**one, "encoding": {**one["encoding"], "x": place}})
    words = layer("text", "figure", "", x="_at", text="_text")
    words["mark"] |= {"dy": -18}
    words["encoding"]["color"] = INK
    x = scale.encoding(grid=True)
    names = {**names_encoding(layouts), "field": "layout"}
    return {"encoding": {"x": x, "y": names, "color": COLOUR}, "layer": [*layers, words]}


def _doubt_words(source: ChartSource, metric: MetricKey) -> str:
    doubted = any(source.standing(row, metric) == PROVISIONAL for row in source.by_workers)
    return " Hollow: provisional." if doubted else ""


def repeats_used(rows: Sequence[Row], planned: int) -> str:
    """`5 repeats`, or `3 to 5 repeats` where not all were usable; as planned without results."""
    counts = sorted({row.repeats for row in rows if row.ranked and row.repeats}) or [planned]
    span = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"{span} repeat{'s' * (counts[-1] > 1)}"


def latency_headline(
    rows: Sequence[Row], effects: Sequence[Effect], metric: MetricKey = "p90"
) -> str:
    """The largest gap between two p90s at one worker count, among layouts that are comparable."""
    best: tuple[float, Row, Row] | None = None
    names = subjects(rows)
    apart = {
        (kind_of(one), one.workers, frozenset((one.baseline, one.subject)))
        for one in effects
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
    doubted = any(in_doubt(row, metric, effects) for row in (low, high))
    why = {one.what: "" for row in (low, high) for one in touching(row.doubts, metric)}
    caveat = f" (caveat: {', '.join(why)})" if why else ""
    return (
        f"{name} {'differed' if doubted else 'differs'} most in {names[kind_of(low)]} at "
        f"{counted(low.workers, 'worker')}: "
        f"{shown(low, metric, spread=False)} ms on {low.layout}, "
        f"{shown(high, metric, spread=False)} ms on {high.layout}{caveat}"
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


def _slowest(cells: Sequence[Row], metric: MetricKey) -> str:
    """The lowest and the highest figure at the largest worker count that has two, if any."""
    name = METRICS[metric].name
    if any(row.within(metric) is not None for row in cells):
        return _slowest_bins(cells)
    if all(row.value(metric) is None for row in cells):
        return f"too few samples for a p90: it needs {least_samples(90)}"
    for workers in sorted({row.workers for row in cells}, reverse=True):
        ranked = [row for row in cells if row.workers == workers and may_rank(row, metric)]
        known = sorted(
            (row for row in ranked if row.value(metric) is not None),
            key=lambda row: (row.value(metric) or 0.0, row.layout),
        )
        if len(known) > 1:
            fast, slow = known[0], known[-1]
            low, high = (shown(row, metric, spread=False) for row in (fast, slow))
            at = counted(workers, "worker")
            return f"{name} at {at}: {low} ms {fast.layout}, {high} ms {slow.layout}"
    return f"no {name} to compare" if len({row.layout for row in cells}) > 1 else ""


def _slowest_bins(cells: Sequence[Row]) -> str:
    """The two bins of p90 that are farthest apart, with their layouts, if not touching."""
    for workers in sorted({row.workers for row in cells}, reverse=True):
        known = [
            (within, row.layout)
            for row in cells
            if row.workers == workers
            and may_rank(row, "p90")
            and (within := row.within("p90")) is not None
        ]
        if len(known) > 1:
            known.sort(key=lambda one: (one[0].low_ms, one[0].top_ms))
            (low, fast), (high, slow) = known[0], known[-1]
            names = f": {fast}, {slow}" if not low.touches(high) else ""
            return f"p90 at {counted(workers, 'worker')} {distinguished(low, high)}{names}"
    return "no p90 to compare" if len({row.layout for row in cells}) > 1 else ""


def top_with_ceilings(largest: float, lines: Iterable[CeilingLine]) -> float:
    """The largest value for the scale to hold, including the ceilings that are near."""
    return max([largest, *(line.value for line in lines if line.value <= NEAR * largest)])


def ceiling_layers(lines: Sequence[CeilingLine], scale: AxisScale, *, lone: bool) -> list[Spec]:
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
        rule = layer("rule", "level", whose, y="value", color=colour)
        rule["encoding"] |= FULL_WIDTH
        words = layer("text", "note", whose, y="at", text="text", color=colour)
        words["encoding"]["x"] = {"value": 0}
        layers += [rule, words]
    return [{**one, "data": {"values": rows}} for one in layers]


def far_ceilings(lines: Sequence[CeilingLine], top: float) -> str:
    """The ceilings above the scale: `↑ disks 9,370, network 6,250 to 18,900`; empty without any."""
    found: dict[str, list[float]] = {}
    for line in lines:
        if line.value > top:
            found.setdefault(line.layer, []).append(line.value)
    spans = []
    for name, values in found.items():
        low, high = show_figure(min(values)), show_figure(max(values))
        spans.append(f"{name} {low if low == high else f'{low} to {high}'}")
    return f"↑ {', '.join(spans)}" if spans else ""
