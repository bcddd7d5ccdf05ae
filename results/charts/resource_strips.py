from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import UTILIZED, Resource, What, saturated
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.panels import AxisScale, Figure, Mark, Panel, Spot, Trace
from weighbridge.results.figures import UNKNOWN, counted, upper
from weighbridge.results.record.telemetry import Tier

WIDTH: Final = 190
HEIGHT: Final = 110
_GATEWAYS: Final[tuple[Tier, ...]] = ("gateway", "shared")
_ALL: Final[tuple[Tier, ...]] = ("gateway", "shared", "storage")
KINDS: Final[tuple[tuple[str, str, What, tuple[Tier, ...]], ...]] = (
    ("gateway-cpu", "Gateway CPU", "CPU", _GATEWAYS),
    ("storage-cpu", "Storage CPU", "CPU", ("storage",)),
    ("disk", "Disks", "disk", _ALL),
    ("network", "Network", "network", _ALL),
    ("driver-cpu", "Driver CPU", "CPU", ("client",)),
)
"""The drawn resources with their tiers of hosts: a panel shows the most used host of these."""


class Strip(Record):
    """The resources of one kind of requests; `lines` is a table as text with a head."""

    key: str
    title: str
    panels: tuple[Panel, ...]
    lines: tuple[tuple[str, ...], ...]
    full: str
    """Alternative text: the resources that may have been the bottleneck."""

    @property
    def recorded(self) -> tuple[Panel, ...]:
        """Panels of the resources that were recorded."""
        return tuple(panel for panel in self.panels if any(mark.traces for mark in panel.marks))


def resources_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """The chart of resource use; none where nothing was recorded."""
    found = strips(source.rows)
    figure = Figure(
        name="resources-by-workers",
        section="resources",
        title="Resources by workers",
        finding=resource_finding(source.rows),
        caption="The most used host, in % of its limit, by worker count. "
        f"Filled: at {UTILIZED * 100:.0f} % or "
        "more, or throttled in half of its CPU quota periods: it may have been the bottleneck.",
        data=resource_csv(source.rows),
        panels=tuple(panel for strip in found for panel in strip.panels),
        layouts=source.layouts,
        legend=True,
    )
    return (figure,) if any(strip.recorded for strip in found) else ()


def strips(rows: Sequence[Row]) -> tuple[Strip, ...]:
    """A strip for each kind of requests, in the order and with the keys of throughput panels."""
    names = subjects(rows)
    return tuple(_strip(list(cells), names[kind]) for kind, cells in groupby(rows, key=kind_of))


def resource_csv(rows: Sequence[Row]) -> str:
    """All resources of all hosts, a line each, medians of the repeats. Shares are from 0 to 1."""
    head = (
        *("layout", "api", "workload", "operation", "workers"),
        *("host", "tier", "resource", "share", "limit", "throttled", "saturated"),
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
    key, title = "-".join(kind_of(rows[0])), upper(about)
    body = [
        (
            row.layout,
            str(row.workers),
            *(_percent_text(_top(row, what, tiers)) for _, _, what, tiers in KINDS),
            row.saturated or "not recorded",
            row.daemon_words or UNKNOWN,
        )
        for row in rows
    ]
    full = dict.fromkeys(
        f"{row.layout} at {row.workers} workers: {top.words}."
        for _, _, what, tiers in KINDS
        for row in rows
        if (top := _top(row, what, tiers)) is not None and top.saturated
    )
    titles = tuple(name for _, name, _, _ in KINDS)
    return Strip(
        key=key,
        title=title,
        panels=tuple(_panel(rows, key, title, *kind) for kind in KINDS),
        lines=(
            ("Layout", "Workers", *titles, "Bottleneck", "Daemon counters"),
            *body,
        ),
        full=" ".join(full) or "No resource was used to 80 % or more.",
    )


def _panel(
    rows: Sequence[Row],
    strip: str,
    row_title: str,
    key: str,
    title: str,
    what: What,
    tiers: Sequence[Tier],
) -> Panel:
    spots: dict[bool, list[Spot]] = {False: [], True: []}
    runs: list[tuple[str, list[tuple[int, float]]]] = []
    for layout in dict.fromkeys(row.layout for row in rows):
        runs.append((layout, []))
        for row in (row for row in rows if row.layout == layout):
            top = _top(row, what, tiers)
            if top is None:
                runs.append((layout, []))
                continue
            percent = min(top.share * 100, 105.0)
            runs[-1][1].append((row.workers, percent))
            tip = f"{layout}, {counted(row.workers, 'worker')}: {top.words}"
            spots[top.saturated].append(Spot(x=row.workers, y=percent, layout=layout, tip=tip))
    traces = [
        Trace(layout=layout, x=tuple(x for x, _ in run), y=tuple(y for _, y in run))
        for layout, run in runs
        if run
    ]
    marks = (
        Mark(kind="rule", spots=(Spot(y=UTILIZED * 100, tone="muted"),)),
        Mark(kind="thin line", traces=tuple(traces)),
        Mark(kind="small hollow", spots=tuple(spots[False])),
        Mark(kind="small point", spots=tuple(spots[True])),
    )
    return Panel(
        key=f"{strip}-{key}",
        title=title,
        row=row_title,
        x=AxisScale.workers(list(dict.fromkeys(row.workers for row in rows)), title=""),
        y=AxisScale(high=105.0, ticks=(0.0, 50.0, 100.0), expression="datum.value + ' %'"),
        marks=marks,
        head=("Layout", "Workers", title),
        lines=tuple(
            (row.layout, str(row.workers), _percent_text(_top(row, what, tiers))) for row in rows
        ),
        width=WIDTH,
        height=HEIGHT,
    )


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
