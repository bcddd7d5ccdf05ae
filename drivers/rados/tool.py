"""What the drivers that run a tool on a host of the cluster have alike: its pools, its programs,
and their end.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.host import Host
from weighbridge.drivers.driver import GaveUp, Heard
from weighbridge.drivers.order import Cleaned, Cleanup, Measured, Prepare, Prepared, Progress, Step
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands
from weighbridge.results.record.measurement import Load
from weighbridge.suites import Workload

GRACE_S: Final = 60.0
"""How long a tool may take beyond the time that it was given: a cluster that has stopped to answer
is not waited for.
"""
FILL_S: Final = 3600.0
_END_S: Final = 30.0

Phase = Literal["prepare", "warm-up", "measure", "cleanup"]


class Tool(ABC):
    """A driver whose tool runs on `cluster.machine`. `cpus` is what that host may use, None when
    that is not known.

    `prefix` begins the names of everything it makes in the cluster; `log` gets what its programs
    say to people.
    """

    def __init__(
        self, cluster: RadosCluster, *, prefix: str, log: Path, cpus: float | None = None
    ) -> None:
        self.cluster = cluster
        self.machine: Host = cluster.machine
        self.prefix = prefix
        self.crew = HostCommands(self.machine, log)
        self.log = log
        self._cpus = cpus

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """What makes the load, and how it is set. Raises TargetError when the tool is not there."""

    @abstractmethod
    def prepare(self, order: Prepare, heard: Heard | None = None) -> Prepared:
        """Make what the workload works on."""

    @abstractmethod
    def step(self, order: Step, heard: Heard | None = None) -> Measured:
        """Measure one step."""

    @abstractmethod
    def cleanup(self, order: Cleanup, heard: Heard | None = None) -> Cleaned:
        """Delete what steps wrote, or all of it."""

    def end(self) -> None:
        """Take away everything that was made in the cluster. Raises TargetError."""
        self.cluster.remove_pools(timeout_s=_END_S)

    def quit(self) -> None:
        """Take everything away, and see that it went well."""
        self.crew.close()
        self.end()

    def close(self) -> None:
        """End its programs and take away what can be; what cannot goes with the cluster."""
        self.crew.close()
        with contextlib.suppress(TargetError, DriverError):
            self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def run(
        self,
        commands: Sequence[Sequence[str]],
        phase: Phase,
        heard: Heard | None,
        *,
        total_s: float,
        warmup_s: float = 0.0,
    ) -> list[CommandOutput]:
        """Run commands at once to their end, telling how far they are in time: none of these tools
        tells more while it runs.

        `total_s` is how long they take, after a warm-up of their own.
        """

        def tick(seconds: float, _: Sequence[CommandOutput]) -> bool:
            if heard is not None and seconds < warmup_s:
                heard(Progress(phase="warm-up", done=seconds, total=warmup_s))
            elif heard is not None:
                heard(Progress(phase=phase, done=min(seconds - warmup_s, total_s), total=total_s))
            return False

        return self.crew.run(commands, tick, within_s=warmup_s + total_s + GRACE_S)

    def load(self, ran: Sequence[CommandOutput], seconds: float | None = None) -> Load | None:
        """What the tool used:

        CPU of its processes, start and end included, by `seconds` or all the time they were there.
        """
        if self._cpus is None:
            return None
        window_s = max(one.seconds for one in ran) if seconds is None else seconds
        return Load(cpu_s=sum(one.cpu_s for one in ran), cpu_limit=self._cpus, window_s=window_s)


def seconds_up(seconds: float) -> int:
    """Whole seconds, at least one: these tools know no others."""
    return max(1, math.ceil(seconds))


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def one_operation(workload: Workload) -> Literal["read", "write"]:
    """The only operation of a workload that such a tool can do (drivers.fitness)."""
    (operation,) = workload.operations
    if operation not in ("read", "write"):
        raise GaveUp(f"{workload.name}: {operation} cannot be done here")
    return operation


def object_bytes(workload: Workload) -> int:
    """The only size of a workload that such a tool can do."""
    size = workload.objects.size
    if not isinstance(size, int):
        raise GaveUp(f"{workload.name}: objects of several sizes cannot be asked here")
    return size
