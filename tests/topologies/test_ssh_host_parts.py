"""Scripts of views and services as they are written, and the telemetry program."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Completed, Service
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies import counters
from weighbridge.topologies.hardware import Hardware, HostSpec
from weighbridge.topologies.on_host import machine
from weighbridge.topologies.on_host import telemetry as telemetry_program
from weighbridge.topologies.ssh import host_telemetry, services, startup, suite
from weighbridge.topologies.ssh.disks import RealDisk
from weighbridge.topologies.ssh.services import HostDeployment, HostProcess, Services
from weighbridge.topologies.ssh.startup import limits_read

ON_HOST = HostDeployment("rgw-beast-abc123", "/opt/weighbridge/deployments/rgw-beast-abc123", 4711)
SERVICES = Services(ON_HOST)
LIMITED = HostSpec.model_validate(
    {
        "address": "10.0.0.4",
        "cpus": 1.5,
        "memory": "1GiB",
        "disks": [{"id": "/dev/x", "bandwidth": "10MB", "iops": 100}, {"id": "/dev/y"}],
    }
)


def scripts() -> list[str]:
    return [
        SERVICES.hold(None),
        SERVICES.start([Service("osd.0", ("ceph-osd", "-i", "it's"), {"A": "b c"})]),
        SERVICES.stop("osd.0", HostProcess(5, 77), 10),
        SERVICES.signal("spawn.1", 15),
        SERVICES.kill("spawn.1"),
        SERVICES.limit(LIMITED, ("/dev/x", "/dev/y"), ("cpu", "disk", "nic")),
        SERVICES.unlimit(LIMITED, ("/dev/x", "/dev/y"), ("cpu", "disk", "nic")),
        SERVICES.read_limits(),
        SERVICES.end(("8:0",)),
        services.view_script(),
        services.UNMOUNT,
    ]


def test_every_script_is_valid_shell() -> None:
    for script in scripts():
        done = subprocess.run(
            ["/bin/sh", "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), script


def test_dashes_of_a_label_do_not_nest_its_slice_and_memory_is_limited_before_its_view() -> None:
    assert SERVICES.slice == "weighbridge-rgw_beast_abc123.slice"
    script = SERVICES.hold(2**30)
    assert script.index("MemoryMax=1073741824 MemorySwapMax=0") < script.index("systemd-run")
    assert "MemoryMax" not in SERVICES.hold(None)


def test_limits_are_those_of_the_hardware_file_and_are_removed_again() -> None:
    devices = ("/dev/x", "/dev/y")
    on = SERVICES.limit(LIMITED, devices, ("cpu", "disk"))
    assert "CPUQuota=150% CPUQuotaPeriodSec=10000us" in on
    assert "CPUQuotaPeriodSec=5000us" in SERVICES.limit(LIMITED, devices, ("cpu",), period_s=0.005)
    assert "'IOReadBandwidthMax=/dev/x 10000000'" in on
    assert "'IOWriteIOPSMax=/dev/x 100'" in on
    assert "/dev/y" not in on
    assert "CPUQuota" not in SERVICES.limit(LIMITED, devices, ("disk",))
    off = SERVICES.unlimit(LIMITED, devices, ("cpu", "disk"))
    assert "CPUQuota= CPUQuotaPeriodSec= " in off.replace("\n", " ")
    assert "'IOReadBandwidthMax=/dev/x infinity'" in off
    assert SERVICES.limit(HostSpec(address="10.0.0.4"), (), ("cpu", "disk", "nic")) == ""


class BareConnection:
    """A host on which everything is installed, that systemd does not run."""

    def __init__(self, *_given: object) -> None: ...

    def open(self) -> None: ...

    def close(self) -> None: ...

    def sh(self, _script: str, *_words: str) -> Completed:
        return Completed("python 3.11\n", "")


def test_a_host_without_systemd_is_refused_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "SshConnection", BareConnection)
    hardware = Hardware.model_validate(
        {
            "name": "real",
            "kind": "ssh",
            "hosts": {"client-1": {"address": "10.0.0.1"}, "store-1": {"address": "10.0.0.4"}},
        }
    )
    with pytest.raises(UsageError, match=r"store-1 \(10.0.0.4\): systemd does not run it"):
        startup.start_ssh("d", hardware, CEPH, print, folder=tmp_path, names=["store-1"])


def test_a_service_has_its_environment_and_nothing_of_the_login(tmp_path: Path) -> None:
    file = SERVICES.service_file(
        Service(
            "one", ("sh", "-c", 'echo "$A" "$HOME" "${SSH_CONNECTION-none}"'), {"A": "it's $x %h"}
        )
    )
    (tmp_path / "one").write_text(file.replace("/var/log/host", str(tmp_path)))
    subprocess.run(
        ["/bin/sh", str(tmp_path / "one")], env={**os.environ, "SSH_CONNECTION": "x"}, check=True
    )
    assert (tmp_path / "one.out").read_text() == "it's $x %h /root none\n"


def test_variables_of_a_service_are_on_no_command_line() -> None:
    file = SERVICES.service_file(Service("one", ("sleep", "1"), {"KEY": "planted"}))
    assert [line for line in file.splitlines() if "planted" in line] == ["export KEY=planted"]


HIDDEN = "/ /var /var/lib/weighbridge /etc/x /run/x /tmp /opt/../etc /usr /dev/shm/x"
OUTSIDE = "/opt/weighbridge /data /var/weighbridge /home/somebody/wb"


def test_a_folder_that_a_view_would_hide_is_refused_and_no_other() -> None:
    for folder in HIDDEN.split():
        with pytest.raises(UsageError, match="folder"):
            services.check_view_folder(folder)
    for folder in OUTSIDE.split():
        services.check_view_folder(folder)


class PrintingShell:
    """A shell whose scripts print `out`."""

    name, address = "store-1", "10.0.0.4"

    def __init__(self, out: str) -> None:
        self.out = out

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        return Completed(self.out, "")

    python = sh


CEPH = RootImage(
    name="ceph-16",
    suite="bookworm",
    packages=("radosgw", "ceph-osd"),
    version_packages=("ceph-common", "radosgw"),
)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("packages\nradosgw 16.2.15+ds-0\nceph-osd 16.2.15+ds-0\nceph-common 16.2.15+ds-0\n", ()),
        (
            "packages\nradosgw 18.2.7-1\nceph-osd 18.2.7-1\n",
            ("radosgw is 18.2.7-1, and the layout needs ceph-16",),
        ),
        ("packages\nceph-osd 16.2.15\n", ("packages are missing: radosgw. `weighbridge doctor",)),
        ("", ("has no packages of Debian or Ubuntu",)),
    ],
)
def test_a_host_with_another_release_is_refused_naming_both(
    out: str, words: tuple[str, ...]
) -> None:
    shell = PrintingShell(out)
    found = startup.release_faults(shell, CEPH, startup.installed_programs(shell))
    assert len(found) == len(words)
    for fault, part in zip(found, words, strict=True):
        assert fault.startswith("store-1 (10.0.0.4): ")
        assert part in fault


def test_a_version_belongs_to_the_release_it_begins_with() -> None:
    for version, release in (("16.2.15+ds-0", "16"), ("1:2.30.1-0+deb12u2", "2.30")):
        assert startup.of_release(version, release)
    for version, release in (("2.3.1", "2.30"), ("160.1", "16"), ("2.300", "2.30")):
        assert not startup.of_release(version, release)


def files(folder: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CGROUPS", "PROC", "BLOCK"):
        monkeypatch.setattr(telemetry_program, name, str(tmp_path / name))
    files(
        tmp_path,
        {
            "BLOCK/8:0/stat": "5 0 16 30 7 0 32 40 0 1500 70 0 0 0 0 0 0\n",
            "PROC/net/dev": "head\n lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n eth0: 1000 9 1 2 0 0 0 "
            "0 2000 9 3 4 0 0 0 0\n",
            "PROC/vmstat": "nr_free_pages 5\noom_kill 3\n",
            "PROC/stat": "cpu  100 0 50 900 10 5 5 0 0 0\ncpu0 1\n",
            "PROC/meminfo": "MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 700 kB\n",
        },
    )
    return tmp_path


def test_counters_of_version_2_are_those_of_the_slice(kernel: Path) -> None:
    files(
        kernel / "CGROUPS",
        {
            "cgroup.controllers": "cpu memory",
            "g/cpu.stat": "usage_usec 2500000\nnr_periods 10\nnr_throttled 4\nthrottled_usec "
            "100000\n",
            "g/memory.current": "5000",
            "g/memory.peak": "6000",
            "g/memory.stat": "active_file 1000\ninactive_file 500\n",
            "g/memory.events": "oom 1\noom_kill 2\n",
        },
    )
    found = telemetry_program.counters("g", "eth0", ["8:0"])
    assert found["cpu_s"] == 2.5
    assert (found["cpu_periods"], found["throttled_periods"], found["throttled_s"]) == (10, 4, 0.1)
    memory = [found[f"memory_{what}bytes"] for what in ("", "held_", "peak_")]
    assert (memory, found["oom_kills"]) == ([5000, 3500, 6000], 2)
    network = [found[f"network_{what}"] for what in ("received_bytes", "sent_bytes", "faults")]
    assert network == [1000, 2000, 10]
    requests = {"read_bytes": 8192, "written_bytes": 16384, "reads": 5, "writes": 7}
    assert found["disks"] == [{**requests, "busy_s": 1.5, "waited_s": 0.07}]


@pytest.mark.parametrize(
    ("account", "cpu_s"), [("3000000000", 3.0), (None, 160 / os.sysconf("SC_CLK_TCK"))]
)
def test_counters_of_version_1_are_the_hosts_where_cpuacct_has_no_slice(
    kernel: Path, account: str | None, cpu_s: float
) -> None:
    texts = {
        "cpu/g/cpu.stat": "nr_periods 1\nnr_throttled 1\nthrottled_time 1000000000\n",
        "memory/g/memory.usage_in_bytes": "5000",
        "memory/g/memory.max_usage_in_bytes": "6000",
        "memory/g/memory.stat": "total_active_file 1000\ntotal_inactive_file 500\n",
    }
    files(
        kernel / "CGROUPS",
        texts | ({} if account is None else {"cpuacct/g/cpuacct.usage": account}),
    )
    found = telemetry_program.counters("g", "eth0", [])
    assert found["cpu_s"] == cpu_s
    assert (found["throttled_s"], found["memory_held_bytes"], found["oom_kills"]) == (1.0, 3500, 3)


def test_without_a_cgroup_a_host_reports_its_own_counters_and_unknown_ones_stay_unknown(
    kernel: Path,
) -> None:
    found = telemetry_program.counters(None, "eth9", ["8:0"])
    now = counters.counters_of("store-1", found)
    assert now.cpu_s is not None
    used = counters.since(now, replace(now, cpu_s=now.cpu_s - 1, oom_kills=1))
    assert used.cpu_s == 1.0
    assert (used.memory_bytes, used.memory_held_bytes) == (800 * 1024, 300 * 1024)
    assert used.oom_kills == 2
    assert (used.network_sent_bytes, used.throttled_s, used.memory_peak_bytes) == (None, None, None)
    assert used.disk_written_bytes == 0


def test_the_program_answers_line_by_line_and_detects_reused_pids(tmp_path: Path) -> None:
    words = json.dumps({"group": None, "nic": None, "disks": ["999:999"], "log": str(tmp_path)})
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    mine = os.getpid()
    asked: list[dict[str, Any]] = [
        {"ask": "running", "processes": [[mine, started], [mine, started + 1], [2**22 + 1, 1]]},
        {"ask": "counters"},
        {"ask": "running", "processes": []},
    ]
    lines = "".join(json.dumps(one) + "\n" for one in asked)
    done = subprocess.run(
        [sys.executable, "-I", "-c", host_telemetry.source(), words],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second, third = map(json.loads, done.stdout.splitlines())
    assert first == {"answer": [True, False, False]}
    assert "FileNotFoundError" in second["error"]
    assert third == {"answer": []}


def test_only_additions_to_logs_are_copied_and_a_new_file_from_its_start(tmp_path: Path) -> None:
    def new(known: dict[str, list[int]], name: str = "") -> dict[str, tuple[int, bytes]]:
        found = telemetry_program.added(str(tmp_path), name, known)
        for path, one in found["files"].items():
            known[path] = [one["inode"], one["offset"] + len(base64.b64decode(one["data"]))]
        return {
            path: (one["offset"], base64.b64decode(one["data"]))
            for path, one in found["files"].items()
        }

    known: dict[str, list[int]] = {}
    files(tmp_path, {"osd.0.log": "one\n", "apache2/error.log": "two\n", "empty": ""})
    (tmp_path / "link").symlink_to("osd.0.log")
    (tmp_path / "linked").symlink_to("apache2")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "linked/error.log", "pipe", "apache2"):
        assert new({}, name) == {}
    first = {"osd.0.log": (0, b"one\n"), "apache2/error.log": (0, b"two\n"), "empty": (0, b"")}
    assert new(known) == first
    assert new(known) == {}
    with (tmp_path / "osd.0.log").open("a") as file:
        file.write("more\n")
    assert new(known, "apache2/error.log") == {}
    assert new(known, "not-there") == {}
    assert new(known) == {"osd.0.log": (4, b"more\n")}
    (tmp_path / "osd.0.log").write_text("new\n")
    assert new(known) == {"osd.0.log": (0, b"new\n")}


def test_limits_are_reported_with_the_names_of_devices() -> None:
    disk = RealDisk(id="/dev/disk/by-id/a", path="/dev/sda", device="8:0", size_bytes=10**9)
    assert limits_read("cpu.max max 100000\nio.max 8:0 rbps=10\nio.max 18:0 rbps=1\n", [disk]) == (
        "cpu.max max 100000; io.max /dev/sda rbps=10; io.max 18:0 rbps=1"
    )


def test_a_model_is_reported_without_the_spaces_that_scsi_fills_it_up_with(tmp_path: Path) -> None:
    (tmp_path / "device").mkdir()
    (tmp_path / "device/vendor").write_text("ATA     \n")
    (tmp_path / "device/model").write_text("HGST  HUS724020  \n")
    assert machine.model_of(tmp_path) == "ATA HGST HUS724020"


DISK, PART = "8:16", "8:17"


@pytest.mark.parametrize(
    ("file", "line", "used"),
    [
        ("/proc/swaps", "/dev/sdb partition 9 0 -2", "sdb is swapped to"),
        ("/proc/swaps", "/dev/sdb1 partition 9 0 -2", "sdb1 is swapped to"),
        ("/proc/swaps", "/swapfile file 9 0 -2", ""),
        ("/proc/swaps", "/gone partition 9 0 -2", ""),
        ("/proc/1/mountinfo", "36 35 8:17 / /srv rw - xfs /dev/sdb1 rw", "sdb1 is mounted at /srv"),
        ("/proc/self/mountinfo", "36 35 8:16 / /srv rw - xfs sdb rw", "sdb is mounted at /srv"),
        ("/proc/1/mountinfo", "36 35 8:1 / / rw - ext4 /dev/sda1 rw", ""),
    ],
)
def test_what_uses_a_disk_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, line: str, used: str
) -> None:
    (disk := tmp_path / "sdb").touch()
    numbers = {str(disk): DISK, "/dev/sdb": DISK, "/dev/sdb1": PART}

    def number(path: str) -> str:
        if path in numbers:
            return numbers[path]
        raise FileNotFoundError(path) if path == "/gone" else ValueError("not a block device")

    given = {file: f"{'Filename Type Size Used Priority' if 'swaps' in file else ''}\n{line}"}
    monkeypatch.setattr(machine, "text", lambda *parts: given.get("/".join(parts), ""))
    monkeypatch.setattr(machine, "number", number)
    monkeypatch.setattr(machine, "parts", lambda _: [("sdb1", PART)])
    monkeypatch.setattr(machine, "listed", lambda _: [])
    assert machine.uses(str(disk), DISK) == ([used] if used else [])


@pytest.mark.long  # packs and imports all that drivers need: 4 s of CPU
def test_the_suite_of_a_client_has_all_imports_of_drivers_and_none_of_reports_alone(
    tmp_path: Path,
) -> None:
    names = {name.lower() for name in suite.packages()}
    assert {"locust", "gevent", "boto3", "pydantic_core", "greenlet"} <= names
    of_reports = {"altair", "vl-convert-python", "duckdb", "python-pptx", "scipy", "optuna"}
    assert not names & {*of_reports, "influxdb-client", "numpy"}
    unpacked = tmp_path / "site"
    with tarfile.open(suite.packed(suite.Python.here(), tmp_path / "suites")) as archive:
        archive.extractall(unpacked, filter="data")
    # With nothing but the standard library and the unpacked wheels.
    source = f"import sys; sys.path.append({str(unpacked)!r})\n" + "".join(
        f"import {name}\n" for name in suite.modules()
    )
    source += "from weighbridge import drivers; print(drivers.__file__)\n"
    source += "from importlib.metadata import version; version('weighbridge')"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", source],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(unpacked))
