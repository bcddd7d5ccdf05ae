"""dd with direct I/O: one request outstanding, blocks in their order, on one image or file.

It copies all blocks of a workload once, and is interrupted when they take longer than the runtime;
its own time is the window. What it writes to was completely written before, so that no step
allocates space. Zeros are written: neither store compresses them.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Host
from weighbridge.drivers.dd.rbd_mount import RbdMount
from weighbridge.drivers.dd.result import tally_of
from weighbridge.drivers.driver import DriverFailure, OnProgress
from weighbridge.drivers.fio.filesystem import CephFs
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Step,
)
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import CommandOutput, kept_of
from weighbridge.drivers.rados.image import ImageDriver
from weighbridge.drivers.rados.tool import (
    FILL_S,
    GRACE_S,
    AdminToolDriver,
    now,
    object_bytes,
    one_operation,
)
from weighbridge.results.record.measurement import Load, Measurement
from weighbridge.suites import Workload

_FILL_BYTES: Final = 4 * 2**20
_EARLY: Final = 0.95
"""A dd that took less than this share of the runtime ran out of blocks."""


class DdDriver(AdminToolDriver):
    """The base of both drivers: what differs is where the blocks are."""

    api: Literal["rbd", "cephfs"]
    how: str
    """How the image or file is reached, in words."""

    @abstractmethod
    def path(self, workload: Workload) -> str:
        """The image or file. Raises DriverError if it was not prepared or is no longer there."""

    def versions(self) -> Mapping[str, str]:
        found = self.machine.run(["dd", "--version"]).stdout.splitlines()
        name = found[0].strip() if found else "dd"
        how = f"direct I/O, one request outstanding, {self.how}"
        return {f"dd on {self.api}": f"{name}, {how}; {self.cluster.version()}"}

    def argv(self, workload: Workload, path: str) -> tuple[str, ...]:
        """A command that copies all blocks of a workload once."""
        size, count = object_bytes(workload), workload.objects.count
        if one_operation(workload) == "read":
            where = [f"if={path}", "of=/dev/null", "iflag=direct"]
        else:
            where = ["if=/dev/zero", f"of={path}", "oflag=direct", "conv=notrunc,nocreat"]
        # Its messages are in the language of its host.
        return ("env", "LC_ALL=C", "dd", *where, f"bs={size}", f"count={count}")

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        workload = command.workload
        operation = one_operation(workload)
        argv = self.argv(workload, self.path(workload))
        runtime_s = workload.runtime

        def tick(seconds: float, _: Sequence[CommandOutput]) -> bool:
            if on_progress is not None:
                done = min(seconds, runtime_s)
                on_progress(Progress(phase="measure", done=done, total=runtime_s))
            return seconds >= runtime_s

        started_at = now()
        ran = self.commands.run([argv], tick, within_s=runtime_s + GRACE_S)
        tally, window_s = tally_of(ran[0].errors, operation, object_bytes(workload))
        early = window_s < _EARLY * runtime_s
        measurement = Measurement(
            api=self.api,
            workload=workload.name,
            workers=command.workers,
            driver="dd",
            started_at=started_at,
            window_s=window_s,
            warmup_s=0.0,
            tallies=(tally,),
            load=self.client_load(),
            notes=(
                *(f"its blocks were copied after {window_s:.3g} s" for _ in range(early)),
                self.how,
            ),
        )
        return Measured(measurement=measurement, kept=kept_of(ran, "dd"))

    def client_load(self) -> Load | None:
        """Unknown: the FUSE client does most of the work, and is not dd's."""
        return None


class DdRbd(ImageDriver, DdDriver):
    """The driver of RBD by dd, through rbd-fuse."""

    api = "rbd"
    mark = "dd"
    how = "image through rbd-fuse, in requests of at most 128 KiB"

    def __init__(
        self,
        cluster: RadosCluster,
        *,
        prefix: str,
        log: Path,
        pg_num: int = 32,
        cpus: float | None = None,
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log, pg_num=pg_num, cpus=cpus)
        self._mount = RbdMount(cluster, f"{prefix}-{self.mark}", log)

    def path(self, workload: Workload) -> str:
        """The image as a file."""
        if workload.name not in self._images:
            raise DriverError(f"{workload.name} was not prepared")
        return self._mount.path(self._images[workload.name])

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        prepared = super().prepare(command, on_progress)
        self._mount.start()
        return prepared

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """As for any image; with the last one the mount goes first."""
        if command.what == "all" and {*self._images} <= {command.workload.name}:
            self._mount.stop()
        return super().cleanup(command, on_progress)

    def end(self) -> None:
        """Unmount, and remove the pool. Raises TargetError."""
        self._mount.stop()
        super().end()


class DdCephFs(DdDriver):
    """The driver of CephFS by dd, on a mount by ceph-fuse; `mon` runs the metadata server."""

    api = "cephfs"
    how = "file on a mount by ceph-fuse"

    def __init__(
        self,
        cluster: RadosCluster,
        mon: Host,
        *,
        prefix: str,
        log: Path,
        pg_num: int = 32,
        cpus: float | None = None,
    ) -> None:
        super().__init__(cluster, prefix=prefix, log=log, cpus=cpus)
        self._system = CephFs(cluster, mon, name=f"{prefix}-dd-fs", log=log, pg_num=pg_num)
        self._files: set[str] = set()

    def path(self, workload: Workload) -> str:
        if workload.name not in self._files:
            raise DriverError(f"{workload.name} was not prepared")
        self._system.check()
        return f"{self._system.mount}/{workload.name}"

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        began = time.monotonic()
        workload = command.workload
        if workload.name in self._files:
            return Prepared(objects=0, bytes=0, seconds=0.0)
        if not self._system.is_mounted:
            self._system.start()
        size = workload.objects.count * object_bytes(workload)
        path = f"{self._system.mount}/{workload.name}"
        words = ("if=/dev/zero", f"of={path}", f"bs={_FILL_BYTES}", f"count={size}", "conv=fsync")
        argv = ("env", "LC_ALL=C", "dd", *words, "iflag=count_bytes")
        ran = self.run([argv], "prepare", on_progress, total_s=FILL_S)
        found = self.machine.run(["stat", "--format=%s", path]).stdout.strip()
        if found != str(size):
            raise DriverFailure(
                f"{self.machine.name}: {path} has {found[:30]} bytes instead of {size}",
                kept=kept_of(ran, "dd"),
            )
        self._files.add(workload.name)
        seconds = time.monotonic() - began
        return Prepared(objects=1, bytes=size, seconds=seconds, kept=kept_of(ran, "dd"))

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        """Do nothing after a step, which overwrites data; for `all` remove the file, and with the
        last one the file system.
        """
        name = command.workload.name
        if command.what == "written" or name not in self._files:
            return Cleaned(deleted=0)
        self._files.discard(name)
        self.machine.run(["rm", f"{self._system.mount}/{name}"], timeout_s=FILL_S)
        if not self._files:
            self._system.stop()
        return Cleaned(deleted=1)

    def end(self) -> None:
        """Unmount and remove the file system. Raises TargetError."""
        self._system.stop()
