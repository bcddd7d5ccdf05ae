from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.document import DocumentError
from weighbridge.common.errors import MissingPrerequisite, TargetError
from weighbridge.common.host import DiskCounters
from weighbridge.topologies.disk_models import (
    DISK_MODELS,
    DiskLoad,
    FlashDisk,
    SpinningDisk,
    expected_per_s,
    simulate,
)
from weighbridge.topologies.hardware import Disk, Hardware, HostSpec
from weighbridge.topologies.lab import bundle as tools
from weighbridge.topologies.lab import disk, network
from weighbridge.topologies.lab import host as lab_host
from weighbridge.topologies.lab import requirements as lab
from weighbridge.topologies.lab.bundle import DENIED, Bundle, Lab, etc_hosts, submounts
from weighbridge.topologies.lab.cgroup import Cgroups
from weighbridge.topologies.lab.claim import Claim
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.host import FILE, LabHost, daemons, keep_daemons
from weighbridge.topologies.lab.model_disks import ModelDisks
from weighbridge.topologies.lab.program import (
    LabProcess,
    LabProgram,
    family,
    kill_family,
    send,
    wait_end,
)
from weighbridge.topologies.lab.requirements import HostRequirement, exhausted, lab_requirements
from weighbridge.topologies.lab.runc import DEPLOYMENT, HOST, Runc
from weighbridge.topologies.loader import load_hardware
from weighbridge.topologies.on_host import telemetry


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bundle]:
    visible = (Path("/tmp/checkout"), Path("/opt/checkout"), Path("/run/checkout"))
    monkeypatch.setattr(tools, "python_of_this_process", lambda: visible)
    (tmp_path / "cgroup.controllers").touch()
    claim = Claim("labtest-a", tmp_path / "deployment", tmp_path / "state")
    runc, cgroups = Runc(tmp_path / "runc"), Cgroups(tmp_path)
    yield Bundle(
        Lab(claim, SMALL, runc, cgroups, tmp_path / "deployment", submounts=("/home", "/mnt/a b")),
        "store-1",
        Path("/images/ceph"),
        HostSpec(memory=2**28),
        disks=(LoopDisk("/dev/wb0", 9, -1, direct=True),),
    )
    claim.release()


def test_a_written_bundle_is_labelled_and_has_its_own_namespaces(bundle: Bundle) -> None:
    bundle.write()
    config = json.loads((bundle.folder / "config.json").read_text())
    assert config["annotations"] == {DEPLOYMENT: "labtest-a", HOST: "store-1"}
    assert config["linux"]["cgroupsPath"] == "/weighbridge/labtest-a/store-1"
    kinds = {one["type"] for one in config["linux"]["namespaces"]}
    assert kinds == {"pid", "network", "ipc", "uts", "mount"}
    assert not any("path" in one for one in config["linux"]["namespaces"])
    names = {path.name for path in bundle.folder.iterdir()}
    assert names == {"config.json", "rootfs", "upper", "work"}
    assert bundle.logs.is_dir()


DISK = {"type": "b", "major": 7, "minor": 9}
FUSE = {"type": "c", "major": 10, "minor": 229}


@pytest.mark.parametrize(
    ("fuse", "image", "devices"),
    [
        ("/dev/no-fuse", "/images/ceph", [DISK]),
        ("/dev/null", "/images/ceph", [DISK, FUSE]),  # a character device that every machine has
        ("/dev/null", None, [DISK]),
    ],
)
def test_a_host_may_use_its_own_disks_and_with_an_image_fuse_and_no_other_device(
    bundle: Bundle,
    monkeypatch: pytest.MonkeyPatch,
    fuse: str,
    image: str | None,
    devices: list[dict[str, Any]],
) -> None:
    monkeypatch.setattr("weighbridge.topologies.lab.bundle.FUSE", Path(fuse))
    given = replace(bundle, image=None if image is None else Path(image))
    linux = given.config()["linux"]
    there = [{key: one[key] for key in ("type", "major", "minor")} for one in linux["devices"]]
    assert (there, linux["devices"][0]["path"]) == (devices, "/dev/wb0")
    assert linux["resources"]["devices"] == [
        {"allow": False, "access": "rwm"},
        *({"allow": True, **one, "access": "rwm"} for one in devices),
    ]


def test_memory_swap_and_cpus_are_limited_from_the_start_and_descriptors_by_the_caller(
    bundle: Bundle, tmp_path: Path
) -> None:
    def resources(**changes: Any) -> Any:
        return replace(bundle, **changes).config()["linux"]["resources"]

    assert resources()["memory"] == {"limit": 2**28, "swap": 2**28}
    assert "memory" not in resources(spec=HostSpec())
    assert "cpu" not in resources()
    assert resources(spec=HostSpec(cpuset="2-3"))["cpu"] == {"cpus": "2-3"}
    assert "rlimits" not in bundle.config()["process"]
    (tmp_path / "cgroup.controllers").unlink()  # version 1, of a kernel that does not count swap
    assert resources()["memory"] == {"limit": 2**28}


def capabilities(bundle: Bundle) -> set[str]:
    given: dict[str, list[str]] = bundle.config()["process"]["capabilities"]
    return {one for kind in given.values() for one in kind}


def test_a_host_cannot_change_the_machine_or_its_own_limits_nor_mount_on_this_machines_root(
    bundle: Bundle,
) -> None:
    on_image, on_root = capabilities(bundle), capabilities(replace(bundle, image=None, disks=()))
    of_system = ("SYS_MODULE", "SYS_TIME", "SYS_BOOT", "SYS_RESOURCE", "SYS_RAWIO")
    for forbidden in (*of_system, "MKNOD", "DAC_READ_SEARCH", "NET_ADMIN"):
        assert f"CAP_{forbidden}" not in on_image | on_root
    assert "CAP_SYS_ADMIN" in on_image - on_root


def test_system_calls_that_change_the_machine_are_denied(bundle: Bundle) -> None:
    seccomp = bundle.config()["linux"]["seccomp"]
    assert seccomp["defaultAction"] == "SCMP_ACT_ALLOW"
    denied = {name: one for one in seccomp["syscalls"] for name in one["names"]}
    assert set(denied) - {"unshare", "clone", "clone3"} == set(DENIED)
    assert {"bpf", "init_module", "kexec_load", "open_by_handle_at", "clock_settime"} <= {*DENIED}
    # Of these only a new user namespace, in which anybody may mount.
    values = {one["value"] for name in ("unshare", "clone") for one in denied[name]["args"]}
    assert values == {0x10000000}


def test_an_image_is_mounted_through_an_overlay_and_this_machines_root_is_read_only_everywhere(
    bundle: Bundle,
) -> None:
    folders = f"upperdir={bundle.folder}/upper,workdir={bundle.folder}/work"
    assert f"lowerdir=/images/ceph,{folders}" in bundle.script()
    assert bundle.config()["root"] == {"path": "rootfs", "readonly": False}
    odd = replace(bundle, image=Path("/images/it's here"))
    assert "'lowerdir=/images/it'\"'\"'s here,upperdir=" in odd.script()
    own = replace(bundle, image=None)
    assert own.config()["root"]["readonly"] is True
    lines = own.script().splitlines()
    assert lines[-3:-1] == ["protect rootfs/home", "protect 'rootfs/mnt/a b'"]
    # Or runc would make a mount point in this machine's log folder.
    assert lines[-1] == "mount -t tmpfs -o mode=755 weighbridge rootfs/var/log"


def test_a_checkout_below_tmp_or_run_and_the_tools_are_mounted_read_only_after_those_folders(
    bundle: Bundle,
) -> None:
    def mounts(**changes: Any) -> dict[str, Any]:
        given = replace(bundle, **changes).config()["mounts"]
        return {one["destination"]: (index, one) for index, one in enumerate(given)}

    inside = {*("/tmp/checkout", "/run/checkout", "/opt/checkout"), tools.TOOLS_INSIDE}
    assert not inside & set(mounts())
    bundle.lab.tools = Path("/images/tools")
    own = mounts(image=None)
    assert inside - set(own) == {"/opt/checkout"}
    for path in inside - {"/opt/checkout"}:
        index, mount = own[path]
        assert index > own[f"/{path.split('/')[1]}"][0]
        assert mount["options"][-1] == "ro"
    assert own[tools.TOOLS_INSIDE][1]["source"] == "/images/tools"


def test_submounts_leave_out_the_root_and_a_hosts_own_folders() -> None:
    points = ["/", "/proc", "/sys/fs/cgroup", "/dev/shm", "/run/lock", "/tmp", "/home"]
    points += [r"/mnt/a\040b", "/home", "/runner", "/srv/größe", r"/srv/back\134slash\0117"]
    mountinfo = "\n".join(
        f"{number} 1 0:{number} / {point} rw - ext4 /dev/x rw"
        for number, point in enumerate(points)
    )
    inner = ("/home", "/mnt/a b", "/runner", "/srv/größe", "/srv/back\\slash\t7")
    assert submounts(mountinfo.encode()) == inner
    (found,) = submounts(b"1 1 0:1 / /mnt/\xff rw - ext4 /dev/x rw")
    assert os.fsencode(found) == b"/mnt/\xff"


def test_hosts_know_all_names_and_have_addresses_and_ports_in_the_order_of_the_file() -> None:
    lines = etc_hosts({"client-1": "10.80.0.10", "store-1": "10.80.0.11"}).splitlines()
    assert lines[0] == "127.0.0.1 localhost"
    assert lines[-2:] == ["10.80.0.10 client-1", "10.80.0.11 store-1"]
    addresses = [network.address(index) for index in (0, 1, 199)]
    assert addresses == ["10.80.0.10", "10.80.0.11", "10.80.0.209"]
    pair, up = network.switch_batch([network.Port(3, 4711)], 9000).splitlines()
    peer = "peer name eth0 mtu 9000 address 02:00:00:00:00:03 netns 4711"
    assert pair == f"link add port3 mtu 9000 type veth {peer}"
    assert up == "link set port3 master br0 up"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        # A bucket holds a tick of its rate, and at least two large segments.
        (network.limit_argv("eth0", 10**8), "root tbf rate 100000000bit burst 131072b"),
        (network.limit_argv("eth0", 10**9), "burst 500000b latency 50ms"),
        (network.limit_argv("eth0", 10**10, ("parent", "1:1")), "dev eth0 parent 1:1 tbf"),
        # A delay holds twice what the rate sends meanwhile, and at least 1000 packets.
        (network.delay_argv("eth0", 2e-4, None), "netem limit 1000 delay 200us"),
        (network.delay_argv("eth0", 0.05, 10**9), "netem limit 12500 delay 50000us"),
    ],
)
def test_rates_and_delays_hold_what_is_on_its_way(argv: Sequence[str], words: str) -> None:
    assert words in " ".join(argv)


@pytest.mark.parametrize(
    ("triplet", "loader"),
    [
        ("x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
        ("aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
        ("arm-linux-gnueabihf", "ld-linux-armhf.so.3"),
        ("s390x-linux-gnu", "ld64.so.1"),
    ],
)
def test_a_tool_runs_with_the_loader_and_libraries_of_its_image(
    tmp_path: Path, triplet: str, loader: str
) -> None:
    for path in ("usr/bin/fio", f"lib/{triplet}/{loader}", f"lib/{triplet}/libdl.so.2"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    argv = tools.tool_argv(tmp_path, "fio")
    assert argv[0] == f"{tools.TOOLS_INSIDE}/lib/{triplet}/{loader}"
    assert argv[-1] == f"{tools.TOOLS_INSIDE}/usr/bin/fio"
    folders = argv[argv.index("--library-path") + 1].split(":")
    assert f"{tools.TOOLS_INSIDE}/lib/{triplet}" in folders
    assert all(folder.startswith(f"{tools.TOOLS_INSIDE}/") for folder in folders)
    with pytest.raises(MissingPrerequisite, match="no program iperf3"):
        tools.tool_argv(tmp_path, "iperf3")
    (tmp_path / f"lib/{triplet}/{loader}").unlink()
    with pytest.raises(MissingPrerequisite, match="no loader"):
        tools.tool_argv(tmp_path, "fio")


FORKS = """
import subprocess
child = subprocess.Popen(["sleep", "60"], start_new_session=True)
print(child.pid, flush=True)
child.wait()
"""


def everything() -> tuple[int, ...]:
    return tuple(int(path.name) for path in Path("/proc").glob("[0-9]*"))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("state", ["S", "Z", "X"])
@pytest.mark.parametrize("name", ["plain", "with blank", "pare) n (theses", ") S 1 1 1"])
def test_a_process_has_any_name_and_is_no_zombie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, state: str
) -> None:
    monkeypatch.setattr(telemetry, "PROC", str(tmp_path))
    (tmp_path / "7").mkdir()
    numbers = " ".join(map(str, range(100, 140)))
    (tmp_path / "7/stat").write_text(f"7 ({name}) {state} 5 6 8 {numbers}\n")
    process = LabProcess(7, parent=5, session=8, started=115)
    assert LabProcess.of(7) == (process if state == "S" else None)


def test_a_process_with_a_reused_pid_gets_no_signal(sleeper: subprocess.Popen[bytes]) -> None:
    found = LabProcess.of(sleeper.pid)
    assert found is not None
    earlier = replace(found, started=found.started - 1)
    send(earlier, signal.SIGKILL)
    assert wait_end(earlier, 0)
    assert not wait_end(found, 0.05)
    send(found, signal.SIGKILL)
    assert wait_end(found, 30)


@pytest.mark.parametrize(
    ("line", "survives"),
    [
        ([sys.executable, "-c", FORKS], False),  # a child in another session
        (["sh", "-c", "sleep 60 & echo $!"], True),  # found by its session, after its parent ended
    ],
)
def test_a_program_is_killed_with_all_it_started(line: list[str], *, survives: bool) -> None:
    with subprocess.Popen(line, stdout=subprocess.PIPE, start_new_session=True) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        if survives:
            program.wait(30)
        there = {child} if survives else {program.pid, child}
        assert {one.pid for one in family(program.pid, everything())} == there
        assert kill_family(program.pid, everything)
        assert program.wait(30) == (0 if survives else -signal.SIGKILL)
    assert LabProcess.of(child) is None


def test_killing_a_program_that_never_started_ends_its_starter(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weighbridge.topologies.lab.program.STARTING_S", 0.1)
        program = LabProgram(["sleep", "60"], pid_file=tmp_path / "none", pids=lambda: ())
        program.kill()
        program.communicate()
    assert program.returncode == -signal.SIGKILL


def test_terminating_reaches_the_program_and_not_its_starter(tmp_path: Path) -> None:
    # A shell that starts the program and reports its end replaces runc.
    script = (
        "sh -c \"trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done\" & echo $! > "
        '"$0"; wait $!; exit $?'
    )
    program = LabProgram(
        ["sh", "-c", script, str(tmp_path / "pid")], pid_file=tmp_path / "pid", pids=everything
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"ready\n"
    program.terminate()
    program.communicate(timeout=30)
    assert program.returncode == 7
    program.forget()
    assert not (tmp_path / "pid").exists()


# runc 1.3 whose program ended before it listened for that.
DEAF = """
import os, signal, sys
print(sys.stdin.read(), flush=True)
signal.signal(signal.SIGCHLD, lambda *_: os._exit(7))
while True:
    signal.pause()
"""


def deaf(folder: Path) -> LabProgram:
    (folder / "pid").write_text("1")
    return LabProgram([sys.executable, "-c", DEAF], pid_file=folder / "pid", pids=everything)


def test_the_end_of_a_program_that_runc_missed_is_seen(tmp_path: Path) -> None:
    with deaf(tmp_path) as program:
        assert program.communicate(b"data", timeout=30)[0] == b"data\n"
        assert program.returncode == 7
    for way in ("wait", "poll"):
        with deaf(tmp_path) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.close()
            program.stdout.readline()
            if way == "wait":
                assert program.wait(30) == 7
            end_s = time.monotonic() + 30
            while program.poll() is None and time.monotonic() < end_s:
                pass
            assert program.returncode == 7


def test_a_program_that_goes_on_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    (tmp_path / "pid").write_text("1")
    line = ["sleep", "60"]
    with LabProgram(line, pid_file=tmp_path / "pid", pids=lambda: ()) as program:
        for waiting in (program.wait, lambda s: program.communicate(timeout=s)):
            with pytest.raises(subprocess.TimeoutExpired):
                waiting(1.5)
        os.kill(program.pid, signal.SIGKILL)
        assert program.wait(10) == -signal.SIGKILL


def test_daemons_are_alive_as_long_as_their_first_processes_and_the_last_record_of_a_host_counts(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    now = LabProcess.of(sleeper.pid)
    assert now is not None
    later = replace(now, started=now.started - 1)  # another one had the number
    folders = {name: tmp_path / "bundles" / name for name in ("gateway-1", "store-1")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    keep_daemons(folders["store-1"], {"osd.0": None, "mon": None})
    keep_daemons(folders["store-1"], {"osd.0": None})
    kept = {"radosgw": now, "haproxy": later, "apache2": None}
    keep_daemons(folders["gateway-1"], kept)
    dead = [("gateway-1", "haproxy"), ("gateway-1", "apache2"), ("store-1", "osd.0")]

    def states() -> list[tuple[tuple[str, str], bool]]:
        return [((one.host, one.service), one.alive) for one in daemons(tmp_path)]

    first = ("gateway-1", "radosgw")
    assert states() == [(first, True), *((one, False) for one in dead)]
    sleeper.kill()
    sleeper.wait()
    assert states() == [(one, False) for one in (first, *dead)]
    assert daemons(tmp_path / "none") == ()
    (folders["store-1"] / FILE).write_text("{")
    with pytest.raises(TargetError, match=rf"{folders['store-1']}/{FILE} is not a valid list"):
        daemons(tmp_path)


MEMORY = "CGROUPS/memory/weighbridge/labtest-a/store-1/memory"
USED = {
    "CGROUPS/cpu/weighbridge/labtest-a/store-1/cpu.stat": "nr_periods 9\nnr_throttled 4\n"
    "throttled_time 2500000000\n",
    "CGROUPS/cpuacct/weighbridge/labtest-a/store-1/cpuacct.usage": "1500000000\n",
    f"{MEMORY}.usage_in_bytes": "1000\n",
    f"{MEMORY}.max_usage_in_bytes": "2000\n",
    f"{MEMORY}.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    f"{MEMORY}.stat": "cache 9\ntotal_active_file 300\ntotal_inactive_file 100\n",
}


def test_a_host_counts_for_itself_since_its_disks_were_attached(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.controllers").unlink()
    for name in ("CGROUPS", "BLOCK"):
        monkeypatch.setattr(telemetry, name, str(tmp_path / name))
    lab, disk_stat = bundle.lab, tmp_path / "BLOCK/7:9/stat"
    lab.cgroups = Cgroups(tmp_path / "CGROUPS")
    lab.bundles.mkdir(parents=True)
    for path, text in {**USED, "BLOCK/7:9/stat": "5 0 50 0 10 0 100 500 0 400 0"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    loop = LoopDisk("/dev/wb0", 9, os.open("/dev/null", os.O_RDONLY), direct=True)
    monkeypatch.setattr(LoopDisk, "attach", lambda *_: loop)
    monkeypatch.setattr(Bundle, "start", lambda _: os.getpid())
    host = LabHost(lab, "store-1", 0, SMALL.hosts["store-1"], None)
    host.power_on()
    monkeypatch.setattr(lab_host, "NIC", "another")
    with pytest.raises(TargetError, match="store-1: its counters cannot be read: no another"):
        host.counters()
    monkeypatch.setattr(lab_host, "NIC", "lo")
    disk_stat.write_text("10 0 100 250 20 0 200 750 0 900 1000")
    used = host.counters()
    assert (used.cpu_s, used.throttled_s, used.cpu_periods) == (1.5, 2.5, 9)
    assert (used.memory_bytes, used.memory_held_bytes, used.memory_peak_bytes) == (1000, 600, 2000)
    assert used.oom_kills == 3, "the host's own, not the machine's"
    assert used.disks == (DiskCounters(25600, 51200, 5, 10, busy_s=0.5, waited_s=0.5),)
    assert (used.disk_read_bytes, used.disk_written_bytes) == (25600, 51200)
    (tmp_path / f"{MEMORY}.stat").unlink()
    with pytest.raises(TargetError, match=r"store-1: its counters cannot be read: .*No such file"):
        host.counters()


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize(
    ("number", "place", "advice"),
    [
        (errno.ENOENT, "/dev/loop-control", "modprobe loop"),
        (errno.EPERM, "", "a container needs permission"),
        # Others keep taking the free device: it is asked for another one some times.
        (errno.EBUSY, "", "`losetup --list` shows their files, `weighbridge down --all` frees"),
        (errno.ENODEV, "", "max_loop"),
        (errno.ENOSPC, "", "Free some space in"),
    ],
)
def test_missing_loop_devices_are_reported_with_advice_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, place: str, advice: str
) -> None:
    asked, real, busy = [], os.open, number == errno.EBUSY

    def ioctl(_descriptor: int, request: int, *_: bytes) -> int:
        asked.append(request)
        if request == disk.LOOP_CONFIGURE:
            raise OSError(number, os.strerror(number))
        return 0

    def opened(path: str | Path, flags: int, *more: int) -> int:
        if str(path) == place:
            raise OSError(number, os.strerror(number), place)
        return real("/dev/null" if str(path).startswith("/dev/loop") else path, flags, *more)

    monkeypatch.setattr(disk.os, "open", opened)
    monkeypatch.setattr(disk.os, "mknod", lambda *_: None)
    monkeypatch.setattr(disk.fcntl, "ioctl", ioctl)
    monkeypatch.setattr(disk, "FEWEST_DEVICES", 10**6)
    before = open_descriptors()
    words = "other programs took 64 free loop devices in a row" if busy else os.strerror(number)
    with pytest.raises(
        MissingPrerequisite, match=f"no loop device for /dev/wb0: {words}"
    ) as refused:
        LoopDisk.attach("/dev/wb0", 4096, tmp_path)
    assert advice in refused.value.advice
    assert asked.count(disk.LOOP_CONFIGURE) == (64 if busy else not place)
    assert list(tmp_path.iterdir()) == []
    assert open_descriptors() == before


Running = Callable[[str], ModelDisks]

# In place of the program: each order is answered by the same line.
SAYS = "import sys\nfor _ in sys.stdin: print(sys.argv[1], flush=True)"
SAID = '"name": "a", "writes": 3, "flushes": 1, "unflushed_blocks": 2'


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
    mark = saying(f'{{"marked": {{"number": 4, "disks": [{{{SAID}}}]}}}}').mark()
    (disk,) = mark.disks
    assert (mark.number, disk.name, disk.writes, disk.flushes) == (4, "a", 3, 1)
    line = f'{{"restored": {{"disks": [{{{SAID}, "kept_blocks": 1}}]}}}}'
    (again,) = saying(line).restore(4, keep=0.5, seed=1)
    assert (disk.unflushed_blocks, again.unflushed_blocks, again.kept_blocks) == (2, 2, 1)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ('{"error": "2 descriptors of disks are open"}', "2 descriptors of disks are open"),
        (f'{{"restored": {{"disks": [{{{SAID}}}]}}}}', "an unknown answer: .*kept_blocks"),
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
    ("disk", "kind", "says"),
    [
        ("model: spining-7200", "lab", "did you mean 'spinning-7200'"),
        ("model: {rpm: 5400}", "lab", "a model needs its base"),
        ("model: {base: nvme, rpm: 5400}", "lab", "unknown key 'rpm'"),
        ("model: {base: spinning-7200, rpm: 1}", "lab", "rpm"),
        ("model: {base: spinning-7200, seek_avg: 99ms}", "lab", "must not decrease"),
        ("model: {base: spinning-7200, transfer_rate: 50MB}", "lab", "outer tracks"),
        ("model: {base: nvme, write_cache: 5GiB}", "lab", "write_cache"),
        ("model: nvme, iops: 100", "lab", "leave this out"),
        ("model: nvme, bandwidth: 1MB", "lab", "leave this out"),
        ("model: 7", "lab", "model"),
        ("model: nvme", "ssh", "only for lab hosts"),
        ("model: nvme", "fake", "only for lab hosts"),
    ],
)
def test_a_wrong_model_is_refused_at_its_line(
    tmp_path: Path, disk: str, kind: str, says: str
) -> None:
    with pytest.raises(DocumentError) as refused:
        load_hardware(written(tmp_path, f"{{size: 1GiB, {disk}}}", kind))
    assert says in str(refused.value)
    assert "hosts.yaml:4:" in str(refused.value)


def load(**given: object) -> DiskLoad:
    asked = {"write": False, "random": True, "bytes": 4096, "depth": 1, "span": 8 * GIB}
    return DiskLoad.model_validate({**asked, **given})


def test_random_reads_of_a_spinning_disk_take_command_seek_and_half_a_turn_alone() -> None:
    model = DISK_MODELS["spinning-7200"]
    assert isinstance(model, SpinningDisk)
    found = simulate(model, 8 * GIB, load(seconds=300))
    assert found is not None
    expected_s = model.command + model.seek_avg + 30 / model.rpm
    assert found.mean_s == pytest.approx(expected_s, rel=0.02)
    assert simulate(model, 8 * GIB, load(seconds=300)) == found
    # A deep queue is served by the shortest way.
    one, many = (expected_per_s(model, 8 * GIB, load(depth=n, seconds=60)) for n in (1, 32))
    assert one is not None
    assert many is not None
    assert many > 2 * one


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


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("sata-ssd", {"depth": 16, "seconds": 0.2}),
        ("ideal", {"seconds": 0.2}),
        # A write that hardly takes time, also while the time before the figures does not pass.
        ("ideal", {"write": True, "depth": 16}),
        ("nvme", {"write": True, "depth": 16}),
    ],
)
def test_nothing_is_expected_where_the_machine_decides(name: str, given: dict[str, Any]) -> None:
    assert expected_per_s(DISK_MODELS[name], 8 * GIB, load(**given)) is None


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
