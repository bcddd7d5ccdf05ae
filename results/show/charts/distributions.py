"""Latency by percentile, and the share of requests that was done within a latency.

Percentiles are the figures of the table, with their intervals, on a scale of 1 / (1 - p), so that
the tail has room. Shares resolve one in a hundred; groups of requests show as steps. At each share
a bold line is the geometric mean of the repeats' latencies; repeats are never pooled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from weighbridge.results.figures.metrics import MetricKey
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import NOTHING_SEEN
from weighbridge.results.judge.comparison import Kind
from weighbridge.results.numbers import counted, show_ms, show_ratio, upper
from weighbridge.results.show.chart import (
    COLOUR,
    NOT_COMPARABLE,
    Chart,
    End,
    Panel,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import ChartSource, place_in, place_of
from weighbridge.results.show.latencies import KindLatencies, LayoutLatencies, gap_words
from weighbridge.results.show.scales import AxisScale

TALL_PX: Final = 300
PERCENTILES: Final[dict[MetricKey, float]] = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
_ODDS: Final = {**{key: 100 / (100 - percent) for key, percent in PERCENTILES.items()}, "max": 1e4}
"""Places on the scale of 1 / (1 - p); that of the slowest request stands for all of them."""
SHARES: Final = tuple(range(1, 100))
"""The percentages drawn; every second one of a single repeat."""
LISTED: Final = (1, 5, 10, 25, 50, 75, 90, 95, 99)
"""The percentages that a page lists, of all repeats together."""
APART: Final = 2.0
"""The least ratio of latencies above and below a gap that separates two groups of requests."""
BETWEEN: Final = 4
"""Percent of requests that may lie in a gap."""
STEEPER: Final = 3.0
"""How many times wider, in logarithms, a gap is than intervals of as many requests."""
OUTER: Final = 5
"""The least percentage of requests in a group."""
Curve = Callable[[float], float | None]
"""By percentage the latency in us within which so many requests were done."""


# ---- percentiles


def percentile_chart(source: ChartSource) -> tuple[Chart, ...]:
    """Latency by percentile at one worker count; none where no percentile is known."""
    cells = {
        kind: rows
        for kind, rows in source.at_one_count().items()
        if any(row.value(key) is not None for row in rows for key in PERCENTILES)
    }
    if not cells:
        return ()
    panels = []
    for kind, rows in cells.items():
        title = f"{upper(source.names[kind])} at {counted(rows[0].workers, 'worker')}"
        panels.append(_percentile_panel(source, rows, "-".join(kind), title))
    chart = Chart(
        key="percentiles",
        title="Latency by percentile",
        finding=_longest_tail(cells, source.names),
        caption="The latency within which a share of requests finished. Lines: the 95 % interval. "
        "×: not comparable. A percentile is missing where requests were too few for it.",
        panels=tuple(panels),
    )
    return source.measured(chart)


def _percentile_panel(source: ChartSource, rows: Sequence[Row], key: str, title: str) -> Panel:
    lines = [line for row in rows for line in _percentile_rows(source, row)]
    ends_ms = [line[column] for line in lines for column in ("latency_ms", "low_ms", "high_ms")]
    y = AxisScale.logarithmic([value for value in ends_ms if value], "ms (log scale)")
    x = AxisScale(kind="log", low=1.6, high=1.2e4, ticks=tuple(_ODDS.values()))
    label = "datum.value > 5000 ? 'max' : 'p' + format(100 - 100 / datum.value, '.4~g')"
    last = {line["layout"]: line for line in lines}
    ends = [
        End(row.layout, last[row.layout]["_odds"], last[row.layout]["latency_ms"])
        if row.layout in last
        else End(row.layout, None, y.low, note="not known")
        for row in rows
    ]
    joined = f"datum.standing != '{NOT_COMPARABLE}'"
    return Panel(
        key=key,
        title=title,
        rows=lines,
        spec={
            "encoding": {
                "x": x.encoding("_odds", labelExpr=label, labelOverlap=False),
                "y": y.encoding(),
                "color": COLOUR,
            },
            "layer": [
                layer("rule", "interval", "isValid(datum.low_ms)", y="low_ms", y2="high_ms"),
                layer("line", "path", joined, y="latency_ms"),
                *standing_layers("latency_ms", at="latency_ms"),
            ],
        },
        ends=tuple(ends),
        y=y,
        height=TALL_PX,
    )


def _percentile_rows(source: ChartSource, row: Row) -> Iterator[dict[str, Any]]:
    for key, odds in _ODDS.items():
        figure = row.figure(key)
        if figure.value:
            yield {
                **place_of(row),
                "samples": row.count("samples"),
                "percentile": key,
                "latency_ms": figure.value,
                # Of the slowest request nothing but itself is known.
                "low_ms": None if key == "max" else figure.low,
                "high_ms": None if key == "max" else figure.high,
                "at_least": figure.at_least,
                "standing": source.standing(row, key),
                "_odds": odds,
            }


def _rankable(rows: Sequence[Row], key: MetricKey) -> list[Row]:
    """The rows whose percentile is known and may be ranked, the shortest first."""
    known = [row for row in rows if row.value(key) and may_rank(row, key)]
    return sorted(known, key=lambda row: row.value(key) or 0.0)


def _highest_known(rows: Sequence[Row]) -> MetricKey | None:
    """The highest percentile that is known of each layout of which any is."""
    known = {key: {row.layout for row in _rankable(rows, key)} for key in PERCENTILES}
    every = set[str]().union(*known.values())
    return next((key for key in reversed(known) if every and known[key] == every), None)


def _longest_tail(cells: Mapping[Kind, Sequence[Row]], names: Mapping[Kind, str]) -> str:
    """Where the highest percentile known for all is farthest from the median, and why."""
    longest, text = 0.0, "Latency from the fastest request to the slowest"
    for kind, rows in cells.items():
        key = _highest_known(rows)
        if key is None or key == "p50":
            continue
        tails = sorted(
            ((row.value(key) or 0.0) / (row.value("p50") or 1.0), row.layout, row)
            for row in _rankable(rows, key)
            if row.value("p50")
        )
        if not tails or tails[-1][0] <= longest:
            continue
        (short, light, _), (longest, heavy, row) = tails[0], tails[-1]
        ratio = show_ratio(longest)
        other = "" if show_ratio(short) == ratio else f" ({show_ratio(short)} on {light})"
        text = (
            f"{key} of {names[kind]} at {counted(row.workers, 'worker')} is {ratio} the median on "
            f"{heavy}{other}: {_tail_cause(row)}"
        )
    return text


def _tail_cause(row: Row) -> str:
    """What lengthened the slowest requests, in words."""
    for doubt in row.doubts:
        if doubt.what == "set by the CPU limit":
            return doubt.words
    if row.limited_by is None:
        return "why is not known"
    if row.limited_by == NOTHING_SEEN:
        return "no resource was seen at its limit"
    return f"limited by {row.limited_by}"


# ---- shares


def share_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The share of requests by latency."""
    return source.measured(*shares(source.latencies))


def shares(kinds: Sequence[KindLatencies]) -> tuple[Chart, ...]:
    """The chart without what the source adds; none where no latencies are known."""
    drawn = [kind for kind in kinds if any(layout.known for layout in kind.layouts)]
    if not drawn:
        return ()
    layouts = [layout for kind in kinds for layout in kind.layouts]
    repeats = max(len(layout.ranked) for layout in layouts)
    parts = ["A level stretch separates two groups of requests."]
    if repeats > 1:
        parts.append("Bold: the geometric mean of the repeats; faint: each repeat.")
    elif repeats:
        parts.append("One repeat.")
    if any(layout.ranked and not layout.reaches(90) for layout in layouts):
        parts.append("Dashed: too few samples for a p90.")
    if any(len(layout.ranked) < len(layout.known) for layout in layouts):
        parts.append("Dotted: not ranked.")
    chart = Chart(
        key="latency-shares",
        title="Share of requests by latency",
        finding=_share_finding(drawn),
        caption=" ".join([*parts, *gap_words(kinds)]),
        panels=tuple(_share_panel(kind) for kind in drawn),
    )
    return (chart,)


@dataclass(frozen=True)
class LatencyGap:
    """`percent` were done within `low_us`, and all others but BETWEEN took at least `high_us`."""

    percent: int
    low_us: float
    high_us: float

    @property
    def width(self) -> float:
        """The logarithm of the ratio of its ends."""
        return math.log(self.high_us / self.low_us)


def gap(layout: LayoutLatencies) -> LatencyGap | None:
    """The widest gap between two groups of requests; None where latencies have none."""
    steps = []
    for percent in range(OUTER, 100 - OUTER - BETWEEN):
        low_us, high_us = layout.middle_us(percent), layout.middle_us(percent + BETWEEN)
        if low_us is not None and high_us is not None:
            steps.append(LatencyGap(percent, low_us, high_us))
    if not steps or not layout.reaches(90):
        return None
    widest = max(steps, key=lambda step: step.width)
    apart = widest.width >= max(math.log(APART), STEEPER * median(step.width for step in steps))
    return widest if apart else None


def _share_finding(drawn: Sequence[KindLatencies]) -> str:
    """The widest gap between two groups of requests, else the two medians that differ most."""
    widest, text = 0.0, ""
    for kind in drawn:
        for layout in kind.layouts:
            apart = gap(layout)
            if apart is not None and apart.width > widest:
                widest = apart.width
                low, high = show_ms(apart.low_us / 1000), show_ms(apart.high_us / 1000)
                text = (
                    f"{upper(kind.about)} on {layout.layout} form two groups: {apart.percent} % "
                    f"take up to {low} ms, {100 - BETWEEN - apart.percent} % {high} ms or more, "
                    f"at {kind.at}"
                )
    medians = []
    for kind in drawn:
        halves = sorted(
            (half_us, layout.layout)
            for layout in kind.layouts
            if layout.reaches(90) and (half_us := layout.middle_us(50))
        )
        if halves:
            medians.append((halves[-1][0] / halves[0][0], kind, halves))
    if text or not medians:
        return text or "What share of requests was done within a latency"
    _, kind, halves = max(medians, key=lambda apart: apart[0])
    ends = dict.fromkeys((halves[0], halves[-1]))
    each = ", ".join(f"{show_ms(half_us / 1000)} ms on {layout}" for half_us, layout in ends)
    return f"Half of {kind.about} at {kind.at} are done within {each}"


def _share_panel(kind: KindLatencies) -> Panel:
    repeats = [repeat for layout in kind.layouts for repeat in layout.known]
    ends = [us / 1000 for one in repeats for percent in (1, 99) if (us := one.within_us(percent))]
    x = AxisScale.logarithmic(ends, "ms (log scale)")
    y = AxisScale(high=100.0, ticks=(0.0, 25.0, 50.0, 75.0, 100.0), title="share of requests done")
    rows = [row for layout in kind.layouts for row in _share_rows(kind, layout)]
    layers = []
    for style in ("uncounted", "unsure", "faint", "path"):
        line = layer("line", style, f"datum._line == '{style}'", order="percent")
        # Shares are constant until the next latency, where they rise.
        line["mark"] |= {"interpolate": "step-after", "order": None, "clip": True}
        layers.append(line)
    return Panel(
        key=kind.key,
        title=kind.title,
        rows=rows,
        listed=[row for row in rows if row["repeat"] is None and row["percent"] in LISTED],
        spec={
            "encoding": {
                "x": x.encoding("latency_ms", grid=True),
                "y": y.encoding("percent", labelExpr="datum.value + ' %'"),
                "color": COLOUR,
                "detail": {"field": "repeat", "type": "nominal"},
            },
            "layer": layers,
        },
        ends=_share_ends(kind),
        y=y,
        height=TALL_PX,
    )


def _share_rows(kind: KindLatencies, layout: LayoutLatencies) -> Iterator[dict[str, Any]]:
    """The line of a layout (without `repeat`), and of each repeat where there are several."""
    place = {**place_in(kind.kind, layout.layout), "workers": str(kind.workers)}
    lines: list[tuple[int | None, Curve, Sequence[int], int, str]] = []
    if layout.ranked:
        style = "path" if layout.reaches(90) else "unsure"
        lines.append((None, layout.middle_us, SHARES, layout.count, style))
    for repeat in layout.known:
        if not repeat.ranked or len(layout.ranked) > 1:
            style = "faint" if repeat.ranked else "uncounted"
            lines.append((repeat.repeat + 1, repeat.within_us, SHARES[::2], repeat.count, style))
    for number, within_us, shares, samples, style in lines:
        for share in shares:
            latency_us = within_us(share)
            if latency_us is not None:
                yield {
                    **place,
                    "repeat": number,
                    "percent": share,
                    "latency_ms": latency_us / 1000,
                    "samples": samples,
                    "ranked": style != "uncounted",
                    "_line": style,
                }


def _share_ends(kind: KindLatencies) -> tuple[End, ...]:
    """Names at the ends of lines, the farther right the lower: lines to them do not cross."""
    drawn, missing = [], []
    for layout in kind.layouts:
        line: Curve = layout.middle_us
        if layout.known and not layout.ranked:
            line = layout.known[-1].within_us
        # The end of a line: the farthest share that is known.
        reached = [latency_us for share in SHARES if (latency_us := line(share)) is not None]
        if reached:
            drawn.append((reached[-1], layout.layout, layout.why_not))
        else:
            missing.append(End(layout.layout, None, 0.0, layout.why_not))
    top = float(SHARES[-1])
    ends = [
        End(name, latency_us / 1000, top - 0.001 * place, why_not)
        for place, (latency_us, name, why_not) in enumerate(sorted(drawn))
    ]
    return (*ends, *missing)
