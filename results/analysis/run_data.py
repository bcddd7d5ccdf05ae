"""A run read from its folder, each part when first used, and what the folder lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import (
    LayoutDurability,
    durability_of,
    with_power_marks,
)
from weighbridge.results.analysis.find.answers import Found, found_rates
from weighbridge.results.analysis.find.searches import Searches
from weighbridge.results.analysis.keeping import Costs, costs
from weighbridge.results.analysis.layers.staircase import Staircase
from weighbridge.results.analysis.layers.staircases import staircases, with_ceilings
from weighbridge.results.analysis.outages import Outages, outages_of
from weighbridge.results.analysis.overload import OverloadKind, overload_of
from weighbridge.results.analysis.sameness import host_doubts
from weighbridge.results.analysis.steps.summary import Row, rows_of
from weighbridge.results.analysis.steps.visit import JudgedStep, read_visits
from weighbridge.results.analysis.study.study import StudyOutcome, outcome, study_of
from weighbridge.results.analysis.tuning.setting_table import SettingTable, setting_table
from weighbridge.results.analysis.tuning.tuning_result import (
    Confirmation,
    TuningResult,
    confirmation,
    confirmation_folder,
)
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
    TuningRun,
    TuningStore,
    gaps,
)
from weighbridge.results.record.durability import read_cuts
from weighbridge.results.record.kept import read_kept
from weighbridge.results.record.outage import read_outages

_DOUBTED: Final[Mapping[str, What]] = {
    BUSY: "machine busy",
    UNEVEN: "reads uneven",
}
"""Doubts by the kind of a deployment's event."""
_DoubtedAt = tuple[What, str, int]
"""What is in doubt: layout and repeat."""


class RunData:
    """One run folder, read only. Properties raise as `results.record.store` does."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError if it is not a run folder, or of an unknown version."""
        self.store = RunStore.open(folder)
        self.manifest = self.store.manifest

    @cached_property
    def plan(self) -> ResolvedPlan:
        return self.store.plan()

    @cached_property
    def steps(self) -> dict[StepKey, StepResult]:
        """The latest result of each step."""
        return self.store.latest()

    def telemetry(self) -> Iterator[tuple[StepKey, Telemetry]]:
        """What the hosts of each step used. Not cached: many runs have a lot of it."""
        for key in self.steps:
            found = self.store.telemetry(key)
            if found is not None:
                yield key, found

    @cached_property
    def visits(self) -> dict[StepKey, JudgedStep]:
        """Each step reduced to its figures, its use of the hosts, and its verdicts."""
        return read_visits(self.store, self.plan)

    @cached_property
    def tuning(self) -> TuningRun | None:
        """The tuning's configuration; None if the run is not a tuning."""
        return TuningStore(self.store.folder).run()

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of a tuning, in order; empty for other runs."""
        return TuningStore(self.store.folder).trials() if self.tuning is not None else ()

    @cached_property
    def setting_table(self) -> SettingTable | None:
        """The results of the trials; None if the run is not a tuning."""
        return None if self.tuning is None else setting_table(self.tuning, self.trials, self.visits)

    @cached_property
    def confirmation(self) -> Confirmation | None:
        """The winner on fresh deployments; None if no such run was started."""
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
            data.durability,
        )

    @cached_property
    def tuned(self) -> TuningResult | None:
        if self.tuning is None or self.setting_table is None:
            return None
        return TuningResult(
            run=self.tuning,
            trials=self.trials,
            table=self.setting_table,
            winner=TuningStore(self.store.folder).winner(),
            confirmation=self.confirmation,
            state=self.manifest.state,
        )

    @cached_property
    def stairs(self) -> tuple[Staircase, ...] | None:
        """The layers' staircases; None if the suite asks for none."""
        if not self.plan.suite.layers:
            return None
        return staircases(self.plan, rows_of(self.plan, self.visits), self.layers, self.attested)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The table; of a tuning its variants. Doubts are about rows above a ceiling."""
        if self.tuning is not None:
            return tuning_rows(self.plan, self.visits, self.trials)
        rows = with_ceilings(self._every, self.stairs or ())
        rows = with_event_doubts([row for row in rows if row.fault is None], self.events)
        answers = {
            name: one.answers
            for name, one in self.plan.structures.items()
            if one.answers is not None
        }
        return with_power_marks(rows, self.durability, self.plan.twins, answers)

    @cached_property
    def _every(self) -> tuple[Row, ...]:
        return rows_of(self.plan, self.visits)

    @cached_property
    def outage_rows(self) -> tuple[Row, ...]:
        """The table of steps in which something died, which no other table has."""
        if self.tuning is not None:
            return ()
        return with_event_doubts([row for row in self._every if row.fault is not None], self.events)

    @cached_property
    def outages(self) -> Outages:
        return outages_of(
            self.plan,
            self.outage_rows,
            self.steps,
            read_outages(self.store.folder),
            self.store.telemetry,
            host_doubts(self.attested, self.plan.measured) if self.outage_rows else (),
        )

    @cached_property
    def layers(self) -> tuple[Row, ...]:
        """The table of what was measured below and beside the gateways."""
        return rows_of(self.plan, self.visits, layers=True)

    @cached_property
    def comparison(self) -> Comparison:
        """Every layout compared with the first; for a tuning each variant with the baseline."""
        if self.setting_table is not None:
            return tuning_comparison(self.setting_table)
        if not self.rows:
            # Something died in every step: `outages` has its own comparison.
            return Comparison(baseline=self.plan.layouts[0].name, subjects=(), effects=(), tests=0)
        return compare(
            self.rows,
            self.plan.twins,
            self.plan.suite.bounds,
            host_doubts(self.attested, self.plan.measured),
        )

    @cached_property
    def found(self) -> Found | None:
        """The highest rates within the bound that the run searched; None if it searched none."""
        if self.plan.find is None:
            return None
        searches = Searches(self.plan.find, self.plan.suite)
        for key, step in self.steps.items():
            searches.add(step, self.visits[key])
        lost = {
            key: "; ".join(step.notes[:1]) for key, step in self.steps.items() if not step.complete
        }
        pairs = host_doubts(self.attested, self.plan.measured)
        return found_rates(self.plan, searches, lost, self.rows, pairs)

    @cached_property
    def overload(self) -> tuple[OverloadKind, ...]:
        """Goodput over the offered rate; none without workloads that may be beyond capacity."""
        return overload_of(self.plan, self.rows)

    @cached_property
    def study(self) -> StudyOutcome | None:
        """The result of the study that the run replays, if any. Raises UsageError if unreadable."""
        run = study_of(self.store.folder)
        if run is None:
            return None
        return outcome(
            run,
            self.plan,
            (*self.rows, *self.layers),
            host_doubts(self.attested, self.plan.measured),
        )

    @cached_property
    def attested(self) -> tuple[Attested, ...]:
        return self.store.attested()

    @cached_property
    def costs(self) -> Costs:
        return costs(read_kept(self.store.folder), [one.name for one in self.plan.layouts])

    @cached_property
    def durability(self) -> tuple[LayoutDurability, ...]:
        """What survived power cuts; empty if no layout was tried."""
        return durability_of(read_cuts(self.store.folder), [one.name for one in self.plan.layouts])

    @cached_property
    def events(self) -> tuple[RunEvent, ...]:
        return self.store.events()

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        return gaps(self.store, self.plan, self.steps.values())


def with_event_doubts(rows: Sequence[Row], events: Sequence[RunEvent]) -> tuple[Row, ...]:
    """The rows; provisional if most repeats had a deployment in doubt: a busy machine affects all
    rows, storage hosts that do not share reads those of reads.
    """
    found: dict[_DoubtedAt, RunEvent] = {}
    for event in events:
        if event.kind in _DOUBTED and event.layout is not None and event.repeat is not None:
            found[_DOUBTED[event.kind], event.layout, event.repeat] = event
    return tuple(_with_event_doubts(row, found) for row in rows)


def _with_event_doubts(row: Row, found: Mapping[_DoubtedAt, RunEvent]) -> Row:
    doubts = list(row.doubts)
    for what in dict.fromkeys(_DOUBTED.values()):
        events = [
            event
            for one in row.used
            if (event := found.get((what, row.layout, one.repeat))) is not None
        ]
        touched = what != "reads uneven" or row.operation == "read"
        if touched and 2 * len(events) > len(row.used) and all(one.what != what for one in doubts):
            before = "before it was measured, " if what == "machine busy" else ""
            words = f"{before}{events[-1].text}"
            doubts.append(Doubt(what=what, grade="mild", words=words))
    return (
        row if len(doubts) == len(row.doubts) else row.model_copy(update={"doubts": tuple(doubts)})
    )


def tuning_rows(
    plan: ResolvedPlan, visits: Mapping[StepKey, JudgedStep], trials: Sequence[Trial]
) -> tuple[Row, ...]:
    """The table of a tuning, a row a variant, without steps of a trial that was cut off."""
    repeats: dict[str, int] = {}
    for trial in trials:
        repeats[trial.arm.name] = max(repeats.get(trial.arm.name, 0), trial.repeat + 1)
    complete = {(trial.arm.name, trial.repeat) for trial in trials}
    kept = {key: visit for key, visit in visits.items() if (key.layout, key.repeat) in complete}
    rows = [
        row
        for layout in plan.layouts
        if layout.name in repeats
        for row in rows_of(
            plan.model_copy(
                update={
                    "layouts": (layout,),
                    "suite": plan.suite.model_copy(update={"repeats": repeats[layout.name]}),
                },
            ),
            kept,
        )
    ]
    places = {workload.name: number for number, workload in enumerate(plan.suite.workloads)}
    return tuple(sorted(rows, key=lambda row: (places[row.workload], row.operation, row.workers)))


def tuning_comparison(found: SettingTable) -> Comparison:
    """A tuning's effects as the comparison that tables, exports and slides read."""
    effects = tuple(effect for entry in found.entries for effect in entry.effects)
    return Comparison(
        baseline=found.baseline.name,
        subjects=tuple(entry.variant.name for entry in found.entries),
        effects=effects,
        tests=sum(effect.p is not None for effect in effects),
    )
