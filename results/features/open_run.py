"""A run folder, opened with what its features add to rows and comparison."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from weighbridge.common.errors import WeighbridgeError
from weighbridge.results.features.durability import durability, with_power_marks
from weighbridge.results.features.staircase import stairs_of, with_ceilings
from weighbridge.results.features.tuning.tuning_result import (
    setting_results,
    tuning_comparison,
    tuning_rows,
)
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparison import Comparison
from weighbridge.results.judge.run_data import RunData


class _FeaturedRun(RunData):
    @cached_property
    def rows(self) -> tuple[Row, ...]:
        if self.tuning is not None:
            return tuning_rows(self.plan, self.visits, self.trials)
        whole = [row for row in self.every_row if row.fault is None]
        rows = self.in_doubt(with_ceilings(whole, stairs_of(self) or ()))
        answers = {
            name: structure.answers
            for name, structure in self.plan.structures.items()
            if structure.answers is not None
        }
        return with_power_marks(rows, durability(self), self.plan.twins, answers)

    @cached_property
    def comparison(self) -> Comparison:
        table = setting_results(self)
        return super().comparison if table is None else tuning_comparison(table)


def open_run(folder: Path) -> RunData:
    """Open a run. Raises UsageError if it is not a run folder, or of an unknown version."""
    return _FeaturedRun(folder)


def read_runs(folders: Iterable[Path]) -> tuple[tuple[RunData, ...], tuple[str, ...]]:
    """The runs that can be read, each once, and a sentence for each folder that cannot."""
    found: dict[str, RunData] = {}
    left_out = []
    for folder in folders:
        try:
            data = open_run(folder)
            _ = data.gaps  # reads the plan and the steps
        except WeighbridgeError as error:
            left_out.append(f"left out: {error.message}")
            continue
        known = found.setdefault(data.manifest.run_id, data)
        if known is not data:
            left_out.append(f"left out: {folder}: the same run as {known.store.folder}")
    return tuple(found.values()), tuple(left_out)
