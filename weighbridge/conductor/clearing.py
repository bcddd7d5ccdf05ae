"""Deleting what a run made on a gateway or in a pool that outlives it, however the run ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from weighbridge.common.errors import LeftBehind, UsageError
from weighbridge.conductor import aging
from weighbridge.conductor.interruption import Interrupted, interruptible_again
from weighbridge.conductor.opening import prefix_of
from weighbridge.conductor.plan import Plan
from weighbridge.drivers.kind import KINDS
from weighbridge.drivers.rados import GivenPool, look
from weighbridge.drivers.rados.given_pool import SWEEP_S
from weighbridge.gateways.gateway import Say
from weighbridge.results.run.resolved import BenchedPool, Sheet
from weighbridge.results.run.step import Pass
from weighbridge.suites import Workload, whole
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.loader import Planned

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
    """Delete `buckets`, and what `sweep` does; `say` gets what was deleted. After a signal SOON_S
    are left; it is raised with a note of what may remain. Raises LeftBehind.
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
    """`clear` when the block ends, on every path; `say` gets what was deleted or is left. Raises
    LeftBehind unless the block itself failed.
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
    if len(left) == 1:
        return left[0]
    advice = "\n".join(one.advice for one in left)
    message = "\n".join(one.message for one in left)
    return LeftBehind(message, "; ".join(one.words for one in left), advice=advice)


class PoolCheck:
    """Looks (a `Look`) at the pool of each layer `rados`; `found` are by layout."""

    def __init__(self, plan: Plan, say: Say, log: Path) -> None:
        self.found: dict[str, BenchedPool] = {}
        self._plan, self._say, self._log = plan, say, log

    def __call__(self, planned: Planned, hosts: Hosts) -> None:
        """Raises UsageError with all that is wrong with it, DriverError, TargetError."""
        pool, name = planned.gateway.pool, planned.layout.name
        if pool is None or not benches(self._plan, name):
            return
        self._say(f"{name}: looking at the pool {pool.pool} by {pool.host}")
        found = look(hosts.observed[pool.host], pool, log=self._log)
        for text in (found.words, found.apart and f"no share of it: {found.apart}", found.remark):
            if text:
                self._say(f"{name}: layer rados: {text}")
        self.found[name] = found


def benches(plan: Plan, layout: str) -> bool:
    """Whether a plan runs `rados bench` on a layout."""
    return any(one.api == "rados" for one in plan.passes[layout])


def with_pools(plan: Plan, found: Mapping[str, BenchedPool]) -> Plan:
    """The plan with these pools. Raises UsageError for one that is not as when the run began."""
    pools = {**found, **{twin: found[of] for twin, of in plan.twins.items() if of in found}}
    for name, then in plan.pools.items():
        now = pools.get(name, then)
        if (now.kept, now.rule, not now.apart) != (then.kept, then.rule, not then.apart):
            raise UsageError(
                f"{name}: when the run began, it was {_shared(then)}; now it is {_shared(now)}",
                advice="Results of two such pools do not belong in one table: make a new run.",
            )
    return plan if plan.pools else plan.model_copy(update={"pools": pools})


def _shared(pool: BenchedPool) -> str:
    return f"{pool.words}, {pool.apart or 'and gateways kept objects as it does'}"


def sheets(pools: Mapping[str, BenchedPool]) -> Iterable[Sheet]:
    """What is known of pools, for the report."""
    return [
        Sheet(title="layer rados", layout=name, facts=dict(one.facts))
        for name, one in pools.items()
    ]


def sweep_of(plan: Plan, deployment: Deployment, *, namespace: str, log: Path) -> Sweep:
    """What deletes all that a run made in the pool of a deployment."""
    # Asking what is below a gateway may run programs on its hosts.
    asked = benches(plan, deployment.layout.name)
    pool = deployment.running_gateway.below().pool if asked else None
    if pool is None:
        return nothing_else
    given = GivenPool(deployment.machines.observed[pool.host], pool, namespace=namespace, log=log)

    def sweep(within_s: float | None) -> tuple[str, ...]:
        count = given.sweep(within_s=SWEEP_S if within_s is None else within_s)
        words = f"deleted {count} objects that were left in the pool {given.pool.pool}"
        return (words,) if count else ()

    return sweep
