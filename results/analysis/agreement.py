"""How far two drivers agree about the same steps: COSBench's figures beside Locust's, and whether bins allow the difference.

A latency that COSBench told in bins agrees with Locust's when that lies in the bin; one bin beside it is said to be that.

Of throughput the bins allow nothing: both drivers count whole operations. But in a closed loop without time between requests
workers = throughput x mean latency (Little's law), and the workers are the same, so the ratio of the two throughputs must be
the inverse ratio of the two mean latencies:

    COSBench op/s : Locust op/s = Locust's mean : COSBench's mean

COSBench cuts every latency to whole milliseconds, so its true mean lies between what it tells, c, and c + 1 ms. It also counts
only what begins and ends inside its window, Locust what ends there: of n requests a worker and repeat it counts up to one fewer.
With Locust's mean l, both over all operations of the step, the ratio lies between

    l / (c + 1 ms) x n / (n + 1)    and    l / c

A ratio inside that, or within 5 % of it, is what the latencies say: the requests themselves took longer or shorter. One outside
is of time that a driver lost between requests, or of requests that it lost. The law is not asked where requests failed: failures
have no latency.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import DRIVERS, NEAR, Finding, comparable, kind_of, leads_by_driver, reason, subjects
from weighbridge.results.analysis.steps.interval import Interval
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import CUT_US, LITTLE_NOTED
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio, ratio
from weighbridge.suites import Api, Operation

CUT_MS: Final = CUT_US["cosbench"] / 1000


class Agreement(Record):
    """One operation of one step of one layout, by Locust and by COSBench, over the repeats of each.

    `ratio` is how many times COSBench's throughput is Locust's; None: the two cannot be compared, and `verdict` says why.
    """

    layout: str
    api: Api
    workload: str
    operation: Operation
    workers: int
    about: str
    """Which requests, in words."""
    locust_ops_s: float | None
    cosbench_ops_s: float | None
    ratio: Ratio | None = None
    foretold: tuple[float, float] | None = None
    """What the mean latencies of both make of that ratio, from and to; None where they cannot."""
    locust_p90_ms: float | None = None
    cosbench_p90: Interval | None = None
    locust_max_ms: float | None = None
    cosbench_max: Interval | None = None
    locust_mean_ms: float | None = None
    cosbench_mean_ms: float | None = None
    verdict: str

    @property
    def same_rate(self) -> bool:
        """Whether the throughputs are the same for all practical purposes, or enough repeats show no difference."""
        if self.ratio is None:
            return False
        unshown = self.ratio.repeats >= REPEATS_FOR_A_CLAIM and not self.ratio.shown
        return unshown or 1 / (1 + NEAR) < self.ratio.value < 1 + NEAR

    @property
    def p90_off(self) -> int | None:
        """How many bins Locust's p90 lies beside COSBench's; 0: in it. None where either is unknown."""
        return _off(self.locust_p90_ms, self.cosbench_p90)

    @property
    def max_off(self) -> int | None:
        """The same of the slowest requests."""
        return _off(self.locust_max_ms, self.cosbench_max)

    @property
    def explained(self) -> bool | None:
        """Whether the mean latencies account for the throughputs; None where they cannot tell."""
        if self.ratio is None or self.foretold is None:
            return None
        low, high = self.foretold
        return low * (1 - LITTLE_NOTED) <= self.ratio.value <= high * (1 + LITTLE_NOTED)

    @property
    def agrees(self) -> bool:
        """Whether throughput is the same and Locust's p90 lies in COSBench's bin."""
        return self.same_rate and self.p90_off == 0


def agreements(rows: Sequence[Row]) -> tuple[Agreement, ...]:
    """Every step that was planned for both drivers, in the order of the rows; empty where one driver made all the load."""
    names = subjects(rows)
    others = {_place(row): row for row in rows if row.driver == "cosbench"}
    pairs = [(row, others[_place(row)]) for row in rows if row.driver == "locust" and _place(row) in others]
    return tuple(_agreement(one, other, _subject(names[kind_of(one)]), pairs) for one, other in pairs)


def sentences(found: Sequence[Agreement], findings: Sequence[Finding]) -> tuple[str, ...]:
    """How far the drivers agree, over all steps, and whether they rank the layouts alike; nothing where there was one driver."""
    if not found:
        return ()
    known = [one for one in found if one.ratio is not None]
    if not known:
        return ("Locust and COSBench cannot be compared at any step",)
    ratios = sorted(one.ratio.value for one in known if one.ratio is not None)
    whole = sum(one.agrees for one in known)
    text = f"Locust and COSBench agree within the bins at {_share(whole, len(known))}"
    text += f"; COSBench serves {_span([round(100 * one) for one in ratios])} % of Locust’s op/s"
    told = [one.p90_off for one in known if one.p90_off is not None]
    if told:
        near = sum(abs(off) == 1 for off in told)
        text += f", and Locust’s p90 lies in COSBench’s bin at {told.count(0)} of {len(told)}"
        text += f", one bin off at {near}" if near else ""
    apart = [one for one in known if not one.same_rate and one.explained is not None]
    if apart:
        because = sum(one.explained is True for one in apart)
        text += f". Where throughputs differ the mean latencies account for it at {because} of {len(apart)}"
    lacking = len(found) - len(known)
    text += f". {lacking} of {len(found)} steps could not be compared" if lacking else ""
    return (text, *_ranking(findings))


def _ranking(findings: Sequence[Finding]) -> tuple[str, ...]:
    kinds = [told for told in leads_by_driver(findings).values() if len(told) > 1 and None not in told]
    if not kinds:
        return ()
    alike = sum(len({one.layout for one in told if one is not None}) == 1 for told in kinds)
    return (f"Both rank the layouts alike in {alike} of {len(kinds)} kind{'s' * (len(kinds) > 1)} of requests",)


def causes(found: Sequence[Agreement], facts: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """What is known to set COSBench's figures apart from other clients' and applies to these steps. `facts` are by layout."""
    if not found:
        return ()
    told = [
        "COSBench counts whole milliseconds and rounds down: its means are low by 0.5 ms on average, and by 1 ms at most",
        "Locust counts what ends inside its window, COSBench only what also began there: up to one request a worker fewer",
    ]
    if any(one.api == "swift" for one in found):
        told.append(
            "COSBench’s swift storage asks its connection for 1 ms before every request whether it is still alive, inside the time "
            "that it measures: one worker can do no more than about 900 requests a second, and much of a fast request is that"
        )
    stalling = [layout for layout, known in facts.items() if _delays(known) and any(one.layout == layout for one in found)]
    if stalling:
        told.append(
            f"{', '.join(stalling)}: beast without tcp_nodelay holds parts of answers back for up to 40 ms with COSBench’s client, "
            "and hardly with Locust’s engine"
        )
    return tuple(told)


def _agreement(locust: Row, cosbench: Row, about: str, pairs: Sequence[tuple[Row, Row]]) -> Agreement:
    reasons = [f"{DRIVERS[row.driver]}: {reason(row)}" for row in (locust, cosbench) if not comparable(row)]
    measure = None
    if not reasons:
        measure = ratio([point.throughput_ops_s for point in cosbench.used], [point.throughput_ops_s for point in locust.used])
    made = Agreement(
        layout=locust.layout,
        api=locust.api,
        workload=locust.workload,
        operation=locust.operation,
        workers=locust.workers,
        about=about,
        locust_ops_s=locust.throughput_ops_s,
        cosbench_ops_s=cosbench.throughput_ops_s,
        ratio=measure,
        foretold=None if measure is None else _foretold([pair for pair in pairs if _step(pair[0]) == _step(locust)]),
        locust_p90_ms=locust.p90_ms,
        cosbench_p90=cosbench.p90_in,
        locust_max_ms=locust.max_ms,
        cosbench_max=cosbench.max_in,
        locust_mean_ms=locust.mean_ms,
        cosbench_mean_ms=cosbench.mean_ms,
        verdict=f"not comparable ({'; '.join(reasons)})",
    )
    return made if measure is None else made.model_copy(update={"verdict": _verdict(made)})


def _verdict(one: Agreement) -> str:
    """In words: throughput first, then where Locust's p90 lies; one phrase where both agree."""
    if one.agrees:
        return "agree within the bins"
    percent = 0 if one.ratio is None else round(100 * (one.ratio.value - 1))
    rate = "agree in op/s" if one.same_rate else f"COSBench {abs(percent)} % {'lower' if percent < 0 else 'higher'}"
    off = one.p90_off
    if one.locust_p90_ms is None or one.cosbench_p90 is None:
        return f"{rate}, p90 not known"
    if off is None:
        return f"{rate}, p90 in COSBench’s last bin, which has no end"
    if off == 0:
        return f"{rate}, p90 within the bin"
    whose = "COSBench’s" if one.same_rate else "its"
    return f"{rate}, {whose} p90 {'one bin' if abs(off) == 1 else f'{abs(off)} bins'} {'lower' if off > 0 else 'higher'}"


def _foretold(step: Sequence[tuple[Row, Row]]) -> tuple[float, float] | None:
    """What the mean latencies over all operations of a step make of the ratio of throughputs."""
    means, counts = [], []
    for rows in zip(*step, strict=True):
        totals = [row.mean_ms * row.samples for row in rows if row.mean_ms is not None and row.samples and not row.errors]
        if len(totals) < len(rows):
            return None
        counts.append(sum(row.samples or 0 for row in rows))
        means.append(math.fsum(totals) / counts[-1])
    (locust_ms, cosbench_ms), cosbench = means, step[0][1]
    each = counts[1] / (cosbench.workers * cosbench.repeats)
    # Of requests that all took less than 1 ms COSBench tells a mean of 0: nothing bounds the ratio from above.
    return (locust_ms / (cosbench_ms + CUT_MS) * each / (each + 1), locust_ms / cosbench_ms) if cosbench_ms else None


def _off(value_ms: float | None, within: Interval | None) -> int | None:
    return None if value_ms is None or within is None else within.bins_off(value_ms)


def _delays(facts: Mapping[str, str]) -> bool:
    """Whether a layout's radosgw has beast without tcp_nodelay, which is off where it is not named."""
    fronts = [value for name, value in facts.items() if name.endswith("rgw_frontends")]
    return any("beast" in value and "tcp_nodelay=1" not in value for value in fronts)


def _place(row: Row) -> tuple[object, ...]:
    return row.layout, row.api, row.layer, row.workload, row.operation, row.workers


def _step(row: Row) -> tuple[object, ...]:
    return row.layout, row.api, row.layer, row.workload, row.workers


def _subject(name: str) -> str:
    """The kind of requests without the driver that made them."""
    return name.replace(" by Locust", "")


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} step{'s' * (whole > 1)}"


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}"
