"""What the strips of resources below the charts are drawn from: for each kind of requests and resource a line a layout."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.chart_data import csv_lines
from weighbridge.results.figures import UNKNOWN
from weighbridge.results.findings import kind_of, subjects
from weighbridge.results.summary import Row
from weighbridge.results.telemetry import Tier
from weighbridge.results.use import Resource, What


class Share(Record):
    """The most used resource of one kind of one layout at one worker count. `stretch` numbers the runs of known neighbours."""

    layout: str
    workers: int
    percent: float
    full: bool
    """Whether it may have been the limit."""
    words: str
    stretch: int


class Cell(Record):
    """One resource of a strip."""

    key: str
    title: str
    shares: tuple[Share, ...]


class Strip(Record):
    """The resources of one kind of requests. `lines` are a head and a line a layout and worker count, in words."""

    key: str
    title: str
    workers: tuple[int, ...]
    cells: tuple[Cell, ...]
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
        cells=tuple(Cell(key=key, title=title, shares=_shares(rows, what, tiers)) for key, title, what, tiers in KINDS),
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
