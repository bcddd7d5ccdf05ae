"""Power cuts of all hosts of a store at one instant, many of them from one load."""

from __future__ import annotations

from abc import ABC, abstractmethod

from weighbridge.common.counters import CutDisk


class PowerCuts(ABC):
    """The hosts of a store whose disks remember all that is written to them, in order.

    `record`, then any number of `mark`s under load, then `cut`; `restore` starts the hosts again as
    they would be after a cut at a mark, which may be repeated for each mark in ascending order.
    """

    @abstractmethod
    def record(self, *, flushes: bool) -> None:
        """Begin. What hosts have written until now is flushed, and stays whatever is cut. Without
        `flushes`, disks ignore what they are asked to flush from now on.

        Raises TargetError.
        """

    @abstractmethod
    def mark(self) -> int:
        """Remember this instant on all disks; returns its number, from 1 on. Raises TargetError."""

    @abstractmethod
    def cut(self) -> None:
        """Cut the power of all hosts but the clients. Raises TargetError."""

    @abstractmethod
    def restore(self, mark: int, *, keep: float, seed: int) -> tuple[CutDisk, ...]:
        """Power on with disks as at a mark: what was flushed, and of the rest each block with
        the chance `keep`. No service runs. Raises TargetError.
        """
