"""This machine itself as the only host: the client of gateways that already run.

Plain processes, no root, no limits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from weighbridge.topologies.fake import FakeHost, FakeHosts, FakeKind
from weighbridge.topologies.hardware import Hardware

if TYPE_CHECKING:
    from weighbridge.topologies.ssh.observed import ObservedHosts


class ThisHost(FakeHost):
    """This machine, whose caches a run must not drop."""

    def drop_kernel_caches(self) -> str:
        """Drop nothing: it caches nothing of the gateway, and has other users."""
        return f"{self.name}: kernel caches not dropped (this machine, which only makes the load)"


class ThisMachine(FakeHosts):
    """The host of hardware of kind `existing`, and the hosts that are only observed."""

    make: ClassVar[type[FakeHost]] = ThisHost

    def __init__(
        self, deployment: str, hardware: Hardware, folder: Path, names: Collection[str]
    ) -> None:
        super().__init__(deployment, hardware, folder, names)
        self._seen: ObservedHosts | None = None
        if hardware.observed:
            from weighbridge.topologies.ssh.observed import ObservedHosts  # noqa: PLC0415 - only for running clusters

            self._seen = ObservedHosts(hardware, folder)
            self.observed = self._seen.hosts

    def facts(self) -> Mapping[str, str]:
        found = {"client": "this machine, without limits; other programs may be running on it"}
        if self.observed:
            hosts = (f"{name} ({one.cores} CPUs)" for name, one in self.observed.items())
            found["observed"] = f"{', '.join(hosts)}: counters read by ssh, nothing changed"
        return found

    def close(self) -> None:
        super().close()
        if self._seen is not None:
            self._seen.close()


class ThisMachineKind(FakeKind):
    """Hardware of kind `existing`."""

    for_running_gateways: ClassVar[bool] = True
    refuses: ClassVar[str] = "are this machine as it is: none are started"
    passing: ClassVar[str] = "are for gateways that already run: there is nothing to start"
    made: ClassVar[type[FakeHosts]] = ThisMachine


THIS_MACHINE = ThisMachineKind()
