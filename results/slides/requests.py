"""Two slides for each kind of requests: latency by throughput, which says what is served within a
bound, and throughput by workers.

What is not ranked is a cross that no line goes through; what is not known is not drawn and named
below the chart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import NEAR, Finding, undecided
from weighbridge.results.analysis.kinds import Kind
from weighbridge.results.analysis.sentence import percent
from weighbridge.results.analysis.steps.service_level import (
    Served,
    Stop,
    may_rank,
    path,
    served,
    stretches,
    telling_bound_ms,
)
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_theme import Look, Style
from weighbridge.results.charts.placing import log_ticks, nice_top
from weighbridge.results.doubt import graves, touching
from weighbridge.results.figures import counted, listed, show_figure, show_ms, show_ratio, upper
from weighbridge.results.slides.evidence import Evidence, repeats, rests_on, spanned, why_not
from weighbridge.results.slides.label_sides import sided
from weighbridge.results.slides.slide import (
    Axis,
    BarChart,
    ChartPoint,
    LineChart,
    ScatterChart,
    Series,
    Slide,
    SlideBar,
)

ABREAST: Final = 6
"""Layouts in a chart; of more the first stands beside five others on slides of their own."""
LABELLED: Final = 3
"""Layouts of which every point is labelled; of more, the last of each path is."""
_UNTOLD: Final = "tells no percentiles"
"""What `results.analysis.steps.validity` notes of a driver that has none."""
_CROSSES: Final = "×: not valid, not steady or in grave doubt, not ranked"
FAR: Final = 50.0
"""A scale is logarithmic where its highest figure is so many times its lowest."""


class Group(Record):
    """The layouts of one slide, of one kind of requests."""

    kind: Kind
    about: str
    layouts: tuple[str, ...]
    rows: tuple[Row, ...]
    part: str
    """Which of several slides, in words."""
    key: str

    def of(self, layout: str) -> tuple[Row, ...]:
        """The rows of a layout, in the order of workers."""
        return tuple(row for row in self.rows if row.layout == layout)


def requests(evidence: Evidence, look: Look) -> tuple[Slide, ...]:
    """The slides of all kinds of requests."""
    slides = []
    for group in _groups(evidence):
        latency = _latency(evidence, group, look)
        slides += (
            [latency, _throughput(evidence, group, look)]
            if latency is not None
            else [_throughput(evidence, group, look)]
        )
    return tuple(slides)


def _groups(evidence: Evidence) -> Iterator[Group]:
    first, *others = evidence.layouts
    parts = [others[at : at + ABREAST - 1] for at in range(0, len(others), ABREAST - 1)] or [[]]
    for kind, rows in evidence.kinds.items():
        for number, part in enumerate(parts, start=1):
            layouts = (first, *part)
            yield Group(
                kind=kind,
                about=evidence.called[kind],
                layouts=layouts,
                rows=tuple(row for row in rows if row.layout in layouts),
                part=f" ({number} of {len(parts)})" if len(parts) > 1 else "",
                key="-".join((*kind, str(number))),
            )


# ---- latency by throughput


def _latency(evidence: Evidence, group: Group, look: Look) -> Slide | None:
    """The slide of latency by throughput; None where no p90 is known, or none but in bins."""
    paths = {layout: path(group.of(layout)) for layout in group.layouts}
    drawn = evidence.drawn(look)
    series = [
        one
        for layout in group.layouts
        for one in _paths(drawn[layout], paths[layout], last_only=len(group.layouts) > LABELLED)
    ]
    if not any(one.joined for one in series) and not _in_grave_doubt(group):
        return None
    bound_ms = telling_bound_ms(list(paths.values()))
    within = (
        [served(layout, group.of(layout), bound_ms) for layout in group.layouts]
        if bound_ms is not None
        else []
    )
    lacking = {
        layout: [str(stop.workers) for stop in paths[layout] if stop.p90_ms is None]
        for layout in group.layouts
    }
    gone = [f"{layout} at {listed(counts)}" for layout, counts in lacking.items() if counts]
    pairs = _pairs(evidence, group)
    foot = [_whiskers(group), "numbers: workers"]
    foot += [_CROSSES] if any(not one.joined for one in series) else []
    foot += [f"no p90 (too few samples) of {', '.join(gone)}"] if gone else []
    return Slide(
        key=f"latency-{group.key}",
        title=f"{_served_title(group, within, bound_ms, pairs)}{group.part}",
        lead=f"p90 by throughput of {group.about}: lower and further right is better; "
        f"{rests_on(*repeats(group.rows))}",
        chart=_scatter(series),
        foot=f"{upper('; '.join(foot))}.",
        notes=(
            *_served_words(group, within, bound_ms),
            *(_stop_words(layout, stop) for layout in group.layouts for stop in paths[layout]),
        ),
    )


def _served_title(
    group: Group, within: Sequence[Served], bound_ms: float | None, pairs: Sequence[Finding]
) -> str:
    """What is served within the bound: the most and the least of the layouts, or who does not keep
    it; provisional where it is.
    """
    counted_of = {
        row.layout for row in group.rows if may_rank(row, "p90") and row.value("p90") is not None
    }
    if (pairs and all(pair.ratio is None for pair in pairs)) or _in_grave_doubt(group) - counted_of:
        return f"p90 of {group.about} by throughput: not comparable"
    doubted = any(pair.doubts for pair in pairs) or any(row.doubts for row in group.rows)
    known = sorted(
        (one for one in within if one.ops_s is not None), key=lambda one: -(one.ops_s or 0)
    )
    if bound_ms is None or not known:
        return f"{upper(group.about)}: too little is known of p90 to compare"
    at = f"{'Provisional: ' * doubted}{'W' if not doubted else 'w'}ithin p90 ≤ {bound_ms:g} ms"
    if len(known) == 1:
        rest = (
            f", the other{'s' * (len(within) > 2)} not even "
            f"{'their' if len(within) > 2 else 'its'} least load"
            if len(within) > 1
            else ""
        )
        return f"{at}, {known[0].layout} serves {_rate(known[0])} of {group.about}{rest}"
    most, least = known[0], known[-1]
    return (
        f"{at}, {most.layout} serves {_rate(most)} of {group.about}, {least.layout} {_rate(least)}"
    )


def _in_grave_doubt(group: Group) -> set[str]:
    """The layouts of which a p90 that is known may not be set against another's, while what they
    serve may.
    """
    return {
        row.layout
        for row in group.rows
        if row.ranked and row.value("p90") is not None and not may_rank(row, "p90")
    }


def _rate(one: Served) -> str:
    return f"{'at least ' * one.at_least}{show_figure(one.ops_s)} op/s"


def _served_words(group: Group, within: Sequence[Served], bound_ms: float | None) -> Iterator[str]:
    if bound_ms is not None:
        each = "; ".join(f"{one.layout} {one.span}" for one in within)
        resting = rests_on(*repeats(group.rows))
        yield (
            f"{upper(group.about)} within p90 ≤ {bound_ms:g} ms: {each}. In brackets: by the "
            f"repeats alone; {resting}."
        )


def _stop_words(layout: str, stop: Stop) -> str:
    p90 = (
        f"p90 {'≥ ' * stop.at_least}{show_ms(stop.p90_ms)} ms"
        if stop.p90_ms is not None
        else "p90 not known"
    )
    span = (
        f" ({show_figure(stop.low_ops_s)} to {show_figure(stop.high_ops_s)})"
        if stop.repeats > 1
        else ""
    )
    valid = "" if stop.ranked else f"; not ranked: {stop.note}"
    rate = f"{show_figure(stop.throughput_ops_s)} op/s{span}"
    return f"{layout}, {counted(stop.workers, 'worker')}: {rate}, {p90}, n = {stop.repeats}{valid}."


def _paths(style: Style, stops: Sequence[Stop], *, last_only: bool) -> Iterator[Series]:
    """The path of a layout, a series for each stretch without a gap, and its crosses."""
    name = style.layout
    for number, stretch in enumerate(stretches(stops)):
        spots = tuple(_spot(stop, labelled=not last_only or stop is stops[-1]) for stop in stretch)
        yield Series(
            name=name if not number else f"{name} (2)",
            colour=style.colour,
            shape=style.shape,
            spots=spots,
        )
    crosses = tuple(
        _spot(stop, labelled=True) for stop in stops if not stop.ranked and stop.p90_ms is not None
    )
    if crosses:
        yield Series(
            name=f"{name}, not ranked",
            colour=style.colour,
            shape="cross",
            spots=crosses,
            joined=False,
        )


def _spot(stop: Stop, *, labelled: bool) -> ChartPoint:
    several = stop.repeats > 1
    return ChartPoint(
        x=stop.throughput_ops_s,
        y=stop.p90_ms or 0.0,
        x_low=stop.low_ops_s if several else None,
        x_high=stop.high_ops_s if several else None,
        low=stop.low_ms if several else None,
        high=stop.high_ms if several else None,
        label=str(stop.workers) if labelled else "",
    )


def _scatter(series: Sequence[Series]) -> ScatterChart:
    spots = [spot for one in series for spot in one.spots]
    rates = [
        value for spot in spots for value in (spot.x, spot.x_low, spot.x_high) if value is not None
    ]
    latencies = [
        value for spot in spots for value in (spot.y, spot.low, spot.high) if value is not None
    ]
    across, up = _axis("op/s", rates), _axis("p90, ms", latencies)
    return ScatterChart(across=across, up=up, series=sided(series, across, up))


def _axis(title: str, values: Sequence[float]) -> Axis:
    """From 0, or logarithmic where the figures are far apart."""
    low, high = min(values), max(values)
    if low > 0 and high / low >= FAR:
        start, end, _ = log_ticks(low, high * 1.02)
        return Axis(title=f"{title} (log scale)", low=start, high=end, logarithmic=True)
    top, step = nice_top(high)
    return Axis(title=title, low=0, high=top, step=step)


# ---- throughput by workers


def _throughput(evidence: Evidence, group: Group, look: Look) -> Slide:
    counts = tuple(dict.fromkeys(row.workers for row in group.rows))
    drawn = evidence.drawn(look)
    series = [
        one for layout in group.layouts for one in _lines(drawn[layout], group.of(layout), counts)
    ]
    absent = [
        f"{row.layout} at {row.workers}" for row in group.rows if row.value("throughput") is None
    ]
    foot = [_whiskers(group)]
    foot += [_CROSSES] if any(not one.joined for one in series) else []
    foot += [f"not measured: {', '.join(absent)}"] if absent else []
    foot += [_no_p90(group)] if _no_p90(group) else []
    pairs = _pairs(evidence, group)
    return Slide(
        key=f"throughput-{group.key}",
        title=f"{_throughput_title(group, pairs)}{group.part}",
        lead=f"Throughput of {group.about} by workers; {rests_on(*repeats(group.rows))}"
        if series
        else "",
        chart=_shown(counts, series) if series else None,
        lines=()
        if series
        else tuple(dict.fromkeys(f"{row.layout}: {why_not(row)}" for row in group.rows)),
        foot=f"{upper('; '.join(foot))}." if series else "",
        notes=(
            *(pair.text for pair in pairs),
            *(_row_words(row) for row in group.rows),
        ),
    )


def _pairs(evidence: Evidence, group: Group) -> list[Finding]:
    """The findings over all worker counts about the layouts of a slide."""
    return [
        pair
        for pair in evidence.pairs.get(group.kind, [])
        if {pair.faster, pair.slower} <= set(group.layouts)
    ]


def _throughput_title(group: Group, pairs: Sequence[Finding]) -> str:
    """Who serves most of what the first layout does, and who least; or what one layout serves at
    its best.
    """
    of_first = {
        other: share
        for pair in pairs
        if (told := _of_first(pair)) is not None
        for other, share in [told]
    }
    if of_first:
        most, least = (
            max(of_first, key=lambda name: of_first[name]),
            min(of_first, key=lambda name: of_first[name]),
        )
        by_name = {
            name: pair
            for pair in pairs
            for name in (pair.faster, pair.slower)
            if name != pair.baseline
        }
        if most == least or of_first[most] < 1:
            return (
                f"{_relation(by_name[least], group.about)}{_at(group, {group.layouts[0], least})}"
            )
        mark = " (provisional)" * (by_name[least].verdict == "provisional" != by_name[most].verdict)
        at = _at(group, {group.layouts[0], most, least})
        return (
            f"{_relation(by_name[most], group.about)}{at}, {least} "
            f"{show_ratio(of_first[least])}{mark}"
        )
    best = max(
        (row for row in group.rows if row.ranked and row.value("throughput")),
        key=lambda row: row.value("throughput") or 0,
        default=None,
    )
    if len(group.layouts) == 1 and best is not None:
        most = f"{show_figure(best.value('throughput'))} op/s of {group.about}"
        return f"{best.layout} serves at most {most}, at {counted(best.workers, 'worker')}"
    return f"{upper(group.about)} cannot be compared"


def _at(group: Group, layouts: set[str]) -> str:
    """` at 1 to 16 workers`, of those counts at which all these layouts may be compared; nothing
    where there is none.
    """
    spoken_of = [row for row in group.rows if row.layout in layouts]
    left_out = {
        row.workers
        for row in spoken_of
        if not row.value("throughput") or not may_rank(row, "throughput")
    }
    counts = {row.workers for row in spoken_of} - left_out
    return f" at {spanned((min(counts), max(counts)))}" if counts else ""


def _of_first(pair: Finding) -> tuple[str, float] | None:
    """The layout that is compared with the first, and how many times the first's its throughput
    is.
    """
    if pair.ratio is None:
        return None
    if pair.faster == pair.baseline:
        return pair.slower, 1 / pair.ratio.value
    return pair.faster, pair.ratio.value


def _relation(pair: Finding, about: str) -> str:
    """What one layout serves of what another does, with its interval; a difference without weight
    is called that.
    """
    ratio = pair.ratio
    if ratio is None:
        return pair.brief
    interval = (
        ""
        if ratio.low is None or ratio.high is None
        else f" ({show_ratio(ratio.low)} to {show_ratio(ratio.high)})"
    )
    provisional = "Provisional: " * (pair.verdict == "provisional")
    if pair.verdict == "too small to matter":
        return (
            f"{pair.faster} and {pair.slower} serve {about} within {percent(ratio)} of each other"
        )
    if ratio.value < 1 + NEAR and not pair.shown:
        alike = f"{about} by {pair.faster} and {pair.slower}: {undecided(ratio)}"
        return f"{provisional}{alike}" if provisional else upper(alike)
    if provisional:
        return (
            f"{provisional}{pair.faster} did {show_ratio(ratio.value)}{interval} "
            f"{pair.slower}’s {about}"
        )
    unshown = ", which is not shown," if not pair.shown else ""
    return (
        f"{pair.faster} serves {show_ratio(ratio.value)}{interval} {pair.slower}’s {about}{unshown}"
    )


def _row_words(row: Row) -> str:
    """One line of the table in words."""
    at = f"{row.layout}, {counted(row.workers, 'worker')}"
    if row.value("throughput") is None:
        return f"{at}: {why_not(row)}."
    why = "; ".join(one.words for one in graves(touching(row.doubts, "p90"))) if row.ranked else ""
    p90 = f"{shown(row, 'p90', spread=False)} ms{f' (not comparable: {why})' if why else ''}"
    each = " · ".join(
        f"{show_figure(point.ops_s)}{'' if point.valid else ' (not ranked)'}"
        for point in row.points
    )
    valid = "" if row.ranked else f"; not ranked: {why_not(row)}"
    return (
        f"{at}: {show_figure(row.value('throughput'))} op/s, p90 {p90}, n = {row.repeats} "
        f"({each}){valid}."
    )


def _lines(style: Style, rows: Sequence[Row], counts: Sequence[int]) -> Iterator[Series]:
    """The line of a layout, a series for each stretch without a gap, and its crosses."""
    known = [row for row in rows if row.value("throughput") is not None]
    places = {workers: place for place, workers in enumerate(counts)}
    runs: list[list[Row]] = []
    for row in (row for row in known if row.ranked):
        if runs and places[runs[-1][-1].workers] + 1 == places[row.workers]:
            runs[-1].append(row)
        else:
            runs.append([row])
    for number, run in enumerate(runs):
        spots = tuple(_column(row, places) for row in run)
        yield Series(
            name=style.layout if not number else f"{style.layout} ({number + 1})",
            colour=style.colour,
            shape=style.shape,
            spots=spots,
        )
    crosses = tuple(_column(row, places) for row in known if not row.ranked)
    if crosses:
        yield Series(
            name=f"{style.layout}, not ranked",
            colour=style.colour,
            shape="cross",
            spots=crosses,
            joined=False,
        )


def _column(row: Row, places: dict[int, int]) -> ChartPoint:
    rates = [point.ops_s for point in row.used]
    several = len(rates) > 1
    return ChartPoint(
        x=places[row.workers],
        y=row.value("throughput") or 0.0,
        low=min(rates) if several else None,
        high=max(rates) if several else None,
    )


def _shown(counts: Sequence[int], series: Sequence[Series]) -> LineChart | BarChart:
    """Lines over worker counts; bars where there is one count alone."""
    largest = max(
        value
        for one in series
        for spot in one.spots
        for value in (spot.y, spot.high)
        if value is not None
    )
    top, step = nice_top(largest)
    if len(counts) == 1:
        across = Axis(title=f"op/s at {counted(counts[0], 'worker')}", low=0, high=top, step=step)
        return BarChart(across=across, bars=tuple(_bar(one, one.spots[0]) for one in series))
    return LineChart(
        categories=tuple(str(count) for count in counts),
        across="workers",
        up=Axis(title="op/s", low=0, high=top, step=step),
        series=tuple(series),
    )


def _bar(one: Series, spot: ChartPoint) -> SlideBar:
    label = show_figure(spot.y) if one.joined else f"× {show_figure(spot.y)}"
    return SlideBar(
        name=one.name, value=spot.y, low=spot.low, high=spot.high, colour=one.colour, label=label
    )


# ---- both


def _whiskers(group: Group) -> str:
    return (
        "points: geometric mean; whiskers: lowest and highest repeat"
        if repeats(group.rows)[1] > 1
        else "one repeat"
    )


def _no_p90(group: Group) -> str:
    """Why latency has no slide, in a few words; empty where a p90 is known."""
    if any(row.ranked and row.value("p90") is not None for row in group.rows):
        return ""
    if any(row.within("p90") is not None for row in group.rows):
        return "p90: told in bins, see the notes"
    untold = any(_UNTOLD in note for row in group.rows for note in row.notes)
    return "p90: the driver tells none" if untold else "p90: too few samples for one"
