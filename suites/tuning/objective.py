"""The objective of a tuning: a metric at a worker count, or the most throughput within a p90."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.suites.operations import Operation
from weighbridge.suites.suite import Suite
from weighbridge.suites.workload import Name, Workload


class Objective(Record):
    """One figure of one workload to improve: more throughput, or a shorter p90, p99, max ...

    With `p90_within`: the largest throughput over those of the workload's worker counts whose p90
    is within it.
    """

    of: Annotated[str, Field(min_length=1, max_length=80)] = "throughput"
    """The key of a metric that can be compared (`weighbridge.results.metrics`)."""
    workload: Name
    """The workload whose figure it is."""
    operation: Operation | None = None
    """Of a mix, the operation that counts; None: the only one."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """One of the workload's worker counts; None: its only one, or with `p90_within` all."""
    p90_within: Annotated[Seconds, Field(gt=0)] | None = None
    """Makes it the largest throughput, over all worker counts, whose p90 is within this time."""

    @model_validator(mode="after")
    def _sensible(self) -> Objective:
        if self.p90_within is not None and self.of != "throughput":
            raise ValueError(f"p90_within: applies to throughput only, not to {self.of}")
        if self.p90_within is not None and self.workers is not None:
            raise ValueError(
                "workers: not allowed with p90_within, which covers all of the workload's counts"
            )
        return self

    @property
    def words(self) -> str:
        """`throughput of small-read at 16 workers`."""
        what = f"{self.operation} of {self.workload}" if self.operation else self.workload
        if self.p90_within is not None:
            return f"largest throughput of {what} with p90 within {self.p90_within * 1000:g} ms"
        if self.workers is None:
            return f"{self.of} of {what}"
        return f"{self.of} of {what} at {self.workers} worker{'s' * (self.workers > 1)}"

    def resolved(self, suite: Suite) -> Objective:
        """The same objective with its operation and worker count filled in.

        Raises ValueError if the suite has no such step, or more than one.
        """
        workload = next((one for one in suite.workloads if one.name == self.workload), None)
        if workload is None:
            known = ", ".join(one.name for one in suite.workloads)
            raise ValueError(f"the suite has no workload {self.workload!r}; it has {known}")
        return self.model_copy(
            update={"operation": self._operation(workload), "workers": self._workers(workload)}
        )

    def counts(self, workload: Workload) -> tuple[int, ...]:
        """The worker counts to measure for a resolved objective."""
        return workload.workers if self.workers is None else (self.workers,)

    def _operation(self, workload: Workload) -> Operation:
        if self.operation is not None and self.operation not in workload.operations:
            raise ValueError(
                f"{workload.name} has no {self.operation}; it has {', '.join(workload.operations)}"
            )
        if self.operation is None and len(workload.operations) > 1:
            raise ValueError(
                f"{workload.name} is a mix: name one of its operations "
                f"({', '.join(workload.operations)})"
            )
        only: Operation = next(iter(workload.operations))
        return self.operation or only

    def _workers(self, workload: Workload) -> int | None:
        if self.p90_within is not None:
            return None
        counts = ", ".join(map(str, workload.workers))
        if self.workers is not None and self.workers not in workload.workers:
            raise ValueError(
                f"{workload.name} is not replayed at {self.workers} workers, but at {counts}"
            )
        if self.workers is None and len(workload.workers) > 1:
            raise ValueError(f"{workload.name} is replayed at {counts} workers: name one of these")
        return self.workers if self.workers is not None else workload.workers[0]
