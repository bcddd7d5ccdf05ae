"""Steadiness over repeats: what windows of a few seconds cannot tell one by one, several of the
same step tell together.

Each window has a *move*: the rise of the line of least squares from its start to its end, as a
share of its mean. By chance a window of 3 s moves by 10 to 30 % either way. What every repeat does
again is no chance: caches that still fill, a warm-up that is too short. What one repeat does and
another does not is in the spread of the repeats, and so in every interval that is made of them.

- Steady: the 90 % interval of the mean move (Student's) lies within MOST. Two one-sided tests at 5
  % each, for equivalence (D. J. Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987): a drift of MOST
  or more is called steady at most 5 times in 100.
- Not steady: its 98 % interval lies beyond LEAST and the window's *grain*, on one side. Of steps
  that do not drift that are less than 2 in 100. The grain is what a window cannot resolve: workers
  that move in step do a batch more or less in a second than in the next, and where each repeat
  starts alike they do so in each repeat alike.
- What one step is too noisy to tell, those beside it help to: the other worker counts and
  operations of the same layout, which had the same warm-up. Where the interval of all their moves
  together lies within MOST, and its own mean does, it is steady too. A drift of MOST in all of them
  is called steady at most 9 times in 100; in one alone it takes a drift twice as large to be as
  sure.
- Else it is not known, and said how large a drift is not ruled out: `Steadiness.most`. The mean of
  a window that drifts by that much is half of it from either end, so a ratio that clears its bound
  by both sides' halves does so whatever the drift was.

How often each is said of what: benchmarks/steadiness_rules.py, with its table in
docs/statistics.md. Whole seconds are fine enough: of a window of 3 s with even noise, a finer
series would make the error of the move 6 % smaller. A last second that the window cuts counts for
as long as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from weighbridge.results.analysis.steps.steadiness import EDGE_S, UNTOLD, Steadiness
from weighbridge.results.record import Measurement
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, TTest, one_sample, t_quantile

MOST: Final = 0.20
"""A drift from end to end that a step that is called steady does not have: its two halves differ by
10 %.
"""
LEAST: Final = 0.05
"""A drift up to this is none, however sure it is."""
SURE: Final = 0.98
"""Confidence of the interval by which a step is called not steady."""
EQUIVALENT: Final = 0.90
"""Confidence of the interval by which it is called steady."""


def window_move(measurement: Measurement, *, closed_loop: bool = True) -> float | None:
    """By how much a step moves from the start of its window to the end, as a share of its mean: 0.1
    of one that rises by 10 %.

    Of all operations together: their throughput; at a constant rate (not `closed_loop`) their mean
    latency. None where the driver tells no figures by the second, the window has less than two
    seconds, or nothing was done in it (or in one of its seconds).
    """
    whole = math.floor(measurement.window_s + EDGE_S)
    if whole < 2 or not measurement.seconds:
        return None
    cut_s = measurement.window_s - whole
    lengths_s = [1.0] * whole + ([cut_s] if cut_s > EDGE_S else [])
    counts, sums_us = [0.0] * len(lengths_s), [0.0] * len(lengths_s)
    for one in measurement.seconds:
        if one.second < len(counts):
            counts[one.second] += one.count
            sums_us[one.second] += one.sum_us
    if not any(counts) or not (closed_loop or all(counts)):
        return None
    if closed_loop:
        return _move(
            [count / length for count, length in zip(counts, lengths_s, strict=True)], lengths_s
        )
    return _move([total / count for total, count in zip(sums_us, counts, strict=True)], lengths_s)


def window_grain(measurement: Measurement) -> float:
    """The largest move that workers in step make of a closed loop's constant throughput, as a share
    of its mean.

    With W workers in step the operations that are done by any time are within W/2 of the line
    through them. Of a window of T whole seconds with n operations each, that moves the line of
    least squares through the seconds by at most 12 W / (n (T + 1)).
    """
    seconds = max(1, math.floor(measurement.window_s + EDGE_S))
    done = sum(one.count for one in measurement.seconds)
    return (
        12 * measurement.workers * measurement.window_s / (done * (seconds + 1))
        if done
        else math.inf
    )


def steady_over_repeats(
    moves: Sequence[float | None], beside: Sequence[float | None] = (), *, grain: float = 0.0
) -> Steadiness:
    """Whether a step that was repeated was steady, by the move of each repeat's window
    (`window_move`; of at least 5).

    `beside` are the moves of all other steps of the same layout; `grain` is the coarsest of the
    windows' (`window_grain`).
    """
    known = [move for move in moves if move is not None]
    if len(known) < len(moves) or len(known) < REPEATS_FOR_A_CLAIM:
        lack = (
            f"has {len(known)}"
            if len(known) == len(moves)
            else f"knows {len(known)} of {len(moves)}"
        )
        why = (
            f"{UNTOLD}: telling it over repeats takes the seconds of {REPEATS_FOR_A_CLAIM} "
            f"repeats, and this {lack}"
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
        return Steadiness(steady=False, notes=(f"not steady: {fault}",), most=most)
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
        steady=None, notes=(f"{UNTOLD}: {hidden} (steady: less than {_percent(MOST)})",), most=most
    )


def _farthest(told: TTest) -> float:
    """The far end of the interval at EQUIVALENT, whichever way."""
    return abs(told.difference) + t_quantile((1 + EQUIVALENT) / 2, told.freedom) * told.error


def _move(values: Sequence[float], lengths_s: Sequence[float]) -> float:
    """The rise of the line of least squares through values that each hold for a time, over all of
    it, as a share of the mean.
    """
    ends = [0.0]
    for length in lengths_s:
        ends.append(ends[-1] + length)
    span = ends[-1]
    places = [(start + end) / 2 for start, end in pairwise(ends)]
    whole = sum(value * length for value, length in zip(values, lengths_s, strict=True)) / span
    middle = sum(place * length for place, length in zip(places, lengths_s, strict=True)) / span
    across = sum(
        length * (place - middle) ** 2 for place, length in zip(places, lengths_s, strict=True)
    )
    along = sum(
        length * (place - middle) * (value - whole)
        for place, length, value in zip(places, lengths_s, values, strict=True)
    )
    return along / across * span / whole


def _percent(share: float) -> str:
    return f"{abs(share) * 100:.0f} %"
