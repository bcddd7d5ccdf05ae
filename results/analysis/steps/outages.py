"""What a fault did to one operation of a step, from its series of seconds.

A fault falls into a second, and only complete seconds count: the first one after it begins up to a
second later. Rates over SPAN_S seconds decide whether service is back, since single seconds of a
small rate differ by chance.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.results.outage_figures import BACK, SERVES, SPAN_S, OutageFigures
from weighbridge.results.record import Measurement, Second
from weighbridge.results.record.bands import low_us
from weighbridge.results.record.outage import Outage
from weighbridge.suites import Fault, Operation


class OutageSecond(Record):
    """One complete second of a window."""

    second: NonNegativeInt
    count: NonNegativeInt
    errors: NonNegativeInt
    p99_ms: NonNegativeFloat | None
    """At most; bands are 19 to 25 % wide. None: nothing succeeded, or the driver has no bands."""
    in_flight: NonNegativeInt | None
    """When it began."""


class Times(Record):
    """When the fault and the return really were, in seconds of the window; `back_s` None: not in
    it.
    """

    fault_s: float
    back_s: float | None


def times_of(fault: Fault, outage: Outage | None) -> Times:
    """As recorded, else as planned."""
    if outage is None:
        return Times(fault_s=fault.at, back_s=fault.back)
    back_s = None if outage.back is None else outage.back.begun_s
    return Times(fault_s=outage.fault.begun_s, back_s=back_s)


def before_fault(measurement: Measurement, fault: Fault, outage: Outage | None) -> Measurement:
    """Its per-second figures as if the window had ended when the fault came; all else is as it
    was.
    """
    fault_s = min(measurement.window_s, max(0.0, times_of(fault, outage).fault_s))
    seconds = tuple(one for one in measurement.seconds if one.second + 1 <= fault_s)
    return measurement.model_copy(update={"seconds": seconds, "window_s": fault_s})


def series(
    seconds: Sequence[Second], window_s: float, operations: Sequence[Operation]
) -> tuple[OutageSecond, ...]:
    """The complete seconds of a window, of these operations together."""
    found: dict[int, list[Second]] = {}
    for one in seconds:
        if one.operation in operations:
            found.setdefault(one.second, []).append(one)
    return tuple(_second(number, found.get(number, ())) for number in range(int(window_s)))


def _second(number: int, same: Sequence[Second]) -> OutageSecond:
    known = [one.in_flight for one in same if one.in_flight is not None]
    return OutageSecond(
        second=number,
        count=sum(one.count for one in same),
        errors=sum(one.errors for one in same),
        p99_ms=_p99_ms(same),
        in_flight=sum(known) if known else None,
    )


def _p99_ms(same: Sequence[Second]) -> float | None:
    """The upper edge of the band of the 99th percentile; never more than the longest."""
    bands: Counter[int] = Counter()
    for one in same:
        bands.update(dict(one.bands))
    if not bands:
        return None
    rank, seen = math.ceil(0.99 * bands.total()), 0
    longest_ms = max(one.max_us for one in same) / 1000
    for band in sorted(bands):
        seen += bands[band]
        if seen >= rank:
            return min(low_us(band + 1) / 1000, longest_ms)
    return longest_ms


def figures(
    seconds: Sequence[Second],
    window_s: float,
    operation: Operation,
    times: Times,
) -> OutageFigures | None:
    """The figures of one operation; None where no rate before the fault is known."""
    every = series(seconds, window_s, (operation,))
    before = [one.count for one in every if one.second + 1 <= times.fault_s]
    if not before or not median(before):
        return None
    rate = float(median(before))
    end_s = float(len(every))
    first = math.floor(times.fault_s) + 1
    after = every[first:]
    away_end_s = end_s if times.back_s is None else times.back_s
    spans = [after[start : start + SPAN_S] for start in range(max(0, len(after) - SPAN_S + 1))]
    detected = next(
        (
            some[0].second
            for some in spans
            if some[-1].second + 1 <= away_end_s
            and not any(one.errors for one in some)
            and _mean(some) >= SERVES * rate
        ),
        None,
    )
    recovered = next((some[0].second for some in spans if _mean(some) >= BACK * rate), None)
    returned = (
        []
        if times.back_s is None
        else [_mean(some) for some in spans if some[0].second >= times.back_s]
    )
    own = [one for one in seconds if one.operation == operation]
    away = [one for one in own if first <= one.second < away_end_s]
    errors: Counter[str] = Counter()
    for one in own:
        if one.second >= math.floor(times.fault_s):
            errors.update(one.failures or ({"unknown": one.errors} if one.errors else {}))
    missed = rate * (end_s - first) - sum(one.count for one in after)
    return OutageFigures(
        before_ops_s=rate,
        detect_s=None if detected is None else detected - times.fault_s,
        detect_within_s=max(0.0, away_end_s - times.fault_s),
        recover_s=None if recovered is None else recovered - times.fault_s,
        recover_within_s=end_s - times.fault_s,
        unanswered_s=sum(not one.count for one in after),
        missed_s=max(0.0, missed / rate),
        away_p99_ms=_p99_ms(away),
        away_max_ms=max((one.max_us / 1000 for one in away if one.count), default=None),
        lowest_back=min((one / rate for one in returned), default=None),
        errors=dict(errors),
    )


def _mean(some: Sequence[OutageSecond]) -> float:
    return sum(one.count for one in some) / len(some)
