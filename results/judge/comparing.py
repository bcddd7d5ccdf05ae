"""Comparing every layout with the first, metric by metric and cell by cell, with verdicts.

Throughputs are compared by the geometric means of the repeats; so are the repeats' 90th
percentiles, which are never averaged arithmetically. Over worker counts a ratio is the geometric
mean of the counts' ratios; its tests use each repeat's geometric mean over the counts, for repeats
that are complete at every count.

Latencies in bins are unknown within a bin. The sides are then compared pair by pair: one is higher
if the bins do not touch. The p-value is the largest that the rank test could give for any latencies
within the bins.

A difference is claimed if all of this holds: no doubt touches either side, so that each has at
least 5 repeats; the interval, not just the point, clears the practical threshold: Welch's test on
the logarithms puts the difference beyond it, after Benjamini and Hochberg's correction over all
cells of the primary metrics, and of the others by themselves; and it does not rest on windows that
other programs disturbed. If the complete 95 % interval lies within the threshold, the two are
equivalent. Findings over all worker counts are corrected for their own number. Layouts are compared
within a driver, never across drivers; a layout's A/A control is compared with that layout alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from weighbridge.results.figures.doubt import Doubt, PairDoubt, doubt_words, few, graves, touching
from weighbridge.results.figures.foreign_load import (
    Slopes,
    cell_sides,
    figures,
    load_slopes,
)
from weighbridge.results.figures.metrics import METRICS, PRIMARY, Metric, MetricKey, compared
from weighbridge.results.figures.reading import Interval
from weighbridge.results.figures.statistics import (
    CONFIDENCE,
    FARTHEST,
    LEVEL,
    Ratio,
    TTest,
    cliffs_delta,
    corrected,
    geometric_mean,
    next_level,
    one_sample,
    rank_p,
    rank_p_of,
    ratio,
    t_quantile,
    welch,
)
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Point, Row
from weighbridge.results.judge.comparison import (
    RUNS_FOR_A_FLOOR,
    Comparison,
    Effect,
    Kind,
    NoiseFloor,
    Verdict,
    kind_of,
    subjects,
)
from weighbridge.results.judge.words import sentence
from weighbridge.results.numbers import counted, show_ratio
from weighbridge.results.run.machine import MAX_LOG, ControlRatio, MachineRun
from weighbridge.results.run.step import UNLIKE
from weighbridge.suites import Bounds

# Comparing two sides block by block, and when to.
#
# Each block measures every layout once, so what the machine did in a block affects both sides of
# a comparison alike. If that is most of the scatter of repeats, each block is compared by itself
# (Student's test of the differences), which detects much smaller differences. If it is
# not, that would halve the degrees of freedom for nothing, and Welch's test of all repeats is
# better. One rule, fixed beforehand, decides for all cells of two sides: `correlation`
# within blocks over all cells and metrics, from TOGETHER up. It is a property of the
# machine, not of a cell; deciding cell by cell would make intervals too narrow, deciding over the
# run does not: see docs/statistics.md.


TOGETHER: Final = 0.5
"""From this correlation on, the smaller scatter of differences outweighs the lost freedom at 5
blocks.
"""


# The noise of a machine: what other programs cost (`results.figures.foreign_load`), and how far a
# layout differs from itself from run to run.
#
# A layout and its A/A control are the same, so their ratio is 1 in truth. What it is more than its
# own standard error explains is an offset that a run has, and that its repeats do not show. The
# mean square of the offsets of a machine's runs, this one among them, is a further variance of
# every ratio: each interval contains it, so no claim is within the noise floor, which is its 95 %
# reach. Fewer runs than RUNS_FOR_A_FLOOR say too little, and nothing is added.


@dataclass(frozen=True)
class MachineNoise:
    """What is known of a machine beyond the repeats of a run."""

    slopes: Slopes = field(default_factory=dict)
    offsets: Mapping[MetricKey, tuple[float, int]] = field(default_factory=dict)
    """By metric the standard deviation of the runs' offsets, and of how many runs."""


NO_NOISE: Final = MachineNoise()


def comparable(*rows: Row) -> bool:
    """Whether each of these rows may be ranked and has throughputs to compare."""
    return all(
        row.ranked and min((_succeeded(row, point) for point in row.used), default=False)
        for row in rows
    )


def _succeeded(row: Row, point: Point) -> bool:
    """Whether anything did: of a step in which something died no throughput is known."""
    return point.ops_s > 0 if row.fault is None else bool(point.count("samples"))


def reason(row: Row) -> str:
    """Why a row cannot be compared, in brief: only the first line of an error, without advice."""
    if row.ranked:
        return "nothing succeeded"
    if row.valid and row.steady is not False and row.condemned:
        return doubt_words(row.condemned)
    notes = [note for note in row.notes if note not in (NOT_VALID, NOT_STEADY)]
    notes.append(NOT_STEADY if row.valid else NOT_VALID)
    return notes[0].splitlines()[0]


def correlation(rows: Sequence[Row], baseline: str, subject: str) -> float:
    """The correlation of two layouts' logarithms from block to block, over all their comparable
    cells and metrics: -1 to 1. Cells with fewer than 2 blocks do not count; 0 without scatter.
    """
    both, of_one, of_other = 0.0, 0.0, 0.0
    for base, sub in _pairs(rows, baseline, subject):
        for metric in compared() if comparable(base, sub) else ():
            a, b = figures(sub, metric), figures(base, metric)
            blocks = [repeat for repeat in a if repeat in b]
            one, two = (_scatter([side[repeat] for repeat in blocks]) for side in (a, b))
            both += math.fsum(x * y for x, y in zip(one, two, strict=True))
            of_one += math.fsum(x * x for x in one)
            of_other += math.fsum(y * y for y in two)
    return both / math.sqrt(of_one * of_other) if of_one and of_other else 0.0


def _pairs(rows: Iterable[Row], baseline: str, subject: str) -> list[tuple[Row, Row]]:
    """The rows of two layouts that are of the same requests and worker count."""
    sides = [
        {(kind_of(row), row.workers): row for row in rows if row.layout == layout}
        for layout in (baseline, subject)
    ]
    return [(row, sides[1][place]) for place, row in sides[0].items() if place in sides[1]]


def _scatter(values: Sequence[float]) -> list[float]:
    logs = [math.log(value) for value in values]
    return [log - fmean(logs) for log in logs]


def contrasts(
    rows: Sequence[Row],
    sides: Sequence[tuple[str, str]],
    between: Sequence[PairDoubt] = (),
    *,
    in_blocks: bool = False,
    metrics: Sequence[Metric] = (),
    noise: MachineNoise = NO_NOISE,
) -> list[Effect]:
    """Effects for each kind of requests, pair of sides (baseline, subject) that has it, and metric
    (all that are compared if none are named): over all worker counts, then at each.

    `between` are doubts about pairs. `in_blocks`: repeats of the same number were measured in one
    block. If two sides are correlated from block to block, each block is then compared by itself.
    """
    # Named as for the baseline.
    names = subjects(rows[::-1])
    paired = {pair for pair in sides if in_blocks and correlation(rows, *pair) >= TOGETHER}
    kinds: dict[Kind, list[Row]] = {}
    for row in rows:
        kinds.setdefault(kind_of(row), []).append(row)
    effects: list[Effect] = []
    for kind, cells in kinds.items():
        for pair in sides:
            both = _pairs(cells, *pair)
            doubts = [each.doubt for each in between if each.about(*pair)]
            for metric in (metrics or compared()) if both else ():
                always = metric.key in PRIMARY and both[0][0].fault is None
                if always or any(row.value(metric.key) is not None for two in both for row in two):
                    how = partial(at_workers, metric, about=names[kind], noise=noise)
                    each = [how(*two, doubts, paired=pair in paired) for two in both]
                    effects += [over_all(each, paired=pair in paired, noise=noise), *each]
    return effects


def effect_of(metric: Metric, baseline: Row, subject: Row, about: str) -> Effect:
    """Two sides over all worker counts, without results yet."""
    return Effect(
        workload=baseline.workload,
        operation=baseline.operation,
        api=baseline.api,
        driver=baseline.driver,
        about=about,
        workers=None,
        metric=metric.key,
        baseline=baseline.layout,
        subject=subject.layout,
        sides=(baseline, subject),
    )


def _with(effect: Effect, **fields: Any) -> Effect:
    return effect.model_copy(update=fields)


def at_workers(
    metric: Metric,
    baseline: Row,
    subject: Row,
    between: Sequence[Doubt] = (),
    *,
    paired: bool = False,
    about: str = "",
    noise: MachineNoise = NO_NOISE,
) -> Effect:
    """Two sides at one worker count; `between` are doubts about the pair, `about` names requests.
    `paired`: compare repeats within their blocks.
    """
    sides = (baseline, subject)
    measured = [figures(row, metric) for row in sides]
    means = [geometric_mean(list(values.values())) if values else None for values in measured]
    own = [doubt for row in sides for doubt in _named(row)]
    own += [*between, *few(min(len(row.used) for row in sides))]
    coarse = _coarse(metric, *means)
    doubts = touching(own if coarse is None else [*own, coarse], metric.key)
    effect = _with(
        effect_of(metric, baseline, subject, about),
        workers=subject.workers,
        doubts=doubts,
        baseline_value=means[0],
        subject_value=means[1],
    )
    lacking = [f"{row.layout}: {reason(row)}" for row in sides if not comparable(row)]
    if lacking:
        return _with(effect, reasons="; ".join(lacking))
    if graves(doubts):
        return _with(effect, reasons=doubt_words(graves(doubts)))
    if effect.bins is not None:
        return _in_bins(effect, metric, baseline, subject, effect.bins)
    lacking = [
        f"{row.layout}: too few samples"
        for row, values in zip(sides, measured, strict=True)
        if not values
    ]
    if lacking:
        return _with(effect, reasons="; ".join(lacking))
    alike = cell_sides(metric, baseline, subject, noise.slopes)
    effect = _with(effect, adjusted=alike.adjusted, quiet=alike.quiet)
    errors = _errors(metric, noise, alike.error)
    return _tested(effect, alike.subject, alike.baseline, paired=paired, errors=errors)


def _errors(metric: Metric, noise: MachineNoise, of_slopes: float) -> list[tuple[float, float]]:
    """Errors of a ratio that its repeats do not show, each with its freedom."""
    offset, runs = noise.offsets.get(metric.key, (0.0, 1))
    return [(offset, float(runs)), (of_slopes, FARTHEST)]


def _named(row: Row) -> list[Doubt]:
    """The doubts about a side, with its name; all sides share a machine."""
    return [
        doubt
        if doubt.what == "machine busy"
        else doubt.model_copy(update={"words": f"{row.layout}: {doubt.words}"})
        for doubt in row.doubts
    ]


def _coarse(metric: Metric, one: float | None, other: float | None) -> Doubt | None:
    """The doubt about figures that their resolution lets neither differ nor be equivalent."""
    if not metric.resolution or one is None or other is None:
        return None
    low, high = sorted((one, other))
    bound = float(metric.bound)
    differ = high - metric.resolution >= bound * low
    alike = high <= bound * (low - metric.resolution)
    if differ or alike:
        return None
    words = f"{metric.name} is known to {metric.resolution:g} {metric.unit} only"
    return Doubt(what="resolution", grade="grave", words=words, metrics=(metric.key,))


def over_all(
    cells: Sequence[Effect], *, paired: bool = False, noise: MachineNoise = NO_NOISE
) -> Effect:
    """Two sides over all worker counts, from their effects at each count (at least one)."""
    metric = METRICS[cells[0].metric]
    usable = [cell for cell in cells if cell.ratio is not None and cell.bins is None]
    baseline, subject = (usable or cells)[-1].rows
    effect = effect_of(metric, baseline, subject, cells[0].about)
    if not usable:
        doubts = tuple(dict.fromkeys(doubt for cell in cells for doubt in cell.doubts))
        return _with(effect, reasons=_why_nowhere(cells, baseline, subject), doubts=doubts)
    ratios = {cell.workers: cell.ratio.value for cell in usable if cell.ratio is not None}
    alike = [cell_sides(metric, *cell.rows, noise.slopes) for cell in usable]
    base = _by_repeat([sides.baseline for sides in alike])
    sub = _by_repeat([sides.subject for sides in alike])
    worries = [doubt for cell in usable for doubt in cell.doubts]
    lacking = [cell.workers for cell in cells if cell.workers not in ratios]
    if lacking:
        counts = f"{', '.join(map(str, lacking))} worker{'s' * (lacking != [1])}"
        worries.append(Doubt(what="incomplete", grade="mild", words=f"not comparable at {counts}"))
    worries += few(min(len(sub), len(base)))
    effect = _with(
        effect,
        doubts=touching(worries, metric.key),
        by_count=tuple(ratios.items()),
        adjusted=geometric_mean([sides.adjusted for sides in alike]),
        quiet=_quiet(usable),
    )
    middle = geometric_mean(list(ratios.values()))
    if not sub or not base:
        return _with(effect, ratio=Ratio(value=middle, repeats=1))
    # The value uses all valid repeats, the tests only complete ones: give both the same center.
    # Cells share the slopes and their errors.
    errors = _errors(metric, noise, fmean(sides.error for sides in alike))
    return _tested(effect, sub, base, middle=middle, paired=paired, errors=errors)


def _quiet(cells: Sequence[Effect]) -> float | None:
    """The ratio over cells by undisturbed windows, where any were disturbed."""
    if all(cell.quiet is None for cell in cells):
        return None
    return geometric_mean(
        [cell.quiet or cell.ratio.value for cell in cells if cell.ratio is not None]
    )


def _why_nowhere(cells: Sequence[Effect], baseline: Row, subject: Row) -> str:
    """Why two sides are comparable at no worker count; the rows are those of the last count."""
    if any(cell.bins is not None for cell in cells):
        return "reported in bins: compared only at each worker count"
    lacking = [
        f"{row.layout} at {counted(row.workers, 'worker')}: {reason(row)}"
        for row in (baseline, subject)
        if not comparable(row)
    ]
    return "; ".join(lacking) or cells[-1].reasons


def _by_repeat(cells: Sequence[Mapping[int, float]]) -> dict[int, float]:
    """The geometric mean over worker counts of each repeat that is complete."""
    complete = set(cells[0]).intersection(*cells)
    return {
        repeat: geometric_mean([figures_of[repeat] for figures_of in cells])
        for repeat in cells[0]
        if repeat in complete
    }


def _tested(
    effect: Effect,
    of_subject: Mapping[int, float],
    of_baseline: Mapping[int, float],
    *,
    middle: float | None = None,
    paired: bool,
    errors: Sequence[tuple[float, float]] = (),
) -> Effect:
    """The effect with its tests. `middle`: the ratio, if not computed from these values alone;
    `errors`: standard errors that the values do not show, with their freedom.
    """
    subject, baseline = list(of_subject.values()), list(of_baseline.values())
    ranks = {"rank_p": rank_p(subject, baseline), "delta": cliffs_delta(subject, baseline)}
    effect = _with(effect, **ranks)
    if min(len(subject), len(baseline)) < 2:
        single = ratio(subject, baseline)
        value = single.value if middle is None else middle
        return _with(effect, ratio=Ratio(value=value, repeats=single.repeats))
    tested = welch(subject, baseline)
    if paired and of_subject.keys() == of_baseline.keys():
        logs = [math.log(value / of_baseline[repeat]) for repeat, value in of_subject.items()]
        tested = one_sample(logs)
    if middle is not None:
        tested = tested.model_copy(update={"difference": math.log(middle)})
    for error, freedom in errors:
        tested = tested.widened(error, freedom)
    return with_test(effect, tested)


def with_test(effect: Effect, tested: TTest) -> Effect:
    """The effect with the results of a test."""
    return _with(effect, ratio=tested.ratio, p=tested.p, tested=tested)


def _in_bins(
    effect: Effect, metric: Metric, baseline: Row, subject: Row, bins: tuple[Interval, Interval]
) -> Effect:
    """Two sides whose repeats' percentiles are known as bins."""
    sub, base = (
        [within for point in row.used if (within := point.within(metric.key)) is not None]
        for row in (subject, baseline)
    )
    if len(sub) < len(subject.used) or len(base) < len(baseline.used):
        return _with(effect, reasons="too few samples in a repeat")
    every, fewest = len(sub) * len(base), min(len(sub), len(base))
    pairs = [(one, other) for one in sub for other in base if not one.touches(other)]
    won = sum(one.low_ms > other.low_ms for one, other in pairs)
    # However the touching pairs turn out, the p-value is at most that of the count closest to half.
    possible = range(won, won + every - len(pairs) + 1)
    nearest = min(possible, key=lambda wins: abs(2 * wins - every))
    p = rank_p_of(nearest, len(sub), len(base)) if fewest >= 2 else None
    allowed = _allowed(*bins, fewest)
    if allowed is None:
        return _with(effect, reasons="beyond the last bin")
    delta = (2 * won - len(pairs)) / every
    return _with(effect, ratio=allowed, p=p, rank_p=p, delta=delta)


def _allowed(base: Interval, sub: Interval, repeats: int) -> Ratio | None:
    """The range of the ratio of the medians, at the bins' centers; None without an upper edge."""
    if base.high_ms is None or sub.high_ms is None:
        return None
    middle = (sub.low_ms + sub.high_ms) / (base.low_ms + base.high_ms)
    if sub.low_ms == 0 or base.low_ms == 0:
        return Ratio(value=middle, repeats=repeats)
    low, high = sub.low_ms / base.high_ms, sub.high_ms / base.low_ms
    return Ratio(value=middle, low=low, high=high, repeats=repeats)


REASONS: Final = 2
"""How many reasons to give why a control could not be used."""
NO_CONTROLS: Final[Mapping[str, str]] = MappingProxyType({})


def compare(
    rows: Sequence[Row],
    controls: Mapping[str, str] = NO_CONTROLS,
    bounds: Bounds | None = None,
    between: Sequence[PairDoubt] = (),
    earlier: Sequence[MachineRun] = (),
) -> Comparison:
    """Compare every layout of a table with its first, in table order: each kind of requests over
    all worker counts, then each count.

    `controls` maps A/A controls to their layouts; `bounds` are the suite's; `between` are doubts
    about pairs of layouts, `earlier` other runs of its machine. Raises ValueError without rows.
    """
    own = [row for row in rows if row.layout not in controls]
    if not own:
        raise ValueError("there are no rows to compare")
    first, *others = dict.fromkeys(row.layout for row in own)
    floors, noise = noise_of(rows, controls, earlier)
    pairs = [(first, other) for other in others]
    effects = contrasts(own, pairs, between, in_blocks=True, noise=noise)
    others_pairs, throughput = list(combinations(others, 2)), (METRICS["throughput"],)
    rivals = contrasts(own, others_pairs, between, in_blocks=True, metrics=throughput, noise=noise)
    rivals = [effect for effect in rivals if effect.workers is None]
    judged, tests = judge([*effects, *rivals], bounds or Bounds(), floors)
    judged = with_sentences(judged)
    return Comparison(
        baseline=first,
        subjects=tuple(others),
        effects=judged[: len(effects)],
        rivals=judged[len(effects) :],
        noise=floors,
        unused=_unused(rows, controls, floors),
        tests=tests,
    )


def noise_of(
    rows: Sequence[Row], controls: Mapping[str, str], earlier: Sequence[MachineRun] = ()
) -> tuple[tuple[NoiseFloor, ...], MachineNoise]:
    """What the controls showed, and what is known of the machine with its `earlier` runs."""
    floors, known = [], dict[MetricKey, list[ControlRatio]]()
    shown = controlled(rows, controls)
    for one in (*control_ratios(shown), *(one for run in earlier for one in run.controls)):
        known.setdefault(one.metric, []).append(one)
    offsets: dict[MetricKey, tuple[float, int]] = {}
    for key, own in known.items():
        if len(own) >= RUNS_FOR_A_FLOOR:
            offsets[key] = (offset_of(own), len(own))
    for floor in shown:
        update: dict[str, object] = {"runs": max(1, len(known.get(floor.metric, ())))}
        if floor.metric in offsets:
            offset, runs = offsets[floor.metric]
            reach = t_quantile((1 + CONFIDENCE) / 2, runs) * offset
            update["floor"] = math.exp(min(reach, FARTHEST))
        floors.append(floor.model_copy(update=update))
    slopes = load_slopes(rows, compared(), [slope for run in earlier for slope in run.slopes])
    return tuple(floors), MachineNoise(slopes, offsets)


def controlled(rows: Sequence[Row], controls: Mapping[str, str]) -> list[NoiseFloor]:
    """What each A/A control shows of each metric in this run; nothing if no cell is comparable.

    The cells of a repeat share a deployment: their mean is one figure.
    """
    shown = []
    for control, layout in controls.items():
        cells = [pair for pair in _pairs(rows, layout, control) if comparable(*pair)]
        for metric in compared():
            known = [logs for cell in cells if len(logs := _logs(metric, *cell)) >= 2]
            repeats = set[int]().union(*known)
            means = [fmean(cell[n] for cell in known if n in cell) for n in sorted(repeats)]
            if known:
                tested = one_sample(means)
                floor = NoiseFloor(
                    metric=metric.key,
                    layout=layout,
                    control=control,
                    ratio=tested.ratio,
                    tested=tested,
                    cells=len(known),
                    runs=1,
                )
                shown.append(floor)
    return shown


def control_ratios(floors: Iterable[NoiseFloor]) -> tuple[ControlRatio, ...]:
    """What a run's controls showed, to be kept with other runs of its machine."""
    ratios = []
    for floor in floors:
        tested = floor.tested
        if tested is not None and max(abs(tested.difference), tested.error) <= MAX_LOG:
            ratio = ControlRatio(
                metric=floor.metric, difference=tested.difference, error=tested.error
            )
            ratios.append(ratio)
    return tuple(ratios)


def offset_of(ratios: Sequence[ControlRatio]) -> float:
    """The standard deviation of the offsets of runs, beyond what their repeats explain."""
    return math.sqrt(max(0.0, fmean(one.difference**2 - one.error**2 for one in ratios)))


def _logs(metric: Metric, row: Row, again: Row) -> dict[int, float]:
    """Logarithms of the ratio of the other side's repeat to that in the same block."""
    one, other = (
        {
            point.repeat: value
            for point in side.used
            if (value := point.value(metric.key)) and not _unlike(point)
        }
        for side in (row, again)
    )
    return {n: math.log(other[n] / value) for n, value in one.items() if n in other}


def _unlike(point: Point) -> list[str]:
    return [note for note in point.notes if note.startswith(UNLIKE)]


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
    """The effects with verdicts, in order, and the number of tests of cells. Cells of the primary
    metrics are corrected together, and those of all others; so are, separately, effects over all
    worker counts.
    """
    judged, floors = list(effects), {floor.metric: floor.floor for floor in noise}
    families: dict[tuple[bool, bool], list[int]] = {}
    for number, effect in enumerate(effects):
        families.setdefault((effect.workers is None, effect.primary), []).append(number)
    of_cells = 0
    for (overall, _), family in families.items():
        p_values: dict[int, float] = {}
        for number in family:
            effect = effects[number]
            bound, tested = METRICS[effect.metric].bound_of(bounds), effect.tested
            # Of latencies in bins no floor is known.
            floor = None if effect.bins else floors.get(effect.metric)
            judged[number] = _with(effect, bound=bound, noise=floor)
            p = effect.p if tested is None else tested.p_beyond(bound)
            if p is not None:
                p_values[number] = p
        tests = len(p_values)
        of_cells += 0 if overall else tests
        q_of = dict(zip(p_values, corrected(list(p_values.values())), strict=True))
        level = next_level(tests, sum(q <= LEVEL for q in q_of.values())) if tests else LEVEL
        for number in family:
            effect = _with(judged[number], q=q_of.get(number), tests=tests)
            if effect.tested is not None:
                effect = _with(effect, smallest=effect.tested.smallest(level, effect.bound))
            effect = _with(effect, verdict=verdict(effect))
            judged[number] = _unless_disturbed(effect)
    return tuple(judged), of_cells


def _unless_disturbed(effect: Effect) -> Effect:
    """The effect; provisional if its claim rests on windows that other programs disturbed."""
    if effect.quiet is None or effect.ratio is None or not effect.claimed:
        return effect
    beyond = max(effect.quiet, 1 / effect.quiet) > effect.bound
    same_side = (effect.quiet > 1) == (effect.ratio.value > 1)
    if beyond == (effect.verdict != "too small to matter") and (same_side or not beyond):
        return effect
    without = show_ratio(effect.quiet)
    words = f"it rests on windows that other programs disturbed: {without} without them"
    doubt = Doubt(what="machine busy", grade="mild", words=words)
    return _with(effect, doubts=(*effect.doubts, doubt), verdict="provisional")


def with_sentences(effects: Sequence[Effect]) -> tuple[Effect, ...]:
    """Judged effects of two rows each, with sentences."""
    return tuple(effect.model_copy(update={"text": sentence(effect)}) for effect in effects)


def verdict(effect: Effect) -> Verdict:
    """The verdict, from corrected p-value and practical threshold."""
    ratio, bins = effect.ratio, effect.bins
    if ratio is None:
        return "not comparable"
    if effect.doubts:
        return "not comparable" if graves(effect.doubts) else "provisional"
    if bins is not None and (bins[0].touches(bins[1]) or effect.least < effect.bound):
        return "not significant"
    if effect.q is not None and effect.q <= LEVEL:
        return "better" if METRICS[effect.metric].better_at(ratio.value) else "worse"
    if bins is not None or ratio.low is None or ratio.high is None:
        return "not significant"
    alike = 1 / effect.bound < ratio.low and ratio.high < effect.bound
    return "too small to matter" if alike else "not significant"
