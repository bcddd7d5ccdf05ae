"""A replayed study as a section of the report and as CSV files; the figures of the 2014 study."""

from __future__ import annotations

import csv
import io
import re
from importlib import resources
from pathlib import Path
from typing import Final

from pydantic import PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.study.study import StudyOutcome
from weighbridge.results.record import write_atomically

STUDY_2014: Final = "Pushpesh, OpenStack-Swift-VS-Ceph-RGW-READ-Performance, 4 November 2014"


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


class PublishedResponse(Record):
    """A response time that the study of 2014 published, by the upper edge of a 10 ms bin."""

    workload: str
    object_size_bytes: PositiveInt
    workers: PositiveInt
    gateway: str
    p90_upper_ms: PositiveInt
    max_ms: PositiveInt


def study_section(outcome: StudyOutcome) -> StudySection:
    """The section of a run that replays a study."""
    return StudySection(outcome=outcome)


def study_2014() -> tuple[PublishedResponse, ...]:
    """The 2014 response times: 1 MB and 1 GB reads, three gateways, five worker counts each."""
    path = ("published", "swift-vs-rgw-read-2014-response-times.csv")
    text = resources.files("weighbridge.results").joinpath(*path).read_text("utf-8")
    return tuple(
        PublishedResponse.model_validate(line) for line in csv.DictReader(io.StringIO(text))
    )
