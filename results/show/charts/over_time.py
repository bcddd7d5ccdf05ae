"""Latency over time: for each second of a step a map of how many requests took how long.

It shows stalls and groups of slow requests. There is a chart for each workload with a panel for
each layout, all with the same scales of time, latency and colour. A panel shows one repeat, since
seconds of different repeats are unrelated: the first that counts; where none does, the first,
marked, since the map may show why it does not count. Maps have few enough cells for a page: of a
long window several seconds make a column, whose colour is their mean per second. A window of fewer
than MIN_COLUMNS seconds has no map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, Final

from weighbridge.results.numbers import show_ms
from weighbridge.results.run.histogram import low_us
from weighbridge.results.run.step import Second
from weighbridge.results.show.chart import BAD, Chart, Panel, layer
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
    gap_words,
)
from weighbridge.results.show.scales import AxisScale

HEIGHT_PX: Final = 210
MAX_CELLS: Final = 3000
"""Of a chart: 6,400 made an SVG of 1.8 MB."""
MIN_COLUMNS: Final = 5
STALLED: Final = 5
"""A gap in which so many requests would be due on average happens by chance once in 150 times
(Poisson: e^-5).
"""
_WIDTHS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


@dataclass(frozen=True)
class LatencyMap:
    """One panel: a repeat of a layout, in columns of `width_s`."""

    latencies: LayoutLatencies
    width_s: int = 1

    @property
    def layout(self) -> str:
        return self.latencies.layout

    @cached_property
    def repeat(self) -> RepeatLatencies | None:
        """The first repeat that counts with latencies by the second, else the first with such."""
        known = [
            repeat
            for repeat in self.latencies.repeats
            if any(one.bands for one in repeat.seconds if one.second < int(repeat.window_s))
        ]
        return next((repeat for repeat in known if repeat.ranked), next(iter(known), None))

    @property
    def why_empty(self) -> str:
        repeats = self.latencies.repeats
        if self.repeat is not None:
            return ""
        if not repeats:
            return "not measured"
        gaps = (repeat.gap for repeat in repeats if repeat.gap)
        return next(gaps, "the driver records no latencies by the second")

    @property
    def length_s(self) -> int:
        return 0 if self.repeat is None else int(self.repeat.window_s)

    @property
    def seconds(self) -> tuple[Second, ...]:
        """Those of the window: a partial last second is left out."""
        every = () if self.repeat is None else self.repeat.seconds
        return tuple(second for second in every if second.second < self.length_s)

    def column(self, second: int) -> tuple[int, int]:
        """Where the column of a second starts and ends."""
        start_s = second - second % self.width_s
        return start_s, min(start_s + self.width_s, self.length_s)

    @property
    def size(self) -> int:
        """How many cells it has: far fewer steps than making them, for a window of an hour."""
        return len(
            {
                (second.second // self.width_s, band)
                for second in self.seconds
                for band, _ in second.bands
            }
        )

    @cached_property
    def cells(self) -> tuple[dict[str, Any], ...]:
        if self.repeat is None:
            return ()
        counts: Counter[tuple[int, int, int]] = Counter()
        for second in self.seconds:
            place = self.column(second.second)
            counts.update({(*place, band): count for band, count in second.bands})
        return tuple(
            {
                "layout": self.layout,
                "repeat": self.repeat.repeat + 1,
                "from_s": start_s,
                "to_s": end_s,
                "low_ms": low_us(band) / 1000,
                "high_ms": low_us(band + 1) / 1000,
                "requests": count,
                "requests_per_s": count / (end_s - start_s),
            }
            for (start_s, end_s, band), count in sorted(counts.items())
        )

    @property
    def stalls(self) -> list[tuple[int, int]]:
        """Runs of seconds without success in which STALLED requests were due on average."""
        counts = {second.second: second.count for second in self.seconds if second.count}
        per_s = sum(counts.values()) / self.length_s if self.length_s else 0.0
        idle = groupby(range(self.length_s), key=lambda second: second not in counts)
        runs = [list(run) for is_idle, run in idle if is_idle]
        return [(run[0], run[-1] + 1) for run in runs if len(run) * per_s >= STALLED]

    @property
    def failures(self) -> list[dict[str, float]]:
        """The columns in which requests failed, each with its middle."""
        failed: Counter[tuple[int, int]] = Counter()
        for second in self.seconds:
            failed[self.column(second.second)] += second.errors
        return [
            {"at": (start_s + end_s) / 2, "failed": count}
            for (start_s, end_s), count in failed.items()
            if count
        ]

    @property
    def slowest_us(self) -> int:
        return max((second.max_us for second in self.seconds), default=0)

    @property
    def slowest(self) -> str:
        """The column with the slowest request."""
        second = max(self.seconds, key=lambda second: second.max_us).second
        start_s, end_s = self.column(second)
        return f"{start_s} to {end_s} s into the window"


def latency_over_time(source: ChartSource) -> tuple[Chart, ...]:
    """A chart for each workload whose latencies are known by the second."""
    return source.measured(*heat_maps(source.latencies))


def heat_maps(kinds: Sequence[KindLatencies]) -> tuple[Chart, ...]:
    """The charts without what the source adds."""
    charts = []
    for kind in kinds:
        for width_s in _WIDTHS_S:
            maps = [LatencyMap(layout, width_s) for layout in kind.layouts]
            if sum(one.size for one in maps) <= MAX_CELLS:
                break
        longest_s = max(one.length_s for one in maps)
        if longest_s > (MIN_COLUMNS - 1) * width_s:
            charts.append(_chart(kind, maps))
    return tuple(charts)


def _chart(kind: KindLatencies, maps: Sequence[LatencyMap]) -> Chart:
    cells = [cell for one in maps for cell in one.cells]
    rates = [cell["requests_per_s"] for cell in cells]
    lowest = min(rates) if min(rates) < max(rates) else min(rates) / 2
    length = float(max(one.length_s for one in maps))
    nice = AxisScale.from_zero(length, "s of the window")
    ticks = tuple(tick for tick in nice.ticks if tick <= length)
    x = nice.model_copy(update={"high": length, "ticks": ticks})
    ends_ms = [end for cell in cells for end in (cell["low_ms"], cell["high_ms"])]
    y = AxisScale.logarithmic(ends_ms, "ms (log scale)")
    colour = {
        "field": "requests_per_s",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [lowest, max(rates)], "range": "heatmap"},
        "legend": {"title": "requests a second", "format": ",.3~g", "orient": "bottom"},
    }
    return Chart(
        key=f"latency-over-time-{kind.key}",
        title=f"Latency over time: {kind.about} at {kind.at}",
        finding=_finding(kind, maps),
        caption=_caption(kind, maps),
        workload=kind.kind[0],
        panels=tuple(_panel(one, x, y, colour) for one in maps),
    )


def _finding(kind: KindLatencies, maps: Sequence[LatencyMap]) -> str:
    """The longest time in which no request ended, else the slowest request."""
    stalls = [(end - start, one.layout, start) for one in maps for start, end in one.stalls]
    if stalls:
        length_s, layout, start_s = max(stalls, key=lambda stall: stall[0])
        return (
            f"None of {layout}’s {kind.about} ended for {length_s} s, from {start_s} s into "
            f"the window on, at {kind.at}"
        )
    slowest = max(maps, key=lambda one: one.slowest_us)
    return (
        f"The slowest of {kind.about} at {kind.at} took {show_ms(slowest.slowest_us / 1000)} ms: "
        f"on {slowest.layout}, {slowest.slowest}"
    )


def _caption(kind: KindLatencies, maps: Sequence[LatencyMap]) -> str:
    repeats = sorted({one.repeat.repeat + 1 for one in maps if one.repeat is not None})
    repeat = "the first repeat"
    if repeats != [1]:
        repeat += f" that counts (repeat {', '.join(map(str, repeats))})"
    parts = [f"Colour: requests per second of that latency, of {repeat}."]
    if maps[0].width_s > 1:
        parts.append(f"A column is {maps[0].width_s} s.")
    if any(one.failures for one in maps):
        parts.append("× at the top: requests failed in that second.")
    if any(one.stalls for one in maps):
        parts.append("Shaded over the full height: no request ended.")
    empty = [f"{one.layout}: {one.why_empty}" for one in maps if one.why_empty]
    if empty:
        parts.append(f"Empty: {'; '.join(empty)}.")
    return " ".join([*parts, *gap_words([kind])])


def _panel(one: LatencyMap, x: AxisScale, y: AxisScale, colour: dict[str, Any]) -> Panel:
    title, finding = one.layout, one.why_empty
    if one.repeat is not None:
        finding = f"slowest: {show_ms(one.slowest_us / 1000)} ms, {one.slowest}"
        if one.repeat.note:
            title, finding = f"{title} (not ranked)", f"{one.repeat.note}; {finding}"
    cells = layer("rect", "cell", x="from_s", x2="to_s", y="low_ms", y2="high_ms", color=colour)
    cells["mark"]["cornerRadius"] = 0
    stalls = [{"from": start, "to": end} for start, end in one.stalls]
    top = {"datum": y.high}
    layers = [
        cells,
        layer("rect", "stall", x="from", x2="to", rows=stalls),
        layer("point", "cross", x="at", y=top, color=BAD, rows=one.failures),
    ]
    if one.why_empty:
        words = {"value": one.why_empty}
        middle = {"datum": y.value(0.5)}
        layers.append(layer("text", "note", x={"datum": 0}, y=middle, text=words))
    return Panel(
        key=one.layout,
        title=title,
        finding=finding,
        rows=one.cells,
        spec={"encoding": {"x": x.encoding(), "y": y.encoding()}, "layer": layers},
        height=HEIGHT_PX,
    )
