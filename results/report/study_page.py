"""A replayed study as a section of the report, and as files beside it."""

from __future__ import annotations

import re
from pathlib import Path

from weighbridge.common.record import Record
from weighbridge.results.analysis.study.study import StudyOutcome, StudyTable
from weighbridge.results.record.store import write_whole


class StudyPage(Record):
    """What the report shows of a study beside the chart of its recap."""

    outcome: StudyOutcome

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
    return StudyPage(outcome=outcome)


def _slug(grid: StudyTable) -> str:
    return re.sub(r"[^a-z0-9]+", "-", grid.title.lower()).strip("-")[:40]
