from __future__ import annotations

import errno
import json
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.weighbridge import command_line
from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError, UsageError
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec, Quota, quota_of, slice_words
from weighbridge.topologies.hosts import CONDUCTOR, DeploymentOwner, started_at
from weighbridge.topologies.lab import ending, start_lab
from weighbridge.topologies.lab.cgroup import (
    V1_FILES,
    Cgroups,
    LabMachine,
    Write,
)
from weighbridge.topologies.lab.claim import (
    Claim,
    ClaimedMachine,
    MachineHold,
    MachineInUse,
    claims,
    exclude_conductors,
)
from weighbridge.topologies.lab.ending import disks, tear_down
from weighbridge.topologies.lab.runc import Container, Runc

GROUP = "/weighbridge/d/h"
SPEC = HostSpec(
    cpus=0.5,
    memory=2**28,
    disks=(Disk(size=2**30, bandwidth=10 * 2**20), Disk(size=2**30, iops=200), Disk(size=2**30)),
)
DEVICES = ("7:3", "7:4", "7:5")


@pytest.fixture
def v1(tmp_path: Path) -> Cgroups:
    mount = tmp_path / "v1"
    for name in ("cpu", "cpuacct", "memory", "blkio", "systemd", "unified"):
        (mount / name).mkdir(parents=True)
    (mount / "unified/cgroup.controllers").write_text("")
    return Cgroups(mount)


@pytest.fixture
def v2(tmp_path: Path) -> Cgroups:
    mount = tmp_path / "v2"
    mount.mkdir()
    (mount / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    return Cgroups(mount)


def limits(cgroups: Cgroups, **given: Any) -> list[str]:
    """The lines that are written for the host's limits, each with its file."""
    writes = cgroups.limits(GROUP, given.pop("spec", SPEC), DEVICES, **given)
    lines = [f"{one.path.relative_to(cgroups.mount)} {one.text}" for one in writes]
    return [line.replace("weighbridge/d/h/", "") for line in lines]


CPU_1 = ["cpu/cpu.cfs_quota_us -1", "cpu/cpu.cfs_period_us 10000", "cpu/cpu.cfs_quota_us 5000"]
DISK_1 = [
    f"blkio/blkio.throttle.{way}_{what}_device {line}"
    for what, line in (("bps", "7:3 10485760"), ("iops", "7:4 200"))
    for way in ("read", "write")
]
DISK_2 = ["io.max 7:3 rbps=10485760 wbps=10485760", "io.max 7:4 riops=200 wiops=200"]


@pytest.mark.parametrize(
    ("version", "given", "lines"),
    [
        (1, {}, CPU_1 + DISK_1),
        (2, {}, ["cpu.max 5000 10000", *DISK_2]),
        (1, {"what": {"disk"}}, DISK_1),
        (2, {"what": {"nic"}}, []),
        # The quota goes first: the kernel refuses a period in which it would be too much or little.
        (
            1,
            {"lift": True, "what": {"cpu"}},
            ["cpu/cpu.cfs_quota_us -1", "cpu/cpu.cfs_period_us 100000"],
        ),
        (
            1,
            {"lift": True, "what": {"disk"}},
            [
                line.replace("10485760", "0").replace(" 200", "").replace("7:4", "7:4 0")
                for line in DISK_1
            ],
        ),
        (
            2,
            {"lift": True},
            [
                "cpu.max max 100000",
                "io.max 7:3 rbps=max wbps=max",
                "io.max 7:4 riops=max wiops=max",
            ],
        ),
        (
            1,
            {"what": {"cpu"}, "period_s": 0.02},
            [*CPU_1[:1], "cpu/cpu.cfs_period_us 20000", "cpu/cpu.cfs_quota_us 10000"],
        ),
        (2, {"what": {"cpu"}, "period_s": 0.005}, ["cpu.max 2500 5000"]),
        (1, {"spec": HostSpec(disks=SPEC.disks[2:] * 3)}, []),
        (2, {"spec": HostSpec(disks=SPEC.disks[2:] * 3), "lift": True}, []),
    ],
)
def test_limits_are_written_by_kind_and_lifted(
    v1: Cgroups, v2: Cgroups, version: int, given: dict[str, Any], lines: list[str]
) -> None:
    cgroups = v1 if version == 1 else v2
    assert cgroups.version == version
    assert limits(cgroups, **given) == lines


@pytest.mark.parametrize(
    ("cpus", "period_s", "quota"),
    [
        (0.6, 0.01, Quota(6000, 10_000)),
        (2.0, 0.01, Quota(20_000, 10_000)),
        (0.3, 0.1, Quota(30_000, 100_000)),
        (0.05, 0.01, Quota(1000, 20_000)),
        (0.03, 0.01, Quota(1000, 33_334)),
        (0.001, 0.001, Quota(1000, 1_000_000)),
    ],
)
def test_a_host_with_too_little_cpu_for_the_kernels_least_quota_has_a_longer_period(
    cpus: float, period_s: float, quota: Quota
) -> None:
    assert quota_of(cpus, period_s) == quota
    assert quota.quota_us / quota.period_us == pytest.approx(cpus, rel=1e-3)


def test_the_kernels_slice_is_reported_or_not_known(tmp_path: Path) -> None:
    (tmp_path / "slice").write_text("5000\n")
    assert slice_words(tmp_path / "slice") == "5000 us"
    assert slice_words(tmp_path / "none") == "not reported by this kernel"


def test_write_back_is_limited_in_the_root_of_version_1_only(v1: Cgroups, v2: Cgroups) -> None:
    disk = Disk(size=2**30, bandwidth=1000)
    for way, one in zip(("read", "write"), v1.write_back("7:3", disk), strict=True):
        assert one.path == v1.mount / f"blkio/blkio.throttle.{way}_bps_device"
        assert one.text == "7:3 1000"
    assert v2.write_back("7:3", disk) == []


def test_a_refused_write_names_file_and_text(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"no-such/file: '7:3 1' was refused"):
        Write(path=tmp_path / "no-such/file", text="7:3 1").apply()


def test_only_the_recorded_limit_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "throttle"
    file.write_text("7:3 999\n")
    Write(path=file, text="7:3 100").lift()
    assert file.read_text() == "7:3 999\n"
    Write(path=file, text="7:3 999").lift()
    assert file.read_text() == "7:3 0"
    Write(path=tmp_path / "gone", text="7:3 100").lift()


THROTTLES = {f"blkio/weighbridge/d/h/blkio.throttle.{name}": "" for name in V1_FILES}


@pytest.mark.parametrize(
    ("version", "files", "lines"),
    [
        (
            1,
            {
                **THROTTLES,
                "blkio/weighbridge/d/h/blkio.throttle.write_bps_device": "7:3 10485760\n",
                "cpu/weighbridge/d/h/cpu.cfs_quota_us": "5000\n",
                "cpu/weighbridge/d/h/cpu.cfs_period_us": "10000\n",
                "cpuset/weighbridge/d/h/cpuset.cpus": "2-3\n",
                "memory/weighbridge/d/h/memory.limit_in_bytes": "268435456\n",
            },
            [
                "cpu.cfs_quota_us 5000",
                "cpu.cfs_period_us 10000",
                "memory.limit_in_bytes 268435456",
                "blkio.throttle.write_bps_device /dev/wb0 10485760",
            ],
        ),
        (
            2,
            {
                "weighbridge/d/h/cpu.max": "max 100000\n",
                "weighbridge/d/h/cpuset.cpus": "2-3\n",
                "weighbridge/d/h/io.max": "7:3 rbps=1\n7:9 rbps=2\n",
                "weighbridge/d/h/memory.max": "max\n",
            },
            ["cpu.max max 100000", "memory.max max", "io.max /dev/wb0 rbps=1", "io.max 7:9 rbps=2"],
        ),
    ],
)
def test_limits_are_read_back_with_the_names_of_disks(
    v1: Cgroups, v2: Cgroups, version: int, files: dict[str, str], lines: list[str]
) -> None:
    cgroups = v1 if version == 1 else v2
    with pytest.raises(TargetError, match=r"/weighbridge/d/h: cpu.* cannot be read: No such file"):
        cgroups.read(GROUP, {})
    for path, text in files.items():
        (cgroups.mount / path).parent.mkdir(parents=True, exist_ok=True)
        (cgroups.mount / path).write_text(text)
    names = {"7:3": "/dev/wb0"}
    assert cgroups.read(GROUP, names) == (*lines,)
    assert cgroups.read(GROUP, names, own_cpus=True) == ("cpuset.cpus 2-3", *lines)


def test_a_cgroup_is_removed_in_every_hierarchy_with_those_below_it(v1: Cgroups) -> None:
    for top in ("cpu", "memory", "systemd", "unified"):
        (v1.mount / top / "weighbridge/d/h/inner").mkdir(parents=True)
    (v1.mount / "cpu/weighbridge/other").mkdir()
    busy = v1.mount / "systemd/weighbridge/d"
    (busy / "tasks").write_text("1")  # like a process: the folder is not empty
    assert v1.remove("/weighbridge/d") == (busy,)
    (busy / "tasks").unlink()
    assert v1.remove("/weighbridge/d") == ()
    assert [*v1.mount.glob("*/weighbridge")] == [v1.mount / "cpu/weighbridge"]
    assert v1.remove("/weighbridge/d") == ()


def test_processes_are_found_in_cgroups_below_too(v2: Cgroups) -> None:
    inner = v2.at("memory", GROUP) / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "cgroup.procs").write_text("12\n")
    (inner / "cgroup.procs").write_text("13\n14\n")
    assert sorted(v2.pids(GROUP)) == [12, 13, 14]
    assert v2.pids("/weighbridge/gone") == ()


def test_the_machine_counts_programs_its_kernels_threads_and_this_suites_helpers(
    tmp_path: Path,
) -> None:
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    with pytest.raises(TargetError, match="cannot be read"):
        LabMachine(tmp_path / "none").counters()

    def process(pid: int, name: str, flags: int, ticks: int) -> None:
        (tmp_path / str(pid)).mkdir(exist_ok=True)
        line = f"{pid} ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 {ticks} 0 0 0 20 0 1 0 5 0 0"
        (tmp_path / str(pid) / "stat").write_text(line)

    # Idle time and that of guests, which is part of user, do not count.
    (tmp_path / "stat").write_text("cpu  100 10 50 9999 9999 5 15 7 3 3\ncpu0 1 1 1 1 1 1 1\n")
    process(7, "loop0", 0x00200040, 1000)
    process(8, "kworker (odd) name", 0x00200040, 10)
    process(9, "vdisk (x) y", 0x00400000, 7_000_000)
    machine = LabMachine(tmp_path, helpers=[9])
    first = machine.counters()
    assert first.cpu_s == pytest.approx(180 / ticks_per_s)
    assert first.conductor_cpu_s is not None
    assert 7e6 / ticks_per_s < first.conductor_cpu_s < 7e6 / ticks_per_s + 3600
    # Threads count from when they were first seen, helpers also after their end.
    assert first.kernel_cpu_s == pytest.approx(20 / ticks_per_s)
    process(7, "loop0", 0x00200040, 1030)
    for pid in (8, 9):
        (tmp_path / str(pid) / "stat").unlink()
    last = machine.counters()
    assert last.kernel_cpu_s == pytest.approx(50 / ticks_per_s)
    assert last.conductor_cpu_s is not None
    assert last.conductor_cpu_s >= first.conductor_cpu_s


def test_only_controllers_that_were_not_handed_on_before_are_taken_back_with_the_last_deployment(
    v1: Cgroups, v2: Cgroups
) -> None:
    control = v2.mount / "cgroup.subtree_control"
    control.write_text("memory pids\n")
    before = v2.handed_on()
    assert (before, v1.handed_on()) == ({"memory", "pids"}, None)
    control.write_text("cpu memory pids\n")
    (v2.mount / "weighbridge").mkdir()
    assert v2.handed_on() is None
    v2.take_back(before)
    assert control.read_text() == "cpu memory pids\n"  # another deployment is still there
    (v2.mount / "weighbridge").rmdir()
    v2.take_back(before)
    assert control.read_text() == "-cpu"


def test_what_looks_like_a_root_hands_controllers_on_only_without_processes(
    v1: Cgroups, v2: Cgroups
) -> None:
    (v2.mount / "cgroup.procs").write_text("1\n7\n")
    assert v1.hands_on()
    assert v2.hands_on()  # the machine's own root has no type
    (v2.mount / "cgroup.type").write_text("domain threaded\n")
    assert not v2.hands_on()
    (v2.mount / "cgroup.procs").write_text("")
    assert v2.hands_on()


PROGRAM = (sys.executable, "-c")
IMPORTS = """
import os, sys
from pathlib import Path
from weighbridge.common.errors import UsageError
from weighbridge.topologies.lab.claim import Claim, MachineHold
here = Path(sys.argv[1])
def say(line): print(line, flush=True)
"""
HARDWARE = Hardware(name="two", kind="lab", hosts={"client-1": HostSpec(), "store-1": HostSpec()})


def test_a_claim_is_the_only_one_and_private_and_has_all_that_a_cleanup_needs(
    tmp_path: Path,
) -> None:
    state, limit = tmp_path / "state", Write(path=tmp_path / "throttle", text="7:3 100")
    running = MachineHold(state)
    claim = Claim("labtest-a", tmp_path / "a", state)
    claim.put((limit,))
    assert claims(state)[0].root_limits == (limit,)
    assert limit.path.read_text() == limit.text
    # Whoever can open a lock, even only to read it, can hold it.
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE((state / name).stat().st_mode) for name in ("run", "lock")} == {0o600}
    why = rf"labtest-a has been running on this machine since .*process {os.getpid()}"
    with pytest.raises(UsageError, match=why) as refused:
        Claim("labtest-b", tmp_path / "b", state)
    assert "weighbridge down" in refused.value.advice
    with pytest.raises(MachineInUse, match="labtest-a"):
        ending.remove_leftovers(state=state)
    found = ending.find_leftovers(state=state)
    assert [str(one) for one in found] == [
        "root cgroup limit 7:3 100 of labtest-a",
        f"claim {state}/claims/labtest-a.json of labtest-a",
    ]
    claim.release()
    running.release()
    Claim("labtest-b", tmp_path / "b", state).release()
    assert claims(state) == ()


def test_a_holder_that_has_not_written_its_name_yet_is_refused_without_one() -> None:
    message = MachineInUse(b"").message
    assert message.startswith("another deployment has been running on this machine (process not ")


def test_what_a_killed_conductor_left_refuses_a_new_claim_until_it_is_removed(
    tmp_path: Path,
) -> None:
    killed = f"{IMPORTS}Claim('labtest-a', here / 'a', here); os._exit(9)"
    assert subprocess.run([*PROGRAM, killed, str(tmp_path)], check=False).returncode == 9
    with pytest.raises(UsageError, match="labtest-a: left running") as refused:
        Claim("labtest-b", tmp_path / "b", tmp_path)
    assert "weighbridge down" in refused.value.advice
    assert [one.kind for one in ending.remove_leftovers(state=tmp_path)] == ["claim"]
    Claim("labtest-b", tmp_path / "b", tmp_path).release()


@pytest.mark.parametrize("label", ["", "A", "a.b", "../a", "-a", "a" * 62])
def test_an_ambiguous_label_is_refused(tmp_path: Path, label: str) -> None:
    with pytest.raises(UsageError, match="is not a deployment's label"):
        Claim(label, tmp_path, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"deployment": "labtest-a", "pid": 2**30}),  # nobody's number
        "",  # a conductor first empties the lock's file, then closes it
    ],
)
def test_a_runc_that_outlives_its_conductor_and_one_that_just_ends_are_waited_for(
    tmp_path: Path, text: str
) -> None:
    claim = Claim("labtest-a", tmp_path / "a", tmp_path)
    (tmp_path / "lock").write_text(text)
    timer = threading.Timer(0.2, claim.release)
    timer.start()
    with exclude_conductors(tmp_path, wait_s=10):
        assert claims(tmp_path) == ()
    timer.join()


def test_a_claim_is_released_whatever_its_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, state = tmp_path / "home", tmp_path / "state"
    for name in ("labtest-a", "labtest-b"):
        folder = home / "deployments" / name
        folder.mkdir(parents=True)
        ClaimedMachine(deployment=name, pid=2**30, since="", folder=folder).write(state)

    def fails(folder: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy", str(folder / "mounted"))

    monkeypatch.setattr(safe_files, "remove_tree", fails)
    with pytest.raises(TargetError) as left:
        ending.remove_leftovers(home=home, state=state)
    for name in ("labtest-a", "labtest-b"):
        says = f"{home}/deployments/{name}: cannot be removed: {home}/deployments/{name}/mounted: "
        assert says in str(left.value)
    assert claims(state) == ()
    Claim("labtest-c", home / "deployments/labtest-c", state).release()


@pytest.mark.parametrize(
    ("deployment", "folder", "says"),
    [
        ("evil-1", "victim", r"evil-1\.json: the folder of evil-1 is .*/victim, which is not in"),
        ("evil-1", "home/deployments/other", "which is not in"),
        ("evil-1", "home/deployments/evil-1/../../../victim", "which is not in"),
        ("../../victim", "home/deployments/evil-1", r"evil-1\.json is not a claim of a deployment"),
    ],
)
def test_a_claim_of_what_is_not_a_deployments_folder_removes_nothing(
    tmp_path: Path, deployment: str, folder: str, says: str
) -> None:
    for name in ("victim", "home/deployments/other", "home/deployments/evil-1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "precious").write_text("")
    claim = {"deployment": deployment, "pid": 1, "since": "", "folder": str(tmp_path / folder)}
    (tmp_path / "state/claims").mkdir(parents=True, mode=0o700)
    (tmp_path / "state/claims/evil-1.json").write_text(json.dumps(claim))
    done = command_line.weighbridge("down", "--all", folder=tmp_path)
    assert done.returncode == 3, done.stderr
    assert re.search(says, done.stderr), done.stderr
    assert len(list(tmp_path.rglob("precious"))) == 3


def test_folders_are_removed_by_name_or_all_but_that_of_a_running_process(tmp_path: Path) -> None:
    where: Any = {"home": tmp_path / "home", "state": tmp_path / "state"}
    other = subprocess.Popen(["sleep", "60"])
    started = started_at(other.pid)
    assert started is not None
    # The second is of another process with that pid, the last has no owner: a reboot ended it.
    owners = {"null-1": (other.pid, started), "null-2": (other.pid, started - 1), "null-3": None}
    folders = [tmp_path / "home/deployments" / name for name in owners]
    for folder, owner in zip(folders, owners.values(), strict=True):
        (folder / "bundles/store-1/upper").mkdir(parents=True)
        if owner is not None:
            pid, ticks = owner
            record = DeploymentOwner(deployment=folder.name, pid=pid, since="", started=ticks)
            (folder / CONDUCTOR).write_text(record.model_dump_json())
    try:
        assert [one.deployment for one in ending.lab_at_work(**where)] == ["null-1"]
        found = ending.find_leftovers(**where)
        assert [(one.deployment, one.kind) for one in found] == [
            ("null-2", "folder"),
            ("null-3", "folder"),
        ]
        assert ending.remove_leftovers("null-4", **where) == ()
        assert ending.remove_leftovers("null-3", **where) == found[1:]
        assert [folder.exists() for folder in folders] == [True, True, False]
        assert ending.remove_leftovers(**where) == found[:1]
        assert ending.find_leftovers(**where) == ending.remove_leftovers(**where) == ()
    finally:
        other.kill()
        other.wait()
    assert ending.lab_at_work(**where) == ()
    assert [one.deployment for one in ending.remove_leftovers(**where)] == ["null-1"]
    assert not folders[0].exists()


def test_disks_are_found_by_their_former_file(tmp_path: Path) -> None:
    for number, file in ((3, "/d/a/bundles/x/disk-1 (deleted)"), (4, "/d/ab/disk-1"), (5, "")):
        (tmp_path / f"loop{number}/loop").mkdir(parents=True)
        (tmp_path / f"loop{number}/loop/backing_file").write_text(f"{file}\n")
    (tmp_path / "loop6").mkdir()
    assert disks(Path("/d/a"), "a", tmp_path) == (Path("/dev/loop3"),)


def test_a_container_that_a_killed_conductors_runc_adds_meanwhile_is_deleted_too(
    tmp_path: Path,
) -> None:
    there = {"first"}

    class AddingRunc(Runc):
        def containers(self) -> tuple[Container, ...]:
            return tuple(
                Container(name, "labtest-late", "store-1", tmp_path) for name in sorted(there)
            )

        def delete(self, container: str) -> None:
            there.remove(container)
            if container == "first":
                there.add("late")

    left = ClaimedMachine(deployment="labtest-late", pid=1, since="", folder=tmp_path / "none")
    for _ in range(2):  # the second time there is nothing to tear down, which is no error
        tear_down(left, AddingRunc(tmp_path / "runc"), Cgroups())
        assert there == set()


@pytest.mark.parametrize(
    ("names", "images", "folder", "fault"),
    [
        (["client-1", "store-9"], {}, "f", "two has no hosts store-9"),
        (["client-1", "store-1"], {}, "f", "store-1: no root image was given"),
        (["store-1"], {"store-1": Path("/no/such")}, "f", "store-1: /no/such is not a root image"),
        (["client-1"], {}, "a,b", "an overlay's folder cannot have"),
    ],
)
def test_hosts_that_cannot_be_started_are_refused_before_anything_is_claimed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: list[str],
    images: dict[str, Path],
    folder: str,
    fault: str,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    where: Any = {"folder": tmp_path / folder, "state": tmp_path / "s"}
    with pytest.raises(UsageError, match=fault):
        start_lab("labtest-a", HARDWARE, images, print, names=names, **where)
    assert list(tmp_path.iterdir()) == []


def piped(script: str, folder: Path) -> subprocess.Popen[str]:
    line, pipe = [*PROGRAM, f"{IMPORTS}{script}", str(folder)], subprocess.PIPE
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True)


def test_a_run_holds_the_machine_between_its_deployments_and_is_named_with_its_folder(
    tmp_path: Path,
) -> None:
    holding = "MachineHold(here).describe('/somewhere/runs/first'); say('held'); sys.stdin.read()"
    other = piped(holding, tmp_path)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        words = rf"the run /somewhere/runs/first has been running .*process {other.pid}"
        with pytest.raises(MachineInUse, match=words):
            MachineHold(tmp_path)
        with pytest.raises(MachineInUse, match=words):
            Claim("labtest-a", tmp_path / "a", tmp_path)
        assert claims(tmp_path) == ()
    finally:
        other.kill()
        other.communicate()
    running = MachineHold(tmp_path)  # the kernel let go of it
    Claim("labtest-a", tmp_path / "a", tmp_path).release()
    running.release()


CLAIMS = """
say('ready')
for line in sys.stdin:
    try:
        claim = Claim(line.strip(), here, here)
    except UsageError as error:
        say(str(error).splitlines()[0])
        continue
    say('has it')
    sys.stdin.readline()
    claim.release()
    say('gave it back')
"""


def test_of_two_simultaneous_claims_one_succeeds_and_the_other_is_refused(tmp_path: Path) -> None:
    pair = [piped(CLAIMS, tmp_path) for _ in range(2)]

    def write(one: subprocess.Popen[str], line: str) -> None:
        assert one.stdin is not None
        one.stdin.write(f"{line}\n")
        one.stdin.flush()

    def read(one: subprocess.Popen[str]) -> str:
        assert one.stdout is not None
        return one.stdout.readline().strip()

    try:
        assert [read(one) for one in pair] == ["ready"] * 2
        for number in range(5):
            for index, one in enumerate(pair):
                write(one, f"labtest-{number}-{index}")
            said = [read(one) for one in pair]
            winner = said.index("has it")
            assert "and only one" in said[1 - winner]
            write(pair[winner], "")
            assert read(pair[winner]) == "gave it back"
            assert claims(tmp_path) == ()
    finally:
        for one in pair:
            one.kill()
            one.communicate()
