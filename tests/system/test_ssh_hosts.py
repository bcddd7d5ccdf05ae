"""Real hosts over SSH, under systemd: what runs there, what it may take, and
that nothing of it stays.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from machines import Machines, machines
from small_lab import sh, within
from weighbridge.common.errors import CommandFailed, TargetError, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.gateways.gateway import RootImage
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.ssh import claim, ending, startup
from weighbridge.topologies.ssh.connection import SshConnection

pytestmark = pytest.mark.system

NOTHING = RootImage(name="nothing", suite="bookworm", packages=())
BOTH = ("store-1", "store-2")
SOON_S = 30.0


def ssh_there(folder: Path, pid: int) -> str:
    """A PATH whose ssh is in the machines' network, as on a machine of theirs."""
    folder.mkdir()
    (folder / "ssh").write_text(
        f'#!/bin/sh\nexec nsenter --net=/proc/{pid}/ns/net {shutil.which("ssh")} "$@"\n'
    )
    (folder / "ssh").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def hardware_of(
    testbed: Machines, *, limits: dict[str, object] | None = None, iops: int | None = None
) -> Hardware:
    home = testbed.shared / "home" / ".ssh"
    hosts: dict[str, object] = {"client-1": {"address": "10.255.255.1"}}
    for name in BOTH:
        disk: dict[str, object] = {"id": f"/dev/disk/by-id/test-{name}-0"}
        own: dict[str, object] = {"address": testbed.hosts[name].address, "disks": [disk]}
        if name == "store-1":
            own |= limits or {}
            disk |= {} if iops is None else {"iops": iops, "bandwidth": "4MiB"}
        hosts[name] = own
    access = {"key": str(home / "id_ed25519"), "known_hosts": str(home / "known_hosts")}
    return Hardware.model_validate(
        {"name": "real", "kind": "ssh", "ssh": access, "clients": ["client-1"], "hosts": hosts}
    )


def raised(testbed: Machines, folder: Path, **parts: object) -> Hosts:
    label = f"test-{secrets.token_hex(3)}"
    hardware = hardware_of(testbed, **parts)  # type: ignore[arg-type]
    return startup.start_ssh(label, hardware, NOTHING, print, folder=folder / label, names=BOTH)


def left_over(testbed: Machines, *names: str) -> list[str]:
    """Whatever of a deployment is left on the machines, looked for past the suite."""
    script = """
        systemctl list-units --all --plain --no-legend 'weighbridge*' 2>/dev/null || true
        ls -d /opt/weighbridge/claim.json /opt/weighbridge/deployments \\
          /run/systemd/system.control/weighbridge* 2>/dev/null || true
        ls -d /sys/fs/cgroup/*/weighbridge.slice 2>/dev/null || true
        grep /opt/weighbridge /proc/1/mountinfo || true
        for one in /proc/[0-9]*; do
          tr '\\0' '\\n' <$one/environ 2>/dev/null |
            grep -q WEIGHBRIDGE_DEPLOYMENT && tr '\\0' ' ' <$one/cmdline; done || true
        for disk in /dev/wb*; do test -b $disk && blkid -p $disk || true; done
        ls -d /etc/of-the-deployment /srv/of-the-deployment /run/of-the-deployment \\
          2>/dev/null || true
    """
    return [
        f"{name}: {line}"
        for name in names or BOTH
        for line in testbed.hosts[name].run(["sh", "-c", script]).stdout.splitlines()
    ]


def there(testbed: Machines, host: Host, word: str) -> bool:
    """Whether a process with this word on its command line is on the machine."""
    script = (
        'for one in /proc/[0-9]*; do tr "\\0" " " <$one/cmdline 2>/dev/null | grep -q " '
        '[$1]" && echo yes; done; true'
    )
    return bool(
        testbed.hosts[host.name]
        .run(["sh", "-c", script.replace("[$1]", f"[{word[0]}]{word[1:]}")])
        .stdout
    )


def left_over_files(testbed: Machines, host: Host) -> list[str]:
    return [
        line
        for line in left_over(testbed, host.name)
        if "/of-the-deployment" in line.split(": ", 1)[1][:30]
    ]


def writes_s(host: Host) -> float:
    """How long the host's disk takes for 60 writes, one after the other, by dd's own clock: its
    start counts nothing.
    """
    write = 'LC_ALL=C dd if=/dev/zero of="$1" bs=4k count=60 oflag=direct 2>&1'
    printed = sh(host, write, host.disks[0])
    return float(printed.rsplit(" copied, ", 1)[1].split(" s", 1)[0])


KNOWN_LOST_S = 45.0


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    disks = {"store-1": ("1GiB",), "store-2": ("1GiB",)}
    folder = tmp_path_factory.mktemp("machines")
    with machines(folder, disks) as found, pytest.MonkeyPatch.context() as patch:
        pid = found.lab.hosts["conductor"].pid  # type: ignore[attr-defined]
        patch.setenv("PATH", ssh_there(folder / "bin", pid))
        yield found


@pytest.fixture(scope="module")
def hosts(testbed: Machines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    limits = {"cpus": 0.2, "memory": "256MiB"}
    with raised(testbed, tmp_path_factory.mktemp("deployment"), limits=limits, iops=20) as found:
        yield found
    assert left_over(testbed) == []


@pytest.fixture(params=BOTH)
def host(request: pytest.FixtureRequest, hosts: Hosts) -> Host:
    return hosts.hosts[request.param]


def test_what_is_written_is_seen_by_the_deployment_alone(testbed: Machines, host: Host) -> None:
    host.put("/etc/of-the-deployment/one.conf", b"\x00\xff" * 300_000, mode=0o640, owner="ceph")
    assert (
        host.run(["stat", "-c", "%U %a %s", "/etc/of-the-deployment/one.conf"]).stdout
        == "ceph 640 600000\n"
    )
    for path in ("/srv/of-the-deployment", "/run/of-the-deployment"):
        host.put(path, "seen")
        assert host.run(["cat", path]).stdout == "seen"
    assert left_over_files(testbed, host) == []
    with pytest.raises(TargetError, match="nobody-knows"):
        host.put("/etc/of-the-deployment/two.conf", "x", owner="nobody-knows")
    assert host.run(["ls", "-A", "/etc/of-the-deployment"]).stdout == "one.conf\n"


def test_a_command_gets_its_input_and_environment_and_its_failure_is_reported(host: Host) -> None:
    done = host.run(
        ["sh", "-c", 'cat; echo "$ONE"; echo aside >&2'], stdin=b"given\n", env={"ONE": "a b'c"}
    )
    assert (done.stdout, done.stderr) == ("given\na b'c\n", "aside\n")
    with pytest.raises(CommandFailed) as caught:
        host.run(["sh", "-c", "echo why >&2; exit 3"])
    assert (caught.value.host, caught.value.code, caught.value.output) == (host.name, 3, "why\n")


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    testbed: Machines, host: Host
) -> None:
    with pytest.raises(CommandFailed) as caught:
        host.run(["sh", "-c", "setsid sleep 7654 & sleep 7654"], timeout_s=1)
    assert caught.value.code is None
    assert within(SOON_S, lambda: not there(testbed, host, "7654"))


def test_more_commands_at_once_than_a_connection_has_sessions_all_come_to_their_end(
    host: Host,
) -> None:
    from weighbridge.gateways.together import together  # noqa: PLC0415

    def one(number: int) -> Callable[[], str]:
        return lambda: host.run(["sh", "-c", f"sleep 0.3; echo {number}"]).stdout

    programs = [host.spawn(["cat"], stderr=host.log("many.err")) for _ in range(12)]
    try:
        assert together([one(number) for number in range(20)]) == [
            f"{number}\n" for number in range(20)
        ]
    finally:
        for program in programs:
            with program:
                pass
    assert [program.returncode for program in programs] == [0] * 12


def test_services_are_alive_until_they_end_or_are_stopped_and_say_what_they_print(
    testbed: Machines, host: Host
) -> None:
    stubborn = "trap 'echo no' TERM; echo up; while :; do sleep 0.1; done"
    host.start(
        [
            Service("osd.0", ("sleep", "7001"), {"ONE": "1"}),
            Service("radosgw-client.rgw.x", ("sh", "-c", stubborn, "sh", "7002")),
            Service("short", ("sh", "-c", "echo $TWO; exit 1"), {"TWO": "a $HOME % b"}),
        ]
    )
    assert host.alive("osd.0")
    assert within(SOON_S, lambda: not host.alive("short"))
    assert host.log_tail("short.out") == ["a $HOME % b"]
    assert within(SOON_S, lambda: host.log_tail("radosgw-client.rgw.x.out") == ["up"])
    with pytest.raises(TargetError, match="already running"):
        host.start([Service("osd.0", ("sleep", "1"))])
    host.stop("radosgw-client.rgw.x", timeout_s=5)
    assert not host.alive("radosgw-client.rgw.x")
    assert host.log_tail("radosgw-client.rgw.x.out") == ["up", "no"]
    host.stop("osd.0")
    assert not host.alive("osd.0")
    assert not there(testbed, host, "7001")
    assert not there(testbed, host, "7002")
    host.start([Service("osd.0", ("sleep", "7001"))])
    assert host.alive("osd.0")
    host.stop("osd.0")
    with pytest.raises(CommandFailed, match="no-such-program"):
        host.start([Service("none", ("no-such-program",))])


def test_a_spawned_program_is_talked_to_signalled_and_killed_with_its_children(
    testbed: Machines, host: Host
) -> None:
    errors = host.log("spawned.err")
    with host.spawn(
        ["sh", "-c", "read one; echo got $one; echo why >&2; exit 4"], stderr=errors
    ) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"this\n")
        program.stdin.flush()
        assert program.stdout.read() == b"got this\n"
        assert program.wait(SOON_S) == 4
    assert errors.read_text() == "why\n"
    with host.spawn(["sleep", "7654"], stderr=errors) as program:
        with pytest.raises(subprocess.TimeoutExpired):
            program.wait(0.1)
        assert within(SOON_S, lambda: there(testbed, host, "7654"))
        program.send_signal(signal.SIGTERM)
        assert program.wait(SOON_S) in {-signal.SIGTERM, 128 + signal.SIGTERM}
    with host.spawn(["sh", "-c", "setsid sleep 7655 & echo up; wait"], stderr=errors) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"up\n"
        program.kill()
        assert program.wait(SOON_S) != 0
    assert within(SOON_S, lambda: not there(testbed, host, "7655"))


def test_counters_report_memory_disk_and_network(host: Host) -> None:
    before = host.counters()
    host.run(["dd", "if=/dev/zero", f"of={host.disks[0]}", "bs=1M", "count=8", "oflag=direct"])
    host.run(["sh", "-c", "head -c 2000000 /dev/zero | tr '\\0' x"])
    after = host.counters()
    assert before.disks is not None
    assert after.disks is not None
    assert after.disks[0].written_bytes - before.disks[0].written_bytes == 8 * 2**20
    assert (after.network_sent_bytes or 0) - (before.network_sent_bytes or 0) > 2_000_000
    assert (after.cpu_s or 0) > (before.cpu_s or 0)
    assert (after.memory_bytes or 0) > 0
    host.run(["dd", "if=/dev/zero", f"of={host.disks[0]}", "bs=1M", "count=8", "oflag=direct"])


def test_limits_hold_and_are_taken_off(hosts: Hosts) -> None:
    host = hosts.hosts["store-1"]
    spin = (
        "import time,os; end=time.monotonic()+1.5\nwhile time.monotonic()<end: "
        "pass\nprint(time.process_time())"
    )
    hosts.limit()
    before = host.counters()
    assert float(host.run(["python3", "-c", spin]).stdout) < 0.6
    after = host.counters()
    assert (after.throttled_periods or 0) > (before.throttled_periods or 0)
    limited_s = writes_s(host)
    assert limited_s > 1.5
    facts = hosts.facts()
    assert "268435456" in facts["limits store-1"]
    assert "/dev/wb0" in facts["limits store-1"]
    somaxconn = host.run(["cat", "/proc/sys/net/core/somaxconn"]).stdout.strip()
    assert f"net.core.somaxconn {somaxconn};" in facts["sysctl store-1"]
    mtu = host.run(["cat", "/sys/class/net/eth0/mtu"]).stdout.strip()
    assert facts["mtu store-1"] == mtu
    hosts.unlimit()
    before = host.counters()
    host.run(["python3", "-c", spin])
    # By what the kernel counts: how much of a CPU there is for it, others on this machine decide.
    assert host.counters().throttled_periods == before.throttled_periods
    assert within(120, lambda: writes_s(host) < limited_s / 2)


def test_what_takes_more_memory_than_its_host_has_is_ended_and_counted(hosts: Hosts) -> None:
    host = hosts.hosts["store-1"]
    host.start(
        [
            Service("quiet", ("sleep", "7003")),
            Service("hog", ("python3", "-c", "x = b'x' * 2**29; import time; time.sleep(60)")),
        ]
    )
    assert within(SOON_S, lambda: not host.alive("hog"))
    assert (host.counters().oom_kills or 0) >= 1
    assert host.alive("quiet")
    host.stop("quiet")


def test_file_systems_on_the_disks_are_the_deployments_alone(testbed: Machines, host: Host) -> None:
    mount = 'mkfs.xfs -q -f "$1"; mkdir -p /srv/node/one; mount "$1" /srv/node/one'
    sh(host, f"{mount}; touch /srv/node/one/file", host.disks[0])
    assert host.run(["ls", "/srv/node/one"]).stdout == "file\n"
    outside = testbed.hosts[host.name]
    assert sh(outside, "ls /srv; grep xfs /proc/1/mountinfo || true") == ""


def test_a_host_takes_one_deployment_and_refuses_the_second_naming_the_first(
    testbed: Machines, hosts: Hosts, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=hosts.deployment):
        raised(testbed, tmp_path)
    assert all(host.run(["true"]) for host in hosts.hosts.values())


# From here on the shared deployment is gone
# -----------------------------------------------------------------------------------


def test_a_release_that_is_not_installed_is_refused_before_anything_is_changed(
    testbed: Machines, hosts: Hosts, tmp_path: Path
) -> None:
    hosts.close()
    assert left_over(testbed) == []
    for image, words in (
        (
            RootImage(
                name="ceph-18", suite="trixie", packages=("radosgw",), version_packages=("radosgw",)
            ),
            "16.2.*needs ceph-18",
        ),
        (
            RootImage(name="ceph-16", suite="bookworm", packages=("radosgw", "not-there")),
            "not-there.*doctor",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            startup.start_ssh(
                "refused-1", hardware_of(testbed), image, print, folder=tmp_path, names=BOTH
            )
    assert left_over(testbed) == []


KILLED = """
import sys
sys.path[:0] = sys.argv[1:3]
import test_ssh_hosts as t
from weighbridge.topologies.ssh import startup
from weighbridge.common.host import Service
from weighbridge.topologies.hardware import Hardware
from pathlib import Path
hardware = Hardware.model_validate_json(Path(sys.argv[3]).read_text())
hosts = startup.start_ssh(
    "killed-abc123", hardware, t.NOTHING, print, folder=Path(sys.argv[4]), names=t.BOTH
)
for host in hosts.hosts.values():
    host.start([Service("sleeper", ("sh", "-c", "sleep 7777 & wait"))])
    made = 'mkfs.xfs -q -f "$1"; mkdir -p /srv/node; mount "$1" /srv/node'
    host.run(["sh", "-ec", made, "sh", host.disks[0]])
    spawned = host.spawn(["sleep", "7778"], stderr=host.log("x.err"))
print("running", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_conductor_left_is_removed_by_its_claim(
    testbed: Machines, tmp_path: Path
) -> None:
    here = Path(__file__).resolve().parent
    (tmp_path / "hardware.json").write_text(hardware_of(testbed).model_dump_json())
    words = [
        str(here),
        str(here.parent.parent),
        str(tmp_path / "hardware.json"),
        str(tmp_path),
    ]
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as conductor:
        assert conductor.stdout is not None
        assert any(line == b"running\n" for line in conductor.stdout)
        os.kill(conductor.pid, signal.SIGKILL)
    assert any("7777" in line for line in left_over(testbed, "store-1"))
    take_away(testbed, *BOTH)
    assert left_over(testbed) == []


def take_away(testbed: Machines, *names: str) -> None:
    hardware = hardware_of(testbed)
    for name in names:
        shell = SshConnection(name, hardware.hosts[name], hardware.access)
        shell.open()
        claimed = claim.read(shell, hardware.access.folder)
        assert claimed is not None
        ending.give_back(shell, claimed)
        shell.close()


def test_a_host_that_stops_answering_is_reported_soon_and_the_others_are_given_back(
    testbed: Machines, tmp_path: Path
) -> None:
    found = raised(testbed, tmp_path)
    lost, other = found.hosts["store-1"], found.hosts["store-2"]
    lost.start([Service("sleeper", ("sleep", "7004"))])
    program = lost.spawn(["cat"], stderr=lost.log("cat.err"))
    testbed.hosts["store-1"].run(["ip", "link", "set", "eth0", "down"])
    try:
        started = time.monotonic()
        with pytest.raises(TargetError, match=r"store-1.*stopped answering"):
            lost.run(["sleep", "60"], timeout_s=120)
        assert time.monotonic() - started < KNOWN_LOST_S
        with pytest.raises(TargetError, match="stopped answering"):
            lost.alive("sleeper")
        assert program.stdout is not None
        assert program.stdout.read() == b""
        assert (program.wait(), program.poll()) == (255, 255)
        assert "stopped answering" in lost.log("cat.err").read_text()
        assert other.run(["echo", "fine"]).stdout == "fine\n"
        assert lost.log("").is_dir()
        started = time.monotonic()
        with pytest.raises(TargetError, match="store-1"):
            found.close()
        assert time.monotonic() - started < KNOWN_LOST_S
        assert left_over(testbed, "store-2") == []
    finally:
        testbed.hosts["store-1"].run(["ip", "link", "set", "eth0", "up"])
    found.close()
    assert left_over(testbed) == []
    for pipe in (program.stdin, program.stdout):
        assert pipe is not None
        pipe.close()
