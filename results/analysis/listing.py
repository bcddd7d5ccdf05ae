"""Complete listings: pages per second, the time of a listing, and what deletes change."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.statistics import Ratio, ratio
from weighbridge.suites import Suite, Workload, remaining

_Place = tuple[str, str, str, int]
"""Layout, API, driver and worker count."""


class CompleteListing(Record):
    """Complete listings of one workload at one step of a layout."""

    row: Row
    pages_per_s: float | None
    """Of all workers; None if unknown."""
    names: int | None
    """That a listing has; None with a prefix or a delimiter."""
    deleted: float
    """Share of the objects that was deleted before."""
    beside: Ratio | None = None
    """Median time of a listing, by name that it has, divided by that before the deletes; None if
    nothing was deleted, or one of them is unknown or not ranked.
    """

    @property
    def place(self) -> _Place:
        """The step without its workload."""
        return (self.row.layout, self.row.api, self.row.driver, self.row.workers)


def complete_listings(suite: Suite, rows: Sequence[Row]) -> tuple[CompleteListing, ...]:
    """All steps with complete listings, those on the same objects one after the other."""
    workloads = {one.name: one for one in suite.workloads if "list-all" in one.operations}
    mine = [row for row in rows if row.workload in workloads and row.layer is None]
    pages = {_key(row): row.value("throughput") for row in mine if row.operation == "list-page"}
    before: dict[tuple[str, _Place], CompleteListing] = {}
    found = []
    for row in mine:
        if row.operation != "list-all":
            continue
        workload = workloads[row.workload]
        listed = workload.listed
        one = CompleteListing(
            row=row,
            pages_per_s=pages.get(_key(row)),
            names=_names(workload),
            deleted=0.0 if listed is None else listed.shares[0],
        )
        first = before.get((listed.of, one.place)) if listed is not None and listed.of else None
        if first is not None and not first.deleted:
            one = one.model_copy(update={"beside": _beside(one, first)})
        before[row.workload, one.place] = one
        found.append(one)
    return tuple(found)


def _key(row: Row) -> tuple[str, str, str, str, int]:
    return (row.workload, row.layout, row.api, row.driver, row.workers)


def _names(workload: Workload) -> int | None:
    pages = workload.listing
    if pages is not None and (pages.prefix or pages.delimiter):
        return None
    return remaining(workload).objects.per_container


def _beside(one: CompleteListing, first: CompleteListing) -> Ratio | None:
    if not (one.row.ranked and first.row.ranked and one.names and first.names):
        return None
    mine, its = _by_name(one.row, one.names), _by_name(first.row, first.names)
    return ratio(mine, its) if mine and its else None


def _by_name(row: Row, names: int) -> list[float]:
    """Median milliseconds of a listing by name in it, repeat by repeat; none with lower bounds."""
    times = [point.figure("p50") for point in row.used]
    if any(time.at_least or not time.value for time in times):
        return []
    return [(time.value or 0.0) / names for time in times]
