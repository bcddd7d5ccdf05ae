"""What a study concluded, as data: each conclusion in our own words, and what of a replay would
have to be so for it to hold.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from weighbridge.common.record import Record

Expectation = Literal["better", "not-better", "alike"]
"""better: the one cell is better than the other. not-better: it is not, by more than `factor`.
alike: they are within `factor`.
"""

Compared = Literal["throughput", "bandwidth", "p90", "max"]
"""Bandwidth is that of complete bodies: throughputs of requests of different sizes cannot be
compared otherwise.
"""


class Cells(Record):
    """Cells of a replay: those of every variant, workload and number of workers that is named.

    Workers are the study's own.
    """

    variants: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    workers: tuple[PositiveInt, ...] = ()


class ConclusionCheck(Record):
    """One thing that can be looked up in a replay: each cell of `of` set against the cells of
    `than`.

    What `than` leaves out is as in the cell that is looked at: `{variants: [swift]}` is Swift at
    the same workload and workers.
    """

    expect: Expectation
    metric: Compared = "throughput"
    of: Cells
    than: Cells
    factor: Annotated[float, Field(gt=1)] = 1.25
    """How far apart two figures may be and still count as alike; of `better` it says nothing: there
    the suite's bounds hold.
    """

    @model_validator(mode="after")
    def _whole(self) -> ConclusionCheck:
        lacking = [
            name for name in ("variants", "workloads", "workers") if not getattr(self.of, name)
        ]
        if lacking:
            raise ValueError(f"of: {', '.join(lacking)} must be named")
        if not (self.than.variants or self.than.workloads or self.than.workers):
            raise ValueError("than: at least one of variants, workloads and workers must be named")
        return self


class Conclusion(Record):
    """One of a study's conclusions.

    All of its checks must hold in all their cells for a replay to support it.
    """

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    says: str
    checks: Annotated[tuple[ConclusionCheck, ...], Field(min_length=1)]
    note: str = ""
    """What of the conclusion no replay can look up."""
