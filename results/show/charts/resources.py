"""What the hosts used: for each kind of requests a row per resource, layouts beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import UTILIZED, Resource, What, saturated
from weighbridge.results.judge.comparison import kind_of, subjects
from weighbridge.results.numbers import UNKNOWN, upper
from weighbridge.results.run.telemetry import Tier
from weighbridge.results.show.chart import (
    COLOUR,
    FULL_HEIGHT,
    MUTED,
    SHAPE,
    Chart,
    Panel,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource, place_of
from weighbridge.results.show.scales import AxisScale, names_encoding

_GATEWAYS: Final[tuple[Tier, ...]] = ("gateway", "shared")
_ALL: Final[tuple[Tier, ...]] = ("gateway", "shared", "storage")
KINDS: Final[tuple[tuple[str, What, tuple[Tier, ...]], ...]] = (
    ("Gateway CPU", "CPU", _GATEWAYS),
    ("Storage CPU", "CPU", ("storage",)),
    ("Disks", "disk", _ALL),
    ("Network", "network", _ALL),
    ("Driver CPU", "CPU", ("client",)),
)
"""The drawn resources with their tiers of hosts: of these the most used host."""
MAX_PERCENT: Final = 105.0


@dataclass(frozen=True)
class ResourceTable:
    """The resources of one kind of requests; `lines` is a table as text with a head."""

    key: str
    title: str
    lines: tuple[tuple[str, ...], ...]
    recorded: bool
    full: str
    """In words, the resources that may have been the bottleneck."""


def resources_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of resource use; none where nothing was recorded."""
    panels = []
    for kind, cells in source.cells().items():
        rows = list(_rows(cells))
        if any(row["drawn_as"] for row in rows):
            panels.append(_panel(rows, "-".join(kind), upper(source.names[kind])))
    if not panels:
        return ()
    chart = Chart(
        key="resources-by-workers",
        section="resources",
        title="Resources by workers",
        finding=resource_finding(source.rows),
        caption="The most used host, in % of its limit; the larger the mark, the more workers. "
        f"Full colour: at {UTILIZED * 100:.0f} % or more, or throttled in half of its CPU quota "
        "periods: it may have been the bottleneck.",
        panels=tuple(panels),
        layouts=source.layouts,
        legend=True,
    )
    return (chart,)


def _panel(rows: Sequence[dict[str, Any]], key: str, title: str) -> Panel:
    layouts = list(dict.fromkeys(row["layout"] for row in rows))
    x = AxisScale(high=MAX_PERCENT, ticks=(0.0, 20.0, 40.0, 60.0, 80.0, 100.0))
    counts = sorted({row["workers"] for row in rows})
    names = [name for name, _, _ in KINDS if any(row["drawn_as"] == name for row in rows)]
    size = {
        "field": "workers",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [counts[0] / 2, counts[-1]], "range": [30, 300]},
        "legend": None,
    }
    limit = layer("rule", "level", x={"datum": UTILIZED * 100}, color=MUTED)
    limit["encoding"] |= {**FULL_HEIGHT, "yOffset": {"value": 0}}
    line = layer("line", "faint", "datum.drawn_as", x="_percent")
    line["encoding"] |= {"order": {"field": "workers", "type": "quantitative"}, "detail": "layout"}
    line["encoding"]["detail"] = [{"field": name, "type": "nominal"} for name in _GROUP]
    marks = []
    for style, sign in (("pale", "!"), ("sure", "")):
        point = layer("point", style, f"datum.drawn_as && {sign}datum.saturated", x="_percent")
        point["encoding"] |= {"size": size, "shape": SHAPE}
        point["mark"]["filled"] = True
        marks.append(point)
    expression = "datum.value + ' %'"
    return Panel(
        key=key,
        title=title,
        rows=rows,
        spec={
            "encoding": {
                "x": x.encoding(grid=True, labelExpr=expression),
                "y": {**names_encoding(names), "field": "drawn_as"},
                "yOffset": {
                    "field": "layout",
                    "type": "nominal",
                    "scale": {"domain": layouts, "paddingOuter": 0.8},
                },
                "color": COLOUR,
            },
            "layer": [limit, line, *marks],
        },
        height=len(names) * (20 + 12 * len(layouts)),
    )


_GROUP: Final = ("layout", "drawn_as")


def _rows(cells: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """All resources of all hosts, medians of the repeats; `drawn_as` names those that are drawn."""
    for row in cells:
        tops = {name: _top(row, what, tiers) for name, what, tiers in KINDS}
        for one in row.resources:
            name = next((name for name, top in tops.items() if top is one), None)
            yield {
                **place_of(row),
                "host": one.host,
                "tier": one.tier,
                "resource": one.name,
                "share": one.share,
                "limit": one.limit,
                "throttled": one.throttled,
                "saturated": one.saturated,
                "drawn_as": name,
                "_percent": min(100 * one.share, MAX_PERCENT) if name else None,
            }


def resource_tables(rows: Sequence[Row]) -> tuple[ResourceTable, ...]:
    """A table for each kind of requests, in the order of the table of results."""
    names = subjects(rows)
    tables = []
    for kind, group in groupby(rows, key=kind_of):
        cells = list(group)
        lines = [
            (
                row.layout,
                str(row.workers),
                *(_percent_text(_top(row, what, tiers)) for _, what, tiers in KINDS),
                row.saturated or "not recorded",
                row.daemon_words or UNKNOWN,
            )
            for row in cells
        ]
        head = ("Layout", "Workers", *(name for name, _, _ in KINDS), "Bottleneck", "Daemons")
        tables.append(
            ResourceTable(
                key="-".join(kind),
                title=upper(names[kind]),
                lines=(head, *lines),
                full=_full(cells),
                recorded=any(_top(row, what, of) for row in cells for _, what, of in KINDS),
            )
        )
    return tuple(tables)


def _full(rows: Sequence[Row]) -> str:
    full = dict.fromkeys(
        f"{row.layout} at {row.workers} workers: {top.words}."
        for _, what, tiers in KINDS
        for row in rows
        if (top := _top(row, what, tiers)) is not None and top.saturated
    )
    return " ".join(full) or "No resource was used to 80 % or more."


def _top(row: Row, what: What, tiers: Sequence[Tier]) -> Resource | None:
    mine = [one for one in row.resources if one.what == what and one.tier in tiers]
    return max(mine, key=lambda one: one.share, default=None)


def _percent_text(one: Resource | None) -> str:
    return UNKNOWN if one is None else f"{'● ' if one.saturated else ''}{one.share * 100:.0f}"


def resource_finding(rows: Sequence[Row]) -> str:
    """What each layout ran out of most: `Gateway CPU ran out on swift (3 of 4 steps)`."""
    by_kind: dict[str, list[str]] = {}
    for layout in dict.fromkeys(row.layout for row in rows):
        # The operations of a step have the same resources.
        steps = {
            (row.workload, row.api, row.driver, row.workers): row
            for row in rows
            if row.layout == layout and row.resources
        }
        kinds = [
            _resource_name(full[0]) for row in steps.values() if (full := saturated(row.resources))
        ]
        if kinds:
            most = max(dict.fromkeys(kinds), key=kinds.count)
            unit = "" if by_kind else " steps"
            by_kind.setdefault(most, []).append(
                f"{layout} ({kinds.count(most)} of {len(steps)}{unit})"
            )
        elif steps:
            by_kind.setdefault("nothing", []).append(layout)
    idle = by_kind.pop("nothing", [])
    parts = [f"{kind} ran out on {', '.join(layouts)}" for kind, layouts in by_kind.items()]
    parts += [f"nothing ran out on {', '.join(idle)}"] * bool(idle)
    text = "; ".join(parts) or "what the hosts used was not recorded"
    return upper(text)


def _resource_name(resource: Resource) -> str:
    kind = {"CPU": "CPU", "disk": "disk speed", "network": "network", "memory": "memory"}[
        resource.what
    ]
    return f"{'the driver’s' if resource.tier == 'client' else resource.tier} {kind}"
