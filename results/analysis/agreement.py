"""How far two drivers agree about the same steps, and whether bins explain the difference.

A latency that the other driver reports as a bin agrees with the first's if that lies in the bin;
one bin off is reported as such. Throughput has no bins: both drivers count whole operations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weighbridge.common.record import Record
from weighbridge.results.analysis.contrast import comparable, reason
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.leads import NEAR, Lead
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.figures import counted
from weighbridge.results.interval import Interval
from weighbridge.results.record.driver_traits import driver_label, traits_of
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio, ratio
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
