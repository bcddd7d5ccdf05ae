"""Latency over time: for each second of a step a map of how many requests took how long.

It shows stalls and groups of slow requests. There is a chart for each kind of requests with a
panel for each layout, all with the same scales of time, latency and colour. A panel shows one
repeat, since seconds of different repeats are unrelated: the first that counts; where none does,
the first, marked, since the map may show why it does not count. Maps have few enough cells for a
page: of a long window several seconds make a column, whose colour is their mean per second. A
window of fewer than MIN_COLUMNS seconds has no map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from weighbridge.results.numbers import show_ms
from weighbridge.results.run.histogram import low_us
from weighbridge.results.show.chart import (
    BAD,
    Chart,
    Panel,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.charts.distributions import gap_words
from weighbridge.results.show.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
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
    """One panel, with its cells and columns as rows. `why_empty` says why it has no cells, `doubt`
    why it is not ranked.
    """

    layout: str
    repeat: int = 0
    length_s: int = 0
    cells: tuple[dict[str, Any], ...] = ()
    columns: tuple[dict[str, int], ...] = ()
    stalls: tuple[tuple[int, int], ...] = ()
    """Intervals in seconds of the window in which no request ended."""
    why_empty: str = ""
    doubt: str = ""

    @property
    def slowest(self) -> dict[str, int] | None:
        """The column with the slowest request."""
        return max(self.columns, key=lambda column: column["max_us"], default=None)

    @property
    def stall(self) -> tuple[int, int] | None:
        """The longest time in which no request ended; None where each second has some."""
        return max(self.stalls, key=lambda one: one[1] - one[0], default=None)


def latency_over_time(source: ChartSource) -> tuple[Chart, ...]:
    """A chart for each kind of requests whose latencies are known by the second."""
    return source.measured(*heat_maps(source.latencies))


def heat_maps(kinds: Sequence[KindLatencies]) -> tuple[Chart, ...]:
    """The charts of kinds of requests."""
    charts = []
    for kind in kinds:
        repeats = [repeat for one in kind.layouts if (repeat := shown_repeat(one)) is not None]
        width_s = next(
            (width for width in _WIDTHS_S if _count(repeats, width) <= MAX_CELLS), _WIDTHS_S[-1]
        )
        maps = [latency_map(one, width_s) for one in kind.layouts]
        if any(len(one.columns) >= MIN_COLUMNS and one.cells for one in maps):
            charts.append(_chart(kind, maps, width_s))
    return tuple(charts)


def latency_map(one: LayoutLatencies, width_s: int = 1) -> LatencyMap:
    """The map of the repeat that is shown of a layout, in complete columns of `width_s`."""
    repeat = shown_repeat(one)
    if repeat is None:
        gap = next(
            (other.gap for other in one.repeats if other.gap),
            "the driver records no latencies by the second",
        )
        return LatencyMap(layout=one.layout, why_empty=gap if one.repeats else "not measured")
    length_s = int(repeat.window_s)
    counts: Counter[tuple[int, int]] = Counter()
    for second in repeat.seconds:
        if second.second < length_s:
            counts.update({(second.second // width_s, band): count for band, count in second.bands})
    cells = []
    for (column, band), count in sorted(counts.items()):
        start_s = column * width_s
        end_s = min(start_s + width_s, length_s)
        cells.append(
            {
                "layout": one.layout,
                "repeat": repeat.repeat + 1,
                "from_s": start_s,
                "to_s": end_s,
                "low_ms": low_us(band) / 1000,
                "high_ms": low_us(band + 1) / 1000,
                "requests": count,
                "requests_per_s": count / (end_s - start_s),
            }
        )
    starts = range(0, length_s, width_s)
    return LatencyMap(
        layout=one.layout,
        repeat=repeat.repeat,
        length_s=length_s,
        cells=tuple(cells),
        columns=tuple(_column(repeat, at, min(at + width_s, length_s)) for at in starts),
        stalls=_stalls(repeat, length_s),
        doubt=repeat.note,
    )


def _stalls(repeat: RepeatLatencies, length_s: int) -> tuple[tuple[int, int], ...]:
    """Runs of seconds without success though STALLED requests were due: where few are made, many
    seconds have none.
    """
    busy = {
        second.second: second.count
        for second in repeat.seconds
        if second.count and second.second < length_s
    }
    runs = (
        list(run)
        for idle, run in groupby(range(length_s), key=lambda second: second not in busy)
        if idle
    )
    per_s = sum(busy.values()) / length_s if length_s else 0.0
    return tuple((run[0], run[-1] + 1) for run in runs if len(run) * per_s >= STALLED)


def shown_repeat(one: LayoutLatencies) -> RepeatLatencies | None:
    """The first repeat that counts with latencies by the second, else the first with such."""
    kept = [repeat for repeat in one.repeats if _by_band(repeat)]
    return next((repeat for repeat in kept if repeat.ranked), next(iter(kept), None))


def _by_band(repeat: RepeatLatencies) -> bool:
    return any(second.bands for second in repeat.seconds if second.second < int(repeat.window_s))


def _column(repeat: RepeatLatencies, start_s: int, end_s: int) -> dict[str, int]:
    mine = [second for second in repeat.seconds if start_s <= second.second < end_s]
    return {
        "start_s": start_s,
        "end_s": end_s,
        "count": sum(second.count for second in mine),
        "errors": sum(second.errors for second in mine),
        "max_us": max((second.max_us for second in mine), default=0),
    }


def _count(repeats: Sequence[RepeatLatencies], width_s: int) -> int:
    """The cells of all panels."""
    cells = {
        (number, second.second // width_s, band)
        for number, one in enumerate(repeats)
        for second in one.seconds
        for band, _ in second.bands
    }
    return len(cells)


def _chart(kind: KindLatencies, maps: Sequence[LatencyMap], width_s: int) -> Chart:
    cells = [cell for one in maps for cell in one.cells]
    rates = [cell["requests_per_s"] for cell in cells]
    lowest = min(rates) if min(rates) < max(rates) else min(rates) / 2
    length = float(max(one.length_s for one in maps))
    nice = AxisScale.from_zero(length, "s of the window")
    ticks = tuple(tick for tick in nice.ticks if tick <= length)
    x = nice.model_copy(update={"high": length, "ticks": ticks})
    y = AxisScale.logarithmic(
        [end for cell in cells for end in (cell["low_ms"], cell["high_ms"])], "ms (log scale)"
    )
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
        caption=_caption(kind, maps, width_s),
        workload=kind.kind[0],
        panels=tuple(_panel(one, x, y, colour) for one in maps),
    )


def _finding(kind: KindLatencies, maps: Sequence[LatencyMap]) -> str:
    stalls = [(stall[1] - stall[0], one, stall) for one in maps if (stall := one.stall) is not None]
    if stalls:
        length_s, one, (start, _) = max(stalls, key=lambda found: found[0])
        return (
            f"None of {one.layout}’s {kind.about} ended for {length_s} s, from {start} s into "
            f"the window on, at {kind.at}"
        )
    tops = [(column["max_us"], one, column) for one in maps if (column := one.slowest) is not None]
    slowest_us, one, column = max(tops, key=lambda found: found[0])
    took = f"took {show_ms(slowest_us / 1000)} ms: on {one.layout}, {_when(column)}"
    return f"The slowest of {kind.about} at {kind.at} {took}"


def _when(column: dict[str, int]) -> str:
    return f"{column['start_s']} to {column['end_s']} s into the window"


def _caption(kind: KindLatencies, maps: Sequence[LatencyMap], width_s: int) -> str:
    repeats = sorted({one.repeat + 1 for one in maps if one.cells})
    which = "the first repeat"
    if repeats != [1]:
        which += f" that counts (repeat {', '.join(str(one) for one in repeats)})"
    parts = [f"Colour: requests per second of that latency, of {which}."]
    if width_s > 1:
        parts.append(f"A column is {width_s} s.")
    if any(column["errors"] for one in maps for column in one.columns):
        parts.append("× at the top: requests failed in that second.")
    if any(one.stall for one in maps):
        parts.append("Shaded over the full height: no request ended.")
    empty = [f"{one.layout}: {one.why_empty}" for one in maps if one.why_empty]
    if empty:
        parts.append(f"Empty: {'; '.join(empty)}.")
    return " ".join([*parts, *gap_words([kind])])


def _panel(one: LatencyMap, x: AxisScale, y: AxisScale, colour: dict[str, Any]) -> Panel:
    slowest = one.slowest
    said = (
        one.why_empty
        if slowest is None
        else f"slowest: {show_ms(slowest['max_us'] / 1000)} ms, {_when(slowest)}"
    )
    cells = layer("rect", "cell", x="from_s", x2="to_s", y="low_ms", y2="high_ms", color=colour)
    cells["mark"]["cornerRadius"] = 0
    stalls = layer("rect", "stall", x={"field": "from"}, x2="to")
    stalls["data"] = {"values": [{"from": start, "to": end} for start, end in one.stalls]}
    failed = layer("point", "cross", x={"field": "at"}, color=BAD)
    failed["data"] = {
        "values": [
            {"at": (column["start_s"] + column["end_s"]) / 2, "failed": column["errors"]}
            for column in one.columns
            if column["errors"]
        ]
    }
    failed["encoding"]["y"] = {"datum": y.high}
    empty = layer("text", "note", x={"datum": 0}, text={"value": one.why_empty})
    empty["encoding"]["y"] = {"datum": y.value(0.5)}
    return Panel(
        key=one.layout,
        title=f"{one.layout}{' (not ranked)' * bool(one.doubt)}",
        finding=f"{one.doubt}; {said}" if one.doubt else said,
        rows=one.cells,
        spec={
            "encoding": {"x": x.encoding(), "y": y.encoding()},
            "layer": [cells, stalls, failed, *([empty] if one.why_empty else [])],
        },
        height=HEIGHT_PX,
    )
