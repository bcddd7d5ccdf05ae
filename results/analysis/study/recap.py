"""The recap of a study: a map of per cent change from one level of a factor to another, all else
being equal.

As in the study of 2012 (M. Nelson, Argonaut vs Bobtail Performance Preview): a cell for each kind
of requests, object size and number of outstanding operations. A cell makes a claim only with enough
repeats without doubts on both sides, an interval beyond the practical threshold, and significance
after Benjamini and Hochberg's correction over all cells of its map.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

from pydantic import PositiveInt

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Share
from weighbridge.results.analysis.leads import NEAR
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import doubt_words, touching
from weighbridge.results.figures import show_percent
from weighbridge.results.statistics import (
    LEVEL,
    REPEATS_FOR_A_CLAIM,
    Ratio,
    corrected,
    ratio,
    welch,
)
from weighbridge.suites import Workload
from weighbridge.suites.studies import WORKLOAD, FactorComparison, Study, Variant

SAME: Final = "~"
"""No change that matters: below the practical threshold, or not significant."""

_PICKS: Final = {"sequential": "sequential", "uniform": "random"}

Verdict = Literal["changed", "same", "provisional", "missing"]
"""The verdict on a cell. `provisional`: fewer repeats than a claim needs, or a doubt."""


class RecapCell(Record):
    """The change of throughput of one kind of requests; `ratio` None: not measured or not valid."""

    down: str
    across: str
    baseline: str
    layout: str
    workload: str
    workers: PositiveInt
    ratio: Ratio | None
    verdict: Verdict
    p: Share | None = None
    """Welch's test on the logarithms; None if a side has one repeat."""
    q: Share | None = None
    """The p-value corrected for the number of cells of the map."""
    why: str = ""

    @property
    def percent(self) -> float | None:
        return None if self.ratio is None else (self.ratio.value - 1) * 100

    @property
    def text(self) -> str:
        """`+34 %`, `~`, or a cross if missing; in brackets if it makes no claim."""
        if self.ratio is None or self.percent is None:
            return "×"
        if self.verdict == "same":
            return SAME
        words = SAME if abs(self.percent) < NEAR * 100 else show_percent(self.ratio.value)
        return words if self.verdict == "changed" else f"({words})"


class Recap(Record):
    """The map of one level vs the baseline of its factor; cells are in drawing order."""

    title: str
    factor: str
    baseline: str
    level: str
    down: tuple[str, ...]
    across: tuple[str, ...]
    cells: tuple[RecapCell, ...]

    def cell(self, down: str, across: str) -> RecapCell | None:
        return next((one for one in self.cells if (one.down, one.across) == (down, across)), None)


def recaps(study: Study, rows: Sequence[Row], workloads: Sequence[Workload]) -> tuple[Recap, ...]:
    """The maps that a study compares, for all variants that have rows; none without cells."""
    here = {row.layout for row in rows}
    variants = [variant for variant in study.variants if variant.name in here]
    picks = {workload.name: _PICKS.get(str(workload.pick), "") for workload in workloads}
    made = [
        _recap(study, one, level, variants, rows, picks)
        for one in study.compares
        for level in one.against
    ]
    return tuple(one for one in made if one.cells)


def change(after: Sequence[float], before: Sequence[float]) -> tuple[Ratio, Verdict]:
    """The ratio of two sets of repeats and the verdict on it. Raises ValueError as `ratio` does."""
    found = ratio(after, before)
    if found.repeats < REPEATS_FOR_A_CLAIM:
        return found, "provisional"
    low, high = found.low, found.high
    clear = low is not None and high is not None and (low > 1 + NEAR or high < 1 / (1 + NEAR))
    return found, "changed" if clear else "same"


def corrected_cells(cells: Sequence[RecapCell]) -> tuple[RecapCell, ...]:
    """The cells of one map with corrected p-values; insignificant ones have not changed."""
    tested = [number for number, cell in enumerate(cells) if cell.p is not None]
    made = list(cells)
    for number, q in zip(
        tested, corrected([p for cell in cells if (p := cell.p) is not None]), strict=True
    ):
        still = (
            cells[number].verdict if q <= LEVEL or cells[number].verdict != "changed" else "same"
        )
        made[number] = cells[number].model_copy(update={"q": q, "verdict": still})
    return tuple(made)


def _recap(
    study: Study,
    one: FactorComparison,
    level: str,
    variants: Sequence[Variant],
    rows: Sequence[Row],
    picks: dict[str, str],
) -> Recap:
    by_workload = one.factor == WORKLOAD
    pairs = [
        (a, b)
        for a in variants
        for b in variants
        if (a is b if by_workload else _differ(a, b, one.factor, one.baseline, level))
    ]
    varying = [
        factor
        for factor in study.factors
        if factor != one.factor and len({a.factors.get(factor) for a, _ in pairs}) > 1
    ]
    # By workload: rows of the level count as those of the baseline's workload.
    of = {
        (row.layout, _kind(row, one.baseline if by_workload else row.workload)): row
        for row in rows
        if not by_workload or row.workload == level
    }
    matched = [
        (a, row, of[key])
        for a, b in pairs
        for row in rows
        if row.layout == a.name
        and (not by_workload or row.workload == one.baseline)
        and (key := (b.name, _kind(row))) in of
    ]
    words = _operation_words([before for _, before, _ in matched], picks)
    named = [
        " · ".join([*(study.label(a.factors[name]) for name in varying), words[_kind(before)]])
        for a, before, _ in matched
    ]
    # Two workloads of one operation and size: their names tell them apart.
    places = [(name, *_across(before)) for name, (_, before, _) in zip(named, matched, strict=True)]
    twice = {place for place, count in Counter(places).items() if count > 1}
    named = [
        f"{name} · {before.workload}" if place in twice else name
        for name, place, (_, before, _) in zip(named, places, matched, strict=True)
    ]
    cells = corrected_cells(
        [
            _cell(name, before, after)
            for name, (_, before, after) in zip(named, matched, strict=True)
        ]
    )
    across = {_column(before): _across(before) for _, before, _ in matched}
    return Recap(
        title=f"{one.factor}: {study.label(one.baseline)} → {study.label(level)}",
        factor=one.factor,
        baseline=one.baseline,
        level=level,
        down=tuple(dict.fromkeys(cell.down for cell in cells)),
        across=tuple(sorted(across, key=lambda text: across[text])),
        cells=cells,
    )


def _differ(a: Variant, b: Variant, factor: str, baseline: str, level: str) -> bool:
    """Whether two variants differ in a factor as requested, and in nothing else."""
    rest_a, rest_b = (
        {name: value for name, value in one.factors.items() if name != factor} for one in (a, b)
    )
    return a.factors.get(factor) == baseline and b.factors.get(factor) == level and rest_a == rest_b


def _kind(row: Row, workload: str | None = None) -> tuple[object, ...]:
    """What two rows must share to be compared, by their own workload or as another one."""
    named = row.workload if workload is None else workload
    return named, row.operation, row.api, row.driver, row.layer, row.workers


def _across(row: Row) -> tuple[float, int]:
    return row.object_size_bytes or 0.0, row.workers


def _column(row: Row) -> str:
    size = "" if row.object_size_bytes is None else show_bytes(row.object_size_bytes)
    return f"{size} × {row.workers}" if size else f"{row.workers}"


def _operation_words(rows: Sequence[Row], picks: dict[str, str]) -> dict[tuple[object, ...], str]:
    """Names of the requests of each kind: `write`, `read, random`; with the API of several."""
    apis = {(row.api, row.layer) for row in rows}
    words = {}
    for row in rows:
        others = {picks.get(one.workload, "") for one in rows if one.operation == row.operation}
        text = (
            f"{row.operation}, {picks[row.workload]}"
            if len(others) > 1 and picks.get(row.workload)
            else str(row.operation)
        )
        words[_kind(row)] = f"{text} ({row.layer or row.api})" if len(apis) > 1 else text
    return words


def _cell(down: str, before: Row, after: Row) -> RecapCell:
    head = {
        "down": down,
        "across": _column(before),
        "baseline": before.layout,
        "layout": after.layout,
        "workload": before.workload,
        "workers": before.workers,
    }
    for row in (before, after):
        if not row.ranked:
            why = doubt_words(row.condemned) or "; ".join(row.notes) or "not measured"
            return RecapCell(**head, ratio=None, verdict="missing", why=f"{row.layout}: {why}")
    a, b = ([point.ops_s for point in row.used] for row in (after, before))
    if not a or not b or min(*a, *b) <= 0:
        return RecapCell(
            **head,
            ratio=None,
            verdict="missing",
            why="a repeat had no successful operation: there is no ratio",
        )
    found, verdict = change(a, b)
    p = welch(a, b).p if found.repeats >= 2 else None
    doubts = touching([*before.doubts, *after.doubts], "throughput")
    if doubts:
        return RecapCell(**head, ratio=found, verdict="provisional", p=p, why=doubt_words(doubts))
    return RecapCell(**head, ratio=found, verdict=verdict, p=p)
