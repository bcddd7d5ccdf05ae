"""Latency by percentile, and the share of requests that was done within a latency.

Percentiles are the figures of the table, with their intervals, on a scale of 1 / (1 - p), so that
the tail has room. Shares resolve one in a hundred; groups of requests show as steps. At each share
a bold line is the geometric mean of the repeats' latencies; repeats are never pooled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from weighbridge.results.figures.metrics import METRICS, MetricKey
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.summary import Row, shown
from weighbridge.results.numbers import counted, show_ms, show_ratio, upper
from weighbridge.results.show.chart import (
    COLOUR,
    NOT_COMPARABLE,
    Chart,
    End,
    Panel,
    Spec,
    layer,
    standing_layers,
)
from weighbridge.results.show.chart_source import ChartSource, place_of
from weighbridge.results.show.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
)
from weighbridge.results.show.scales import AxisScale

TALL_PX: Final = 300
PERCENTILES: Final[dict[MetricKey, float]] = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9}
_ODDS: Final = {**{key: 100 / (100 - percent) for key, percent in PERCENTILES.items()}, "max": 1e4}
"""Places on the scale of 1 / (1 - p); that of the slowest request stands for all of them."""
SHARES: Final = tuple(range(1, 100))
"""The percentages drawn; every second one of a single repeat."""
APART: Final = 2.0
"""The least ratio of latencies above and below a gap that separates two groups of requests."""
BETWEEN: Final = 4
"""Percent of requests that may lie in a gap."""
STEEPER: Final = 3.0
"""How many times wider, in logarithms, a gap is than intervals of as many requests."""
OUTER: Final = 5
"""The least percentage of requests in a group."""


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
    causes = {
        (kind.kind, one.layout): one.tail_cause for kind in source.latencies for one in kind.layouts
    }
    panels = []
    for kind, rows in cells.items():
        title = f"{upper(source.names[kind])} at {counted(rows[0].workers, 'worker')}"
        panels.append(_percentile_panel(source, rows, "-".join(kind), title))
    chart = Chart(
        key="percentiles",
        title="Latency by percentile",
        finding=_tail_finding(
            [
                (rows, source.names[kind], {row.layout: causes[kind, row.layout] for row in rows})
                for kind, rows in cells.items()
            ]
        ),
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
    ends = []
    for row in rows:
        mine = [line for line in lines if line["layout"] == row.layout]
        if mine:
            ends.append(End(row.layout, mine[-1]["_odds"], mine[-1]["latency_ms"]))
        else:
            ends.append(End(row.layout, None, y.low, note="not known"))
    joined = f"datum.standing != '{NOT_COMPARABLE}'"
    interval = layer("rule", "interval", "isValid(datum.low_ms)", y="low_ms", y2="high_ms")
    return Panel(
        key=key,
        title=title,
        finding=_tail_said(rows),
        rows=lines,
        spec={
            "encoding": {
                "x": {**x.encoding(labelExpr=label, labelOverlap=False), "field": "_odds"},
                "y": y.encoding(),
                "color": COLOUR,
            },
            "layer": [
                interval,
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


def _highest_known(rows: Sequence[Row]) -> MetricKey | None:
    """The highest percentile that is known of each layout of which any is."""
    highest = [
        max(PERCENTILES[key] for key in keys)
        for row in rows
        if (keys := [key for key in PERCENTILES if row.value(key) and may_rank(row, key)])
    ]
    return next((key for key in PERCENTILES if PERCENTILES[key] == min(highest, default=0)), None)


def _tail_finding(kinds: Sequence[tuple[Sequence[Row], str, dict[str, str]]]) -> str:
    """Where the highest percentile known for all is farthest from the median, and why."""
    best: tuple[float, str] | None = None
    for rows, about, causes in kinds:
        key = _highest_known(rows)
        if key is None or key == "p50":
            continue
        tails = sorted(
            ((row.value(key) or 0.0) / (row.value("p50") or 1.0), row.layout)
            for row in rows
            if row.value(key) and row.value("p50") and may_rank(row, key)
        )
        if not tails:
            continue
        (short, light), (long, heavy) = tails[0], tails[-1]
        same = show_ratio(short) == show_ratio(long)
        other = "" if same else f" ({show_ratio(short)} on {light})"
        at = counted(rows[0].workers, "worker")
        text = (
            f"{key} of {about} at {at} is {show_ratio(long)} the median on "
            f"{heavy}{other}: {causes[heavy] or 'why is not known'}"
        )
        if best is None or long > best[0]:
            best = (long, text)
    return best[1] if best is not None else "Latency from the fastest request to the slowest"


def _tail_said(rows: Sequence[Row]) -> str:
    """The lowest and the highest value of the farthest percentile that is known for all."""
    key = _highest_known(rows)
    if key is None:
        ranked = any(row.ranked for row in rows)
        return "too few samples for any percentile" if ranked else "nothing is ranked"
    known = sorted(
        (row for row in rows if row.value(key) and may_rank(row, key)),
        key=lambda row: row.value(key) or 0.0,
    )
    said = [f"{shown(row, key, spread=False)} ms {row.layout}" for row in known]
    return f"{METRICS[key].name}: {', '.join(dict.fromkeys((said[0], said[-1])))}"


# ---- shares


def share_chart(source: ChartSource) -> tuple[Chart, ...]:
    """The share of requests by latency; none where no latencies are known."""
    kinds = source.latencies
    drawn = [kind for kind in kinds if any(one.known for one in kind.layouts)]
    return source.measured(shares(kinds, drawn)) if drawn else ()


def shares(kinds: Sequence[KindLatencies], drawn: Sequence[KindLatencies]) -> Chart:
    """The chart; `drawn` are those of the kinds of which latencies are known."""
    layouts = [one for kind in kinds for one in kind.layouts]
    most = max((len(one.ranked) for one in layouts), default=0)
    parts = ["A level stretch separates two groups of requests."]
    if most:
        lines = "Bold: the geometric mean of the repeats; faint: each repeat."
        parts.append(lines if most > 1 else "One repeat.")
    if any(one.ranked and not one.reaches(90) for one in layouts):
        parts.append("Dashed: too few samples for a p90.")
    if any(len(one.ranked) < len(one.known) for one in layouts):
        parts.append("Dotted: not ranked.")
    return Chart(
        key="latency-shares",
        title="Share of requests by latency",
        finding=_share_finding(drawn),
        caption=" ".join([*parts, *gap_words(kinds)]),
        panels=tuple(_share_panel(kind) for kind in drawn),
    )


def gap_words(kinds: Sequence[KindLatencies]) -> list[str]:
    """What is not known, as sentences, including repeats that would not be ranked."""
    said = [gap for kind in kinds for gap in kind.gaps]
    shown = [f"Not known: {gap}." for gap in said[:3]]
    return [*shown, f"{len(said) - 3} more are not known."] if len(said) > 3 else shown


@dataclass(frozen=True)
class LatencyGap:
    """`percent` were done within `low_us`, and all others but BETWEEN took at least `high_us`."""

    layout: str
    percent: int
    low_us: float
    high_us: float

    @property
    def width(self) -> float:
        """The logarithm of the ratio of its ends."""
        return math.log(self.high_us / self.low_us)


def gap(one: LayoutLatencies) -> LatencyGap | None:
    """The widest gap between two groups of requests; None where latencies have none."""
    latencies = {share: one.middle_us(share) for share in SHARES}
    steps = []
    for at in range(OUTER, 100 - OUTER - BETWEEN):
        low_us, high_us = latencies[at], latencies[at + BETWEEN]
        if low_us is not None and high_us is not None:
            steps.append(LatencyGap(one.layout, at, low_us, high_us))
    if not steps or not one.reaches(90):
        return None
    widest = max(steps, key=lambda step: step.width)
    apart = widest.width >= max(math.log(APART), STEEPER * median(step.width for step in steps))
    return widest if apart else None


def _ms(one: LayoutLatencies, percent: float) -> str:
    latency_us = one.middle_us(percent)
    return show_ms(None if latency_us is None else latency_us / 1000)


def _by_median(kind: KindLatencies, percent: float) -> list[LayoutLatencies]:
    """The layouts with samples enough for a percentile, the fastest first."""
    known = [one for one in kind.layouts if one.reaches(percent) and one.middle_us(percent)]
    return sorted(known, key=lambda one: one.middle_us(50) or 0.0)


def _share_finding(drawn: Sequence[KindLatencies]) -> str:
    """The widest gap, else a layout that is nearly always faster than another, else two medians."""
    gaps = [
        (kind, found) for kind in drawn for one in kind.layouts if (found := gap(one)) is not None
    ]
    if gaps:
        kind, widest = max(gaps, key=lambda pair: pair[1].width)
        low, high = show_ms(widest.low_us / 1000), show_ms(widest.high_us / 1000)
        return (
            f"{upper(kind.about)} on {widest.layout} form two groups: {widest.percent} % take up "
            f"to {low} ms, {100 - BETWEEN - widest.percent} % {high} ms or more, at {kind.at}"
        )
    best: tuple[float, str] | None = None
    for kind in drawn:
        known = _by_median(kind, 90)
        if not known:
            continue
        fast, slow = known[0], known[-1]
        ratio = (slow.middle_us(50) or 0.0) / (fast.middle_us(50) or 1.0)
        if len(known) == 1:
            text = (
                f"Half of {kind.about} at {kind.at} are done within {_ms(fast, 50)} ms on "
                f"{fast.layout}, nine in ten within {_ms(fast, 90)} ms"
            )
        elif (fast.middle_us(90) or math.inf) < (slow.middle_us(10) or 0.0):
            text = (
                f"Nine in ten {kind.about} of {fast.layout} are done before the first tenth of "
                f"{slow.layout}’s, at {kind.at}"
            )
        else:
            halves = f"{_ms(fast, 50)} ms on {fast.layout}, {_ms(slow, 50)} ms on {slow.layout}"
            text = f"Half of {kind.about} at {kind.at} are done within {halves}"
        if best is None or ratio > best[0]:
            best = (ratio, text)
    return best[1] if best is not None else "What share of requests was done within a latency"


def _share_said(kind: KindLatencies) -> str:
    known = _by_median(kind, 50)
    if not known:
        return "too few samples" if any(one.ranked for one in kind.layouts) else "nothing is ranked"
    first = f"half within {_ms(known[0], 50)} ms"
    if len(kind.layouts) == 1:
        return first
    if len(known) == 1:
        return f"{first} on {known[0].layout}"
    return f"{first} on {known[0].layout}, {_ms(known[-1], 50)} ms on {known[-1].layout}"


def _share_panel(kind: KindLatencies) -> Panel:
    known = [repeat for one in kind.layouts for repeat in one.known]
    ends = [us / 1000 for one in known for percent in (1, 99) if (us := one.within_us(percent))]
    rows = [row for one in kind.layouts for row in _share_rows(kind, one)]
    ticks = (0.0, 25.0, 50.0, 75.0, 100.0)
    y = AxisScale(high=100.0, ticks=ticks, title="share of requests done")
    lines = {"path": "bold", "faint": "faint", "unsure": "unsure", "uncounted": "uncounted"}
    return Panel(
        key=kind.key,
        title=kind.title,
        finding=_share_said(kind),
        rows=rows,
        spec={
            "encoding": {
                "x": {
                    **AxisScale.logarithmic(ends, "ms (log scale)").encoding(grid=True),
                    "field": "latency_ms",
                },
                "y": {**y.encoding(labelExpr="datum.value + ' %'"), "field": "percent"},
                "color": COLOUR,
                "detail": {"field": "repeat", "type": "nominal"},
            },
            "layer": [_steps(style, name) for style, name in reversed(lines.items())],
        },
        ends=_share_ends(kind),
        y=y,
        height=TALL_PX,
    )


def _steps(style: str, name: str) -> Spec:
    """Lines of shares, each of which is constant until the next latency, where it rises."""
    found = layer("line", style, f"datum._line == '{name}'")
    found["mark"] |= {"interpolate": "step-after", "order": None, "clip": True}
    found["encoding"]["order"] = {"field": "percent", "type": "quantitative"}
    return found


def _share_rows(kind: KindLatencies, one: LayoutLatencies) -> Iterator[dict[str, Any]]:
    """The line of a layout (without `repeat`), and of each repeat where there are several."""
    workload, operation, api, driver = kind.kind
    about = {"layout": one.layout, "api": api, "driver": driver, "workload": workload}
    about |= {"operation": operation, "workers": str(kind.workers)}
    for share in SHARES if one.ranked else ():
        latency_us = one.middle_us(share)
        if latency_us is not None:
            figures = {"latency_ms": latency_us / 1000, "samples": one.count, "ranked": True}
            drawn = "bold" if one.reaches(90) else "unsure"
            yield {**about, "repeat": None, "percent": share, **figures, "_line": drawn}
    for repeat in one.known:
        if len(one.ranked) == 1 and repeat.ranked:
            continue
        for share in SHARES[::2]:
            within_us = repeat.within_us(share)
            if within_us is not None:
                yield {**about, "repeat": repeat.repeat + 1, **_repeat_cells(repeat, share)}


def _repeat_cells(repeat: RepeatLatencies, share: int) -> dict[str, Any]:
    return {
        "percent": share,
        "latency_ms": (repeat.within_us(share) or 0) / 1000,
        "samples": repeat.count,
        "ranked": repeat.ranked,
        "_line": "faint" if repeat.ranked else "uncounted",
    }


def _share_ends(kind: KindLatencies) -> tuple[End, ...]:
    """Names at the ends of lines, the farther right the lower: lines to them do not cross."""
    found = []
    for one in kind.layouts:
        of = (one.middle_us if one.ranked else one.known[-1].within_us) if one.known else None
        # The end of a line: the farthest share that is known.
        reached = (us for share in reversed(SHARES) if of and (us := of(share)) is not None)
        found.append((next(reached, None), one.layout, one.why_not))
    drawn = sorted(((of, name, note) for of, name, note in found if of is not None))
    top = float(SHARES[-1])
    ends = [
        End(name, of / 1000, top - 0.001 * place, note)
        for place, (of, name, note) in enumerate(drawn)
    ]
    return (*ends, *(End(name, None, 0.0, note) for of, name, note in found if of is None))
