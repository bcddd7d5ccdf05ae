"""Pools of clusters that already run, for layer `rados`: looked at first, swept at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from weighbridge.common.errors import UsageError
from weighbridge.conductor.clearing import Sweep, nothing_else
from weighbridge.conductor.plan import Plan
from weighbridge.drivers.rados import GivenPool, look
from weighbridge.drivers.rados.given_pool import SWEEP_S
from weighbridge.gateways.gateway import Say
from weighbridge.results.record.benched_pool import BenchedPool
from weighbridge.results.record.manifest import Sheet
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.loader import Planned


class PoolCheck:
    """Looks at the pool of each layout whose layer `rados` a plan measures; `found` are by layout.

    A `Look` of topologies.preflight, while the layout's hosts are there.
    """

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
    """The plan with these pools; an A/A control has its layout's.

    Raises UsageError for one that is not as when the run began.
    """
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
    given = GivenPool(deployment.observed[pool.host], pool, namespace=namespace, log=log)
    return partial(_swept, given)


def _swept(given: GivenPool, within_s: float | None) -> tuple[str, ...]:
    count = given.sweep(within_s=SWEEP_S if within_s is None else within_s)
    if not count:
        return ()
    return (f"deleted {count} objects that were left in the pool {given.pool.pool}",)
