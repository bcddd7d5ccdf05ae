from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import MissingPrerequisite, TargetError
from weighbridge.topologies.disk_models import (
    DISK_MODELS,
    DiskLoad,
    FlashDisk,
    SpinningDisk,
    expected_per_s,
    simulate,
)
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec
from weighbridge.topologies.lab import disk
from weighbridge.topologies.lab import requirements as lab
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.model_disks import ModelDisks
from weighbridge.topologies.lab.requirements import HostRequirement, exhausted, lab_requirements
from weighbridge.topologies.loader import load_hardware


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
    why = f"no loop device for /dev/wb0: {os.strerror(number)}"
    with pytest.raises(MissingPrerequisite, match=why) as refused:
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

    def opened(path: str | Path, flags: int, *more: int) -> int:
        return real("/dev/null" if str(path).startswith("/dev/loop") else path, flags, *more)

    monkeypatch.setattr(disk.os, "open", opened)
    monkeypatch.setattr(disk.os, "mknod", lambda *_: None)
    monkeypatch.setattr(disk.fcntl, "ioctl", ioctl)
    before = open_descriptors()
    why = f"other programs took {disk.ATTEMPTS} free loop devices in a row"
    with pytest.raises(MissingPrerequisite, match=why):
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


def test_a_mark_says_what_each_disk_was_given_and_a_restored_one_what_was_kept(
    saying: Running,
) -> None:
    mark = saying(f'{{"marked": {{"number": 4, "disks": [{{{DISK}}}]}}}}').mark()
    (disk,) = mark.disks
    assert (mark.number, disk.name, disk.writes, disk.flushes) == (4, "a", 3, 1)
    line = f'{{"restored": {{"disks": [{{{DISK}, "kept_blocks": 1}}]}}}}'
    (again,) = saying(line).restore(4, keep=0.5, seed=1)
    assert (disk.unflushed_blocks, again.unflushed_blocks, again.kept_blocks) == (2, 2, 1)


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


GIB = 2**30


def written(tmp_path: Path, disk: str, kind: str = "lab") -> Path:
    path = tmp_path / "hosts.yaml"
    path.write_text(f"name: mine\nkind: {kind}\nhosts:\n  client-1: {{disks: [{disk}]}}\n")
    return path


def test_a_model_is_a_name_or_a_base_with_figures_that_differ(tmp_path: Path) -> None:
    plain = load_hardware(written(tmp_path, "{size: 1GiB, model: spinning-7200}"))
    assert plain.hosts["client-1"].disks[0].model == DISK_MODELS["spinning-7200"]
    text = "{size: 1GiB, model: {base: sata-ssd, read_latency: 0.2ms, write_cache: 1MiB}}"
    model = load_hardware(written(tmp_path, text)).hosts["client-1"].disks[0].model
    assert isinstance(model, FlashDisk)
    assert (model.read_latency, model.write_cache) == (0.0002, 2**20)
    assert model.channels == DISK_MODELS["sata-ssd"].model_dump()["channels"]


@pytest.mark.parametrize(
    ("disk", "says"),
    [
        ("{size: 1GiB, model: spining-7200}", "did you mean 'spinning-7200'"),
        ("{size: 1GiB, model: {rpm: 5400}}", "a model needs its base"),
        ("{size: 1GiB, model: {base: nvme, rpm: 5400}}", "unknown key 'rpm'"),
        ("{size: 1GiB, model: {base: spinning-7200, rpm: 1}}", "rpm"),
        ("{size: 1GiB, model: {base: spinning-7200, seek_avg: 99ms}}", "must not decrease"),
        ("{size: 1GiB, model: {base: spinning-7200, transfer_rate: 50MB}}", "outer tracks"),
        ("{size: 1GiB, model: {base: nvme, write_cache: 5GiB}}", "write_cache"),
        ("{size: 1GiB, model: nvme, iops: 100}", "leave this out"),
        ("{size: 1GiB, model: nvme, bandwidth: 1MB}", "leave this out"),
        ("{size: 1GiB, model: 7}", "model"),
    ],
)
def test_a_wrong_model_is_refused_at_its_line(tmp_path: Path, disk: str, says: str) -> None:
    with pytest.raises(DocumentError) as refused:
        load_hardware(written(tmp_path, disk))
    assert says in str(refused.value)
    assert "hosts.yaml:4:" in str(refused.value)


@pytest.mark.parametrize("kind", ["ssh", "fake"])
def test_only_the_labs_disks_have_models(tmp_path: Path, kind: str) -> None:
    with pytest.raises(DocumentError, match="only for lab hosts"):
        load_hardware(written(tmp_path, "{size: 1GiB, model: nvme}", kind))


def load(**given: object) -> DiskLoad:
    asked = {"write": False, "random": True, "bytes": 4096, "depth": 1, "span": 8 * GIB}
    return DiskLoad.model_validate({**asked, **given})


def test_random_reads_of_a_spinning_disk_take_command_seek_and_half_a_turn() -> None:
    model = DISK_MODELS["spinning-7200"]
    assert isinstance(model, SpinningDisk)
    found = simulate(model, 8 * GIB, load(seconds=300))
    assert found is not None
    expected_s = model.command + model.seek_avg + 30 / model.rpm
    assert found.mean_s == pytest.approx(expected_s, rel=0.02)
    again = simulate(model, 8 * GIB, load(seconds=300))
    assert again == found


def test_a_deep_queue_is_served_by_the_shortest_way() -> None:
    model = DISK_MODELS["spinning-7200"]
    rates = [expected_per_s(model, 8 * GIB, load(depth=depth, seconds=60)) for depth in (1, 32)]
    assert rates[0] is not None
    assert rates[1] is not None
    assert rates[1] > 2 * rates[0]


@pytest.mark.parametrize(
    ("name", "write", "random", "request_bytes", "depth", "per_s"),
    [
        # The data sheets' own figures: see `disk_models`.
        ("sata-ssd", False, True, 4096, 32, 75_000),
        ("sata-ssd", True, True, 4096, 32, 11_000),
        ("sata-ssd", False, False, 2**20, 32, 500e6 / 2**20),
        ("sata-ssd", True, False, 2**20, 32, 410e6 / 2**20),
        ("nvme", False, True, 4096, 128, 490_000),
        ("nvme", True, True, 4096, 32, 38_000),
        ("nvme", False, False, 2**20, 32, 3200e6 / 2**20),
        ("nvme", True, False, 2**20, 32, 1050e6 / 2**20),
    ],
)
def test_flash_does_what_its_data_sheet_says(
    name: str, *, write: bool, random: bool, request_bytes: int, depth: int, per_s: float
) -> None:
    asked = load(write=write, random=random, bytes=request_bytes, depth=depth)
    found = simulate(
        DISK_MODELS[name], 8 * GIB, asked.model_copy(update={"seconds": 0.5, "warmup": 1.0})
    )
    assert found is not None
    assert found.per_s == pytest.approx(per_s, rel=0.05)


def test_nothing_is_expected_where_the_machine_decides() -> None:
    assert expected_per_s(DISK_MODELS["sata-ssd"], 8 * GIB, load(depth=16, seconds=0.2)) is None
    assert expected_per_s(DISK_MODELS["ideal"], 8 * GIB, load(seconds=0.2)) is None


@pytest.mark.parametrize("name", ["ideal", "nvme"])
def test_a_write_that_hardly_takes_time_is_soon_known_not_to_be_limited(name: str) -> None:
    """Also while the time before the figures does not pass at all."""
    model = DISK_MODELS[name]
    assert expected_per_s(model, 8 * GIB, load(write=True, random=True, depth=16)) is None


SMALL = Hardware(
    name="small",
    kind="lab",
    hosts={"client-1": HostSpec(memory=2**26), "store-1": HostSpec(disks=(Disk(size=2**30),))},
)
VAST = Hardware(name="vast", kind="lab", hosts={"client-1": HostSpec(memory=2**42)})


def named(found: tuple[HostRequirement, ...], part: str) -> HostRequirement:
    return next(one for one in found if part in one.name)


def test_a_missing_tool_is_named_with_its_package_and_each_requirement_says_why_and_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runc").write_text("#!/bin/sh\n")
    (tmp_path / "runc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    # Disk space is checked where the folder will be.
    found = lab_requirements(SMALL, home=tmp_path / "not/there/yet")
    assert named(found, "runc").found
    missing = named(found, "tc")
    assert (missing.found, missing.remedy) == (False, "apt install iproute2")
    assert str(tmp_path) in named(found, "of disk").name
    assert [one for one in found if not (one.name and one.why and one.remedy)] == []


@pytest.mark.parametrize(
    ("place", "answer", "part", "is_found"),
    [
        ("os.geteuid", 0, "root", True),
        ("os.geteuid", 1000, "root", False),
        ("weighbridge.topologies.on_host.machine.file_system", "overlay", "file system", False),
        ("weighbridge.topologies.on_host.machine.file_system", "ext4", "file system", True),
    ],
)
def test_what_this_machine_is_decides(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    answer: object,
    part: str,
    *,
    is_found: bool,
) -> None:
    monkeypatch.setattr(place, lambda *_: answer)
    assert named(lab_requirements(SMALL, home=tmp_path), part).found is is_found


def test_hardware_needs_its_memory_and_loop_devices_only_for_disks(tmp_path: Path) -> None:
    small, vast = (lab_requirements(one, home=tmp_path) for one in (SMALL, VAST))
    assert not named(vast, "4096.0 GiB of memory").found
    assert named(small, "of memory").found
    assert any(one.name == "loop devices" for one in small)
    assert not any(one.name == "loop devices" for one in vast)
    for part in ("netem", "CPUs", "cpuset"):
        assert not any(part in one.name for one in small)


@pytest.mark.parametrize("known", [True, False])
def test_a_delay_needs_a_kernel_with_netem_which_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    far = Hardware.model_validate(
        {"name": "far", "kind": "lab", "hosts": {"client-1": {"nic": {"delay": "200us"}}}}
    )
    monkeypatch.setattr(lab, "can_delay", lambda: known)
    needed = named(lab_requirements(far, home=tmp_path), "netem")
    assert (needed.found, "modprobe sch_netem" in needed.remedy) == (known, True)


@pytest.mark.parametrize(
    ("cpuset", "found"), [("0-1", True), ("3", True), ("1-2", False), ("64", False)]
)
def test_cpus_of_hosts_own_must_be_among_those_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpuset: str, found: bool
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1, 3})
    hosts = {"client-1": HostSpec(cpuset=cpuset)}
    every = lab_requirements(Hardware(name="own", kind="lab", hosts=hosts), home=tmp_path)
    needed = named(every, f"CPUs {cpuset} (")
    assert (needed.found, "0-1,3" in needed.name, "client-1" in needed.why) == (found, True, True)
    named(every, "cpuset")


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        ("unshare: unshare failed: No space left on device", "lsns"),
        (
            "runc run failed: mkdir /sys/fs/cgroup/weighbridge/a/b: No space left on device",
            "cgroup.max.descendants",
        ),
        ("runc run failed: fork/exec /proc/self/exe: cannot allocate memory", "ran out of memory"),
        ("mount: /x: No such file or directory", ""),
    ],
)
def test_an_exhausted_resource_is_reported_with_advice(output: str, advice: str) -> None:
    assert advice in exhausted(output)
    assert bool(exhausted(output)) == bool(advice)


def test_the_kernels_message_about_exhausted_namespaces_is_recognised() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to set limits in a user namespace")
    script = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec unshare --mount true"
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"LC_ALL": "C"},
    )
    assert done.returncode != 0
    assert "lsns" in exhausted(done.stderr)


def test_a_container_with_processes_in_its_root_cgroup_is_told_to_move_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hands_on(*, found: bool) -> list[HostRequirement]:
        monkeypatch.setattr(Cgroups, "hands_on", lambda _: found)
        return [one for one in lab_requirements(SMALL, home=tmp_path) if "hands on" in one.name]

    assert hands_on(found=True) == []
    (missing,) = hands_on(found=False)
    assert not missing.found
    assert "mkdir /sys/fs/cgroup/init" in missing.remedy
