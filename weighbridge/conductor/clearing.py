"""Clearing: what a run made on a gateway that outlives it goes with the run, however the run
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from weighbridge.common.errors import WeighbridgeError
from weighbridge.conductor import aging
from weighbridge.conductor.opening import prefix_of
from weighbridge.conductor.plan import Plan
from weighbridge.drivers.kind import KINDS
from weighbridge.topologies.deployment import Deployment


def buckets_of(plan: Plan, prefix: str) -> tuple[str, ...]:
    """All buckets that a run of this prefix may make on a gateway."""
    names = [
        f"{prefix_of(prefix, way)}-{one.name}-{KINDS.get_or_refuse(way.driver).first_bucket + index}"
        for ways in plan.passes.values()
        for way in ways
        for one in way.workloads
        for index in range(one.objects.containers)
    ]
    return tuple(dict.fromkeys([*aging.buckets(plan.suite, prefix), *names]))


@contextmanager
def clearing(
    deployment: Deployment, buckets: Sequence[str], tell: Callable[[str], None]
) -> Iterator[None]:
    """Have `buckets` deleted when the block ends, on every path; `tell` hears what was deleted, or
    what is left.

    Raises TargetError when something is left and nothing else went wrong; else what went wrong
    stays the error.
    """

    def clear() -> None:
        for text in deployment.standing.clear(buckets):
            tell(text)

    def clear_all_the_same() -> None:
        try:
            clear()
        except WeighbridgeError as left:
            tell(str(left))

    try:
        yield
    except BaseException:
        clear_all_the_same()
        raise
    try:
        clear()
    except WeighbridgeError:
        raise
    except BaseException:
        # It was interrupted: further signals are ignored, so that this time it comes to its end.
        clear_all_the_same()
        raise
