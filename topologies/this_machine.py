"""This machine itself as the one host: the client of gateways that already run.

Plain processes, no root, no limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from weighbridge.topologies.fake import FakeHost, FakeHosts, FakeKind


class ThisHost(FakeHost):
    """This machine, whose caches are not a run's to drop."""

    def drop_kernel_caches(self) -> str:
        """Nothing is dropped: it holds nothing of the gateway, and serves others too."""
        return f"{self.name}: kernel caches not dropped (this machine, which only makes the load)"


class ThisMachine(FakeHosts):
    """The hosts of hardware of kind existing."""

    make: ClassVar[type[FakeHost]] = ThisHost

    def facts(self) -> Mapping[str, str]:
        """That nothing limits it."""
        return {
            "client": "this machine itself, without limits of its own; whatever else runs here "
            "runs along"
        }


class ThisMachineKind(FakeKind):
    """This machine as it is."""

    of_what_runs: ClassVar[bool] = True
    refuses: ClassVar[str] = "are this machine as it is: no hosts are raised from it"
    passing: ClassVar[str] = "are for gateways that already run: there is nothing to stand up"
    made: ClassVar[type[FakeHosts]] = ThisMachine


THIS_MACHINE = ThisMachineKind()
