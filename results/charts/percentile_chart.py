"""Percentiles from the fastest request to the slowest, on a scale that gives the tail its room: 1 / (1 - p), logarithmic.

The bold line is, at each percentile, the geometric mean of the repeats' own; repeats are never put together. It is drawn as far
as every repeat has enough samples beyond, and dashed from there to the last sample. Of a single repeat a shade says how far
chance alone may have moved each percentile (`RepeatLatencies.interval_us`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.steps.validity import SAMPLES_BEYOND
from weighbridge.results.charts.chart_theme import Look, Style
from weighbridge.results.charts.charts import colour_of, shape_of
from weighbridge.results.charts.figure import HEIGHT, Figure, Plot
from weighbridge.results.charts.labels import FAINT, AxisScale, Frame, Label, chart_of, lines_of, rounded, side_labels
from weighbridge.results.charts.latencies import KindLatencies, LayoutLatencies, RepeatLatencies
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms, show_ratio

TALL: Final = HEIGHT + 40
A_DECADE: Final = 16
"""Percentiles that are drawn for each digit 9."""
NAMED: Final = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
"""Percentiles with a tick and, where samples reach, a column of the table."""
_HEAD: Final = ("layout", "repeats", "fewest samples", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms")
_ALL_TICK: Final = "datum.value == 2 ? '50 %' : format(100 - 100 / datum.value, '.7~g') + ' %'"


def percentile_chart(kinds: Sequence[KindLatencies], shown: Sequence[Style], look: Look) -> Figure | None:
    """The figure; None where no latencies are known."""
    drawn = [kind for kind in kinds if any(one.known for one in kind.layouts)]
    if not drawn:
        return None
    return Figure(
        name="percentiles",
        title="Latency by percentile",
        finding=_finding(drawn),
        caption=_caption(kinds),
        csv=_csv(drawn),
        plots=tuple(_plot(kind, shown, look) for kind in drawn),
        look=look,
    )


def given(layout: LayoutLatencies) -> float | None:
    """The highest of the percentiles by name that every repeat has enough samples for."""
    return max((percent for percent in NAMED if layout.reaches(percent)), default=None)


def called(percent: float) -> str:
    """`p99.9`."""
    return f"p{percent:g}"


def _finding(drawn: Sequence[KindLatencies]) -> str:
    """Where the tail is longest: by how much the highest percentile that is given for all lies above the median."""
    best: tuple[float, str] | None = None
    for kind in drawn:
        percents = [percent for one in kind.layouts if (percent := given(one)) is not None]
        percent = min(percents, default=50.0)
        if percent <= 50:
            continue
        tails = sorted((one.middle_us(percent) / one.middle_us(50), one.layout) for one in kind.layouts if one.reaches(percent))
        (short, light), (long, heavy) = tails[0], tails[-1]
        other = f", {show_ratio(short)} on {light}" if show_ratio(short) != show_ratio(long) else ""
        at = f"{kind.about} at {kind.at}"
        text = f"The tail is longest in {at}: {called(percent)} is {show_ratio(long)} the median on {heavy}{other}"
        if best is None or long > best[0]:
            best = (long, text)
    return best[1] if best is not None else "Latency from the fastest request to the slowest"


def _caption(kinds: Sequence[KindLatencies]) -> str:
    repeats = max((len(one.ranked) for kind in kinds for one in kind.layouts), default=0)
    parts = ["How long the fastest share of requests took at most; each digit 9 more is as wide as the last."]
    if repeats > 1:
        parts.append("Bold: the geometric mean of the repeats’ percentiles; faint: each repeat.")
    else:
        parts.append("One repeat; shade: how far chance may have moved a percentile (95 %), were requests independent.")
    parts.append(f"Dashed: fewer than {SAMPLES_BEYOND} samples lie beyond. Hollow: the slowest request of all.")
    if any(one.known and not one.ranked for kind in kinds for one in kind.layouts):
        parts.append("Dotted: not ranked, since not valid or not steady.")
    return " ".join([*parts, *gap_words(kinds)])


def gap_words(kinds: Sequence[KindLatencies]) -> list[str]:
    """What is not known, as sentences, also of repeats that would not be ranked: nothing is left out silently."""
    said = [gap for kind in kinds for gap in kind.gaps]
    shown = [f"Not known: {gap}." for gap in said[:3]]
    return [*shown, f"{len(said) - 3} more are not known."] if len(said) > 3 else shown


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
    """The lowest and the highest of the farthest percentile that is given for all."""
    percent = min((found for one in kind.layouts if (found := given(one)) is not None), default=None)
    if percent is None:
        return "too few samples for any percentile"
    known = sorted((one.middle_us(percent), one.layout) for one in kind.layouts if one.reaches(percent))
    (low_us, fast), (high_us, slow) = known[0], known[-1]
    if len(known) == 1:
        return f"{called(percent)}: {show_ms(low_us / 1000)} ms{f' {fast}' * (len(kind.layouts) > 1)}"
    return f"{called(percent)}: {show_ms(low_us / 1000)} ms {fast}, {show_ms(high_us / 1000)} ms {slow}"


def _line(one: LayoutLatencies) -> tuple[str, ...]:
    figures = [show_ms(one.middle_us(percent) / 1000) if one.reaches(percent) else UNKNOWN for percent in (50, 90, 99, 99.9)]
    largest = UNKNOWN if one.largest_us is None else show_ms(one.largest_us / 1000)
    name = f"{one.layout} ({one.why_not})" if one.why_not else one.layout
    return (name, str(len(one.ranked)), show_figure(one.count) if one.count else UNKNOWN, *figures, largest)


def _odds(samples: float) -> list[float]:
    """1 / (1 - p) of the percentiles that are drawn up to 1 in so many, the last being just that."""
    found = sorted({*(10 ** (number / A_DECADE) for number in range(1, 12 * A_DECADE)), 2.0})
    return [*(odds for odds in found if odds < samples * (1 - 1e-9)), *([samples] if 1 < samples < math.inf else [])]


def _percent(odds: float) -> float:
    return 100 - 100 / odds


def _trusted(count: int) -> float:
    """Up to what odds so many samples give percentiles."""
    return count / SAMPLES_BEYOND


def _draw(kind: KindLatencies, shown: Sequence[Style], look: Look) -> alt.LayerChart | alt.FacetChart:
    frame = _frame(kind)
    medians = [
        {
            "layout": one.layout,
            "solid": solid,
            "x": [rounded(odds) for odds in stretch],
            "y": [rounded(one.middle_us(_percent(odds)) / 1000) for odds in stretch],
        }
        for one in kind.layouts
        if one.ranked
        for solid, stretch in zip((True, False), _parts(one.count), strict=True)
    ]
    repeats = [
        {
            "layout": one.layout,
            "repeat": repeat.repeat,
            "ranked": repeat.ranked,
            "x": [rounded(odds) for odds in _odds(_trusted(repeat.count))],
            "y": [rounded(_ms(repeat, odds)) for odds in _odds(_trusted(repeat.count))],
        }
        for one in kind.layouts
        for repeat in one.known
        if len(one.ranked) > 1 or not repeat.ranked
    ]
    shades = [
        {"layout": one.layout, "x": rounded(odds), "low": ends[0] / 1000, "high": ends[1] / 1000}
        for one in kind.layouts
        if len(one.ranked) == 1
        for odds in _odds(_trusted(one.count))
        if (ends := one.ranked[0].interval_us(_percent(odds))) is not None
    ]
    tops = [{"layout": one.layout, **_end(one)} for one in kind.layouts if one.ranked]
    colour = colour_of(shown)
    faint = lines_of(repeats).encode(x=frame.x(), y=frame.y(), color=colour, detail=["layout:N", "repeat:O"])
    bold = lines_of(medians).encode(x=frame.x(), y=frame.y(), color=colour, detail="layout:N")
    return alt.layer(
        chart_of(shades)
        .mark_area(opacity=0.2)
        .encode(x=frame.x(), y=frame.y("low"), y2=alt.Y2("high:Q"), color=colour, detail="layout:N"),
        faint.transform_filter("datum.ranked").mark_line(strokeWidth=1.2, opacity=FAINT[look.name]),
        faint.transform_filter("!datum.ranked").mark_line(strokeWidth=1.8, strokeDash=[1, 4], opacity=0.9),
        bold.transform_filter("datum.solid").mark_line(strokeWidth=3),
        bold.transform_filter("!datum.solid").mark_line(strokeWidth=1.8, strokeDash=[4, 4], opacity=0.8),
        chart_of(tops)
        .mark_point(size=70, fill=look.background, strokeWidth=2, opacity=1)
        .encode(
            x=frame.x(),
            y=frame.y(),
            color=colour,
            shape=shape_of(shown),
            tooltip=[alt.Tooltip("layout:N"), alt.Tooltip("y:Q", title="max ms", format=",.4~g")],
        ),
        *side_labels([_label(one, frame) for one in kind.layouts], frame, look, shown),
    )


def _parts(count: int) -> tuple[list[float], list[float]]:
    """Odds as far as samples give percentiles, and from there on to the last sample."""
    trusted = _trusted(count)
    solid = _odds(trusted)
    return solid, [*solid[-1:], *(odds for odds in _odds(float(count)) if odds > trusted)]


def _ms(repeat: RepeatLatencies, odds: float) -> float:
    return repeat.percentile_us(_percent(odds)) / 1000


def _end(one: LayoutLatencies) -> dict[str, float]:
    """Where the slowest request of all repeats stands: at the end of its own repeat."""
    slowest = max(one.ranked, key=lambda repeat: repeat.max_us)
    return {"x": float(max(2, slowest.count)), "y": slowest.max_us / 1000}


def _label(one: LayoutLatencies, frame: Frame) -> Label:
    if one.ranked:
        return Label(layout=one.layout, **_end(one))
    if one.known:
        last = one.known[-1]
        odds = _odds(_trusted(last.count))
        if odds:
            return Label(layout=one.layout, x=odds[-1], y=_ms(last, odds[-1]), note=one.why_not)
    return Label(layout=one.layout, x=None, y=frame.up.low, note=one.why_not)


def _frame(kind: KindLatencies) -> Frame:
    known = [repeat for one in kind.layouts for repeat in one.known]
    least = min(repeat.percentile_us(_percent(_odds(math.inf)[0])) for repeat in known) / 1000
    return Frame(
        across=AxisScale(
            kind="log",
            low=1.0,
            high=max(20.0, *(float(repeat.count) for repeat in known)) * 1.1,
            ticks=tuple(100 / (100 - percent) for percent in NAMED),
            title="of requests took no longer (log scale of 1 / (1 – p))",
            expression=_ALL_TICK,
        ),
        up=AxisScale.logarithmic(least, max(repeat.max_us for repeat in known) / 1000, "ms (log scale)"),
        height=TALL,
    )


def _csv(drawn: Sequence[KindLatencies]) -> str:
    """A line for each percentile of each repeat, and of their median (`repeat` empty); max is percentile 100."""
    head = (
        "layout",
        "api",
        "driver",
        "workload",
        "operation",
        "workers",
        "repeat",
        "percent",
        "latency_ms",
        "samples",
        "enough_beyond",
        "ranked",
    )
    lines: list[tuple[object, ...]] = []
    for kind in drawn:
        workload, operation, api, driver = kind.kind
        for one in kind.layouts:
            about = (one.layout, api, driver, workload, operation, kind.workers)
            if one.ranked:
                lines += [
                    (
                        *about,
                        None,
                        f"{_percent(odds):.7g}",
                        one.middle_us(_percent(odds)) / 1000,
                        one.count,
                        odds <= _trusted(one.count),
                        True,
                    )
                    for odds in _odds(float(one.count))
                ]
                lines.append((*about, None, "100", (one.largest_us or 0) / 1000, one.count, False, True))
            for repeat in one.known:
                lines += [
                    (
                        *about,
                        repeat.repeat + 1,
                        f"{_percent(odds):.7g}",
                        _ms(repeat, odds),
                        repeat.count,
                        odds <= _trusted(repeat.count),
                        repeat.ranked,
                    )
                    for odds in _odds(float(repeat.count))
                ]
                lines.append((*about, repeat.repeat + 1, "100", repeat.max_us / 1000, repeat.count, False, repeat.ranked))
    return csv_lines(head, lines)
