"""The hockey stick: p90 by throughput, a path a layout in the order of workers, and what each serves within a bound on p90.

Between measured points the path is straight in op/s and ms, as it is where the bound is crossed; on the logarithmic scale of
latencies that makes a curve, which is drawn as one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import altair as alt

from weighbridge.results.analysis.steps.service_level import Served, Stop, stretches
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_theme import Look, Style
from weighbridge.results.charts.charts import colour_of, shape_of
from weighbridge.results.charts.figure import HEIGHT, Figure, Plot
from weighbridge.results.charts.hockey_stick_data import Stick, sticks, sticks_csv
from weighbridge.results.charts.labels import AxisScale, Frame, Label, LabelSpot, along, beside, chart_of, side_labels
from weighbridge.results.charts.latencies import KindLatencies
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms, show_ratio

TALL: Final = HEIGHT + 40
_PARTS: Final = 12
"""Straight pieces of a curve between two points."""
_COUNT_PX: Final = 13
_HEAD: Final = ("layout", "workers", "op/s", "of repeats, op/s", "p90 ms", "of repeats, ms", "counts")


def hockey_stick(
    rows: Sequence[Row],
    kinds: Sequence[KindLatencies],
    layouts: Sequence[Style],
    look: Look,
    *,
    slo_ms: float | None = None,
) -> Figure | None:
    """The figure of a table without twins; None where no p90 is known. `slo_ms` is the bound of every panel."""
    found = sticks(rows, kinds, slo_ms)
    drawn = [stick for stick in found if any(stop.high_ms is not None for stops in stick.paths.values() for stop in stops)]
    if not drawn:
        return None
    return Figure(
        name="hockey-stick",
        title="Hockey stick: p90 by throughput",
        finding=_finding(drawn),
        caption=_caption(drawn, [stick.about for stick in found if stick not in drawn]),
        csv=sticks_csv(found),
        plots=tuple(_plot(stick, layouts, look) for stick in drawn),
        look=look,
    )


def _finding(drawn: Sequence[Stick]) -> str:
    """The widest of the gaps between what two layouts serve within a bound."""
    pairs = [(stick, *stick.ahead) for stick in drawn if stick.ahead is not None]
    pairs = [pair for pair in pairs if not pair[2].at_least] or pairs
    if pairs:
        stick, most, least = max(pairs, key=lambda pair: (pair[1].ops_s or 0.0) / (pair[2].ops_s or 1.0))
        return (
            f"Within a p90 of {stick.bound} ms for {stick.about} {most.layout} serves {_plainly(most)} op/s, "
            f"{least.layout} {_plainly(least)}"
        )
    for stick in drawn:
        for one in stick.served:
            if one.ops_s is not None:
                return f"Within a p90 of {stick.bound} ms {one.layout} serves {_plainly(one)} op/s of {stick.about}"
    return "How p90 rises with throughput"


def _plainly(one: Served) -> str:
    return f"{'at least ' * one.at_least}{show_figure(one.ops_s)}"


def _caption(drawn: Sequence[Stick], left_out: Sequence[str]) -> str:
    stops = [stop for stick in drawn for stops in stick.paths.values() for stop in stops]
    parts = ["p90 by operations per second; small figures: workers."]
    made_of = sorted({stop.repeats for stop in stops if stop.repeats})
    several = f"{made_of[0]} to {made_of[-1]}" if len(made_of) > 1 else str(made_of[0])
    parts += [f"Medians of {several} repeats, bars from the least to the most of them."] if made_of[-1] > 1 else ["One repeat."]
    if any(stick.bound_ms is not None for stick in drawn):
        chosen = "" if all(stick.asked for stick in drawn) else ", chosen where it tells the layouts apart"
        parts.append(
            f"Dashed: a bound on p90{chosen}. Under each name what it serves within the bound, on the straight line between "
            "two measured points and never beyond them; ≥: more workers were not tried or do not count."
        )
    if any(not stop.valid and stop.p90_ms is not None for stop in stops):
        parts.append("×: not valid.")
    if any(stop.valid and not stop.ranked and stop.p90_ms is not None for stop in stops):
        parts.append("Hollow: not steady, or above what its layer can do.")
    if any(stop.p90_ms is None and stop.high_ms is not None for stop in stops):
        parts.append("Bars without a mark: the bin in which p90 lies, where the driver tells no more.")
    if any(stop.p90_ms is None and stop.high_ms is None for stop in stops):
        parts.append("Hollow at the foot: too few samples for a p90, or none that can be read.")
    if left_out:
        parts.append(f"Left out, since no p90 is known: {', '.join(left_out)}.")
    return " ".join(parts)


def _plot(stick: Stick, layouts: Sequence[Style], look: Look) -> Plot:
    return Plot(
        key=stick.key,
        title=f"{stick.about[:1].upper()}{stick.about[1:]}",
        finding=_panel_finding(stick),
        spec=_draw(stick, layouts, look).to_dict(validate=False),
        head=_HEAD,
        lines=tuple(_line(layout, stop) for layout, stops in stick.paths.items() for stop in stops),
        height=TALL,
    )


def _panel_finding(stick: Stick) -> str:
    if stick.ahead is None:
        return ""
    most, least = stick.ahead
    ratio = (most.ops_s or 0.0) / (least.ops_s or 1.0)
    if most.at_least and least.at_least:
        return f"all that were within p90 ≤ {stick.bound} ms may serve more"
    sign = "at least " * most.at_least + "at most " * least.at_least
    return f"at p90 ≤ {stick.bound} ms {most.layout} serves {sign}{show_ratio(ratio)} what {least.layout} does"


def _line(layout: str, stop: Stop) -> tuple[str, ...]:
    spread = stop.repeats > 1
    p90_ms = show_ms(stop.p90_ms)
    if stop.p90_ms is None and stop.low_ms is not None:
        p90_ms = f"in {show_ms(stop.low_ms)}–{show_ms(stop.high_ms)}"
    return (
        layout,
        str(stop.workers),
        show_figure(stop.throughput_ops_s),
        f"{show_figure(stop.low_ops_s)}–{show_figure(stop.high_ops_s)}" if spread else UNKNOWN,
        p90_ms,
        f"{show_ms(stop.low_ms)}–{show_ms(stop.high_ms)}" if spread and stop.p90_ms is not None else UNKNOWN,
        "yes" if stop.joined else "no",
    )


def _draw(stick: Stick, shown: Sequence[Style], look: Look) -> alt.LayerChart | alt.FacetChart:
    frame = _frame(stick)
    marks = [_mark(layout, stop, frame.up.low) for layout, stops in stick.paths.items() for stop in stops]
    curves = [
        {"layout": layout, "part": number, "order": order, "x": rate, "y": latency}
        for layout, stops in stick.paths.items()
        for number, part in enumerate(stretches(stops))
        for order, (rate, latency) in enumerate(_curve(part))
    ]
    colour, shape = colour_of(shown), shape_of(shown)
    counted = chart_of([mark for mark in marks if mark["kind"] == "counts"])
    binned = chart_of([mark for mark in marks if mark["kind"] == "bin"])
    several = chart_of([mark for mark in marks if mark["kind"] in ("counts", "bin") and mark["repeats"] > 1])
    upright = chart_of([mark for mark in marks if mark["kind"] == "counts" and mark["repeats"] > 1])
    crossed = chart_of([mark for mark in marks if mark["kind"] == "not valid"])
    open_ = chart_of([mark for mark in marks if mark["kind"] in ("few", "doubted")])
    tooltip = [
        alt.Tooltip("layout:N"),
        alt.Tooltip("workers:Q"),
        alt.Tooltip("x:Q", title="op/s", format=",.4~g"),
        alt.Tooltip("y:Q", title="p90 ms", format=",.4~g"),
    ]
    why = [*tooltip[:3], alt.Tooltip("why:N")]
    bar: dict[str, Any] = {"strokeWidth": 1.8, "opacity": 0.55}
    hollow: dict[str, Any] = {"filled": True, "fill": look.background, "strokeWidth": 2, "opacity": 1}
    cross: dict[str, Any] = {"shape": "M-.6,-.6L.6,.6M.6,-.6L-.6,.6", "filled": False, "strokeWidth": 2.5, "opacity": 1}
    stroke = alt.Stroke(
        "layout:N", scale=alt.Scale(domain=[one.layout for one in shown], range=[one.colour for one in shown]), legend=None
    )
    texts = chart_of(_counts(stick, frame))
    return alt.layer(
        *_bound_layers(stick, look, frame, colour, stroke),
        several.mark_rule(**bar).encode(x=frame.x("left"), x2=alt.X2("right:Q"), y=frame.y(), color=colour),
        upright.mark_rule(**bar).encode(x=frame.x(), y=frame.y("low"), y2=alt.Y2("high:Q"), color=colour),
        binned.mark_rule(strokeWidth=6, opacity=0.45, strokeCap="round").encode(
            x=frame.x(), y=frame.y("low"), y2=alt.Y2("high:Q"), color=colour
        ),
        chart_of(curves)
        .mark_line(strokeWidth=2.5)
        .encode(x=frame.x(), y=frame.y(), color=colour, detail=["layout:N", "part:O"], order="order:Q"),
        open_.mark_point(size=80, **hollow).encode(x=frame.x(), y=frame.y(), stroke=stroke, shape=shape, tooltip=why),
        counted.mark_point(size=80, filled=True, opacity=1).encode(
            x=frame.x(), y=frame.y(), color=colour, shape=shape, tooltip=tooltip
        ),
        crossed.mark_point(size=200, **cross).encode(x=frame.x(), y=frame.y(), color=colour, tooltip=why),
        texts.mark_text(fontSize=_COUNT_PX, baseline="middle").encode(
            x=frame.x(), y=frame.y(), text=alt.Text("text:N"), color=colour
        ),
        *side_labels(_labels(stick, frame), frame, look, shown),
    )


def _frame(stick: Stick) -> Frame:
    stops = [stop for stops in stick.paths.values() for stop in stops]
    known = [value for stop in stops for value in (stop.p90_ms, stop.low_ms, stop.high_ms, stick.bound_ms) if value]
    # The first bin begins at 0, which is nowhere on a logarithmic scale: half of it is shown.
    known += [stop.high_ms / 2 for stop in stops if stop.p90_ms is None and stop.low_ms == 0 and stop.high_ms]
    return Frame(
        across=AxisScale.from_zero(max((stop.high_ops_s for stop in stops), default=1.0), "op/s", grid=False),
        up=AxisScale.logarithmic(min(known, default=1.0), max(known, default=10.0), "p90 ms (log scale)"),
        height=TALL,
    )


def _mark(layout: str, stop: Stop, floor_ms: float) -> dict[str, Any]:
    """One stop as it is drawn: where it counts, where not, where p90 is a bin, and where too few samples give none."""
    if stop.p90_ms is not None:
        kind = "counts" if stop.joined else "doubted" if stop.valid else "not valid"
    else:
        kind = "bin" if stop.low_ms is not None else "few"
    low_ms = max(stop.low_ms or floor_ms, floor_ms)
    return {
        "layout": layout,
        "kind": kind,
        "workers": stop.workers,
        "repeats": stop.repeats,
        "x": stop.throughput_ops_s,
        "left": stop.low_ops_s,
        "right": stop.high_ops_s,
        "y": _height_ms(stop, floor_ms) or floor_ms,
        "low": low_ms,
        "high": stop.high_ms or low_ms,
        "why": stop.note or "too few samples for a p90",
    }


def _height_ms(stop: Stop, floor_ms: float) -> float | None:
    """Where a stop stands: at its p90, or in the middle of the bin that holds it; None where neither is known."""
    if stop.p90_ms is not None or stop.low_ms is None:
        return stop.p90_ms
    low_ms = max(stop.low_ms, floor_ms)
    return math.sqrt(low_ms * max(stop.high_ms or low_ms, low_ms))


def _curve(part: Sequence[Stop]) -> list[tuple[float, float]]:
    """Points on the straight lines of a stretch, close enough for a logarithmic scale."""
    found = [(part[0].throughput_ops_s, part[0].p90_ms or 0.0)]
    for a, b in pairwise(part):
        for number in range(1, _PARTS + 1):
            along = number / _PARTS
            rate = a.throughput_ops_s + along * (b.throughput_ops_s - a.throughput_ops_s)
            found.append((rate, (a.p90_ms or 0.0) + along * ((b.p90_ms or 0.0) - (a.p90_ms or 0.0))))
    return found


def _bound_layers(stick: Stick, look: Look, frame: Frame, colour: alt.Color, stroke: alt.Stroke) -> list[alt.Chart]:
    """The bound, and from where each path crosses it a thread down to the throughput that it gives."""
    if stick.bound_ms is None:
        return []
    text = f"p90 ≤ {stick.bound} ms"
    place = along(frame.up.share(stick.bound_ms) * frame.height, frame.width, text, _taken(stick, frame), _COUNT_PX)
    x, y = frame.values(place.x, place.y)
    line = chart_of([{"y": stick.bound_ms}])
    down = chart_of(
        [
            {"layout": one.layout, "x": one.ops_s, "y": one.at_ms, "foot": frame.up.low}
            for one in stick.served
            if one.ops_s is not None and not one.at_least
        ]
    )
    return [
        line.mark_rule(strokeDash=[6, 4], strokeWidth=1.6, color=look.muted).encode(y=frame.y()),
        chart_of([{"x": x, "y": y, "text": text}])
        .mark_text(baseline="middle", fontSize=_COUNT_PX, fontWeight=600, color=look.muted)
        .encode(x=frame.x(), y=frame.y(), text=alt.Text("text:N")),
        down.mark_rule(strokeDash=[1, 4], strokeWidth=2, strokeCap="round", opacity=0.8).encode(
            x=frame.x(), y=frame.y(), y2=alt.Y2("foot:Q"), color=colour
        ),
        down.transform_filter(f"datum.y == {stick.bound_ms}")
        .mark_point(size=50, filled=True, fill=look.background, strokeWidth=2, shape="circle", opacity=1)
        .encode(x=frame.x(), y=frame.y(), stroke=stroke),
    ]


def _taken(stick: Stick, frame: Frame) -> list[LabelSpot]:
    """Where paths and bars are drawn, in small pieces."""
    spots: list[LabelSpot] = []
    for stops in stick.paths.values():
        for part in stretches(stops):
            places = [frame.px(rate, latency) for rate, latency in _curve(part)]
            for (x, y), (to_x, to_y) in pairwise(places):
                pieces = max(1, math.ceil(max(abs(to_x - x), abs(to_y - y)) / 4))
                spots += [
                    LabelSpot(x=x + (to_x - x) * number / pieces, y=y + (to_y - y) * number / pieces, width=3, height=3)
                    for number in range(pieces + 1)
                ]
        for stop in stops:
            if stop.p90_ms is None and stop.low_ms is not None:
                (x, foot), (_, top) = (frame.px(stop.throughput_ops_s, one or frame.up.low) for one in (stop.low_ms, stop.high_ms))
                spots.append(LabelSpot(x=x, y=(foot + top) / 2, width=10, height=max(top - foot, 8)))
            if stop.p90_ms is not None:
                (left, y), (right, _) = frame.px(stop.low_ops_s, stop.p90_ms), frame.px(stop.high_ops_s, stop.p90_ms)
                spots.append(LabelSpot(x=(left + right) / 2, y=y, width=max(12, right - left), height=12))
                (x, foot), (_, top) = (
                    frame.px(stop.throughput_ops_s, stop.low_ms or stop.p90_ms),
                    frame.px(0, stop.high_ms or stop.p90_ms),
                )
                spots.append(LabelSpot(x=x, y=(foot + top) / 2, width=4, height=top - foot))
    return spots


def _obstacles(stick: Stick, frame: Frame) -> list[LabelSpot]:
    """What the worker counts must not lie on: paths, bars and the bound with its words."""
    taken = _taken(stick, frame)
    if stick.bound_ms is None:
        return taken
    level = frame.up.share(stick.bound_ms) * frame.height
    words = along(level, frame.width, f"p90 ≤ {stick.bound} ms", taken, _COUNT_PX)
    drops = [frame.px(one.ops_s, one.at_ms) for one in stick.served if one.ops_s and one.at_ms and not one.at_least]
    threads = [LabelSpot(x=x, y=y / 2, width=4, height=y) for x, y in drops]
    return [*taken, *threads, words, LabelSpot(x=frame.width / 2, y=level, width=float(frame.width), height=3)]


def _counts(stick: Stick, frame: Frame) -> list[dict[str, Any]]:
    """The worker counts beside points, where there is room."""
    points = [
        (*frame.px(stop.throughput_ops_s, height_ms), str(stop.workers), layout)
        for layout, stops in stick.paths.items()
        for stop in stops
        if (height_ms := _height_ms(stop, frame.up.low)) is not None
    ]
    places = beside([point[:3] for point in points], _obstacles(stick, frame), _COUNT_PX, 12)
    return [
        {"layout": layout, "text": text, **dict(zip("xy", frame.values(place.x, place.y), strict=True))}
        for (_, _, text, layout), place in zip(points, places, strict=True)
        if place is not None
    ]


def _labels(stick: Stick, frame: Frame) -> list[Label]:
    """The names, at the end of each path; where nothing is joined, at the last that is drawn."""
    words = {one.layout: one.words for one in stick.served}
    found = []
    for layout, stops in stick.paths.items():
        drawn = [(stop, height_ms) for stop in stops if (height_ms := _height_ms(stop, frame.up.low)) is not None]
        joined = [(stop, height_ms) for stop, height_ms in drawn if stop.joined] or drawn
        x, y = (joined[-1][0].throughput_ops_s, joined[-1][1]) if joined else (None, frame.up.low)
        found.append(Label(layout=layout, x=x, y=y, note=words.get(layout, "") if stops else "not measured"))
    return found
