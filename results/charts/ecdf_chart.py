"""The share of requests that were done within a latency: groups of requests that took different ways show as steps.

The same steps of the run as in the chart of percentiles, and the same rule over repeats: at each share the geometric mean of
the repeats' latencies. A share of one in a hundred is as fine as is drawn; what is rarer belongs to the chart of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.validity import enough_samples
from weighbridge.results.charts.chart_theme import Look, Style
from weighbridge.results.charts.charts import colour_of
from weighbridge.results.charts.figure import HEIGHT, Figure, Plot
from weighbridge.results.charts.labels import FAINT, AxisScale, Frame, Label, lines_of, rounded, side_labels
from weighbridge.results.charts.latencies import KindLatencies, LayoutLatencies
from weighbridge.results.charts.percentile_chart import gap_words
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms

TALL: Final = HEIGHT + 40
SHARES: Final = tuple(range(1, 100))
"""Percentages that are drawn; of a repeat every second one."""
APART: Final = 2.0
"""How many times as slow the requests above a gap are at least, for it to part two groups of them."""
BETWEEN: Final = 4
"""Percent of requests that may lie in a gap."""
STEEPER: Final = 3.0
"""How many times as wide, by logarithm, a gap is at least as so many per cent usually are: else latencies are merely spread."""
OUTER: Final = 5
"""Percent of requests that a group has at least."""
_TABLE: Final = (1, 10, 25, 50, 75, 90, 99)
_HEAD: Final = ("layout", "repeats", "fewest samples", *(f"{share} % within ms" for share in _TABLE))


class LatencyGap(Record):
    """Two groups of requests: `percent` were done within `low_us`, and all others but BETWEEN took `high_us` and more."""

    layout: str
    percent: int
    low_us: float
    high_us: float

    @property
    def width(self) -> float:
        """By logarithm."""
        return math.log(self.high_us / self.low_us)


def ecdf_chart(kinds: Sequence[KindLatencies], shown: Sequence[Style], look: Look) -> Figure | None:
    """The figure; None where no latencies are known."""
    drawn = [kind for kind in kinds if any(one.known for one in kind.layouts)]
    if not drawn:
        return None
    return Figure(
        name="latency-shares",
        title="Share of requests by latency",
        finding=_finding(drawn),
        caption=_caption(kinds),
        csv=_csv(drawn),
        plots=tuple(_plot(kind, shown, look) for kind in drawn),
        look=look,
    )


def gap(one: LayoutLatencies) -> LatencyGap | None:
    """The widest gap between two groups of requests; None where latencies go on without one."""
    if not enough_samples(one.count, 50):
        return None
    latencies = {share: one.middle_us(share) for share in SHARES}
    steps = [
        LatencyGap(layout=one.layout, percent=at, low_us=latencies[at], high_us=latencies[at + BETWEEN])
        for at in range(OUTER, 100 - OUTER - BETWEEN)
    ]
    widest = max(steps, key=lambda step: step.width)
    apart = widest.width >= max(math.log(APART), STEEPER * median(step.width for step in steps))
    return widest if apart else None


def _finding(drawn: Sequence[KindLatencies]) -> str:
    """The widest gap, else requests of one layout that nearly all come before those of another, else two medians."""
    gaps = [(kind, found) for kind in drawn for one in kind.layouts if (found := gap(one)) is not None]
    if gaps:
        kind, widest = max(gaps, key=lambda pair: pair[1].width)
        return (
            f"{kind.about[:1].upper()}{kind.about[1:]} on {widest.layout} are of two kinds: {widest.percent} % take up to "
            f"{show_ms(widest.low_us / 1000)} ms, {100 - BETWEEN - widest.percent} % {show_ms(widest.high_us / 1000)} ms and more, "
            f"at {kind.at}"
        )
    best: tuple[float, str] | None = None
    for kind in drawn:
        known = sorted((one for one in kind.layouts if enough_samples(one.count, 90)), key=lambda one: one.middle_us(50))
        if not known:
            continue
        fast, slow = known[0], known[-1]
        ratio = slow.middle_us(50) / fast.middle_us(50)
        if len(known) == 1:
            half, most = show_ms(fast.middle_us(50) / 1000), show_ms(fast.middle_us(90) / 1000)
            text = f"Half of {kind.about} at {kind.at} are done within {half} ms on {fast.layout}, nine in ten within {most} ms"
        elif fast.middle_us(90) < slow.middle_us(10):
            text = f"Nine in ten {kind.about} of {fast.layout} are done before the first tenth of {slow.layout}’s, at {kind.at}"
        else:
            half, slower = show_ms(fast.middle_us(50) / 1000), show_ms(slow.middle_us(50) / 1000)
            halves = f"{half} ms on {fast.layout}, {slower} ms on {slow.layout}"
            text = f"Half of {kind.about} at {kind.at} are done within {halves}"
        if best is None or ratio > best[0]:
            best = (ratio, text)
    return best[1] if best is not None else "What share of requests was done within a latency"


def _caption(kinds: Sequence[KindLatencies]) -> str:
    repeats = max((len(one.ranked) for kind in kinds for one in kind.layouts), default=0)
    parts = ["Share of requests that were done within a latency; a level stretch parts two groups of requests."]
    parts += ["Bold: the geometric mean of the repeats; faint: each repeat."] if repeats > 1 else ["One repeat."]
    if any(one.ranked and not enough_samples(one.count, 90) for kind in kinds for one in kind.layouts):
        parts.append("Dashed: too few samples for a p90.")
    if any(one.known and not one.ranked for kind in kinds for one in kind.layouts):
        parts.append("Dotted: not ranked, since not valid or not steady.")
    return " ".join([*parts, *gap_words(kinds)])


def _plot(kind: KindLatencies, shown: Sequence[Style], look: Look) -> Plot:
    return Plot(
        key=kind.key,
        title=kind.title,
        finding=_panel_finding(kind),
        spec=_draw(kind, shown, look).to_dict(validate=False),
        head=_HEAD,
        lines=tuple(_line(one) for one in kind.layouts),
        height=TALL,
    )


def _panel_finding(kind: KindLatencies) -> str:
    known = sorted((one for one in kind.layouts if enough_samples(one.count, 50)), key=lambda one: one.middle_us(50))
    if not known:
        return "too few samples"
    first = f"half within {show_ms(known[0].middle_us(50) / 1000)} ms"
    if len(kind.layouts) == 1:
        return first
    if len(known) == 1:
        return f"{first} on {known[0].layout}"
    return f"{first} on {known[0].layout}, {show_ms(known[-1].middle_us(50) / 1000)} ms on {known[-1].layout}"


def _line(one: LayoutLatencies) -> tuple[str, ...]:
    figures = [show_ms(one.middle_us(share) / 1000) if one.ranked else UNKNOWN for share in _TABLE]
    name = f"{one.layout} ({one.why_not})" if one.why_not else one.layout
    return (name, str(len(one.ranked)), show_figure(one.count) if one.count else UNKNOWN, *figures)


def _draw(kind: KindLatencies, shown: Sequence[Style], look: Look) -> alt.LayerChart | alt.FacetChart:
    frame = _frame(kind)
    medians = [
        {
            "layout": one.layout,
            "few": not enough_samples(one.count, 90),
            "x": [rounded(one.middle_us(share) / 1000) for share in SHARES],
            "y": SHARES,
        }
        for one in kind.layouts
        if one.ranked
    ]
    repeats = [
        {
            "layout": one.layout,
            "repeat": repeat.repeat,
            "ranked": repeat.ranked,
            "x": [rounded(repeat.percentile_us(share) / 1000) for share in SHARES[::2]],
            "y": SHARES[::2],
        }
        for one in kind.layouts
        for repeat in one.known
        if len(one.ranked) > 1 or not repeat.ranked
    ]
    colour = colour_of(shown)
    # A share stays what it was until the next latency, where it rises.
    faint = lines_of(repeats).encode(x=frame.x(), y=frame.y(), color=colour, detail=["layout:N", "repeat:O"], order="y:Q")
    bold = lines_of(medians).encode(x=frame.x(), y=frame.y(), color=colour, detail="layout:N", order="y:Q")
    return alt.layer(
        faint.transform_filter("datum.ranked").mark_line(interpolate="step-after", strokeWidth=1.2, opacity=FAINT[look.name]),
        faint.transform_filter("!datum.ranked").mark_line(
            interpolate="step-after", strokeWidth=1.8, strokeDash=[1, 4], opacity=0.9
        ),
        bold.transform_filter("!datum.few").mark_line(interpolate="step-after", strokeWidth=3),
        bold.transform_filter("datum.few").mark_line(interpolate="step-after", strokeWidth=2, strokeDash=[4, 4]),
        *side_labels(_labels(kind, frame), frame, look, shown),
    )


def _labels(kind: KindLatencies, frame: Frame) -> list[Label]:
    """Names at the ends of lines, which all end at one height: the farther right, the lower, so that no threads cross."""
    ends = sorted((_end_ms(one), one.layout, one.why_not) for one in kind.layouts if one.known)
    top = float(SHARES[-1])
    found = [Label(layout=name, x=end, y=top - 0.001 * place, note=note) for place, (end, name, note) in enumerate(ends)]
    bare = [one for one in kind.layouts if not one.known]
    return [*found, *(Label(layout=one.layout, x=None, y=frame.up.low, note=one.why_not) for one in bare)]


def _end_ms(one: LayoutLatencies) -> float:
    """Where a line ends: that of the median, else of the last repeat."""
    return (one.middle_us(SHARES[-1]) if one.ranked else one.known[-1].percentile_us(SHARES[-1])) / 1000


def _frame(kind: KindLatencies) -> Frame:
    known = [repeat for one in kind.layouts for repeat in one.known]
    least, largest = min(one.percentile_us(1) for one in known), max(one.percentile_us(99) for one in known)
    return Frame(
        across=AxisScale.logarithmic(least / 1000, largest / 1000, "ms (log scale)"),
        up=AxisScale(
            kind="linear",
            low=0.0,
            high=100.0,
            ticks=(0.0, 25.0, 50.0, 75.0, 100.0),
            title="of requests done",
            expression="datum.value + ' %'",
        ),
        height=TALL,
    )


def _csv(drawn: Sequence[KindLatencies]) -> str:
    """A line for each share of each repeat, and of their median (`repeat` empty)."""
    head = ("layout", "api", "driver", "workload", "operation", "workers", "repeat", "percent", "latency_ms", "samples", "ranked")
    lines: list[tuple[object, ...]] = []
    for kind in drawn:
        workload, operation, api, driver = kind.kind
        for one in kind.layouts:
            about = (one.layout, api, driver, workload, operation, kind.workers)
            if one.ranked:
                lines += [(*about, None, share, one.middle_us(share) / 1000, one.count, True) for share in SHARES]
            for repeat in one.known:
                lines += [
                    (*about, repeat.repeat + 1, share, repeat.percentile_us(share) / 1000, repeat.count, repeat.ranked)
                    for share in SHARES[::2]
                ]
    return csv_lines(head, lines)
