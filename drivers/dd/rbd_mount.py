"""RBD images of a pool as files, by rbd-fuse: for tools that know nothing of RBD, on hosts whose
kernel has neither rbd nor nbd.

rbd-fuse is the tools' image's (16.2), with its librbd, for all releases of clusters.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed
from weighbridge.common.piped_process import PipedProcess
from weighbridge.drivers.driver import DriverFailure
from weighbridge.drivers.fio.filesystem import LOGGED, end_program, tail_of
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.drivers.rados.image import RbdImage

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
        """Mount the pool if it is not mounted. Raises CommandFailed, DriverFailure,
        MissingPrerequisite.
        """
        if self._program is not None:
            return
        if not Path("/dev/fuse").is_char_device():
            raise DriverFailure(
                f"{self._machine.name}: no /dev/fuse: RBD images cannot be mounted",
                advice="Load the kernel module fuse.",
            )
        # Without big_writes FUSE would send writes in pieces of 4 KiB.
        argv = (*self._machine.tool(RBD_FUSE), "-p", self._pool, "-f", "-o", "big_writes")
        self._machine.run(["mkdir", "-p", self._folder])
        self._program = self._machine.spawn(
            ["sh", "-c", LOGGED, RBD_FUSE, *argv, self._folder], stderr=self._log
        )
        deadline = time.monotonic() + _UP_WITHIN_S
        while not self._mounted():
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
            # A mount that hangs is detached, so that its program can be ended.
            unmount = 'umount "$0" || umount --lazy "$0" || ! mountpoint -q "$0"'
            self._machine.run(["sh", "-c", unmount, self._folder])
        finally:
            end_program(program)

    def _mounted(self) -> bool:
        try:
            self._machine.run(["mountpoint", "-q", self._folder])
        except CommandFailed:
            return False
        return True
