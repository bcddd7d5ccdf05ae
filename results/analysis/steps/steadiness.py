"""Steadiness: whether a step did the same from the first second of its window to the last, by rule
and not by eye.

Judged are whole seconds of the window, all operations together; a second in which nothing completed
counts as 0, and a last one that is not whole is left out. The workload's own warm-up lies before
the window: it is the minimum, never shortened.

- Warm-up: MSER-5 (K. P. White, Simulation 69 (6), 1997) puts the cut where the marginal standard
  error of what comes after it is least, over means of batches of 5 seconds and within the first
  half; windows with fewer than ten such batches have smaller ones. Histograms are of whole windows,
  so nothing is cut off: where throughput after the cut differs from that of the whole window by
  more than WARM_BOUND, the step was still warming up.
- Steady state: five equal rounds whose range is at most RANGE_BOUND of their mean, while the line
  that is fitted to the seconds moves by at most MOVE_BOUND of it from end to end: the rule of
  SNIA's Solid State Storage Performance Test Specification. fio's `steadystate=iops_slope` asks the
  second half of this alone.
- Noise: in windows of seconds instead of hours, chance alone passes those bounds. What is beyond
  one must therefore also be more than the scatter from second to second explains, which is taken
  from the differences of neighbours (J. von Neumann, Annals of Mathematical Statistics 12, 1941),
  where a slow drift does not show. Counting is part of that scatter: at 30 op/s it is large.
- Stalls: seconds in which nothing or nearly nothing completed, whatever the length of the window,
  and dips that come back like a clock, by the rules of `results.analysis.steps.stalls`. Neither
  fits a line or fifths of a window.
- At a constant rate throughput tells little: a gateway that falls behind shows in the mean latency
  of the seconds, which is judged by the second rule as well. In a closed loop the one follows from
  the other.

A step is called steady only where a drift of TOLD_MOVE would have been seen; short windows, large
scatter and drivers without figures by the second leave it unknown, which is said and is neither of
the two. `results.analysis.steps.steady_repeats` judges short windows.
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

UNTOLD: Final = "steadiness is not known"
"""What notes begin with where it cannot be told whether a step was steady."""
FLOOR_S: Final = 10
"""Whole seconds that a window must have: five rounds of two seconds, and nine differences to know
the scatter from.
"""
ROUNDS: Final = 5
RANGE_BOUND: Final = 0.20
MOVE_BOUND: Final = 0.10
WARM_BOUND: Final = 0.05
BATCH_S: Final = 5
BATCHES: Final = 10
"""Batches that a window should have for a cut to be looked for among them."""
SIGMAS: Final = 2.5
"""What differs by more than so many of its standard errors is not chance: one in 80, both ways, by
a normal distribution.
"""
RANGE_SIGMAS: Final = 4.3
"""The same of the range of five: near the 98th percentile of theirs."""
TOLD_MOVE: Final = 0.30
"""The drift from end to end that must stand out of the scatter before a step is called steady."""
EDGE_S: Final = 0.05
"""By so much a window may be shorter than a whole second and its last one still counts as whole."""


class Steadiness(Record):
    """What was found; None: it cannot be told, and `notes` say why."""

    steady: bool | None
    notes: tuple[str, ...] = ()
    most: NonNegativeFloat | None = None
    """Over repeats (`results.analysis.steps.steady_repeats`): the largest drift from start to end
    of the window that is not ruled out, as a share of the mean; None where nothing is known of it."""


def steadiness(measurement: Measurement, *, closed_loop: bool = True) -> Steadiness:
    """Whether a step was steady. `closed_loop`: the workload names no rate."""
    if not measurement.seconds:
        return Steadiness(
            steady=None, notes=(f"{UNTOLD}: the driver tells no figures by the second",)
        )
    length = math.floor(measurement.window_s + EDGE_S)
    counts, sums_us = [0.0] * length, [0.0] * length
    for one in measurement.seconds:
        if one.second < length:
            counts[one.second] += one.count
            sums_us[one.second] += one.sum_us
    if length and not any(counts):
        return Steadiness(steady=None, notes=(f"{UNTOLD}: nothing was done",))
    faults, remarks = _stalled(counts, measurement.workers)
    if length < FLOOR_S and not faults:
        short = (
            f"{UNTOLD}: a window of {measurement.window_s:.0f} s is too short to tell (needs "
            f"{FLOOR_S} s)"
        )
        return Steadiness(steady=None, notes=(short, *remarks))
    told = length >= FLOOR_S and _seen(counts) <= TOLD_MOVE
    if length >= FLOOR_S:
        faults += [*_warming(counts, measurement.warmup_s), *_drifting(counts, "throughput")]
    if length >= FLOOR_S and not closed_loop and all(counts):
        latencies = [total / count for total, count in zip(sums_us, counts, strict=True)]
        faults += _drifting(latencies, "mean latency")
    if faults:
        return Steadiness(
            steady=False, notes=(*(f"not steady: {fault}" for fault in faults), *remarks)
        )
    if not told:
        hidden = (
            f"throughput scatters so much that a drift of {_percent(TOLD_MOVE)} would not "
            "have been seen"
        )
        return Steadiness(steady=None, notes=(f"{UNTOLD}: {hidden}", *remarks))
    return Steadiness(steady=True, notes=tuple(remarks))


def mser_cut(values: Sequence[float], batch: int) -> int:
    """How many of the first values to leave out by MSER: a multiple of `batch`, at most half of
    them.
    """
    size = len(values) // batch
    # About their mean, so that the difference of sums of squares keeps its digits.
    whole = fmean(values)
    means = [fmean(values[number * batch : (number + 1) * batch]) - whole for number in range(size)]
    total = squares = 0.0
    errors = []
    for kept, value in enumerate(reversed(means), start=1):
        total, squares = total + value, squares + value**2
        errors.append(max(0.0, squares - total**2 / kept) / kept**2)
    errors.reverse()
    # What is less by rounding alone, as of a constant series, needs no cut.
    least = min(errors[: size // 2 + 1]) + 1e-12 * whole**2
    return batch * next(skipped for skipped, error in enumerate(errors) if error <= least)


def _stalled(counts: Sequence[float], workers: int) -> tuple[list[str], list[str]]:
    """What stalls and dips that come back there are: those that make a step unsteady, and those
    that are only said.
    """
    found = stalls(counts, workers)
    if found and sum(one.length_s for one in found) >= SHARE * len(counts):
        return [stall_words(found)], []
    period = period_s(counts)
    faults = [] if period is None else [f"throughput dips every {period} s"]
    return faults, [stall_words(found)] if found else []


def _warming(counts: Sequence[float], warmup_s: float) -> list[str]:
    """That the step was still warming up, and what warm-up would have done."""
    length, whole = len(counts), fmean(counts)
    cut = mser_cut(counts, max(1, min(BATCH_S, length // BATCHES)))
    if not cut:
        return []
    after = fmean(counts[cut:])
    off = after / whole - 1
    chance = (
        SIGMAS * _few(length) * _noise(counts) * math.sqrt(1 / (length - cut) - 1 / length) / whole
    )
    if abs(off) <= max(WARM_BOUND, chance):
        return []
    change = (
        f"throughput after the first {cut} s is {_percent(abs(off))} "
        f"{'higher' if off > 0 else 'lower'} than of the whole window"
    )
    return [f"{change}; warm up for at least {math.ceil(warmup_s + cut)} s"]


def _drifting(values: Sequence[float], what: str) -> list[str]:
    """What of the rule of five rounds does not hold, beyond what the scatter explains."""
    length, whole, noise = len(values), fmean(values), _noise(values)
    ends = [round(number * length / ROUNDS) for number in range(ROUNDS + 1)]
    rounds = [fmean(values[start:end]) for start, end in pairwise(ends)]
    spread, scatter = (
        (max(rounds) - min(rounds)) / whole,
        noise / math.sqrt(length / ROUNDS) / whole,
    )
    faults = []
    if spread > max(RANGE_BOUND, RANGE_SIGMAS * _few(length) * scatter):
        faults.append(f"{what} of fifths of the window differs by {_percent(spread)} of its mean")
    move = _slope(values) * (length - 1) / whole
    if abs(move) > max(MOVE_BOUND, _seen(values)):
        faults.append(
            f"{what} {'rises' if move > 0 else 'falls'} by {_percent(abs(move))} over the window"
        )
    return faults


def _seen(values: Sequence[float]) -> float:
    """The least move of the fitted line from end to end, as a share of the mean, that the scatter
    does not explain.
    """
    length = len(values)
    error = _noise(values) / math.sqrt(length * (length**2 - 1) / 12)
    return SIGMAS * _few(length) * error * (length - 1) / fmean(values)


def _few(length: int) -> float:
    """By how much bounds in standard errors are wider for the noise being known from so few
    differences alone.

    Differences of neighbours tell about two thirds as much as independent values; 1 + 2 / freedom
    is near Student's quantiles.
    """
    return 1 + 2 / (2 / 3 * (length - 1))


def _noise(values: Sequence[float]) -> float:
    """The standard deviation of single values about a slow drift, from the differences of
    neighbours.

    Whole numbers scatter by their rounding at least: a variance of 1/12.
    """
    differences = sum((after - before) ** 2 for before, after in pairwise(values)) / (
        2 * (len(values) - 1)
    )
    return math.sqrt(max(differences, 1 / 12))


def _slope(values: Sequence[float]) -> float:
    """By how much the line of least squares rises from a value to the next."""
    return linear_regression(range(len(values)), values).slope


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"
