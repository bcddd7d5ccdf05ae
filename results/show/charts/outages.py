"""Outages over time: op/s and p99 of each second, layout below layout, with the moments marked."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from weighbridge.results.analysis.outages import OutageKind, OutageRow
from weighbridge.results.figures import upper
from weighbridge.results.show.chart import (
    BAD,
    COLOUR,
    FULL_HEIGHT,
    MUTED,
    Chart,
    Panel,
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM


def outage_charts(source: ChartSource) -> tuple[Chart, ...]:
    """A chart for each kind of requests with a fault; none without."""
    return tuple(_chart(source, kind) for kind in source.outages.kinds)


def _chart(source: ChartSource, kind: OutageKind) -> Chart:
    repeats = min(row.row.repeats for row in kind.rows)
    few = (
        f" Fewer than {REPEATS_FOR_A_CLAIM} repeats: nothing is ranked."
        if repeats < REPEATS_FOR_A_CLAIM
        else ""
    )
    several = "Means over the repeats, of p99 the median" if repeats > 1 else "One repeat"
    rate = max((one.ops_s for row in kind.rows for one in row.seconds), default=1.0) or 1.0
    known = [one.p99_ms for row in kind.rows for one in row.seconds if one.p99_ms]
    length = max((len(row.seconds) for row in kind.rows), default=0) or 1
    nice = AxisScale.from_zero(length, "s since the window opened")
    ticks = tuple(tick for tick in nice.ticks if tick <= length)
    x = nice.model_copy(update={"high": float(length), "ticks": ticks})
    rates = AxisScale.from_zero(rate * 1.08, "op/s")
    tails = AxisScale.logarithmic(known, "p99 ms (log scale)")
    panels = []
    for row in kind.rows:
        rows, what = _rows(row), f"{row.layout}: {'; '.join(row.what)}"
        panels += [
            Panel(f"{row.layout}-rate", what, rows, _spec(row, x, rates, "ops_s"), height=150),
            Panel(f"{row.layout}-p99", " ", rows, _spec(row, x, tails, "p99_ms"), height=150),
        ]
    return Chart(
        key=f"outage-{kind.key}",
        title=f"While something is broken: {kind.about}",
        finding=kind.headline,
        caption="Each complete second of the window. Crosses: seconds with errors. p99: an upper "
        f"bound for what succeeded, from bands of 19 to 25 %. {several}.{few}",
        panels=tuple(panels),
        layouts=source.layouts,
    )


def _rows(row: OutageRow) -> list[dict[str, Any]]:
    """A row for each second; `_stretch` numbers the runs of seconds with an answer."""
    rows: list[dict[str, Any]] = []
    for number, (_, run) in enumerate(groupby(row.seconds, lambda one: bool(one.p99_ms))):
        moments = {"layout": row.layout, "fault_s": row.fault_s, "back_s": row.back_s}
        rows += [
            {**moments, **one.model_dump(), "_at": one.second + 0.5, "_stretch": number}
            for one in run
        ]
    return rows


def _spec(row: OutageRow, x: AxisScale, y: AxisScale, column: str) -> Spec:
    line = layer("line", "path", f"datum.{column}" if column == "p99_ms" else "", y=column)
    if column == "p99_ms":
        # No line goes through seconds without an answer.
        line["encoding"]["detail"] = {"field": "_stretch", "type": "nominal"}
    failed = layer("point", "cross", "datum.errors_s", y=column, color=BAD)
    moments = [(row.fault_s, upper(row.row.fault.way) if row.row.fault is not None else "")]
    moments += [(row.back_s, "Back")] if row.back_s is not None else []
    rules = layer("rule", "moment", x="at", color=BAD)
    words = layer("text", "note", x="at", text="name", color=MUTED)
    for one in (rules, words):
        one["data"] = {"values": [{"at": at, "name": name} for at, name in moments]}
    rules["encoding"] |= FULL_HEIGHT
    words["encoding"]["y"] = {"datum": y.value(0.93)}
    return {
        "encoding": {"x": {**x.encoding(), "field": "_at"}, "y": y.encoding(), "color": COLOUR},
        "layer": [rules, words, line, *([failed] if column == "ops_s" else [])],
    }
