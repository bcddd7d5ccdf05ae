"""The cluster as its benches want it: pools of one's own, made, waited for and removed, and nothing
else touched.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from weighbridge.common.errors import TargetError
from weighbridge.common.host import Host
from weighbridge.common.printed import json_value
from weighbridge.drivers.driver import GaveUp

CLEAN_WITHIN_S: Final = 120.0
_POLL_S: Final = 0.5


class RadosCluster:
    """A Ceph cluster, from a host that has an administrator's keys; `replicas` is what pools of it
    have by its own settings.
    """

    def __init__(self, machine: Host, *, replicas: int) -> None:
        self.machine = machine
        self.replicas = replicas
        self.pools: list[str] = []
        """Those that were made here and are still there."""

    def ceph(self, *words: str, timeout_s: float = 60) -> str:
        """What `ceph` prints. Raises CommandFailed."""
        return self.machine.run(["ceph", *words], timeout_s=timeout_s).stdout

    def ask(self, *words: str) -> Any:
        """What `ceph` answers in JSON; some commands begin with an empty line.

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
        """Make pools with so many placement groups each and wait until all of the cluster is active
        and clean.

        A bench of a pool that is not yet would measure how it becomes so. Raises CommandFailed,
        GaveUp.
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
        """Wait until every placement group of every pool is active and clean, and pools have the
        replicas they should.
        """
        details = self.ask("osd", "pool", "ls", "detail")
        for pool in details:
            name, size = pool["pool_name"], pool["size"]
            if name in self.pools and size != self.replicas:
                raise GaveUp(
                    f"{self.machine.name}: the pool {name} keeps {size} replicas where the layout "
                    f"says {self.replicas}"
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
                raise GaveUp(f"{self.machine.name}: {what}\n{self.ceph('health', 'detail')}")
            time.sleep(_POLL_S)

    def remove_pools(self, *, timeout_s: float = 60) -> None:
        """Remove all pools that were made here, with all that is in them. Raises CommandFailed."""
        while self.pools:
            name = self.pools[-1]
            self.ceph(
                "osd",
                "pool",
                "rm",
                name,
                name,
                "--yes-i-really-really-mean-it",
                timeout_s=timeout_s,
            )
            self.pools.pop()


def shared_out(total: int, parts: int) -> list[int]:
    """So many things over so many parts, as evenly as can be, the first ones getting one more."""
    return [total // parts + (number < total % parts) for number in range(parts)]


def groups_each(total: int, parts: int) -> int:
    """Placement groups of each of so many pools that have a power of two `total` together: a power
    of two, and at least one.
    """
    return 1 << max(0, (total // parts).bit_length() - 1)
