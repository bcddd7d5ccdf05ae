"""The Hosts seam: the hosts of one deployment, whatever kind they are of, from the moment they
stand until they are gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from types import TracebackType
from typing import Final, Literal, Self

from weighbridge.common.host import Host

Limited = Literal["cpu", "disk", "nic"]
LIMITED: Final[tuple[Limited, ...]] = ("cpu", "disk", "nic")
"""What is limited beside memory."""


class Hosts(ABC):
    """Hosts that stand. A context manager: leaving it takes all of them away, on every path."""

    deployment: str
    """The label that everything of this deployment carries."""
    hosts: Mapping[str, Host]
    """By name, in the order of the hardware file."""

    @abstractmethod
    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """Put the CPU, block and NIC limits of the hardware on, or some of them. Memory limits are
        on from the start.

        Hosts come up without the others, so that starting a gateway takes no longer than it must.
        Raises TargetError.
        """

    @abstractmethod
    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """Take limits off again that `limit` put on. Raises TargetError."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """What the hosts are, in words: kind, kernel, limits as the kernel reads them back, traps
        that apply.
        """

    @abstractmethod
    def close(self) -> None:
        """Take everything away.

        May be called at any time and more than once. Raises TargetError naming what stayed.
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
