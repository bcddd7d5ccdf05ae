"""What the hosts used: for each workload a row per resource, layouts beside each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
    Spec,
    layer,
)
from weighbridge.results.show.chart_source import ChartSource, place_of
from weighbridge.results.show.scales import AxisScale, names_encoding
from weighbridge.results.show.section import Grid, Part, Section

DRAWN: Final[dict[str, tuple[What, tuple[Tier, ...]]]] = {
    "Gateway CPU": ("CPU", ("gateway", "shared")),
    "Storage CPU": ("CPU", ("storage",)),
    "Disks": ("disk", ("gateway", "shared", "storage")),
    "Network": ("network", ("gateway", "shared", "storage")),
    "Driver CPU": ("CPU", ("client",)),
}
"""The drawn resources with their tiers of hosts: of these the most used host."""
MAX_PERCENT: Final = 105.0


def resources_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """The chart of resource use; none where nothing was recorded."""
    panels = []
    for kind, cells in source.cells().items():
        rows = list(_rows(cells))
        if any(row["drawn_as"] for row in rows):
            panels.append(_panel(rows, cells, "-".join(kind), upper(source.names[kind])))
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


def _panel(rows: Sequence[dict[str, Any]], cells: Sequence[Row], key: str, title: str) -> Panel:
    layouts = list(dict.fromkeys(row["layout"] for row in rows))
    counts = sorted({row["workers"] for row in rows})
    names = [name for name in DRAWN if any(row["drawn_as"] == name for row in rows)]
    x = AxisScale(high=MAX_PERCENT, ticks=(0.0, 20.0, 40.0, 60.0, 80.0, 100.0))
    size = {
        "field": "workers",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [counts[0] / 2, counts[-1]], "range": [30, 300]},
        "legend": None,
    }
    beside = {"domain": layouts, "paddingOuter": 0.8}
    limit: Spec = {"x": {"datum": UTILIZED * 100}, "yOffset": {"value": 0}, "color": MUTED}
    line = layer("line", "faint", "datum.drawn_as", x="_percent", order="workers")
    line["encoding"]["detail"] = [
        {"field": name, "type": "nominal"} for name in ("layout", "drawn_as")
    ]
    layers = [layer("rule", "level", **limit, **FULL_HEIGHT), line]
    for style, sign in (("pale", "!"), ("sure", "")):
        where = f"datum.drawn_as && {sign}datum.saturated"
        layers.append(layer("point", style, where, x="_percent", size=size, shape=SHAPE))
    full = []
    for name in DRAWN:
        for row in cells:
            top = _top(row, name)
            if top is not None and top.saturated:
                full.append(f"{row.layout} at {row.workers} workers: {top.words}.")
    return Panel(
        key=key,
        title=title,
        rows=rows,
        spec={
            "encoding": {
                "x": x.encoding(grid=True, labelExpr="datum.value + ' %'"),
                "y": names_encoding(names, "drawn_as"),
                "yOffset": {"field": "layout", "type": "nominal", "scale": beside},
                "color": COLOUR,
            },
            "layer": layers,
        },
        listed=[row for row in rows if row["drawn_as"]],
        height=len(names) * (20 + 12 * len(layouts)),
        alt_text=" ".join(dict.fromkeys(full)) or "No resource was used to 80 % or more.",
    )


def _rows(cells: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """All resources of all hosts, medians of the repeats; `drawn_as` names those that are drawn."""
    for row in cells:
        tops = {name: _top(row, name) for name in DRAWN}
        for resource in row.resources:
            name = next((name for name, top in tops.items() if top is resource), None)
            yield {
                **place_of(row),
                "host": resource.host,
                "tier": resource.tier,
                "resource": resource.name,
                "share": resource.share,
                "limit": resource.limit,
                "throttled": resource.throttled,
                "saturated": resource.saturated,
                "drawn_as": name,
                "_percent": min(100 * resource.share, MAX_PERCENT) if name else None,
            }


def _top(row: Row, name: str) -> Resource | None:
    what, tiers = DRAWN[name]
    every = [one for one in row.resources if one.what == what and one.tier in tiers]
    return max(every, key=lambda one: one.share, default=None)


# ---- section and words


def limits_section(rows: Sequence[Row], messages: Sequence[str]) -> Section:
    """What each step ran out of; `messages` are those of the sampler."""
    titles = subjects(rows)
    steps, daemons = [], []
    recorded = False
    for row in rows:
        tops = [_top(row, name) for name in DRAWN]
        recorded = recorded or any(tops)
        shares = [
            UNKNOWN if top is None else f"{'● ' * top.saturated}{top.share * 100:.0f}"
            for top in tops
        ]
        about = (upper(titles[kind_of(row)]), str(row.workers), row.layout)
        steps.append((*about, row.saturated or "not recorded", *shares))
        daemons.append((*about, row.daemon_words or UNKNOWN))
    head = ("Workload", "Workers", "Layout")
    limits = Grid(
        "One line per step, over its repeats: the saturated resource by the USE method, and the "
        "most used host of each kind, in % of its limit; ● possible bottleneck",
        (*head, "Limited by", *DRAWN),
        steps,
        (1, *range(4, 4 + len(DRAWN))),
    )
    told = "What the daemons reported in the window; the telemetry files have the rest"
    reported = Grid(told, (*head, "Daemons"), daemons, (1,))
    text = (
        f"{resource_finding(rows)}. The usage of every host was sampled each second of the window. "
        "A resource at 80 % or more of its limit may have limited the step, and so may a CPU whose "
        "quota ran out in half of its periods or more; the most used resource is named first. "
        "Where there is none, look at locks, round trips, or the number of workers."
    )
    parts = [Part(text=text)]
    parts.append(Part("By step", grids=(limits,), folded=True))
    parts.append(Part("Resources by workers", chart="resources-by-workers", folded=True))
    parts.append(Part("What the daemons reported", grids=(reported,), folded=True))
    if not recorded:
        parts = [Part(text="Not recorded: this run has no telemetry of its hosts.")]
    parts.append(Part("Messages of the sampler", sentences=messages, folded=True))
    return Section("limits", "Bottlenecks", parts)


def resource_finding(rows: Sequence[Row]) -> str:
    """What each layout ran out of most: `Gateway CPU ran out on swift (3 of 4 steps)`."""
    by_resource: dict[str, list[str]] = {}
    idle = []
    for layout in dict.fromkeys(row.layout for row in rows):
        # The operations of a step have the same resources.
        steps = {
            (row.workload, row.api, row.driver, row.workers): row.resources
            for row in rows
            if row.layout == layout and row.resources
        }
        full = Counter(_name(first) for used in steps.values() for first in saturated(used)[:1])
        if full:
            ((name, count),) = full.most_common(1)
            unit = "" if by_resource else " steps"
            by_resource.setdefault(name, []).append(f"{layout} ({count} of {len(steps)}{unit})")
        elif steps:
            idle.append(layout)
    parts = [f"{name} ran out on {', '.join(layouts)}" for name, layouts in by_resource.items()]
    parts += [f"nothing ran out on {', '.join(idle)}"] * bool(idle)
    return upper("; ".join(parts) or "what the hosts used was not recorded")


def _name(resource: Resource) -> str:
    what = "disk speed" if resource.what == "disk" else resource.what
    return f"{'the driver’s' if resource.tier == 'client' else resource.tier} {what}"
