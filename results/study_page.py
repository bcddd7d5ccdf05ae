"""A replayed study as a section of the report, and as files beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weighbridge.common.record import Record
from weighbridge.results.attestation import Attested, between
from weighbridge.results.recap import RecapCell
from weighbridge.results.recap_chart import RecapChart, recap_chart, told
from weighbridge.results.resolved import ResolvedPlan
from weighbridge.results.store import RunStore, write_whole
from weighbridge.results.study import Grid, Outcome, outcome, study_of
from weighbridge.results.summary import Row


class StudyPage(Record):
    """What the report shows of a study: its outcome, and the chart of its recap."""

    outcome: Outcome
    chart: RecapChart

    @property
    def specs(self) -> dict[str, dict[str, Any]]:
        """The Vega-Lite spec of each map of the recap, by the name of its place in the page."""
        return {f"recap-{number}": self.chart.map_spec(one) for number, one in enumerate(self.chart.maps)}

    def words(self, cell: RecapCell) -> str:
        """A cell of the recap in words."""
        return told(cell)

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write every table as a CSV file into a folder that is there; returns them. Raises StoreError."""
        written = []
        concluded = () if self.outcome.concluded is None else (self.outcome.concluded,)
        for kind, grids in (("table", self.outcome.tables), ("published", self.outcome.published), ("conclusions", concluded)):
            for number, grid in enumerate(grids, start=1):
                path = folder / f"{kind}-{number}-{_slug(grid)}.csv"
                write_whole(path, grid.csv())
                written.append(path)
        return tuple(written)


def study_page(store: RunStore, plan: ResolvedPlan, rows: Sequence[Row], attested: Sequence[Attested] = ()) -> StudyPage | None:
    """The page of the study that a run replays; None where it replays none. `rows` are those of gateways and of layers,
    `attested` what the hosts of its deployments could do.

    Raises UsageError when the study cannot be read.
    """
    run = study_of(store.folder)
    if run is None:
        return None
    found = outcome(run, plan, rows, between(attested, plan.own))
    return StudyPage(outcome=found, chart=recap_chart(found.recaps))


def _slug(grid: Grid) -> str:
    return re.sub(r"[^a-z0-9]+", "-", grid.title.lower()).strip("-")[:40]
