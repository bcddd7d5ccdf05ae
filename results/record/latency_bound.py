"""The bound of a search for the highest rate: a latency metric, and its largest value."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weighbridge.common.record import Record


class LatencyBound(Record):
    """`p90 <= 50 ms`. The metric is a key of `weighbridge.results.metrics`."""

    metric: Annotated[str, Field(pattern=r"^[a-z][a-z0-9.-]*$", max_length=80)]
    most_ms: Annotated[float, Field(gt=0)]

    def __str__(self) -> str:
        return f"{self.metric} <= {self.most_ms:g} ms"
