"""What users of a locustfile cannot replay."""

from __future__ import annotations

from typing import Literal

from pydantic import ValidationError

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.drivers.locust.kind import KIND
from weighbridge.suites import Suite, Workload


def refuse_unfit(workload: Workload, api: ObjectApi, users: Literal["engine", "sdk"]) -> None:
    """Raise UsageError with all reasons why Locust's users cannot replay this workload."""
    faults = list(KIND.unfit(workload, api))
    if workload.rate_per_s is not None:
        faults.append("rate_per_s needs to know how many workers there will be")
    if workload.only_deletes:
        faults.append("it only deletes, and would soon have nothing left to delete")
    try:
        # What SDK users cannot do, suites know.
        Suite(name="of-a-locustfile", about="", api=(api,), workloads=(workload,), users=users)
    except ValidationError as error:
        faults += [fault["msg"].removeprefix("Value error, ") for fault in error.errors()]
    if faults:
        raise UsageError(
            f"Locust's users cannot replay {workload.name}: {'; '.join(faults)}",
            advice="`weighbridge compare` replays workloads step by step.",
        )
