"""Complete listings: pages per second, the time of a listing, and what deletes change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt, few
from weighbridge.results.figures.metrics import MetricKey
from weighbridge.results.figures.statistics import Ratio, ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_figure
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.report import ratio_cell, ratio_times
from weighbridge.results.show.section import Grid, Part, Section
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


LISTING_HEAD: Final = (
    "Workload",
    "Layout",
    "Workers",
    "Names",
    "Deleted before",
    "Pages/s",
    "Listing p50 s",
    "p90 s",
    "µs a name",
    "beside before deletes",
    "Verdict",
)
LISTING_NUMBERS: Final = (2, 3, 4, 5, 6, 7, 8, 9)


def listing_lines(found: Sequence[CompleteListing]) -> tuple[tuple[str, ...], ...]:
    """The cells of each step."""
    return tuple(
        (
            one.row.workload,
            one.row.layout,
            str(one.row.workers),
            UNKNOWN if one.names is None else f"{one.names:,}",
            _share(one),
            show_figure(one.pages_per_s),
            _seconds(one, "p50"),
            _seconds(one, "p90"),
            _time_by_name(one),
            UNKNOWN if one.beside is None else ratio_cell(one.beside),
            _verdict(one),
        )
        for one in found
    )


def listing_sentences(found: Sequence[CompleteListing]) -> tuple[str, ...]:
    """What was found of each step with known figures, one sentence each."""
    return tuple(_sentence(one) for one in found if one.row.value("p50") is not None)


def _sentence(one: CompleteListing) -> str:
    row = one.row
    after = f" after {_share(one)} of the objects were deleted" if one.deleted else ""
    names = "" if one.names is None else f" of {one.names:,} names"
    p90 = "" if row.value("p90") is None else f" (p90 {_seconds(one, 'p90')} s)"
    text = (
        f"{row.layout}, {counted(row.workers, 'worker')}: a complete listing{names}{after} takes "
        f"{_seconds(one, 'p50')} s{p90}, {show_figure(one.pages_per_s)} pages/s"
    )
    if one.beside is not None:
        text += f"; a name takes {ratio_times(one.beside)} what it took before"
    # What each doubt is about stands in the table of results.
    whats = ", ".join(dict.fromkeys(doubt.what for doubt in _doubts(one)))
    if not row.ranked:
        return f"{text}. Not ranked: {whats or '; '.join(row.notes)}."
    return f"{text}. Provisional: {whats}." if whats else f"{text}."


def _doubts(one: CompleteListing) -> tuple[Doubt, ...]:
    short = few(one.row.repeats)
    return one.row.doubts if short is None else (*one.row.doubts, short)


def _share(one: CompleteListing) -> str:
    return f"{100 * one.deleted:.0f} %"


def _seconds(one: CompleteListing, metric: MetricKey) -> str:
    figure = one.row.figure(metric)
    if figure.value is None:
        return UNKNOWN
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value / 1000)}"


def _time_by_name(one: CompleteListing) -> str:
    figure = one.row.figure("p50")
    if figure.value is None or not one.names:
        return UNKNOWN
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value * 1000 / one.names)}"


def _verdict(one: CompleteListing) -> str:
    if not one.row.ranked:
        return "not ranked"
    return "provisional" if _doubts(one) else "ranked"


def listing_sections(data: RunData) -> Iterator[Section]:
    """Complete listings; none where nothing was listed from the first page to the last."""
    found = complete_listings(data.plan.suite, data.rows)
    lines = listing_lines(found)
    part = Part(
        text="Each worker lists from the first page to the last, again and again. Pages are "
        "counted over all workers. A store's pages may be shorter than requested, so times by name "
        "compare stores better. Where objects were deleted, the time by name is compared with that "
        "before the deletes.",
        sentences=listing_sentences(found),
        grids=(Grid("Complete listings", LISTING_HEAD, lines, LISTING_NUMBERS),),
    )
    if lines:
        yield Section("listing", "Complete listings", (part,))


FEATURE: Final = Feature(sections=listing_sections)
