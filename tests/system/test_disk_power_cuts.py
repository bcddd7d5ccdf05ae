"""Power cuts of disks: what is flushed is there afterwards, and what is not is left to chance."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from small_lab import labelled, within
from weighbridge.common.errors import TargetError
from weighbridge.topologies.disk_models import DISK_MODELS
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.disk import LoopDisk, attached
from weighbridge.topologies.lab.model_disks import ModelDisks, WantedDisk, end, group_of

pytestmark = pytest.mark.system

BLOCK = 4096
SIZE = 512 * 2**20
NAMES = ("first", "second")
BLOCKS = 1000
SEED = 2014

# Mounts the disk, writes files, one more for each line it is sent, and says so when each is synced.
WRITE_FILES = """
import os, subprocess, sys
disk, folder = sys.argv[1:]
subprocess.run(["mount", disk, folder], check=True)
os.chdir(folder)
for number, _ in enumerate(sys.stdin):
    for name in (f"synced-{number}", f"sloppy-{number}"):
        file = os.open(name, os.O_WRONLY | os.O_CREAT)
        os.write(file, bytes([number + 1]) * (number * 30_011 + 1))
        if name.startswith("synced"):
            os.fsync(file)
    print("synced", flush=True)
"""
# Mounts it and says which synced files are complete, and whether one of a second life is there;
# then makes such a file, unless it fails.
CHECK_FILES = """
import os, pathlib, subprocess, sys
disk, folder = sys.argv[1:]
subprocess.run(["mount", disk, folder], check=True)
files = pathlib.Path(folder)
for number in range(100):
    file = files / f"synced-{number}"
    if file.exists() and file.read_bytes() == bytes([number + 1]) * (number * 30_011 + 1):
        print(number)
if (files / "second-life").exists():
    print("second-life")
with (files / "second-life").open("wb") as file:
    file.write(b"x" * 10_000_000)
    os.fsync(file.fileno())
subprocess.run(["umount", folder], check=True)
"""
PRIVATE = ("unshare", "--mount", "--propagation", "private", sys.executable, "-c")


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[ModelDisks]:
    label = labelled("cut")
    folder = tmp_path / "disks"
    lock = os.open(tmp_path / "lock", os.O_CREAT)
    wanted = [WantedDisk(name, folder / name, SIZE, DISK_MODELS["ideal"]) for name in NAMES]
    try:
        running = ModelDisks.start(
            label,
            wanted,
            cgroups=Cgroups(),
            folder=folder,
            log=tmp_path / "log",
            lock=lock,
            journal=True,
        )
    finally:
        os.close(lock)
    yield running
    end([running.pid])
    try:
        assert within(20, lambda: not running.is_up()), "a disk was left open"
    finally:
        running.kill()
        Cgroups().remove(group_of(label))
        Cgroups().remove(f"/weighbridge/{label}")
    assert [one.name for one in folder.iterdir()] == ["mount"]
    assert str(folder) not in Path("/proc/self/mountinfo").read_text()


@contextmanager
def device(disks: ModelDisks, name: str) -> Iterator[str]:
    loop = LoopDisk.over("/dev/wb0", disks.path(name))
    try:
        yield f"/dev/loop{loop.minor}"
    finally:
        loop.close()
        assert within(20, lambda: not attached(loop.minor))


@contextmanager
def both(disks: ModelDisks) -> Iterator[tuple[int, int]]:
    with (
        device(disks, NAMES[0]) as one,
        device(disks, NAMES[1]) as other,
        opened(one) as first,
        opened(other) as second,
    ):
        yield first, second


@contextmanager
def opened(path: str, flags: int = os.O_DIRECT) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def page(number: int) -> mmap.mmap:
    """A block of a number, in memory that direct I/O takes."""
    block = mmap.mmap(-1, BLOCK)
    block.write(number.to_bytes(8, "little") * (BLOCK // 8))
    return block


def number_at(descriptor: int, block: int) -> int:
    """The number of which a block consists."""
    read = mmap.mmap(-1, BLOCK)
    os.preadv(descriptor, [read], block * BLOCK)
    number = read[:8]
    assert read[:] == number * (BLOCK // 8), "a torn block"
    return int.from_bytes(number, "little")


def places(seed: int) -> list[int]:
    """Blocks of the first half of a disk."""
    return random.Random(seed).sample(range(SIZE // BLOCK // 2), BLOCKS)


def there(disks: ModelDisks, wanted: list[int]) -> int:
    with device(disks, NAMES[0]) as path, opened(path) as disk:
        return sum(number_at(disk, block) for block in wanted)


def test_direct_writes_survive_by_chance_until_they_are_flushed(disks: ModelDisks) -> None:
    wanted, one = places(SEED), page(1)
    with device(disks, NAMES[0]) as path, opened(path) as disk:
        disks.record()
        for block in wanted:
            os.pwritev(disk, [one], block * BLOCK)
        (written, _) = disks.mark().disks
        os.fdatasync(disk)
        (flushed, other) = disks.mark().disks
        disks.cut()
        with pytest.raises(OSError, match="Input/output error"):
            os.pwritev(disk, [one], 0)
        with pytest.raises(TargetError, match="descriptors of disks are open"):
            disks.restore(1, keep=0, seed=SEED)
    assert (written.unflushed_blocks, flushed.unflushed_blocks) == (BLOCKS, 0)
    assert flushed.flushes > written.flushes == 0
    assert written.writes == flushed.writes == BLOCKS
    assert (other.name, other.writes) == (NAMES[1], 0)
    for keep in (0.0, 0.5, 1.0):
        (restored, _) = disks.restore(1, keep=keep, seed=SEED)
        assert restored.unflushed_blocks == BLOCKS
        assert abs(restored.kept_blocks - keep * BLOCKS) < 80 * (keep % 1 > 0) + 1
        assert there(disks, wanted) == restored.kept_blocks
        (restored, _) = disks.restore(2, keep=keep, seed=SEED)
        assert restored.kept_blocks == 0
        assert there(disks, wanted) == BLOCKS


def test_buffered_writes_are_there_after_a_sync(disks: ModelDisks) -> None:
    wanted, one = places(SEED), page(1)
    with device(disks, NAMES[0]) as path, opened(path, flags=0) as disk:
        disks.record()
        for block in wanted:
            os.pwrite(disk, one, block * BLOCK)
        os.fdatasync(disk)
        assert disks.mark().disks[0].flushes > 0
        disks.cut()
    disks.restore(1, keep=0, seed=SEED)
    assert there(disks, wanted) == BLOCKS


def test_what_was_synced_is_lost_from_disks_that_ignore_flushes(disks: ModelDisks) -> None:
    wanted, one = places(SEED), page(1)
    with device(disks, NAMES[0]) as path, opened(path, flags=os.O_DSYNC) as disk:
        disks.record(flushes=False)
        for block in wanted[1:]:
            os.pwrite(disk, one, block * BLOCK)
        os.fsync(disk)
        (marked, _) = disks.mark().disks
        disks.cut()
    assert marked.flushes > 0
    assert marked.unflushed_blocks == BLOCKS - 1
    for keep, kept in ((0.0, 0), (1.0, BLOCKS - 1)):
        disks.restore(1, keep=keep, seed=SEED)
        assert there(disks, wanted) == kept


def test_a_mark_is_one_instant_on_all_disks_of_a_load_that_goes_on(disks: ModelDisks) -> None:
    """A number goes to one disk, and when it is synced there, to the other."""
    done, stop = [0, 0], threading.Event()

    def load(descriptors: tuple[int, int]) -> None:
        for number in count(1):
            if stop.is_set():
                return
            for index, descriptor in enumerate(descriptors):
                os.pwritev(descriptor, [page(number)], 0)
                os.fdatasync(descriptor)
                done[index] = number

    def goes_on(goal: int) -> bool:
        return within(20, lambda: done[1] >= goal)

    least, most = [], []
    with both(disks) as descriptors:
        disks.record()
        writer = threading.Thread(target=load, args=(descriptors,))
        writer.start()
        try:
            for number in range(1, 31):
                assert goes_on(done[1] + 5)
                least.append(done[1])
                assert disks.mark().number == number
                most.append(done[0] + 1)
        finally:
            stop.set()
            writer.join()
        disks.cut()
    for number, (low, high) in enumerate(zip(least, most, strict=True), start=1):
        disks.restore(number, keep=number % 2, seed=number)
        with both(disks) as (first, second):
            found = number_at(first, 0), number_at(second, 0)
            os.pwritev(first, [page(10**9)], 0)  # a second life, gone at the next restore
            os.fdatasync(first)
        assert low <= found[1] <= found[0] <= high
        assert found[0] - found[1] <= 1


def test_a_file_system_mounts_after_each_cut_with_every_synced_file(
    disks: ModelDisks, tmp_path: Path
) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    with device(disks, NAMES[1]) as path:
        subprocess.run(["mkfs.xfs", "-q", path], check=True)
        disks.record()
        with subprocess.Popen(
            [*PRIVATE, WRITE_FILES, path, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            try:
                for _ in range(12):
                    writer.stdin.write(b"\n")
                    writer.stdin.flush()
                    assert writer.stdout.readline() == b"synced\n"
                    disks.mark()
                disks.cut()
            finally:
                writer.kill()
    for number in range(1, 13):
        disks.restore(number, keep=(0, 0.5, 1)[number % 3], seed=number)
        with device(disks, NAMES[1]) as path:
            checked = subprocess.run(
                [*PRIVATE, CHECK_FILES, path, str(folder)],
                check=True,
                capture_output=True,
                text=True,
            )
        complete = [str(one) for one in range(number)]
        assert checked.stdout.split()[:number] == complete
        assert "second-life" not in checked.stdout


def test_orders_of_power_cuts_are_refused_out_of_turn(disks: ModelDisks) -> None:
    with pytest.raises(TargetError, match="a mark is for disks that are being recorded"):
        disks.mark()
    with pytest.raises(TargetError, match="disks with a journal take no time"):
        disks.pace(on=True)
    disks.pace(on=False)
    disks.record()
    with pytest.raises(TargetError, match="recorded already"):
        disks.record()
    disks.cut()
    with pytest.raises(TargetError, match="there is no mark 1, but 1 to 0"):
        disks.restore(1, keep=0.5, seed=SEED)
