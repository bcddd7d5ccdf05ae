"""Power cuts of disks: what is flushed is there afterwards, and what is not is left to chance."""

from __future__ import annotations

import mmap
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import pytest

from small_lab import PYTHON, labelled, raised, within
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    ServiceFailed,
    TargetError,
    UsageError,
)
from weighbridge.common.host import Host, ModelDiskCounters
from weighbridge.environment import place
from weighbridge.topologies.disk_models import DISK_MODELS
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.lab import LabHosts, ending, model_disks
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
    read = mmap.mmap(-1, BLOCK)
    os.preadv(descriptor, [read], block * BLOCK)
    number = read[:8]
    assert read[:] == number * (BLOCK // 8), "a torn block"
    return int.from_bytes(number, "little")


def places(seed: int) -> list[int]:
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


HARDWARE = Hardware.model_validate(
    {
        "name": "models",
        "kind": "lab",
        "hosts": {
            "client-1": {},
            "store-1": {
                "disks": [
                    {"size": "1GiB", "model": "spinning-7200"},
                    {"size": "512MiB"},
                    {"size": "1GiB", "model": {"base": "sata-ssd", "seed": 7}},
                ]
            },
        },
    }
)
DISKS: tuple[Limited, ...] = ("disk",)
READS = 30
# A turn takes 8.3 ms, and a seek over a part of 1 GiB at least 0.8 ms.
READ_AT_RANDOM = f"""
import mmap, os, random, sys
disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
chance = random.Random(1)
for _ in range({READS}):
    os.preadv(disk, [page], chance.randrange(2**18) * 4096)
"""
WRITE_ALL = """
import os, sys
disk = os.open(sys.argv[1], os.O_RDWR)
for number in range(40):
    os.pwrite(disk, bytes([number]) * 5000, number * 7777)
os.fsync(disk)
"""
CHECK_ALL = """
import os, sys
disk = os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(disk, 0, 0, os.POSIX_FADV_DONTNEED)
for number in range(40):
    assert os.pread(disk, 5000, number * 7777) == bytes([number]) * 5000, number
"""


def started(folder: Path, state: Path, label: str) -> LabHosts:
    return raised(label, folder, state, hardware=HARDWARE)


@pytest.fixture
def label() -> str:
    return labelled("model")


@pytest.fixture
def folder(tmp_path: Path, label: str) -> Path:
    return tmp_path / label


@pytest.fixture
def hosts(folder: Path, label: str) -> Iterator[LabHosts]:
    with started(folder, place().state, label) as running:
        yield running


def said(store: Host, index: int) -> ModelDiskCounters:
    disks = store.counters().disks
    assert disks is not None
    model = disks[index].model
    assert model is not None
    return model


def model_disks_attached(label: str) -> list[str]:
    found = []
    for one in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # another test's, detached meanwhile
            found.append(one.read_text())
    return [text for text in found if label in text]


def assert_nothing_is_left(label: str, folder: Path) -> None:
    group = f"/weighbridge/{label}"
    assert within(20, lambda: not Cgroups().pids(group) and not model_disks_attached(label))
    assert Cgroups().folders(group) == ()
    assert not (folder / "bundles").exists()
    assert label not in Path("/proc/self/mountinfo").read_text()


def test_a_disk_that_fails_answers_nothing_and_then_has_what_it_had_while_others_go_on(
    hosts: LabHosts,
) -> None:
    store = hosts.hosts["store-1"]
    first, plain, last = store.disks
    for disk in (first, last):
        store.run([PYTHON, "-c", WRITE_ALL, disk])
    hosts.fail_disk("store-1", first, on=True)
    direct = ("dd", "bs=4096", "count=1")
    for failing in (
        (f"if={first}", "iflag=direct", "of=/dev/null"),
        ("if=/dev/zero", f"of={first}", "oflag=direct"),
    ):
        with pytest.raises(CommandFailed, match="Input/output error"):
            store.run([*direct, *failing])
    store.run([PYTHON, "-c", CHECK_ALL, last])
    hosts.fail_disk("store-1", first, on=False)
    store.run([*direct, f"if={first}", "iflag=direct", "of=/dev/null"])
    store.run([PYTHON, "-c", CHECK_ALL, first])
    with pytest.raises(UsageError, match="/dev/wb1 has no model, and only such a disk can fail"):
        hosts.fail_disk("store-1", plain, on=True)


def test_written_data_are_read_back_with_and_without_the_models_time(hosts: LabHosts) -> None:
    store = hosts.hosts["store-1"]
    for index in (0, 2):
        hosts.limit(DISKS)
        store.run([PYTHON, "-c", WRITE_ALL, f"/dev/wb{index}"])
        counted = said(store, index)
        assert counted.flushes > 0
        assert counted.destaged_bytes >= 40 * 5000
        assert counted.cached_bytes == 0
        store.drop_kernel_caches()
        store.run([PYTHON, "-c", CHECK_ALL, f"/dev/wb{index}"])
        hosts.unlimit(DISKS)
        store.drop_kernel_caches()
        store.run([PYTHON, "-c", CHECK_ALL, f"/dev/wb{index}"])


def test_a_file_system_survives_a_new_mount(hosts: LabHosts) -> None:
    store = hosts.hosts["store-1"]
    hosts.limit(DISKS)
    store.run(["mkfs.xfs", "-q", "/dev/wb2"], timeout_s=300)
    mount = "mkdir -p /run/x && mount /dev/wb2 /run/x"
    fill = "head -c 3000000 /dev/urandom >/run/x/a; sha1sum /run/x/a >/run/sum"
    for script in (fill, "sha1sum --check /run/sum"):
        store.run(["sh", "-ec", f"{mount}; {script}; umount /run/x"], timeout_s=300)


def test_a_spinning_disk_takes_its_time_and_both_witnesses_count_the_same(hosts: LabHosts) -> None:
    store = hosts.hosts["store-1"]
    hosts.limit(DISKS)
    before, kernel_before = said(store, 0), store.counters().disks
    store.run([PYTHON, "-c", READ_AT_RANDOM, "/dev/wb0"], timeout_s=300)
    after, kernel = said(store, 0), store.counters().disks
    assert kernel is not None
    assert kernel_before is not None
    assert after.reads - before.reads == READS
    assert kernel[0].reads - kernel_before[0].reads == READS
    assert after.read_bytes - before.read_bytes == READS * 4096
    # By the model's own account: never faster than the mechanics, and slower by the machine only.
    waited_s = after.waited_s - before.waited_s
    assert waited_s / READS > 0.004
    assert (waited_s - (after.late_s - before.late_s)) / READS < 0.025
    assert 0 < after.busy_s - before.busy_s <= waited_s + READS * 50e-6
    assert kernel[1].model is None


def test_the_facts_say_the_model_and_its_figures(hosts: LabHosts) -> None:
    facts = hosts.facts()
    assert facts["disk model store-1/dev/wb0"].startswith("spinning-7200 (")
    assert "seed 7" in facts["disk model store-1/dev/wb2"]
    assert facts["disks without limits"].startswith("store-1:")


def test_nothing_is_left_when_hosts_close(label: str, folder: Path) -> None:
    with started(folder, place().state, label) as hosts:
        hosts.limit(DISKS)
        # Dirty pages of more than the disk could take within the time of a teardown.
        write = "import os; d = os.open('/dev/wb0', os.O_RDWR)\nfor n in range(400): "
        write += "os.pwrite(d, b'x' * 4096, n * 2_500_000 // 4096 * 4096)"
        hosts.hosts["store-1"].run([PYTHON, "-c", write], timeout_s=300)
        assert len(model_disks_attached(label)) == 3
    assert_nothing_is_left(label, folder)


@pytest.mark.parametrize("loaded", [True, pytest.param(False, marks=pytest.mark.test_all)])
def test_nothing_is_left_of_a_killed_conductor_after_down(
    label: str, folder: Path, *, loaded: bool
) -> None:
    """The conductor is a process of its own, killed with its hosts running."""
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_disk_power_cuts import started, place\n"
        f"hosts = started(Path({str(folder)!r}), place().state, {label!r})\n"
        "hosts.limit(('disk',))\n"
        f"if {loaded}:\n"
        "    from weighbridge.common.host import Service\n"
        "    dd = ('dd', 'if=/dev/zero', 'of=/dev/wb0', 'oflag=direct', 'bs=4096', 'seek=90000')\n"
        "    hosts.hosts['store-1'].start([Service('dd', dd)])\n"
        "print('up', flush=True)\ntime.sleep(600)\n"
    )
    conductor = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert conductor.stdout is not None
    try:
        assert conductor.stdout.readline() == b"up\n"
    finally:
        conductor.kill()
        conductor.wait()
        conductor.stdout.close()
    (pid,) = Cgroups().pids(model_disks.group_of(label))
    assert Path(f"/proc/{pid}").exists()
    found = ending.remove_leftovers(label, state=place().state)
    assert {one.kind for one in found} >= {"container", "cgroup", "disk", "claim"}
    assert_nothing_is_left(label, folder)


def test_a_killed_program_makes_io_errors_and_a_failed_check_and_no_hang(
    label: str, folder: Path
) -> None:
    with started(folder, place().state, label) as hosts:
        hosts.check()
        store = hosts.hosts["store-1"]
        (pid,) = Cgroups().pids(model_disks.group_of(label))
        hosts.limit(DISKS)
        read = ["dd", "if=/dev/wb0", "of=/dev/null", "bs=4096", "iflag=direct"]
        program = store.spawn(read, stderr=folder / "dd.err")
        assert within(30, lambda: said(store, 0).reads > 20)
        os.kill(pid, signal.SIGKILL)
        assert program.wait(60) != 0
        program.__exit__(None, None, None)
        assert "Input/output error" in (folder / "dd.err").read_text()
        with pytest.raises(CommandFailed, match="Input/output error"):
            store.run(read, timeout_s=60)
        with pytest.raises(ServiceFailed, match="the program of the disks has ended"):
            hosts.check()
    assert_nothing_is_left(label, folder)


def test_without_fuse_a_model_is_refused_before_anything_starts(
    label: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_disks, "FUSE", Path("/dev/no-fuse"))
    with pytest.raises(MissingPrerequisite, match="there is no /dev/no-fuse") as refused:
        started(folder, place().state, label)
    assert "`iops` and `bandwidth`" in refused.value.advice
    assert not (folder / "bundles").exists()
    assert not list((place().state / "claims").glob(f"{label}*"))
