"""Comparing: every layout against the first, metric by metric and cell by cell, with the verdict that its tests allow.

A difference is claimed where all of this holds: no doubt touches either side, so that each has at least 5 repeats; the interval
clears the practical threshold, not the point alone: Welch's test on the logarithms puts the difference beyond it, after Benjamini
and Hochberg's correction over all cells of all metrics; and the difference is beyond the noise floor, where an A/A control told it.
Where the whole 95 % interval lies within the threshold, the two are equivalent. Findings over all worker counts are corrected for
their own number. Layouts are compared within a driver, never one driver's figures with another's; a layout's control is compared
with it alone, for the noise floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import Final

from weighbridge.results.analysis.blocks import TOGETHER, together
from weighbridge.results.analysis.comparison import Comparison, Effect, NoiseFloor, Verdict
from weighbridge.results.analysis.contrast import ALWAYS, Contrast, Pair, at_workers, comparable, figures, over_all
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.noise import floor_of, floors, unused
from weighbridge.results.analysis.sentence import Judged, sentence
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import PairDoubt, graves
from weighbridge.results.metrics import compared
from weighbridge.results.statistics import LEVEL, corrected, next_level
from weighbridge.suites import Bounds

NO_TWINS: Final[Mapping[str, str]] = MappingProxyType({})


def compare(
    rows: Sequence[Row],
    twins: Mapping[str, str] = NO_TWINS,
    bounds: Bounds | None = None,
    between: Sequence[PairDoubt] = (),
) -> Comparison:
    """Every layout of a table against its first, in the table's order: of each kind of requests over all worker counts, then each.

    `twins` are the layouts that are another one once more, and which; `bounds` the suite's; `between` what there is to doubt of
    layouts beside each other. Raises ValueError without any row.
    """
    own = [row for row in rows if row.layout not in twins]
    layouts = tuple(dict.fromkeys(row.layout for row in own))
    if not layouts:
        raise ValueError("a table without rows compares nothing")
    found = floors(rows, twins)
    sides = [(layouts[0], other) for other in layouts[1:]]
    made = contrasts(own, sides, between, in_blocks=True)
    rivals = contrasts(own, list(combinations(layouts[1:], 2)), between, in_blocks=True)
    rivals = [one for one in rivals if one.workers is None and one.metric.key == "throughput"]
    judged, tests = judge([*made, *rivals], bounds or Bounds(), found)
    names = subjects(own)
    effects = tuple(effect(names[kind_of(one.contrast.baseline)], one) for one in judged)
    return Comparison(
        baseline=layouts[0],
        subjects=layouts[1:],
        effects=effects[: len(made)],
        rivals=effects[len(made) :],
        noise=found,
        unused=unused(rows, twins, found),
        tests=tests,
    )


def contrasts(
    rows: Sequence[Row], sides: Sequence[tuple[str, str]], between: Sequence[PairDoubt] = (), *, in_blocks: bool = False
) -> list[Contrast]:
    """What is to be compared: of each kind of requests each two sides (baseline, subject) that have it, metric by metric.

    `in_blocks`: repeats of the same number were measured in one block. Where two sides went up and down together from block to
    block, each block is then compared by itself (`results.analysis.blocks`).
    """
    made = []
    alike = _together(rows, sides) if in_blocks else frozenset()
    kinds: dict[Kind, list[Row]] = {}
    for row in rows:
        kinds.setdefault(kind_of(row), []).append(row)
    for cells in kinds.values():
        by_layout = {name: {row.workers: row for row in cells if row.layout == name} for name in {row.layout for row in cells}}
        for baseline, subject in sides:
            base, sub = (by_layout.get(name, {}) for name in (baseline, subject))
            pairs: list[Pair] = [(row, sub[workers]) for workers, row in base.items() if workers in sub]
            by_block = (baseline, subject) in alike
            for metric in compared() if pairs else ():
                if metric.key not in ALWAYS and not any(row.value(metric.key) is not None for pair in pairs for row in pair):
                    continue
                each = [at_workers(metric, *pair, between, in_blocks=by_block) for pair in pairs]
                made += [over_all(each, in_blocks=by_block), *each]
    return made


def _together(rows: Sequence[Row], sides: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """Which two sides go up and down together from block to block, over all their cells and metrics."""
    by_name: dict[str, dict[tuple[Kind, int], Row]] = {}
    for row in rows:
        if comparable(row):
            by_name.setdefault(row.layout, {})[kind_of(row), row.workers] = row
    found = set()
    for baseline, subject in sides:
        base, sub = by_name.get(baseline, {}), by_name.get(subject, {})
        cells = []
        for one, other in ((sub[place], row) for place, row in base.items() if place in sub):
            for metric in compared():
                of_sub, of_base = figures(one, metric), figures(other, metric)
                both = [repeat for repeat in of_sub if repeat in of_base]
                cells.append(([of_sub[repeat] for repeat in both], [of_base[repeat] for repeat in both]))
        if together(cells) >= TOGETHER:
            found.add((baseline, subject))
    return frozenset(found)


def judge(found: Sequence[Contrast], bounds: Bounds, noise: Sequence[NoiseFloor] = ()) -> tuple[tuple[Judged, ...], int]:
    """The verdicts, in order, and of how many tests of cells. All cells are corrected together, whatever their metric, and all that
    goes over all worker counts is, by itself.
    """
    beyond = [_beyond(one, one.metric.bound_of(bounds)) for one in found]
    families: dict[bool, list[int]] = {True: [], False: []}
    for number, (one, p) in enumerate(zip(found, beyond, strict=True)):
        if p is not None:
            families[one.workers is None].append(number)
    q_of: dict[int, float] = {}
    levels: dict[bool, float] = {}
    for family, members in families.items():
        q_values = corrected([p for number in members if (p := beyond[number]) is not None])
        q_of |= zip(members, q_values, strict=True)
        levels[family] = next_level(len(members), sum(q <= LEVEL for q in q_values)) if members else LEVEL
    judged = []
    for number, one in enumerate(found):
        bound, floor, q = one.metric.bound_of(bounds), floor_of(noise, one), q_of.get(number)
        judged.append(
            Judged(
                contrast=one,
                q=q,
                bound=bound,
                noise=floor,
                tests=len(families[one.workers is None]),
                verdict=verdict(one, q, bound, floor),
                smallest=None if one.welch is None else one.welch.smallest(levels[one.workers is None], bound * one.drift),
            )
        )
    return tuple(judged), len(families[False])


def _beyond(one: Contrast, bound: float) -> float | None:
    """How often chance would put a contrast so far beyond the threshold; of latencies in bins, so far from being equal."""
    return one.p if one.welch is None else one.welch.p_beyond(bound * one.drift)


def verdict(one: Contrast, q: float | None, bound: float, noise: float | None) -> Verdict:
    """What may be said of a contrast with its corrected p-value, the practical threshold and the noise floor, both as ratios."""
    if one.ratio is None or graves(one.doubts):
        return "not comparable"
    if one.doubts:
        return "provisional"
    if one.bins is not None and (one.bins[0].touches(one.bins[1]) or one.least < bound):
        return "not shown"
    if q is not None and q <= LEVEL and (noise is None or one.least > noise):
        return "better" if one.metric.better_at(one.ratio.value) else "worse"
    low, high = one.ratio.low, one.ratio.high
    if one.bins is None and low is not None and high is not None and one.drift / bound < low and high < bound / one.drift:
        return "too small to matter"
    return "not shown"


def effect(about: str, judged: Judged) -> Effect:
    """The record of a verdict."""
    one = judged.contrast
    return Effect(
        workload=one.baseline.workload,
        operation=one.baseline.operation,
        api=one.baseline.api,
        driver=one.baseline.driver,
        about=about,
        workers=one.workers,
        metric=one.metric.key,
        baseline=one.baseline.layout,
        subject=one.subject.layout,
        baseline_value=one.values[0],
        subject_value=one.values[1],
        ratio=one.ratio,
        p=one.p,
        q=judged.q,
        rank_p=one.rank_p,
        delta=one.delta,
        smallest=judged.smallest,
        noise=judged.noise,
        verdict=judged.verdict,
        doubts=one.doubts,
        text=sentence(about, judged),
    )
