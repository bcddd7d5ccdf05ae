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

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from types import MappingProxyType
from typing import Final

from weighbridge.results.figures.doubt import PairDoubt, graves
from weighbridge.results.figures.metrics import METRICS, Metric, compared
from weighbridge.results.figures.statistics import (
    CONFIDENCE,
    FARTHEST,
    LEVEL,
    chi_square_quantile,
    corrected,
    next_level,
    one_sample,
    t_quantile,
)
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.visit import Point
from weighbridge.results.judge.comparison import Comparison, Effect, NoiseFloor, Verdict, kind_of
from weighbridge.results.judge.contrast import comparable, contrasts, reason
from weighbridge.results.judge.words import sentence
from weighbridge.results.run.step import UNLIKE
from weighbridge.suites import Bounds

# The noise floor of a machine: how far a layout differs from itself, measured twice in every
# block (an A/A control).
#
# A layout and its A/A control are the same, so their differences are noise. A difference between
# two layouts that is no larger cannot be detected on this machine, however certain its test is.
#
# Each repeat of the layout and the control's repeat in the same block are a pair. 95 % of the
# means over a cell's pairs lie within Student's quantile of their standard error, over all cells:
# that is the floor. It is an estimate, with the 95 % interval of a variance (chi-square). The
# maximum of some samples, which grows with every cell, would not be an estimate of anything.


REASONS: Final = 2
"""How many reasons to give why a control could not be used."""
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
    if not own:
        raise ValueError("there are no rows to compare")
    first, *others = dict.fromkeys(row.layout for row in own)
    noise = floors(rows, controls)
    pairs = [(first, other) for other in others]
    effects = contrasts(own, pairs, between, in_blocks=True)
    rivals = contrasts(own, list(combinations(others, 2)), between, in_blocks=True)
    rivals = [one for one in rivals if one.workers is None and one.metric == "throughput"]
    judged, tests = judge([*effects, *rivals], bounds or Bounds(), noise)
    judged = with_sentences(judged)
    return Comparison(
        baseline=first,
        subjects=tuple(others),
        effects=judged[: len(effects)],
        rivals=judged[len(effects) :],
        noise=noise,
        unused=_unused(rows, controls, noise),
        tests=tests,
    )


def floors(rows: Sequence[Row], controls: Mapping[str, str]) -> tuple[NoiseFloor, ...]:
    """The noise floor of each metric by each A/A control; none if no cell is comparable."""
    found: list[NoiseFloor] = []
    for control, layout in controls.items():
        again = {(kind_of(row), row.workers): row for row in rows if row.layout == control}
        cells = [
            (row, other)
            for row in rows
            if row.layout == layout
            and (other := again.get((kind_of(row), row.workers))) is not None
            and comparable(row, other)
        ]
        for metric in compared():
            pairs = [_logs(metric, *cell) for cell in cells]
            known = [logs for logs in pairs if len(logs) >= 2]
            if known:
                ratio, low, high = floor_of_pairs(known)
                q_values = corrected([one_sample(logs).p for logs in known])
                floor = NoiseFloor(
                    metric=metric.key,
                    layout=layout,
                    control=control,
                    ratio=ratio,
                    low=low,
                    high=high,
                    pairs=sum(map(len, known)),
                    cells=len(known),
                    shown=sum(q <= LEVEL for q in q_values),
                    repeats=min(map(len, known)),
                )
                found.append(floor)
    return tuple(found)


def _logs(metric: Metric, row: Row, again: Row) -> list[float]:
    """Logarithms of the ratio of a repeat to the other side's repeat in the same block."""
    one, other = (
        {
            point.repeat: value
            for point in side.used
            if (value := point.value(metric.key)) and not _unlike(point)
        }
        for side in (row, again)
    )
    return [math.log(value / other[repeat]) for repeat, value in one.items() if repeat in other]


def _unlike(point: Point) -> list[str]:
    return [note for note in point.notes if note.startswith(UNLIKE)]


def floor_of_pairs(cells: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """The bound, as a ratio, on 95 % of the means of these logarithms around 0, and its 95 %
    interval.

    One set for each cell, of at least 2. The standard error of a cell's mean is that of its pairs,
    or of the cells' means if these are further from 0: what all pairs of a cell share does not
    average out. Raises ValueError without pairs.
    """
    logs = [value for cell in cells for value in cell]
    if len(logs) < 2:
        raise ValueError("one value has no spread")
    repeats = min(len(cell) for cell in cells)
    of_pairs = math.fsum(value**2 for value in logs) / len(logs) / repeats
    of_means = math.fsum(fmean(cell) ** 2 for cell in cells) / len(cells)
    error = math.sqrt(max(of_pairs, of_means))
    freedom = len(logs) if of_pairs >= of_means else len(cells)
    reach = t_quantile((1 + CONFIDENCE) / 2, len(logs)) * error
    low, high = (
        math.sqrt(freedom / chi_square_quantile(freedom, share))
        for share in ((1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2)
    )
    value, least, most = (math.exp(min(reach * times, FARTHEST)) for times in (1.0, low, high))
    return value, least, most


def _unused(
    rows: Sequence[Row], controls: Mapping[str, str], noise: Sequence[NoiseFloor]
) -> tuple[str, ...]:
    """A sentence with the reason for each A/A control that gives no noise floor."""
    sentences = []
    for control, layout in controls.items():
        if any(floor.control == control for floor in noise):
            continue
        sides = [row for row in rows if row.layout in (layout, control) and not comparable(row)]
        again = [row for row in rows if row.layout == control]
        notes = [note for row in again for point in row.used for note in _unlike(point)]
        every = list(dict.fromkeys((*(f"{row.layout}: {reason(row)}" for row in sides), *notes)))
        more = f"; and {len(every) - REASONS} more" if len(every) > REASONS else ""
        why = "; ".join(every[:REASONS]) or "it needs two repeats of each, in the same blocks"
        sentences.append(
            f"The noise floor of this machine is unknown: {control}, the A/A control of {layout}, "
            f"could not be used ({why}{more})."
        )
    return tuple(sentences)


def judge(
    effects: Sequence[Effect], bounds: Bounds, noise: Sequence[NoiseFloor] = ()
) -> tuple[tuple[Effect, ...], int]:
    """The effects with verdicts, in order, and the number of tests of cells. Cells are corrected
    together, whatever their metric; so are, separately, effects over all worker counts.
    """
    judged = list(effects)
    tests = 0
    for overall in (True, False):
        family = [n for n, effect in enumerate(effects) if (effect.workers is None) == overall]
        p_values: dict[int, float] = {}
        for number in family:
            effect = effects[number]
            bound = METRICS[effect.metric].bound_of(bounds)
            floor = [one.ratio for one in noise if one.metric == effect.metric]
            # Of latencies in bins no floor is known.
            floor = floor if effect.bins is None else []
            fields = {"bound": bound, "noise": max(floor, default=None)}
            judged[number] = effect.model_copy(update=fields)
            tested = effect.tested
            p = effect.p if tested is None else tested.p_beyond(bound * effect.drift)
            if p is not None:
                p_values[number] = p
        tests = len(p_values)
        q_of = dict(zip(p_values, corrected(list(p_values.values())), strict=True))
        level = next_level(tests, sum(q <= LEVEL for q in q_of.values())) if tests else LEVEL
        for number in family:
            effect = judged[number]
            fields = {"q": q_of.get(number), "tests": tests}
            if effect.tested is not None:
                fields["smallest"] = effect.tested.smallest(level, effect.bound * effect.drift)
            effect = effect.model_copy(update=fields)
            judged[number] = effect.model_copy(update={"verdict": verdict(effect)})
    return tuple(judged), tests


def with_sentences(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Judged effects of two rows each, with sentences."""
    return tuple(effect.model_copy(update={"text": sentence(effect)}) for effect in effects)


def verdict(effect: Effect) -> Verdict:
    """The verdict, from corrected p-value, practical threshold and noise floor."""
    ratio, bins = effect.ratio, effect.bins
    if ratio is None:
        return "not comparable"
    if effect.doubts:
        return "not comparable" if graves(effect.doubts) else "provisional"
    if bins is not None and (bins[0].touches(bins[1]) or effect.least < effect.bound):
        return "not significant"
    if effect.q is not None and effect.q <= LEVEL and not effect.within_noise:
        return "better" if METRICS[effect.metric].better_at(ratio.value) else "worse"
    if bins is not None or ratio.low is None or ratio.high is None:
        return "not significant"
    within = effect.bound / effect.drift
    return (
        "too small to matter"
        if 1 / within < ratio.low and ratio.high < within
        else ("not significant")
    )
