"""Validity: what a measurement must show before anything is concluded from it, and in words why it does not.

The rules, from queueing theory and from the practice of benchmarking:

- Failures: their share of all operations stays within the suite's bound (0.1 % unless it says otherwise).
- Driver: it used less than 80 % of the CPU it may use, on each client where there are several: workers are shared out evenly, so
  that the busiest holds up its share of them. Beyond that it, not the gateway, may have been the limit. Of a bench that runs on
  the gateway's own host this is only noted: with that CPU a gateway there gets no more from the layer either.
- Little's law (J. D. C. Little, Operations Research 9, 1961): in a closed loop without think time,
  workers = throughput x mean latency. A miss of more than 5 % is noted (time lost in the driver, or samples lost), one of
  more than 20 % makes the step not valid. Requests that are cut by the ends of the window blur the law by up to one
  request a worker, so both bounds are widened by one over the operations a worker completed. Failures have no latency,
  so the law is not applied to steps with any; nor to those of a driver that tells no latencies.
  COSBench cuts each latency to whole milliseconds, so that the real sum is higher by up to 1 ms an operation: a miss is only
  what that cannot explain, throughput x (mean + 1 ms) where too little is accounted for. It also leaves out the requests that
  the window's start cuts, not only those that its end does: its bounds are widened by two operations a worker.
- Window: it opens when every worker has finished its first request, and not before the warm-up is over, and closes before the
  first begins its last: Locust's drivers, engine and SDK, tell workers to stop only once it is closed. Where there are objects
  to delete, workers run out of them one after another: the window closes with the last, so that its tail has fewer workers than
  it says, and where it is of deletes alone without a warm-up it opens before the first request; both are noted. Other drivers
  have windows of their own. COSBench: its `runtime`, by its clock, without requests that either end cuts. `rados bench`: a run of
  its own from its first request to its last, start and end with it, after another one for the warm-up; of several at once the
  seconds of the longest. `rbd bench`: from its first line of figures after the warm-up. fio: `ramp_time` left out, then what is
  done within `runtime`.
- Headroom of the driver's network: `results.visit` judges its NIC from what the hosts used, and `results.steadiness` whether
  throughput held all through the window; both when results are derived, not when they are measured.
- Percentiles: p is given only where at least 20 samples lie beyond it: p50 needs 40, p90 needs 200, p99 needs 2000.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from ground.record import Record
from results.histogram import Histogram
from results.measurement import Measurement, Tally
from suites import Bounds, Operation

SAMPLES_BEYOND: Final = 20
"""Samples that must lie beyond a percentile for it to be given."""
DRIVER_CPU_SHARE: Final = 0.8
BESIDE_GATEWAY: Final = ("rados-bench", "rbd-bench", "fio-rbd", "fio")
"""Drivers that run where the gateway does, within its limits."""
LITTLE_NOTED: Final = 0.05
LITTLE_REFUSED: Final = 0.20
CUT_US: Final[Mapping[str, int]] = {"cosbench": 1000}
"""By less than so much a driver tells each latency too low, since it counts in whole units and rounds down."""
CUT_REQUESTS: Final[Mapping[str, int]] = {"cosbench": 2}
"""Requests of each worker that a driver leaves out at the ends of its window; 1 of others."""

ASIDES: Final = ("too few samples", "tells no percentiles", "CPU is not known", "steadiness is not known")
"""What notes have in them that are no reason for a step not to be valid."""

_TOOLS: Final[Mapping[str, str]] = {
    "rados-bench": "rados bench",
    "rbd-bench": "rbd bench",
    "cosbench": "COSBench",
    "fio-rbd": "fio",
    "locust-engine": "the engine",
    "locust-sdk": "the SDK driver",
}


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
        used = f"used {measurement.load.share:.0%} of the CPU it may use"
        if measurement.driver in BESIDE_GATEWAY:
            notes.append(f"{measurement.driver} {used}, which is the gateway host's: with more of it the layer may do more")
        else:
            where = f" on {measurement.load.busiest.client}" if measurement.load.busiest.client else ""
            faults.append(f"the driver{where} {used}: it may have been the limit")
    if closed_loop and done and not failed and all(tally.sum_us is not None for tally in measurement.tallies):
        miss, bound = _little(measurement, done)
        text = f"throughput x mean latency makes {1 + miss:.0%} of the workers (Little's law)"
        if abs(miss) > LITTLE_REFUSED + bound:
            faults.append(f"{text}: samples were lost or the driver was the limit")
        elif abs(miss) > LITTLE_NOTED + bound:
            notes.append(text)
    if measurement.load is None:
        notes.append("the driver's CPU is not known")
    if any(tally.count and tally.latency is None and tally.bins is None for tally in measurement.tallies):
        notes.append(f"{_TOOLS.get(measurement.driver, measurement.driver)} tells no percentiles")
    for tally in measurement.tallies:
        if tally.latency is None and tally.bins is None:
            continue
        lacking = [f"p{one} (needs {samples_needed(one)})" for one in (50, 90, 99) if not enough_samples(tally.count, one)]
        if lacking:
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
    """By how much throughput x mean latency misses the workers, as a share of them, and how far the window's ends blur that.

    Where the driver cuts latencies to whole units, the miss that is left when they were cut by as much as explains most of it.
    """
    asked_s = measurement.window_s * measurement.workers
    low = sum(tally.sum_us or 0 for tally in measurement.tallies) / 1e6 / asked_s - 1
    high = low + done * CUT_US.get(measurement.driver, 0) / 1e6 / asked_s
    miss = low if low > 0 else min(high, 0.0)
    return miss, CUT_REQUESTS.get(measurement.driver, 1) * measurement.workers / done
