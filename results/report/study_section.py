"""A replayed study as a section of the report and as CSV files."""

from __future__ import annotations

import re
from pathlib import Path

from weighbridge.common.record import Record
from weighbridge.results.analysis.study.study import StudyOutcome
from weighbridge.results.record import write_atomically


class StudySection(Record):
    """The report's section about a replayed study, except for the chart of its recap."""

    outcome: StudyOutcome

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write every table as CSV into an existing folder. Raises StoreError."""
        written = []
        concluded = () if self.outcome.concluded is None else (self.outcome.concluded,)
        parameters = () if self.outcome.parameters is None else (self.outcome.parameters,)
        for kind, tables in (
            ("table", self.outcome.tables),
            ("published", self.outcome.published),
            ("conclusions", concluded),
            ("parameters", parameters),
        ):
            for number, one in enumerate(tables, start=1):
                slug = re.sub(r"[^a-z0-9]+", "-", one.title.lower())[:40].strip("-")
                path = folder / f"{kind}-{number}-{slug}.csv"
                write_atomically(path, one.csv())
                written.append(path)
        return tuple(written)


def study_section(outcome: StudyOutcome) -> StudySection:
    """The section of a run that replays a study."""
    return StudySection(outcome=outcome)
