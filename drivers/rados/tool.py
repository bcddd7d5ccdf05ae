"""The base of drivers that run a tool on a host of the cluster: pools, commands, and their end."""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, Self

from weighbridge.common.errors import DriverError, TargetError
from weighbridge.common.host import Host
from weighbridge.drivers.protocol import Driver, DriverFailure, OnProgress, Progress
from weighbridge.drivers.rados.cluster import RadosCluster, ToolCluster
from weighbridge.drivers.rados.host_commands import CommandOutput, HostCommands
from weighbridge.results.run.step import Load
from weighbridge.suites import Workload

GRACE_S: Final = 60.0
"""Time of a tool beyond what it was given: a cluster that does not answer is not waited for."""
FILL_S: Final = 3600.0
_END_S: Final = 30.0

Phase = Literal["prepare", "warm-up", "measure", "cleanup"]


class ToolDriver(Driver):
    """A driver whose tool runs on `cluster.machine`, which may use `cpus` (None: unknown).

    `prefix` begins all names in the cluster; `log` gets the stderr of the tool's parent.
    """

    def __init__(
        self, cluster: ToolCluster, *, prefix: str, log: Path, cpus: float | None = None
    ) -> None:
        self.cluster = cluster
        self.prefix = prefix
        self.commands = HostCommands(cluster.machine, log)
        self.log = log
        self._cpus = cpus

    @abstractmethod
    def versions(self) -> Mapping[str, str]:
        """What makes the load, and its settings. Raises TargetError when the tool is missing."""

    def end(self) -> None:
        """Remove all that was made in the cluster. Raises TargetError."""
        self.cluster.remove_made(timeout_s=_END_S)

    def quit(self) -> None:
        self.commands.close()
        self.end()

    def close(self) -> None:
        self.commands.close()
        with contextlib.suppress(TargetError, DriverError):
            self.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self,
        commands: Sequence[Sequence[str]],
        phase: Phase,
        on_progress: OnProgress | None,
        *,
        total_s: float,
        warmup_s: float = 0.0,
        grace_s: float = GRACE_S,
        ends: bool = False,
    ) -> list[CommandOutput]:
        """Run commands to their end, with progress by time, for `total_s` after their warm-up;
        `ends`: end them then.
        """

        def tick(seconds: float, _: Sequence[CommandOutput]) -> bool:
            if on_progress is not None and seconds < warmup_s:
                on_progress(Progress(phase="warm-up", done=seconds, total=warmup_s))
            elif on_progress is not None:
                done = min(seconds - warmup_s, total_s)
                on_progress(Progress(phase=phase, done=done, total=total_s))
            return ends and seconds >= warmup_s + total_s

        return self.commands.run(commands, tick, within_s=warmup_s + total_s + grace_s)

    def load(self, ran: Sequence[CommandOutput], seconds: float | None = None) -> Load | None:
        """CPU of the tool's processes, start and end included, over `seconds` or their lifetime."""
        if self._cpus is None:
            return None
        window_s = max(one.seconds for one in ran) if seconds is None else seconds
        return Load(cpu_s=sum(one.cpu_s for one in ran), cpu_limit=self._cpus, window_s=window_s)


class AdminToolDriver(ToolDriver):
    """The same for a cluster of this suite's own: it makes pools there, and all in them."""

    cluster: RadosCluster

    def __init__(
        self, cluster: RadosCluster, *, prefix: str, log: Path, cpus: float | None = None
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        self.machine: Host = cluster.machine


def seconds_up(seconds: float) -> int:
    """Whole seconds, at least one, as these tools need."""
    return max(1, math.ceil(seconds))


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def one_operation(workload: Workload) -> Literal["read", "write"]:
    """The only operation of a workload (see fitness.unfit)."""
    (operation,) = workload.operations
    if operation not in ("read", "write"):
        raise DriverFailure(f"{workload.name}: {operation} is not possible here")
    return operation


def object_bytes(workload: Workload) -> int:
    """The only object size of a workload (see fitness.unfit)."""
    size = workload.objects.size
    if not isinstance(size, int):
        raise DriverFailure(f"{workload.name}: objects of several sizes are not possible here")
    return size
