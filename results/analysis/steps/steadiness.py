"""Steadiness: whether a step behaved the same from the first second of its window to the last, by
rule and not by eye.

Whole seconds of the window are judged, all operations together; a second without completions counts
as 0, and a partial last one is left out. The workload's own warm-up comes before the window: it is
the minimum, never shortened.

- Warm-up: MSER-5 (K. P. White, Simulation 69 (6), 1997) cuts where the marginal standard error of
  the rest is least, over means of batches of 5 seconds and within the first half; windows with
  fewer than ten such batches use smaller ones. Histograms are of complete windows, so nothing is
  cut off: if throughput after the cut differs from that of the window by more than WARM_BOUND, the
  step was still warming up.
- Steady state: five equal rounds whose range is at most RANGE_BOUND of their mean, while the line
  fitted to the seconds changes by at most MOVE_BOUND of it from end to end: the rule of SNIA's
  Solid State Storage Performance Test Specification. fio's `steadystate=iops_slope` has only the
  second half of it.
- Noise: in windows of seconds instead of hours, chance alone exceeds those bounds. A deviation must
  therefore also be more than the scatter from second to second explains, which is estimated from
  the differences of neighbours (J. von Neumann, Annals of Mathematical Statistics 12, 1941), where
  a slow drift does not show. Counting is part of that scatter: at 30 op/s it is large.
- Stalls: seconds in which almost nothing completed, whatever the length of the window, and periodic
  dips, by the rules of `results.analysis.steps.stalls`. Neither shows in a line or in fifths.
- At a constant rate throughput says little: a gateway that falls behind shows in the mean latency
  of the seconds, which is judged by the second rule as well. In a closed loop one follows from the
  other.

A step is called steady only if a drift of DETECTABLE_MOVE would have been detected; with short
windows, large scatter or drivers without per-second figures it is unknown, which is reported as
such. `results.analysis.steps.together` judges drift over repeats where there are enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, linear_regression
from typing import Final

from pydantic import NonNegativeFloat

from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.stalls import SHARE, period_s, stall_words, stalls
from weighbridge.results.record import Measurement
from weighbridge.suites import PARTS

NOT_STEADY: Final = "not steady"
"""How notes begin on why a step was not steady."""
UNKNOWN_STEADINESS: Final = "steadiness is not known"
"""How notes begin if it is unknown whether a step was steady."""
SHORTEST_WINDOW_S: Final = 10
"""Whole seconds that a window must have: five rounds of two seconds, and nine differences to
estimate the scatter from.
"""
ROUNDS: Final = 5
RANGE_BOUND: Final = 0.20
MOVE_BOUND: Final = 0.10
WARM_BOUND: Final = 0.05
BATCH_S: Final = 5
BATCHES: Final = 10
"""Batches that a window should have to look for a cut."""
SIGMAS: Final = 2.5
"""Larger deviations, in standard errors, are not chance: one in 80, two-sided, if normal."""
RANGE_SIGMAS: Final = 4.3
"""The same for the range of five: near its 98th percentile."""
DETECTABLE_MOVE: Final = 0.30
"""The drift from end to end that must be detectable before a step is called steady."""
EDGE_S: Final = 0.05
"""A window may be this much shorter than a whole second and its last one still counts."""


class Steadiness(Record):
    """The verdict; None: unknown, and `notes` say why."""

    steady: bool | None
    notes: tuple[str, ...] = ()
    drifts: bool = False
    """Whether it is not steady only because it drifts or was still warming up."""
    most: NonNegativeFloat | None = None
    """Over repeats (`results.analysis.steps.steady_repeats`): the largest drift over the window
    that is not ruled out, relative to the mean; None: unknown.
    """
    warmup_s: NonNegativeFloat | None = None
    """The warm-up that would have sufficed, for a step that was still warming up."""


def steadiness(measurement: Measurement, *, closed_loop: bool = True) -> Steadiness:
    """Whether a step was steady. `closed_loop`: the workload has no rate."""
    if not measurement.seconds:
        return Steadiness(
            steady=None, notes=(f"{UNKNOWN_STEADINESS}: the driver reports no per-second figures",)
        )
    length = math.floor(measurement.window_s + EDGE_S)
    counts, sums_us = per_second(measurement, length)
    if length and not any(counts):
        return Steadiness(steady=None, notes=(f"{UNKNOWN_STEADINESS}: nothing was done",))
    faults, remarks = _stalled(counts, measurement.workers)
    drifts = not faults
    if length < SHORTEST_WINDOW_S and not faults:
        short = (
            f"{UNKNOWN_STEADINESS}: a window of {measurement.window_s:.0f} s is too short to tell "
            f"(needs {SHORTEST_WINDOW_S} s)"
        )
        return Steadiness(steady=None, notes=(short, *remarks))
    detectable = length >= SHORTEST_WINDOW_S and _least_move(counts) <= DETECTABLE_MOVE
    warmup_s = None
    if length >= SHORTEST_WINDOW_S:
        warming, warmup_s = _warming(counts, measurement.warmup_s)
        faults += [*warming, *_drifting(counts, "throughput")]
    if length >= SHORTEST_WINDOW_S and not closed_loop and all(counts):
        latencies = [total / count for total, count in zip(sums_us, counts, strict=True)]
        faults += _drifting(latencies, "mean latency")
    if faults:
        notes = (*(f"{NOT_STEADY}: {fault}" for fault in faults), *remarks)
        return Steadiness(steady=False, notes=notes, drifts=drifts, warmup_s=warmup_s)
    if not detectable:
        hidden = (
            f"throughput scatters so much that a drift of {_percent(DETECTABLE_MOVE)} would not "
            "have been detected"
        )
        return Steadiness(steady=None, notes=(f"{UNKNOWN_STEADINESS}: {hidden}", *remarks))
    return Steadiness(steady=True, notes=tuple(remarks))


def per_second(measurement: Measurement, length: int) -> tuple[list[float], list[float]]:
    """Completions, and the sums of their latencies in us, in each of the first `length` seconds."""
    counts, sums_us = [0.0] * length, [0.0] * length
    for one in measurement.seconds:
        if one.second < length and one.operation not in PARTS:
            counts[one.second] += one.count
            sums_us[one.second] += one.sum_us
    return counts, sums_us


def mser_cut(values: Sequence[float], batch: int) -> int:
    """How many of the first values to leave out by MSER: a multiple of `batch`, at most half."""
    size = len(values) // batch
    # Relative to their mean, so that the difference of sums of squares keeps its digits.
    mean = fmean(values)
    means = [fmean(values[number * batch : (number + 1) * batch]) - mean for number in range(size)]
    total = squares = 0.0
    errors = []
    for kept, value in enumerate(reversed(means), start=1):
        total, squares = total + value, squares + value**2
        errors.append(max(0.0, squares - total**2 / kept) / kept**2)
    errors.reverse()
    # Differences by rounding, as in a constant series, need no cut.
    least = min(errors[: size // 2 + 1]) + 1e-12 * mean**2
    return batch * next(skipped for skipped, error in enumerate(errors) if error <= least)


def _stalled(counts: Sequence[float], workers: int) -> tuple[list[str], list[str]]:
    """Stalls and periodic dips: those that make a step unsteady, and those only reported."""
    found = stalls(counts, workers)
    if found and sum(one.length_s for one in found) >= SHARE * len(counts):
        return [stall_words(found)], []
    period = period_s(counts)
    faults = [] if period is None else [f"throughput dips every {period} s"]
    return faults, [stall_words(found)] if found else []


def _warming(counts: Sequence[float], warmup_s: float) -> tuple[list[str], float | None]:
    """Whether the step was still warming up, and what warm-up would have sufficed."""
    length, mean = len(counts), fmean(counts)
    cut = mser_cut(counts, max(1, min(BATCH_S, length // BATCHES)))
    if not cut:
        return [], None
    after = fmean(counts[cut:])
    off = after / mean - 1
    chance = (
        SIGMAS * _few(length) * _noise(counts) * math.sqrt(1 / (length - cut) - 1 / length) / mean
    )
    if abs(off) <= max(WARM_BOUND, chance):
        return [], None
    change = (
        f"throughput after the first {cut} s is {_percent(abs(off))} "
        f"{'higher' if off > 0 else 'lower'} than over the complete window"
    )
    needed_s = math.ceil(warmup_s + cut)
    return [f"{change}; warm up for {needed_s} s or more"], needed_s


def _drifting(values: Sequence[float], what: str) -> list[str]:
    """Violations of the rule of five rounds beyond what the scatter explains."""
    length, mean, noise = len(values), fmean(values), _noise(values)
    rounds = fifths(values)
    spread, scatter = (
        (max(rounds) - min(rounds)) / mean,
        noise / math.sqrt(length / ROUNDS) / mean,
    )
    faults = []
    if spread > max(RANGE_BOUND, RANGE_SIGMAS * _few(length) * scatter):
        faults.append(f"{what} of fifths of the window varies by {_percent(spread)} of its mean")
    move = _slope(values) * (length - 1) / mean
    if abs(move) > max(MOVE_BOUND, _least_move(values)):
        faults.append(
            f"{what} {'rises' if move > 0 else 'falls'} by {_percent(abs(move))} over the window"
        )
    return faults


def fifths(values: Sequence[float]) -> list[float]:
    """The means of five equal rounds."""
    ends = [round(number * len(values) / ROUNDS) for number in range(ROUNDS + 1)]
    return [fmean(values[start:end]) for start, end in pairwise(ends)]


def _least_move(values: Sequence[float]) -> float:
    """The smallest change of the fitted line, relative to the mean, beyond scatter."""
    length = len(values)
    error = _noise(values) / math.sqrt(length * (length**2 - 1) / 12)
    return SIGMAS * _few(length) * error * (length - 1) / fmean(values)


def _few(length: int) -> float:
    """The factor on bounds in standard errors because few differences estimate the noise.

    Differences of neighbours are worth about two thirds of independent values; 1 + 2 / freedom is
    close to Student's quantiles.
    """
    return 1 + 2 / (2 / 3 * (length - 1))


def _noise(values: Sequence[float]) -> float:
    """The standard deviation of values around a slow drift, from differences of neighbours.

    Whole numbers scatter at least by their rounding: a variance of 1/12.
    """
    differences = sum((after - before) ** 2 for before, after in pairwise(values)) / (
        2 * (len(values) - 1)
    )
    return math.sqrt(max(differences, 1 / 12))


def _slope(values: Sequence[float]) -> float:
    """The increase of the least-squares line per value."""
    return linear_regression(range(len(values)), values).slope


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
