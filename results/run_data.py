"""A run as it is read from its folder: each part when it is first asked for, once, and what the folder lacks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from results.ascent import doubted
from results.attestation import Attested
from results.comparing import compare
from results.comparison import Comparison
from results.gaps import gaps
from results.manifest import RunEvent
from results.resolved import ResolvedPlan
from results.staircase_page import StaircasePage, staircase_page
from results.step import StepKey, StepResult
from results.store import RunStore
from results.summary import Row, rows_of
from results.telemetry import Telemetry
from results.visit import Visit, read_visits


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
    def visits(self) -> dict[StepKey, Visit]:
        """What is kept of each step: its figures, what the hosts used, and whether anything may be concluded from them."""
        return read_visits(self.store, self.plan)

    @cached_property
    def stairs(self) -> StaircasePage | None:
        """What came of the layers; None where the suite asks for none."""
        return staircase_page(self.plan, rows_of(self.plan, self.visits), self.layers, self.attested)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The study's table, what lies above a ceiling marked; without layers, with twins."""
        return doubted(rows_of(self.plan, self.visits), self.stairs.stairs if self.stairs is not None else ())

    @cached_property
    def layers(self) -> tuple[Row, ...]:
        """The same of what was measured below and beside the gateways."""
        return rows_of(self.plan, self.visits, layers=True)

    @cached_property
    def comparison(self) -> Comparison:
        """Every layout against the first."""
        return compare(self.rows, self.plan.twins, self.plan.suite.bounds)

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
