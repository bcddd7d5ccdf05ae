from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from weighbridge.common.errors import MissingPrerequisite
from weighbridge.topologies.lab import disk
from weighbridge.topologies.lab.disk import LoopDisk


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    ("number", "filename", "advice"),
    [
        (errno.ENOENT, "/dev/loop-control", "modprobe loop"),
        (errno.EPERM, None, "a container needs permission"),
        (errno.EBUSY, None, "`losetup --list` shows their files, `weighbridge down --all` frees"),
        (errno.ENODEV, None, "max_loop"),
        (errno.ENOSPC, None, "Free some space in"),
    ],
)
def test_missing_loop_devices_are_reported_with_advice_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, filename: str | None, advice: str
) -> None:
    def refuse(_backing: int) -> tuple[int, int]:
        raise OSError(number, os.strerror(number), *([filename] if filename else []))

    monkeypatch.setattr(disk, "_attach_free", refuse)
    monkeypatch.setattr(disk, "FEWEST_DEVICES", 10**6)
    before = open_descriptors()
    with pytest.raises(
        MissingPrerequisite, match=f"no loop device for /dev/wb0: {os.strerror(number)}"
    ) as refused:
        LoopDisk.attach("/dev/wb0", 4096, tmp_path)
    assert advice in refused.value.advice
    assert list(tmp_path.iterdir()) == []
    assert open_descriptors() == before


def test_loop_devices_that_others_keep_taking_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def ioctl(_descriptor: int, request: int, *_: bytes) -> int:
        asked.append(request)
        if request == disk.LOOP_CONFIGURE:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        return 0

    real = os.open
    monkeypatch.setattr(
        disk.os,
        "open",
        lambda path, flags, *more: real(
            "/dev/null" if str(path).startswith("/dev/loop") else path, flags, *more
        ),
    )
    monkeypatch.setattr(disk.os, "mknod", lambda *_: None)
    monkeypatch.setattr(disk.fcntl, "ioctl", ioctl)
    before = open_descriptors()
    with pytest.raises(
        MissingPrerequisite, match=f"other programs took {disk.ATTEMPTS} free loop devices in a row"
    ):
        LoopDisk.attach("/dev/wb0", 4096, tmp_path)
    assert asked.count(disk.LOOP_CONFIGURE) == disk.ATTEMPTS
    assert open_descriptors() == before
