"""Steadiness over repeats: what one window cannot decide alone, repeats can together.

Each window has a *move*: the rise of the least-squares line from its start to its end, relative to
its mean. By chance a window of 3 s moves by 10 to 30 % either way. What every repeat does is not
chance: caches that still fill, a warm-up that is too short. What only some repeats do is part of
their spread, and so of every interval computed from them.

- Steady: the 90 % interval of the mean move (Student's) lies within MOST. These are two one-sided
  tests at 5 % each, for equivalence (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987): a
  drift of MOST or more is called steady at most 5 times in 100.
- Not steady: its 98 % interval lies beyond LEAST and the window's *grain*, on one side. Less than 2
  in 100 of steps without drift do. The grain is what a window cannot resolve: workers in step
  complete a batch more or less in a second than in the next, and if each repeat starts alike they
  do so in each repeat alike.
- In windows of 10 s and more, not steady as well: fifths of the window, averaged over the repeats,
  whose range is beyond RANGE_BOUND and beyond chance, by their scatter from repeat to repeat. It is
  the rule of single windows (`results.analysis.steps.steadiness`) for what has no line.
- Other steps help if one step is too noisy: the other worker counts and operations of the same
  layout, which had the same warm-up. If the interval of all their moves together lies within MOST,
  and so does its own mean, it is steady too. A drift of MOST in all of them is called steady at
  most 9 times in 100; for one alone it takes a drift twice as large to be as certain.
- Otherwise it is unknown, and the largest drift not ruled out is reported: `Steadiness.most`. The
  mean of a window that drifts by that much is off by half of it at either end, so a ratio that
  clears its bound by both sides' halves does so for any such drift.

Error rates: benchmarks/steadiness_rules.py, table in docs/statistics.md. Whole seconds are fine
enough: for a window of 3 s with even noise, a finer series would make the error of the move 6 %
smaller. A partial last second is weighted by its length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, variance
from typing import Final

from weighbridge.results.analysis.steps.steadiness import (
    EDGE_S,
    NOT_STEADY,
    RANGE_BOUND,
    RANGE_SIGMAS,
    SHORTEST_WINDOW_S,
    UNKNOWN_STEADINESS,
    Steadiness,
    fifths,
    per_second,
)
from weighbridge.results.record import Measurement
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, TTest, one_sample, t_quantile

MOST: Final = 0.20
"""A step called steady does not drift by this much: its halves differ by less than 10 %."""
LEAST: Final = 0.05
"""Drifts up to this are ignored, however certain."""
SURE: Final = 0.98
"""Confidence of the interval for calling a step not steady."""
EQUIVALENT: Final = 0.90
"""Confidence of the interval for calling it steady."""


def window_move(measurement: Measurement, *, closed_loop: bool = True) -> float | None:
    """The change from start to end of a step's window, relative to its mean: 0.1 is 10 % up.

    Throughput of all operations together; at a constant rate (not `closed_loop`) their mean
    latency. None if the driver reports no per-second figures, the window has fewer than two
    seconds, or nothing was done in it (or in one of its seconds).
    """
    seconds = math.floor(measurement.window_s + EDGE_S)
    if seconds < 2 or not measurement.seconds:
        return None
    cut_s = measurement.window_s - seconds
    lengths_s = [1.0] * seconds + ([cut_s] if cut_s > EDGE_S else [])
    counts, sums_us = per_second(measurement, len(lengths_s))
    if not any(counts) or not (closed_loop or all(counts)):
        return None
    parts = (
        zip(counts, lengths_s, strict=True) if closed_loop else zip(sums_us, counts, strict=True)
    )
    return _move([total / divisor for total, divisor in parts], lengths_s)


def window_shape(measurement: Measurement, *, closed_loop: bool = True) -> tuple[float, ...]:
    """The means of the fifths of a window over their own mean, of what `window_move` judges; empty
    for a window of fewer than SHORTEST_WINDOW_S, or one that has a second without operations where
    latency is judged.
    """
    seconds = math.floor(measurement.window_s + EDGE_S)
    counts, sums_us = per_second(measurement, seconds)
    if seconds < SHORTEST_WINDOW_S or not any(counts) or not (closed_loop or all(counts)):
        return ()
    values = (
        counts
        if closed_loop
        else [total / count for total, count in zip(sums_us, counts, strict=True)]
    )
    found = fifths(values)
    return tuple(one / fmean(found) for one in found)


def window_grain(measurement: Measurement) -> float:
    """The largest move of a closed loop's constant throughput by workers in step, relative to its
    mean.

    With W workers in step, completions by any time are within W/2 of the line through them. In a
    window of T whole seconds with n operations each that moves the least-squares line through the
    seconds by at most 12 W / (n (T + 1)).
    """
    seconds = max(1, math.floor(measurement.window_s + EDGE_S))
    done = sum(one.count for one in measurement.seconds)
    return (
        12 * measurement.workers * measurement.window_s / (done * (seconds + 1))
        if done
        else math.inf
    )


def steady_over_repeats(
    moves: Sequence[float | None],
    beside: Sequence[float | None] = (),
    *,
    grain: float = 0.0,
    shapes: Sequence[Sequence[float]] = (),
) -> Steadiness:
    """Whether a repeated step was steady, from the move of each repeat's window (`window_move`; at
    least 5).

    `beside` are the moves of all other steps of the layout; `grain` is the coarsest of the windows
    (`window_grain`); `shapes` are those of windows long enough (`window_shape`).
    """
    known = [move for move in moves if move is not None]
    if len(known) < len(moves) or len(known) < REPEATS_FOR_A_CLAIM:
        have = f"{len(known)}" if len(known) == len(moves) else f"{len(known)} of {len(moves)}"
        why = (
            f"{UNKNOWN_STEADINESS}: judging it over repeats needs the seconds of "
            f"{REPEATS_FOR_A_CLAIM} "
            f"repeats, and this has {have}"
        )
        return Steadiness(steady=None, notes=(why,))
    within = one_sample(known)
    most = _farthest(within)
    if (
        abs(within.difference) - t_quantile((1 + SURE) / 2, within.freedom) * within.error
        > LEAST + grain
    ):
        way = "rises" if within.difference > 0 else "falls"
        fault = (
            f"over {len(known)} repeats it {way} by {_percent(within.difference)} from the "
            "start of the window to its end"
        )
        return Steadiness(steady=False, notes=(f"{NOT_STEADY}: {fault}",), most=most)
    spread = _common_spread([shape for shape in shapes if shape])
    if spread > RANGE_BOUND + grain:
        fault = (
            f"over {len(known)} repeats fifths of the window vary by {_percent(spread)} of its "
            "mean in the same way"
        )
        return Steadiness(steady=False, notes=(f"{NOT_STEADY}: {fault}",), most=most)
    others = [move for move in beside if move is not None]
    if others and most > MOST:
        most = min(most, max(abs(within.difference), _farthest(one_sample([*known, *others]))))
    if most <= MOST:
        return Steadiness(steady=True, most=most)
    hidden = (
        f"over {len(known)} repeats a drift of {_percent(most)} from the start of the window "
        "to its end is not ruled out"
    )
    return Steadiness(
        steady=None,
        notes=(f"{UNKNOWN_STEADINESS}: {hidden} (steady: less than {_percent(MOST)})",),
        most=most,
    )


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


def _farthest(test: TTest) -> float:
    """The far end of the interval at EQUIVALENT, in either direction."""
    return abs(test.difference) + t_quantile((1 + EQUIVALENT) / 2, test.freedom) * test.error


def _move(values: Sequence[float], lengths_s: Sequence[float]) -> float:
    """The rise of the least-squares line through values held for some time, over the mean."""
    ends = [0.0]
    for length in lengths_s:
        ends.append(ends[-1] + length)
    span = ends[-1]
    places = [(start + end) / 2 for start, end in pairwise(ends)]
    mean = sum(value * length for value, length in zip(values, lengths_s, strict=True)) / span
    middle = sum(place * length for place, length in zip(places, lengths_s, strict=True)) / span
    across = sum(
        length * (place - middle) ** 2 for place, length in zip(places, lengths_s, strict=True)
    )
    along = sum(
        length * (place - middle) * (value - mean)
        for place, length, value in zip(places, lengths_s, values, strict=True)
    )
    return along / across * span / mean


def _percent(share: float) -> str:
    return f"{abs(share) * 100:.0f} %"
