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
from itertools import combinations, groupby
from statistics import fmean
from types import MappingProxyType
from typing import Final

from weighbridge.results.figures.doubt import PairDoubt, graves
from weighbridge.results.figures.metric import Metric
from weighbridge.results.figures.metrics import METRICS, compared
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


def floors(rows: Sequence[Row], controls: Mapping[str, str]) -> tuple[NoiseFloor, ...]:
    """The noise floor of each metric by each A/A control; none if no cell is comparable."""
    found = (
        _floor(rows, metric, layout, control)
        for control, layout in controls.items()
        for metric in compared()
    )
    return tuple(floor for floor in found if floor is not None)


def unused(
    rows: Sequence[Row], controls: Mapping[str, str], found: Sequence[NoiseFloor]
) -> tuple[str, ...]:
    """A sentence with the reason for each A/A control that gives no noise floor."""
    return tuple(
        _why(rows, layout, control)
        for control, layout in controls.items()
        if all(floor.control != control for floor in found)
    )


def _why(rows: Sequence[Row], layout: str, control: str) -> str:
    sides = [row for row in rows if row.layout in (layout, control) and not comparable(row)]
    notes = [
        note for row in rows if row.layout == control for one in row.used for note in _unlike(one)
    ]
    found = list(dict.fromkeys((*(f"{row.layout}: {reason(row)}" for row in sides), *notes)))
    more = f"; and {len(found) - REASONS} more" if len(found) > REASONS else ""
    why = (
        f"{'; '.join(found[:REASONS])}{more}"
        if found
        else "it needs two repeats of each, in the same blocks"
    )
    return (
        f"The noise floor of this machine is unknown: {control}, the A/A control of {layout}, "
        f"could not be used ({why})."
    )


def floor_of(noise: Sequence[NoiseFloor], one: Effect) -> float | None:
    """The noise floor for an effect; None without an A/A control, and for latencies in bins."""
    if one.bins is not None:
        return None
    return max((floor.ratio for floor in noise if floor.metric == one.metric), default=None)


def _floor(rows: Sequence[Row], metric: Metric, layout: str, control: str) -> NoiseFloor | None:
    cells = []
    for _, group in groupby((row for row in rows if row.layout in (layout, control)), key=kind_of):
        kind = list(group)
        one, again = (
            {row.workers: row for row in kind if row.layout == name} for name in (layout, control)
        )
        cells += [
            _pairs(metric, row, again[workers]) for workers, row in one.items() if workers in again
        ]
    known = [cell for cell in cells if len(cell) >= 2]
    if not known:
        return None
    repeats = min(len(cell) for cell in known)
    ratio, low, high = floor_of_pairs(known)
    q_values = corrected([one_sample(cell).p for cell in known])
    return NoiseFloor(
        metric=metric.key,
        layout=layout,
        control=control,
        ratio=ratio,
        low=low,
        high=high,
        pairs=sum(len(cell) for cell in known),
        cells=len(known),
        shown=sum(q <= LEVEL for q in q_values),
        repeats=repeats,
    )


def _pairs(metric: Metric, row: Row, again: Row) -> list[float]:
    """Logarithms of the ratio of a repeat to the other side's repeat in the same block."""
    if not comparable(row, again):
        return []
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
    """The effects with verdicts, in order, and the number of tests of cells. Cells are corrected
    together, whatever their metric; so are, separately, effects over all worker counts.
    """
    bounded = [
        one.model_copy(
            update={"bound": METRICS[one.metric].bound_of(bounds), "noise": floor_of(noise, one)}
        )
        for one in found
    ]
    beyond = [
        one.p if one.tested is None else one.tested.p_beyond(one.bound * one.drift)
        for one in bounded
    ]
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


def verdict(one: Effect) -> Verdict:
    """The verdict, from corrected p-value, practical threshold and noise floor."""
    if one.ratio is None or graves(one.doubts):
        return "not comparable"
    if one.doubts:
        return "provisional"
    if one.bins is not None and (one.bins[0].touches(one.bins[1]) or one.least < one.bound):
        return "not significant"
    if one.q is not None and one.q <= LEVEL and not one.within_noise:
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
