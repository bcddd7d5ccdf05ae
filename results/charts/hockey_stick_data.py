"""What a hockey stick is drawn from: by kind of requests each layout's path, the bound, and what is served within it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.steps.service_level import Served, Stop, path, served, telling_bound_ms
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.latencies import KindLatencies


class Stick(Record):
    """One panel: the paths of all layouts for one kind of requests, and what each serves within the bound."""

    kind: Kind
    key: str
    about: str
    bound_ms: float | None
    asked: bool
    """Whether the bound was asked for; else it was chosen to tell layouts apart."""
    paths: dict[str, tuple[Stop, ...]]
    served: tuple[Served, ...]

    @property
    def bound(self) -> str:
        """The bound as a figure."""
        return "" if self.bound_ms is None else f"{self.bound_ms:g}"

    @property
    def ahead(self) -> tuple[Served, Served] | None:
        """The layouts that serve most and least within the bound, where two do."""
        known = sorted((one for one in self.served if one.ops_s), key=lambda one: one.ops_s or 0.0)
        return (known[-1], known[0]) if len(known) > 1 else None


def sticks(rows: Sequence[Row], kinds: Sequence[KindLatencies], slo_ms: float | None = None) -> tuple[Stick, ...]:
    """The panels of a table without twins; `kinds` name them."""
    names = {one.kind: one for one in kinds}
    found: dict[Kind, list[Row]] = {}
    for kind, cells in groupby(rows, key=kind_of):
        found.setdefault(kind, []).extend(cells)
    return tuple(_stick(kind, cells, names[kind], slo_ms) for kind, cells in found.items())


def _stick(kind: Kind, cells: Sequence[Row], named: KindLatencies, slo_ms: float | None) -> Stick:
    layouts = list(dict.fromkeys(row.layout for row in cells))
    own = {layout: [row for row in cells if row.layout == layout] for layout in layouts}
    paths = {layout: path(mine) for layout, mine in own.items()}
    bound_ms = slo_ms if slo_ms is not None else telling_bound_ms(list(paths.values()))
    return Stick(
        kind=kind,
        key=named.key,
        about=named.about,
        bound_ms=bound_ms,
        asked=slo_ms is not None,
        paths=paths,
        served=tuple(served(layout, mine, bound_ms) for layout, mine in own.items()) if bound_ms is not None else (),
    )


def sticks_csv(found: Sequence[Stick]) -> str:
    """A line for each worker count, and one for what each layout serves within the bound (`workers` empty)."""
    head = (
        "layout",
        "api",
        "driver",
        "workload",
        "operation",
        "workers",
        "throughput_ops_s",
        "throughput_low_ops_s",
        "throughput_high_ops_s",
        "p90_ms",
        "p90_low_ms",
        "p90_high_ms",
        "repeats",
        "counts",
        "bound_ms",
        "at_least",
    )
    lines: list[tuple[object, ...]] = []
    for stick in found:
        workload, operation, api, driver = stick.kind
        for layout, stops in stick.paths.items():
            about = (layout, api, driver, workload, operation)
            lines += [
                (
                    *about,
                    stop.workers,
                    stop.throughput_ops_s,
                    stop.low_ops_s,
                    stop.high_ops_s,
                    stop.p90_ms,
                    stop.low_ms,
                    stop.high_ms,
                    stop.repeats,
                    stop.joined,
                    None,
                    None,
                )
                for stop in stops
            ]
        lines += [
            (
                one.layout,
                api,
                driver,
                workload,
                operation,
                None,
                one.ops_s,
                one.low_ops_s,
                one.high_ops_s,
                None,
                None,
                None,
                None,
                one.ops_s is not None,
                stick.bound_ms,
                one.at_least,
            )
            for one in stick.served
        ]
    return csv_lines(head, lines)
