"""The hockey stick: p90 by throughput, and what each layout serves within a bound on p90.

A path joins neighbouring worker counts that are both ranked. Between two points it is straight on
scales from 0, and so a curve on a logarithmic one. Layouts that were measured at one worker count
have no path, and then there is no chart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
from weighbridge.results.numbers import grouped, show_figure, upper
from weighbridge.results.show.chart import (
    COLOUR,
    FULL_WIDTH,
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
from weighbridge.results.show.chart_source import ChartSource, place_in, repeats_words
from weighbridge.results.show.scales import AxisScale

_PARTS: Final = 12
"""Straight pieces of a curve between two points."""
TALL_PX: Final = 300


@dataclass(frozen=True)
class BoundPanel:
    """All layouts' paths for one workload, and what they serve within the bound."""

    kind: Kind
    about: str
    bound_ms: float | None
    """As requested, else chosen to separate the layouts; None where none does."""
    cells: dict[str, list[Row]]
    paths: dict[str, tuple[Stop, ...]]
    served: tuple[Served, ...]

    @property
    def stops(self) -> list[Stop]:
        return [stop for stops in self.paths.values() for stop in stops]

    @property
    def drawn(self) -> bool:
        """Whether a layout has a p90, or its bin, at two worker counts."""
        counts = [[stop.high_ms is not None for stop in stops] for stops in self.paths.values()]
        return any(sum(known) > 1 for known in counts)

    @property
    def rates(self) -> list[Served]:
        """What is served within the bound, least first."""
        known = [one for one in self.served if one.ops_s is not None]
        return sorted(known, key=lambda one: one.ops_s or 0.0)

    def finding(self, requests: str = "") -> str:
        """What is served most and least within the bound; empty where nothing is."""
        if not self.rates:
            return ""
        slow, fast = self.rates[0], self.rates[-1]
        most = f"within a p90 of {self.bound_ms:g} ms{requests} {fast.layout} serves {_rate(fast)}"
        return f"{most} op/s" + f", {slow.layout} {_rate(slow)}" * (len(self.rates) > 1)


def bound_panels(source: ChartSource) -> list[BoundPanel]:
    """What is known of each workload."""
    panels = []
    for kind, rows in source.cells().items():
        cells = grouped(rows, lambda row: row.layout)
        paths = {layout: path(own) for layout, own in cells.items()}
        bound_ms = source.slo_ms or default_bound_ms(list(paths.values()))
        within = [served(layout, own, bound_ms) for layout, own in cells.items() if bound_ms]
        panels.append(BoundPanel(kind, source.names[kind], bound_ms, cells, paths, tuple(within)))
    return panels


def hockey_stick(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of a table; none where no layout has a p90 at two worker counts."""
    every = bound_panels(source)
    drawn = [data for data in every if data.drawn]
    if not drawn:
        return ()
    panels = tuple(_panel(data, source) for data in drawn)
    chart = Chart(
        key="hockey-stick",
        title="Hockey stick: p90 by throughput",
        finding=_finding(drawn),
        caption=" ".join(_caption(drawn, panels, source)),
        panels=panels,
    )
    left_out = ", ".join(data.about for data in every if not data.drawn)
    if left_out:
        chart = replace(chart, caption=f"{chart.caption} Left out, without a path: {left_out}.")
    return source.measured(chart)


def _finding(drawn: Sequence[BoundPanel]) -> str:
    """The largest gap between what two layouts serve within a bound."""
    findings = []
    for data in drawn:
        if data.rates:
            slow, fast = data.rates[0], data.rates[-1]
            ratio = (fast.ops_s or 0.0) / (slow.ops_s or 1.0)
            # Of a layout that may serve more no gap is known.
            rank = (len(data.rates) > 1, not slow.at_least, ratio)
            findings.append((rank, upper(data.finding(f" for {data.about}"))))
    if not findings:
        return "How p90 rises with throughput"
    return max(findings, key=lambda pair: pair[0])[1]


def _rate(one: Served) -> str:
    return f"{'at least ' * one.at_least}{show_figure(one.ops_s)}"


def _caption(
    drawn: Sequence[BoundPanel], panels: Sequence[Panel], source: ChartSource
) -> Iterator[str]:
    stops = [stop for data in drawn for stop in data.stops]
    repeats = [stop.repeats for stop in stops if stop.repeats]
    yield "Numbers: workers."
    if max(repeats) > 1:
        yield f"Geometric means of {repeats_words(repeats)} with their 95 % intervals."
    else:
        yield "One repeat."
    if any(data.bound_ms is not None for data in drawn):
        chosen = ", chosen to separate the layouts" if source.slo_ms is None else ""
        yield f"Dashed: a bound on p90{chosen}; under names: what is served within it (≥: or more)."
    standings = {row.get("standing") for panel in panels for row in panel.rows}
    if NOT_COMPARABLE in standings:
        yield "×: not comparable."
    if PROVISIONAL in standings:
        yield "Hollow: provisional."
    if any(stop.p90_ms is None and stop.high_ms is not None for stop in stops):
        yield "Bars without a mark: the bin that holds p90."


def _panel(data: BoundPanel, source: ChartSource) -> Panel:
    known = [data.bound_ms]
    for stop in data.stops:
        known += [stop.p90_ms, stop.low_ms, stop.high_ms]
        # The first bin begins at 0, which a logarithmic scale cannot show: half of it is shown.
        if stop.p90_ms is None and stop.low_ms == 0 and stop.high_ms:
            known.append(stop.high_ms / 2)
    dashed = "" if data.bound_ms is None else f"; dashed: {data.bound_ms:g} ms"
    y = AxisScale.logarithmic([ms for ms in known if ms], f"p90 ms (log scale){dashed}")
    x = AxisScale.from_zero(max((stop.high_ops_s for stop in data.stops), default=1.0), "op/s")
    rows = [row for layout in data.paths for row in _rows(data, layout, y.low, source)]
    rate = layer(
        "rule",
        "interval",
        "isValid(datum.throughput_high_ops_s) && isValid(datum._height)",
        x="throughput_low_ops_s",
        x2="throughput_high_ops_s",
        y="_height",
    )
    spread = "datum.p90_ms && isValid(datum.p90_high_ms)"
    curves = list(_curves(data))
    numbers = layer("text", "note", "isValid(datum._height)", y="_height", text="workers")
    numbers["mark"]["dy"] = -16
    return Panel(
        key="-".join(data.kind),
        title=upper(data.about),
        finding=data.finding(),
        rows=rows,
        spec={
            "encoding": {"x": x.encoding("throughput_ops_s"), "y": y.encoding(), "color": COLOUR},
            "layer": [
                *_bound_layers(data, y.low),
                rate,
                layer("rule", "interval", spread, y="_low", y2="p90_high_ms"),
                layer("rule", "bin", "!isValid(datum.p90_ms)", y="_low", y2="p90_high_ms"),
                layer("line", "path", x="ops", y="p90", detail="part", order="at", rows=curves),
                *standing_layers("p90_ms", at="p90_ms"),
                numbers,
            ],
        },
        ends=tuple(_end(data, layout, y.low) for layout in data.paths),
        y=y,
        height=TALL_PX,
    )


def _rows(
    data: BoundPanel, layout: str, floor_ms: float, source: ChartSource
) -> Iterator[dict[str, Any]]:
    """A row for each worker count, and one for what is served in the bound (without `workers`)."""
    place = place_in(data.kind, layout)
    cells = {row.workers: row for row in data.cells[layout]}
    for stop in data.paths[layout]:
        row = cells[stop.workers]
        rate, p90, standing = row.figure("throughput"), row.figure("p90"), None
        low_ms, high_ms = (p90.low, p90.high) if stop.p90_ms else (stop.low_ms, stop.high_ms)
        if stop.p90_ms is not None:
            standing = source.standing(row, "p90") if stop.joined else NOT_COMPARABLE
        yield {
            **place,
            "workers": stop.workers,
            "throughput_ops_s": stop.throughput_ops_s,
            "throughput_low_ops_s": rate.low,
            "throughput_high_ops_s": rate.high,
            "p90_ms": stop.p90_ms,
            "p90_low_ms": low_ms,
            "p90_high_ms": high_ms,
            "repeats": stop.repeats,
            "standing": standing,
            "note": stop.note,
            "_low": None if low_ms is None else max(low_ms, floor_ms),
            "_height": _height_ms(stop, floor_ms),
        }
    for one in data.served:
        if one.layout == layout:
            yield {
                **place,
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
            ends = [(stop.throughput_ops_s, stop.p90_ms or 0.0) for stop in part]
            yield {**place, "ops": ends[0][0], "p90": ends[0][1], "at": 0}
            for count, ((ops, ms), (next_ops, next_ms)) in enumerate(pairwise(ends)):
                for step in range(1, _PARTS + 1):
                    along = step / _PARTS
                    between = ops + along * (next_ops - ops), ms + along * (next_ms - ms)
                    at = count * _PARTS + step
                    yield {**place, "ops": between[0], "p90": between[1], "at": at}


def _bound_layers(data: BoundPanel, floor_ms: float) -> list[Spec]:
    """The bound, and a vertical line from where each path crosses it to the throughput there."""
    if data.bound_ms is None:
        return []
    crossings = [
        {"layout": one.layout, "ops": one.ops_s, "p90": one.at_ms, "floor": floor_ms}
        for one in data.served
        if one.ops_s is not None and not one.at_least and one.at_ms is not None
    ]
    bound = {"datum": data.bound_ms}
    return [
        layer("rule", "level", y=bound, color=MUTED, rows=[{}], **FULL_WIDTH),
        layer("rule", "uncounted", x="ops", y="p90", y2="floor", rows=crossings),
    ]


def _end(data: BoundPanel, layout: str, floor_ms: float) -> End:
    """The name of a layout, at the last point of its path."""
    stops = data.paths[layout]
    words = next((one.words for one in data.served if one.layout == layout), "")
    note = words if stops else "not measured"
    heights = [(stop, _height_ms(stop, floor_ms)) for stop in stops]
    drawn = [(stop, height_ms) for stop, height_ms in heights if height_ms is not None]
    if not drawn:
        return End(layout, None, floor_ms, note)
    last, height_ms = next((pair for pair in reversed(drawn) if pair[0].joined), drawn[-1])
    return End(layout, last.throughput_ops_s, height_ms, note)
