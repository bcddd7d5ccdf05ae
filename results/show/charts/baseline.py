"""What hosts can do without a gateway: bars, with what the hardware file promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weighbridge.results.analysis.baseline import (
    TITLES,
    Baseline,
    Group,
    HostFigure,
    oddities,
)
from weighbridge.results.figures import upper
from weighbridge.results.show.chart import Chart, Panel, layer
from weighbridge.results.show.scales import names_encoding

ROW_PX: Final = 26
MAX_BARS: Final = 40
"""Of a group: of more, the lowest are drawn, since those are of interest."""
ROOM: Final = 1.5
_PARTS: Final = ["cpu", "disk", "disks", "network", "fabric"]


def baseline_chart(baseline: Baseline) -> Chart:
    """The chart of a baseline; its title is the first irregularity."""
    odd = oddities(baseline.figures)
    more = (
        f"; {len(odd) - 1} more {'things are' if len(odd) > 2 else 'thing is'} odd"
        if len(odd) > 1
        else ""
    )
    finding = (
        f"{upper(odd[0])}{more}"
        if odd
        else f"The hosts of {baseline.hardware} are equal and reach what is promised"
    )
    groups = [(group, [one for one in baseline.figures if one.group == group]) for group in TITLES]
    return Chart(
        key="baseline",
        title="What hosts can do",
        finding=finding,
        caption=f"What the hosts of {baseline.hardware} can do without a gateway. Vertical line: "
        "what the hardware file promises.",
        panels=tuple(_panel(group, figures) for group, figures in groups if figures),
    )


def _panel(group: Group, figures: Sequence[HostFigure]) -> Panel:
    shown = sorted(sorted(figures, key=lambda one: one.value)[:MAX_BARS], key=figures.index)
    left = f" (the lowest {len(shown)} of {len(figures)})" if len(shown) < len(figures) else ""
    rows = [_row(one, drawn=one in shown) for one in figures]
    names = [row["_name"] for row in rows if row["_name"]]
    end = max(row["_end"] for row in rows)
    bar = layer("bar", "", "isValid(datum._name)", x="value", x2={"datum": 0})
    bar["mark"]["height"] = {"band": 0.62}
    bar["encoding"]["color"] = {
        "field": "group",
        "type": "nominal",
        "scale": {"domain": _PARTS, "range": "ordinal"},
        "legend": None,
    }
    promised = layer("tick", "", "isValid(datum._name) && datum.promised", x="promised")
    promised["mark"] |= {"thickness": 3, "color": "$ink"}
    scale = {"domain": [0, end * ROOM], "nice": False}
    return Panel(
        key=group,
        title=f"{TITLES[group]}{left}",
        rows=rows,
        spec={
            "encoding": {
                "x": {"type": "quantitative", "scale": scale, "axis": None},
                "y": {**names_encoding(names), "field": "_name"},
            },
            "layer": [
                bar,
                promised,
                layer("text", "figure", "isValid(datum._name)", x="_end", text="_text"),
            ],
        },
        height=ROW_PX * len(names),
    )


def _row(one: HostFigure, *, drawn: bool) -> dict[str, Any]:
    between = one.group == "network"
    name = f"{one.sender} to {one.receiver}" if between else f"{one.host}: {one.what}"
    text = one.shown if one.share is None else f"{one.shown}, {100 * one.share:.0f} %"
    return {
        **one.model_dump(),
        "_name": name if drawn else None,
        "_end": max(one.value, one.promised or 0),
        "_text": text,
    }
