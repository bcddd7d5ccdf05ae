"""How far two drivers agree about the same steps, and whether bins explain the difference.

A latency that the other driver reports as a bin agrees with the first's if that lies in the bin;
one bin off is reported as such. Throughput has no bins: both drivers count whole operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.figures.reading import Interval, show_latency
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, Ratio, ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import kind_of, subjects
from weighbridge.results.judge.contrast import comparable, reason
from weighbridge.results.judge.leads import NEAR, Lead, leads
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.numbers import UNKNOWN, counted, show_figure, show_ms
from weighbridge.results.run.reading import write_atomically
from weighbridge.results.run.step import driver_label, traits_of
from weighbridge.results.show.feature import Feature
from weighbridge.results.show.section import Grid, Part, Section
from weighbridge.suites import DEFAULT_DRIVER, Api, DriverName, Operation


class Agreement(Record):
    """One operation of one step measured by two drivers. `ratio`: the other's throughput relative
    to the first's; None: not comparable, and `verdict` says why.
    """

    first: DriverName
    other: DriverName
    layout: str
    api: Api
    workload: str
    operation: Operation
    workers: int
    about: str
    first_ops_s: float | None
    other_ops_s: float | None
    ratio: Ratio | None = None
    first_p90_ms: float | None = None
    other_p90: Interval | None = None
    first_max_ms: float | None = None
    other_max: Interval | None = None
    other_p90_ms: float | None = None
    other_max_ms: float | None = None
    """If the other reports figures instead of bins."""
    first_mean_ms: float | None = None
    other_mean_ms: float | None = None
    verdict: str

    @property
    def same_rate(self) -> bool:
        """Whether throughputs are practically equal, or not significantly different."""
        if self.ratio is None:
            return False
        no_difference = self.ratio.repeats >= REPEATS_FOR_A_CLAIM and not self.ratio.shown
        return no_difference or 1 / (1 + NEAR) < self.ratio.value < 1 + NEAR

    @property
    def p90_off(self) -> int | None:
        """How many bins the first's p90 is off the other's; 0: inside, None: unknown."""
        return _off(self.first_p90_ms, self.other_p90)

    @property
    def max_off(self) -> int | None:
        return _off(self.first_max_ms, self.other_max)

    @property
    def agrees(self) -> bool:
        """Whether throughput is equal and the first's p90 lies in the other's bin."""
        return self.same_rate and self.p90_off == 0


def agreements(rows: Sequence[Row]) -> tuple[Agreement, ...]:
    """Every step planned for two drivers of gateways, in row order; empty with one driver."""
    names = subjects(rows)
    drivers = list(
        dict.fromkeys(
            row.driver for row in rows if row.api in ("swift", "s3") and row.layer is None
        )
    )
    if len(drivers) != 2:
        return ()
    first, other = sorted(drivers, key=lambda name: name != DEFAULT_DRIVER)
    others = {_place(row): row for row in rows if row.driver == other}
    pairs = [
        (row, others[_place(row)]) for row in rows if row.driver == first and _place(row) in others
    ]
    return tuple(
        _agreement(one, by_other, names[kind_of(one)].replace(f" by {driver_label(first)}", ""))
        for one, by_other in pairs
    )


def sentences(found: Sequence[Agreement], answers: Sequence[Lead]) -> tuple[str, ...]:
    """How far the drivers agree over all steps, and whether they rank layouts alike; else empty."""
    if not found:
        return ()
    known = [one for one in found if one.ratio is not None]
    first, other = (driver_label(name) for name in (found[0].first, found[0].other))
    if not known:
        return (f"{first} and {other} cannot be compared in any step",)
    ratios = sorted(one.ratio.value for one in known if one.ratio is not None)
    agreeing = sum(one.agrees for one in known)
    steps = f"{agreeing} of {len(known)} step{'s' * (len(known) > 1)}"
    text = f"{first} and {other} agree within the bins in {steps}"
    text += f"; {other} serves {_span([round(100 * one) for one in ratios])} % of {first}’s op/s"
    bins_off = [one.p90_off for one in known if one.p90_off is not None]
    if bins_off:
        near = sum(abs(off) == 1 for off in bins_off)
        text += (
            f", and {first}’s p90 lies in {other}’s bin in {bins_off.count(0)} of {len(bins_off)}"
        )
        text += f", one bin off in {near}" if near else ""
    lacking = len(found) - len(known)
    text += f". {lacking} of {len(found)} steps could not be compared" if lacking else ""
    return (text, *_ranking(answers))


def _ranking(answers: Sequence[Lead]) -> tuple[str, ...]:
    """Whether both drivers have the same leaders, in the workloads that both could compare."""
    kinds: dict[tuple[object, ...], list[Lead]] = {}
    for lead in answers:
        kinds.setdefault(lead.kind[:3], []).append(lead)
    both = [
        leads
        for leads in kinds.values()
        if len(leads) > 1 and all(lead.standing != "not comparable" for lead in leads)
    ]
    if not both:
        return ()
    alike = sum(len({lead.leaders for lead in leads}) == 1 for leads in both)
    return (f"Both rank the layouts alike in {alike} of {counted(len(both), 'workload')}",)


def causes(found: Sequence[Agreement], facts: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Known reasons why these drivers' figures differ that apply here; `facts` are by layout."""
    drivers = dict.fromkeys(name for pair in found for name in (pair.first, pair.other))
    texts = []
    for one in (one for name in drivers for one in traits_of(name).caveats):
        if one.api is not None and all(step.api != one.api for step in found):
            continue
        layouts = [
            name
            for name, known in facts.items()
            if one.applies(known) and any(step.layout == name for step in found)
        ]
        if not one.fact or layouts:
            texts.append(f"{', '.join(layouts)}: {one.text}" if one.fact else one.text)
    return tuple(texts)


def _agreement(first: Row, by_other: Row, about: str) -> Agreement:
    reasons = [
        f"{driver_label(row.driver)}: {reason(row)}"
        for row in (first, by_other)
        if not comparable(row)
    ]
    measure = None
    if not reasons:
        measure = ratio(
            [point.ops_s for point in by_other.used], [point.ops_s for point in first.used]
        )
    made = Agreement(
        first=first.driver,
        other=by_other.driver,
        layout=first.layout,
        api=first.api,
        workload=first.workload,
        operation=first.operation,
        workers=first.workers,
        about=about,
        first_ops_s=first.value("throughput"),
        other_ops_s=by_other.value("throughput"),
        ratio=measure,
        first_p90_ms=first.value("p90"),
        other_p90=by_other.within("p90"),
        other_p90_ms=by_other.value("p90"),
        other_max_ms=by_other.value("max"),
        first_max_ms=first.value("max"),
        other_max=by_other.within("max"),
        first_mean_ms=first.value("mean"),
        other_mean_ms=by_other.value("mean"),
        verdict=f"not comparable ({'; '.join(reasons)})",
    )
    return made if measure is None else made.model_copy(update={"verdict": _verdict(made)})


def _verdict(one: Agreement) -> str:
    """Throughput first, then where the first's p90 lies; one phrase if both agree."""
    other = driver_label(one.other)
    if one.agrees:
        return "agree within the bins"
    percent = 0 if one.ratio is None else round(100 * (one.ratio.value - 1))
    rate = (
        "agree in op/s"
        if one.same_rate
        else f"{other} {abs(percent)} % {'lower' if percent < 0 else 'higher'}"
    )
    off = one.p90_off
    if one.other_p90 is None and one.first_p90_ms is not None and one.other_p90_ms is not None:
        return f"{rate}, p90 {one.first_p90_ms:.3g} vs {one.other_p90_ms:.3g} ms"
    if one.first_p90_ms is None or one.other_p90 is None:
        return f"{rate}, p90 unknown"
    if off is None:
        return f"{rate}, p90 in {other}’s last bin, which has no upper edge"
    if off == 0:
        return f"{rate}, p90 within the bin"
    whose = f"{other}’s" if one.same_rate else "its"
    return (
        f"{rate}, {whose} p90 {'one bin' if abs(off) == 1 else f'{abs(off)} bins'} "
        f"{'lower' if off > 0 else 'higher'}"
    )


def _off(value_ms: float | None, within: Interval | None) -> int | None:
    return None if value_ms is None or within is None else within.bins_off(value_ms)


def _place(row: Row) -> tuple[object, ...]:
    return row.layout, row.api, row.layer, row.workload, row.operation, row.workers


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


_CSV_COLUMNS: Final = """
layout api workload operation workers {first}_ops_s {other}_ops_s
{other}_over_{first} {other}_over_{first}_low {other}_over_{first}_high
{first}_p90_ms {other}_p90_low_ms {other}_p90_high_ms p90_bins_off
{first}_max_ms {other}_max_low_ms {other}_max_high_ms max_bins_off
{first}_mean_ms {other}_mean_ms verdict
"""


def csv_head(first: DriverName, other: DriverName) -> tuple[str, ...]:
    """Columns of `derived/agreement.csv` for these two drivers, in order."""
    return tuple(_CSV_COLUMNS.format(first=first, other=other).split())


def agreement_sections(data: RunData) -> Iterator[Section]:
    """How far two drivers agree about the same steps; none for a single driver."""
    found = agreements(data.rows)
    if not found:
        return
    facts: dict[str, dict[str, str]] = {}
    for sheet in data.manifest.sheets:
        if sheet.layout is not None:
            facts.setdefault(sheet.layout, {}).update(sheet.facts)
    first, other = driver_label(found[0].first), driver_label(found[0].other)
    said = sentences(found, () if data.tuning is not None else leads(data.comparison))
    grid = Grid(
        _caption(found[0], first, other),
        _head(first, other),
        [_cells(step) for step in found],
        (1, *range(3, 9)),
        [number for number, step in enumerate(found) if step.ratio is None],
    )
    why = causes(found, facts)
    parts = [Part(text=" ".join(f"{text}." for text in said), grids=(grid,))]
    if why:
        text = "Known causes of a difference that apply here:"
        parts.append(Part(text=text, sentences=[f"{cause}." for cause in why]))
    yield Section(
        "agreement",
        f"How far {first} and {other} agree",
        parts,
        [f"{text}." for text in said],
        folded=True,
    )


def agreement_csv(found: Sequence[Agreement]) -> str:
    """The same figures as CSV; bins are given by both ends, unknown values are empty."""
    return csv_lines(csv_head(found[0].first, found[0].other), [_csv_cells(one) for one in found])


def _head(first: str, other: str) -> tuple[str, ...]:
    return (
        *("Requests", "Workers", "Layout", f"{first}, op/s", f"{other}, op/s", "Difference"),
        *("p90 of both, ms", "Max of both, ms", "Means, difference in ms", "Verdict"),
    )


def _caption(one: Agreement, first: str, other: str) -> str:
    bins = (
        ", which counts latencies in bins: (10, 20] is more than 10 and up to 20 ms"
        if one.other_p90 or one.other_max
        else ""
    )
    return (
        f"Each step measured by both drivers: op/s and latencies of {first}, then of "
        f"{other}{bins}. Differences are {other} relative to {first}. Bins cannot explain a "
        "difference in throughput."
    )


def _cells(one: Agreement) -> tuple[str, ...]:
    return (
        one.about,
        str(one.workers),
        one.layout,
        show_figure(one.first_ops_s),
        show_figure(one.other_ops_s),
        UNKNOWN if one.ratio is None else _percent(one.ratio.value),
        f"{show_ms(one.first_p90_ms)} · {show_latency(one.other_p90_ms, one.other_p90)}",
        f"{show_ms(one.first_max_ms)} · {show_latency(one.other_max_ms, one.other_max)}",
        _difference(one.first_mean_ms, one.other_mean_ms),
        one.verdict,
    )


def _percent(ratio: float) -> str:
    """How far a ratio is from 1, with its sign."""
    percent = round(100 * (ratio - 1))
    return f"{'+' if percent > 0 else '−' if percent < 0 else '±'}{abs(percent)} %"


def _difference(first_ms: float | None, other_ms: float | None) -> str:
    if first_ms is None or other_ms is None:
        return UNKNOWN
    apart_ms = other_ms - first_ms
    return f"{'+' if apart_ms >= 0 else '−'}{show_figure(abs(apart_ms), 2)}"


def _csv_cells(one: Agreement) -> tuple[object, ...]:
    ratio = one.ratio
    both = ((one.other_p90_ms, one.other_p90), (one.other_max_ms, one.other_max))
    p90, longest = ((value, value) if at is None else (at.low_ms, at.high_ms) for value, at in both)
    return (
        *(one.layout, one.api, one.workload, one.operation, one.workers),
        *(one.first_ops_s, one.other_ops_s),
        *((None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)),
        *(one.first_p90_ms, *p90, one.p90_off),
        *(one.first_max_ms, *longest, one.max_off),
        *(one.first_mean_ms, one.other_mean_ms, one.verdict),
    )


def _write(data: RunData) -> None:
    found = agreements(data.rows)
    if found:
        write_atomically(data.store.derived / "agreement.csv", agreement_csv(found))


FEATURE: Final = Feature(sections=agreement_sections, write=_write)
