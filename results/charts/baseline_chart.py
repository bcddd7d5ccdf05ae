"""The chart of a baseline: a bar for each figure, by what was measured, with a line for what the hardware file promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from weighbridge.common.record import Record
from weighbridge.results.analysis.baseline import TITLES, Baseline, Group, HostFigure, baseline_csv, oddities
from weighbridge.results.charts.chart_theme import LIGHT, Look, config
from weighbridge.results.charts.figure import in_lines

WIDTH: Final = 620
BAR_PX: Final = 22
MOST_BARS: Final = 40
"""Of a group; with more its lowest are drawn, since those are what one looks for."""
COLOURS: Final[dict[str, dict[Group, str]]] = {
    "light": {"cpu": "#5B5B66", "disk": "#00875F", "disks": "#00574A", "network": "#139CB6", "fabric": "#0072B2"},
    "dark": {"cpu": "#A2A2AD", "disk": "#2FC08F", "disks": "#7FD6C2", "network": "#7BDDF9", "fabric": "#35A1E7"},
}
"""Of each group, by look."""


class BaselineChart(Record):
    """The chart, and the CSV it is drawn from."""

    name: str = "baseline"
    finding: str
    caption: str
    csv: str
    figures: tuple[HostFigure, ...]
    look: Look = LIGHT

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec: a panel for each group and unit, each with a scale of its own."""
        panels = [
            _panel(group, own, self.look)
            for group in TITLES
            for own in [[one for one in self.figures if one.group == group]]
            if own
        ]
        title = alt.Title(in_lines(self.finding, 58), subtitle=in_lines(self.caption, 100))
        spec: dict[str, Any] = (
            alt.vconcat(*panels, spacing=34)
            .resolve_scale(x="independent", y="independent")
            .properties(title=title)
            .to_dict(validate=False)
        )
        return {**spec, "config": config(self.look)}


def baseline_chart(baseline: Baseline, look: Look = LIGHT) -> BaselineChart:
    """The chart of a baseline; its title is the first thing that is odd."""
    odd = oddities(baseline.figures)
    more = f"; {len(odd) - 1} more {'things are' if len(odd) > 2 else 'thing is'} odd" if len(odd) > 1 else ""
    finding = (
        f"{odd[0][:1].upper()}{odd[0][1:]}{more}" if odd else f"The hosts of {baseline.hardware} do what is promised, and are alike"
    )
    return BaselineChart(
        finding=finding,
        caption=f"What the hosts of {baseline.hardware} can do without a gateway. Upright line: what the hardware file promises.",
        csv=baseline_csv(baseline.figures),
        figures=baseline.figures,
        look=look,
    )


def _panel(group: Group, figures: Sequence[HostFigure], look: Look) -> alt.LayerChart | alt.FacetChart:
    shown = sorted(sorted(figures, key=lambda one: one.value)[:MOST_BARS], key=figures.index)
    left = f" (the lowest {len(shown)} of {len(figures)})" if len(shown) < len(figures) else ""
    values = [
        {
            "name": _name(one),
            "value": one.value,
            "promised": one.promised,
            "edge": max(one.value, one.promised or 0),
            "label": one.shown if one.share is None else f"{one.shown}, {100 * one.share:.0f} %",
        }
        for one in shown
    ]
    top = max(max(one.value, one.promised or 0) for one in shown) * 1.28
    scale = alt.Scale(domain=[0, top], nice=False)
    axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    x, promised, edge = (alt.X(f"{field}:Q", title=None, axis=axis, scale=scale) for field in ("value", "promised", "edge"))
    y = alt.Y(
        "name:N",
        sort=None,
        title=None,
        axis=alt.Axis(labelLimit=420, ticks=False, domain=False, labelFontSize=14),
    )
    base = alt.Chart(alt.InlineData(values=values))
    bars = base.mark_bar(color=COLOURS[look.name][group], height=BAR_PX * 0.7).encode(x=x, y=y)
    words = base.mark_text(align="left", dx=6, fontSize=13, color=look.ink).encode(x=edge, y=y, text="label:N")
    promises = (
        base.mark_tick(color=look.muted, thickness=2, size=BAR_PX * 0.9).encode(x=promised, y=y).transform_filter("datum.promised")
    )
    return alt.layer(bars, promises, words).properties(
        width=WIDTH,
        height=BAR_PX * len(values),
        title=alt.Title(f"{TITLES[group]}{left}", fontSize=18, fontWeight=600, offset=10),
    )


def _name(one: HostFigure) -> str:
    if one.group == "network":
        return f"{one.sender} to {one.receiver}"
    return f"{one.host}: {one.what}"
