"""Latency over time: for each second of a step a map of how many requests took how long.

It shows stalls and groups of slow requests. There is a figure for each kind of requests with a
panel for each layout, all with the same scales of time, latency and colour. A panel shows one
repeat, since seconds of different repeats are unrelated: the first that counts; where none does,
the first, marked, since the map may show why it does not count. Maps have few enough cells for a
page: of a long window several seconds make a column, whose colour is their mean per second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
)
from weighbridge.results.charts.latency.distributions import gap_words
from weighbridge.results.charts.panels import WIDTH, AxisScale, Figure, HeatScale, Mark, Panel, Spot
from weighbridge.results.charts.worker_data import KIND_COLUMNS
from weighbridge.results.figures import show_ms
from weighbridge.results.record.histogram import low_us

HEIGHT: Final = 210
CELLS: Final = 3000
"""The most cells of a figure: 6,400 made an SVG of 1.8 MB."""
STALLED: Final = 5
"""A gap in which so many requests would be due on average happens by chance once in 150 times
(Poisson: e^-5).
"""
_WIDTHS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)


class HeatCell(Record):
    """Requests from `start_s` to `end_s` that took from `low_ms` to `high_ms`."""

    start_s: int
    end_s: int
    low_ms: float
    high_ms: float
    count: int

    @property
    def per_s(self) -> float:
        """Requests a second."""
        return self.count / (self.end_s - self.start_s)


class HeatColumn(Record):
    """The seconds of one column."""

    start_s: int
    end_s: int
    count: int
    errors: int
    max_us: int


class LatencyMap(Record):
    """One panel. `why_empty` says why it has no cells, `doubt` why it is not ranked."""

    layout: str
    repeat: int = 0
    length_s: int = 0
    cells: tuple[HeatCell, ...] = ()
    columns: tuple[HeatColumn, ...] = ()
    stalls: tuple[tuple[int, int], ...] = ()
    """Intervals in seconds of the window in which no request ended."""
    why_empty: str = ""
    doubt: str = ""

    @property
    def slowest(self) -> HeatColumn | None:
        """The column with the slowest request."""
        return max(self.columns, key=lambda column: column.max_us, default=None)

    @property
    def stall(self) -> tuple[int, int] | None:
        """The longest time in which no request ended; None where each second has some."""
        return max(self.stalls, key=lambda one: one[1] - one[0], default=None)


def latency_over_time(source: ChartSource) -> tuple[Figure, ...]:
    """A chart for each kind of requests whose latencies are known by the second."""
    return source.measured(*heat_maps(source.kinds))


def heat_maps(kinds: Sequence[KindLatencies]) -> tuple[Figure, ...]:
    """The figures of kinds of requests."""
    found = []
    for kind in kinds:
        width_s = next(
            (width for width in _WIDTHS_S if _cells(kind, width) <= CELLS), _WIDTHS_S[-1]
        )
        maps = [latency_map(one, width_s) for one in kind.layouts]
        if any(one.cells for one in maps):
            found.append(_figure(kind, maps, width_s))
    return tuple(found)


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
    cells = tuple(
        HeatCell(
            start_s=column * width_s,
            end_s=min((column + 1) * width_s, length_s),
            low_ms=low_us(band) / 1000,
            high_ms=low_us(band + 1) / 1000,
            count=count,
        )
        for (column, band), count in sorted(counts.items())
    )
    columns = tuple(
        _column(repeat, start, min(start + width_s, length_s))
        for start in range(0, length_s, width_s)
    )
    return LatencyMap(
        layout=one.layout,
        repeat=repeat.repeat,
        length_s=length_s,
        cells=cells,
        columns=columns,
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


def _column(repeat: RepeatLatencies, start_s: int, end_s: int) -> HeatColumn:
    mine = [second for second in repeat.seconds if start_s <= second.second < end_s]
    return HeatColumn(
        start_s=start_s,
        end_s=end_s,
        count=sum(second.count for second in mine),
        errors=sum(second.errors for second in mine),
        max_us=max((second.max_us for second in mine), default=0),
    )


def _cells(kind: KindLatencies, width_s: int) -> int:
    repeats = [repeat for one in kind.layouts if (repeat := shown_repeat(one)) is not None]
    return sum(
        len(
            {(second.second // width_s, band) for second in one.seconds for band, _ in second.bands}
        )
        for one in repeats
    )


def _figure(kind: KindLatencies, maps: Sequence[LatencyMap], width_s: int) -> Figure:
    cells = [cell for one in maps for cell in one.cells]
    rates = [cell.per_s for cell in cells]
    low, high = (
        (min(rates), max(rates)) if min(rates) < max(rates) else (min(rates) / 2, max(rates))
    )
    length = float(max(one.length_s for one in maps))
    linear = AxisScale.from_zero(length, "s of the window", grid=False)
    x = linear.model_copy(
        update={"high": length, "ticks": tuple(tick for tick in linear.ticks if tick <= length)}
    )
    y = AxisScale.logarithmic(
        [end for cell in cells for end in (cell.low_ms, cell.high_ms)], "ms (log scale)"
    )
    heat = HeatScale(low=low, high=high, title="a second")
    return Figure(
        name=f"latency-over-time-{kind.key}",
        title=f"Latency over time: {kind.about} at {kind.at}",
        finding=_finding(kind, maps),
        caption=_caption(kind, maps, width_s),
        data=_csv(kind, maps),
        workload=kind.kind[0],
        panels=tuple(_panel(one, x, y, heat) for one in maps),
    )


def _finding(kind: KindLatencies, maps: Sequence[LatencyMap]) -> str:
    stalls = [(stall[1] - stall[0], one, stall) for one in maps if (stall := one.stall) is not None]
    if stalls:
        length_s, one, (start, _) = max(stalls, key=lambda found: found[0])
        return (
            f"None of {one.layout}’s {kind.about} ended for {length_s} s, from {start} s into "
            f"the window on, at {kind.at}"
        )
    tops = [(column.max_us, one, column) for one in maps if (column := one.slowest) is not None]
    slowest_us, one, column = max(tops, key=lambda found: found[0])
    took = f"took {show_ms(slowest_us / 1000)} ms: on {one.layout}, {_when(column)}"
    return f"The slowest of {kind.about} at {kind.at} {took}"


def _when(column: HeatColumn) -> str:
    return f"{column.start_s} to {column.end_s} s into the window"


def _caption(kind: KindLatencies, maps: Sequence[LatencyMap], width_s: int) -> str:
    repeats = sorted({one.repeat + 1 for one in maps if one.cells})
    which = "the first repeat"
    if repeats != [1]:
        which += f" that counts (repeat {', '.join(str(one) for one in repeats)})"
    parts = [
        (
            "Colour: requests per second of that latency, on one scale for all layouts. From "
            f"{which}, "
            "full seconds of the window."
        )
    ]
    if width_s > 1:
        parts.append(f"A column is {width_s} s.")
    if any(column.errors for one in maps for column in one.columns):
        parts.append("× at the top: requests failed in that second.")
    if any(one.stall for one in maps):
        parts.append("Shaded over the full height: no request ended.")
    empty = [f"{one.layout}: {one.why_empty}" for one in maps if one.why_empty]
    if empty:
        parts.append(f"Empty: {'; '.join(empty)}.")
    return " ".join([*parts, *gap_words([kind])])


def _panel(one: LatencyMap, x: AxisScale, y: AxisScale, heat: HeatScale) -> Panel:
    slowest = one.slowest
    said = (
        one.why_empty
        if slowest is None
        else f"slowest: {show_ms(slowest.max_us / 1000)} ms, {_when(slowest)}"
    )
    # Slightly higher, since where cells only touched, the background would shine through.
    cells = [
        Spot(
            x=cell.start_s,
            x2=cell.end_s,
            y=cell.low_ms,
            y2=cell.high_ms * 1.012,
            value=cell.per_s,
            tone="ink",
        )
        for cell in one.cells
    ]
    stalls = [Spot(x=start, x2=end) for start, end in one.stalls]
    failed = [
        Spot(
            x=(column.start_s + column.end_s) / 2,
            y=y.high,
            tone="bad",
            tip=f"{column.errors} failed",
        )
        for column in one.columns
        if column.errors
    ]
    empty = (
        [Spot(x=x.value(0.5), y=y.value(0.5), text=one.why_empty, tone="muted")]
        if one.why_empty
        else []
    )
    columns = [
        (
            str(column.start_s),
            str(column.end_s),
            f"{column.count:,}",
            f"{column.errors:,}",
            show_ms(column.max_us / 1000 if column.count else None),
        )
        for column in one.columns
    ]
    return Panel(
        key=one.layout,
        title=f"{one.layout}{' (not ranked)' * bool(one.doubt)}",
        finding=f"{one.doubt}; {said}" if one.doubt else said,
        x=x,
        y=y,
        marks=(
            Mark(kind="cell", spots=tuple(cells)),
            Mark(kind="shade", spots=tuple(stalls)),
            Mark(kind="cross", spots=tuple(failed)),
            Mark(kind="text", spots=tuple(empty), size=15),
        ),
        heat=heat,
        head=("from s", "to s", "requests", "failed", "slowest ms"),
        lines=tuple(columns),
        width=WIDTH,
        height=HEIGHT,
    )


def _csv(kind: KindLatencies, maps: Sequence[LatencyMap]) -> str:
    workload, operation, api, driver = kind.kind
    about = (api, driver, workload, operation, kind.workers)
    lines = [
        (
            *(one.layout, *about, one.repeat + 1, cell.start_s, cell.end_s),
            *(cell.low_ms, cell.high_ms, cell.count, cell.per_s),
        )
        for one in maps
        for cell in one.cells
    ]
    columns = (
        "workers",
        "repeat",
        "from_s",
        "to_s",
        "low_ms",
        "high_ms",
        "requests",
        "requests_per_s",
    )
    return csv_lines((*KIND_COLUMNS, *columns), lines)
