"""Lab hosts for real: what they are, that their limits hold, and that nothing of them is left on
any path.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from weighbridge.common.errors import (
    CommandFailed,
    MissingMeans,
    TargetError,
    UsageError,
    WeighbridgeError,
)
from weighbridge.common.host import Counters, Host, Service
from weighbridge.gateways.swift.swift import Swift
from weighbridge.surroundings import place
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.images import ensure
from weighbridge.topologies.kept_logs import keep
from weighbridge.topologies.lab import LabHosts, leftovers, raise_lab
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.runc import Runc

pytestmark = [pytest.mark.system, pytest.mark.alone]

MIB = 2**20
HARDWARE = Hardware.model_validate(
    {
        "name": "lab-test",
        "kind": "lab",
        "hosts": {
            "client-1": {"memory": "512MiB", "nic": "200Mbit"},
            "gateway-1": {"cpus": 0.25, "memory": "128MiB", "nic": "200Mbit"},
            "store-1": {
                "memory": "512MiB",
                "disks": [{"size": "1GiB", "bandwidth": "20MiB"}, {"size": "512MiB"}],
            },
        },
    }
)
ROOT = Path("/")
PYTHON = sys.executable


def labelled(name: str) -> str:
    """A label that no other run of these tests on this machine has: cgroups are found by it."""
    return f"labtest-{name}-{secrets.token_hex(3)}"


def raised(
    label: str, folder: Path, state: Path, images: Mapping[str, Path] | None = None
) -> LabHosts:
    folder.mkdir(exist_ok=True)
    given = dict.fromkeys(HARDWARE.hosts, ROOT) if images is None else images
    return raise_lab(
        label,
        HARDWARE,
        given,
        lambda line: None,
        folder=folder,
        names=list(HARDWARE.hosts),
        state=state,
    )


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    home = tmp_path_factory.mktemp("lab")
    with raised(labelled("shared"), home / "deployment", home / "state") as hosts:
        yield hosts


@pytest.fixture
def client(lab: LabHosts) -> Host:
    return lab.hosts["client-1"]


@pytest.fixture
def gateway(lab: LabHosts) -> Host:
    return lab.hosts["gateway-1"]


@pytest.fixture
def store(lab: LabHosts) -> Host:
    return lab.hosts["store-1"]


def within(seconds: float, happened: object) -> bool:
    assert callable(happened)
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


# what a host is
# ------------------------------------------------------------------------------------------------------------------


def test_hosts_have_names_addresses_and_reach_each_other(
    client: Host, gateway: Host, store: Host
) -> None:
    assert [host.address for host in (client, gateway, store)] == [
        "10.80.0.10",
        "10.80.0.11",
        "10.80.0.12",
    ]
    gateway.start(
        [Service("web", (PYTHON, "-m", "http.server", "8080", "--directory", "/var/log/host"))]
    )
    ask = (
        "import sys, urllib.request as u; print(u.urlopen('http://gateway-1:8080/', "
        "timeout=2).status)"
    )
    assert within(20, lambda: _succeeds(client, [PYTHON, "-c", ask]))
    gateway.stop("web")
    assert client.run(["hostname"]).stdout == "client-1\n"


def _succeeds(host: Host, argv: list[str]) -> bool:
    try:
        host.run(argv)
    except CommandFailed:
        return False
    return True


def test_a_host_sees_only_its_own_processes_and_loopback_and_nic(client: Host) -> None:
    script = (
        "import psutil; print(sorted(psutil.net_if_addrs()), max(psutil.pids()) < 2000, "
        "psutil.Process(1).cmdline()[0])"
    )
    assert client.run([PYTHON, "-c", script]).stdout == "['eth0', 'lo'] True /bin/sh\n"


def test_the_projects_python_works_on_a_host_that_makes_the_load(client: Host) -> None:
    script = (
        "import gevent, gevent.monkey, locust, boto3, psutil; "
        "gevent.joinall([gevent.spawn(gevent.sleep, 0.01)]); print('fine')"
    )
    assert client.run([PYTHON, "-c", script], timeout_s=120).stdout == "fine\n"


def test_this_machines_files_cannot_be_changed_from_a_host(client: Host, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="Read-only file system"):
        client.run(["touch", "/etc/weighbridge-test"])
    client.run(
        [
            "touch",
            "/tmp/weighbridge-test",
            "/run/weighbridge-test",
            "/var/log/host/weighbridge-test",
        ]
    )
    assert not Path("/tmp/weighbridge-test").exists()
    assert not Path("/run/weighbridge-test").exists()
    assert client.log("weighbridge-test").exists()


def test_a_host_mounts_a_file_system_on_its_own_disk_and_cannot_open_anothers(
    store: Host, gateway: Host
) -> None:
    assert store.disks == ("/dev/wb0", "/dev/wb1")
    store.run(
        [
            "sh",
            "-ec",
            (
                "mkfs.xfs -q -f /dev/wb1; mkdir -p /run/m; mount -t xfs /dev/wb1 /run/m; echo kept "
                ">/run/m/f; umount /run/m"
            ),
        ]
    )
    used = store.counters()
    assert used.disk_written_bytes is not None
    assert used.disk_written_bytes > 5
    with pytest.raises(CommandFailed, match=r"Permission denied|Operation not permitted"):
        gateway.run(["sh", "-ec", "mknod /tmp/stolen b 7 0; head -c 1 /tmp/stolen"])


# programs
# ------------------------------------------------------------------------------------------------------------------------


def test_a_command_gets_stdin_and_environment_and_gives_both_outputs(client: Host) -> None:
    done = client.run(
        ["sh", "-c", "cat; echo $WORD; echo err >&2"], stdin="in ", env={"WORD": "a b"}
    )
    assert (done.stdout, done.stderr) == ("in a b\n", "err\n")


def test_a_command_that_fails_says_with_what_and_what_it_said(client: Host) -> None:
    with pytest.raises(CommandFailed, match="because") as failed:
        client.run(["sh", "-c", "echo because >&2; exit 3"])
    assert (failed.value.host, failed.value.code) == ("client-1", 3)
    with pytest.raises(CommandFailed, match="no-such-program"):
        client.run(["no-such-program"])


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(client: Host) -> None:
    before = _processes(client)
    with pytest.raises(CommandFailed, match="took too long") as failed:
        client.run(["sh", "-c", "echo said; setsid sleep 1000 & sleep 1000"], timeout_s=0.5)
    assert failed.value.code is None
    assert "said" in failed.value.output
    assert within(5, lambda: _processes(client) == before)


def _processes(host: Host) -> set[str]:
    return set(
        host.run(
            [
                PYTHON,
                "-c",
                (
                    "import psutil; print(*(p.pid for p in psutil.process_iter() if p.name() == "
                    "'sleep'))"
                ),
            ]
        ).stdout.split()
    )


def test_services_run_until_they_are_stopped_and_leave_no_zombie(client: Host) -> None:
    client.start(
        [
            Service("one", ("sleep", "1000")),
            Service("two", ("sh", "-c", "echo $WORD; sleep 1000 & wait"), {"WORD": "a 'b'"}),
        ]
    )
    assert client.alive("one")
    assert client.alive("two")
    assert within(5, lambda: client.tail("two.out") == ["a 'b'"])
    with pytest.raises(TargetError, match="one is already running"):
        client.start([Service("one", ("sleep", "1000"))])
    client.stop("one")
    client.stop("two")
    client.stop("two")
    assert not client.alive("one")
    assert not client.alive("two")
    script = (
        "import psutil; print([p.name() for p in psutil.process_iter() if p.status() == "
        "psutil.STATUS_ZOMBIE])"
    )
    assert within(5, lambda: client.run([PYTHON, "-c", script]).stdout == "[]\n")


def test_a_service_that_ignores_term_is_killed_with_its_children(client: Host) -> None:
    before = _processes(client)
    client.start([Service("deaf", ("sh", "-c", "trap '' TERM; sleep 1000 & echo deaf; wait"))])
    assert within(5, lambda: client.tail("deaf.out") == ["deaf"])
    client.stop("deaf", timeout_s=0.2)
    assert not client.alive("deaf")
    assert within(5, lambda: _processes(client) == before)


def test_a_service_that_dies_is_not_alive_and_its_log_tells(client: Host) -> None:
    client.start([Service("brief", ("sh", "-c", "echo no such luck >&2; exit 1"))])
    assert within(5, lambda: not client.alive("brief"))
    assert within(5, lambda: client.tail("brief.out") == ["no such luck"])


def test_a_service_whose_program_is_missing_is_refused_and_none_of_its_company_is_started(
    client: Host,
) -> None:
    with pytest.raises(CommandFailed, match="no-such-daemon: no such program"):
        client.start([Service("first", ("sleep", "1000")), Service("second", ("no-such-daemon",))])
    assert not client.alive("first")


def test_a_spawned_program_talks_over_pipes_inside_the_hosts_limits(
    client: Host, tmp_path: Path
) -> None:
    with client.spawn(
        ["sh", "-c", "read x; echo got $x; echo err >&2; cat /proc/self/cgroup; exit 5"],
        stderr=tmp_path / "err",
    ) as program:
        out, _ = program.communicate(b"word\n", timeout=20)
    assert out.splitlines()[0] == b"got word"
    assert b"/weighbridge/labtest-shared-" in out
    assert program.returncode == 5
    assert (tmp_path / "err").read_text() == "err\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, 137), (signal.SIGTERM, 143)])
def test_ending_a_spawned_program_ends_it_on_the_host(
    client: Host, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    before = _processes(client)
    with client.spawn(
        ["sh", "-c", "echo ready; exec sleep 1000"], stderr=tmp_path / "err"
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        program.send_signal(number)
        assert program.wait(10) == code
    assert within(5, lambda: _processes(client) == before)


def test_killing_a_program_at_once_leaves_nothing_of_it(client: Host, tmp_path: Path) -> None:
    before = _processes(client)
    with client.spawn(["sleep", "1000"], stderr=tmp_path / "err") as program:
        program.kill()
        assert program.wait(10) != 0
    assert within(5, lambda: _processes(client) == before)


# files
# ---------------------------------------------------------------------------------------------------------------------------


def test_files_are_put_whole_with_mode_and_owner(client: Host) -> None:
    client.put("/run/a/b/file", "text\n", mode=0o640, owner="daemon")
    assert client.run(["stat", "-c", "%a %U %s", "/run/a/b/file"]).stdout == "640 daemon 5\n"
    client.put("/run/a/b/file", b"\0\1")
    assert client.run(["stat", "-c", "%a %U %s", "/run/a/b/file"]).stdout == "644 root 2\n"
    assert client.run(["ls", "-A", "/run/a/b"]).stdout == "file\n"
    with pytest.raises(TargetError, match="no user nobody-like-this"):
        client.put("/run/x", "", owner="nobody-like-this")


def test_links_of_a_host_are_followed_inside_it(client: Host, tmp_path: Path) -> None:
    client.run(["ln", "-sfn", "/run", "/tmp/link"])
    client.run(["ln", "-sfn", "../../../../../run/up", "/tmp/climb"])
    client.run(["ln", "-sfn", "/tmp/loop", "/tmp/loop"])
    client.put("/tmp/link/weighbridge-linked", "inside")
    client.put("/tmp/climb/file", "inside")
    assert client.run(["cat", "/run/weighbridge-linked", "/run/up/file"]).stdout == "insideinside"
    assert not Path("/run/weighbridge-linked").exists()
    assert not Path("/run/up").exists()
    with pytest.raises(TargetError, match="too many symbolic links"):
        client.put("/tmp/loop/file", "")


def test_a_link_that_a_host_put_into_its_logs_is_not_read_written_or_kept_on_this_machine(
    gateway: Host, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("mine")
    gateway.run(["ln", "-s", str(secret), "/var/log/host/stolen"])
    try:
        assert gateway.log("stolen").is_symlink()
        (told,) = gateway.tail("stolen")
        assert told.endswith("is a link, which is not followed")
        with pytest.raises(TargetError, match="stolen: is a link"):
            gateway.spawn(["sh", "-c", "echo theirs >&2"], stderr=gateway.log("stolen"))
        keep(gateway.log(""), tmp_path / "logs", "gateway-1")
    finally:
        gateway.run(["rm", "/var/log/host/stolen"])
    assert secret.read_text() == "mine"
    assert "stolen: is a link" in (tmp_path / "logs" / "gateway-1.not-copied.txt").read_text()
    assert not (tmp_path / "logs" / "gateway-1" / "stolen").exists()


def test_hosts_of_one_image_change_nothing_of_it_nor_of_each_other(tmp_path: Path) -> None:
    image = ensure(next(iter(Swift.releases.values())), lambda line: None, store=place().images)
    label = labelled("image")
    with raised(
        label, tmp_path / "deployment", tmp_path / "state", {"gateway-1": image, "store-1": image}
    ) as hosts:
        gateway, store = hosts.hosts["gateway-1"], hosts.hosts["store-1"]
        gateway.put("/etc/swift/weighbridge-test.conf", "x", owner="swift", mode=0o600)
        gateway.run(["rm", "/etc/debian_version"])
        # The number of the user swift is the image's own, not this machine's.
        assert (
            gateway.run(["stat", "-c", "%U %a", "/etc/swift/weighbridge-test.conf"]).stdout
            == "swift 600\n"
        )
        # /var/run is an absolute link to /run in Debian.
        gateway.put("/var/run/here", "run")
        assert gateway.run(["cat", "/run/here"]).stdout == "run"
        assert not Path("/run/here").exists()
        assert store.run(["cat", "/etc/debian_version"]).stdout
        assert (
            store.run(["sh", "-c", "ls /etc/swift; cat /etc/hosts"]).stdout.count(
                "weighbridge-test"
            )
            == 0
        )
        assert f"image {image.name}" in hosts.facts()
    assert (image / "etc/debian_version").exists()
    assert not (image / "etc/swift/weighbridge-test.conf").exists()
    assert_gone(label, tmp_path / "deployment", tmp_path / "state")


# limits
# --------------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def limited(lab: LabHosts) -> LabHosts:
    lab.limit()
    return lab


def test_limits_are_told_as_the_kernel_has_them(limited: LabHosts) -> None:
    facts = limited.facts()
    # A quarter of a CPU in the hardware's periods of 10 ms.
    assert {"2500", "10000"} <= set(facts["limits gateway-1"].replace(";", "").split())
    assert facts["CPU quota"].startswith("in periods of 10 ms, of which a CPU takes slices of ")
    assert "rate 200Mbit" in facts["limits gateway-1"]
    assert "/dev/wb0" in facts["limits store-1"]
    assert str(20 * MIB) in facts["limits store-1"]
    assert facts["disks without limits"].startswith("store-1")


def test_the_cpu_quota_holds(limited: LabHosts, gateway: Host) -> None:
    before = gateway.counters()
    started = time.monotonic()
    gateway.run(
        [
            PYTHON,
            "-c",
            "import time; end = time.monotonic() + 2\nwhile time.monotonic() < end: pass",
        ]
    )
    took_s = time.monotonic() - started
    after = gateway.counters()
    assert _more(before, after, "cpu_s") <= 0.25 * took_s * 1.2 + 0.05
    assert _more(before, after, "throttled_s") > 0.2


def _more(before: Counters, after: Counters, name: str) -> float:
    first, second = getattr(before, name), getattr(after, name)
    assert first is not None
    assert second is not None
    return float(second - first)


def test_a_program_beyond_the_memory_of_its_host_is_killed_and_the_host_stands(
    gateway: Host,
) -> None:
    before = gateway.counters()
    with pytest.raises(CommandFailed) as killed:
        gateway.run(
            [PYTHON, "-c", "kept = []\nwhile True: kept.append(bytearray(4 << 20))"], timeout_s=120
        )
    assert killed.value.code == 137
    after = gateway.counters()
    assert _more(before, after, "oom_kills") >= 1
    assert after.memory_peak_bytes is not None
    assert after.memory_peak_bytes <= 128 * MIB
    assert gateway.run(["echo", "stands"]).stdout == "stands\n"


@pytest.mark.parametrize("how", ["oflag=direct", "conv=fsync", "then sync"])
def test_the_disk_limit_holds_for_direct_and_for_written_back_writes(
    limited: LabHosts, store: Host, how: str
) -> None:
    store.run(
        [
            "sh",
            "-ec",
            "mkfs.xfs -q -K -f /dev/wb0; mkdir -p /run/limited; mount -t xfs /dev/wb0 /run/limited",
        ],
        timeout_s=120,
    )
    try:
        write = (
            "dd if=/dev/zero of=/run/limited/f bs=1M count=60 "
            f"{'' if how == 'then sync' else how} 2>/dev/null"
        )
        started = time.monotonic()
        store.run(["sh", "-ec", f"{write}; sync -f /run/limited"], timeout_s=120)
        took_s = time.monotonic() - started
    finally:
        store.run(["umount", "/run/limited"])
    # 60 MiB at 20 MiB/s; unlimited it takes less than 0.3 s. A little passes before the throttle
    # first holds.
    assert took_s > 2.2


SEND = """
import socket, sys, time
out = socket.create_connection((sys.argv[1], 5001), timeout=10)
end, sent = time.monotonic() + 3, 0
while time.monotonic() < end:
    sent += out.send(bytes(65536))
print(sent * 8 / 3)
"""
RECEIVE = """
import socket
server = socket.create_server(("0.0.0.0", 5001))
print("listens", flush=True)
while True:
    peer, _ = server.accept()
    while peer.recv(1 << 20):
        pass
"""


def test_the_rate_of_a_nic_holds_in_both_directions(
    limited: LabHosts, client: Host, store: Host
) -> None:
    for receiver, sender in (
        (store, client),
        (client, store),
    ):  # only the client's NIC is limited: what it sends, what it gets
        receiver.start([Service("sink", (PYTHON, "-c", RECEIVE))])
        assert within(20, lambda at=receiver: at.tail("sink.out")[-1:] == ["listens"])
        rate_bit_per_s = float(sender.run([PYTHON, "-c", SEND, receiver.address]).stdout)
        receiver.stop("sink")
        assert rate_bit_per_s < 200e6 * 1.15
        assert rate_bit_per_s > 200e6 * 0.4


def test_dropping_caches_empties_the_page_cache(client: Host, tmp_path: Path) -> None:
    big = tmp_path / "big"
    big.write_bytes(bytes(64 * MIB))
    assert "whole machine" in client.drop_kernel_caches()
    # What is read now has to come from the disk, and is counted there.
    cached = int(
        next(
            line.split()[1]
            for line in Path("/proc/meminfo").read_text().splitlines()
            if line.startswith("Dirty:")
        )
    )
    assert cached < 64 * 1024


# the end
# -------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traces:
    """What is on this machine of one deployment, as the kernel tells it."""

    namespaces: frozenset[str]
    mounts: int
    disks: frozenset[str]
    cgroups: frozenset[str]
    processes: frozenset[str]
    root_limits: frozenset[str]
    containers: frozenset[str]
    bundles: bool


NOTHING = Traces(
    frozenset(), 0, frozenset(), frozenset(), frozenset(), frozenset(), frozenset(), bundles=False
)


def traces(label: str, folder: Path, state: Path, minors: frozenset[int] = frozenset()) -> Traces:
    """Everything that carries the label or lies in the folder; `minors` are loop devices the
    deployment had.
    """
    namespaces, processes, mounts = set(), set(), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ours = (
                f"/weighbridge/{label}/" in (process / "cgroup").read_text()
                or f"{folder}/" in (process / "cmdline").read_text()
            )
            if ours and int(process.name) != os.getpid():
                processes.add(process.name)
                namespaces |= {str(one.readlink()) for one in (process / "ns").iterdir()}
            if int(process.name) == os.getpid():
                mounts = sum(
                    str(folder) in line or "weighbridge" in line
                    for line in (process / "mountinfo").read_text().splitlines()
                )
        except OSError:
            continue
    own = {str(one.readlink()) for one in Path("/proc/self/ns").iterdir()}
    disks = set()
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if str(folder) in backing.read_text():
                disks.add(backing.parent.parent.name)
        except OSError:
            continue
    throttles = Path("/sys/fs/cgroup/blkio").glob("blkio.throttle.*_device")
    limits = {
        line
        for file in throttles
        for line in file.read_text().splitlines()
        if line.split()[0] in {f"7:{one}" for one in minors}
    }
    cgroups = {str(path) for path in Path("/sys/fs/cgroup").rglob(label) if path.is_dir()}
    containers = {path.name for path in (state / "runc").glob("*")}
    return Traces(
        frozenset(namespaces - own),
        mounts,
        frozenset(disks),
        frozenset(cgroups),
        frozenset(processes),
        frozenset(limits),
        frozenset(containers),
        bundles=(folder / "bundles").exists(),
    )


def assert_gone(
    label: str, folder: Path, state: Path, minors: frozenset[int] = frozenset()
) -> None:
    """Nothing is left.

    What ended is collected by the machine's own first process, which takes its time on some
    machines.
    """
    within(10, lambda: traces(label, folder, state, minors) == NOTHING)
    assert traces(label, folder, state, minors) == NOTHING


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state folder; what a test that failed left behind it is removed."""
    folder = tmp_path / "state"
    yield folder
    leftovers.remove(state=folder)


def test_closing_takes_everything_away_but_the_logs_within_a_second(
    tmp_path: Path, state: Path
) -> None:
    folder, label = tmp_path / "deployment", labelled("close")
    hosts = raised(label, folder, state)
    hosts.limit()
    store = hosts.hosts["store-1"]
    store.run(
        ["sh", "-ec", "mkfs.xfs -q -K -f /dev/wb1; mkdir -p /run/m; mount -t xfs /dev/wb1 /run/m"]
    )
    store.start([Service("busy", ("sh", "-c", "while :; do echo x >/run/m/f; done"))])
    store.put("/var/log/host/kept", "kept")
    minors = frozenset(
        int(name.removeprefix("loop")) for name in traces(label, folder, state).disks
    )
    standing = traces(label, folder, state, minors)
    assert len(standing.disks) == 2
    assert len(standing.containers) == 4
    assert len(standing.namespaces) == 4 * 5
    assert standing.processes
    assert standing.cgroups
    assert standing.mounts == 0  # they are in namespaces of the hosts
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        assert {line.split()[1] for line in standing.root_limits} == {str(20 * MIB)}
    started = time.monotonic()
    hosts.close()
    took_s = time.monotonic() - started
    hosts.close()
    assert_gone(label, folder, state, minors)
    assert {path.name for path in folder.iterdir()} == {"logs"}
    assert (folder / "logs/store-1/kept").read_text() == "kept"
    assert leftovers.find(state=state) == ()
    assert took_s < 5  # 0.2 s when the machine is free


# A shell starts what it runs in the background with SIGINT ignored, and Python then leaves it so:
# tests may be run like that.
CONDUCTOR = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, sys.argv[3])
from test_lab import raised
hosts = raised(sys.argv[4], Path(sys.argv[1]), Path(sys.argv[2]))
hosts.limit()
hosts.hosts["client-1"].spawn(["sleep", "1000"], stderr=Path("/dev/null"))
print("stands", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("when", ["claimed", "half-way", "standing"])
def test_what_a_killed_conductor_left_is_found_and_removed(
    tmp_path: Path, state: Path, when: str
) -> None:
    folder, label = tmp_path / "deployment", labelled("killed")
    argv = [PYTHON, "-c", CONDUCTOR, str(folder), str(state), str(Path(__file__).parent), label]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ) as conductor:
        if when == "standing":
            assert conductor.stdout is not None
            assert conductor.stdout.readline() == b"stands\n"
            with pytest.raises(UsageError, match=f"{label} has been running on this machine"):
                leftovers.remove(state=state)
            with pytest.raises(UsageError, match=f"{label} has been running on this machine"):
                raised(labelled("second"), tmp_path / "second", state)
        else:
            pattern = "claims/*.json" if when == "claimed" else "runc/*"
            assert within(60, lambda: any(state.glob(pattern)))
        conductor.kill()
        conductor.wait()
    minors = frozenset(
        int(name.removeprefix("loop")) for name in traces(label, folder, state).disks
    )
    found = leftovers.find(state=state)
    assert {one.deployment for one in found} == {label}
    with pytest.raises(UsageError, match=label):
        raised(labelled("second"), tmp_path / "second", state)
    leftovers.remove(label, state=state)
    assert_gone(label, folder, state, minors)
    assert not folder.exists()
    assert leftovers.find(state=state) == ()
    assert leftovers.remove(state=state) == ()


def test_hosts_that_were_left_standing_refuse_others_until_they_are_taken_down(
    tmp_path: Path, state: Path
) -> None:
    folder, label = tmp_path / "deployment", labelled("killed")
    argv = [
        PYTHON,
        "-c",
        CONDUCTOR.replace("time.sleep(1000)", ""),
        str(folder),
        str(state),
        str(Path(__file__).parent),
        label,
    ]
    subprocess.run(
        argv,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
    )
    assert len(Runc(state / "runc").containers()) == 4
    with pytest.raises(UsageError, match=f"{label}: left running") as refused:
        raised(labelled("second"), tmp_path / "second", state)
    assert "weighbridge down" in refused.value.advice
    leftovers.remove(state=state)
    assert_gone(label, folder, state)


def _fails_half_way(
    label: str, tmp_path: Path, state: Path, images: Mapping[str, Path] | None = None
) -> WeighbridgeError:
    folder = tmp_path / "deployment"
    with pytest.raises(WeighbridgeError) as failed:
        raised(label, folder, state, images)
    assert_gone(label, folder, state)
    assert not list((state / "claims").iterdir())
    return failed.value


def test_a_root_that_cannot_start_takes_the_other_hosts_with_it(
    tmp_path: Path, state: Path
) -> None:
    (tmp_path / "image/usr").mkdir(parents=True)
    error = _fails_half_way(
        labelled("broken"), tmp_path, state, {"gateway-1": tmp_path / "image", "store-1": ROOT}
    )
    assert isinstance(error, CommandFailed)
    assert error.host == "gateway-1"
    assert "/bin/sh" in error.output


def test_a_machine_that_has_no_more_loop_devices_takes_all_hosts_away(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach = LoopDisk.attach

    def second_fails(path: str, size_bytes: int, folder: Path) -> LoopDisk:
        if path == "/dev/wb1":
            raise MissingMeans("no loop device")
        return attach(path, size_bytes, folder)

    monkeypatch.setattr(LoopDisk, "attach", second_fails)
    assert isinstance(_fails_half_way(labelled("loops"), tmp_path, state), MissingMeans)


def test_a_network_that_cannot_be_joined_takes_all_hosts_away(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "weighbridge.topologies.lab.network.host_batch", lambda port: "no such command\n"
    )
    assert isinstance(_fails_half_way(labelled("wires"), tmp_path, state), CommandFailed)


def test_an_interruption_while_hosts_start_takes_them_away(tmp_path: Path, state: Path) -> None:
    folder, label = tmp_path / "deployment", labelled("killed")
    argv = [PYTHON, "-c", CONDUCTOR, str(folder), str(state), str(Path(__file__).parent), label]
    with subprocess.Popen(
        argv,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as conductor:
        assert within(60, lambda: any(state.glob("runc/*")))
        conductor.send_signal(signal.SIGINT)
        assert conductor.wait(30) != 0
    assert_gone(label, folder, state)
    assert not list((state / "claims").iterdir())


def test_a_checkout_below_tmp_is_seen_by_hosts_that_make_the_load_and_a_folder_may_have_blanks(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = Path(tempfile.mkdtemp(prefix="checkout ", dir="/tmp"))
    try:
        (checkout / "program").write_text("here\n")
        monkeypatch.setattr(
            "weighbridge.topologies.lab.lab._python_of_this_process", lambda: (checkout,)
        )
        with raised(labelled("blanks"), tmp_path / "a folder", state) as hosts:
            client = hosts.hosts["client-1"]
            assert client.run(["cat", str(checkout / "program")]).stdout == "here\n"
            with pytest.raises(CommandFailed, match="Read-only file system"):
                client.run(["touch", str(checkout / "other")])
            assert (
                client.run(["find", "/tmp", "-mindepth", "1", "-maxdepth", "1"]).stdout
                == f"{checkout}\n"
            )
    finally:
        shutil.rmtree(checkout)
