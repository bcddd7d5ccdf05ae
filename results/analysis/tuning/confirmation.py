"""The confirmation of a tuning: winner vs baseline on fresh deployments, so on new data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import NonNegativeInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparing import judge
from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.contrast import effect_of, with_test
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.power_mark import PowerMark, not_tried
from weighbridge.results.analysis.sentence import did, opening, strength
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import few
from weighbridge.results.figures import show_ratio
from weighbridge.results.metrics import METRICS
from weighbridge.results.record import State, TuningRun
from weighbridge.results.statistics import Ratio, geometric_mean, ratio, welch
from weighbridge.suites import Bounds
from weighbridge.suites.tuning import Objective


class Confirmation(Record):
    """The results of the run that confirms a winner; `effects` are in the objectives' order."""

    folder: Path
    """Its run folder."""
    state: State
    baseline: str
    winner: str
    """The layouts, by their names in that run."""
    repeats: NonNegativeInt
    """Visits of the side that has fewer; 0 if nothing was comparable."""
    effects: tuple[Effect | None, ...]
    """None: the run has nothing about this objective."""
    survival: PowerMark | None = None
    """What power cuts took from the winner; None: the tuning does not ask."""

    @property
    def known(self) -> tuple[Effect, ...]:
        """Those that were compared."""
        return tuple(one for one in self.effects if one is not None and one.ratio is not None)

    @property
    def confirmed(self) -> bool:
        """Whether the winner is better in at least one objective, worse in none, and lost nothing
        in power cuts, where the tuning asks for them.
        """
        verdicts = [one.verdict for one in self.effects if one is not None]
        return (
            (self.survival is None or self.survival.judgement == "kept")
            and len(self.known) == len(self.effects)
            and "better" in verdicts
            and "worse" not in verdicts
        )

    @property
    def gain(self) -> Ratio | None:
        """How much better the winner is: the geometric mean over the objectives, with the interval
        of a single one.
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
    """The newest run folder below this one; None if there is none. Links are not followed."""
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
    durability: Sequence[LayoutDurability] = (),
) -> Confirmation | None:
    """The verdict on a tuning's objectives by a run of baseline and winner; None without two
    layouts. `durability` is what was found of those whose power was cut.
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
    survival = None
    if run.tuning.constraints.lost is not None:
        mine = (one.mark for one in durability if one.layout == sides[1])
        survival = next(mine, not_tried(sides[1]))
    return Confirmation(
        folder=folder,
        state=state,
        baseline=sides[0],
        winner=sides[1],
        repeats=min(repeats, default=0),
        effects=effects,
        survival=survival,
    )


def _at(objective: Objective, winner: str, comparison: Comparison) -> Effect | None:
    """The comparison's cell of an objective."""
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
    """The largest throughput with p90 within its bound, per visit, for both sides."""
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
        f"{opening(judged)}{sides[1]} {did(judged, 'serves', 'served')} "
        f"{show_ratio(measure.value)} {sides[0]}’s {about} with p90 within {bound_ms:g} ms; "
        f"{strength(judged)}."
    )
    return judged.model_copy(update={"q": judged.p, "text": text, "smallest": None, "doubts": ()})


def _largest(rows: list[Row], bound_ms: float) -> list[float]:
    """Per visit, the largest throughput whose p90 is within the bound, if there is one."""
    found: dict[int, float] = {}
    for row in rows:
        for point in row.points:
            p90_ms = point.value("p90")
            if point.ranked and p90_ms is not None and p90_ms <= bound_ms and point.ops_s > 0:
                found[point.repeat] = max(found.get(point.repeat, 0.0), point.ops_s)
    return list(found.values())
