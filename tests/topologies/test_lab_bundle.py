from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.errors import MissingPrerequisite, TargetError
from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.lab import bundle as tools
from weighbridge.topologies.lab import network
from weighbridge.topologies.lab.bundle import DENIED, Bundle, etc_hosts, submounts
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.host import FILE, daemons, keep_daemon
from weighbridge.topologies.lab.program import (
    LabProcess,
    LabProgram,
    family,
    kill_family,
    send,
    wait_end,
)
from weighbridge.topologies.lab.runc import DEPLOYMENT, HOST
from weighbridge.topologies.on_host import telemetry


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return Bundle(
        deployment="labtest-a",
        host="store-1",
        folder=tmp_path / "bundle",
        logs=tmp_path / "logs",
        image=Path("/images/ceph"),
        etc_hosts=tmp_path / "hosts",
        disks=(LoopDisk("/dev/wb0", 9, -1, direct=True),),
        spec=HostSpec(memory=2**28),
        limit_swap=True,
        visible=(Path("/tmp/checkout"), Path("/opt/checkout"), Path("/run/checkout")),
    )


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
    bundle: Bundle,
) -> None:
    def resources(**changes: Any) -> Any:
        return replace(bundle, **changes).config()["linux"]["resources"]

    assert resources()["memory"] == {"limit": 2**28, "swap": 2**28}
    assert resources(limit_swap=False)["memory"] == {"limit": 2**28}
    assert "memory" not in resources(spec=HostSpec())
    assert "cpu" not in resources()
    assert resources(spec=HostSpec(cpuset="2-3"))["cpu"] == {"cpus": "2-3"}
    assert "rlimits" not in bundle.config()["process"]


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
    lines = own.script(["/home", "/mnt/a b"]).splitlines()
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
    own = mounts(image=None, tools=Path("/images/tools"))
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


def test_every_host_knows_all_names_and_addresses_follow_the_order_of_the_file() -> None:
    lines = etc_hosts({"client-1": "10.80.0.10", "store-1": "10.80.0.11"}).splitlines()
    assert lines[0] == "127.0.0.1 localhost"
    assert lines[-2:] == ["10.80.0.10 client-1", "10.80.0.11 store-1"]
    addresses = [network.address(index) for index in (0, 1, 199)]
    assert addresses == ["10.80.0.10", "10.80.0.11", "10.80.0.209"]


def test_the_switch_has_a_port_for_each_host_with_the_mtu_of_the_network() -> None:
    batch = network.switch_batch([network.Port(3, 4711)], 9000)
    assert (
        "link add port3 mtu 9000 type veth peer name eth0 mtu 9000 address 02:00:00:00:00:03 "
        "netns 4711\n"
    ) in batch
    assert "link set port3 master br0 up\n" in batch


@pytest.mark.parametrize(
    ("rate_bit_per_s", "burst_bytes"),
    [(10**6, 131072), (10**8, 131072), (10**9, 500_000), (10**10, 5_000_000)],
)
def test_a_token_bucket_holds_a_tick_of_its_rate_and_at_least_two_large_segments(
    rate_bit_per_s: int, burst_bytes: int
) -> None:
    assert network.burst_bytes(rate_bit_per_s) == burst_bytes
    assert f"{burst_bytes}b" in network.limit_argv("eth0", rate_bit_per_s)


def test_a_delay_holds_twice_what_the_rate_sends_meanwhile_and_at_least_1000_packets() -> None:
    slow, fast = network.delay_argv("eth0", 2e-4, None), network.delay_argv("eth0", 0.05, 10**9)
    assert slow[-4:] == ("limit", "1000", "delay", "200us")
    assert fast[-4:] == ("limit", "12500", "delay", "50000us")
    assert network.limit_argv("eth0", 10**9, ("parent", "1:1"))[3:8] == (
        *("dev", "eth0", "parent", "1:1", "tbf"),
    )


def image(root: Path, triplet: str, loader: str) -> Path:
    for path in ("usr/bin/fio", f"lib/{triplet}/{loader}", f"lib/{triplet}/libdl.so.2"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()
    return root


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
    argv = tools.tool_argv(image(tmp_path, triplet, loader), "fio")
    assert argv[0] == f"{tools.TOOLS_INSIDE}/lib/{triplet}/{loader}"
    assert argv[-1] == f"{tools.TOOLS_INSIDE}/usr/bin/fio"
    folders = argv[argv.index("--library-path") + 1].split(":")
    assert f"{tools.TOOLS_INSIDE}/lib/{triplet}" in folders
    assert all(folder.startswith(f"{tools.TOOLS_INSIDE}/") for folder in folders)


def test_an_image_without_the_tool_or_a_loader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingPrerequisite, match="no program iperf3"):
        tools.tool_argv(image(tmp_path, "x86_64-linux-gnu", "ld-linux-x86-64.so.2"), "iperf3")
    (tmp_path / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2").unlink()
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
    keep_daemon(folders["store-1"], "store-1", {"osd.0": None, "mon": None})
    keep_daemon(folders["store-1"], "store-1", {"osd.0": None})
    kept = {"radosgw": now, "haproxy": later, "apache2": None}
    keep_daemon(folders["gateway-1"], "gateway-1", kept)
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
