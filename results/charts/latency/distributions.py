"""Latency by percentile, and what the charts of latency distributions share.

The scale is 1 / (1 - p), logarithmic, so that the tail has room. A bold line is, at each
percentile, the geometric mean of the repeats' own percentiles; repeats are never pooled. Lines are
solid as far as every repeat has enough samples beyond, and dashed from there to the last sample.
For a single repeat a band shows how far chance alone may have moved each percentile
(`RepeatLatencies.interval_us`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.analysis.steps.validity import SAMPLES_BEYOND
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
)
from weighbridge.results.charts.panels import (
    TALL,
    AxisScale,
    Figure,
    Label,
    Mark,
    Panel,
    Spot,
    Trace,
)
from weighbridge.results.charts.worker_data import KIND_COLUMNS
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms, show_ratio

A_DECADE: Final = 16
"""Percentiles drawn for each further digit 9."""
NAMED: Final = (50.0, 90.0, 99.0, 99.9, 99.99, 99.999)
"""Percentiles with a tick; those up to p99.9 have a column of the table."""
_TAIL_TICK: Final = "datum.value == 2 ? '50 %' : format(100 - 100 / datum.value, '.7~g') + ' %'"


def percentile_chart(source: ChartSource) -> tuple[Figure, ...]:
    """Latency by percentile; none where no latencies are known."""
    return source.measured(percentiles(source.kinds))


def known_kinds(kinds: Sequence[KindLatencies]) -> list[KindLatencies]:
    """Kinds for which some layout's latencies are known."""
    return [kind for kind in kinds if any(one.known for one in kind.layouts)]


def latency_caption(kinds: Sequence[KindLatencies], parts: Iterable[str]) -> str:
    """A caption that ends with what is not ranked and what is not known."""
    bare = any(one.known and not one.ranked for kind in kinds for one in kind.layouts)
    dotted = ["Dotted: not ranked, because invalid, not steady or in grave doubt."] * bare
    return " ".join([*parts, *dotted, *gap_words(kinds)])


def repeats_words(kinds: Sequence[KindLatencies], several: str, one: str) -> tuple[str, ...]:
    """What a caption says of the lines of repeats that count; nothing if none does."""
    most = max((len(each.ranked) for kind in kinds for each in kind.layouts), default=0)
    return (several,) if most > 1 else (one,) if most else ()


def gap_words(kinds: Sequence[KindLatencies]) -> list[str]:
    """What is not known, as sentences, including repeats that would not be ranked."""
    said = [gap for kind in kinds for gap in kind.gaps]
    shown = [f"Not known: {gap}." for gap in said[:3]]
    return [*shown, f"{len(said) - 3} more are not known."] if len(said) > 3 else shown


def repeat_marks(
    kind: KindLatencies, trace: Callable[[str, RepeatLatencies], Trace]
) -> tuple[Mark, Mark]:
    """Lines of each repeat where there are several, and dotted lines of those that do not count."""
    repeats = [
        (repeat.ranked, trace(one.layout, repeat))
        for one in kind.layouts
        for repeat in one.known
        if len(one.ranked) > 1 or not repeat.ranked
    ]
    ranked, bare = (
        tuple(line for kept, line in repeats if kept is wanted) for wanted in (True, False)
    )
    return Mark(kind="faint line", traces=ranked), Mark(kind="dotted line", traces=bare)


def table_cells(one: LayoutLatencies) -> tuple[str, str, str]:
    """The first cells of a line: layout, repeats, and the samples of the repeat with the fewest."""
    name = f"{one.layout} ({one.why_not})" if one.why_not else one.layout
    return (name, str(len(one.ranked)), show_figure(one.count) if one.count else UNKNOWN)


# ---- percentiles


def percentiles(kinds: Sequence[KindLatencies]) -> Figure | None:
    """The figure; None where no latencies are known."""
    drawn = known_kinds(kinds)
    if not drawn:
        return None
    return Figure(
        name="percentiles",
        title="Latency by percentile",
        finding=_tail_finding(drawn),
        caption=_tail_caption(kinds),
        data=_tail_csv(drawn),
        panels=tuple(_tail_panel(kind) for kind in drawn),
    )


def highest_known(layout: LayoutLatencies) -> float | None:
    """The highest of the NAMED percentiles that every repeat has enough samples for."""
    return max((percent for percent in NAMED if layout.reaches(percent)), default=None)


def called(percent: float) -> str:
    """`p99.9`."""
    return f"p{percent:g}"


def _tail_finding(drawn: Sequence[KindLatencies]) -> str:
    """Where the highest percentile known for all is farthest from the median, and why."""
    best: tuple[float, str] | None = None
    for kind in drawn:
        percents = [percent for one in kind.layouts if (percent := highest_known(one)) is not None]
        percent = min(percents, default=50.0)
        if percent <= 50:
            continue
        tails = sorted(
            (one.middle_us(percent) / one.middle_us(50), one.layout, one.tail_cause)
            for one in kind.layouts
            if one.reaches(percent)
        )
        (short, light, _), (long, heavy, cause) = tails[0], tails[-1]
        same = show_ratio(short) == show_ratio(long)
        other = "" if same else f" ({show_ratio(short)} on {light})"
        text = (
            f"{called(percent)} of {kind.about} at {kind.at} is {show_ratio(long)} the median on "
            f"{heavy}{other}: {cause or 'why is not known'}"
        )
        if best is None or long > best[0]:
            best = (long, text)
    return best[1] if best is not None else "Latency from the fastest request to the slowest"


def _tail_caption(kinds: Sequence[KindLatencies]) -> str:
    return latency_caption(
        kinds,
        (
            (
                "The latency within which a share of requests finished; each further digit 9 "
                "has the same width."
            ),
            *repeats_words(
                kinds,
                "Bold: the geometric mean of the repeats’ percentiles; faint: each repeat.",
                "One repeat; band: how far chance may have moved a percentile (95 %), if requests "
                "were independent.",
            ),
            (
                f"Dashed: fewer than {SAMPLES_BEYOND} samples lie beyond. Hollow: the slowest "
                "request."
            ),
        ),
    )


def _tail_said(kind: KindLatencies) -> str:
    """The lowest and the highest value of the farthest percentile that is known for all."""
    percent = min(
        (found for one in kind.layouts if (found := highest_known(one)) is not None), default=None
    )
    if percent is None:
        ranked = any(one.ranked for one in kind.layouts)
        return "too few samples for any percentile" if ranked else "nothing is ranked"
    known = sorted(
        (one.middle_us(percent), one.layout) for one in kind.layouts if one.reaches(percent)
    )
    (low_us, fast), (high_us, slow) = known[0], known[-1]
    if len(known) == 1:
        return (
            f"{called(percent)}: {show_ms(low_us / 1000)} ms{f' {fast}' * (len(kind.layouts) > 1)}"
        )
    return (
        f"{called(percent)}: {show_ms(low_us / 1000)} ms {fast}, {show_ms(high_us / 1000)} ms "
        f"{slow}"
    )


def _odds(samples: float) -> list[float]:
    """The values of 1 / (1 - p) drawn up to `samples`, which is the last."""
    found = sorted({*(10 ** (number / A_DECADE) for number in range(1, 12 * A_DECADE)), 2.0})
    return [
        *(odds for odds in found if odds < samples * (1 - 1e-9)),
        *([samples] if 1 < samples < math.inf else []),
    ]


def _percent(odds: float) -> float:
    return 100 - 100 / odds


def _trusted(count: int) -> float:
    """The largest 1 / (1 - p) that so many samples determine."""
    return count / SAMPLES_BEYOND


def _tail_panel(kind: KindLatencies) -> Panel:
    known = [repeat for one in kind.layouts for repeat in one.known]
    first = min(repeat.percentile_us(_percent(_odds(math.inf)[0])) for repeat in known) / 1000
    y = AxisScale.logarithmic(
        [first, max(repeat.max_us for repeat in known) / 1000], "ms (log scale)"
    )
    ranked = [one for one in kind.layouts if one.ranked]
    bold = [
        [_mean_trace(one, part) for one in ranked if (part := _parts(one.count)[number])]
        for number in (0, 1)
    ]
    tops = [
        Spot(x=x, y=y_ms, layout=one.layout, tip=f"{one.layout}: max {show_ms(y_ms)} ms")
        for one in ranked
        for x, y_ms in [_end(one)]
    ]
    figures = [
        [
            show_ms(one.middle_us(percent) / 1000) if one.reaches(percent) else UNKNOWN
            for percent in (50, 90, 99, 99.9)
        ]
        for one in kind.layouts
    ]
    largest = [
        UNKNOWN if one.largest_us is None else show_ms(one.largest_us / 1000)
        for one in kind.layouts
    ]
    return Panel(
        key=kind.key,
        title=kind.title,
        finding=_tail_said(kind),
        x=AxisScale(
            kind="log",
            low=1.0,
            high=max(20.0, *(float(repeat.count) for repeat in known)) * 1.1,
            ticks=tuple(100 / (100 - percent) for percent in NAMED),
            title="of requests took no longer (log scale of 1 / (1 – p))",
            expression=_TAIL_TICK,
        ),
        y=y,
        marks=(
            Mark(
                kind="band",
                traces=tuple(
                    _chance(one)
                    for one in ranked
                    if len(one.ranked) == 1 and _trusted(one.count) > 1
                ),
            ),
            *repeat_marks(kind, _repeat_trace),
            Mark(kind="line", traces=tuple(bold[0])),
            Mark(kind="dashed line", traces=tuple(bold[1])),
            Mark(kind="outline", spots=tuple(tops)),
        ),
        labels=tuple(_tail_label(one, y.low) for one in kind.layouts),
        head=(
            *("layout", "repeats", "fewest samples"),
            *("p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms"),
        ),
        lines=tuple(
            (*table_cells(one), *cells, top)
            for one, cells, top in zip(kind.layouts, figures, largest, strict=True)
        ),
        height=TALL,
    )


def _mean_trace(one: LayoutLatencies, odds: Sequence[float]) -> Trace:
    return Trace(
        layout=one.layout,
        x=tuple(odds),
        y=tuple(one.middle_us(_percent(odd)) / 1000 for odd in odds),
    )


def _repeat_trace(layout: str, repeat: RepeatLatencies) -> Trace:
    odds = _odds(_trusted(repeat.count))
    return Trace(layout=layout, x=tuple(odds), y=tuple(_ms(repeat, odd) for odd in odds))


def _chance(one: LayoutLatencies) -> Trace:
    """What chance alone may have made of the percentiles of a single repeat."""
    (repeat,) = one.ranked
    known = [
        (odds, ends)
        for odds in _odds(_trusted(one.count))
        if (ends := repeat.interval_us(_percent(odds))) is not None
    ]
    lows, highs = (tuple(ends[side] / 1000 for _, ends in known) for side in (0, 1))
    return Trace(layout=one.layout, x=tuple(odds for odds, _ in known), y=lows, y2=highs)


def _parts(count: int) -> tuple[list[float], list[float]]:
    """Values of 1 / (1 - p) that the samples determine, and those from there to the last sample."""
    trusted = _trusted(count)
    solid = _odds(trusted)
    return solid, [*solid[-1:], *(odds for odds in _odds(float(count)) if odds > trusted)]


def _ms(repeat: RepeatLatencies, odds: float) -> float:
    return repeat.percentile_us(_percent(odds)) / 1000


def _end(one: LayoutLatencies) -> tuple[float, float]:
    """The place of the slowest request of all repeats, at the end of its own repeat."""
    slowest = max(one.ranked, key=lambda repeat: repeat.max_us)
    return float(max(2, slowest.count)), slowest.max_us / 1000


def _tail_label(one: LayoutLatencies, floor: float) -> Label:
    if one.ranked:
        x, y = _end(one)
        return Label(layout=one.layout, x=x, y=y)
    odds = _odds(_trusted(one.known[-1].count)) if one.known else []
    if odds:
        return Label(
            layout=one.layout, x=odds[-1], y=_ms(one.known[-1], odds[-1]), note=one.why_not
        )
    return Label(layout=one.layout, x=None, y=floor, note=one.why_not)


def _tail_csv(drawn: Sequence[KindLatencies]) -> str:
    """A line for each percentile of each repeat, and of their mean (`repeat` empty)."""
    lines: list[tuple[object, ...]] = []
    for kind in drawn:
        for one in kind.layouts:
            about = (*about_cells(kind, one), kind.workers)
            count = one.count
            if one.ranked:
                for odds in _odds(float(count)):
                    percent, enough = _percent(odds), odds <= _trusted(count)
                    cells = (f"{percent:.7g}", one.middle_us(percent) / 1000, count, enough, True)
                    lines.append((*about, None, *cells))
                top_ms = (one.largest_us or 0) / 1000
                lines.append((*about, None, "100", top_ms, count, False, True))
            for repeat in one.known:
                place, count, ranked = (*about, repeat.repeat + 1), repeat.count, repeat.ranked
                for odds in _odds(float(count)):
                    share, enough = f"{_percent(odds):.7g}", odds <= _trusted(count)
                    lines.append((*place, share, _ms(repeat, odds), count, enough, ranked))
                lines.append((*place, "100", repeat.max_us / 1000, count, False, ranked))
    columns = ("workers", "repeat", "percent", "latency_ms", "samples", "enough_beyond", "ranked")
    return csv_lines((*KIND_COLUMNS, *columns), lines)


def about_cells(kind: KindLatencies, one: LayoutLatencies) -> tuple[str, ...]:
    """The cells of `KIND_COLUMNS`."""
    workload, operation, api, driver = kind.kind
    return (one.layout, api, driver, workload, operation)
