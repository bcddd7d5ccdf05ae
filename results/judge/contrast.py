"""Measuring two sides before anything is concluded: ratio, tests, and what a sentence needs.

Throughputs are compared by the geometric means of the repeats; so are the repeats' 90th
percentiles, which are never averaged arithmetically. Over worker counts a ratio is the geometric
mean of the counts' ratios; its tests use each repeat's geometric mean over the counts, for repeats
that are complete at every count.

Latencies in bins are unknown within a bin. The sides are then compared pair by pair: one is higher
if the bins do not touch. The p-value is the largest that the rank test could give for any latencies
within the bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from weighbridge.results.figures.doubt import Doubt, PairDoubt, doubt_words, few, graves, touching
from weighbridge.results.figures.metric import Interval, Metric
from weighbridge.results.figures.metrics import METRICS, compared
from weighbridge.results.figures.statistics import (
    Ratio,
    TTest,
    cliffs_delta,
    geometric_mean,
    one_sample,
    rank_p,
    rank_p_of,
    ratio,
    welch,
)
from weighbridge.results.figures.steadiness import NOT_STEADY
from weighbridge.results.figures.summary import NOT_VALID, Row
from weighbridge.results.figures.visit import Point
from weighbridge.results.judge.comparison import Effect, Kind, kind_of, subjects
from weighbridge.results.numbers import counted

# Comparing two sides block by block, and when to.
#
# Each block measures every layout once, so what the machine did in a block affects both sides of
# a comparison alike. If that is most of the scatter of repeats, each block is compared by itself
# (`paired`, Student's test of the differences), which detects much smaller differences. If it is
# not, that would halve the degrees of freedom for nothing, and Welch's test of all repeats is
# better. One rule, fixed beforehand, decides for all cells of two sides: `together`, the
# correlation within blocks over all cells and metrics, from TOGETHER up. It is a property of the
# machine, not of a cell; deciding cell by cell would make intervals too narrow, deciding over the
# run does not: see docs/statistics.md.


TOGETHER: Final = 0.5
"""From this correlation on, the smaller scatter of differences outweighs the lost freedom at 5
blocks.
"""

Sides = tuple[Sequence[float], Sequence[float]]
"""Positive figures of two sides in the same blocks, in block order; equal lengths."""


def together(cells: Iterable[Sides]) -> float:
    """The correlation of two sides' logarithms from block to block, over all their cells: -1 to 1.

    Cells with fewer than 2 blocks do not count; 0 without scatter. Raises ValueError for a figure
    not above 0, or sides of different lengths.
    """
    both, one, other = 0.0, 0.0, 0.0
    for subject, baseline in cells:
        sub, base = _scatter(subject), _scatter(baseline)
        both += math.fsum(a * b for a, b in zip(sub, base, strict=True))
        one += math.fsum(a * a for a in sub)
        other += math.fsum(b * b for b in base)
    return both / math.sqrt(one * other) if one and other else 0.0


def paired(subject: Sequence[float], baseline: Sequence[float]) -> TTest:
    """Two sides block by block, with n - 1 degrees of freedom. Raises ValueError for fewer than 2
    blocks, a figure not above 0, or sides of different lengths.
    """
    return one_sample([math.log(a) - math.log(b) for a, b in zip(subject, baseline, strict=True)])


def _scatter(values: Sequence[float]) -> list[float]:
    logs = [math.log(value) for value in values]
    middle = math.fsum(logs) / len(logs) if logs else 0.0
    return [log - middle for log in logs]


ALWAYS: Final = ("throughput", "p90")
"""Metrics that are always compared or reported as not comparable; others only if a side has them.
"""


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
    note = next(
        (note for note in row.notes if note not in (NOT_VALID, NOT_STEADY)),
        NOT_STEADY if row.valid else NOT_VALID,
    )
    return note.splitlines()[0]


def contrasts(
    rows: Sequence[Row],
    sides: Sequence[tuple[str, str]],
    between: Sequence[PairDoubt] = (),
    *,
    in_blocks: bool = False,
) -> list[Effect]:
    """Effects for each kind of requests, pair of sides (baseline, subject) that has it, and metric.

    `in_blocks`: repeats of the same number were measured in one block. If two sides are correlated
    from block to block, each block is then compared by itself (`paired`).
    """
    made = []
    # Named as for the baseline.
    names = subjects(rows[::-1])
    correlated = [
        pair for pair in sides if in_blocks and together(_shared(rows, *pair)) >= TOGETHER
    ]
    kinds: dict[Kind, list[Row]] = {}
    for row in rows:
        kinds.setdefault(kind_of(row), []).append(row)
    for kind, cells in kinds.items():
        by_layout = {
            name: {row.workers: row for row in cells if row.layout == name}
            for name in {row.layout for row in cells}
        }
        for baseline, subject in sides:
            base, sub = (by_layout.get(name, {}) for name in (baseline, subject))
            pairs = [(row, sub[workers]) for workers, row in base.items() if workers in sub]
            by_block = (baseline, subject) in correlated
            for metric in compared() if pairs else ():
                always = metric.key in ALWAYS and pairs[0][0].fault is None
                if not always and not any(
                    row.value(metric.key) is not None for pair in pairs for row in pair
                ):
                    continue
                each = [
                    at_workers(metric, *pair, between, in_blocks=by_block, about=names[kind])
                    for pair in pairs
                ]
                made += [over_all(each, in_blocks=by_block), *each]
    return made


def _shared(rows: Sequence[Row], baseline: str, subject: str) -> Iterator[Sides]:
    """The figures of two sides in the blocks that both have, for all their cells and metrics."""
    of_baseline, of_subject = (
        {
            (kind_of(row), row.workers): row
            for row in rows
            if row.layout == layout and comparable(row)
        }
        for layout in (baseline, subject)
    )
    for place, row in of_baseline.items():
        for metric in compared() if place in of_subject else ():
            base, sub = figures(row, metric), figures(of_subject[place], metric)
            both = [repeat for repeat in sub if repeat in base]
            yield [sub[repeat] for repeat in both], [base[repeat] for repeat in both]


def at_workers(
    metric: Metric,
    baseline: Row,
    subject: Row,
    between: Sequence[PairDoubt] = (),
    *,
    in_blocks: bool = False,
    about: str = "",
) -> Effect:
    """Two sides at one worker count; `between` are doubts about pairs, `about` names requests.
    `in_blocks`: compare repeats within their blocks.
    """
    doubts = _doubts(metric, baseline, subject, between)
    head = effect_of(metric, baseline, subject, about).model_copy(
        update={
            "workers": subject.workers,
            "doubts": doubts,
            "baseline_value": _middle(baseline, metric),
            "subject_value": _middle(subject, metric),
            "drift": _drift(baseline.drift or 0.0, subject.drift or 0.0),
        }
    )
    if not comparable(baseline, subject):
        return _without(
            head,
            "; ".join(
                f"{row.layout}: {reason(row)}" for row in (baseline, subject) if not comparable(row)
            ),
        )
    if graves(doubts):
        return _without(head, doubt_words(graves(doubts)))
    if head.bins is not None:
        return _in_bins(head, metric, baseline, subject, head.bins)
    base, sub = (figures(row, metric) for row in (baseline, subject))
    if not base or not sub:
        lack = "; ".join(
            f"{row.layout}: too few samples"
            for row, values in ((baseline, base), (subject, sub))
            if not values
        )
        return _without(head, lack)
    return _tested(head, sub, base, in_blocks=in_blocks)


def over_all(cells: Sequence[Effect], *, in_blocks: bool = False) -> Effect:
    """Two sides over all worker counts, from their effects at each count (at least one)."""
    metric, about = METRICS[cells[0].metric], cells[0].about
    usable = [cell for cell in cells if cell.ratio is not None and cell.bins is None]
    baseline, subject = (usable or cells)[-1].rows
    head = effect_of(metric, baseline, subject, about)
    if not usable:
        doubts = tuple(dict.fromkeys(doubt for cell in cells for doubt in cell.doubts))
        return _without(head, _why_nowhere(cells, baseline, subject)).model_copy(
            update={"doubts": doubts}
        )
    by_count = tuple(
        (cell.workers, cell.ratio.value)
        for cell in usable
        if cell.workers is not None and cell.ratio is not None
    )
    base, sub = (_by_repeat([cell.rows[side] for cell in usable], metric) for side in (0, 1))
    lacking = tuple(
        cell.workers
        for cell in cells
        if cell.workers not in dict(by_count) and cell.workers is not None
    )
    worries = [doubt for cell in usable for doubt in cell.doubts]
    if lacking:
        counts = f"{', '.join(map(str, lacking))} worker{'s' * (lacking != (1,))}"
        worries.append(Doubt(what="incomplete", grade="mild", words=f"not comparable at {counts}"))
    lone = few(min(len(sub), len(base)))
    worries += [lone] if lone is not None else []
    head = head.model_copy(
        update={
            "doubts": touching(worries, metric.key),
            "by_count": by_count,
            "drift": max(cell.drift for cell in usable),
        }
    )
    middle = geometric_mean([value for _, value in by_count])
    if not sub or not base:
        return head.model_copy(update={"ratio": Ratio(value=middle, repeats=1)})
    # The value uses all valid repeats, the tests only complete ones: give both the same center.
    return _tested(head, sub, base, middle=middle, in_blocks=in_blocks)


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


def _without(head: Effect, reasons: str) -> Effect:
    return head.model_copy(update={"reasons": reasons})


def _why_nowhere(cells: Sequence[Effect], baseline: Row, subject: Row) -> str:
    """Why two sides are comparable at no worker count; the rows are those of the last count."""
    if any(cell.bins is not None for cell in cells):
        return "reported in bins: compared only at each worker count"
    incomparable = [row for row in (baseline, subject) if not comparable(row)]
    return (
        "; ".join(
            f"{row.layout} at {counted(row.workers, 'worker')}: {reason(row)}"
            for row in incomparable
        )
        or cells[-1].reasons
    )


def _middle(row: Row, metric: Metric) -> float | None:
    known = list(figures(row, metric).values())
    return geometric_mean(known) if known else None


def _drift(one: float, other: float) -> float:
    """Bound on the error of a ratio whose windows drifted by these shares of their means."""
    return max((1 + a / 2) / (1 - min(b, 1.0) / 2) for a, b in ((one, other), (other, one)))


def _by_repeat(rows: Sequence[Row], metric: Metric) -> dict[int, float]:
    found = [
        {
            point.repeat: value
            for point in row.used
            if (value := point.value(metric.key)) is not None
        }
        for row in rows
    ]
    return {
        repeat: geometric_mean([one[repeat] for one in found])
        for repeat in found[0]
        if all(repeat in one for one in found)
    }


def figures(row: Row, metric: Metric) -> dict[int, float]:
    """The repeats' figures; empty if one is unknown: the others would be other repeats."""
    values = {point.repeat: point.value(metric.key) for point in row.used}
    known = {repeat: value for repeat, value in values.items() if value is not None and value > 0}
    return known if len(known) == len(values) else {}


def _tested(
    head: Effect,
    of_subject: Mapping[int, float],
    of_baseline: Mapping[int, float],
    *,
    middle: float | None = None,
    in_blocks: bool,
) -> Effect:
    """The effect with its tests. `middle`: the ratio, if not computed from these values alone."""
    subject, baseline = list(of_subject.values()), list(of_baseline.values())
    head = head.model_copy(
        update={"rank_p": rank_p(subject, baseline), "delta": cliffs_delta(subject, baseline)}
    )
    if min(len(subject), len(baseline)) < 2:
        found = ratio(subject, baseline)
        return head.model_copy(
            update={
                "ratio": found if middle is None else Ratio(value=middle, repeats=found.repeats)
            }
        )
    both = [repeat for repeat in of_subject if repeat in of_baseline]
    if in_blocks and len(both) == len(subject) == len(baseline):
        tested = paired(
            [of_subject[repeat] for repeat in both], [of_baseline[repeat] for repeat in both]
        )
    else:
        tested = welch(subject, baseline)
    if middle is not None:
        tested = tested.model_copy(update={"difference": math.log(middle)})
    return with_test(head, tested)


def with_test(head: Effect, tested: TTest) -> Effect:
    """The effect with the results of a test."""
    return head.model_copy(update={"ratio": tested.ratio, "p": tested.p, "tested": tested})


def _doubts(
    metric: Metric, baseline: Row, subject: Row, between: Sequence[PairDoubt]
) -> tuple[Doubt, ...]:
    """Doubts about a metric of two sides: about either, about the pair, or too few repeats."""
    names = (baseline.layout, subject.layout)
    own = [
        doubt.model_copy(update={"words": f"{row.layout}: {doubt.words}"})
        if doubt.what != "machine busy"
        else doubt
        for row in (baseline, subject)
        for doubt in row.doubts
    ]
    lone = few(min(len(baseline.used), len(subject.used)))
    coarse = _coarse(metric, _middle(baseline, metric), _middle(subject, metric))
    also = [one for one in (lone, coarse) if one is not None]
    return touching([*own, *(one.doubt for one in between if one.about(*names)), *also], metric.key)


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


def _in_bins(
    head: Effect, metric: Metric, baseline: Row, subject: Row, bins: tuple[Interval, Interval]
) -> Effect:
    """Two sides whose repeats' percentiles are known as bins."""
    sub, base = (
        [one for point in row.used if (one := point.within(metric.key)) is not None]
        for row in (subject, baseline)
    )
    if len(sub) < len(subject.used) or len(base) < len(baseline.used):
        return _without(head, "too few samples in a repeat")
    pairs = [(one, other) for one in sub for other in base if not one.touches(other)]
    won = sum(one.low_ms > other.low_ms for one, other in pairs)
    lost, open_pairs = len(pairs) - won, len(sub) * len(base) - len(pairs)
    # However the touching pairs turn out, the p-value is at most that of the count closest to half.
    nearest = min(
        range(won, won + open_pairs + 1), key=lambda wins: abs(2 * wins - len(sub) * len(base))
    )
    p = rank_p_of(nearest, len(sub), len(base)) if min(len(sub), len(base)) >= 2 else None
    allowed = _allowed(*bins, min(len(sub), len(base)))
    if allowed is None:
        return _without(head, "beyond the last bin")
    delta = (won - lost) / (len(sub) * len(base))
    return head.model_copy(update={"ratio": allowed, "p": p, "rank_p": p, "delta": delta})


def _allowed(base: Interval, sub: Interval, repeats: int) -> Ratio | None:
    """The range of the ratio of the medians, at the bins' centers; None without an upper edge."""
    if base.high_ms is None or sub.high_ms is None:
        return None
    middle = (sub.low_ms + sub.high_ms) / (base.low_ms + base.high_ms)
    if sub.low_ms == 0 or base.low_ms == 0:
        return Ratio(value=middle, repeats=repeats)
    return Ratio(
        value=middle, low=sub.low_ms / base.high_ms, high=sub.high_ms / base.low_ms, repeats=repeats
    )
