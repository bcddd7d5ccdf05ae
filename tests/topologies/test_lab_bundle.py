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
        memory_bytes=2**28,
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


def test_a_host_may_use_its_own_disks_and_no_other_device(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weighbridge.topologies.lab.bundle.FUSE", Path("/dev/no-fuse"))
    linux = bundle.config()["linux"]
    (device,) = linux["devices"]
    assert (device["path"], device["major"], device["minor"]) == ("/dev/wb0", 7, 9)
    assert linux["resources"]["devices"] == [
        {"allow": False, "access": "rwm"},
        {"allow": True, "type": "b", "major": 7, "minor": 9, "access": "rwm"},
    ]


def test_a_host_with_an_image_may_use_fuse_where_this_machine_has_it(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A character device that every machine has.
    monkeypatch.setattr("weighbridge.topologies.lab.bundle.FUSE", Path("/dev/null"))
    linux = bundle.config()["linux"]
    assert [(one["major"], one["minor"]) for one in linux["devices"]] == [(7, 9), (10, 229)]
    allowed = {"allow": True, "type": "c", "major": 10, "minor": 229, "access": "rwm"}
    assert allowed in linux["resources"]["devices"]
    assert len(replace(bundle, image=None).config()["linux"]["devices"]) == 1


def test_memory_swap_and_cpus_are_limited_from_the_start_and_descriptors_by_the_caller(
    bundle: Bundle,
) -> None:
    def resources(**changes: Any) -> Any:
        return replace(bundle, **changes).config()["linux"]["resources"]

    assert resources()["memory"] == {"limit": 2**28, "swap": 2**28}
    assert resources(limit_swap=False)["memory"] == {"limit": 2**28}
    assert "memory" not in resources(memory_bytes=None)
    assert "cpu" not in resources()
    assert resources(cpuset="2-3")["cpu"] == {"cpus": "2-3"}
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


def test_an_image_is_mounted_through_an_overlay(bundle: Bundle) -> None:
    folders = f"upperdir={bundle.folder}/upper,workdir={bundle.folder}/work"
    assert f"lowerdir=/images/ceph,{folders}" in bundle.script()
    assert bundle.config()["root"] == {"path": "rootfs", "readonly": False}


def test_a_path_with_blanks_and_quotes_stays_one_word(bundle: Bundle) -> None:
    odd = replace(bundle, image=Path("/images/it's here"))
    assert "'lowerdir=/images/it'\"'\"'s here,upperdir=" in odd.script()
    assert "'rootfs/mnt/a b'" in replace(bundle, image=None).script(["/mnt/a b"])


def test_this_machines_root_is_read_only_also_where_file_systems_are_mounted_in_it(
    bundle: Bundle,
) -> None:
    own = replace(bundle, image=None)
    assert own.config()["root"]["readonly"] is True
    assert "protect rootfs/home" in own.script(["/home"]).splitlines()
    # Or runc would make a mount point in this machine's log folder.
    last = own.script().splitlines()[-1]
    assert last == "mount -t tmpfs -o mode=755 weighbridge rootfs/var/log"


def test_a_checkout_below_tmp_or_run_is_visible_on_this_machines_root_but_not_on_an_image(
    bundle: Bundle,
) -> None:
    def targets(one: Bundle) -> list[str]:
        return [mount["destination"] for mount in one.config()["mounts"]]

    own = targets(replace(bundle, image=None))
    assert own.index("/tmp/checkout") > own.index("/tmp")
    assert own.index("/run/checkout") > own.index("/run")
    assert "/opt/checkout" not in own
    assert not {"/tmp/checkout", "/run/checkout"} & set(targets(bundle))


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


def test_the_image_of_tools_is_mounted_read_only_below_run(bundle: Bundle) -> None:
    def mounted(of: Bundle) -> dict[str, list[str]]:
        return {
            one["source"]: one["options"]
            for one in of.config()["mounts"]
            if one["destination"] == tools.TOOLS_INSIDE
        }

    assert mounted(bundle) == {}
    with_tools = replace(bundle, tools=Path("/images/tools"))
    assert mounted(with_tools) == {"/images/tools": ["bind", "ro"]}
    targets = [one["destination"] for one in with_tools.config()["mounts"]]
    assert targets.index("/run") < targets.index(tools.TOOLS_INSIDE)


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


def test_a_program_is_killed_with_children_in_other_sessions() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKS], stdout=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        assert {one.pid for one in family(program.pid, everything())} == {program.pid, child}
        assert kill_family(program.pid, everything)
        assert program.wait(30) == -signal.SIGKILL
    assert LabProcess.of(child) is None


def test_survivors_of_a_program_are_found_by_its_session() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 60 & echo $!"], stdout=subprocess.PIPE, start_new_session=True
    ) as program:
        assert program.stdout is not None
        child = int(program.stdout.readline())
        program.wait(30)
        assert kill_family(program.pid, everything)
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


def host(deployment: Path, name: str) -> Path:
    folder = deployment / "bundles" / name
    folder.mkdir(parents=True)
    return folder


def test_a_daemon_is_alive_as_long_as_its_first_process(tmp_path: Path) -> None:
    running = subprocess.Popen(["sleep", "60"])
    now = LabProcess.of(running.pid)
    assert now is not None
    later = replace(now, started=now.started - 1)  # another one had the number
    kept = {"radosgw": now, "haproxy": later, "apache2": None}
    keep_daemon(host(tmp_path, "gateway-1"), "gateway-1", kept)
    try:
        assert [(one.host, one.service, one.alive) for one in daemons(tmp_path)] == [
            ("gateway-1", "radosgw", True),
            ("gateway-1", "haproxy", False),
            ("gateway-1", "apache2", False),
        ]
    finally:
        running.kill()
        running.wait()
    assert not any(one.alive for one in daemons(tmp_path))


def test_the_last_record_counts_and_hosts_are_separate(tmp_path: Path) -> None:
    here, there = host(tmp_path, "store-1"), host(tmp_path, "store-2")
    keep_daemon(here, "store-1", {"osd.0": None, "mon": None})
    keep_daemon(there, "store-2", {"osd.1": None})
    keep_daemon(here, "store-1", {"osd.0": None})
    last = [(one.host, one.service) for one in daemons(tmp_path)]
    assert last == [("store-1", "osd.0"), ("store-2", "osd.1")]
    assert daemons(tmp_path / "none") == ()


def test_an_invalid_file_is_named(tmp_path: Path) -> None:
    folder = host(tmp_path, "store-1")
    (folder / FILE).write_text("{")
    with pytest.raises(TargetError, match=rf"{folder}/{FILE} is not a valid list"):
        daemons(tmp_path)
