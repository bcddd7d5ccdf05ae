"""The suite of a search for the highest rate within a bound."""

from __future__ import annotations

from typing import Final

from weighbridge.common.errors import UsageError
from weighbridge.conductor.passes import GATEWAY_APIS, drivers_of
from weighbridge.drivers.kind import KINDS
from weighbridge.suites import Suite, Workload

_FOUND: Final = frozenset({"read", "write"})


def finding(suite: Suite, *, repeats: int | None = None) -> Suite:
    """The suite of which rates are searched: its reads and writes at their largest worker counts.

    One repeat if no number is given, and without an A/A control and further blocks: `compare`
    answers another question with those. Raises UsageError if nothing is left, or a driver cannot
    send requests at a rate.
    """
    found = [
        one.model_copy(update={"workers": (max(one.workers),)})
        for one in suite.workloads
        if _FOUND.issuperset(one.operations) and one.rate_per_s is None
    ]
    if not found or not set(suite.api) & set(GATEWAY_APIS):
        raise UsageError(
            f"suite {suite.name!r} has no reads or writes of a gateway without a rate of their own",
            advice="--find searches the rate of such workloads: choose another suite.",
        )
    faults = [
        f"{one.name}: {why}"
        for api in suite.api
        for driver in drivers_of(suite, api)
        for one in found
        for why in _unfit(driver, one, api)
    ]
    if faults:
        raise UsageError(
            "\n".join(dict.fromkeys(faults)),
            advice="--find sends requests at a rate, which the driver locust can.",
        )
    update = {
        "workloads": tuple(found),
        "repeats": 1 if repeats is None else repeats,
        "control": False,
        "further": None,
    }
    return suite.model_copy(update=update)


def left_out(suite: Suite, searched: Suite) -> str:
    """Which workloads of a suite have no search, in words; empty if all have one."""
    kept = {one.name for one in searched.workloads}
    others = [one.name for one in suite.workloads if one.name not in kept]
    return f"no rate is searched for {', '.join(others)}: not reads or writes" if others else ""


def _unfit(driver: str, workload: Workload, api: str) -> tuple[str, ...]:
    kind = KINDS.get_or_refuse(driver)
    return kind.unfit(workload.model_copy(update={"rate_per_s": 1.0}), api)  # type: ignore[arg-type]  # `api` is one of the suite's
