from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from weighbridge.results.analysis.findings import Finding
from weighbridge.results.analysis.power_mark import power_brief, with_losses
from weighbridge.results.analysis.steps.service_level import (
    Served,
    Stop,
    default_bound_ms,
    may_rank,
    path,
    served,
    stretches,
)
from weighbridge.results.figures import counted, listed, show_figure, show_ms, upper
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.slides.evidence import Evidence, repeats, rests_on
from weighbridge.results.slides.request_group import (
    CROSSES,
    RequestGroup,
    group_pairs,
    whisker_words,
)
from weighbridge.results.slides.slide import ChartPoint, Series, SeriesChart, Slide

LABELLED: Final = 3
"""With more layouts, only the last point of each path is labelled."""
FAR: Final = 50.0
"""The least ratio of the highest to the lowest figure for a logarithmic scale."""


def latency_slide(evidence: Evidence, group: RequestGroup) -> Slide | None:
    """The slide; None where no p90 is known, or p90s only in bins."""
    paths = {layout: path(group.of(layout)) for layout in group.layouts}
    series = [
        one
        for layout, stops in paths.items()
        for one in _series(layout, stops, last_only=len(paths) > LABELLED)
    ]
    if not any(one.joined for one in series) and not _not_rankable(group):
        return None
    bound_ms = default_bound_ms(list(paths.values()))
    within = (
        [served(layout, group.of(layout), bound_ms) for layout in group.layouts]
        if bound_ms is not None
        else []
    )
    lacking = {
        layout: [str(stop.workers) for stop in stops if stop.p90_ms is None]
        for layout, stops in paths.items()
    }
    unknown = [f"{layout} at {listed(counts)}" for layout, counts in lacking.items() if counts]
    pairs = group_pairs(evidence, group)
    foot = [whisker_words(group), "numbers: workers"]
    foot += [CROSSES] if any(not one.joined for one in series) else []
    foot += [power_brief(group.power)] if group.power else []
    foot += [f"no p90 (too few samples) for {', '.join(unknown)}"] if unknown else []
    return Slide(
        key=f"latency-{group.key}",
        title=with_losses(f"{_title(group, within, bound_ms, pairs)}{group.part}", group.power),
        lead=f"p90 by throughput of {group.about}: lower and further right is better; "
        f"{rests_on(*repeats(group.rows))}",
        chart=_chart(evidence, series),
        foot=f"{upper('; '.join(foot))}.",
        notes=(
            *_served_words(group, within, bound_ms),
            *(_stop_words(layout, stop) for layout, stops in paths.items() for stop in stops),
        ),
    )


def _title(
    group: RequestGroup,
    within: Sequence[Served],
    bound_ms: float | None,
    pairs: Sequence[Finding],
) -> str:
    """The most and the least that is served within the bound, or which layouts exceed it."""
    rankable = {
        row.layout for row in group.rows if may_rank(row, "p90") and row.value("p90") is not None
    }
    if (pairs and all(pair.ratio is None for pair in pairs)) or _not_rankable(group) - rankable:
        return f"p90 of {group.about} by throughput: not comparable"
    doubted = any(pair.doubts for pair in pairs) or any(row.doubts for row in group.rows)
    known = sorted(
        (one for one in within if one.ops_s is not None), key=lambda one: -(one.ops_s or 0)
    )
    if bound_ms is None or not known:
        return f"{upper(group.about)}: too little is known of p90 to compare"
    at = f"{'Provisional: within' if doubted else 'Within'} p90 ≤ {bound_ms:g} ms"
    most, least = known[0], known[-1]
    text = f"{at}, {most.layout} serves {_rate(most)} of {group.about}"
    if len(known) > 1:
        return f"{text}, {least.layout} {_rate(least)}"
    if len(within) > 2:
        return f"{text}, the others not even their lowest load"
    return f"{text}, the other not even its lowest load" if len(within) == 2 else text


def _not_rankable(group: RequestGroup) -> set[str]:
    """Layouts with a p90 that may not be compared, though their throughput may."""
    return {
        row.layout
        for row in group.rows
        if row.ranked and row.value("p90") is not None and not may_rank(row, "p90")
    }


def _rate(one: Served) -> str:
    return f"{'at least ' * one.at_least}{show_figure(one.ops_s)} op/s"


def _served_words(
    group: RequestGroup, within: Sequence[Served], bound_ms: float | None
) -> Iterator[str]:
    if bound_ms is not None:
        each = "; ".join(f"{one.layout} {one.span}" for one in within)
        yield (
            f"{upper(group.about)} within p90 ≤ {bound_ms:g} ms: {each}. In brackets: range of "
            f"the repeats; {rests_on(*repeats(group.rows))}."
        )


def _stop_words(layout: str, stop: Stop) -> str:
    p90 = "p90 not known"
    if stop.p90_ms is not None:
        p90 = f"p90 {'≥ ' * stop.at_least}{show_ms(stop.p90_ms)} ms"
    span = ""
    if stop.repeats > 1:
        span = f" ({show_figure(stop.low_ops_s)} to {show_figure(stop.high_ops_s)})"
    valid = "" if stop.ranked else f"; not ranked: {stop.note}"
    rate = f"{show_figure(stop.throughput_ops_s)} op/s{span}"
    return f"{layout}, {counted(stop.workers, 'worker')}: {rate}, {p90}, n = {stop.repeats}{valid}."


def _series(layout: str, stops: Sequence[Stop], *, last_only: bool) -> Iterator[Series]:
    """The path of a layout, a series for each stretch without a gap, and its crosses."""
    for number, stretch in enumerate(stretches(stops), start=1):
        points = tuple(
            _point(stop, labelled=not last_only or stop is stops[-1]) for stop in stretch
        )
        name = layout if number == 1 else f"{layout} ({number})"
        yield Series(name=name, layout=layout, points=points)
    crosses = tuple(
        _point(stop, labelled=True) for stop in stops if not stop.ranked and stop.p90_ms is not None
    )
    if crosses:
        yield Series(name=f"{layout}, not ranked", layout=layout, points=crosses, joined=False)


def _point(stop: Stop, *, labelled: bool) -> ChartPoint:
    ends: dict[str, Any] = {
        "x_low": stop.low_ops_s,
        "x_high": stop.high_ops_s,
        "low": stop.low_ms,
        "high": stop.high_ms,
    }
    return ChartPoint(
        x=stop.throughput_ops_s,
        y=stop.p90_ms or 0.0,
        label=str(stop.workers) if labelled else "",
        **(ends if stop.repeats > 1 else {}),
    )


def _chart(evidence: Evidence, series: Sequence[Series]) -> SeriesChart:
    points = [point for one in series for point in one.points]
    rates = [value for at in points for value in (at.x, at.x_low, at.x_high) if value is not None]
    latencies = [value for at in points for value in (at.y, at.low, at.high) if value is not None]
    return SeriesChart(
        form="paths",
        x=_scale("op/s", rates),
        y=_scale("p90, ms", latencies),
        series=tuple(series),
        layouts=evidence.plan.layouts,
    )


def _scale(title: str, values: Sequence[float]) -> AxisScale:
    """A scale from 0, or logarithmic where the figures are far apart."""
    low, high = min(values), max(values)
    if low > 0 and high / low >= FAR:
        return AxisScale.logarithmic((low, high * 1.02), f"{title} (log scale)")
    return AxisScale.from_zero(high, title)
