"""The Driver seam: what the conductor asks of whatever makes the load of a step, a process or a
tool that runs on a host.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

from weighbridge.common.errors import DriverError
from weighbridge.drivers.order import (
    Cleaned,
    Cleanup,
    KeptFile,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Step,
)

Heard = Callable[[Progress], None]
"""Told every Progress event, in the conductor's own thread."""


class GaveUp(DriverError):
    """An order could not be done; `kept` are files of the driver's tool about it, to be kept beside
    the run.
    """

    def __init__(self, message: str, *, advice: str = "", kept: tuple[KeptFile, ...] = ()) -> None:
        super().__init__(message, advice=advice)
        self.kept = kept


class Driver(Protocol):
    """One that knows its target. It answers one order after the other, and is a context manager
    that ends all it started.

    Every order raises DriverError (GaveUp, where there is something to keep of it) when it cannot
    be done; after that only `close` is of use.
    """

    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make what the workload works on; all of it is there when this returns."""

    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Run and measure one step."""

    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Delete what steps wrote, or all that the workload works on."""

    def quit(self) -> None:
        """End it when it is idle, and see that it ended well."""

    def close(self) -> None:
        """End it whatever it does."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
