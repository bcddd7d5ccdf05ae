"""The strips of resources: a small chart for each resource, in the colours and shapes of the charts above them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

import altair as alt

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import UTILIZED, Resource, What, saturated
from weighbridge.results.charts.chart_theme import LIGHT, Look, Style, config, styles
from weighbridge.results.charts.charts import colour_of, shape_of, workers_axis
from weighbridge.results.charts.figure import in_lines, together
from weighbridge.results.figures import UNKNOWN
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.record.telemetry import Tier


class Share(Record):
    """The most used resource of one kind of one layout at one worker count. `stretch` numbers the runs of known neighbours."""

    layout: str
    workers: int
    percent: float
    full: bool
    """Whether it may have been the limit."""
    words: str
    stretch: int


class ResourceCell(Record):
    """One resource of a strip."""

    key: str
    title: str
    shares: tuple[Share, ...]


class Strip(Record):
    """The resources of one kind of requests. `lines` are a head and a line a layout and worker count, in words."""

    key: str
    title: str
    workers: tuple[int, ...]
    cells: tuple[ResourceCell, ...]
    lines: tuple[tuple[str, ...], ...]

    @property
    def recorded(self) -> bool:
        """Whether there is anything to draw."""
        return any(cell.shares for cell in self.cells)

    @property
    def full(self) -> str:
        """Which resources may have been the limit, for those who cannot see it."""
        words = dict.fromkeys(
            f"{share.layout} at {share.workers} workers: {share.words}."
            for cell in self.cells
            for share in cell.shares
            if share.full
        )
        return " ".join(words) or "No resource was used to 80 % or more."


_GATEWAYS: Final[tuple[Tier, ...]] = ("gateway", "shared")
_ALL: Final[tuple[Tier, ...]] = ("gateway", "shared", "storage")
KINDS: Final[tuple[tuple[str, str, What, tuple[Tier, ...]], ...]] = (
    ("gateway-cpu", "Gateway CPU", "CPU", _GATEWAYS),
    ("storage-cpu", "Storage CPU", "CPU", ("storage",)),
    ("disk", "Disks", "disk", _ALL),
    ("network", "Network", "network", _ALL),
    ("driver-cpu", "Driver CPU", "CPU", ("client",)),
)
"""Resources that are drawn, by which tiers' hosts: the most used of those is what a cell shows."""


def strips(rows: Sequence[Row]) -> tuple[Strip, ...]:
    """A strip for each kind of requests, in the order and with the keys of the charts' panels."""
    names = subjects(rows)
    return tuple(_strip(list(cells), names[kind]) for kind, cells in groupby(rows, key=kind_of))


def resource_csv(rows: Sequence[Row]) -> str:
    """All resources of all hosts: a line for each, median of the repeats. Shares are of 1."""
    head = (
        "layout",
        "api",
        "workload",
        "operation",
        "workers",
        "host",
        "tier",
        "resource",
        "share",
        "limit",
        "throttled",
        "saturated",
    )
    lines = [
        (
            *(row.layout, row.api, row.workload, row.operation, row.workers),
            *(one.host, one.tier, one.name, one.share, one.limit, one.throttled, one.saturated),
        )
        for row in rows
        for one in row.resources
    ]
    return csv_lines(head, lines)


def _strip(rows: Sequence[Row], about: str) -> Strip:
    head = rows[0]
    titles = tuple(title for _, title, _, _ in KINDS)
    body = [
        (
            row.layout,
            str(row.workers),
            *(_shown(_top(row, what, tiers)) for _, _, what, tiers in KINDS),
            row.saturated or "not recorded",
            row.told or UNKNOWN,
        )
        for row in rows
    ]
    return Strip(
        key="-".join(kind_of(head)),
        title=f"{about[:1].upper()}{about[1:]}",
        workers=tuple(dict.fromkeys(row.workers for row in rows)),
        cells=tuple(ResourceCell(key=key, title=title, shares=_shares(rows, what, tiers)) for key, title, what, tiers in KINDS),
        lines=(("Layout", "Workers", *titles, "What was the limit", "What the daemons told"), *body),
    )


def _shares(rows: Sequence[Row], what: What, tiers: Sequence[Tier]) -> tuple[Share, ...]:
    found = []
    for layout in dict.fromkeys(row.layout for row in rows):
        stretch = 0
        for row in (row for row in rows if row.layout == layout):
            top = _top(row, what, tiers)
            if top is None:
                stretch += 1
                continue
            found.append(
                Share(
                    layout=layout,
                    workers=row.workers,
                    percent=top.share * 100,
                    full=top.saturated,
                    words=top.words,
                    stretch=stretch,
                )
            )
    return tuple(found)


def _top(row: Row, what: What, tiers: Sequence[Tier]) -> Resource | None:
    mine = [one for one in row.resources if one.what == what and one.tier in tiers]
    return max(mine, key=lambda one: one.share, default=None)


def _shown(one: Resource | None) -> str:
    return UNKNOWN if one is None else f"{'● ' if one.saturated else ''}{one.share * 100:.0f}"


WIDTH: Final = 190
HEIGHT: Final = 130
CELL_HEIGHT: Final = 96


class ResourceChart(Record):
    """All strips, and the CSV they are drawn from. `finding` is their title, one sentence."""

    name: str = "resources-by-workers"
    title: str = "Resources by workers"
    finding: str
    caption: str
    csv: str
    strips: tuple[Strip, ...]
    styles: tuple[Style, ...]
    look: Look = LIGHT

    @property
    def recorded(self) -> bool:
        """Whether there is anything to draw."""
        return any(strip.recorded for strip in self.strips)

    def cell_spec(self, strip: Strip, cell: ResourceCell) -> dict[str, Any]:
        """The Vega-Lite spec of one small chart that takes the width it is given."""
        spec: dict[str, Any] = _cell(strip, cell, self.styles, self.look, "container", CELL_HEIGHT, size=12).to_dict(validate=False)
        small = {**config(self.look)["axis"], "labelFontSize": 12, "titleFontSize": 12, "labelPadding": 3}
        return {**spec, "config": {**config(self.look), "axis": small, "padding": 2, "background": None}}

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite spec of all strips, a row for each kind of requests."""
        rows = [
            together(
                [
                    _cell(strip, cell, self.styles, self.look, WIDTH, HEIGHT, size=15, legend=True)
                    .properties(title=alt.Title(cell.title, fontSize=15, fontWeight=500, color=self.look.muted, offset=8))
                    .to_dict(validate=False)
                    for cell in strip.cells
                ],
                "hconcat",
                spacing=26,
                title={"text": strip.title, "fontSize": 18, "fontWeight": 600, "offset": 10},
            )
            for strip in self.strips
        ]
        spec = together(rows, "vconcat", title={"text": in_lines(self.finding, 74), "subtitle": in_lines(self.caption, 150)})
        whole = config(self.look)
        legend = {"orient": "top", "labelFontSize": 16, "symbolSize": 120, "title": None, "columnPadding": 26, "offset": 16}
        return {**spec, "config": {**whole, "legend": {**whole["legend"], **legend}}}


def resource_chart(rows: Sequence[Row], layouts: Sequence[PlannedLayout], look: Look = LIGHT) -> ResourceChart:
    """The strips of a table."""
    return ResourceChart(
        finding=_finding(rows),
        caption=f"Of the hosts concerned, the most used, in % of its limit, by worker count. Filled: at {UTILIZED * 100:.0f} % or "
        "more, or out of CPU quota in half of its periods: it may have been the limit.",
        csv=resource_csv(rows),
        strips=strips(rows),
        styles=styles(layouts, look),
        look=look,
    )


def _finding(rows: Sequence[Row]) -> str:
    """What each layout ran out of most often, in how many of its steps: `Gateway CPU ran out on swift (3 of 4 steps)`."""
    said: dict[str, list[str]] = {}
    for layout in dict.fromkeys(row.layout for row in rows):
        # Operations of one step have the same resources.
        steps = {(row.workload, row.api, row.driver, row.workers): row for row in rows if row.layout == layout and row.resources}
        kinds = [_called(full[0]) for row in steps.values() if (full := saturated(row.resources))]
        if kinds:
            most = max(dict.fromkeys(kinds), key=kinds.count)
            unit = "" if said else " steps"
            said.setdefault(most, []).append(f"{layout} ({kinds.count(most)} of {len(steps)}{unit})")
        elif steps:
            said.setdefault("nothing", []).append(layout)
    idle = said.pop("nothing", [])
    parts = [f"{kind} ran out on {', '.join(layouts)}" for kind, layouts in said.items()]
    parts += [f"nothing ran out on {', '.join(idle)}"] * bool(idle)
    text = "; ".join(parts) or "what the hosts used was not recorded"
    return f"{text[:1].upper()}{text[1:]}"


def _called(resource: Resource) -> str:
    kind = {"CPU": "CPU", "disk": "disk speed", "network": "network", "memory": "memory"}[resource.what]
    return f"{'the driver’s' if resource.tier == 'client' else resource.tier} {kind}"


def _cell(
    strip: Strip,
    cell: ResourceCell,
    styled: Sequence[Style],
    look: Look,
    width: int | str,
    height: int,
    *,
    size: int,
    legend: bool = False,
) -> alt.LayerChart | alt.FacetChart:
    scale = alt.Scale(domain=[0, 105], nice=False, clamp=True)
    axis = alt.Axis(values=[0, 50, 100], domain=False, ticks=False, labelExpr="datum.value + ' %'")
    x = workers_axis(strip.workers, title=None)
    y = alt.Y("percent:Q", scale=scale, title=None, axis=axis)
    colour, shape = colour_of(styled, legend=legend), shape_of(styled, legend=legend)
    data = alt.InlineData(values=tuple(share.model_dump() for share in cell.shares))  # a tuple is not copied, value by value
    bound = (
        alt.Chart(alt.InlineData(values=[{"percent": UTILIZED * 100}]))
        .mark_rule(strokeDash=[3, 3], color=look.muted, opacity=0.7)
        .encode(y=y)
    )
    tooltip = [alt.Tooltip("layout:N"), alt.Tooltip("workers:Q"), alt.Tooltip("words:N", title="use")]
    base = alt.Chart(data)
    lines = base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, detail=["layout:N", "stretch:O"])
    hollow = (
        base.mark_point(size=size * 3, fill=look.background, strokeWidth=1.8, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip)
        .transform_filter("!datum.full")
    )
    filled = (
        base.mark_point(size=size * 5, filled=True, opacity=1)
        .encode(x=x, y=y, color=colour, shape=shape, tooltip=tooltip)
        .transform_filter("datum.full")
    )
    return alt.layer(bound, lines, hollow, filled).properties(width=width, height=height)
