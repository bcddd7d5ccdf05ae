"""A run as it is read from its folder: each part when it is first asked for, once, and what the
folder lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.layers.staircases import doubted, staircases
from weighbridge.results.analysis.sameness import between
from weighbridge.results.analysis.steps.summary import Row, rows_of
from weighbridge.results.analysis.steps.visit import JudgedStep, read_visits
from weighbridge.results.analysis.study.study import StudyOutcome, outcome, study_of
from weighbridge.results.analysis.tuning.confirmation import (
    Confirmation,
    confirmation,
    confirmation_folder,
)
from weighbridge.results.analysis.tuning.ledger import Ledger, ledger
from weighbridge.results.analysis.tuning.tuning_result import TuningResult
from weighbridge.results.doubt import Doubt, What
from weighbridge.results.record import (
    BUSY,
    CONFIRMATION,
    UNEVEN,
    Attested,
    ResolvedPlan,
    RunEvent,
    RunStore,
    StepKey,
    StepResult,
    Telemetry,
    Trial,
    TrialBook,
    TuningRun,
    gaps,
)

_DOUBTED: Final[Mapping[str, What]] = {BUSY: "machine busy", UNEVEN: "reads uneven"}
"""Events of a deployment by their kind, and what is in doubt of what it gives."""


class RunData:
    """One run folder, read only. Its parts raise UsageError or InvalidMeasurement, as
    `results.record.store` does, when they are read.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError when it is no run folder, or of a version that this program does not
        know.
        """
        self.store = RunStore.open(folder)
        self.manifest = self.store.manifest

    @cached_property
    def plan(self) -> ResolvedPlan:
        """What was to be measured."""
        return self.store.plan()

    @cached_property
    def steps(self) -> dict[StepKey, StepResult]:
        """The last result of each step."""
        return self.store.latest()

    def telemetry(self) -> Iterator[tuple[StepKey, Telemetry]]:
        """What the hosts of each step used, of the steps that have telemetry.

        It is not kept: that of many runs is large.
        """
        for key in self.steps:
            found = self.store.telemetry(key)
            if found is not None:
                yield key, found

    @cached_property
    def visits(self) -> dict[StepKey, JudgedStep]:
        """What is kept of each step: its figures, what the hosts used, and whether anything may be
        concluded from them.
        """
        return read_visits(self.store, self.plan)

    @cached_property
    def tuning(self) -> TuningRun | None:
        """Which tuning the run is; None where it is none."""
        return TrialBook(self.store.folder).run()

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of a tuning, in order; none of any other run."""
        return TrialBook(self.store.folder).trials() if self.tuning is not None else ()

    @cached_property
    def ledger(self) -> Ledger | None:
        """What the trials came to; None of a run that is no tuning."""
        return None if self.tuning is None else ledger(self.tuning, self.trials, self.visits)

    @cached_property
    def confirmation(self) -> Confirmation | None:
        """What came of the winner on fresh deployments; None where no such run has begun."""
        folder = (
            None if self.tuning is None else confirmation_folder(self.store.folder / CONFIRMATION)
        )
        if self.tuning is None or folder is None:
            return None
        data = RunData(folder)
        return confirmation(
            folder,
            data.manifest.state,
            self.tuning,
            data.comparison,
            data.rows,
            data.plan.suite.bounds,
        )

    @cached_property
    def tuned(self) -> TuningResult | None:
        """All that a tuning came to; None of a run that is none."""
        if self.tuning is None or self.ledger is None:
            return None
        return TuningResult(
            run=self.tuning,
            trials=self.trials,
            ledger=self.ledger,
            winner=TrialBook(self.store.folder).winner(),
            confirmation=self.confirmation,
            state=self.manifest.state,
        )

    @cached_property
    def stairs(self) -> tuple[Staircase, ...] | None:
        """What came of the layers; None where the suite asks for none."""
        if not self.plan.suite.layers:
            return None
        return staircases(self.plan, rows_of(self.plan, self.visits), self.layers, self.attested)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The study's table, what lies above a ceiling marked; without layers, with twins.

        Of a tuning what was tried.
        """
        if self.tuning is not None:
            return tried(self.plan, self.visits, self.trials)
        rows = doubted(rows_of(self.plan, self.visits), self.stairs or ())
        return begun(rows, self.events)

    @cached_property
    def layers(self) -> tuple[Row, ...]:
        """The same of what was measured below and beside the gateways."""
        return rows_of(self.plan, self.visits, layers=True)

    @cached_property
    def comparison(self) -> Comparison:
        """Every layout against the first; of a tuning its ledger, whose trials were set against the
        baseline beside them.
        """
        if self.ledger is not None:
            return compared(self.ledger)
        return compare(
            self.rows,
            self.plan.twins,
            self.plan.suite.bounds,
            between(self.attested, self.plan.own),
        )

    @cached_property
    def study(self) -> StudyOutcome | None:
        """What the study came to that the run replays; None where it replays none.

        Raises UsageError when it cannot be read.
        """
        run = study_of(self.store.folder)
        if run is None:
            return None
        return outcome(
            run, self.plan, (*self.rows, *self.layers), between(self.attested, self.plan.own)
        )

    @cached_property
    def attested(self) -> tuple[Attested, ...]:
        """What the hosts could do."""
        return self.store.attested()

    @cached_property
    def events(self) -> tuple[RunEvent, ...]:
        """What the conductor did."""
        return self.store.events()

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        """What the folder lacks, a sentence each."""
        return gaps(self.store, self.plan, self.steps.values())


def begun(rows: Sequence[Row], events: Sequence[RunEvent]) -> tuple[Row, ...]:
    """The rows; provisional where most of their repeats had a deployment that came up in doubt,
    whatever happened later.

    On a machine that others kept busy all of them are; where storage hosts do not share the reads,
    those of reads.
    """
    found: dict[tuple[What, str, int], RunEvent] = {}
    for event in events:
        if event.kind in _DOUBTED and event.layout is not None and event.repeat is not None:
            found[_DOUBTED[event.kind], event.layout, event.repeat] = event
    return tuple(_begun(row, found) for row in rows)


def _begun(row: Row, found: Mapping[tuple[What, str, int], RunEvent]) -> Row:
    doubts = list(row.doubts)
    for what in dict.fromkeys(_DOUBTED.values()):
        told = [
            event
            for one in row.used
            if (event := found.get((what, row.layout, one.repeat))) is not None
        ]
        touched = what != "reads uneven" or row.operation == "read"
        if touched and 2 * len(told) > len(row.used) and all(one.what != what for one in doubts):
            words = (
                f"before it was measured, {told[-1].text}"
                if what == "machine busy"
                else told[-1].text
            )
            doubts.append(Doubt(what=what, grade="mild", words=words))
    return (
        row if len(doubts) == len(row.doubts) else row.model_copy(update={"doubts": tuple(doubts)})
    )


def tried(
    plan: ResolvedPlan, visits: Mapping[StepKey, JudgedStep], trials: Sequence[Trial]
) -> tuple[Row, ...]:
    """The table of a tuning: a row for each arm that was tried, of as many repeats as it has
    trials, and none for the others.

    Steps of a trial that was cut off are left out, as its ledger leaves them out.
    """
    made: dict[str, int] = {}
    for trial in trials:
        made[trial.arm.name] = max(made.get(trial.arm.name, 0), trial.repeat + 1)
    whole = {(trial.arm.name, trial.repeat) for trial in trials}
    kept = {key: visit for key, visit in visits.items() if (key.layout, key.repeat) in whole}
    rows = [
        row
        for layout in plan.layouts
        if layout.name in made
        for row in rows_of(
            plan.model_copy(
                update={
                    "layouts": (layout,),
                    "suite": plan.suite.model_copy(update={"repeats": made[layout.name]}),
                },
            ),
            kept,
        )
    ]
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    return tuple(sorted(rows, key=lambda row: (places[row.workload], row.operation, row.workers)))


def compared(found: Ledger) -> Comparison:
    """A ledger's effects as the comparison that tables, exports and slides read."""
    effects = tuple(effect for entry in found.entries for effect in entry.effects)
    return Comparison(
        baseline=found.baseline.name,
        subjects=tuple(entry.arm.name for entry in found.entries),
        effects=effects,
        tests=sum(effect.p is not None for effect in effects),
    )
