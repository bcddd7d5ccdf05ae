"""The share of requests that was done within a latency; groups of requests show as steps.

It shows the same steps of the run as the chart of percentiles, with the same rule over repeats: at
each share the geometric mean of the repeats' latencies. It resolves shares of one in a hundred; for
rarer requests see the chart of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.validity import enough_samples
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
)
from weighbridge.results.charts.latency.distributions import (
    about_cells,
    known_kinds,
    latency_caption,
    repeat_marks,
    repeats_words,
    table_cells,
)
from weighbridge.results.charts.panels import TALL, AxisScale, Figure, Label, Mark, Panel, Trace
from weighbridge.results.charts.worker_data import KIND_COLUMNS
from weighbridge.results.figures import UNKNOWN, show_ms, upper

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
_TABLE: Final = (1, 10, 25, 50, 75, 90, 99)


def share_chart(source: ChartSource) -> tuple[Figure, ...]:
    """The share of requests by latency; none where no latencies are known."""
    return source.measured(shares(source.kinds))


def shares(kinds: Sequence[KindLatencies]) -> Figure | None:
    """The figure; None where no latencies are known."""
    drawn = known_kinds(kinds)
    if not drawn:
        return None
    return Figure(
        name="latency-shares",
        title="Share of requests by latency",
        finding=_share_finding(drawn),
        caption=_share_caption(kinds),
        data=_share_csv(drawn),
        panels=tuple(_share_panel(kind) for kind in drawn),
    )


class LatencyGap(Record):
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
    if not enough_samples(one.count, 50):
        return None
    latencies = {share: one.middle_us(share) for share in SHARES}
    steps = [
        LatencyGap(
            layout=one.layout, percent=at, low_us=latencies[at], high_us=latencies[at + BETWEEN]
        )
        for at in range(OUTER, 100 - OUTER - BETWEEN)
    ]
    widest = max(steps, key=lambda step: step.width)
    apart = widest.width >= max(math.log(APART), STEEPER * median(step.width for step in steps))
    return widest if apart else None


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
        known = sorted(
            (one for one in kind.layouts if enough_samples(one.count, 90)),
            key=lambda one: one.middle_us(50),
        )
        if not known:
            continue
        fast, slow = known[0], known[-1]
        ratio = slow.middle_us(50) / fast.middle_us(50)
        if len(known) == 1:
            half, most = show_ms(fast.middle_us(50) / 1000), show_ms(fast.middle_us(90) / 1000)
            text = (
                f"Half of {kind.about} at {kind.at} are done within {half} ms on "
                f"{fast.layout}, nine in ten within {most} ms"
            )
        elif fast.middle_us(90) < slow.middle_us(10):
            text = (
                f"Nine in ten {kind.about} of {fast.layout} are done before the first tenth of "
                f"{slow.layout}’s, at {kind.at}"
            )
        else:
            half, slower = show_ms(fast.middle_us(50) / 1000), show_ms(slow.middle_us(50) / 1000)
            halves = f"{half} ms on {fast.layout}, {slower} ms on {slow.layout}"
            text = f"Half of {kind.about} at {kind.at} are done within {halves}"
        if best is None or ratio > best[0]:
            best = (ratio, text)
    return best[1] if best is not None else "What share of requests was done within a latency"


def _share_caption(kinds: Sequence[KindLatencies]) -> str:
    parts = [
        "Share of requests that were done within a latency; a level stretch separates two groups."
    ]
    parts += repeats_words(
        kinds, "Bold: the geometric mean of the repeats; faint: each repeat.", "One repeat."
    )
    if any(
        one.ranked and not enough_samples(one.count, 90) for kind in kinds for one in kind.layouts
    ):
        parts.append("Dashed: too few samples for a p90.")
    return latency_caption(kinds, parts)


def _share_said(kind: KindLatencies) -> str:
    known = sorted(
        (one for one in kind.layouts if enough_samples(one.count, 50)),
        key=lambda one: one.middle_us(50),
    )
    if not known:
        return "too few samples" if any(one.ranked for one in kind.layouts) else "nothing is ranked"
    first = f"half within {show_ms(known[0].middle_us(50) / 1000)} ms"
    if len(kind.layouts) == 1:
        return first
    if len(known) == 1:
        return f"{first} on {known[0].layout}"
    return (
        f"{first} on {known[0].layout}, {show_ms(known[-1].middle_us(50) / 1000)} ms on "
        f"{known[-1].layout}"
    )


def _share_panel(kind: KindLatencies) -> Panel:
    known = [repeat for one in kind.layouts for repeat in one.known]
    ends = [
        known_us / 1000
        for one in known
        for known_us in (one.percentile_us(1), one.percentile_us(99))
    ]
    lines: dict[bool, list[Trace]] = {True: [], False: []}
    for one in kind.layouts:
        if one.ranked:
            within = tuple(one.middle_us(share) / 1000 for share in SHARES)
            lines[enough_samples(one.count, 90)].append(
                Trace(layout=one.layout, x=within, y=SHARES)
            )
    cells = [
        [show_ms(one.middle_us(share) / 1000) if one.ranked else UNKNOWN for share in _TABLE]
        for one in kind.layouts
    ]
    marks = (
        *repeat_marks(kind, _share_trace),
        Mark(kind="line", traces=tuple(lines[True])),
        Mark(kind="dashed line", traces=tuple(lines[False])),
    )
    return Panel(
        key=kind.key,
        title=kind.title,
        finding=_share_said(kind),
        x=AxisScale.logarithmic(ends, "ms (log scale)"),
        y=AxisScale(
            high=100.0,
            ticks=(0.0, 25.0, 50.0, 75.0, 100.0),
            title="of requests done",
            expression="datum.value + ' %'",
        ),
        # A share is constant until the next latency, where it rises.
        marks=tuple(mark.model_copy(update={"stepped": True}) for mark in marks),
        labels=_share_labels(kind),
        head=("layout", "repeats", "fewest samples", *(f"{share} % within ms" for share in _TABLE)),
        lines=tuple(
            (*table_cells(one), *line) for one, line in zip(kind.layouts, cells, strict=True)
        ),
        height=TALL,
    )


def _share_trace(layout: str, repeat: RepeatLatencies) -> Trace:
    return Trace(
        layout=layout,
        x=tuple(repeat.percentile_us(share) / 1000 for share in SHARES[::2]),
        y=SHARES[::2],
    )


def _share_labels(kind: KindLatencies) -> tuple[Label, ...]:
    """Names at the ends of lines, the farther right the lower: lines to them do not cross."""
    ends = sorted((_end_ms(one), one.layout, one.why_not) for one in kind.layouts if one.known)
    top = float(SHARES[-1])
    found = [
        Label(layout=name, x=end, y=top - 0.001 * place, note=note)
        for place, (end, name, note) in enumerate(ends)
    ]
    return (
        *found,
        *(
            Label(layout=one.layout, x=None, y=0.0, note=one.why_not)
            for one in kind.layouts
            if not one.known
        ),
    )


def _end_ms(one: LayoutLatencies) -> float:
    """The latency at which a line ends: the mean's, else the last repeat's."""
    return (
        one.middle_us(SHARES[-1]) if one.ranked else one.known[-1].percentile_us(SHARES[-1])
    ) / 1000


def _share_csv(drawn: Sequence[KindLatencies]) -> str:
    lines: list[tuple[object, ...]] = []
    for kind in drawn:
        for one in kind.layouts:
            about = (*about_cells(kind, one), kind.workers)
            if one.ranked:
                lines += [
                    (*about, None, share, one.middle_us(share) / 1000, one.count, True)
                    for share in SHARES
                ]
            for repeat in one.known:
                own = (repeat.count, repeat.ranked)
                lines += [
                    (*about, repeat.repeat + 1, share, repeat.percentile_us(share) / 1000, *own)
                    for share in SHARES[::2]
                ]
    return csv_lines(
        (*KIND_COLUMNS, "workers", "repeat", "percent", "latency_ms", "samples", "ranked"), lines
    )
