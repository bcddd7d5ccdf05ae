"""What a tuning is after: a metric at a worker count, or the most throughput that keeps p90 within
a bound.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.suites.suite import Suite
from weighbridge.suites.workload import Name, Operation, Workload


class Objective(Record):
    """One figure of one workload that is to be better: more throughput, or a shorter p90, p99, max
    ...

    `p90_within` makes it the largest throughput over the workload's worker counts of those whose
    p90 is within it.
    """

    of: Annotated[str, Field(min_length=1, max_length=80)] = "throughput"
    """The key of a metric that is compared (`weighbridge.results.metrics`; whoever measures by it
    refuses others).
    """
    workload: Name
    operation: Operation | None = None
    """Of a mix, which operation's figures; None: the only one's."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """Which of the workload's worker counts; None: its only one, or with `p90_within` all of them.
    """
    p90_within: Annotated[Seconds, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _sensible(self) -> Objective:
        if self.p90_within is not None and self.of != "throughput":
            raise ValueError(
                f"p90_within: is about throughput; of a {self.of} the shortest is looked for anyway"
            )
        if self.p90_within is not None and self.workers is not None:
            raise ValueError(
                "workers: given, but with p90_within it is looked for among all of the workload's"
            )
        return self

    @property
    def words(self) -> str:
        """`throughput of small-read at 16 workers`."""
        what = f"{self.operation} of {self.workload}" if self.operation else self.workload
        if self.p90_within is not None:
            return f"largest throughput of {what} with p90 within {self.p90_within * 1000:g} ms"
        at = (
            f" at {self.workers} worker{'s' * (self.workers > 1)}"
            if self.workers is not None
            else ""
        )
        return f"{self.of} of {what}{at}"

    def resolved(self, suite: Suite) -> Objective:
        """The same with operation and worker count named.

        Raises ValueError when the suite has no such step, or it is not clear.
        """
        workload = next((one for one in suite.workloads if one.name == self.workload), None)
        if workload is None:
            known = ", ".join(one.name for one in suite.workloads)
            raise ValueError(f"the suite has no workload {self.workload!r}; it has {known}")
        return self.model_copy(
            update={"operation": self._operation(workload), "workers": self._workers(workload)}
        )

    def counts(self, workload: Workload) -> tuple[int, ...]:
        """The worker counts that have to be measured for it, of an objective that is resolved."""
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
        if self.workers is not None and self.workers not in workload.workers:
            raise ValueError(
                f"{workload.name} is not replayed at {self.workers} workers, but at "
                f"{_listed(workload.workers)}"
            )
        if self.workers is None and len(workload.workers) > 1:
            raise ValueError(
                f"{workload.name} is replayed at {_listed(workload.workers)} workers: name one of "
                "these counts"
            )
        return self.workers if self.workers is not None else workload.workers[0]


def _listed(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))
