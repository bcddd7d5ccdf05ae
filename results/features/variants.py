"""Workloads beside a sibling that differs in one thing: what ways to sign requests and to encrypt
objects cost, and what deletes change of complete listings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.results.figures.doubt import Doubt, few
from weighbridge.results.figures.metrics import MetricKey
from weighbridge.results.figures.statistics import Ratio, geometric_mean, ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, grouped, show_figure
from weighbridge.results.run.step import StepKey
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.suites import Factor, Suite, Workload, remaining
from weighbridge.suites.factors import FACTORS


def _verdict(rows: Sequence[Row], doubts: Sequence[Doubt]) -> str:
    """`ranked`, `provisional: machine busy`, `not ranked: not valid`."""
    reasons = list(dict.fromkeys(str(doubt.what) for doubt in doubts))
    if rows and all(row.ranked for row in rows):
        return f"provisional: {', '.join(reasons)}" if reasons else "ranked"
    reasons = reasons or list(dict.fromkeys(note for row in rows for note in row.notes))
    return f"not ranked: {', '.join(reasons)}" if reasons else "not ranked"


def _factor(measured: Ratio | None) -> str:
    """A factor with its interval; `~`: not significant. Of one repeat the interval is unknown."""
    if measured is None:
        return UNKNOWN
    if measured.low is None or measured.high is None:
        return f"{measured.value:.2f}×"
    unclear = "" if measured.shown else " ~"
    return f"{measured.value:.2f}×{unclear} ({measured.low:.2f} to {measured.high:.2f})"


# Factors: signing and encryption.


@dataclass(frozen=True)
class Way:
    """One way of a factor at one step of a layout, in the repeats that count."""

    workload: str
    label: str
    first: Way | None
    """What it is compared with; None: it is that one itself."""
    layout: str
    workers: int
    rows: tuple[Row, ...]
    ops_s: tuple[float, ...]
    client_us: tuple[float, ...]
    """CPU microseconds of the load generator for a successful operation."""
    gateway_us: tuple[float, ...]
    """CPU microseconds of all gateway hosts for it; empty if they were not sampled."""

    @property
    def ranked(self) -> bool:
        return bool(self.rows) and all(row.ranked for row in self.rows)

    @property
    def client(self) -> Ratio | None:
        """Its CPU of the client divided by that of the first way; None if unknown or not ranked."""
        return None if self.first is None else self._beside(self.client_us, self.first.client_us)

    @property
    def gateway(self) -> Ratio | None:
        """The CPU of gateway hosts divided by that of the first way."""
        return None if self.first is None else self._beside(self.gateway_us, self.first.gateway_us)

    @property
    def cells(self) -> tuple[str, ...]:
        # Of several operations no p90 is that of the workload.
        p90_ms = self.rows[0].value("p90") if len(self.rows) == 1 else None
        doubts = [doubt for row in self.rows for doubt in (*row.doubts, *few(row.repeats))]
        return (
            *(self.workload, str(self.workers), self.layout, self.label),
            *(_mean(self.client_us), "1" if self.first is None else _factor(self.client)),
            *(_mean(self.gateway_us), "1" if self.first is None else _factor(self.gateway)),
            *(_mean(self.ops_s), show_figure(p90_ms)),
            _verdict(self.rows, doubts),
        )

    def _beside(self, own: Sequence[float], of_first: Sequence[float]) -> Ratio | None:
        ranked = self.first is not None and self.first.ranked and self.ranked
        return ratio(own, of_first) if ranked and own and of_first else None


def _mean(values: Sequence[float]) -> str:
    return show_figure(geometric_mean(values)) if values else UNKNOWN


def variant_groups(suite: Suite, factor: Factor) -> tuple[tuple[Workload, ...], ...]:
    """The workloads that differ in nothing but name and a factor, in the suite's order."""
    usual = {"name": "", factor.key: factor.usual}
    groups = grouped(suite.workloads, lambda one: one.model_copy(update=usual).model_dump_json())
    return tuple(
        tuple(group)
        for group in groups.values()
        if len({str(getattr(workload, factor.key)) for workload in group}) > 1
    )


_Place = tuple[str, str, int, str]
"""Layout, driver, workers, and workload."""


def _place_of(one: StepKey | Row) -> _Place:
    return one.layout, one.driver, one.workers, one.workload


def ways_of(factor: Factor, data: RunData) -> tuple[Way, ...]:
    """Each way of a factor, layout by layout; empty where there is only one way."""
    suite = data.plan.suite
    keys = [key for key in data.steps if (key.api, key.layer, key.rate_per_s) == ("s3", None, None)]
    steps = grouped(keys, _place_of)
    rows = grouped((row for row in data.rows if row.api == "s3" and row.layer is None), _place_of)
    ways = []
    for group in variant_groups(suite, factor):
        names = [workload.name for workload in group]
        for layout, driver, workers in dict.fromkeys(at[:3] for at in steps if at[3] in names):
            first: Way | None = None
            for workload in group:
                at = (layout, driver, workers, workload.name)
                label = suite.factor_label(factor, workload)
                way = _way(data, at, label, first, steps.get(at, ()), rows.get(at, ()))
                first = first or way
                ways.append(way)
    return tuple(ways)


def _way(
    data: RunData,
    at: _Place,
    label: str,
    first: Way | None,
    steps: Sequence[StepKey],
    rows: Sequence[Row],
) -> Way:
    layout, _, workers, workload = at
    repeats = {point.repeat for row in rows for point in row.used if point.valid}
    ops_s, client_us, gateway_us = [], [], []
    for key in steps:
        measured, judged = data.steps[key].measurement, data.visits.get(key)
        if key.repeat not in repeats or measured is None or judged is None or not measured.done:
            continue
        ops_s.append(measured.done / measured.window_s)
        if measured.driver_cpu_us_per_op is not None:
            client_us.append(measured.driver_cpu_us_per_op)
        if judged.use is not None and judged.use.gateway_cpu_s:
            gateway_us.append(judged.use.gateway_cpu_s / measured.done * 1e6)
    return Way(
        workload=workload,
        label=label,
        first=first,
        layout=layout,
        workers=workers,
        rows=tuple(rows),
        ops_s=tuple(ops_s),
        client_us=tuple(client_us),
        gateway_us=tuple(gateway_us),
    )


_FACTOR_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "signing": (
        "in how S3 requests are signed and checked",
        "which hashes and signs every request",
    ),
    "encryption": (
        "in how stores are asked to encrypt S3 objects",
        "which sends the headers that ask for it",
    ),
}
"""In what workloads differ, and why that costs the load generator CPU."""


def factor_section(factor: str, ways: Sequence[Way]) -> Section:
    """What each way of a factor costs."""
    differs, client = _FACTOR_TEXTS[factor]
    head = (
        *("Workload", "Workers", "Layout", factor.capitalize()),
        *("Client CPU µs/op", "beside the first", "Gateway CPU µs/op", "beside the first"),
        *("op/s", "p90 ms", "Verdict"),
    )
    text = (
        f"Workloads that differ only {differs}, each beside the first of them. CPU "
        f"for a successful operation: of the load generator, {client}, and of all "
        "gateway hosts. Geometric means of the repeats that count; factors with their 95 % "
        "intervals, each for its own cell alone. ~: not significant."
    )
    lines = [way.cells for way in ways]
    grid = Grid(f"What each way costs: {factor}", head, lines, (1, *range(4, 10)))
    return Section(factor, f"What {factor} costs", (Part(text=text, grids=(grid,)),))


# Complete listings: pages per second, the time of a listing, and what deletes change.


@dataclass(frozen=True)
class CompleteListing:
    """Complete listings of one workload at one step of a layout."""

    row: Row
    pages_per_s: float | None
    """Of all workers; None if unknown."""
    names: int | None
    """That a listing has; None with a prefix or a delimiter."""
    deleted: float
    """Share of the objects that was deleted before."""
    before: CompleteListing | None
    """That of the same objects before anything was deleted; None: this is it, or there is none."""

    @property
    def beside(self) -> Ratio | None:
        """The median time for a name over that before deletes; None if unknown or not ranked."""
        if self.before is None or not (self.row.ranked and self.before.row.ranked):
            return None
        own, earlier = self.ms_by_name, self.before.ms_by_name
        return ratio(own, earlier) if own and earlier else None

    @property
    def ms_by_name(self) -> list[float]:
        """Repeat by repeat; none with lower bounds."""
        times = [point.figure("p50") for point in self.row.used]
        if not self.names or any(time.at_least or not time.value for time in times):
            return []
        return [(time.value or 0.0) / self.names for time in times]

    @property
    def cells(self) -> tuple[str, ...]:
        row = self.row
        return (
            *(row.workload, row.layout, str(row.workers)),
            UNKNOWN if self.names is None else f"{self.names:,}",
            *(f"{100 * self.deleted:.0f} %", show_figure(self.pages_per_s)),
            *(self._time("p50"), self._time("p90")),
            UNKNOWN if not self.names else self._time("p50", 1000 / self.names),
            _factor(self.beside),
            _verdict([row], [*row.doubts, *few(row.repeats)]),
        )

    def _time(self, metric: MetricKey, unit_ms: float = 1 / 1000) -> str:
        """A latency times `unit_ms`: in seconds by default."""
        figure = self.row.figure(metric)
        if figure.value is None:
            return UNKNOWN
        return f"{'≥ ' * figure.at_least}{show_figure(figure.value * unit_ms)}"


def complete_listings(suite: Suite, rows: Sequence[Row]) -> tuple[CompleteListing, ...]:
    """All steps with complete listings, those on the same objects one after the other."""
    workloads = {one.name: one for one in suite.workloads if "list-all" in one.operations}
    rows = [row for row in rows if row.workload in workloads and row.layer is None]
    pages = {
        _step_of(row, row.workload): row.value("throughput")
        for row in rows
        if row.operation == "list-page"
    }
    listings: dict[tuple[object, ...], CompleteListing] = {}
    for row in rows:
        if row.operation != "list-all":
            continue
        workload = workloads[row.workload]
        paging, listed = workload.listing, workload.listed
        partial = paging is not None and (paging.prefix or paging.delimiter)
        before = None
        if listed is not None and listed.of:
            before = listings.get(_step_of(row, listed.of))
        step = _step_of(row, row.workload)
        listings[step] = CompleteListing(
            row=row,
            pages_per_s=pages.get(step),
            names=None if partial else remaining(workload).objects.per_container,
            deleted=0.0 if listed is None else listed.shares[0],
            before=None if before is None or before.deleted else before,
        )
    return tuple(listings.values())


def _step_of(row: Row, workload: str) -> tuple[object, ...]:
    return workload, row.layout, row.api, row.driver, row.workers


_LISTING_HEAD: Final = (
    *("Workload", "Layout", "Workers", "Names", "Deleted before", "Pages/s"),
    *("Listing p50 s", "p90 s", "µs a name", "beside before deletes", "Verdict"),
)


def variant_sections(data: RunData) -> Iterator[Section]:
    """A section for each factor of which several ways were measured, and for complete listings."""
    for factor in FACTORS:
        if ways := ways_of(factor, data):
            yield factor_section(factor.key, ways)
    if listings := complete_listings(data.plan.suite, data.rows):
        lines = [listing.cells for listing in listings]
        text = (
            "Each worker lists from the first page to the last, again and again. Pages are "
            "counted over all workers. A store's pages may be shorter than requested, so times by "
            "name compare stores better. Where objects were deleted, the time by name is compared "
            "with that before the deletes. ~: not significant."
        )
        grid = Grid("Complete listings", _LISTING_HEAD, lines, range(2, 10))
        yield Section("listing", "Complete listings", (Part(text=text, grids=(grid,)),))


FEATURE: Final = Feature(sections=variant_sections)
