"""Deleting a run's buckets from a gateway that outlives it, however the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from weighbridge.common.errors import WeighbridgeError
from weighbridge.conductor import aging
from weighbridge.conductor.opening import prefix_of
from weighbridge.conductor.plan import Plan
from weighbridge.drivers.kind import KINDS
from weighbridge.results.record.step import Pass
from weighbridge.suites import Workload, whole
from weighbridge.topologies.deployment import Deployment


def buckets_of(plan: Plan, prefix: str) -> tuple[str, ...]:
    """All buckets that a run of this prefix may make on a gateway."""
    names = [
        bucket
        for ways in plan.passes.values()
        for way in ways
        for one in way.workloads
        for bucket in buckets_of_workload(prefix, way, one)
    ]
    return tuple(dict.fromkeys([*aging.buckets(plan.suite, prefix), *names]))


def buckets_of_workload(prefix: str, way: Pass, workload: Workload) -> tuple[str, ...]:
    """The buckets of a workload in a pass of a run with this prefix."""
    first = KINDS.get_or_refuse(way.driver).first_bucket
    stem = f"{prefix_of(prefix, way)}-{whole(workload).name}"
    return tuple(f"{stem}-{first + index}" for index in range(workload.objects.containers))


@contextmanager
def clearing(
    deployment: Deployment, buckets: Sequence[str], say: Callable[[str], None]
) -> Iterator[None]:
    """Delete `buckets` when the block ends, on every path; `say` gets what was deleted or is left.

    Raises TargetError if something is left, unless the block itself failed.
    """

    def clear() -> None:
        for text in deployment.running_gateway.clear(buckets):
            say(text)

    def try_to_clear() -> None:
        try:
            clear()
        except WeighbridgeError as left:
            say(str(left))

    try:
        yield
    except BaseException:
        try_to_clear()
        raise
    try:
        clear()
    except WeighbridgeError:
        raise
    except BaseException:
        # It was interrupted: further signals are ignored, so this time it will end.
        try_to_clear()
        raise
