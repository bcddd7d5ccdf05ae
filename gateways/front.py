"""The Front seam: a program between clients and the daemons of a gateway, such as HAProxy or Apache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gateways.daemon import Daemon
from gateways.host import Host
from gateways.probe import Probe


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
