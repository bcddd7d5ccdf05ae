"""A replayed study as a section of the report, and as files beside it; and what an earlier study
published, for context.
"""

from __future__ import annotations

import csv
import io
import re
from importlib import resources
from pathlib import Path
from typing import Final

from pydantic import PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.study.study import StudyOutcome, StudyTable
from weighbridge.results.record import write_whole


class StudyPage(Record):
    """What the report shows of a study beside the chart of its recap."""

    outcome: StudyOutcome

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Write every table as a CSV file into a folder that is there; returns them.

        Raises StoreError.
        """
        written = []
        concluded = () if self.outcome.concluded is None else (self.outcome.concluded,)
        for kind, grids in (
            ("table", self.outcome.tables),
            ("published", self.outcome.published),
            ("conclusions", concluded),
        ):
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


STUDY_2014: Final = "Pushpesh, OpenStack-Swift-VS-Ceph-RGW-READ-Performance, 4 November 2014"
"""Author, title and date of the study that this suite repeats."""


class PublishedResponse(Record):
    """A response time as the study of 2014 printed it.

    `p90_upper_ms` is the upper edge of a bin of 10 ms.
    """

    workload: str
    object_size_bytes: PositiveInt
    workers: PositiveInt
    gateway: str
    p90_upper_ms: PositiveInt
    max_ms: PositiveInt


def study_2014() -> tuple[PublishedResponse, ...]:
    """The response times of the study of 2014: 1 MB and 1 GB reads by three gateways at five worker
    counts each.
    """
    text = (
        resources.files("weighbridge.results")
        .joinpath("published", "swift-vs-rgw-read-2014-response-times.csv")
        .read_text("utf-8")
    )
    return tuple(
        PublishedResponse.model_validate(line) for line in csv.DictReader(io.StringIO(text))
    )
