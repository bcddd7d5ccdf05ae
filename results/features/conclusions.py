"""A study's conclusions checked by its replay: supported, contradicted, or undecided, and why.

A conclusion consists of checks, each comparing cells with other cells (suites.studies).
It is supported if every cell agrees, contradicted if one says the opposite, and else undecided.
Cells are judged as layouts are (`results.judge.comparing`), for all conclusions of the study at
once, so that p-values are corrected for all of them. A verdict that
is not a claim (no difference found, provisional, not comparable) neither agrees nor contradicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal, NamedTuple

from weighbridge.results.figures.doubt import PairDoubt
from weighbridge.results.figures.metrics import METRICS, Figures, MetricKey
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import TOGETHER, at_workers, correlation, judge
from weighbridge.results.judge.comparison import Effect
from weighbridge.results.numbers import all_of, counted, grouped, show_ratio
from weighbridge.suites import Bounds
from weighbridge.suites.studies import (
    BANDWIDTH,
    Cells,
    Conclusion,
    ConclusionCheck,
    Study,
    StudyScale,
)

Verdict = Literal["supports", "contradicts", "cannot tell"]
"""A replay's verdict on a conclusion."""

_NOT_SHOWN: Final = "no difference found, which is not the same as there being none"


@dataclass(frozen=True)
class ConclusionCell:
    """`agrees` is None if undecided; `text` says why, or what was measured."""

    agrees: bool | None
    text: str
    why: str = ""
    """Why it is undecided, without the cell's name: equal for all cells with the same reason."""


@dataclass(frozen=True)
class ConclusionResult:
    """A conclusion and a run's verdict on it."""

    id: str
    says: str
    where: str
    verdict: Verdict
    why: str
    cells: tuple[ConclusionCell, ...]


class _Place(NamedTuple):
    """A cell by the names of this run; `workers` is our number."""

    variant: str
    workload: str
    workers: int


class _Pair(NamedTuple):
    of: _Place
    than: _Place
    bandwidth: bool


def conclusions(
    study: Study,
    scale: StudyScale,
    rows: Sequence[Row],
    bounds: Bounds,
    between: Sequence[PairDoubt] = (),
) -> tuple[ConclusionResult, ...]:
    """A replay's verdict on each conclusion. `between` are doubts about pairs of layouts."""
    cells = _Cells(study, scale, rows)
    asked: dict[tuple[_Pair, MetricKey], tuple[Row, Row]] = {}
    for one in study.conclusions:
        for check in one.checks:
            for pair in cells.pairs(check):
                of, than = cells.row(pair.of), cells.row(pair.than)
                if of is not None and than is not None and not cells.lacks(pair):
                    sides = tuple(map(_by_bandwidth, (than, of))) if pair.bandwidth else (than, of)
                    asked[pair, _compared(check)] = (sides[0], sides[1])
    effects = judged_pairs(
        [(metric, *sides) for (_, metric), sides in asked.items()], rows, bounds, between
    )
    by_pair = dict(zip(asked, effects, strict=True))
    return tuple(_held(one, cells, by_pair) for one in study.conclusions)


def judged_pairs(
    pairs: Sequence[tuple[MetricKey, Row, Row]],
    rows: Sequence[Row],
    bounds: Bounds,
    between: Sequence[PairDoubt] = (),
) -> tuple[Effect, ...]:
    """The effects of pairs of cells (metric, the baseline's row, the other's), judged together.

    `rows` is the table that they are of; `between` are doubts about pairs of layouts.
    """
    layouts = {(baseline.layout, subject.layout) for _, baseline, subject in pairs}
    in_blocks = {
        pair for pair in layouts if pair[0] != pair[1] and correlation(rows, *pair) >= TOGETHER
    }
    effects = []
    for metric, baseline, subject in pairs:
        sides = (baseline.layout, subject.layout)
        doubts = [one.doubt for one in between if one.about(*sides)]
        paired = sides in in_blocks
        effects.append(at_workers(METRICS[metric], baseline, subject, doubts, paired=paired))
    return judge(effects, bounds)[0]


def _compared(check: ConclusionCheck) -> MetricKey:
    """A bandwidth is judged as a throughput is."""
    return "throughput" if check.metric == BANDWIDTH else check.metric


class _Cells:
    """The cells of a replay by their places."""

    def __init__(self, study: Study, scale: StudyScale, rows: Sequence[Row]) -> None:
        self._study = study
        self._scale = scale
        self._rows = grouped(rows, lambda row: _Place(row.layout, row.workload, row.workers))

    def pairs(self, check: ConclusionCheck) -> Iterator[_Pair]:
        for variant, workload, workers in product(
            check.of.variants, check.of.workloads, check.of.workers
        ):
            than = Cells(
                variants=check.than.variants or (variant,),
                workloads=check.than.workloads or (workload,),
                workers=check.than.workers or (workers,),
            )
            one = self._place(variant, workload, workers)
            for other in product(than.variants, than.workloads, than.workers):
                yield _Pair(one, self._place(*other), check.metric == BANDWIDTH)

    def _place(self, variant: str, workload: str, workers: int) -> _Place:
        return _Place(variant, workload, self._scale.our_workers(workload, workers))

    def row(self, place: _Place) -> Row | None:
        """The only row of a place; None if there is none, or several."""
        found = self._rows.get(place, [])
        return found[0] if len(found) == 1 else None

    def lacks(self, pair: _Pair) -> str:
        """Why two cells cannot be compared at all; empty if they can."""
        for place in (pair.of, pair.than):
            row = self.row(place)
            if row is None:
                return (
                    "several figures to choose from"
                    if self._rows.get(place)
                    else "not measured in this run"
                )
            if not row.ranked:
                doubted = ", ".join(one.what for one in row.condemned)
                return (
                    f"{self._study.label(place.variant)}: "
                    f"{doubted or (row.notes or ('not ranked',))[0].splitlines()[0]}"
                )
            if pair.bandwidth and (
                row.value("bandwidth") is None
                or any(point.value("bandwidth") is None for point in row.points)
            ):
                return "bandwidth unknown"
        return ""

    def limits(self, pair: _Pair) -> str:
        """What limited the two cells, in brackets; empty if unknown for both."""
        sides = []
        for place in (pair.of, pair.than):
            row = self.row(place)
            if row is not None:
                sides.append((self._study.label(place.variant), row.limited_by))
        known = dict.fromkeys((who, by) for who, by in sides if by is not None)
        if not known:
            return ""
        if len({by for _, by in sides}) == 1:
            return f" (both limited by {sides[0][1]})"
        return f" (limited by {'; '.join(f'{by}, {who}' for who, by in known)})"

    def words(self, pair: _Pair) -> tuple[str, str]:
        """Names of the two cells: the first in full, the second by what differs."""
        of, than = pair.of, pair.than
        named = f"{self._study.label(of.variant)} in {of.workload} at {self._workers(of)}"
        differs = [self._study.label(than.variant)] if than.variant != of.variant else []
        differs += [than.workload] if than.workload != of.workload else []
        differs += [self._workers(than)] if than.workers != of.workers else []
        return named, " ".join(differs)

    def _workers(self, place: _Place) -> str:
        theirs = self._scale.study_workers(place.workload, place.workers)
        count = counted(place.workers, "worker")
        return count if theirs == place.workers else f"{count} (study: {theirs})"


def _by_bandwidth(row: Row) -> Row:
    points = tuple(point.model_copy(update=_swapped(point)) for point in row.points)
    return row.model_copy(update={**_swapped(row), "points": points})


def _swapped(one: Figures) -> dict[str, object]:
    return {"figures": {**one.figures, "throughput": one.figure("bandwidth")}}


def _held(
    one: Conclusion, cells: _Cells, effects: Mapping[tuple[_Pair, MetricKey], Effect]
) -> ConclusionResult:
    seen = tuple(
        _seen(check, pair, cells, effects) for check in one.checks for pair in cells.pairs(check)
    )
    agree = [cell for cell in seen if cell.agrees is True]
    opposite = [cell for cell in seen if cell.agrees is False]
    undecided = Counter(cell.why for cell in seen if cell.agrees is None)
    verdict: Verdict = "contradicts" if opposite else "cannot tell" if undecided else "supports"
    if opposite:
        why = f"{_share(len(opposite), len(seen))} the opposite: {opposite[0].text}"
    elif undecided:
        reasons = "; ".join(
            f"{reason} ({count})" if len(undecided) > 1 else reason
            for reason, count in undecided.most_common()
        )
        why = f"{_share(undecided.total(), len(seen))} nothing: {reasons}"
        why += f"; {len(agree)} would support it" if agree else ""
    else:
        why = f"{_share(len(agree), len(seen))} so: {agree[0].text}"
    return ConclusionResult(
        id=one.id,
        says=one.says,
        where=one.where,
        verdict=verdict,
        why=" ".join(filter(None, (f"{why}.", one.note))),
        cells=seen,
    )


def _share(count: int, cells: int) -> str:
    """`3 of 8 cells say`, `all 8 cells say`, `its one cell says`."""
    if cells == 1:
        return "its one cell says"
    if count == cells:
        return f"{all_of(count, 'cells')} say"
    return f"{count} of {cells} cells say{'s' * (count == 1)}"


def _seen(
    check: ConclusionCheck,
    pair: _Pair,
    cells: _Cells,
    effects: Mapping[tuple[_Pair, MetricKey], Effect],
) -> ConclusionCell:
    of, than = cells.words(pair)
    lack = cells.lacks(pair)
    effect = effects.get((pair, _compared(check)))
    if lack or effect is None:
        return _undecided(f"{of} and {than}", lack or f"no {METRICS[check.metric].name} to compare")
    if not effect.claimed or effect.ratio is None:
        doubted = ", ".join(dict.fromkeys(doubt.what for doubt in effect.doubts))
        return _undecided(
            f"{of} and {than}",
            doubted or (_NOT_SHOWN if effect.verdict == "not significant" else effect.verdict),
        )
    text = f"{of} has {show_ratio(effect.ratio.value)} the {METRICS[check.metric].name} of {than}"
    text += cells.limits(pair)
    agrees = _agrees(check, effect)
    if agrees is None:
        return _undecided(text, f"the interval includes {show_ratio(check.factor)}")
    return ConclusionCell(agrees=agrees, text=text)


def _undecided(text: str, why: str) -> ConclusionCell:
    return ConclusionCell(agrees=None, text=f"{text}: {why}", why=why)


def _agrees(check: ConclusionCheck, effect: Effect) -> bool | None:
    """Whether a claim is as a check expects; None if the ratio's interval leaves that open."""
    if check.expect == "better":
        return effect.verdict == "better"
    if effect.verdict == "too small to matter" or (
        check.expect == "not-better" and effect.verdict == "worse"
    ):
        return True
    if effect.ratio is None or effect.ratio.low is None or effect.ratio.high is None:
        return None
    low, high = effect.ratio.low, effect.ratio.high
    if 1 / check.factor <= low and high <= check.factor:
        return True
    return False if low > check.factor or high < 1 / check.factor else None
