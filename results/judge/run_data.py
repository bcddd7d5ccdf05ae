"""A run read from its folder, each part when first used, and what the folder lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar

from weighbridge.results.figures.doubt import Doubt, PairDoubt, spoilt
from weighbridge.results.figures.foreign_load import load_slopes
from weighbridge.results.figures.metrics import compared
from weighbridge.results.figures.summary import JudgedStep, Row, read_visits, rows_of
from weighbridge.results.judge.comparing import compare, control_ratios, controlled
from weighbridge.results.judge.comparison import Comparison
from weighbridge.results.judge.host_equality import host_doubts
from weighbridge.results.run import (
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
from weighbridge.results.run.machine import MachineRun, earlier_runs, machine_of


class RunData:
    """One run folder, read only. Properties raise as `results.run.store` does.

    Rows and comparison are those of layouts; `results.features.open_run` opens a run with what its
    features add to them.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError if it is not a run folder, or of an unknown version."""
        self.store = RunStore.open(folder)
        self.manifest = self.store.manifest
        self.kept: dict[Callable[..., Any], Any] = {}
        """What functions `of_run` made of it."""

    @cached_property
    def plan(self) -> ResolvedPlan:
        return self.store.plan()

    @cached_property
    def steps(self) -> dict[StepKey, StepResult]:
        """The result of each step that counts."""
        return self.store.latest()

    def telemetry(self) -> Iterator[tuple[StepKey, Telemetry]]:
        """What the hosts of each step used. Not cached: many runs have a lot of it."""
        for key, step in self.steps.items():
            found = self.store.telemetry(key, step.time)
            if found is not None:
                yield key, found

    @cached_property
    def visits(self) -> dict[StepKey, JudgedStep]:
        """Each step reduced to its figures, its use of the hosts, and its verdicts."""
        return read_visits(self.store, self.plan, self.steps.values())

    @cached_property
    def spoilt(self) -> dict[StepKey, float]:
        """The steps to be measured again, with the share of the machine's CPUs that others used."""
        found = {}
        for key, step in self.visits.items():
            share = None if step.use is None else step.use.others
            if share is not None and spoilt(share) and self.plan.repairable(key):
                found[key] = share
        return found

    @cached_property
    def tuning(self) -> TuningRun | None:
        """The tuning's configuration; None if the run is not a tuning."""
        return TuningStore(self.store.folder).run()

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of a tuning, in order; empty for other runs."""
        return TuningStore(self.store.folder).trials() if self.tuning is not None else ()

    @cached_property
    def every_row(self) -> tuple[Row, ...]:
        """The table with the steps in which something died."""
        return rows_of(self.plan, self.visits)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The table of steps in which nothing died; of a tuning its variants."""
        return self.in_doubt(row for row in self.every_row if row.fault is None)

    @cached_property
    def comparison(self) -> Comparison:
        """Every layout compared with the first; of a tuning each variant with the baseline."""
        if not self.rows:
            # Something died in every step: outages have their own comparison.
            return Comparison(baseline=self.plan.layouts[0].name, subjects=(), effects=(), tests=0)
        return compare(
            self.rows, self.plan.twins, self.plan.suite.bounds, self.between, self.earlier
        )

    @cached_property
    def earlier(self) -> tuple[MachineRun, ...]:
        """What earlier runs showed of the machine, when this one began."""
        return earlier_runs(self.store.folder, self.manifest)

    @property
    def machine_run(self) -> MachineRun:
        """What this run shows of its machine."""
        return MachineRun(
            run_id=self.manifest.run_id,
            machine=machine_of(self.manifest),
            controls=control_ratios(controlled(self.rows, self.plan.twins)),
            slopes=tuple(load_slopes(self.rows, compared()).values()),
        )

    @cached_property
    def between(self) -> tuple[PairDoubt, ...]:
        """Doubts about pairs of layouts, by what their hosts could do."""
        return host_doubts(self.attested, self.plan.measured)

    def in_doubt(self, rows: Iterable[Row]) -> tuple[Row, ...]:
        """The rows with doubts about their deployments."""
        return with_event_doubts(rows, self.events)

    @cached_property
    def layers(self) -> tuple[Row, ...]:
        """The table of what was measured below and beside the gateways."""
        return rows_of(self.plan, self.visits, layers=True)

    @cached_property
    def attested(self) -> tuple[Attested, ...]:
        return self.store.attested()

    @cached_property
    def events(self) -> tuple[RunEvent, ...]:
        return self.store.events()

    @cached_property
    def gaps(self) -> tuple[str, ...]:
        return gaps(self.store, self.plan, self.steps.values())


_Made = TypeVar("_Made")


def of_run(make: Callable[[RunData], _Made]) -> Callable[[RunData], _Made]:
    """A function of a run that computes once for each run."""

    @wraps(make)
    def once(data: RunData) -> _Made:
        if make not in data.kept:
            data.kept[make] = make(data)
        found: _Made = data.kept[make]
        return found

    return once


def with_event_doubts(rows: Iterable[Row], events: Sequence[RunEvent]) -> tuple[Row, ...]:
    """The rows; those of reads are provisional if storage hosts did not share the reads of most
    repeats' deployments.
    """
    uneven = {(one.layout, one.repeat): one.text for one in events if one.kind == UNEVEN}
    judged = []
    for row in rows:
        places = [(row.layout, point.repeat) for point in row.used]
        texts = [uneven[place] for place in places if place in uneven]
        if row.operation == "read" and 2 * len(texts) > len(places):
            doubt = Doubt(what="reads uneven", grade="mild", words=texts[-1])
            judged.append(row.model_copy(update={"doubts": (*row.doubts, doubt)}))
        else:
            judged.append(row)
    return tuple(judged)
