"""Published figures of earlier studies, for context: another time, other hardware, not to be compared with a run."""

from __future__ import annotations

import csv
import io
from importlib import resources
from typing import Final

from pydantic import PositiveInt

from weighbridge.common.record import Record

STUDY_2014: Final = "Pushpesh, OpenStack-Swift-VS-Ceph-RGW-READ-Performance, 4 November 2014"
"""Author, title and date of the study that this suite repeats."""


class PublishedResponse(Record):
    """A response time as the study of 2014 printed it. `p90_upper_ms` is the upper edge of a bin of 10 ms."""

    workload: str
    object_size_bytes: PositiveInt
    workers: PositiveInt
    gateway: str
    p90_upper_ms: PositiveInt
    max_ms: PositiveInt


def study_2014() -> tuple[PublishedResponse, ...]:
    """The response times of the study of 2014: 1 MB and 1 GB reads by three gateways at five worker counts each."""
    text = (
        resources.files("weighbridge.results").joinpath("published", "swift-vs-rgw-read-2014-response-times.csv").read_text("utf-8")
    )
    return tuple(PublishedResponse.model_validate(line) for line in csv.DictReader(io.StringIO(text)))
