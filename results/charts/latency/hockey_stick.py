"""The hockey stick: p90 by throughput, a path for each layout in the order of workers, and what
each serves within a bound on p90.

Between measured points the path is straight in op/s and ms, also where it crosses the bound; on the
logarithmic scale of latencies that is a curve.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.steps.service_level import (
    Served,
    Stop,
    default_bound_ms,
    path,
    served,
    stretches,
)
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.latencies import KindLatencies
from weighbridge.results.charts.panels import (
    TALL,
    AxisScale,
    Figure,
    Label,
    Mark,
    Panel,
    Spot,
    Trace,
)
from weighbridge.results.charts.worker_data import KIND_COLUMNS
from weighbridge.results.figures import UNKNOWN, counted, show_figure, show_ms, show_ratio, upper

_PARTS: Final = 12
"""Straight pieces of a curve between two points."""
_COLUMNS: Final = (
    *("workers", "throughput_ops_s", "throughput_low_ops_s", "throughput_high_ops_s"),
    *("p90_ms", "p90_low_ms", "p90_high_ms", "repeats", "counts", "bound_ms", "at_least"),
)


class HockeyData(Record):
    """One panel: all layouts' paths for one kind of requests, and what they serve in the bound."""

    kind: Kind
    key: str
    about: str
    bound_ms: float | None
    requested: bool
    """Whether the bound was requested; else it was chosen to separate the layouts."""
    paths: dict[str, tuple[Stop, ...]]
    served: tuple[Served, ...]

    @property
    def bound(self) -> str:
        return "" if self.bound_ms is None else f"{self.bound_ms:g}"

    @property
    def ahead(self) -> tuple[Served, Served] | None:
        """The layouts that serve most and least within the bound, if two do."""
        known = sorted((one for one in self.served if one.ops_s), key=lambda one: one.ops_s or 0.0)
        return (known[-1], known[0]) if len(known) > 1 else None


def hockey_data(
    rows: Sequence[Row], kinds: Sequence[KindLatencies], slo_ms: float | None = None
) -> tuple[HockeyData, ...]:
    """The panels of a table without A/A controls; `kinds` name them."""
    names = {one.kind: one for one in kinds}
    found: dict[Kind, list[Row]] = {}
    for kind, cells in groupby(rows, key=kind_of):
        found.setdefault(kind, []).extend(cells)
    return tuple(_hockey_data(kind, cells, names[kind], slo_ms) for kind, cells in found.items())


def _hockey_data(
    kind: Kind, cells: Sequence[Row], named: KindLatencies, slo_ms: float | None
) -> HockeyData:
    layouts = list(dict.fromkeys(row.layout for row in cells))
    own = {layout: [row for row in cells if row.layout == layout] for layout in layouts}
    paths = {layout: path(mine) for layout, mine in own.items()}
    bound_ms = slo_ms if slo_ms is not None else default_bound_ms(list(paths.values()))
    return HockeyData(
        kind=kind,
        key=named.key,
        about=named.about,
        bound_ms=bound_ms,
        requested=slo_ms is not None,
        paths=paths,
        served=tuple(served(layout, mine, bound_ms) for layout, mine in own.items())
        if bound_ms is not None
        else (),
    )


def hockey_stick(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of a table; none where no p90 is known."""
    found = hockey_data(source.rows, source.kinds, source.slo_ms)
    drawn = [
        data
        for data in found
        if any(stop.high_ms is not None for stops in data.paths.values() for stop in stops)
    ]
    if not drawn:
        return ()
    figure = Figure(
        name="hockey-stick",
        title="Hockey stick: p90 by throughput",
        finding=_finding(drawn),
        caption=_caption(drawn, [data.about for data in found if data not in drawn]),
        data=hockey_csv(found),
        panels=tuple(_panel(data) for data in drawn),
    )
    return source.measured(figure)


def _finding(drawn: Sequence[HockeyData]) -> str:
    """The largest gap between what two layouts serve within a bound."""
    pairs = [(data, *data.ahead) for data in drawn if data.ahead is not None]
    pairs = [pair for pair in pairs if not pair[2].at_least] or pairs
    if pairs:
        data, most, least = max(
            pairs, key=lambda pair: (pair[1].ops_s or 0.0) / (pair[2].ops_s or 1.0)
        )
        return (
            f"Within a p90 of {data.bound} ms for {data.about} {most.layout} serves "
            f"{_served_text(most)} op/s, {least.layout} {_served_text(least)}"
        )
    for data in drawn:
        for one in data.served:
            if one.ops_s is not None:
                return (
                    f"Within a p90 of {data.bound} ms {one.layout} serves {_served_text(one)} "
                    f"op/s of {data.about}"
                )
    return "How p90 rises with throughput"


def _served_text(one: Served) -> str:
    return f"{'at least ' * one.at_least}{show_figure(one.ops_s)}"


def _caption(drawn: Sequence[HockeyData], left_out: Sequence[str]) -> str:
    stops = [stop for data in drawn for stops in data.paths.values() for stop in stops]
    parts = ["p90 by operations per second; small figures: workers."]
    counts = sorted({stop.repeats for stop in stops if stop.repeats})
    repeats = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    parts += (
        [f"Medians of {repeats} repeats, bars from the least to the most of them."]
        if counts[-1] > 1
        else ["One repeat."]
    )
    if any(data.bound_ms is not None for data in drawn):
        chosen = "" if all(data.requested for data in drawn) else ", chosen to separate the layouts"
        parts.append(
            f"Dashed: a bound on p90{chosen}. Under each name: what it serves within the bound, "
            "interpolated between two measured points and never beyond them; ≥: more workers were "
            "not tried or are not valid."
        )
    if any(not stop.valid and stop.p90_ms is not None for stop in stops):
        parts.append("×: invalid.")
    if any(stop.valid and not stop.ranked and stop.p90_ms is not None for stop in stops):
        parts.append("Hollow: p90 is not ranked, for a doubt about it.")
    if any(stop.p90_ms is None and stop.high_ms is not None for stop in stops):
        parts.append(
            "Bars without a mark: the bin that holds p90, where the driver reports no more."
        )
    if any(stop.p90_ms is None and stop.high_ms is None for stop in stops):
        parts.append("Hollow at the bottom: too few samples for a p90, or none that can be read.")
    if left_out:
        parts.append(f"Left out because no p90 is known: {', '.join(left_out)}.")
    return " ".join(parts)


def _panel_finding(data: HockeyData) -> str:
    if data.ahead is None:
        return ""
    most, least = data.ahead
    ratio = (most.ops_s or 0.0) / (least.ops_s or 1.0)
    if most.at_least and least.at_least:
        return f"all that were within p90 ≤ {data.bound} ms may serve more"
    sign = "at least " * most.at_least + "at most " * least.at_least
    return (
        f"at p90 ≤ {data.bound} ms {most.layout} serves {sign}{show_ratio(ratio)} what "
        f"{least.layout} does"
    )


def _line(layout: str, stop: Stop) -> tuple[str, ...]:
    spread = stop.repeats > 1
    p90_ms = show_ms(stop.p90_ms)
    if stop.p90_ms is None and stop.low_ms is not None:
        p90_ms = f"in {show_ms(stop.low_ms)}–{show_ms(stop.high_ms)}"
    return (
        layout,
        str(stop.workers),
        show_figure(stop.throughput_ops_s),
        f"{show_figure(stop.low_ops_s)}–{show_figure(stop.high_ops_s)}" if spread else UNKNOWN,
        p90_ms,
        f"{show_ms(stop.low_ms)}–{show_ms(stop.high_ms)}"
        if spread and stop.p90_ms is not None
        else UNKNOWN,
        "yes" if stop.joined else "no",
    )


def hockey_csv(found: Sequence[HockeyData]) -> str:
    """A line for each worker count, and one for what is served in the bound (`workers` empty)."""
    lines: list[tuple[object, ...]] = []
    for data in found:
        workload, operation, api, driver = data.kind
        about = (api, driver, workload, operation)
        lines += [
            (
                *(layout, *about, stop.workers),
                *(stop.throughput_ops_s, stop.low_ops_s, stop.high_ops_s),
                *(stop.p90_ms, stop.low_ms, stop.high_ms, stop.repeats, stop.joined, None, None),
            )
            for layout, stops in data.paths.items()
            for stop in stops
        ]
        lines += [
            (
                *(one.layout, *about, None, one.ops_s, one.low_ops_s, one.high_ops_s, *(None,) * 4),
                *(one.ops_s is not None, data.bound_ms, one.at_least),
            )
            for one in data.served
        ]
    return csv_lines((*KIND_COLUMNS, *_COLUMNS), lines)


def _panel(data: HockeyData) -> Panel:
    stops = [(layout, stop) for layout, stops in data.paths.items() for stop in stops]
    y = _scale(data, [stop for _, stop in stops])
    curves = [
        Trace(
            layout=layout,
            x=tuple(rate for rate, _ in curve),
            y=tuple(latency for _, latency in curve),
        )
        for layout, mine in data.paths.items()
        for curve in map(_curve, stretches(mine))
    ]
    spots: defaultdict[str, list[Spot]] = defaultdict(list)
    counts: list[Spot] = []
    for layout, stop in stops:
        kind = _kind(stop)
        at: dict[str, Any] = {"x": stop.throughput_ops_s, "layout": layout}
        height_ms = _height_ms(stop, y.low)
        low_ms = max(stop.low_ms or y.low, y.low)
        upright = Spot(**at, y=low_ms, y2=stop.high_ms or low_ms)
        point = Spot(**at, y=height_ms or y.low, tip=_tip(layout, stop, kind))
        spots[kind].append(upright if kind == "bin" else point)
        if height_ms is not None:
            counts.append(Spot(**at, y=height_ms, text=str(stop.workers)))
        if kind in ("counts", "bin") and stop.repeats > 1:
            spots["across"].append(
                Spot(x=stop.low_ops_s, x2=stop.high_ops_s, y=height_ms or y.low, layout=layout)
            )
            spots["upright"] += [upright] if kind == "counts" else []
    return Panel(
        key=data.key,
        title=upper(data.about),
        finding=_panel_finding(data),
        x=AxisScale.from_zero(
            max((stop.high_ops_s for _, stop in stops), default=1.0), "op/s", grid=False
        ),
        y=y,
        marks=(
            *_bound_marks(data, y.low),
            Mark(kind="interval", spots=tuple(spots["across"])),
            Mark(kind="interval", spots=tuple(spots["upright"])),
            Mark(kind="pale bin", spots=tuple(spots["bin"])),
            Mark(kind="line", traces=tuple(curves)),
            Mark(kind="hollow", spots=(*spots["doubted"], *spots["few"])),
            Mark(kind="small point", spots=tuple(spots["counts"])),
            Mark(kind="cross", spots=tuple(spots["not valid"])),
            Mark(kind="beside", spots=tuple(counts)),
        ),
        labels=tuple(_labels(data, y.low)),
        head=(
            *("layout", "workers", "op/s", "of repeats, op/s"),
            *("p90 ms", "of repeats, ms", "counts"),
        ),
        lines=tuple(_line(layout, stop) for layout, stop in stops),
        height=TALL,
    )


def _scale(data: HockeyData, stops: Sequence[Stop]) -> AxisScale:
    known = [
        value
        for stop in stops
        for value in (stop.p90_ms, stop.low_ms, stop.high_ms, data.bound_ms)
        if value
    ]
    # The first bin begins at 0, which a logarithmic scale cannot show: half of it is shown.
    known += [
        stop.high_ms / 2
        for stop in stops
        if stop.p90_ms is None and stop.low_ms == 0 and stop.high_ms
    ]
    return AxisScale.logarithmic(known, "p90 ms (log scale)")


def _kind(stop: Stop) -> str:
    """Whether a stop counts, or why not; `bin` or `few` where its p90 is not known as a figure."""
    if stop.p90_ms is not None:
        return "counts" if stop.joined else "doubted" if stop.valid else "not valid"
    return "bin" if stop.low_ms is not None else "few"


def _tip(layout: str, stop: Stop, kind: str) -> str:
    said = (
        f"p90 {show_ms(stop.p90_ms)} ms"
        if kind == "counts"
        else stop.note or "too few samples for a p90"
    )
    at = counted(stop.workers, "worker")
    return f"{layout}, {at}: {show_figure(stop.throughput_ops_s)} op/s, {said}"


def _height_ms(stop: Stop, floor_ms: float) -> float | None:
    """The height of a stop: its p90, or the middle of its bin; None where neither is known."""
    if stop.p90_ms is not None or stop.low_ms is None:
        return stop.p90_ms
    low_ms = max(stop.low_ms, floor_ms)
    return math.sqrt(low_ms * max(stop.high_ms or low_ms, low_ms))


def _curve(part: Sequence[Stop]) -> list[tuple[float, float]]:
    """Points on the straight lines of a stretch, close enough for a logarithmic scale."""
    found = [(part[0].throughput_ops_s, part[0].p90_ms or 0.0)]
    for a, b in pairwise(part):
        for number in range(1, _PARTS + 1):
            along = number / _PARTS
            rate = a.throughput_ops_s + along * (b.throughput_ops_s - a.throughput_ops_s)
            found.append(
                (rate, (a.p90_ms or 0.0) + along * ((b.p90_ms or 0.0) - (a.p90_ms or 0.0)))
            )
    return found


def _bound_marks(data: HockeyData, floor_ms: float) -> tuple[Mark, ...]:
    """The bound, and a vertical line from where each path crosses it to the throughput there."""
    if data.bound_ms is None:
        return ()
    down = [
        Spot(x=one.ops_s, y=one.at_ms, y2=floor_ms, layout=one.layout)
        for one in data.served
        if one.ops_s is not None and not one.at_least and one.at_ms is not None
    ]
    crossings = [spot.model_copy(update={"y2": None}) for spot in down if spot.y == data.bound_ms]
    return (
        Mark(
            kind="level",
            spots=(Spot(y=data.bound_ms, text=f"p90 ≤ {data.bound} ms", tone="muted"),),
        ),
        Mark(kind="drop", spots=tuple(down)),
        Mark(kind="small hollow", spots=tuple(crossings)),
    )


def _labels(data: HockeyData, floor_ms: float) -> list[Label]:
    words = {one.layout: one.words for one in data.served}
    found = []
    for layout, stops in data.paths.items():
        drawn = [
            (stop, height_ms)
            for stop in stops
            if (height_ms := _height_ms(stop, floor_ms)) is not None
        ]
        joined = [(stop, height_ms) for stop, height_ms in drawn if stop.joined] or drawn
        x, y = (joined[-1][0].throughput_ops_s, joined[-1][1]) if joined else (None, floor_ms)
        found.append(
            Label(layout=layout, x=x, y=y, note=words.get(layout, "") if stops else "not measured")
        )
    return found
