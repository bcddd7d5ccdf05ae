"""The cluster for its benchmarks: pools of their own are made, waited for and removed; nothing else
is touched.

Where the cluster already runs, `rados bench` gets a pool that exists instead
(`drivers.rados.given_pool`): both are a `BenchCluster`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Host, ProgramHost
from weighbridge.common.tool_output import json_value
from weighbridge.drivers.driver import DriverFailure
from weighbridge.drivers.rados.bench import BenchPlace
from weighbridge.suites import RadosBenchOptions

CLEAN_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.5


class ToolCluster(Protocol):
    """A Ceph cluster, as a driver needs it whose tool runs on `machine`."""

    @property
    def machine(self) -> ProgramHost:
        """A host with Ceph's programs and keys."""

    def version(self) -> str:
        """Such as `ceph version 16.2.15 pacific (stable)`. Raises TargetError, DriverError."""

    def remove_made(self, *, timeout_s: float = 60) -> None:
        """Remove all that was made here. Raises TargetError, DriverError."""


class BenchCluster(ToolCluster, Protocol):
    """The same, as `rados bench` needs it."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about steps in it."""

    def places(self, prefix: str, options: RadosBenchOptions) -> tuple[BenchPlace, ...]:
        """A place for each instance."""

    def make_places(self, prefix: str, options: RadosBenchOptions) -> None:
        """Make those that do not exist. Raises TargetError, DriverError."""

    def how(self, options: RadosBenchOptions) -> str:
        """Where instances keep their objects, in words that follow their number in parallel."""


class RadosCluster:
    """A Ceph cluster, by a host with an admin keyring; `replicas` is the cluster's setting."""

    notes: tuple[str, ...] = ()

    def __init__(self, machine: Host, *, replicas: int) -> None:
        self.machine = machine
        self.replicas = replicas
        self.pools: list[str] = []
        """Pools that were made here and still exist."""

    def ceph(self, *words: str, timeout_s: float = 60) -> str:
        """What `ceph` prints. Raises CommandFailed."""
        return self.machine.run(["ceph", *words], timeout_s=timeout_s).stdout

    def ask(self, *words: str) -> Any:
        """What `ceph` answers in JSON; some answers begin with an empty line.

        Raises CommandFailed, TargetError.
        """
        return json_value(
            f"{self.machine.name}: ceph {' '.join(words)}",
            self.ceph(*words, "--format", "json"),
            TargetError,
        )

    def version(self) -> str:
        """Such as `ceph version 16.2.15 (...) pacific (stable)`."""
        return self.machine.run(["ceph", "--version"]).stdout.strip()

    def make_pools(self, pools: Mapping[str, int], application: str) -> None:
        """Make pools with these numbers of placement groups, and wait until all are active and
        clean: before, a benchmark would measure how they become so.

        Raises CommandFailed, DriverFailure.
        """
        wanted = {name: count for name, count in pools.items() if name not in self.pools}
        for name, count in wanted.items():
            self.pools.append(name)
            self.ceph("osd", "pool", "create", name, str(count), str(count))
            if application:  # CephFS names its pools itself
                self.ceph("osd", "pool", "application", "enable", name, application)
        if wanted:
            self.await_clean()

    def await_clean(self) -> None:
        """Wait until all placement groups are active and clean. Raises DriverFailure after
        CLEAN_WITHIN_S, or when a pool has other replicas than the layout's.
        """
        details = self.ask("osd", "pool", "ls", "detail")
        for pool in details:
            name, size = pool["pool_name"], pool["size"]
            if name in self.pools and size != self.replicas:
                raise DriverFailure(
                    f"{self.machine.name}: the pool {name} has {size} replicas, the layout "
                    f"{self.replicas}"
                )
        wanted = sum(pool["pg_num"] for pool in details)
        deadline = time.monotonic() + CLEAN_WITHIN_S
        while True:
            groups = self.ask("status")["pgmap"]
            clean = sum(
                one["count"]
                for one in groups.get("pgs_by_state", ())
                if one["state_name"] == "active+clean"
            )
            if clean == groups["num_pgs"] == wanted:
                return
            if time.monotonic() > deadline:
                what = (
                    f"{clean} of {wanted} placement groups were active and clean after "
                    f"{CLEAN_WITHIN_S:g} s"
                )
                raise DriverFailure(f"{self.machine.name}: {what}\n{self.ceph('health', 'detail')}")
            time.sleep(_POLL_S)

    def places(self, prefix: str, options: RadosBenchOptions) -> tuple[BenchPlace, ...]:
        """A pool for each instance."""
        names = (f"{prefix}-rados-{number}" for number in range(options.instances))
        return tuple(BenchPlace(pool=name) for name in names)

    def make_places(self, prefix: str, options: RadosBenchOptions) -> None:
        """Make these pools. Raises as `make_pools`."""
        groups = pg_num_each(options.pg_num, options.instances)
        names = [one.pool for one in self.places(prefix, options)]
        self.make_pools(dict.fromkeys(names, groups), "rados")

    def how(self, options: RadosBenchOptions) -> str:
        """See BenchCluster."""
        groups = pg_num_each(options.pg_num, options.instances)
        return f"a pool of {groups} placement groups each"

    def remove_made(self, *, timeout_s: float = 60) -> None:
        """Remove all pools that were made here, with their content. Raises CommandFailed."""
        while self.pools:
            name = self.pools[-1]
            confirmed = "--yes-i-really-really-mean-it"
            self.ceph("osd", "pool", "rm", name, name, confirmed, timeout_s=timeout_s)
            self.pools.pop()


def split_evenly(total: int, parts: int) -> list[int]:
    """`total` in parts as equal as possible, the first ones larger by one."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def pg_num_each(total: int, parts: int) -> int:
    """Placement groups of each of `parts` pools: the largest power of two, at least one, by which
    they have at most `total` together.
    """
    return 1 << max(0, (total // parts).bit_length() - 1)
