"""A run as it is read for what leaves it: each part when it is first asked for, and what its folder lacks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from results.ascent import doubted, staircases
from results.attestation import Attested
from results.comparing import compare
from results.comparison import Comparison
from results.gaps import gaps
from results.manifest import RunEvent
from results.resolved import ResolvedPlan
from results.step import StepKey, StepResult
from results.store import RunStore
from results.summary import Row, rows_of, visits
from results.telemetry import Telemetry
from results.use import StepUse, step_use
from results.visit import Visit


class RunData:
    """One run folder, read only. Its parts raise UsageError or InvalidMeasurement, as `results.store` does, when they are read."""

    def __init__(self, folder: Path) -> None:
        """Raises UsageError when it is no run folder, or of a version that this program does not know."""
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
        """What the hosts of each step used, of the steps that have telemetry. It is not kept: that of many runs is large."""
        for key in self.steps:
            found = self.store.telemetry(key)
            if found is not None:
                yield key, found

    @cached_property
    def uses(self) -> dict[StepKey, StepUse]:
        """The same inside the window of each step, summed up."""
        return {
            key: step_use(telemetry, step.measurement.window_s)
            for key, telemetry in self.telemetry()
            if (step := self.steps[key]).measurement is not None
        }

    @cached_property
    def visits(self) -> dict[StepKey, Visit]:
        """What is kept of each step: its figures, and whether anything may be concluded from them."""
        return visits(self.plan, self.steps.values(), self.uses)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The study's table, as the report has it; without layers."""
        rows = rows_of(self.plan, self.visits)
        return doubted(rows, staircases(self.plan, rows, self.layers, self.attested))

    @cached_property
    def layers(self) -> tuple[Row, ...]:
        """The same of what was measured below and beside the gateways."""
        return rows_of(self.plan, self.visits, layers=True)

    @cached_property
    def comparison(self) -> Comparison | None:
        """Every layout against the first; None where nothing was planned that could be compared."""
        own = [row for row in self.rows if row.layout not in self.plan.twins]
        return compare(self.rows, self.plan.twins, self.plan.suite.bounds) if own else None

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
