"""Validity: what a measurement must satisfy before anything is concluded, and why it does not.

The rules, from queueing theory and benchmarking practice:

- Failures: their share of all operations stays within the suite's bound (default 0.1 %).
- Driver: it used less than 80 % of its CPU limit, on each client if there are several: workers are
  spread evenly, so the busiest client delays its share of them. Beyond that the driver, not the
  gateway, may have been the bottleneck. For a benchmark on the gateway's own host this is only
  noted: with that CPU a gateway there gets no more from the layer either.
- Little's law (J. D. C. Little, Operations Research 9, 1961): in a closed loop without think time,
  workers are busy for the complete window: with successes, with failures and the pause after them,
  and with requests outstanding at the end, each as far as it lies inside. A deviation of more than
  5 % is noted (time lost in the driver, or samples lost), one of more than 20 % makes the step
  invalid. Beside it count x mean latency alone is noted where it is off by more than 5 % and one
  request a worker at each end of the window: what those cut took longer than what was counted. For
  a driver that does not report these parts, throughput x mean latency is used instead: requests cut
  by the window's ends blur that by up to one request per worker, so both bounds are widened by one
  over the operations that a worker completed, as they are if workers run out of objects to delete;
  and it is not applied to steps with failures, whose time is unknown. Nor is the law applied to a
  driver that reports no latencies. For a driver that truncates latencies to whole units
  (`DriverTraits.rounding_us`) the real sum is higher by up to one unit per operation: a deviation
  is only what that cannot explain, throughput x (mean + unit) if too little is accounted for. If a
  driver also leaves out the requests that the window's start cuts (`uncounted_requests`), the
  bounds are widened by that many operations per worker.
- Rate: requests are sent at 99 % of the intended rate at least. Otherwise the step measured another
  load than the suite asked for: the note says which, and how far behind schedule the workers were
  at the end. If the number sent is unknown, those that ended count, and one more per worker.
- Window: it opens when every worker has finished its first request and the warm-up is over, and
  closes before the first worker starts its last: Locust's drivers, engine and SDK, stop workers
  only once it is closed. Workers run out of objects to delete one after another: the window closes
  with the last, so its tail has fewer workers than stated, and a window of only deletes without a
  warm-up opens before the first request; both are noted. Drivers that wrap other tools have their
  own windows, which they document.
- Headroom of the driver's network: `results.figures.summary` judges its NIC by what the hosts
  used, and `results.figures.steadiness` whether throughput was constant over the window;
  both when results are derived, not when they are measured.
- Percentiles: p is given from so many samples on that its 95 % interval by order statistics has
  both ends (`least_samples`: p50 from 6, p90 from 36, p99 from 368). Fewer samples do not say how
  high it may be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.figures.statistics import CONFIDENCE
from weighbridge.results.run import Histogram, Measurement, Tally
from weighbridge.results.run.step import LAST_ERROR, RAN_OUT, tool_label, traits_of
from weighbridge.suites import TRAITS, Bounds, Operation

DRIVER_CPU_SHARE: Final = 0.8
RATE_KEPT: Final = 0.99
"""Share of the intended rate at which requests must be sent."""
LITTLE_NOTED: Final = 0.05
LITTLE_REFUSED: Final = 0.20

ASIDES: Final = (
    "too few samples",
    "reports no percentiles",
    "CPU is not known",
    "steadiness is not known",
)
"""Parts of notes that do not make a step invalid; they are also searched for in recorded runs."""


class Verdict(Record):
    """Whether a measurement may be ranked, and what readers must know of it."""

    valid: bool
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    """The faults that show what the target does not serve: failures, and a rate not reached."""


@cache
def least_samples(percent: float) -> int:
    """The fewest samples for which a percentile is given: its interval by order statistics has both
    ends; 36 for p90. Raises ValueError outside 0 < percent < 100.

    With equal tails, all samples may be below it with a probability of at most half the rest, and
    so may all be above (H. A. David and H. N. Nagaraja, Order Statistics, 2003, section 7.1).
    """
    share = percent / 100
    tail = math.log((1 - CONFIDENCE) / 2)
    return math.ceil(max(tail / math.log(share), tail / math.log1p(-share)))


def enough_samples(count: int, percent: float) -> bool:
    """Whether a percentile of this many samples is given."""
    return count >= least_samples(percent)


def judge(
    measurement: Measurement,
    bounds: Bounds,
    *,
    rate_per_s: float | None = None,
    may_fail: bool = False,
) -> Verdict:
    """Whether a measurement may be ranked. `rate_per_s`: the workload's; None: a closed loop.

    `may_fail`: what is not served is part of the result and only noted, as at a rate that may be
    beyond capacity, or while something is broken.
    Its own notes are not repeated. Raises InvalidMeasurement if a histogram cannot be read.
    """
    faults: list[str] = []
    unserved: list[str] = []
    notes: list[str] = []
    done = measurement.done
    failed = sum(tally.failed for tally in measurement.complete)
    cause = next((f"{note}: " for note in measurement.notes if RAN_OUT in note), "")
    why = next((f"; {note}" for note in measurement.notes if note.startswith(LAST_ERROR)), "")
    if done + failed == 0:
        faults.append(f"{cause}nothing was done inside the window")
    lone = [tally for tally in measurement.complete if tally.failed and not tally.count]
    unserved += [f"no {tally.operation} succeeded ({error_words((tally,))}{why})" for tally in lone]
    if done and failed:
        share = failed / (done + failed)
        text = f"{share:.2%} of operations failed ({error_words(measurement.complete)}{why})"
        if share > bounds.error_share:
            unserved.append(f"{text}: beyond the bound of {bounds.error_share:.2%}")
        else:
            notes.append(text)
    if rate_per_s is not None:
        unserved += _too_slow(measurement, rate_per_s, done + failed)
    (notes if may_fail else faults).extend(unserved)
    for tally in measurement.tallies:
        counted = tally.count if tally.bins is None else tally.bins.count
        if tally.latency is not None:
            counted = Histogram.decode(tally.latency).count
        if counted != tally.count:
            faults.append(
                f"the histogram of {tally.operation} counts {counted} samples where {tally.count} "
                "succeeded"
            )
        faults += _unlike_its_seconds(measurement, tally)
    if measurement.load is not None and measurement.load.share >= DRIVER_CPU_SHARE:
        used = f"used {measurement.load.share:.0%} of its CPU limit"
        if traits_of(measurement.driver).beside_gateway:
            notes.append(
                f"{measurement.driver} {used}, which is the gateway host's: with more of it the "
                "layer may do more"
            )
        else:
            client = measurement.load.busiest.client
            where = f" on {client}" if client else ""
            faults.append(f"the driver{where} {used}: it may have been the bottleneck")
    little = _little(measurement, done, failed) if rate_per_s is None and done else None
    if little is not None:
        miss, bound, ended = little
        text = f"throughput x mean latency makes {1 + miss:.0%} of the workers (Little's law)"
        if abs(miss) > LITTLE_REFUSED + bound:
            lost = "" if cause else ": samples were lost or the driver was the bottleneck"
            faults.append(f"{cause}{text}{lost}")
        elif abs(miss) > LITTLE_NOTED + bound:
            notes.append(text)
        elif ended < 1 - LITTLE_NOTED - 2 * measurement.workers / done:
            notes.append(
                f"count x mean latency makes {ended:.0%} of the workers: requests that the "
                "window's ends cut took longer than those that it counts"
            )
    if measurement.load is None:
        notes.append("the driver's CPU is not known")
    timed = [one for one in measurement.tallies if one.latency is not None or one.bins is not None]
    if any(tally.count and tally not in timed for tally in measurement.tallies):
        notes.append(f"{tool_label(measurement.driver)} reports no percentiles")
    for tally in timed:
        lacking = [
            f"p{one} (needs {least_samples(one)})"
            for one in (50, 90, 99)
            if tally.count < least_samples(one)
        ]
        if lacking:
            notes.append(f"{_called(tally.operation)}: too few samples for {', '.join(lacking)}")
    return Verdict(
        valid=not faults,
        notes=(*faults, *notes),
        faults=tuple(faults),
        unserved=tuple(unserved),
    )


def _unlike_its_seconds(measurement: Measurement, tally: Tally) -> list[str]:
    """That a driver which keeps seconds counted something else in them than in all."""
    if not measurement.seconds:
        return []
    seconds = [second for second in measurement.seconds if second.operation == tally.operation]
    # Requests that never ended did so in no second.
    ended = tally.failed - tally.errors.get("unfinished", 0)
    return [
        f"the seconds of {tally.operation} have {in_seconds} {what} where {in_all} were counted"
        for what, in_seconds, in_all in (
            ("successes", sum(second.count for second in seconds), tally.count),
            ("bytes", sum(second.bytes for second in seconds), tally.bytes),
            ("failures", sum(second.errors for second in seconds), ended),
        )
        if in_seconds != in_all
    ]


def error_words(tallies: tuple[Tally, ...]) -> str:
    """Failures by class in words, most frequent first: `http-503: 12, timeout: 3`."""
    return class_words(sum((Counter(tally.errors) for tally in tallies), Counter()))


def class_words(classes: Mapping[str, int]) -> str:
    """Counts by class in words, most frequent first: `http-503: 12, timeout: 3`."""
    ordered = sorted(classes.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name}: {count}" for name, count in ordered)


def _called(operation: Operation) -> str:
    plain = operation in ("read", "write", "delete")
    return f"{operation}s" if plain else f"{operation} requests"


def _too_slow(measurement: Measurement, rate_per_s: float, ended: int) -> list[str]:
    """That requests were sent at less than the intended rate, and how far behind; else empty."""
    # Of requests that ended, each worker may have one more outstanding.
    begun, blur = (
        (measurement.begun, 1) if measurement.begun is not None else (ended, measurement.workers)
    )
    intended = rate_per_s * measurement.window_s
    if begun + blur >= RATE_KEPT * intended:
        return []
    behind = "how far they fell behind is not known"
    if measurement.behind_us is not None:
        behind = (
            f"when the window closed, workers were up to {measurement.behind_us / 1000:.0f} "
            "ms behind their intended starts"
        )
    reached = (
        f"{begun / measurement.window_s:.4g} requests/s were sent of the {rate_per_s:g} "
        f"intended ({begun / intended:.1%})"
    )
    return [f"{reached}: {behind}"]


def _little(measurement: Measurement, done: int, failed: int) -> tuple[float, float, float] | None:
    """How far the workers' accounted time is off the available time beyond what truncated latencies
    explain, its blur, and the share of requests that ended in it; None if something is unknown.
    """
    asked_s = measurement.window_s * measurement.workers
    blur = traits_of(measurement.driver).uncounted_requests * measurement.workers / done
    busy_us = [tally.busy_us for tally in measurement.complete]
    if None not in busy_us:
        runs_out = any(TRAITS[tally.operation].deletes for tally in measurement.complete)
        ended_us = sum((one.sum_us or 0) + (one.failed_us or 0) for one in measurement.complete)
        miss = sum(part or 0 for part in busy_us) / 1e6 / asked_s - 1
        return miss, blur if runs_out else 0.0, ended_us / 1e6 / asked_s
    if failed or any(tally.sum_us is None for tally in measurement.complete):
        return None
    low = sum(tally.sum_us or 0 for tally in measurement.complete) / 1e6 / asked_s - 1
    high = low + done * traits_of(measurement.driver).rounding_us / 1e6 / asked_s
    return low if low > 0 else min(high, 0.0), blur, 1.0
