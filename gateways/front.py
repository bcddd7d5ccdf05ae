"""The Front seam: a program between clients and the daemons of a gateway, such as HAProxy or Apache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.scope import Scope
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.probe import Probe


@dataclass(frozen=True)
class Backend:
    """One daemon behind a front: a radosgw or a Swift proxy."""

    name: str
    address: str
    port: int


class Front(ABC):
    """A front as its settings say it; the host it sits on is given to each method. Its packages are in the gateway's image."""

    port: int
    """Where clients find it."""

    @abstractmethod
    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        """Its configuration files by path, for a front that listens on `address`. Nothing in them is secret."""

    @abstractmethod
    def check(self, host: Host) -> None:
        """Have its own program check the files, which are on the host. Raises UsageError in its words, with "did you mean"."""

    @abstractmethod
    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        """What is to be started, in an order in which it may be, when the backends answer. The last one has the front's port."""

    @abstractmethod
    def facts(self, host: Host) -> dict[str, str]:
        """What decides results, in words: version, settings as they run. Which path is weighed is named here."""

    @abstractmethod
    def probes(self, host: Host) -> tuple[Probe, ...]:
        """What it counts of itself, every second."""

    @abstractmethod
    def await_backends(self, host: Host) -> None:
        """Return when a front that runs sends requests to all of its backends, which answer. Raises ServiceFailed.

        For after it or they were started anew while clients know its address: a request may come at once then.
        """

    @classmethod
    def scope(cls, key: str) -> Scope:
        """What a setting needs to count, by its dotted key below the front's own settings; its port is what clients know."""
        return "cluster" if key == "port" else "restart"

    def reloads(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Whether going from the one to the other files, by path, needs no more than a reload."""
        return False

    def reload(self, host: Host) -> str:
        """Have it read its files again while it serves, and nothing of before left over; returns in words what was seen.

        Empty when it took the files, but is not as it would be had it been started with them, such as with fewer processes: it must
        then be started anew, since what is weighed would not be the setting.

        Raises UsageError when it is none that can, CommandFailed or ServiceFailed when it did not take the files.
        """
        raise UsageError(f"{type(self).__name__} reads its files only when it starts")
