from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge.common.errors import MissingPrerequisite, TargetError
from weighbridge.topologies.lab import disk
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.model_disks import ModelDisks


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


Running = Callable[[str], ModelDisks]

# In place of the program: each order is answered by the same line.
SAYS = "import sys\nfor _ in sys.stdin: print(sys.argv[1], flush=True)"
DISK = '"name": "a", "writes": 3, "flushes": 1, "unflushed_blocks": 2'


@pytest.fixture
def saying(tmp_path: Path) -> Iterator[Running]:
    started: list[ModelDisks] = []
    log = tmp_path / "log"
    log.touch()

    def start(line: str) -> ModelDisks:
        argv = [sys.executable, "-c", SAYS, line]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(ModelDisks(process, tmp_path, log))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_a_mark_says_what_each_disk_was_given(saying: Running) -> None:
    mark = saying(f'{{"marked": {{"number": 4, "disks": [{{{DISK}}}]}}}}').mark()
    assert mark.number == 4
    (disk,) = mark.disks
    assert (disk.name, disk.writes, disk.flushes, disk.unflushed_blocks) == ("a", 3, 1, 2)


def test_restored_disks_say_what_was_kept(saying: Running) -> None:
    line = f'{{"restored": {{"disks": [{{{DISK}, "kept_blocks": 1}}]}}}}'
    (disk,) = saying(line).restore(4, keep=0.5, seed=1)
    assert (disk.unflushed_blocks, disk.kept_blocks) == (2, 1)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"error": "2 descriptors of disks are open"}', "2 descriptors of disks are open"),
        (f'{{"restored": {{"disks": [{{{DISK}}}]}}}}', "an unknown answer: .*kept_blocks"),
        ('{"restored": {"disks": [{}]}}', "an unknown answer"),
        ('{"cut": true}', "{'cut': True}"),
    ],
)
def test_an_answer_that_is_not_of_the_order_is_an_error(
    saying: Running, line: str, match: str
) -> None:
    with pytest.raises(TargetError, match=f"(?s)vdisk: {match}"):
        saying(line).restore(1, keep=0, seed=0)
