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
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, groupby
from statistics import fmean
from types import MappingProxyType
from typing import Final, get_args

from weighbridge.results.analysis.comparison import Comparison, Effect, NoiseFloor, Verdict
from weighbridge.results.analysis.contrast import comparable, contrasts, reason
from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.analysis.power_mark import power_words
from weighbridge.results.analysis.steps.bottleneck import NOTHING_SEEN
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.visit import Point
from weighbridge.results.doubt import PairDoubt, graves
from weighbridge.results.figures import (
    alike_as_one,
    counted,
    listed,
    show_figure,
    show_ratio,
    upper,
)
from weighbridge.results.interval import Interval
from weighbridge.results.metrics import METRICS, Metric, compared
from weighbridge.results.probability import chi_square_quantile
from weighbridge.results.record.step import UNLIKE
from weighbridge.results.statistics import (
    CONFIDENCE,
    FARTHEST,
    LEVEL,
    Ratio,
    corrected,
    next_level,
    one_sample,
    t_quantile,
)
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


# A verdict as one plain sentence, with its certainty: ratio, interval, latencies, repeats, noise
# floor.
#
# The layout with the higher throughput, or latency, is named first. A sentence that claims
# nothing begins with that; if something is invalid or missing it says so instead of a number.


MOSTLY: Final = 50.0
SELDOM: Final = 10.0
"""Shares of the bytes read, in per cent: from MOSTLY on, and up to SELDOM, two sides that are
compared have their reads from different places. Between them a reader must look at the figures.
"""


def sentence(one: Effect) -> str:
    """A sentence about a judged effect and what power cuts did. Raises ValueError without rows."""
    marks = power_words(one.power)
    return f"{_sentence(one)} {upper(marks)}." if marks else _sentence(one)


def _sentence(one: Effect) -> str:
    baseline, subject = one.rows
    if one.ratio is None:
        return _incomparable(one)
    if one.bins is not None:
        return _in_bins(one, baseline, subject, one.bins)
    up = one.ratio.value > 1
    measure = one.ratio if up else one.ratio.inverted
    high, low = (subject, baseline) if up else (baseline, subject)
    relation = _throughput if one.metric == "throughput" else _latency
    text = f"{opening(one)}{relation(one, measure, high, low)}; {strength(one)}."
    more = (words for words in (limits_of(one), _places_of(one)) if words)
    return " ".join((text, *(f"{upper(words)}." for words in more)))


def limits_of(one: Effect) -> str:
    """What limited the two sides, at the highest comparable count; empty if unknown for both."""
    if one.sides is None:
        return ""
    known = {row.layout: words for row in one.sides if (words := row.limited_by) is not None}
    if not known:
        return ""
    at = f"at {counted(one.sides[0].workers, 'worker')} " if len(one.by_count) > 1 else ""
    if set(known.values()) == {NOTHING_SEEN}:
        return f"{at}no resource was seen at its limit{_only(known, one)}"
    by = [f"{words} ({layout})" for layout, words in known.items()]
    if len(known) == 2 and len(set(known.values())) == 1:
        return f"{at}both were limited by {next(iter(known.values()))}"
    return f"{at}limited by {', '.join(by)}"


def _places_of(one: Effect) -> str:
    """Where reads came from, if one side reads from disks and the other from memory: their ratio is
    then one of caches too. At the worker count of `limits_of`: `bytes read from the measured disks,
    relative to those answered at 16 workers: 98 % (rgw-beast), 2 % (swift)`. Empty otherwise, and
    if unknown for one. Disks read ahead, and whole blocks: it may be more than was asked for.
    """
    if one.sides is None:
        return ""
    known = [(row.layout, row.value("from-disk")) for row in one.sides]
    shares = [share for _, share in known if share is not None]
    if len(shares) < len(known) or max(shares) < MOSTLY or min(shares) > SELDOM:
        return ""
    at = f" at {counted(one.sides[0].workers, 'worker')}" if len(one.by_count) > 1 else ""
    parts = (f"{share or 0.0:.0f} % ({layout})" for layout, share in known)
    return f"bytes read from the measured disks, relative to those answered{at}: {', '.join(parts)}"


def _only(known: Mapping[str, str], one: Effect) -> str:
    both = len(known) == len({row.layout for row in one.rows})
    return "" if both else f" ({listed(list(known))})"


def opening(one: Effect) -> str:
    """What a sentence begins with that claims nothing, and why; empty for a claim."""
    if one.verdict == "not significant":
        return f"No difference found{_why_uncertain(one)}: "
    return "Provisional: " if one.verdict == "provisional" else ""


def did(one: Effect, claimed: str, measured: str) -> str:
    """A verb in the present for a claim, in the past for what was only measured."""
    return measured if opening(one) else claimed


def strength(one: Effect) -> str:
    """The number of repeats, doubts or what makes it equivalent, and the noise floor."""
    text = f"n = {one.ratio.repeats if one.ratio is not None else 0}"
    if one.verdict == "provisional":
        text += f": {'; '.join(alike_as_one(doubt.words for doubt in one.doubts))}"
    elif one.verdict == "too small to matter":
        text += f": equivalent, the difference is below the {_matter(one)} that matter"
    if one.drift > 1 and one.metric == "throughput" and one.verdict in ("better", "worse"):
        text += "; it holds for any drift within the windows that is not ruled out"
    if one.noise is not None:
        text += f"; the noise floor of this machine is {show_ratio(one.noise)}"
    return text


def distinguished(one: Interval, other: Interval) -> str:
    """Two latencies known as intervals, ranked unless these touch."""
    if one == other:
        return f"not distinguishable: both in {one} ms"
    if one.touches(other):
        return f"not distinguishable: in {one} and {other} ms"
    return f"in {one} vs {other} ms"


def percent(measure: Ratio) -> str:
    """How far apart two are, in whole per cent and at least 1."""
    return f"{max(1, round((measure.either_way - 1) * 100))} %"


def _why_uncertain(one: Effect) -> str:
    if one.q is not None and one.q <= LEVEL:
        within_noise = one.noise is not None and one.least <= one.noise
        return " beyond the noise floor of this machine" if within_noise else ""
    if one.tested is not None and one.tested.p_beyond(one.bound * one.drift) <= LEVEL:
        return f" after correction for {one.tests} comparisons"
    if one.tested is not None and one.tested.p_beyond(one.bound) <= LEVEL:
        return f" (drift within the windows could account for {show_ratio(one.drift)})"
    significant = one.p is not None and one.p <= LEVEL
    beyond = f" beyond the {_matter(one)} that matter" if significant else ""
    could = "" if one.smallest is None else f" (could have found {show_ratio(one.smallest)})"
    return f"{beyond}{could}"


def _matter(one: Effect) -> str:
    """The practical threshold: `5 %`."""
    return f"{(one.bound - 1) * 100:.3g} %"


def _incomparable(one: Effect) -> str:
    why = f" ({one.reasons})" if one.reasons else ""
    subject = (
        upper(one.about)
        if one.metric == "throughput"
        else f"{METRICS[one.metric].name} of {one.about}"
    )
    where = "at any worker count" if one.workers is None else f"at {counted(one.workers, 'worker')}"
    return f"{subject}: {one.baseline} and {one.subject} cannot be compared {where}{why}."


def _throughput(one: Effect, measure: Ratio, fast: Row, slow: Row) -> str:
    if measure.value < one.bound:
        text = (
            f"{fast.layout} and {slow.layout} {did(one, 'serve', 'served')} {one.about} within "
            f"{percent(measure)} of each other{_bounds(measure)}"
        )
    else:
        text = (
            f"{fast.layout} {did(one, 'serves', 'served')} {show_ratio(measure.value)}"
            f"{_bounds(measure)} {slow.layout}’s {one.about}"
        )
    at = f" at {counted(fast.workers, 'worker')}" if len(one.by_count) > 1 else ""
    return f"{text} {_where(one, slow)}{_latencies(fast, slow, at)}"


def _latency(one: Effect, measure: Ratio, high: Row, low: Row) -> str:
    name = METRICS[one.metric].name
    # The subject is the higher one where the ratio of it to the baseline is above 1.
    values = (one.baseline_value, one.subject_value)
    values = values[::-1] if high.layout == one.subject else values
    figures = ""
    if one.workers is not None:
        unit = METRICS[one.metric].unit
        figures = f": {_versus(*values, unit, _lower_bounds(one.metric, high, low))}"
    where = _where(one, low)
    if measure.value < one.bound:
        near = f"within {percent(measure)} of each other{_bounds(measure)}"
        return (
            f"{name} of {one.about} {where}: {high.layout} and {low.layout} "
            f"{near}{figures.replace(':', ',')}"
        )
    return (
        f"{high.layout}’s {name} of {one.about} {where} {did(one, 'is', 'was')} "
        f"{show_ratio(measure.value)}{_bounds(measure)} {low.layout}’s{figures}"
    )


def _in_bins(one: Effect, baseline: Row, subject: Row, bins: tuple[Interval, Interval]) -> str:
    first, second = (baseline, subject) if bins[0].low_ms <= bins[1].low_ms else (subject, baseline)
    within = sorted(bins, key=lambda interval: (interval.low_ms, interval.top_ms))
    at = f"at {counted(subject.workers, 'worker')}"
    about = f"{METRICS[one.metric].name} of {one.about} {at}"
    judged = f"{distinguished(*within)}; {strength(one)}"
    return f"{opening(one)}{about}, {first.layout} and {second.layout}: {judged}."


def _where(one: Effect, slow: Row) -> str:
    """The worker counts; for several also the range of ratios, and where the other is ahead."""
    if one.workers is not None:
        return f"at {counted(one.workers, 'worker')}"
    counts = [count for count, _ in one.by_count]
    if len(counts) == 1:
        return f"at {counted(counts[0], 'worker')}"
    up = one.ratio is None or one.ratio.value > 1
    ratios = [value if up else 1 / value for _, value in one.by_count]
    low, high = show_ratio(min(ratios)), show_ratio(max(ratios))
    spread = f"{low} at each" if low == high else f"{low} to {high} by worker count"
    text = f"at {counts[0]} to {counts[-1]} workers ({spread})"
    behind = [
        str(count) for count, value in zip(counts, ratios, strict=True) if value * one.bound < 1
    ]
    leads = f"{did(one, 'is', 'was')} {'ahead' if one.metric == 'throughput' else 'higher'}"
    return f"{text}, but {slow.layout} {leads} at {listed(behind)}" if behind else text


def _latencies(fast: Row, slow: Row, at: str) -> str:
    """Both p90s; empty if one of them may not be ranked."""
    if not may_rank(fast, "p90") or not may_rank(slow, "p90"):
        return ""
    of_fast, of_slow = fast.figure("p90"), slow.figure("p90")
    if of_fast.within is not None and of_slow.within is not None:
        return f", p90{at} {distinguished(of_fast.within, of_slow.within)}"
    if of_fast.value is None or of_slow.value is None:
        return ""
    lower_bounds = _lower_bounds("p90", fast, slow)
    return f", p90{at} {_versus(of_fast.value, of_slow.value, 'ms', lower_bounds)}"


def _versus(
    one: float | None, other: float | None, unit: str, lower_bounds: tuple[str, str]
) -> str:
    """`66 ms vs ≥ 78 ms`: two digits, or three if they would look equal."""
    digits = 2 if show_figure(one, 2) != show_figure(other, 2) else 3
    texts = (
        f"{sign}{show_figure(value, digits)} {unit}"
        for sign, value in zip(lower_bounds, (one, other), strict=True)
    )
    return " vs ".join(texts)


def _lower_bounds(metric: str, one: Row, other: Row) -> tuple[str, str]:
    return "≥ " * one.figure(metric).at_least, "≥ " * other.figure(metric).at_least


def _bounds(measure: Ratio) -> str:
    if measure.low is None or measure.high is None:
        return ""
    low, high = (show_ratio(end).removesuffix("×") for end in (measure.low, measure.high))
    return f" ({low}–{high})"


def verdict_words(comparison: Comparison) -> tuple[str, ...]:
    """How many cells have which verdict, and whether an A/A control is missing."""
    found = Counter(effect.verdict for effect in comparison.effects if effect.workers is not None)
    if not found:
        return ()
    counts = ", ".join(f"{found[one]} {one}" for one in get_args(Verdict) if found[one])
    one = f" of {comparison.subjects[0]}" if len(comparison.subjects) == 1 else ""
    words = f"Of {found.total()} cells{one} compared with {comparison.baseline}: {counts}."
    if comparison.noise or comparison.unused or not (found["better"] or found["worse"]):
        return (words,)
    return (words, "The noise floor of this machine was not measured: compare --aa.")


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
