"""What each power cut took: objects lost and objects in no listing, over the time of the cut.

The controls, which must lose, have a chart of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weighbridge.results.analysis.durability import LISTINGS, LOSSES, CutSeries
from weighbridge.results.analysis.power_mark import power_words
from weighbridge.results.figures import counted, upper
from weighbridge.results.record.durability import FINDINGS, PowerCut
from weighbridge.results.show.chart import (
    BAD,
    COLOUR,
    Chart,
    Panel,
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource
from weighbridge.results.show.scales import AxisScale

_NONE: Final = 0.5
"""Where cuts that lost nothing are drawn: at the foot of a logarithmic scale."""


def power_cut_charts(source: ChartSource) -> tuple[Chart, ...]:
    """The charts of a run in which power was cut, of stores and of controls; else none."""
    charts = []
    found = [one for one in source.durability if one.store.made]
    if found:
        charts.append(
            Chart(
                key="power-cuts",
                title="Objects lost, by power cut",
                finding=upper(power_words(one.mark for one in found)),
                caption="Each mark is a cut, at its second of the load. ×: acknowledged objects "
                "that were lost, torn, wrong, stale, back or unreadable. Rings: objects that "
                "listings have wrong. Dots at the foot: cuts that lost nothing.",
                panels=_panels({one.layout: one.store for one in found}),
                section="durability",
                layouts=source.layouts,
            )
        )
    controls = [one for one in found if one.control.made]
    if controls:
        each = ", ".join(f"{one.layout} in {_among(one.control)}" for one in controls)
        charts.append(
            Chart(
                key="power-cut-controls",
                title="Objects lost by the controls, by power cut",
                finding=f"Controls must lose writes, and did: {each}",
                caption="No results of layouts: the same stores with syncs that keep nothing "
                "during the load. Marks as in the chart of power cuts.",
                panels=_panels({f"{one.layout}, control": one.control for one in controls}),
                section="durability",
                layouts=source.layouts,
            )
        )
    return tuple(charts)


def _among(series: CutSeries) -> str:
    return f"{series.losing} of {counted(series.made, 'cut')}"


def _panels(found: Mapping[str, CutSeries]) -> tuple[Panel, ...]:
    rows = {title: [_row(cut) for cut in series.cuts] for title, series in found.items()}
    every = [row for mine in rows.values() for row in mine]
    last = max(row["at_s"] for row in every)
    most = max(row[name] for row in every for name in ("lost", "wrong_in_listings"))
    x = AxisScale.from_zero(last or 1.0, "seconds of load before the cut")
    scale = AxisScale.logarithmic((1.0, max(most, 10)), "objects (log scale)")
    y = scale.model_copy(update={"low": _NONE})
    return tuple(
        Panel(
            key=title.replace(", ", "-"),
            title=title,
            finding=f"lost writes in {_among(series)}",
            rows=rows[title],
            spec=_spec(x, y),
        )
        for title, series in found.items()
    )


def _row(cut: PowerCut) -> dict[str, Any]:
    lost, listed = (
        sum(cut.count(one) for one in FINDINGS if one in which) for which in (LOSSES, LISTINGS)
    )
    return {
        "layout": cut.layout,
        "cut": cut.number,
        "at_s": cut.at_s,
        "acknowledged": cut.acknowledged,
        **{one.replace(" ", "_"): cut.count(one) for one in FINDINGS},
        "lost": lost,
        "wrong_in_listings": listed,
        "serves_s": cut.serves_s,
        "_none": _NONE,
    }


def _spec(x: AxisScale, y: AxisScale) -> Spec:
    none = layer("circle", "repeat", "!datum.lost", y="_none")
    rings = layer("point", "sure", "datum.wrong_in_listings", y="wrong_in_listings")
    rings["mark"] |= {"filled": False, "strokeWidth": 3}
    lost = layer("point", "cross", "datum.lost", y="lost", color=BAD)
    return {
        "encoding": {"x": {**x.encoding(), "field": "at_s"}, "y": y.encoding(), "color": COLOUR},
        "layer": [none, rings, lost],
    }
