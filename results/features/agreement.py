"""How far two drivers agree about the same steps, and whether bins explain the difference.

A latency that the other driver reports as a bin agrees with the first's if that lies in the bin;
one bin off is reported as such. Throughput has no bins: both drivers count whole operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.results.figures.metrics import MetricKey
from weighbridge.results.figures.reading import show_latency
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, Ratio, ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import comparable, reason
from weighbridge.results.judge.comparison import kind_of, subjects
from weighbridge.results.judge.leads import NEAR, Lead, leads
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, grouped, show_figure, show_ms
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.run.step import driver_label, traits_of
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.suites import DEFAULT_DRIVER


@dataclass(frozen=True)
class Agreement:
    """One operation of one step measured by two drivers."""

    about: str
    first: Row
    other: Row

    @property
    def names(self) -> tuple[str, str]:
        """Of the drivers."""
        return driver_label(self.first.driver), driver_label(self.other.driver)

    @cached_property
    def ratio(self) -> Ratio | None:
        """The other's throughput relative to the first's; None: not comparable."""
        if not (comparable(self.first) and comparable(self.other)):
            return None
        other, first = ([point.ops_s for point in row.used] for row in (self.other, self.first))
        return ratio(other, first)

    @property
    def same_rate(self) -> bool:
        """Whether throughputs are practically equal, or not significantly different."""
        if self.ratio is None:
            return False
        no_difference = self.ratio.repeats >= REPEATS_FOR_A_CLAIM and not self.ratio.shown
        return no_difference or 1 / (1 + NEAR) < self.ratio.value < 1 + NEAR

    def bins_off(self, metric: MetricKey) -> int | None:
        """How many bins the first's latency is off the other's; 0: inside, None: unknown."""
        value, within = self.first.value(metric), self.other.within(metric)
        return None if value is None or within is None else within.bins_off(value)

    @property
    def agrees(self) -> bool:
        """Whether throughput is equal and the first's p90 lies in the other's bin."""
        return self.same_rate and self.bins_off("p90") == 0

    @property
    def verdict(self) -> str:
        """Throughput first, then where the first's p90 lies; one phrase if both agree."""
        if self.ratio is None:
            reasons = [
                f"{driver_label(row.driver)}: {reason(row)}"
                for row in (self.first, self.other)
                if not comparable(row)
            ]
            return f"not comparable ({'; '.join(reasons)})"
        if self.agrees:
            return "agree within the bins"
        _, other = self.names
        percent = round(100 * (self.ratio.value - 1))
        rate = f"{other} {abs(percent)} % {'lower' if percent < 0 else 'higher'}"
        if self.same_rate:
            rate = "agree in op/s"
        p90_ms, other_ms = self.first.value("p90"), self.other.value("p90")
        off = self.bins_off("p90")
        if off == 0:
            return f"{rate}, p90 within the bin"
        if off is not None:
            bins = "one bin" if abs(off) == 1 else f"{abs(off)} bins"
            whose = f"{other}’s" if self.same_rate else "its"
            return f"{rate}, {whose} p90 {bins} {'lower' if off > 0 else 'higher'}"
        if p90_ms is not None and self.other.within("p90") is not None:
            return f"{rate}, p90 in {other}’s last bin, which has no upper edge"
        if p90_ms is not None and other_ms is not None:
            return f"{rate}, p90 {p90_ms:.3g} vs {other_ms:.3g} ms"
        return f"{rate}, p90 unknown"


def agreements(rows: Sequence[Row]) -> tuple[Agreement, ...]:
    """Every step planned for two drivers of gateways, in row order; empty with one driver."""
    drivers = {row.driver for row in rows if row.api in ("swift", "s3") and row.layer is None}
    if len(drivers) != 2:
        return ()
    first, other = sorted(drivers, key=lambda name: name != DEFAULT_DRIVER)
    names = subjects(rows)
    by_other = {_place(row): row for row in rows if row.driver == other}
    return tuple(
        Agreement(
            names[kind_of(row)].replace(f" by {driver_label(first)}", ""),
            row,
            by_other[_place(row)],
        )
        for row in rows
        if row.driver == first and _place(row) in by_other
    )


def _place(row: Row) -> tuple[object, ...]:
    return row.layout, row.api, row.layer, row.workload, row.operation, row.workers


def sentences(steps: Sequence[Agreement], answers: Sequence[Lead]) -> tuple[str, ...]:
    """How far the drivers agree over all steps, and whether they rank layouts alike; else empty."""
    if not steps:
        return ()
    first, other = steps[0].names
    compared = [step for step in steps if step.ratio is not None]
    if not compared:
        return (f"{first} and {other} cannot be compared in any step",)
    agreeing = sum(step.agrees for step in compared)
    text = f"{first} and {other} agree within the bins in {agreeing} of "
    text += counted(len(compared), "step")
    shares = sorted(round(100 * step.ratio.value) for step in compared if step.ratio is not None)
    least, most = shares[0], shares[-1]
    span = f"{least}" if least == most else f"{least} to {most}"
    text += f"; {other} serves {span} % of {first}’s op/s"
    bins_off = [off for step in compared if (off := step.bins_off("p90")) is not None]
    if bins_off:
        near = sum(abs(off) == 1 for off in bins_off)
        inside = f"{bins_off.count(0)} of {len(bins_off)}"
        text += f", and {first}’s p90 lies in {other}’s bin in {inside}"
        text += f", one bin off in {near}" if near else ""
    lacking = len(steps) - len(compared)
    text += f". {lacking} of {len(steps)} steps could not be compared" if lacking else ""
    return (text, *_ranking(answers))


def _ranking(answers: Sequence[Lead]) -> tuple[str, ...]:
    """Whether both drivers have the same leaders, in the workloads that both could compare."""
    both = [
        of_drivers
        for of_drivers in grouped(answers, lambda lead: lead.kind[:3]).values()
        if len(of_drivers) > 1 and all(lead.standing != "not comparable" for lead in of_drivers)
    ]
    if not both:
        return ()
    alike = sum(len({lead.leaders for lead in of_drivers}) == 1 for of_drivers in both)
    return (f"Both rank the layouts alike in {alike} of {counted(len(both), 'workload')}",)


def causes(steps: Sequence[Agreement], facts: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Known reasons why these drivers' figures differ that apply here; `facts` are by layout."""
    texts = []
    for driver in dict.fromkeys(row.driver for step in steps for row in (step.first, step.other)):
        for caveat in traits_of(driver).caveats:
            if caveat.api is not None and all(step.first.api != caveat.api for step in steps):
                continue
            measured = {step.first.layout for step in steps}
            layouts = [name for name in facts if name in measured and caveat.applies(facts[name])]
            if not caveat.fact:
                texts.append(caveat.text)
            elif layouts:
                texts.append(f"{', '.join(layouts)}: {caveat.text}")
    return tuple(texts)


_LATENCIES: Final[tuple[MetricKey, ...]] = ("p90", "max")
_CSV_COLUMNS: Final = """
layout api workload operation workers {first}_ops_s {other}_ops_s
{other}_over_{first} {other}_over_{first}_low {other}_over_{first}_high
{first}_p90_ms {other}_p90_low_ms {other}_p90_high_ms p90_bins_off
{first}_max_ms {other}_max_low_ms {other}_max_high_ms max_bins_off
{first}_mean_ms {other}_mean_ms verdict
"""


def agreement_csv(steps: Sequence[Agreement]) -> str:
    """All figures as CSV; bins are given by both ends, unknown values are empty."""
    first, other = steps[0].first.driver, steps[0].other.driver
    head = _CSV_COLUMNS.format(first=first, other=other).split()
    return csv_lines(head, map(_csv_cells, steps))


def _csv_cells(step: Agreement) -> tuple[object, ...]:
    first, other, factor = step.first, step.other, step.ratio
    cells: list[object] = [first.layout, first.api, first.workload, first.operation, first.workers]
    cells += [first.value("throughput"), other.value("throughput")]
    cells += [None] * 3 if factor is None else [factor.value, factor.low, factor.high]
    for metric in _LATENCIES:
        value, within = other.value(metric), other.within(metric)
        ends = (value, value) if within is None else (within.low_ms, within.high_ms)
        cells += [first.value(metric), *ends, step.bins_off(metric)]
    return (*cells, first.value("mean"), other.value("mean"), step.verdict)


def agreement_sections(data: RunData) -> Iterator[Section]:
    """How far two drivers agree about the same steps; none for a single driver."""
    steps = agreements(data.rows)
    if not steps:
        return
    facts: dict[str, dict[str, str]] = {}
    for sheet in data.manifest.sheets:
        if sheet.layout is not None:
            facts.setdefault(sheet.layout, {}).update(sheet.facts)
    first, other = steps[0].names
    binned = steps[0].other.within("p90") or steps[0].other.within("max")
    bins = ", which counts latencies in bins: (10, 20] is more than 10 and up to 20 ms"
    grid = Grid(
        f"Each step measured by both drivers: op/s and latencies of {first}, then of "
        f"{other}{bins if binned else ''}. Differences are {other} relative to {first}. Bins "
        "cannot explain a difference in throughput.",
        (
            *("Requests", "Workers", "Layout", f"{first}, op/s", f"{other}, op/s", "Difference"),
            *("p90 of both, ms", "Max of both, ms", "Means, difference in ms", "Verdict"),
        ),
        [_cells(step) for step in steps],
        (1, *range(3, 9)),
        [number for number, step in enumerate(steps) if step.ratio is None],
    )
    answers = () if data.tuning is not None else leads(data.comparison)
    texts = [f"{text}." for text in sentences(steps, answers)]
    parts = [Part(text=" ".join(texts), grids=(grid,))]
    if why := [f"{cause}." for cause in causes(steps, facts)]:
        parts.append(Part(text="Known causes of a difference that apply here:", sentences=why))
    title = f"How far {first} and {other} agree"
    yield Section("agreement", title, parts, texts, folded=True)


def _cells(step: Agreement) -> tuple[str, ...]:
    first, other = step.first, step.other
    both = [
        f"{show_ms(first.value(key))} · {show_latency(other.value(key), other.within(key))}"
        for key in _LATENCIES
    ]
    first_ms, other_ms = first.value("mean"), other.value("mean")
    apart = UNKNOWN
    if first_ms is not None and other_ms is not None:
        apart = f"{_sign(other_ms - first_ms, '+')}{show_figure(abs(other_ms - first_ms), 2)}"
    percent = None if step.ratio is None else round(100 * (step.ratio.value - 1))
    return (
        *(step.about, str(first.workers), first.layout),
        *(show_figure(row.value("throughput")) for row in (first, other)),
        UNKNOWN if percent is None else f"{_sign(percent, '±')}{abs(percent)} %",
        *(*both, apart, step.verdict),
    )


def _sign(value: float, zero: str) -> str:
    return "+" if value > 0 else "−" if value < 0 else zero


def _write(data: RunData) -> None:
    if steps := agreements(data.rows):
        write_atomically(data.store.derived / "agreement.csv", agreement_csv(steps))


FEATURE: Final = Feature(sections=agreement_sections, write=_write)
