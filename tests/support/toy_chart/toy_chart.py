"""A chart of another package: errors of each layout by workers; ARCHITECTURE.md explains it."""

from __future__ import annotations

from itertools import groupby

from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.charts.chart_source import ChartSource
from weighbridge.results.charts.gallery import ChartKind
from weighbridge.results.charts.panels import AxisScale, Figure, Label, Mark, Panel, Trace


def errors_by_workers(source: ChartSource) -> tuple[Figure, ...]:
    """A panel for each kind of requests, with a line per layout."""
    names, panels = subjects(source.rows), []
    for kind, group in groupby(source.rows, key=kind_of):
        rows = list(group)
        lines = []
        for layout in dict.fromkeys(row.layout for row in rows):
            mine = [
                (float(row.workers), float(row.count("errors") or 0))
                for row in rows
                if row.layout == layout
            ]
            xs, ys = zip(*mine, strict=True)
            lines.append(Trace(layout=layout, x=xs, y=ys))
        panel = Panel(
            key="-".join(kind),
            title=names[kind],
            x=AxisScale.workers([row.workers for row in rows]),
            y=AxisScale.from_zero(max(max(line.y) for line in lines), "errors"),
            marks=(Mark(kind="line", traces=tuple(lines)),),
            labels=tuple(Label(layout=line.layout, x=line.x[-1], y=line.y[-1]) for line in lines),
        )
        panels.append(panel)
    worst = max(source.rows, key=lambda row: row.count("errors") or 0)
    figure = Figure(
        name="errors-by-workers",
        title="Errors by workers",
        finding=f"{worst.layout} made the most errors: {worst.count('errors')} in one step",
        caption="Requests that failed in the window.",
        panels=tuple(panels),
    )
    return (figure,)


CHART = ChartKind(draw=errors_by_workers)
