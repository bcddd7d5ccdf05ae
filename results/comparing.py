"""Comparing: every layout against the first, metric by metric and cell by cell, with the verdict that its tests allow.

A difference is claimed where all of this holds: at least 5 repeats of each side; Welch's test on the logarithms shows it after
Benjamini and Hochberg's correction over all cells of the metric; it is beyond the practical threshold; and it is beyond the rig's
noise floor, where an A/A trial told that. Findings over all worker counts are corrected for their own number. Layouts are compared
within a driver, never one driver's figures with another's; a layout's twin is compared with it alone, for the noise floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from results.comparison import Comparison, Effect, Metric, NoiseFloor, Verdict
from results.contrast import METRICS, Contrast, Pair, at_workers, over_all
from results.kinds import Kind, kind_of, subjects
from results.noise import floor_of, floors
from results.sentence import Judged, sentence
from results.statistics import LEVEL, REPEATS_FOR_A_CLAIM, corrected
from results.summary import Row
from suites import Bounds

NO_TWINS: Final[Mapping[str, str]] = MappingProxyType({})


def compare(rows: Sequence[Row], twins: Mapping[str, str] = NO_TWINS, bounds: Bounds | None = None) -> Comparison:
    """Every layout of a table against its first, in the table's order: of each kind of requests over all worker counts, then each.

    `twins` are the layouts that are another one once more, and which; `bounds` the suite's. Raises ValueError without any row.
    """
    own = [row for row in rows if row.layout not in twins]
    layouts = tuple(dict.fromkeys(row.layout for row in own))
    if not layouts:
        raise ValueError("a table without rows compares nothing")
    found = floors(rows, twins)
    sides = [(layouts[0], other) for other in layouts[1:]]
    judged, tests = judge(contrasts(own, sides), bounds or Bounds(), found)
    names = subjects(own)
    effects = tuple(effect(names[kind_of(one.contrast.baseline)], one) for one in judged)
    return Comparison(baseline=layouts[0], subjects=layouts[1:], effects=effects, noise=found, tests=tests)


def contrasts(rows: Sequence[Row], sides: Sequence[tuple[str, str]]) -> list[Contrast]:
    """What is to be compared: of each kind of requests each two sides (baseline, subject) that have it."""
    made = []
    kinds: dict[Kind, list[Row]] = {}
    for row in rows:
        kinds.setdefault(kind_of(row), []).append(row)
    for cells in kinds.values():
        by_layout = {name: {row.workers: row for row in cells if row.layout == name} for name in {row.layout for row in cells}}
        for baseline, subject in sides:
            base, sub = (by_layout.get(name, {}) for name in (baseline, subject))
            pairs: list[Pair] = [(row, sub[workers]) for workers, row in base.items() if workers in sub]
            for metric in METRICS if pairs else ():
                each = [at_workers(metric, *pair) for pair in pairs]
                made += [over_all(each), *each]
    return made


def judge(found: Sequence[Contrast], bounds: Bounds, noise: Sequence[NoiseFloor] = ()) -> tuple[tuple[Judged, ...], int]:
    """The verdicts, in order, and of how many tests of cells. The cells of a metric are corrected together, and all that goes over
    all worker counts is, by itself.
    """
    families: dict[Metric | None, list[int]] = {}
    for number, one in enumerate(found):
        if one.p is not None:
            families.setdefault(_family(one), []).append(number)
    q_of: dict[int, float] = {}
    for members in families.values():
        q_of |= zip(members, corrected([p for number in members if (p := found[number].p) is not None]), strict=True)
    judged = []
    for number, one in enumerate(found):
        bound = bounds.throughput_ratio if one.metric == "throughput" else bounds.p90_ratio
        floor = floor_of(noise, one)
        q = q_of.get(number)
        judged.append(
            Judged(
                contrast=one,
                q=q,
                bound=bound,
                noise=floor,
                tests=len(families.get(_family(one), ())),
                verdict=verdict(one, q, bound, floor),
            )
        )
    return tuple(judged), sum(len(members) for family, members in families.items() if family is not None)


def _family(one: Contrast) -> Metric | None:
    """What a contrast is corrected with: the cells of its metric; or all that are over all worker counts, of which None stands."""
    return None if one.workers is None else one.metric


def verdict(one: Contrast, q: float | None, bound: float, noise: float | None) -> Verdict:
    """What may be said of a contrast with its corrected p-value, the practical threshold and the noise floor, both as ratios."""
    if one.ratio is None:
        return "not comparable"
    if one.ratio.repeats < REPEATS_FOR_A_CLAIM:
        return "no claim"
    if one.bins is not None and one.bins[0].touches(one.bins[1]):
        return "not shown"
    apart = one.least
    if q is None or q > LEVEL or (noise is not None and apart <= noise):
        return "not shown"
    if apart < bound:  # latencies in bins may be farther apart than they must be
        return "too small to matter" if one.bins is None else "not shown"
    return "better" if (one.ratio.value > 1) == (one.metric == "throughput") else "worse"


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
        metric=one.metric,
        baseline=one.baseline.layout,
        subject=one.subject.layout,
        baseline_value=one.values[0],
        subject_value=one.values[1],
        ratio=one.ratio,
        p=one.p,
        q=judged.q,
        rank_p=one.rank_p,
        delta=one.delta,
        smallest=one.smallest,
        noise=judged.noise,
        verdict=judged.verdict,
        text=sentence(about, judged),
    )
