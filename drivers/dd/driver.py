"""dd with direct I/O: one request outstanding, blocks in their order, on one image or file.

It copies all blocks of a workload once, and is interrupted when they take longer than the runtime;
its own time is the window. What it writes to was completely written before, so that no step
allocates space. Zeros are written: neither store compresses them.
"""

from __future__ import annotations

import math
import re
import time
from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from weighbridge.common.errors import DriverError
from weighbridge.common.host import PipedProcess
from weighbridge.common.program_lines import end
from weighbridge.common.tool_output import printable
from weighbridge.drivers.fio.filesystem import (
    END_WITHIN_S,
    LOGGED,
    FilesDriver,
    check_fuse,
    mounted,
    tail_of,
    unmount,
)
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    DriverFailure,
    Measured,
    OnProgress,
    Prepare,
    Prepared,
    Step,
)
from weighbridge.drivers.rados.block import ImageDriver, RbdImage
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.host_commands import kept_of
from weighbridge.drivers.rados.tool import (
    FILL_S,
    AdminToolDriver,
    now,
    object_bytes,
    one_operation,
)
from weighbridge.results.run.step import Load, Measurement, Tally
from weighbridge.suites import Workload

# What dd prints at its end, or when it is interrupted, as a tally.
#
# dd of GNU coreutils, in the C locale, on stderr (8.32 and 9.1 print the same):
#
#         64+0 records in
#         64+0 records out
#         268435456 bytes (268 MB, 256 MiB) copied, 23.2027 s, 11.6 MB/s
#
# It reports no latency. Partial records, of which there are none with direct I/O, do not count.


_RECORDS: Final = re.compile(r"(?am)^([0-9]{1,15})\+([0-9]{1,15}) records (in|out)$")
_COPIED: Final = re.compile(
    r"(?am)^([0-9]{1,18}) bytes?(?: \([^()\n]{1,60}\))? copied, ([0-9.e+-]{1,24}) s(?:,|$)"
)
_SIDE: Final = {"read": "in", "write": "out"}


def tally_of(
    printed: str, operation: Literal["read", "write"], block_bytes: int
) -> tuple[Tally, float]:
    """The tally of one dd, and the seconds it took. Raises DriverError."""
    # Progress lines may come before: the last of each kind is the total.
    copied = [*_COPIED.finditer(printed)]
    records = [one for one in _RECORDS.finditer(printed) if one[3] == _SIDE[operation]]
    if not copied or not records:
        raise DriverError(f"dd: no total in what it printed: {printable(printed[-300:])!r}")
    count, partial = int(records[-1][1]), int(records[-1][2])
    moved = int(copied[-1][1])
    try:
        seconds = float(copied[-1][2])
    except ValueError as error:
        raise DriverError(f"dd: {printable(copied[-1][0])!r}: {error}") from error
    if not 0 < seconds < math.inf:
        raise DriverError(f"dd: {moved} bytes in {seconds} s")
    whole = count * block_bytes
    # Interrupted, it may have read a block more than it has copied.
    least = whole - block_bytes if operation == "read" else whole
    if not least <= moved <= whole + partial * block_bytes:
        raise DriverError(
            f"dd: {count}+{partial} blocks of {block_bytes} bytes are not {moved} bytes"
        )
    tally = Tally(
        operation=operation,
        count=count,
        bytes=count * block_bytes,
        sum_us=None if count else 0,
    )
    return tally, seconds


# RBD images of a pool as files, by rbd-fuse: for tools that know nothing of RBD, on hosts whose
# kernel has neither rbd nor nbd.
#
# rbd-fuse is the tools' image's (16.2), with its librbd, for all releases of clusters.


_UP_WITHIN_S: Final = 30.0
_POLL_S: Final = 0.2
RBD_FUSE: Final = "rbd-fuse"


class RbdMount:
    """A mount of a pool on `cluster.machine`; `log` has the shell's stderr."""

    def __init__(self, cluster: RadosCluster, pool: str, log: Path) -> None:
        self._machine = cluster.machine
        self._pool = pool
        self._log = log
        self._program: PipedProcess | None = None
        self._folder = f"/run/{pool}"

    def path(self, image: RbdImage) -> str:
        """An image's file. Raises DriverFailure when rbd-fuse has ended."""
        if self._program is None or self._program.poll() is not None:
            raise DriverFailure(
                f"{self._machine.name}: rbd-fuse has ended\n{tail_of(self._machine, RBD_FUSE)}"
            )
        return f"{self._folder}/{image.name}"

    def start(self) -> None:
        """Mount the pool unless it is. Raises CommandFailed, DriverFailure, MissingPrerequisite."""
        if self._program is not None:
            return
        check_fuse(self._machine, "RBD images")
        # Without big_writes FUSE would send writes in pieces of 4 KiB.
        argv = (*self._machine.tool(RBD_FUSE), "-p", self._pool, "-f", "-o", "big_writes")
        self._machine.run(["mkdir", "-p", self._folder])
        self._program = self._machine.spawn(
            ["sh", "-c", LOGGED, RBD_FUSE, *argv, self._folder], stderr=self._log
        )
        deadline = time.monotonic() + _UP_WITHIN_S
        while not mounted(self._machine, self._folder):
            if self._program.poll() is not None or time.monotonic() > deadline:
                what = f"{self._machine.name}: rbd-fuse did not mount {self._pool}"
                raise DriverFailure(f"{what}\n{tail_of(self._machine, RBD_FUSE)}")
            time.sleep(_POLL_S)

    def stop(self) -> None:
        """Unmount, as far as it was mounted. Raises CommandFailed."""
        program, self._program = self._program, None
        if program is None:
            return
        try:
            unmount(self._machine, self._folder)
        finally:
            end(program, within_s=0, terminate_s=END_WITHIN_S)


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

        started_at = now()
        ran = self.run([argv], "measure", on_progress, total_s=runtime_s, ends=True)
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

    @cached_property
    def _mount(self) -> RbdMount:
        return RbdMount(self.cluster, f"{self.prefix}-{self.mark}", self.log)

    def path(self, workload: Workload) -> str:
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
        self._mount.stop()
        super().end()


class DdCephFs(FilesDriver, DdDriver):
    """The driver of CephFS by dd."""

    api = "cephfs"
    mark = "dd-fs"
    how = "file on a mount by ceph-fuse"

    def path(self, workload: Workload) -> str:
        if workload.name not in self._files:
            raise DriverError(f"{workload.name} was not prepared")
        self._system.check()
        return self.place(workload)

    def fill(self, workload: Workload, on_progress: OnProgress | None) -> Prepared:
        size, path = workload.objects.count * object_bytes(workload), self.place(workload)
        words = ("if=/dev/zero", f"of={path}", f"bs={_FILL_BYTES}", f"count={size}", "conv=fsync")
        argv = ("env", "LC_ALL=C", "dd", *words, "iflag=count_bytes")
        ran = self.run([argv], "prepare", on_progress, total_s=FILL_S)
        found = self.machine.run(["stat", "--format=%s", path]).stdout.strip()
        if found != str(size):
            raise DriverFailure(
                f"{self.machine.name}: {path} has {found[:30]} bytes instead of {size}",
                kept=kept_of(ran, "dd"),
            )
        return Prepared(objects=1, bytes=size, seconds=0.0, kept=kept_of(ran, "dd"))
