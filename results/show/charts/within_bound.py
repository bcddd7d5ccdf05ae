"""The hockey stick: p90 by throughput, and what each layout serves within a bound on p90.

A path joins neighbouring worker counts that are both ranked. Between two points it is straight on
scales from 0, and so a curve on a logarithmic one. Layouts that were measured at one worker count
have no path, and then there is no chart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from weighbridge.results.figures.service_level import (
    Served,
    Stop,
    default_bound_ms,
    path,
    served,
    stretches,
)
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.numbers import show_figure, show_ratio, upper
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    FULL_WIDTH,
    MUTED,
    NOT_COMPARABLE,
    PROVISIONAL,
    Chart,
    End,
    Panel,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.scales import AxisScale

_PARTS: Final = 12
"""Straight pieces of a curve between two points."""
TALL_PX: Final = 300


@dataclass(frozen=True)
class BoundPanel:
    """All layouts' paths for one kind of requests, and what they serve in the bound."""

    kind: Kind
    about: str
    bound_ms: float | None
    requested: bool
    """Whether the bound was requested; else it was chosen to separate the layouts."""
    cells: dict[tuple[str, int], Row]
    """By layout and worker count."""
    paths: dict[str, tuple[Stop, ...]]
    served: tuple[Served, ...]

    @property
    def bound(self) -> str:
        return "" if self.bound_ms is None else f"{self.bound_ms:g}"

    doubted: frozenset[tuple[str, int]]
    """The layouts and worker counts whose p90 is provisional."""

    def standing(self, layout: str, stop: Stop) -> str | None:
        """What the point of a p90 is; None without one."""
        if stop.p90_ms is None or not stop.joined:
            return None if stop.p90_ms is None else NOT_COMPARABLE
        return PROVISIONAL if (layout, stop.workers) in self.doubted else COMPARABLE

    @property
    def drawn(self) -> bool:
        """Whether a layout has a p90, or its bin, at two worker counts."""
        return any(
            sum(stop.high_ms is not None for stop in stops) > 1 for stops in self.paths.values()
        )

    @property
    def ahead(self) -> tuple[Served, Served] | None:
        """The layouts that serve most and least within the bound, if two do."""
        known = sorted((one for one in self.served if one.ops_s), key=lambda one: one.ops_s or 0.0)
        return (known[-1], known[0]) if len(known) > 1 else None


def bound_panels(source: ChartSource) -> list[BoundPanel]:
    """What is known of each kind of requests."""
    panels = []
    for kind, cells in source.cells().items():
        own: dict[str, list[Row]] = {}
        for row in cells:
            own.setdefault(row.layout, []).append(row)
        paths = {layout: path(mine) for layout, mine in own.items()}
        bound_ms = source.slo_ms
        if bound_ms is None:
            bound_ms = default_bound_ms(list(paths.values()))
        within = (
            []
            if bound_ms is None
            else [served(layout, mine, bound_ms) for layout, mine in own.items()]
        )
        panels.append(
            BoundPanel(
                kind=kind,
                about=source.names[kind],
                bound_ms=bound_ms,
                requested=source.slo_ms is not None,
                cells={(row.layout, row.workers): row for row in cells},
                paths=paths,
                served=tuple(within),
                doubted=frozenset(
                    (row.layout, row.workers)
                    for row in cells
                    if source.standing(row, "p90") == PROVISIONAL
                ),
            )
        )
    return panels


def hockey_stick(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a table; none where no layout has a p90 at two worker counts."""
    found = bound_panels(source)
    drawn = [data for data in found if data.drawn]
    if not drawn:
        return ()
    chart = Chart(
        key="hockey-stick",
        title="Hockey stick: p90 by throughput",
        finding=_finding(drawn),
        caption=_caption(drawn, [data.about for data in found if data not in drawn]),
        panels=tuple(_panel(data) for data in drawn),
    )
    return source.measured(chart)


def _finding(drawn: Sequence[BoundPanel]) -> str:
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


def _caption(drawn: Sequence[BoundPanel], left_out: Sequence[str]) -> str:
    stops = [stop for data in drawn for stops in data.paths.values() for stop in stops]
    counts = sorted({stop.repeats for stop in stops if stop.repeats})
    repeats = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else str(counts[0])
    parts = ["Numbers: workers."]
    parts += (
        [f"Geometric means of {repeats} repeats with their 95 % intervals."]
        if counts[-1] > 1
        else ["One repeat."]
    )
    if any(data.bound_ms is not None for data in drawn):
        chosen = "" if all(data.requested for data in drawn) else ", chosen to separate the layouts"
        parts.append(
            f"Dashed: a bound on p90{chosen}; under names: what is served within it (≥: or more)."
        )
    standings = {
        data.standing(layout, stop)
        for data in drawn
        for layout, each in data.paths.items()
        for stop in each
    }
    if NOT_COMPARABLE in standings:
        parts.append("×: not comparable.")
    if PROVISIONAL in standings:
        parts.append("Hollow: provisional.")
    if any(stop.p90_ms is None and stop.high_ms is not None for stop in stops):
        parts.append("Bars without a mark: the bin that holds p90.")
    if left_out:
        parts.append(f"Left out, without a path: {', '.join(left_out)}.")
    return " ".join(parts)


def _panel_finding(data: BoundPanel) -> str:
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


def _panel(data: BoundPanel) -> Panel:
    stops = [stop for stops in data.paths.values() for stop in stops]
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
    dashed = f"; dashed: {data.bound} ms" if data.bound else ""
    y = AxisScale.logarithmic(known, f"p90 ms (log scale){dashed}")
    x = AxisScale.from_zero(max((stop.high_ops_s for stop in stops), default=1.0), "op/s")
    rows = [row for layout in data.paths for row in _rows(data, layout, y.low)]
    spread = "isValid(datum.throughput_high_ops_s) && isValid(datum._height)"
    curve = layer("line", "path", y={"field": "p90"}, x={"field": "ops"})
    curve["data"] = {"values": list(_curves(data))}
    curve["encoding"] |= {
        "detail": {"field": "part", "type": "nominal"},
        "order": {"field": "at", "type": "quantitative"},
    }
    counts = layer("text", "note", "isValid(datum._height)", y="_height", text="workers")
    counts["mark"]["dy"] = -16
    return Panel(
        key="-".join(data.kind),
        title=upper(data.about),
        finding=_panel_finding(data),
        rows=rows,
        spec={
            "encoding": {
                "x": {**x.encoding(), "field": "throughput_ops_s"},
                "y": y.encoding(),
                "color": COLOUR,
            },
            "layer": [
                *_bound_layers(data, y.low),
                layer(
                    "rule",
                    "interval",
                    spread,
                    x="throughput_low_ops_s",
                    x2="throughput_high_ops_s",
                    y="_height",
                ),
                layer(
                    "rule",
                    "interval",
                    "datum.p90_ms && isValid(datum.p90_high_ms)",
                    y="_low",
                    y2="p90_high_ms",
                ),
                layer("rule", "bin", "!isValid(datum.p90_ms)", y="_low", y2="p90_high_ms"),
                curve,
                *standing_layers("p90_ms", at="p90_ms"),
                counts,
            ],
        },
        ends=tuple(_ends(data, y.low)),
        y=y,
        height=TALL_PX,
    )


def _rows(data: BoundPanel, layout: str, floor_ms: float) -> Iterator[dict[str, Any]]:
    """A row for each worker count, and one for what is served in the bound (without `workers`)."""
    workload, operation, api, driver = data.kind
    about = {"layout": layout, "api": api, "driver": driver}
    about |= {"workload": workload, "operation": operation}
    for stop in data.paths[layout]:
        row = data.cells[layout, stop.workers]
        rate, p90 = row.figure("throughput"), row.figure("p90")
        low_ms, high_ms = (p90.low, p90.high) if stop.p90_ms else (stop.low_ms, stop.high_ms)
        yield {
            **about,
            "workers": stop.workers,
            "throughput_ops_s": stop.throughput_ops_s,
            "throughput_low_ops_s": rate.low,
            "throughput_high_ops_s": rate.high,
            "p90_ms": stop.p90_ms,
            "p90_low_ms": low_ms,
            "p90_high_ms": high_ms,
            "repeats": stop.repeats,
            "standing": data.standing(layout, stop),
            "note": stop.note,
            "_low": None if low_ms is None else max(low_ms, floor_ms),
            "_height": _height_ms(stop, floor_ms),
        }
    for one in data.served:
        if one.layout == layout:
            yield {
                **about,
                "bound_ms": data.bound_ms,
                "served_ops_s": one.ops_s,
                "served_low_ops_s": one.low_ops_s,
                "served_high_ops_s": one.high_ops_s,
                "at_least": one.at_least,
            }


def _height_ms(stop: Stop, floor_ms: float) -> float | None:
    """The height of a stop: its p90, or the middle of its bin; None where neither is known."""
    if stop.p90_ms is not None or stop.low_ms is None:
        return stop.p90_ms
    low_ms = max(stop.low_ms, floor_ms)
    return math.sqrt(low_ms * max(stop.high_ms or low_ms, low_ms))


def _curves(data: BoundPanel) -> Iterator[dict[str, Any]]:
    """Points on the straight lines of each stretch, close enough for a logarithmic scale."""
    for layout, stops in data.paths.items():
        for number, part in enumerate(stretches(stops)):
            place = {"layout": layout, "part": f"{layout}-{number}"}
            yield {**place, "ops": part[0].throughput_ops_s, "p90": part[0].p90_ms, "at": 0}
            for count, (a, b) in enumerate(pairwise(part)):
                for step in range(1, _PARTS + 1):
                    along = step / _PARTS
                    ops = a.throughput_ops_s + along * (b.throughput_ops_s - a.throughput_ops_s)
                    p90_ms = (a.p90_ms or 0.0) + along * ((b.p90_ms or 0.0) - (a.p90_ms or 0.0))
                    yield {**place, "ops": ops, "p90": p90_ms, "at": count * _PARTS + step}


def _bound_layers(data: BoundPanel, floor_ms: float) -> list[dict[str, Any]]:
    """The bound, and a vertical line from where each path crosses it to the throughput there."""
    if data.bound_ms is None:
        return []
    down = [
        {"layout": one.layout, "ops": one.ops_s, "p90": one.at_ms, "floor": floor_ms}
        for one in data.served
        if one.ops_s is not None and not one.at_least and one.at_ms is not None
    ]
    level = layer("rule", "level", y={"datum": data.bound_ms}, color=MUTED)
    level["encoding"] |= FULL_WIDTH
    drop = layer("rule", "uncounted", x="ops", y="p90", y2="floor")
    layers = [level, drop]
    values: list[list[dict[str, Any]]] = [[{}], down]
    return [{**one, "data": {"values": each}} for one, each in zip(layers, values, strict=True)]


def _ends(data: BoundPanel, floor_ms: float) -> Iterator[End]:
    words = {one.layout: one.words for one in data.served}
    for layout, stops in data.paths.items():
        drawn = [
            (stop, height_ms)
            for stop in stops
            if (height_ms := _height_ms(stop, floor_ms)) is not None
        ]
        joined = [(stop, height_ms) for stop, height_ms in drawn if stop.joined] or drawn
        note = words.get(layout, "") if stops else "not measured"
        if joined:
            yield End(layout, joined[-1][0].throughput_ops_s, joined[-1][1], note)
        else:
            yield End(layout, None, floor_ms, note)
