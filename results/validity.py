"""Validity: what a measurement must show before anything is concluded from it, and in words why it does not.

The rules, from queueing theory and from the practice of benchmarking:

- Failures: their share of all operations stays within the suite's bound (0.1 % unless it says otherwise).
- Driver: it used less than 80 % of the CPU it may use; beyond that it, not the gateway, may have been the limit.
- Little's law (J. D. C. Little, Operations Research 9, 1961): in a closed loop without think time,
  workers = throughput x mean latency. A miss of more than 5 % is noted (time lost in the driver, or samples lost), one of
  more than 20 % makes the step not valid. Requests that are cut by the ends of the window blur the law by up to one
  request a worker, so both bounds are widened by one over the operations a worker completed. Failures have no latency,
  so the law is not applied to steps with any.
- Percentiles: p is given only where at least 20 samples lie beyond it: p50 needs 40, p90 needs 200, p99 needs 2000.
"""

from __future__ import annotations

import math
from typing import Final

from ground.record import Record
from results.histogram import Histogram
from results.measurement import Measurement, Tally
from suites import Bounds, Operation

SAMPLES_BEYOND: Final = 20
"""Samples that must lie beyond a percentile for it to be given."""
DRIVER_CPU_SHARE: Final = 0.8
LITTLE_NOTED: Final = 0.05
LITTLE_REFUSED: Final = 0.20


class Verdict(Record):
    """Whether a measurement may be ranked, and what a reader must know of it."""

    valid: bool
    notes: tuple[str, ...] = ()


def samples_needed(percent: float) -> int:
    """The fewest samples with SAMPLES_BEYOND of them beyond a percentile: 200 for p90."""
    return math.ceil(round(SAMPLES_BEYOND * 100 / (100 - percent), 6))


def enough_samples(count: int, percent: float) -> bool:
    """Whether a percentile of so many samples may be given."""
    return count >= samples_needed(percent)


def judge(measurement: Measurement, bounds: Bounds, *, closed_loop: bool = True) -> Verdict:
    """Whether a measurement may be ranked. `closed_loop`: the workload names no rate. Its own notes are not repeated.

    Raises InvalidMeasurement when a histogram cannot be read.
    """
    faults: list[str] = []
    notes: list[str] = []
    done = sum(tally.count for tally in measurement.tallies)
    failed = sum(tally.failed for tally in measurement.tallies)
    if done + failed == 0:
        faults.append("nothing was done inside the window")
    faults += [_lone(tally) for tally in measurement.tallies if tally.failed and not tally.count]
    if done and failed:
        share = failed / (done + failed)
        text = f"{share:.2%} of operations failed ({error_words(measurement.tallies)})"
        if share > bounds.error_share:
            faults.append(f"{text}: beyond the bound of {bounds.error_share:.2%}")
        else:
            notes.append(text)
    for tally in measurement.tallies:
        if tally.latency is not None:
            counted = Histogram.decode(tally.latency).count
        else:
            counted = tally.bins.count if tally.bins is not None else tally.count
        if counted != tally.count:
            faults.append(f"the histogram of {tally.operation} counts {counted} samples where {tally.count} succeeded")
    if measurement.load is not None and measurement.load.share >= DRIVER_CPU_SHARE:
        faults.append(f"the driver used {measurement.load.share:.0%} of the CPU it may use: it may have been the limit")
    if closed_loop and done and not failed:
        miss, bound = _little(measurement, done)
        text = f"throughput x mean latency makes {1 + miss:.0%} of the workers (Little's law)"
        if abs(miss) > LITTLE_REFUSED + bound:
            faults.append(f"{text}: samples were lost or the driver was the limit")
        elif abs(miss) > LITTLE_NOTED + bound:
            notes.append(text)
    for tally in measurement.tallies:
        lacking = [f"p{one} (needs {samples_needed(one)})" for one in (50, 90, 99) if not enough_samples(tally.count, one)]
        if tally.count and lacking:
            notes.append(f"{_called(tally.operation)}: too few samples for {', '.join(lacking)}")
    return Verdict(valid=not faults, notes=(*faults, *notes))


def error_words(tallies: tuple[Tally, ...]) -> str:
    """Failures by class in words, most frequent first: `http-503: 12, timeout: 3`."""
    classes: dict[str, int] = {}
    for tally in tallies:
        for name, count in tally.errors.items():
            classes[name] = classes.get(name, 0) + count
    return ", ".join(f"{name}: {count}" for name, count in sorted(classes.items(), key=lambda item: (-item[1], item[0])))


def _lone(tally: Tally) -> str:
    return f"no {tally.operation} succeeded ({error_words((tally,))})"


def _called(operation: Operation) -> str:
    return f"{operation}s" if operation not in ("list", "head") else f"{operation} requests"


def _little(measurement: Measurement, done: int) -> tuple[float, float]:
    """By how much throughput x mean latency misses the workers, as a share of them, and how far the window's ends blur that."""
    busy_s = sum(tally.sum_us for tally in measurement.tallies) / 1e6
    return busy_s / measurement.window_s / measurement.workers - 1, measurement.workers / done
