"""A replayed study as a section of the report, and as files beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from weighbridge.common.record import Record
from weighbridge.results.analysis.study.recap import RecapCell
from weighbridge.results.analysis.study.study import StudyOutcome, StudyTable
from weighbridge.results.charts.recap_chart import RecapChart, recap_chart, told
from weighbridge.results.record.store import write_whole


class StudyPage(Record):
    """What the report shows of a study: its outcome, and the chart of its recap."""

    outcome: StudyOutcome
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


def study_page(outcome: StudyOutcome) -> StudyPage:
    """The page of a study that a run replays, by what it came to."""
    return StudyPage(outcome=outcome, chart=recap_chart(outcome.recaps))


def _slug(grid: StudyTable) -> str:
    return re.sub(r"[^a-z0-9]+", "-", grid.title.lower()).strip("-")[:40]
