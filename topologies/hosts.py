"""The Hosts interface: the hosts of one deployment, of any kind, from their start to their end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from types import MappingProxyType, TracebackType
from typing import Final, Literal, Protocol, Self

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Counters, Host, ProgramHost
from weighbridge.topologies.power_cuts import PowerCuts

Limited = Literal["cpu", "disk", "nic"]
LIMITED: Final[tuple[Limited, ...]] = ("cpu", "disk", "nic")
"""All limits but that of memory."""


class SeenHost(Protocol):
    """A host of which only the counters are read."""

    @property
    def cores(self) -> int | None:
        """Its CPUs; None: not known."""

    def counters(self) -> Counters:
        """What it used since it was first looked at. Raises TargetError."""


class ClusterHost(SeenHost, ProgramHost, Protocol):
    """A host of a cluster that already runs, on which only programs run that a layout names."""


class Hosts(ABC):
    """Running hosts; a context manager that tears all of them down on every path."""

    deployment: str
    """The label of everything that belongs to this deployment."""
    hosts: Mapping[str, Host]
    """By name, in the order of the hardware file."""
    observed: Mapping[str, ClusterHost] = MappingProxyType({})
    """Hosts that are none of the deployment's, by name: their counters are read, and programs run
    there that a layout names.
    """
    helpers: tuple[int, ...] = ()
    """Processes of this suite on this machine that hosts need, beside their services."""

    @abstractmethod
    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """Put limits of the hardware on. Memory limits are on from the start.

        The others are off while a gateway starts, which would otherwise take longer. Raises
        TargetError.
        """

    @abstractmethod
    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """Remove limits that `limit` put on. Raises TargetError."""

    def power_off(self, names: Collection[str]) -> None:
        """Cut the power of hosts: their links go first, so that others hear nothing of it, then
        all that runs on them. What their disks have stays.

        Raises UsageError where this suite cannot cut hosts' power, TargetError.
        """
        raise UsageError("this suite cannot cut the power of these hosts")

    def power_on(self, names: Collection[str]) -> None:
        """Start hosts again whose power was cut: connected, on their disks, with none of their
        services. `Host` objects are the same as before. Raises as `power_off` does.
        """
        raise UsageError("this suite cannot cut the power of these hosts")

    def plug(self, names: Collection[str], *, on: bool) -> None:
        """Have the links of hosts down, or up again; what runs on them goes on. Raises as
        `power_off` does.
        """
        raise UsageError("this suite cannot cut the links of these hosts")

    def fail_disk(self, name: str, disk: str, *, on: bool) -> None:
        """Let all I/O to a disk of a host (`/dev/wb0`) fail from now on, or have it answer again
        with all that it had. Raises as `power_off` does.
        """
        raise UsageError("this suite cannot fail the disks of these hosts")

    def power_cuts(self) -> PowerCuts:
        """Cuts of all hosts but the clients at one instant, where they were started for that.

        Raises UsageError.
        """
        raise UsageError("this suite cannot cut the power of these hosts")

    def check(self) -> None:  # noqa: B027 - most kinds of hosts need no such program
        """Raise ServiceFailed if a program that the hosts need, beside their services, has died."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Facts about the hosts: kind, kernel, limits as the kernel reports them, known traps."""

    @abstractmethod
    def close(self) -> None:
        """Tear everything down, at any time, also repeatedly.

        Raises TargetError naming what is left.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
