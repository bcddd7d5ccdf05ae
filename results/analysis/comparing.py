"""Comparing every layout with the first, metric by metric and cell by cell, with verdicts.

A difference is claimed if all of this holds: no doubt touches either side, so that each has at
least 5 repeats; the interval, not just the point, clears the practical threshold: Welch's test on
the logarithms puts the difference beyond it, after Benjamini and Hochberg's correction over all
cells of all metrics; and the difference is beyond the noise floor, if an A/A control measured it.
If the complete 95 % interval lies within the threshold, the two are equivalent. Findings over all
worker counts are corrected for their own number. Layouts are compared within a driver, never across
drivers; a layout's A/A control is compared with that layout alone, for the noise floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Final

from weighbridge.results.analysis.comparison import Comparison, Effect, NoiseFloor, Verdict
from weighbridge.results.analysis.contrast import contrasts
from weighbridge.results.analysis.noise import floor_of, floors, unused
from weighbridge.results.analysis.sentence import sentence
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import PairDoubt, graves
from weighbridge.results.metrics import METRICS
from weighbridge.results.statistics import LEVEL, corrected, next_level
from weighbridge.suites import Bounds

NO_CONTROLS: Final[Mapping[str, str]] = MappingProxyType({})


def compare(
    rows: Sequence[Row],
    controls: Mapping[str, str] = NO_CONTROLS,
    bounds: Bounds | None = None,
    between: Sequence[PairDoubt] = (),
) -> Comparison:
    """Compare every layout of a table with its first, in table order: each kind of requests over
    all worker counts, then each count.

    `controls` maps A/A controls to their layouts; `bounds` are the suite's; `between` are doubts
    about pairs of layouts. Raises ValueError without rows.
    """
    own = [row for row in rows if row.layout not in controls]
    layouts = tuple(dict.fromkeys(row.layout for row in own))
    if not layouts:
        raise ValueError("there are no rows to compare")
    found = floors(rows, controls)
    sides = [(layouts[0], other) for other in layouts[1:]]
    made = contrasts(own, sides, between, in_blocks=True)
    rivals = contrasts(own, list(combinations(layouts[1:], 2)), between, in_blocks=True)
    rivals = [one for one in rivals if one.workers is None and one.metric == "throughput"]
    judged, tests = judge([*made, *rivals], bounds or Bounds(), found)
    effects = with_sentences(judged)
    return Comparison(
        baseline=layouts[0],
        subjects=layouts[1:],
        effects=effects[: len(made)],
        rivals=effects[len(made) :],
        noise=found,
        unused=unused(rows, controls, found),
        tests=tests,
    )


def judge(
    found: Sequence[Effect], bounds: Bounds, noise: Sequence[NoiseFloor] = ()
) -> tuple[tuple[Effect, ...], int]:
    """The effects with their verdicts, in order, and the number of tests of cells.

    All cells are corrected together, whatever their metric; so are, separately, all effects over
    all worker counts.
    """
    bounded = [
        one.model_copy(
            update={"bound": METRICS[one.metric].bound_of(bounds), "noise": floor_of(noise, one)}
        )
        for one in found
    ]
    beyond = [_beyond(one) for one in bounded]
    with_p = [number for number, p in enumerate(beyond) if p is not None]
    families = {
        overall: [number for number in with_p if (bounded[number].workers is None) == overall]
        for overall in (True, False)
    }
    q_of: dict[int, float] = {}
    levels: dict[bool, float] = {}
    for family, members in families.items():
        q_values = corrected([p for number in members if (p := beyond[number]) is not None])
        q_of |= zip(members, q_values, strict=True)
        levels[family] = (
            next_level(len(members), sum(q <= LEVEL for q in q_values)) if members else LEVEL
        )
    judged = []
    for number, one in enumerate(bounded):
        family, tested = one.workers is None, one.tested
        smallest = (
            None if tested is None else tested.smallest(levels[family], one.bound * one.drift)
        )
        made = one.model_copy(
            update={"q": q_of.get(number), "tests": len(families[family]), "smallest": smallest}
        )
        judged.append(made.model_copy(update={"verdict": verdict(made)}))
    return tuple(judged), len(families[False])


def with_sentences(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Judged effects of two rows each, with sentences."""
    return tuple(one.model_copy(update={"text": sentence(one)}) for one in effects)


def _beyond(one: Effect) -> float | None:
    """The p-value of exceeding the threshold; for latencies in bins, of any difference."""
    return one.p if one.tested is None else one.tested.p_beyond(one.bound * one.drift)


def verdict(one: Effect) -> Verdict:
    """The verdict, from corrected p-value, practical threshold and noise floor."""
    if one.ratio is None or graves(one.doubts):
        return "not comparable"
    if one.doubts:
        return "provisional"
    if one.bins is not None and (one.bins[0].touches(one.bins[1]) or one.least < one.bound):
        return "not significant"
    if one.q is not None and one.q <= LEVEL and (one.noise is None or one.least > one.noise):
        return "better" if METRICS[one.metric].better_at(one.ratio.value) else "worse"
    low, high = one.ratio.low, one.ratio.high
    if (
        one.bins is None
        and low is not None
        and high is not None
        and one.drift / one.bound < low
        and high < one.bound / one.drift
    ):
        return "too small to matter"
    return "not significant"
