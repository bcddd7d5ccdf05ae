"""A study's conclusions as data: each in our words, with what a replay must show to support it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, PositiveInt, model_validator

from weighbridge.common.record import Record

Expectation = Literal["better", "not-better", "alike"]
"""Of one cell compared with another.

better: it is better. not-better: it is not better by more than `factor`. alike: they are within
`factor`.
"""

BANDWIDTH: Final = "bandwidth"
"""The throughput of complete bodies: it also compares requests of different sizes."""


class Cells(Record):
    """Cells of a replay: every combination of the named variants, workloads and worker counts.

    Worker counts are the study's.
    """

    variants: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    workers: tuple[PositiveInt, ...] = ()


class ConclusionCheck(Record):
    """One check of a replay: each cell of `of` is compared with the cells of `than`.

    What `than` leaves out is taken from the cell of `of`: `{variants: [swift]}` is Swift at the
    same workload and workers.
    """

    expect: Expectation
    metric: Annotated[str, Field(pattern=r"^[a-z0-9.-]{1,80}$")] = "throughput"
    """The key of a metric that is compared (`weighbridge.results.metrics`), or BANDWIDTH."""
    of: Cells
    than: Cells
    factor: Annotated[float, Field(gt=1)] = 1.25
    """How far apart figures may be and still count as alike; `better` uses the suite's bounds."""

    @model_validator(mode="after")
    def _names_cells(self) -> ConclusionCheck:
        missing = [
            name for name in ("variants", "workloads", "workers") if not getattr(self.of, name)
        ]
        if missing:
            raise ValueError(f"of: {', '.join(missing)} must be named")
        if not (self.than.variants or self.than.workloads or self.than.workers):
            raise ValueError("than: at least one of variants, workloads and workers must be named")
        return self


class Conclusion(Record):
    """One of a study's conclusions; supported if all its checks hold in all their cells."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    says: str
    where: str = ""
    """Its place in the study, such as `Conclusion 7`."""
    checks: Annotated[tuple[ConclusionCheck, ...], Field(min_length=1)]
    note: str = ""
    """What of the conclusion no replay can check."""
