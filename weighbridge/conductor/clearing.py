"""Deleting what a run made on a gateway or in a pool that outlives it, however the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from weighbridge.common.errors import LeftBehind
from weighbridge.conductor import aging
from weighbridge.conductor.interruption import Interrupted, interruptible_again
from weighbridge.conductor.opening import prefix_of
from weighbridge.conductor.plan import Plan
from weighbridge.drivers.kind import KINDS
from weighbridge.results.record.step import Pass
from weighbridge.suites import Workload, whole
from weighbridge.topologies.deployment import Deployment

SOON_S: Final = 10.0
"""Time for what is still to be deleted when a signal comes."""
HINT: Final = f"deleting what this run made; another signal ends that within {SOON_S:.0f} s"

Sweep = Callable[[float | None], tuple[str, ...]]
"""Deletes what else a run made, within so many seconds if that is given; returns in words what was
deleted. Raises LeftBehind.
"""


def nothing_else(_within_s: float | None) -> tuple[str, ...]:
    """A sweep where there is nothing but buckets."""
    return ()


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


def clear(
    deployment: Deployment,
    buckets: Sequence[str],
    say: Callable[[str], None],
    sweep: Sweep = nothing_else,
) -> None:
    """Delete `buckets`, and what `sweep` does; `say` gets what was deleted.

    A signal, even one after another that ended the run, leaves it SOON_S more: it is raised then,
    with a note of what may be left. Raises LeftBehind.
    """

    def of_buckets(within_s: float | None) -> tuple[str, ...]:
        return deployment.running_gateway.clear(buckets, within_s=within_s)

    def delete_all(within_s: float | None) -> None:
        left: list[LeftBehind] = []
        for delete in (of_buckets, sweep):
            try:
                for text in delete(within_s):
                    say(text)
            except LeftBehind as error:
                left.append(error)
        if left:
            raise _together(left)

    try:
        with interruptible_again():
            delete_all(None)
    except Interrupted as interrupted:
        # Further signals are ignored, so this time it runs to its end, which must be near.
        try:
            delete_all(SOON_S)
        except LeftBehind as left:
            say(str(left))
            interrupted.add_note(left.words)
        raise


@contextmanager
def clearing(
    deployment: Deployment,
    buckets: Sequence[str],
    say: Callable[[str], None],
    sweep: Sweep = nothing_else,
) -> Iterator[None]:
    """Delete `buckets`, and what `sweep` does, when the block ends, on every path; `say` gets what
    was deleted or is left.

    Raises LeftBehind if something is left, unless the block itself failed; see `clear` for
    signals.
    """
    try:
        yield
    except BaseException as ended:
        if isinstance(ended, Interrupted) and deployment.hardware.of.for_running_gateways:
            say(HINT)
        try:
            clear(deployment, buckets, say, sweep)
        except LeftBehind as left:
            say(str(left))
            ended.add_note(left.words)
        except Interrupted as again:
            if not isinstance(ended, Interrupted):
                raise
            # The first signal stays the one that ended the run.
            for note in getattr(again, "__notes__", ()):
                ended.add_note(note)
        raise
    clear(deployment, buckets, say, sweep)


def _together(left: Sequence[LeftBehind]) -> LeftBehind:
    """Several errors as one."""
    if len(left) == 1:
        return left[0]
    advice = "\n".join(one.advice for one in left)
    message = "\n".join(one.message for one in left)
    return LeftBehind(message, "; ".join(one.words for one in left), advice=advice)
