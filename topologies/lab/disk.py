"""Disks of hosts: sparse files as loop devices, freed when their last descriptor is closed."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from weighbridge.common.errors import MissingPrerequisite, TargetError

# linux/loop.h. LOOP_CONFIGURE (Linux 5.8) takes struct loop_config: descriptor and block size, then
# struct loop_info64 with lo_flags at its offset 52, then 64 reserved bytes. It works in one step: a
# process that is killed leaves no device that does not free itself.
LOOP_CONFIGURE = 0x4C0A
LOOP_CTL_GET_FREE = 0x4C82
LO_FLAGS_AUTOCLEAR = 4
LO_FLAGS_DIRECT_IO = 16
CONFIG_BYTES = 8 + 232 + 64
FLAGS_OFFSET = 8 + 52

LOOP_MAJOR = 7
FEWEST_DEVICES = 8
"""Every kernel has at least so many loop devices: with fewer in use, the disk below is full."""
ATTEMPTS = 64
"""Another process may take the free device between the query and the attachment."""


@dataclass(frozen=True)
class LoopDisk:
    """An attached loop device; closing the last `descriptor` of it frees device and file."""

    path: str
    """Its name in the host, such as /dev/wb0."""
    minor: int
    descriptor: int
    direct: bool
    """Whether it does direct I/O on its file; otherwise this machine's page cache is in between."""
    major: int = LOOP_MAJOR

    @classmethod
    def attach(cls, path: str, size_bytes: int, folder: Path) -> Self:
        """Attach a sparse file of `size_bytes` in `folder`, which has no name when this returns.

        Raises MissingPrerequisite when this machine has no free loop device, TargetError when the
        file cannot be made.
        """
        try:
            backing, name = tempfile.mkstemp(dir=folder, prefix="disk-")
        except OSError as error:
            raise TargetError(f"{folder}: cannot make a disk's file: {error.strerror}") from error
        try:
            Path(name).unlink()
            os.ftruncate(backing, size_bytes)
        except OSError as error:
            os.close(backing)
            raise _no_device(path, folder, error) from error
        return cls._over(path, backing, folder)

    @classmethod
    def over(cls, path: str, file: Path) -> Self:
        """Attach a file that another program serves. Raises as `attach` does."""
        try:
            backing = os.open(file, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise TargetError(f"{file}: cannot open a disk's file: {error.strerror}") from error
        return cls._over(path, backing, file.parent)

    @classmethod
    def _over(cls, path: str, backing: int, folder: Path) -> Self:
        try:
            device, minor = _attach_free(backing)
        except OSError as error:
            raise _no_device(path, folder, error) from error
        finally:
            os.close(backing)
        direct = Path(f"/sys/block/loop{minor}/loop/dio").read_text().strip() == "1"
        return cls(path, minor, device, direct)

    def again(self) -> Self:
        """The same device with a descriptor of its own, which keeps it attached."""
        descriptor = os.open(f"/dev/loop{self.minor}", os.O_RDWR | os.O_CLOEXEC)
        return replace(self, descriptor=descriptor)

    @property
    def number(self) -> str:
        """`major:minor`, as cgroups name devices."""
        return f"{self.major}:{self.minor}"

    def close(self) -> None:
        """Close this process's descriptor; the device stays while the host holds its own."""
        os.close(self.descriptor)


def _no_device(path: str, folder: Path, error: OSError) -> MissingPrerequisite:
    used = sum(1 for _ in Path("/sys/block").glob("loop*/loop"))
    missing = {errno.ENOENT, errno.ENODEV, errno.ENXIO}
    if error.filename == "/dev/loop-control" and error.errno in missing:
        advice = "Load the loop module (modprobe loop); a container needs loop-control in its /dev."
    elif error.errno in {errno.EPERM, errno.EACCES}:
        advice = "This machine refuses them here: a container needs permission for loop devices."
    elif error.errno in {errno.EFBIG, errno.ENOSPC} and used < FEWEST_DEVICES:
        advice = (
            f"Free some space in {folder}, or set WEIGHBRIDGE_HOME to a folder whose file system "
            "takes files of that size."
        )
    else:
        advice = (
            f"{used} are in use on this machine: `losetup --list` shows their files, `weighbridge "
            "down --all` frees those of deployments that were left. A kernel parameter max_loop "
            "limits how many there can be."
        )
    return MissingPrerequisite(f"no loop device for {path}: {error.strerror}", advice=advice)


def _attach_free(backing: int) -> tuple[int, int]:
    """A free loop device of `backing`: descriptor and number; direct I/O where it can be."""
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
        if not node.exists():  # /dev is not managed by the kernel
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
    raise OSError(errno.EBUSY, f"other programs took {ATTEMPTS} free loop devices in a row")


def attached(minor: int) -> bool:
    """Whether a loop device has a file."""
    return Path(f"/sys/block/loop{minor}/loop").is_dir()
