"""The Driver interface: what the conductor asks of a driver, a process or tools run on a host."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from weighbridge.common.errors import DriverError
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    KeptFile,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Step,
)

OnProgress = Callable[[Progress], None]
"""Called with every Progress event, in the conductor's own thread."""


class DriverFailure(DriverError):
    """A command failed; `kept` are files of the driver's tool about it, to be kept with the run."""

    def __init__(self, message: str, *, advice: str = "", kept: tuple[KeptFile, ...] = ()) -> None:
        super().__init__(message, advice=advice)
        self.kept = kept


class Driver(Protocol):
    """A driver that is set up, and a context manager that ends all it started.

    It answers one command after the other. Every command raises DriverError (DriverFailure, where
    files are to be kept) when it fails; after that only `close` may be called.
    """

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        """Make the workload's buckets and objects; all of them exist when this returns."""

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        """Run and measure one step."""

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """Delete what steps wrote, or all of the workload's objects and buckets."""

    def quit(self) -> None:
        """End an idle driver, and check that it ended well."""

    def close(self) -> None:
        """End it whatever it is doing."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
