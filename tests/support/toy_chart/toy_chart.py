"""A chart of another package: errors of each layout by workers; ARCHITECTURE.md explains it."""

from __future__ import annotations

from typing import Any

from weighbridge.results.show.chart import COLOUR, Chart, End, Panel, layer
from weighbridge.results.show.chart_source import ChartKind, ChartSource
from weighbridge.results.show.scales import AxisScale


def errors_by_workers(source: ChartSource) -> tuple[Chart, ...]:
    """A panel for each kind of requests, with a line per layout."""
    panels = []
    for kind, cells in source.cells().items():
        rows: list[dict[str, Any]] = [
            {
                "layout": row.layout,
                "workers": row.workers,
                "errors": float(row.count("errors") or 0),
            }
            for row in cells
        ]
        y = AxisScale.from_zero(max(row["errors"] for row in rows), "errors")
        last = {row["layout"]: row for row in rows}
        workers = AxisScale.workers(sorted({row["workers"] for row in rows}))
        axes = {"x": {**workers.encoding(), "field": "workers"}, "y": y.encoding()}
        panels.append(
            Panel(
                key="-".join(kind),
                title=source.names[kind],
                rows=rows,
                spec={
                    "encoding": {**axes, "color": COLOUR},
                    "layer": [layer("line", "path", y="errors")],
                },
                ends=tuple(End(name, row["workers"], row["errors"]) for name, row in last.items()),
                y=y,
            )
        )
    worst = max(source.rows, key=lambda row: row.count("errors") or 0)
    chart = Chart(
        key="errors-by-workers",
        title="Errors by workers",
        finding=f"{worst.layout} made the most errors: {worst.count('errors')} in one step",
        caption="Requests that failed in the window.",
        panels=tuple(panels),
    )
    return (chart,)


CHART = ChartKind(draw=errors_by_workers)
