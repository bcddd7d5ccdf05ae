"""Disks with a model in the real lab: FUSE below loop devices below hosts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from small_lab import PYTHON, labelled, raised, within
from weighbridge.common.errors import (
    CommandFailed,
    MissingPrerequisite,
    ServiceFailed,
    UsageError,
)
from weighbridge.common.host import Host, ModelDiskCounters
from weighbridge.environment import place
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.lab import LabHosts, ending, model_disks
from weighbridge.topologies.lab.cgroup import Cgroups

pytestmark = pytest.mark.system

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


def attached(label: str) -> list[str]:
    found = []
    for one in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # another test's, detached meanwhile
            found.append(one.read_text())
    return [text for text in found if label in text]


def assert_nothing_is_left(label: str, folder: Path) -> None:
    group = f"/weighbridge/{label}"
    assert within(20, lambda: not Cgroups().pids(group) and not attached(label))
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
        assert len(attached(label)) == 3
    assert_nothing_is_left(label, folder)


@pytest.mark.parametrize("loaded", [True, pytest.param(False, marks=pytest.mark.test_all)])
def test_nothing_is_left_of_a_killed_conductor_after_down(
    label: str, folder: Path, *, loaded: bool
) -> None:
    """The conductor is a process of its own, killed with its hosts running."""
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_model_disks import started, place\n"
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
