"""Disks of a host: sparse files as loop devices that free themselves when the last descriptor of
them is closed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from weighbridge.common.errors import MissingMeans, TargetError

# linux/loop.h; LOOP_CONFIGURE is in Linux 5.8 and later. It takes struct loop_config: the
# descriptor and block size, then struct loop_info64 with lo_flags at its offset 52, then 64
# reserved bytes. In one step, so that a process killed half-way leaves no device that does not free
# itself.
LOOP_CONFIGURE = 0x4C0A
LOOP_CTL_GET_FREE = 0x4C82
LO_FLAGS_AUTOCLEAR = 4
LO_FLAGS_DIRECT_IO = 16
CONFIG_BYTES = 8 + 232 + 64
FLAGS_OFFSET = 8 + 52

LOOP_MAJOR = 7
LEAST_USED_UP = 8
"""No kernel has fewer loop devices to give than that: with fewer in use, it is the disk below that
is full.
"""
ATTEMPTS = 64
"""Another process may take the free device between asking for one and attaching to it: so often is
it tried again.
"""


@dataclass(frozen=True)
class LoopDisk:
    """An attached loop device.

    `descriptor` keeps it; the last one to be closed frees device and file.
    """

    path: str
    """Its name in the host, such as /dev/wb0."""
    minor: int
    descriptor: int
    direct: bool
    """Whether it does direct I/O on the file below: otherwise this machine's page cache lies
    between.
    """
    major: int = LOOP_MAJOR

    @classmethod
    def attach(cls, path: str, size_bytes: int, folder: Path) -> Self:
        """Attach a sparse file of `size_bytes` in `folder`, which has no name any more when this
        returns.

        Raises MissingMeans when this machine has no loop devices to give, TargetError when the file
        cannot be made.
        """
        try:
            backing, name = tempfile.mkstemp(dir=folder, prefix="disk-")
        except OSError as error:
            raise TargetError(f"{folder}: no file for a disk: {error.strerror}") from error
        try:
            Path(name).unlink()
            os.ftruncate(backing, size_bytes)
            device, minor = _take_free(backing)
        except OSError as error:
            raise _none_to_give(path, folder, error) from error
        finally:
            os.close(backing)
        direct = Path(f"/sys/block/loop{minor}/loop/dio").read_text().strip() == "1"
        return cls(path, minor, device, direct)

    @property
    def number(self) -> str:
        """`major:minor`, as cgroups name devices."""
        return f"{self.major}:{self.minor}"

    def close(self) -> None:
        """Give this process's descriptor back; the device stays while the host holds its own."""
        os.close(self.descriptor)


def _none_to_give(path: str, folder: Path, error: OSError) -> MissingMeans:
    """The error that says why there is no loop device, and what to do about it."""
    used = sum(1 for _ in Path("/sys/block").glob("loop*/loop"))
    if error.filename == "/dev/loop-control" and error.errno in {
        errno.ENOENT,
        errno.ENODEV,
        errno.ENXIO,
    }:
        advice = (
            "Load the loop module (modprobe loop); in a container, its /dev has to have "
            "loop-control."
        )
    elif error.errno in {errno.EPERM, errno.EACCES}:
        advice = (
            "This machine lets nobody have them here: a container needs the right to use "
            "loop devices."
        )
    elif error.errno in {errno.EFBIG, errno.ENOSPC} and used < LEAST_USED_UP:
        advice = (
            f"Make room in {folder}, or set WEIGHBRIDGE_HOME to a folder whose file system "
            "takes files of that size."
        )
    else:
        advice = (
            f"{used} are in use on this machine: `losetup --list` names their files, `weighbridge "
            "down --all` frees those of "
            "deployments that were left. Where the kernel was given max_loop, that is the most "
            "there can be."
        )
    return MissingMeans(f"no loop device for {path}: {error.strerror}", advice=advice)


def _take_free(backing: int) -> tuple[int, int]:
    """A descriptor and the number of a loop device that `backing` was attached to.

    It does direct I/O where the file system below can (tmpfs, for one, cannot).
    """
    config = bytearray(CONFIG_BYTES)
    struct.pack_into("I", config, 0, backing)
    struct.pack_into("I", config, FLAGS_OFFSET, LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO)
    for _ in range(ATTEMPTS):
        control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
        try:
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
        finally:
            os.close(control)
        node = Path(f"/dev/loop{number}")
        if not node.exists():  # where /dev is not kept by the kernel
            os.mknod(node, 0o660 | stat.S_IFBLK, os.makedev(LOOP_MAJOR, number))
        device = os.open(node, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(device, LOOP_CONFIGURE, bytes(config))
        except OSError as error:
            os.close(device)
            if error.errno != errno.EBUSY:
                raise
            continue
        return device, number
    raise OSError(errno.EBUSY, f"{ATTEMPTS} free loop devices in a row were taken by others")


def attached(minor: int) -> bool:
    """Whether a loop device has a file."""
    return Path(f"/sys/block/loop{minor}/loop").is_dir()
