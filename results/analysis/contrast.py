"""Two sides measured against each other, before anything is concluded: ratio, tests, and what a sentence about them needs.

Throughputs are compared by the geometric means of the repeats; so are the repeats' own 90th percentiles, which are never averaged.
Over worker counts a ratio is the geometric mean of the counts' ratios, and its tests are of each repeat's own geometric mean over
the counts, of the repeats that are whole at every count.

Of latencies that a driver told in bins nothing is known within a bin. The sides are then compared pair by pair: one is the higher
where the bins do not touch. The p-value is the largest that the rank test could come to, whatever the latencies within the bins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weighbridge.results.analysis.blocks import paired
from weighbridge.results.analysis.steps.summary import NOT_STEADY, NOT_VALID, Row
from weighbridge.results.doubt import Doubt, PairDoubt, doubt_words, few, graves, touching
from weighbridge.results.interval import Interval
from weighbridge.results.metrics import Metric
from weighbridge.results.statistics import Ratio, Welch, cliffs_delta, geometric_mean, rank_p, rank_p_of, ratio, welch

Pair = tuple[Row, Row]
"""Baseline and subject."""


@dataclass(frozen=True)
class Contrast:
    """One metric of two sides. `ratio` is how many times the baseline's the subject's is; None where they cannot be compared."""

    metric: Metric
    baseline: Row
    subject: Row
    """Of a contrast over all worker counts, those of the highest that can be compared."""
    workers: int | None
    ratio: Ratio | None = None
    doubts: tuple[Doubt, ...] = ()
    """What touches either side, the grave first."""
    p: float | None = None
    welch: Welch | None = None
    """What the verdict is made from; None of latencies in bins, and where a side has one repeat."""
    rank_p: float | None = None
    delta: float | None = None
    values: tuple[float | None, float | None] = (None, None)
    by_count: tuple[tuple[int, float], ...] = ()
    """Over all worker counts: each that could be compared, and its ratio."""
    lacking: tuple[int, ...] = ()
    """Over all worker counts: those that could not be compared."""
    reasons: str = ""
    """Why there is no ratio."""
    drift: float = 1.0
    """By how much at most the ratio may be off for drifts within windows that are not ruled out, as a ratio from 1 up."""

    @property
    def bins(self) -> tuple[Interval, Interval] | None:
        """What the two latencies lie in, where they are told in bins."""
        base, sub = (_bin(row, self.metric) for row in (self.baseline, self.subject))
        return (base, sub) if base is not None and sub is not None else None

    @property
    def least(self) -> float:
        """How far the two are apart, as a ratio above 1; of latencies in bins at the very least. 1 where nothing is known."""
        if self.ratio is None:
            return 1.0
        if self.bins is None:
            return self.ratio.either_way
        return max(1.0, self.ratio.low or 0.0, 1 / self.ratio.high if self.ratio.high is not None else 0.0)


ALWAYS: Final = ("throughput", "p90")
"""Metrics that are compared, or said not to be comparable, everywhere; others only where a side has them."""


def comparable(*rows: Row) -> bool:
    """Whether each of these rows may be ranked and has throughputs that can be set against another's."""
    return all(row.ranked and min((point.ops_s for point in row.used), default=0) > 0 for row in rows)


def reason(row: Row) -> str:
    """Why a row cannot be compared, as short as it can be said: of an error the first line, not what to do about it."""
    if row.ranked:
        return "nothing succeeded"
    if row.valid and row.steady is not False and row.condemned:
        return doubt_words(row.condemned)
    note = next((note for note in row.notes if note not in (NOT_VALID, NOT_STEADY)), NOT_STEADY if row.valid else NOT_VALID)
    return note.splitlines()[0]


def at_workers(
    metric: Metric, baseline: Row, subject: Row, between: Sequence[PairDoubt] = (), *, in_blocks: bool = False
) -> Contrast:
    """Two sides at one worker count; `between` is what there is to doubt of layouts beside each other.

    `in_blocks`: each repeat of the one is compared with that of the other in its block (`results.analysis.blocks`).
    """
    doubts = _doubts(metric, baseline, subject, between)
    head = Contrast(
        metric=metric,
        baseline=baseline,
        subject=subject,
        workers=subject.workers,
        doubts=doubts,
        values=(_middle(baseline, metric), _middle(subject, metric)),
        drift=_drift(baseline.drift or 0.0, subject.drift or 0.0),
    )
    if not comparable(baseline, subject):
        reasons = "; ".join(f"{row.layout}: {reason(row)}" for row in (baseline, subject) if not comparable(row))
        return replace(head, reasons=reasons)
    if graves(doubts):
        return replace(head, reasons=doubt_words(graves(doubts)))
    if head.bins is not None:
        return _in_bins(head)
    base, sub = (figures(row, metric) for row in (baseline, subject))
    if not base or not sub:
        lack = "; ".join(f"{row.layout}: too few samples" for row, values in ((baseline, base), (subject, sub)) if not values)
        return replace(head, reasons=lack)
    return _tested(head, sub, base, in_blocks=in_blocks)


def over_all(cells: Sequence[Contrast], *, in_blocks: bool = False) -> Contrast:
    """Two sides over all worker counts, of their contrasts at each count: at least one. `in_blocks` as of `at_workers`."""
    metric = cells[0].metric
    usable = [cell for cell in cells if cell.ratio is not None and cell.bins is None]
    if not usable:
        last = cells[-1]
        if any(cell.bins is not None for cell in cells):
            reasons = "told in bins: compared at each worker count alone"
        else:
            told = [row for row in (last.baseline, last.subject) if not comparable(row)]
            reasons = "; ".join(f"{row.layout} at {workers_words(row.workers)}: {reason(row)}" for row in told) or last.reasons
        doubts = tuple(dict.fromkeys(doubt for cell in cells for doubt in cell.doubts))
        return Contrast(metric=metric, baseline=last.baseline, subject=last.subject, workers=None, doubts=doubts, reasons=reasons)
    by_count = tuple((cell.subject.workers, cell.ratio.value) for cell in usable if cell.ratio is not None)
    sub, base = (_by_repeat(rows, metric) for rows in ([cell.subject for cell in usable], [cell.baseline for cell in usable]))
    lacking = tuple(cell.subject.workers for cell in cells if cell not in usable)
    worries = [doubt for cell in usable for doubt in cell.doubts]
    if lacking:
        counts = f"{', '.join(map(str, lacking))} worker{'s' * (lacking != (1,))}"
        worries.append(Doubt(what="not whole", grade="mild", words=f"not comparable at {counts}"))
    lone = few(min(len(sub), len(base)))
    worries += [lone] if lone is not None else []
    head = Contrast(
        metric=metric,
        baseline=usable[-1].baseline,
        subject=usable[-1].subject,
        workers=None,
        doubts=touching(worries, metric.key),
        by_count=by_count,
        drift=max(cell.drift for cell in usable),
        lacking=lacking,
    )
    middle = geometric_mean([value for _, value in by_count])
    if not sub or not base:
        return replace(head, ratio=Ratio(value=middle, repeats=1))
    # The value is of all valid repeats, the tests of those that are whole: keep both about the same middle.
    return _tested(head, sub, base, middle=middle, in_blocks=in_blocks)


def _middle(row: Row, metric: Metric) -> float | None:
    """The geometric mean of the repeats' own figures; None where one of them is unknown."""
    known = list(figures(row, metric).values())
    return geometric_mean(known) if known else None


def _drift(one: float, other: float) -> float:
    """By how much at most a ratio is off where windows moved by such shares of their means from end to end, either way."""
    return max((1 + a / 2) / (1 - min(b, 1.0) / 2) for a, b in ((one, other), (other, one)))


def workers_words(count: int) -> str:
    """`1 worker`, `8 workers`."""
    return "1 worker" if count == 1 else f"{count} workers"


def _by_repeat(rows: Sequence[Row], metric: Metric) -> dict[int, float]:
    """The geometric mean over the rows of each repeat that all of them have."""
    found = [{point.repeat: value for point in row.used if (value := point.value(metric.key)) is not None} for row in rows]
    return {repeat: geometric_mean([one[repeat] for one in found]) for repeat in found[0] if all(repeat in one for one in found)}


def figures(row: Row, metric: Metric) -> dict[int, float]:
    """The repeats' own figures; none where one of them is unknown: the others would be another set of repeats."""
    values = {point.repeat: point.value(metric.key) for point in row.used}
    known = {repeat: value for repeat, value in values.items() if value is not None and value > 0}
    return known if len(known) == len(values) else {}


def _tested(
    head: Contrast,
    of_subject: Mapping[int, float],
    of_baseline: Mapping[int, float],
    *,
    middle: float | None = None,
    in_blocks: bool,
) -> Contrast:
    """The contrast with its tests. `middle`: what the ratio is, where it is not that of these values alone."""
    subject, baseline = list(of_subject.values()), list(of_baseline.values())
    head = replace(head, rank_p=rank_p(subject, baseline), delta=cliffs_delta(subject, baseline))
    if min(len(subject), len(baseline)) < 2:
        found = ratio(subject, baseline)
        return replace(head, ratio=found if middle is None else Ratio(value=middle, repeats=found.repeats))
    both = [repeat for repeat in of_subject if repeat in of_baseline]
    if in_blocks and len(both) == len(subject) == len(baseline):
        tested = paired([of_subject[repeat] for repeat in both], [of_baseline[repeat] for repeat in both])
    else:
        tested = welch(subject, baseline)
    if middle is not None:
        tested = Welch.model_validate({**tested.model_dump(), "difference": math.log(middle)})
    return replace(head, ratio=tested.ratio, p=tested.p, welch=tested)


def _doubts(metric: Metric, baseline: Row, subject: Row, between: Sequence[PairDoubt]) -> tuple[Doubt, ...]:
    """What touches a metric of two sides: of either, of both beside each other, and that there are too few repeats."""
    names = (baseline.layout, subject.layout)
    own = [
        doubt.model_copy(update={"words": f"{row.layout}: {doubt.words}"}) if doubt.what != "machine busy" else doubt
        for row in (baseline, subject)
        for doubt in row.doubts
    ]
    lone = few(min(len(baseline.used), len(subject.used)))
    return touching([*own, *(one.doubt for one in between if one.about(*names)), *([lone] if lone else [])], metric.key)


def _bin(row: Row, metric: Metric) -> Interval | None:
    """What a figure lies in, where the driver tells it in bins."""
    return row.within(metric.key)


def _bins(row: Row, metric: Metric) -> list[Interval]:
    """The same of each repeat that has it."""
    return [one for point in row.used if (one := point.within(metric.key)) is not None]


def _in_bins(head: Contrast) -> Contrast:
    """Two sides of which each repeat's percentile is known to lie in a bin."""
    sub, base = (_bins(row, head.metric) for row in (head.subject, head.baseline))
    if len(sub) < len(head.subject.used) or len(base) < len(head.baseline.used):
        return replace(head, reasons="too few samples in a repeat")
    pairs = [(one, other) for one in sub for other in base if not one.touches(other)]
    won = sum(one.low_ms > other.low_ms for one, other in pairs)
    lost, untold = len(pairs) - won, len(sub) * len(base) - len(pairs)
    # Whatever the pairs that touch come to, the test comes to no more than with those that bring it nearest to half.
    nearest = min(range(won, won + untold + 1), key=lambda wins: abs(2 * wins - len(sub) * len(base)))
    p = rank_p_of(nearest, len(sub), len(base)) if min(len(sub), len(base)) >= 2 else None
    allowed = _allowed(head, min(len(sub), len(base)))
    if allowed is None:
        return replace(head, reasons="beyond the last bin")
    return replace(
        head,
        ratio=allowed,
        p=p,
        rank_p=p,
        delta=(won - lost) / (len(sub) * len(base)),
    )


def _allowed(head: Contrast, repeats: int) -> Ratio | None:
    """What the ratio of the medians may be; its middle is that of the bins' middles. None where a bin has no end."""
    if head.bins is None:
        return None
    base, sub = head.bins
    if base.high_ms is None or sub.high_ms is None:
        return None
    middle = (sub.low_ms + sub.high_ms) / (base.low_ms + base.high_ms)
    if sub.low_ms == 0 or base.low_ms == 0:
        return Ratio(value=middle, repeats=repeats)
    return Ratio(value=middle, low=sub.low_ms / base.high_ms, high=sub.high_ms / base.low_ms, repeats=repeats)
