"""Validity: what a measurement must show before anything is concluded from it, and in words why it
does not.

The rules, from queueing theory and from the practice of benchmarking:

- Failures: their share of all operations stays within the suite's bound (0.1 % unless it says
  otherwise).
- Driver: it used less than 80 % of the CPU it may use, on each client where there are several:
  workers are shared out evenly, so that the busiest holds up its share of them. Beyond that it, not
  the gateway, may have been the limit. Of a bench that runs on the gateway's own host this is only
  noted: with that CPU a gateway there gets no more from the layer either.
- Little's law (J. D. C. Little, Operations Research 9, 1961): in a closed loop without think time,
  workers are busy all of the window: with what succeeded, with what failed and the rest after it,
  and with what is outstanding at the end, each as far as it lies inside. A miss of more than 5 % is
  noted (time lost in the driver, or samples lost), one of more than 20 % makes the step not valid.
  Of a driver that does not tell these parts, throughput x mean latency stands for them: requests
  that are cut by the ends of the window blur that by up to one request a worker, so both bounds are
  widened by one over the operations a worker completed, as they are where workers run out of
  objects to delete; and it is not applied to steps with failures, whose time is not known. Nor is
  the law applied to a driver that tells no latencies. Of a driver that cuts latencies to whole
  units (`DriverTraits.cut_us`) the real sum is higher by up to one an operation: a miss is only
  what that cannot explain, throughput x (mean + unit) where too little is accounted for. Where one
  also leaves out the requests that the window's start cuts (`cut_requests`), the bounds are widened
  by as many operations a worker.
- Rate: requests are begun at 99 % of the intended rate at least. Who does not keep up with it is
  measured at another load than the suite asked for: the note says at which, and how far behind
  their intended starts the workers were at the end. Of measurements that do not tell how many were
  begun, those that ended are counted, and one more a worker.
- Window: it opens when every worker has finished its first request, and not before the warm-up is
  over, and closes before the first begins its last: Locust's drivers, engine and SDK, tell workers
  to stop only once it is closed. Where there are objects to delete, workers run out of them one
  after another: the window closes with the last, so that its tail has fewer workers than it says,
  and where it is of deletes alone without a warm-up it opens before the first request; both are
  noted. Drivers that are tools of others have windows of their own: what they are stands with them.
- Headroom of the driver's network: `results.analysis.steps.visit` judges its NIC from what the
  hosts used, and `results.analysis.steps.steadiness` whether throughput held all through the
  window; both when results are derived, not when they are measured.
- Percentiles: p is given where a sample is to be expected beyond it, and where fewer than 20 are
  (p50 of fewer than 40 samples, p90 of 200, p99 of 2000) with the interval that order statistics
  give.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.record import Histogram, Measurement, Tally
from weighbridge.results.record.driver_traits import tool_label, traits_of
from weighbridge.results.statistics import t_quantile
from weighbridge.suites import Bounds, Operation

SAMPLES_BEYOND: Final = 20
"""Samples beyond a percentile from which on it is given without an interval of its own."""
DRIVER_CPU_SHARE: Final = 0.8
RATE_KEPT: Final = 0.99
"""Share of the intended rate at which requests must be begun."""
LITTLE_NOTED: Final = 0.05
LITTLE_REFUSED: Final = 0.20

ASIDES: Final = (
    "too few samples",
    "tells no percentiles",
    "CPU is not known",
    "steadiness is not known",
)
"""What notes have in them that are no reason for a step not to be valid."""


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


def least_samples(percent: float) -> int:
    """The fewest samples of which a percentile is given at all: with one of them beyond it, as is
    to be expected; 10 for p90.

    Up to `samples_needed` it has an interval beside it.
    """
    return math.ceil(round(100 / (100 - percent), 6))


def judge(measurement: Measurement, bounds: Bounds, *, rate_per_s: float | None = None) -> Verdict:
    """Whether a measurement may be ranked. `rate_per_s`: the workload's; None: a closed loop. Its
    own notes are not repeated.

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
            faults.append(
                f"the histogram of {tally.operation} counts {counted} samples where {tally.count} "
                "succeeded"
            )
    if measurement.load is not None and measurement.load.share >= DRIVER_CPU_SHARE:
        used = f"used {measurement.load.share:.0%} of the CPU it may use"
        if traits_of(measurement.driver).beside_gateway:
            notes.append(
                f"{measurement.driver} {used}, which is the gateway host's: with more of it the "
                "layer may do more"
            )
        else:
            where = (
                f" on {measurement.load.busiest.client}" if measurement.load.busiest.client else ""
            )
            faults.append(f"the driver{where} {used}: it may have been the limit")
    if rate_per_s is not None:
        faults += _too_slow(measurement, rate_per_s, done + failed)
    little = _little(measurement, done, failed) if rate_per_s is None and done else None
    if little is not None:
        miss, bound = little
        text = f"throughput x mean latency makes {1 + miss:.0%} of the workers (Little's law)"
        if abs(miss) > LITTLE_REFUSED + bound:
            faults.append(f"{text}: samples were lost or the driver was the limit")
        elif abs(miss) > LITTLE_NOTED + bound:
            notes.append(text)
    if measurement.load is None:
        notes.append("the driver's CPU is not known")
    if any(
        tally.count and tally.latency is None and tally.bins is None
        for tally in measurement.tallies
    ):
        notes.append(f"{tool_label(measurement.driver)} tells no percentiles")
    for tally in measurement.tallies:
        if tally.latency is None and tally.bins is None:
            continue
        lacking = [
            f"p{one} (needs {least_samples(one)})"
            for one in (50, 90, 99)
            if tally.count < least_samples(one)
        ]
        if lacking:
            notes.append(f"{_called(tally.operation)}: too few samples for {', '.join(lacking)}")
    return Verdict(valid=not faults, notes=(*faults, *notes))


def error_words(tallies: tuple[Tally, ...]) -> str:
    """Failures by class in words, most frequent first: `http-503: 12, timeout: 3`."""
    classes: dict[str, int] = {}
    for tally in tallies:
        for name, count in tally.errors.items():
            classes[name] = classes.get(name, 0) + count
    return ", ".join(
        f"{name}: {count}"
        for name, count in sorted(classes.items(), key=lambda item: (-item[1], item[0]))
    )


def _lone(tally: Tally) -> str:
    return f"no {tally.operation} succeeded ({error_words((tally,))})"


def _called(operation: Operation) -> str:
    return f"{operation}s" if operation not in ("list", "head") else f"{operation} requests"


def _too_slow(measurement: Measurement, rate_per_s: float, ended: int) -> list[str]:
    """That requests were begun at less than the intended rate, and what piled up; nothing where
    they were not.
    """
    # What was begun is known to the request; of what ended, each worker may have one more in hand.
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
        f"{begun / measurement.window_s:.4g} requests/s were begun of the {rate_per_s:g} "
        f"intended ({begun / intended:.1%})"
    )
    return [f"{reached}: {behind}"]


def _little(measurement: Measurement, done: int, failed: int) -> tuple[float, float] | None:
    """By how much of the workers' time is accounted for more or less than there is, as a share of
    it, and how far that is blurred.

    Where the driver cuts latencies to whole units, the miss that is left when they were cut by as
    much as explains most of it. None where what is needed is not known.
    """
    asked_s = measurement.window_s * measurement.workers
    blur = traits_of(measurement.driver).cut_requests * measurement.workers / done
    busy_us = [tally.busy_us for tally in measurement.tallies]
    if None not in busy_us:
        runs_out = any(tally.operation == "delete" for tally in measurement.tallies)
        return sum(part or 0 for part in busy_us) / 1e6 / asked_s - 1, blur if runs_out else 0.0
    if failed or any(tally.sum_us is None for tally in measurement.tallies):
        return None
    low = sum(tally.sum_us or 0 for tally in measurement.tallies) / 1e6 / asked_s - 1
    high = low + done * traits_of(measurement.driver).cut_us / 1e6 / asked_s
    return low if low > 0 else min(high, 0.0), blur


def outlier(values: Sequence[float], level: float = 0.01) -> int | None:
    """Which one of the values, all above 0, lies so far from the others that so few sets of normal
    logarithms have one; None: none.

    F. E. Grubbs' two-sided test (Technometrics 11, 1969). No value is left out by it, and two far
    ones hide each other. Of fewer than 3 values nothing can be told: None. Raises ValueError for a
    value that is not above 0.
    """
    logs = [math.log(value) for value in values]
    count = len(logs)
    if count < 3 or min(logs) == max(logs):
        return None
    middle, spread = mean(logs), stdev(logs)
    farthest = max(range(count), key=lambda number: abs(logs[number] - middle))
    t = t_quantile(1 - level / (2 * count), count - 2)
    bound = (count - 1) / math.sqrt(count) * math.sqrt(t**2 / (count - 2 + t**2))
    return farthest if abs(logs[farthest] - middle) / spread > bound else None


def outlier_words(values: Sequence[tuple[int, float]]) -> tuple[str, ...]:
    """That the throughput of a repeat lies far from the others, of pairs of a repeat's number from
    0 and its throughput.
    """
    found = (
        outlier([value for _, value in values]) if all(value > 0 for _, value in values) else None
    )
    return (
        ()
        if found is None
        else (
            (
                f"the throughput of repeat {values[found][0] + 1} lies far from the others (Grubbs’ "
                "test, 1 %)"
            ),
        )
    )
