"""This machine itself as the only host: the client of gateways that already run.

Plain processes, no root, no limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from weighbridge.topologies.fake import FakeHost, FakeHosts, FakeKind


class ThisHost(FakeHost):
    """This machine, whose caches a run must not drop."""

    def drop_kernel_caches(self) -> str:
        """Drop nothing: it caches nothing of the gateway, and has other users."""
        return f"{self.name}: kernel caches not dropped (this machine, which only makes the load)"


class ThisMachine(FakeHosts):
    """The host of hardware of kind `existing`."""

    make: ClassVar[type[FakeHost]] = ThisHost

    def facts(self) -> Mapping[str, str]:
        """Say that nothing limits it."""
        return {"client": "this machine, without limits; other programs may be running on it"}


class ThisMachineKind(FakeKind):
    """Hardware of kind `existing`."""

    for_running_gateways: ClassVar[bool] = True
    refuses: ClassVar[str] = "are this machine as it is: none are started"
    passing: ClassVar[str] = "are for gateways that already run: there is nothing to start"
    made: ClassVar[type[FakeHosts]] = ThisMachine


THIS_MACHINE = ThisMachineKind()
