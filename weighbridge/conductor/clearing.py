"""Deleting a run's buckets from a gateway that outlives it, however the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from weighbridge.common.errors import BucketsLeft
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
HINT: Final = f"deleting the buckets of this run; another signal ends that within {SOON_S:.0f} s"


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


def clear(deployment: Deployment, buckets: Sequence[str], say: Callable[[str], None]) -> None:
    """Delete `buckets`; `say` gets what was deleted.

    A signal, even one after another that ended the run, leaves it SOON_S more: it is raised then,
    with a note of what may be left. Raises BucketsLeft.
    """
    gateway = deployment.running_gateway
    try:
        with interruptible_again():
            done = gateway.clear(buckets)
    except Interrupted as interrupted:
        # Further signals are ignored, so this time it runs to its end, which must be near.
        try:
            done = gateway.clear(buckets, within_s=SOON_S)
        except BucketsLeft as left:
            say(str(left))
            interrupted.add_note(left.words)
        else:
            _say_all(done, say)
        raise
    _say_all(done, say)


@contextmanager
def clearing(
    deployment: Deployment, buckets: Sequence[str], say: Callable[[str], None]
) -> Iterator[None]:
    """Delete `buckets` when the block ends, on every path; `say` gets what was deleted or is left.

    Raises BucketsLeft if something is left, unless the block itself failed; see `clear` for
    signals.
    """
    try:
        yield
    except BaseException as ended:
        if isinstance(ended, Interrupted) and deployment.hardware.of.for_running_gateways:
            say(HINT)
        try:
            clear(deployment, buckets, say)
        except BucketsLeft as left:
            say(str(left))
            ended.add_note(left.words)
        except Interrupted as again:
            if not isinstance(ended, Interrupted):
                raise
            # The first signal stays the one that ended the run.
            for note in getattr(again, "__notes__", ()):
                ended.add_note(note)
        raise
    clear(deployment, buckets, say)


def _say_all(texts: Sequence[str], say: Callable[[str], None]) -> None:
    for text in texts:
        say(text)
