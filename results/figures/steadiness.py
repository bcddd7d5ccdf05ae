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
  dips, by the rules above `stalls`. Neither shows in a line or in fifths.
- At a constant rate throughput says little: a gateway that falls behind shows in the mean latency
  of the seconds, which is judged by the second rule as well. In a closed loop one follows from the
  other.

A step is called steady only if a drift of DETECTABLE_MOVE would have been detected; with short
windows, large scatter or drivers without per-second figures it is unknown, which is reported as
such. `steady_over_repeats` judges drift over repeats where there are enough of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, linear_regression, median, variance
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat

from weighbridge.common.record import Record
from weighbridge.results.figures.statistics import (
    REPEATS_FOR_A_CLAIM,
    TTest,
    one_sample,
    t_quantile,
)
from weighbridge.results.numbers import listed, show_share
from weighbridge.results.run import Measurement
from weighbridge.suites import PARTS

# Stalls: seconds of a window in which almost nothing completed, and periodic dips.
#
# A stall is a run of whole seconds, each with at most QUIET of the mean, that chance cannot
# explain: at the mean rate of the window (which the stall itself lowers) the Poisson probability
# of so few completions is at most CHANCE over the square of the window's seconds, so that over
# all positions and lengths at most one window in 1,000 has one by chance. Requests may end in
# bursts, as many at once as there are workers: in a closed loop each worker would have completed
# two in that time.
#
# Dips are periodic if the seconds resemble themselves a period later: their autocorrelation at
# the period is beyond SIGMAS of its standard errors (M. S. Bartlett, J. R. Statist. Soc. Suppl.
# 8, 1946, with the first lags for what neighbours share), and the periodic part moves throughput
# by more than SWING. A pulse has its energy in many harmonics, of which a test of the largest
# line of the periodogram (R. A. Fisher, Proc. R. Soc. A 125, 1929) sees only one; the
# autocorrelation sees all. False alarms and detection rates: benchmarks/steadiness_rules.py,
# table in docs/statistics.md.


QUIET: Final = 0.10
CHANCE: Final = 0.001
SHARE: Final = 0.02
"""Stalls that take less of a window than this are reported without making it unsteady."""
BESIDE: Final = 0.4
"""The share of a second next to a stall that must be missing for it to count as part of the stall:
less is noise at 30 requests a second.
"""
PERIOD_SIGMAS: Final = 4.3
"""One in 1,000 windows has a lag beyond this many standard errors by chance."""
SWING: Final = 0.05
"""Standard deviation of the periodic part over the mean: a dip by 17 % for a tenth of the time."""
SHORTEST: Final = 4
"""The shortest period in seconds, and how often it must fit into the window."""


class Stall(Record):
    """Almost nothing completed for about `length_s` seconds from this second of the window on."""

    second: NonNegativeInt
    length_s: PositiveFloat


def stalls(counts: Sequence[float], workers: int) -> tuple[Stall, ...]:
    """The stalls in a window of whole seconds, from completions and outstanding requests."""
    length = len(counts)
    mean = math.fsum(counts) / length if length else 0.0
    found, start = [], 0
    while start < length:
        end = start
        while end < length and counts[end] <= QUIET * mean:
            end += 1
        expected = mean * (end - start)
        if (
            expected >= 2 * workers
            and _poisson(math.fsum(counts[start:end]), expected) <= CHANCE / length**2
        ):
            found.append(Stall(second=start, length_s=_length(counts, start, end)))
        start = max(end, start + 1)
    return tuple(found)


def stall_words(found: Sequence[Stall]) -> str:
    """`stalls of 3 s every 30 s`, `a stall of 3 s after 4 s`. Raises ValueError without."""
    if not found:
        raise ValueError("no stall")
    longest, shortest = (f"{of(max(1, round(one.length_s)) for one in found)}" for of in (max, min))
    much = f"{longest} s" if longest == shortest else f"{shortest} to {longest} s"
    if len(found) == 1:
        return f"a stall of {much} after {found[0].second} s"
    apart = [after.second - before.second for before, after in pairwise(found)]
    period = sum(apart) / len(apart)
    if len(found) > 2 and all(abs(one - period) <= max(1.5, 0.1 * period) for one in apart):
        return f"stalls of {much} every {period:.0f} s"
    starts = [str(stall.second) for stall in found[:4]]
    after = f"{', '.join(starts)} ..." if len(found) > 4 else listed(starts)
    return f"{len(found)} stalls of {much} after {after} s"


def period_s(counts: Sequence[float]) -> int | None:
    """The period of dips in seconds; None without, and for windows of fewer than 16 seconds."""
    length = len(counts)
    mean = math.fsum(counts) / length if length else 0.0
    rest = _detrended(counts)
    power = math.fsum(one * one for one in rest)
    if length < SHORTEST**2 or not mean or power <= 1e-12 * length * mean**2:
        return None

    def like(lag: int) -> float:
        return math.fsum(one * after for one, after in zip(rest, rest[lag:], strict=False)) / power

    lags = {lag: like(lag) for lag in range(1, length // SHORTEST + 1)}
    common = 1 + 2 * sum(max(0.0, lags[lag]) ** 2 for lag in range(1, SHORTEST))
    needed = max(PERIOD_SIGMAS * math.sqrt(common / length), SWING**2 * length * mean**2 / power)
    # What neighbours share is not a period: the correlation must have fallen in between.
    peaks = [
        lag
        for lag in range(SHORTEST, len(lags) + 1)
        if lags[lag] >= needed and min(lags[one] for one in range(1, lag)) < needed / 2
    ]
    return max(peaks, key=lags.__getitem__) if peaks else None


def _length(counts: Sequence[float], start: int, end: int) -> float:
    """How long a stall was: by what is missing; the seconds next to it count if much is."""
    mean = math.fsum(counts) / len(counts)
    level = median(count for count in counts if count > QUIET * mean)
    beside = [1 - counts[place] / level for place in (start - 1, end) if 0 <= place < len(counts)]
    inside = [1 - count / level for count in counts[start:end]]
    return math.fsum((*inside, *(part for part in beside if part > BESIDE)))


def _detrended(values: Sequence[float]) -> list[float]:
    """The values minus their least-squares line: a drift is not periodic."""
    if len(values) < 2:
        return [0.0] * len(values)
    line = linear_regression(range(len(values)), values)
    return [value - line.intercept - line.slope * place for place, value in enumerate(values)]


def _poisson(count: float, expected: float) -> float:
    """The probability of at most `count` where `expected` are expected."""
    return math.fsum(
        math.exp(one * math.log(expected) - expected - math.lgamma(one + 1))
        for one in range(math.floor(count) + 1)
    )


NOT_STEADY: Final = "not steady"
"""How notes begin on why a step was not steady."""
UNKNOWN_STEADINESS: Final = "steadiness is not known"
"""How notes begin if it is unknown whether a step was steady."""
SHORTEST_WINDOW_S: Final = 10
"""Whole seconds that a window must have: five rounds of two, and nine differences."""
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
    warmup_s: NonNegativeFloat | None = None
    """The warm-up that would have sufficed, for a step that was still warming up."""


def steadiness(measurement: Measurement, *, closed_loop: bool = True) -> Steadiness:
    """Whether a step was steady. `closed_loop`: the workload has no rate."""
    length = math.floor(measurement.window_s + EDGE_S)
    counts, sums_us = per_second(measurement, length)
    if not measurement.seconds:
        return _unknown("the driver reports no per-second figures")
    if length and not any(counts):
        return _unknown("nothing was done")
    faults, remarks = _stalled(counts, measurement.workers)
    drifts = not faults
    if length < SHORTEST_WINDOW_S and not faults:
        short = f"a window of {measurement.window_s:.0f} s is too short to tell"
        return _unknown(f"{short} (needs {SHORTEST_WINDOW_S} s)", *remarks)
    warmup_s = None
    if length >= SHORTEST_WINDOW_S:
        warming, warmup_s = _warming(counts, measurement.warmup_s)
        faults += [*warming, *_drifting(counts, "throughput")]
        if not closed_loop and all(counts):
            latencies = [total / count for total, count in zip(sums_us, counts, strict=True)]
            faults += _drifting(latencies, "mean latency")
    if faults:
        notes = (*(f"{NOT_STEADY}: {fault}" for fault in faults), *remarks)
        return Steadiness(steady=False, notes=notes, drifts=drifts, warmup_s=warmup_s)
    if _least_move(counts) > DETECTABLE_MOVE:
        hidden = f"throughput scatters so much that a drift of {show_share(DETECTABLE_MOVE)}"
        return _unknown(f"{hidden} would not have been detected", *remarks)
    return Steadiness(steady=True, notes=tuple(remarks))


def _unknown(why: str, *remarks: str) -> Steadiness:
    return Steadiness(steady=None, notes=(f"{UNKNOWN_STEADINESS}: {why}", *remarks))


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
        f"throughput after the first {cut} s is {show_share(abs(off))} "
        f"{'higher' if off > 0 else 'lower'} than over the complete window"
    )
    needed_s = math.ceil(warmup_s + cut)
    return [f"{change}; warm up for {needed_s} s or more"], needed_s


def _drifting(values: Sequence[float], what: str) -> list[str]:
    """Violations of the rule of five rounds beyond what the scatter explains."""
    length, mean, rounds = len(values), fmean(values), fifths(values)
    spread = (max(rounds) - min(rounds)) / mean
    scatter = _noise(values) / math.sqrt(length / ROUNDS) / mean
    faults = []
    if spread > max(RANGE_BOUND, RANGE_SIGMAS * _few(length) * scatter):
        faults.append(f"{what} of fifths of the window varies by {show_share(spread)} of its mean")
    move = linear_regression(range(length), values).slope * (length - 1) / mean
    if abs(move) > max(MOVE_BOUND, _least_move(values)):
        way = "rises" if move > 0 else "falls"
        faults.append(f"{what} {way} by {show_share(abs(move))} over the window")
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
    """The factor on standard errors, as few differences estimate the noise: they are worth two
    thirds of independent values, so 1 + 2 / freedom is near Student's quantiles.
    """
    return 1 + 2 / (2 / 3 * (length - 1))


def _noise(values: Sequence[float]) -> float:
    """The standard deviation around a slow drift, from differences of neighbours; at least that of
    rounding whole numbers, 1/12.
    """
    differences = sum((after - before) ** 2 for before, after in pairwise(values)) / (
        2 * (len(values) - 1)
    )
    return math.sqrt(max(differences, 1 / 12))


# Steadiness over repeats: what one window cannot decide alone, repeats can together.
#
# Each window has a *move*: the rise of the least-squares line from its start to its end, relative
# to its mean. By chance a window of 3 s moves by 10 to 30 % either way. What every repeat does is
# not chance: caches that still fill, a warm-up that is too short. What only some repeats do is part
# of their spread, and so of every interval computed from them.
#
# - Steady: the 90 % interval of the mean move (Student's) lies within MOST. These are two one-sided
#   tests at 5 % each, for equivalence (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987): a
#   drift of MOST or more is called steady at most 5 times in 100.
# - Not steady: its 98 % interval lies beyond LEAST and the window's *grain*, on one side. Less than
#   2 in 100 of steps without drift do. The grain is what a window cannot resolve: workers in step
#   complete a batch more or less in a second than in the next, in each repeat alike if each starts
#   alike.
# - In windows of 10 s and more, not steady as well: fifths of the window, averaged over the
#   repeats, whose range is beyond RANGE_BOUND and beyond chance, by their scatter from repeat to
#   repeat. It is the rule of single windows for what has no line.
# - Otherwise it is unknown, and the largest drift not ruled out is reported. It is no doubt about a
#   comparison, whose sides were measured in the same window after the same warm-up.
#
# Error rates: benchmarks/steadiness_rules.py, table in docs/statistics.md. Whole seconds are fine
# enough: for a window of 3 s with even noise, a finer series would make the error of the move 6 %
# smaller. A partial last second is weighted by its length.


MOST: Final = 0.20
"""A step called steady does not drift by this much: its halves differ by less than 10 %."""
LEAST: Final = 0.05
"""Drifts up to this are ignored, however certain."""
SURE: Final = 0.98
"""Confidence of the interval for calling a step not steady."""
EQUIVALENT: Final = 0.90
"""Confidence of the interval for calling it steady."""


def window_move(measurement: Measurement, *, closed_loop: bool = True) -> float | None:
    """The change of a step's window from start to end, relative to its mean: 0.1 is 10 % up. Of
    throughput; at a rate (not `closed_loop`) of the mean latency. None if unknown, for fewer than
    two seconds, or without operations.
    """
    seconds = math.floor(measurement.window_s + EDGE_S)
    cut_s = measurement.window_s - seconds
    lengths_s = [1.0] * seconds + ([cut_s] if cut_s > EDGE_S else [])
    values = _judged(measurement, lengths_s, closed_loop=closed_loop) if seconds > 1 else []
    return _move(values, lengths_s) if values else None


def window_shape(measurement: Measurement, *, closed_loop: bool = True) -> tuple[float, ...]:
    """The means of the fifths of a window over their own mean, of what `window_move` judges; empty
    for a window of fewer than SHORTEST_WINDOW_S, or one that has a second without operations where
    latency is judged.
    """
    lengths_s = [1.0] * math.floor(measurement.window_s + EDGE_S)
    values = _judged(measurement, lengths_s, closed_loop=closed_loop)
    if len(values) < SHORTEST_WINDOW_S:
        return ()
    rounds = fifths(values)
    return tuple(each / fmean(rounds) for each in rounds)


def _judged(
    measurement: Measurement, lengths_s: Sequence[float], *, closed_loop: bool
) -> list[float]:
    """The rate in each of the first seconds, or the mean latency; empty if it is not known."""
    counts, sums_us = per_second(measurement, len(lengths_s))
    if not any(counts) or not (closed_loop or all(counts)):
        return []
    totals, divisors = (counts, lengths_s) if closed_loop else (sums_us, counts)
    return [total / divisor for total, divisor in zip(totals, divisors, strict=True)]


def window_grain(measurement: Measurement) -> float:
    """The largest move of a closed loop's constant throughput by workers in step, relative to its
    mean.

    With W workers in step, completions by any time are within W/2 of the line through them. In a
    window of T whole seconds with n operations each that moves the least-squares line through the
    seconds by at most 12 W / (n (T + 1)).
    """
    seconds = max(1, math.floor(measurement.window_s + EDGE_S))
    done = sum(second.count for second in measurement.seconds)
    if not done:
        return math.inf
    return 12 * measurement.workers * measurement.window_s / (done * (seconds + 1))


def steady_over_repeats(
    moves: Sequence[float | None],
    *,
    grain: float = 0.0,
    shapes: Sequence[Sequence[float]] = (),
) -> Steadiness:
    """Whether a repeated step was steady, from the move of each repeat's window (`window_move`; at
    least 5).

    `grain` is the coarsest of the windows (`window_grain`); `shapes` are those of windows long
    enough (`window_shape`).
    """
    known = [move for move in moves if move is not None]
    if len(known) < len(moves) or len(known) < REPEATS_FOR_A_CLAIM:
        have = f"{len(known)}" if len(known) == len(moves) else f"{len(known)} of {len(moves)}"
        needs = f"judging it over repeats needs the seconds of {REPEATS_FOR_A_CLAIM} repeats"
        return _unknown(f"{needs}, and this has {have}")
    within = one_sample(known)
    most, middle = _farthest(within, EQUIVALENT), abs(within.difference)
    spread = _common_spread([shape for shape in shapes if shape])
    fault, way = "", "rises" if within.difference > 0 else "falls"
    if 2 * middle - _farthest(within, SURE) > LEAST + grain:
        fault = f"it {way} by {show_share(middle)} from the start of the window to its end"
    elif spread > RANGE_BOUND + grain:
        fault = f"fifths of the window vary by {show_share(spread)} of its mean in the same way"
    if fault:
        notes = (f"{NOT_STEADY}: over {len(known)} repeats {fault}",)
        return Steadiness(steady=False, notes=notes)
    if most <= MOST:
        return Steadiness(steady=True)
    hidden = (
        f"over {len(known)} repeats a drift of {show_share(most)} from the start of the window to "
        f"its end is not ruled out (steady: less than {show_share(MOST)})"
    )
    return Steadiness(steady=None, notes=(f"{UNKNOWN_STEADINESS}: {hidden}",))


def _common_spread(shapes: Sequence[Sequence[float]]) -> float:
    """The range of the mean fifths over repeats, if chance does not explain it; else 0."""
    if len(shapes) < REPEATS_FOR_A_CLAIM:
        return 0.0
    rounds = list(zip(*shapes, strict=True))
    # Fifths of one window are not independent: their scatter is worth little more than one's.
    freedom = len(shapes) - 1
    error = math.sqrt(fmean(variance(one) for one in rounds) / len(shapes))
    means = [fmean(one) for one in rounds]
    spread = max(means) - min(means)
    return spread if spread > RANGE_SIGMAS * (1 + 2 / freedom) * error else 0.0


def _farthest(test: TTest, confidence: float) -> float:
    """The far end of an interval of this confidence, in either direction."""
    return abs(test.difference) + t_quantile((1 + confidence) / 2, test.freedom) * test.error


def _move(values: Sequence[float], lengths_s: Sequence[float]) -> float:
    """The rise of the least-squares line through values held for some time, over the mean."""
    ends = list(accumulate(lengths_s, initial=0.0))
    span = ends[-1]
    middle, mean = span / 2, _weighted(values, lengths_s) / span
    places = [(start + end) / 2 - middle for start, end in pairwise(ends)]
    across = _weighted([place**2 for place in places], lengths_s)
    products = [place * (value - mean) for place, value in zip(places, values, strict=True)]
    return _weighted(products, lengths_s) / across * span / mean


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True))
