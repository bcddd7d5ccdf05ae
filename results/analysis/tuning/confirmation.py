"""The confirmation of a tuning: its winner against the baseline on fresh deployments, so on data
that it was not chosen on.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparing import judge
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import effect_of, with_test
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.sentence import strength
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import few
from weighbridge.results.figures import show_ratio
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import State, TuningRun
from weighbridge.results.statistics import Ratio, geometric_mean, ratio, welch
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Objective


class Confirmation(Record):
    """What the run came to that was to confirm a winner.

    `effects` are in the order of the objectives.
    """

    folder: Path
    """Its run folder."""
    state: State
    baseline: str
    winner: str
    """The layouts, by their names there."""
    repeats: NonNegativeInt
    """Visits of the side that has fewer; 0 where nothing could be compared."""
    effects: tuple[Effect | None, ...]
    """None: the run has nothing about this objective."""

    @property
    def known(self) -> tuple[Effect, ...]:
        """Those that were compared."""
        return tuple(one for one in self.effects if one is not None and one.ratio is not None)

    @property
    def confirmed(self) -> bool:
        """Whether the winner is shown to be better in one objective at least, and worse in none."""
        verdicts = [one.verdict for one in self.effects if one is not None]
        return (
            len(self.known) == len(self.effects)
            and "better" in verdicts
            and "worse" not in verdicts
        )

    @property
    def gain(self) -> Ratio | None:
        """How much better the winner is, as the geometric mean over the objectives; its interval
        where there is one objective.
        """
        ratios = [
            one.ratio if METRICS[one.metric].better == "more" else one.ratio.inverted
            for one in self.known
            if one.ratio is not None
        ]
        if not ratios or len(ratios) < len(self.effects):
            return None
        value = geometric_mean([one.value for one in ratios])
        return ratios[0] if len(ratios) == 1 else Ratio(value=value, repeats=self.repeats or 1)


def confirmation_folder(folder: Path) -> Path | None:
    """The newest run folder of those below; None where none has begun.

    Links are none: they may lead to anything.
    """
    if folder.is_symlink():
        return None
    runs = (path.parent for path in folder.glob("*/manifest.json") if not path.parent.is_symlink())
    return max(runs, key=lambda path: path.name, default=None)


def confirmation(
    folder: Path,
    state: State,
    run: TuningRun,
    comparison: Comparison,
    rows: tuple[Row, ...],
    bounds: Bounds,
) -> Confirmation | None:
    """What a run of baseline and winner says of a tuning's objectives; None where it has no two
    layouts.
    """
    if not comparison.subjects:
        return None
    sides = comparison.baseline, comparison.subjects[0]
    effects = tuple(
        _at(one, sides[1], comparison)
        if one.p90_within is None
        else _within(one, sides, rows, bounds)
        for one in run.objectives
    )
    repeats = [one.ratio.repeats for one in effects if one is not None and one.ratio is not None]
    return Confirmation(
        folder=folder,
        state=state,
        baseline=sides[0],
        winner=sides[1],
        repeats=min(repeats, default=0),
        effects=effects,
    )


def _at(objective: Objective, winner: str, comparison: Comparison) -> Effect | None:
    """The cell of the comparison that an objective is about."""
    return next(
        (
            one
            for one in comparison.effects
            if (one.subject, one.workload, one.operation, one.workers, one.metric)
            == (winner, objective.workload, objective.operation, objective.workers, objective.of)
        ),
        None,
    )


def _within(
    objective: Objective, sides: tuple[str, str], rows: tuple[Row, ...], bounds: Bounds
) -> Effect | None:
    """The largest throughput that keeps p90 within its bound, visit by visit, of both sides."""
    mine = [
        row
        for row in rows
        if (row.workload, row.operation) == (objective.workload, objective.operation)
    ]
    heads = [next((row for row in mine if row.layout == side), None) for side in sides]
    base, sub = heads
    if base is None or sub is None:
        return None
    bound_ms = (objective.p90_within or 0.0) * 1000
    before, after = (
        _largest([row for row in mine if row.layout == side], bound_ms) for side in sides
    )
    about = subjects(rows)[kind_of(base)]
    made = effect_of(METRICS["throughput"], base, sub, about).model_copy(
        update={
            "baseline_value": geometric_mean(before) if before else None,
            "subject_value": geometric_mean(after) if after else None,
        }
    )
    if not before or not after:
        text = (
            f"{about}: no visit of {sides[0] if not before else sides[1]} keeps p90 within "
            f"{bound_ms:g} ms."
        )
        return made.model_copy(update={"verdict": "not comparable", "text": text})
    measure, lone = ratio(after, before), few(min(len(before), len(after)))
    made = made.model_copy(update={"ratio": measure, "doubts": () if lone is None else (lone,)})
    if min(len(before), len(after)) > 1:
        made = with_test(made, welch(after, before))
    (judged,), _ = judge([made], bounds)
    text = (
        f"{sides[1]} serves {show_ratio(measure.value)} {sides[0]}’s {about} with p90 within "
        f"{bound_ms:g} ms; {strength(judged)}."
    )
    return judged.model_copy(update={"q": judged.p, "text": text, "smallest": None, "doubts": ()})


def _largest(rows: list[Row], bound_ms: float) -> list[float]:
    """Of each visit the largest throughput at a worker count whose p90 is within the bound; of
    visits without one nothing.
    """
    found: dict[int, float] = {}
    for row in rows:
        for point in row.points:
            p90_ms = point.value("p90")
            if point.ranked and p90_ms is not None and p90_ms <= bound_ms and point.ops_s > 0:
                found[point.repeat] = max(found.get(point.repeat, 0.0), point.ops_s)
    return list(found.values())
