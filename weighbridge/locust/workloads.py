"""What users of a locustfile do."""

from __future__ import annotations

from typing import Any

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.suites import Suite, Workload, loader


class Replay(Record):
    """What users do: a workload over an API."""

    api: ObjectApi
    workload: Workload
    seed: int = 2014
    request_timeout_s: float = 60.0


def make_workload(name: str, **keys: Any) -> Workload:
    """A workload with the keys that it has in a suite's file: `objects={"size": "64kB",
    "per_container": 1000}, operations={"read": 80, "write": 20}`.

    `workers`, `runtime` and `warmup` are Locust's own affair. Raises ValidationError.
    """
    return Workload.model_validate({"workers": [1], "runtime": 1.0, **keys, "name": name})


def suite_workload(suite: str, workload: str | None = None) -> Workload:
    """A workload of a suite, by the suite's path or the name of a shipped one; None: its first.

    Raises UsageError if there is none.
    """
    return workload_of(loader.load(loader.find(suite)), workload)


def workload_of(suite: Suite, name: str | None) -> Workload:
    """A suite's workload of this name; None: its first. Raises UsageError if there is none."""
    found = [one for one in suite.workloads if name in (None, one.name)]
    if not found:
        names = ", ".join(one.name for one in suite.workloads)
        raise UsageError(f"{suite.name} has no workload {name!r}", advice=f"It has {names}.")
    return found[0]
