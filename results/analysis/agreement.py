"""How far two drivers agree about the same steps, and whether bins explain the difference.

A latency that the other driver reports as a bin agrees with the first's if that lies in the bin;
one bin off is reported as such.

Throughput has no bins: both drivers count whole operations. But in a closed loop without think time
workers = throughput x mean latency (Little's law), and the workers are the same, so the ratio of
the throughputs must be the inverse ratio of the mean latencies:

other's op/s : first's op/s = first's mean : other's mean

If the other truncates latencies to whole units (COSBench: 1 ms), its true mean lies between the
reported c and c + unit. If it also counts only requests that start inside its window, and the first
all that end there, it counts up to one fewer of the n requests per worker and repeat. With the
first's mean l, both over all operations of the step, the ratio lies between

l / (c + unit) x n / (n + 1) and l / c

A ratio inside that range, or within 5 % of it, agrees with the latencies: the requests themselves
took longer or shorter. A ratio outside means that a driver lost time between requests, or lost
requests. The law is not applied if requests failed: failures have no latency.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import (
    NEAR,
    Finding,
    comparable,
    kind_of,
    leads_by_driver,
    reason,
    subjects,
)
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import LITTLE_NOTED
from weighbridge.results.interval import Interval
from weighbridge.results.record.driver_traits import driver_label, traits_of
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio, ratio
from weighbridge.suites import DEFAULT_DRIVER, Api, DriverName, Operation


class Agreement(Record):
    """One operation of one step of one layout as measured by two drivers, over their repeats.

    `ratio` is the other's throughput relative to the first's; None: not comparable, and `verdict`
    says why.
    """

    first: DriverName
    other: DriverName
    layout: str
    api: Api
    workload: str
    operation: Operation
    workers: int
    about: str
    """The requests, in words."""
    first_ops_s: float | None
    other_ops_s: float | None
    ratio: Ratio | None = None
    foretold: tuple[float, float] | None = None
    """The range of that ratio predicted from the mean latencies; None if unknown."""
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
        """The same for the slowest requests."""
        return _off(self.first_max_ms, self.other_max)

    @property
    def explained(self) -> bool | None:
        """Whether the mean latencies explain the throughputs; None if unknown."""
        if self.ratio is None or self.foretold is None:
            return None
        low, high = self.foretold
        return low * (1 - LITTLE_NOTED) <= self.ratio.value <= high * (1 + LITTLE_NOTED)

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
        _agreement(one, by_other, _subject(names[kind_of(one)], first), pairs)
        for one, by_other in pairs
    )


def sentences(found: Sequence[Agreement], findings: Sequence[Finding]) -> tuple[str, ...]:
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
    apart = [one for one in known if not one.same_rate and one.explained is not None]
    if apart:
        because = sum(one.explained is True for one in apart)
        text += (
            f". Where throughputs differ the mean latencies explain it in {because} of {len(apart)}"
        )
    lacking = len(found) - len(known)
    text += f". {lacking} of {len(found)} steps could not be compared" if lacking else ""
    return (text, *_ranking(findings))


def _ranking(findings: Sequence[Finding]) -> tuple[str, ...]:
    kinds = [
        leads
        for leads in leads_by_driver(findings).values()
        if len(leads) > 1 and None not in leads
    ]
    if not kinds:
        return ()
    alike = sum(len({one.layout for one in leads if one is not None}) == 1 for leads in kinds)
    of = f"{alike} of {len(kinds)} kind{'s' * (len(kinds) > 1)} of requests"
    return (f"Both rank the layouts alike in {of}",)


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


def _agreement(
    first: Row, by_other: Row, about: str, pairs: Sequence[tuple[Row, Row]]
) -> Agreement:
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
        foretold=None
        if measure is None
        else _foretold([pair for pair in pairs if _step(pair[0]) == _step(first)]),
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


def _foretold(step: Sequence[tuple[Row, Row]]) -> tuple[float, float] | None:
    """The ratio of throughputs predicted from the mean latencies over all operations of a step."""
    means, counts = [], []
    for rows in zip(*step, strict=True):
        totals = [
            mean_ms * samples
            for row in rows
            if (mean_ms := row.value("mean")) is not None
            and (samples := row.count("samples"))
            and not row.count("errors")
        ]
        if len(totals) < len(rows):
            return None
        counts.append(sum(row.count("samples") or 0 for row in rows))
        means.append(math.fsum(totals) / counts[-1])
    (first_ms, other_ms), by_other = means, step[0][1]
    each = counts[1] / (by_other.workers * by_other.repeats)
    traits, of_first = (traits_of(row.driver) for row in reversed(step[0]))
    fewer = traits.uncounted_requests - of_first.uncounted_requests
    # If all requests took less than one unit, the reported mean is 0: the ratio has no upper bound.
    return (
        (
            first_ms / (other_ms + traits.rounding_us / 1000) * each / (each + fewer),
            first_ms / other_ms,
        )
        if other_ms
        else None
    )


def _off(value_ms: float | None, within: Interval | None) -> int | None:
    return None if value_ms is None or within is None else within.bins_off(value_ms)


def _place(row: Row) -> tuple[object, ...]:
    return row.layout, row.api, row.layer, row.workload, row.operation, row.workers


def _step(row: Row) -> tuple[object, ...]:
    return row.layout, row.api, row.layer, row.workload, row.workers


def _subject(name: str, driver: DriverName) -> str:
    """The kind of requests without its driver."""
    return name.replace(f" by {driver_label(driver)}", "")


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}"
