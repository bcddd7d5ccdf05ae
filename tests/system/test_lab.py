"""What a host of the lab is: its network, programs, services and files."""

from __future__ import annotations

import errno
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from small_lab import PYTHON, labelled, python, raised, within
from weighbridge.common.errors import CommandFailed, TargetError, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import keep
from weighbridge.topologies.lab import LabHosts, ending
from weighbridge.topologies.lab.cgroup import Cgroups

pytestmark = pytest.mark.system


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
    assert python(client, script) == "['eth0', 'lo'] True /bin/sh\n"


def test_the_projects_python_works_on_a_host_that_makes_the_load(client: Host) -> None:
    script = (
        "import gevent, gevent.monkey, locust, boto3, psutil; "
        "gevent.joinall([gevent.spawn(gevent.sleep, 0.01)]); print('fine')"
    )
    assert python(client, script) == "fine\n"


def test_this_machines_files_cannot_be_changed_from_a_host(client: Host, tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match="Read-only file system"):
        client.run(["touch", "/etc/weighbridge-test"])
    for folder in ("/tmp", "/run", "/var/log/host"):
        client.run(["touch", f"{folder}/weighbridge-test"])
    assert not Path("/tmp/weighbridge-test").exists()
    assert not Path("/run/weighbridge-test").exists()
    assert client.log("weighbridge-test").exists()


def test_a_host_mounts_a_file_system_on_its_own_disk_and_cannot_open_anothers(
    store: Host, gateway: Host
) -> None:
    assert store.disks == ("/dev/wb0", "/dev/wb1")
    mount = "mkfs.xfs -q -f /dev/wb1; mkdir -p /run/m; mount -t xfs /dev/wb1 /run/m"
    store.run(["sh", "-ec", f"{mount}; echo kept >/run/m/f; umount /run/m"])
    used = store.counters()
    assert used.disk_written_bytes is not None
    assert used.disk_written_bytes > 5
    with pytest.raises(CommandFailed, match=r"Permission denied|Operation not permitted"):
        gateway.run(["sh", "-ec", "mknod /tmp/stolen b 7 0; head -c 1 /tmp/stolen"])


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
        client.run(["sh", "-c", "echo said; setsid sleep 1000 & sleep 1000"], timeout_s=3)
    assert failed.value.code is None
    assert "said" in failed.value.output
    assert within(30, lambda: _processes(client) == before)


def _processes(host: Host) -> set[str]:
    sleeping = "(p.pid for p in psutil.process_iter() if p.name() == 'sleep')"
    return set(python(host, f"import psutil; print(*{sleeping})").split())


def test_services_run_until_they_are_stopped_and_leave_no_zombie(client: Host) -> None:
    client.start(
        [
            Service("one", ("sleep", "1000")),
            Service("two", ("sh", "-c", "echo $WORD; sleep 1000 & wait"), {"WORD": "a 'b'"}),
        ]
    )
    assert client.alive("one")
    assert client.alive("two")
    assert within(30, lambda: client.log_tail("two.out") == ["a 'b'"])
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
    assert within(30, lambda: python(client, script) == "[]\n")


def test_a_service_that_ignores_term_is_killed_with_its_children(client: Host) -> None:
    before = _processes(client)
    client.start([Service("deaf", ("sh", "-c", "trap '' TERM; sleep 1000 & echo deaf; wait"))])
    assert within(30, lambda: client.log_tail("deaf.out") == ["deaf"])
    client.stop("deaf", timeout_s=0.2)
    assert not client.alive("deaf")
    assert within(30, lambda: _processes(client) == before)


def test_a_service_that_dies_is_not_alive_and_its_log_gives_the_reason(client: Host) -> None:
    client.start([Service("brief", ("sh", "-c", "echo no such luck >&2; exit 1"))])
    assert within(30, lambda: not client.alive("brief"))
    assert within(30, lambda: client.log_tail("brief.out") == ["no such luck"])


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
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(b"word\n")
        program.stdin.close()
        out = program.stdout.read()
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
    assert within(30, lambda: _processes(client) == before)


def test_killing_a_program_at_once_leaves_nothing_of_it(client: Host, tmp_path: Path) -> None:
    before = _processes(client)
    with client.spawn(["sleep", "1000"], stderr=tmp_path / "err") as program:
        program.kill()
        assert program.wait(10) != 0
    assert within(30, lambda: _processes(client) == before)


def test_files_are_put_complete_with_mode_and_owner(client: Host) -> None:
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
        (line,) = gateway.log_tail("stolen")
        assert line.endswith("is a link, which is not followed")
        with pytest.raises(TargetError, match="stolen: is a link"):
            gateway.spawn(["sh", "-c", "echo theirs >&2"], stderr=gateway.log("stolen"))
        keep(gateway.log(""), tmp_path / "logs", "gateway-1")
    finally:
        gateway.run(["rm", "/var/log/host/stolen"])
    assert secret.read_text() == "mine"
    assert "stolen: is a link" in (tmp_path / "logs" / "gateway-1.not-copied.txt").read_text()
    assert not (tmp_path / "logs" / "gateway-1" / "stolen").exists()


OWN = Hardware.model_validate(
    {
        "name": "lab-own",
        "kind": "lab",
        "hosts": {
            "client-1": {"memory": "256MiB"},
            "gateway-1": {"memory": "256MiB", "cpuset": "0"},
        },
    }
)
BURN = """
import os, time
end, ran_on = time.monotonic() + 1, set()
for _ in range(3):
    if not os.fork():
        break
while time.monotonic() < end:
    ran_on.add(int(open("/proc/self/stat").read().rpartition(")")[2].split()[36]))
print(*sorted(ran_on), flush=True)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    home = tmp_path_factory.mktemp("own")
    with raised(labelled("own"), home / "deployment", home / "state", hardware=OWN) as hosts:
        hosts.limit()
        yield hosts


def _affinity(host: Host) -> str:
    return python(host, "import os; print(*os.sched_getaffinity(0))").strip()


def test_its_programs_run_on_these_cpus_alone_however_many_they_are(own: LabHosts) -> None:
    gateway = own.hosts["gateway-1"]
    before, started = gateway.counters(), time.monotonic()
    ran_on = python(gateway, BURN).split()
    took_s, after = time.monotonic() - started, gateway.counters()
    assert set(ran_on) == {"0"}
    assert before.cpu_s is not None
    assert after.cpu_s is not None
    assert after.cpu_s - before.cpu_s <= took_s + 0.05
    assert _affinity(gateway) == "0"
    assert len(_affinity(own.hosts["client-1"]).split()) > 1


def test_the_facts_have_the_cpus_as_the_kernel_has_them(own: LabHosts) -> None:
    facts = own.facts()
    assert "cpuset.cpus 0;" in facts["limits gateway-1"]
    assert "cpuset" not in facts["limits client-1"]


def test_nothing_is_left_of_its_cgroups_in_any_hierarchy(tmp_path: Path) -> None:
    label = labelled("own-ends")
    with raised(label, tmp_path / "deployment", tmp_path / "state", hardware=OWN):
        assert Cgroups().folders(f"/weighbridge/{label}")
    assert not Cgroups().folders(f"/weighbridge/{label}")


STORE = "store-1"


def answers(client: Host, address: str) -> bool:
    """Whether a host refuses a connection to a port on which nothing listens."""
    place = f"({address!r}, 9)"
    text = f"from socket import *; s = socket(); s.settimeout(5); print(s.connect_ex({place}))"
    return int(client.run([sys.executable, "-c", text]).stdout) == errno.ECONNREFUSED


def test_a_host_has_its_disks_its_address_and_its_limits_when_its_power_is_back(
    tmp_path: Path,
) -> None:
    with raised(labelled("power"), tmp_path / "deployment", tmp_path / "state") as hosts:
        client, store = hosts.hosts["client-1"], hosts.hosts[STORE]
        hosts.limit()
        before = hosts.facts()[f"limits {STORE}"]
        text = "mkfs.xfs -q -f -K /dev/wb0; mount /dev/wb0 /mnt; echo kept >/mnt/file; sync"
        store.run(["sh", "-ec", text])
        store.start([Service("sleeper", ("sleep", "1000"))])
        assert answers(client, store.address)
        hosts.power_off([STORE])
        assert not answers(client, store.address)
        assert not store.is_up()
        assert not store.alive("sleeper")
        hosts.power_on([STORE])
        assert store.is_up()
        assert not store.alive("sleeper")
        store.run(["sh", "-ec", "mount /dev/wb0 /mnt"])
        assert store.run(["cat", "/mnt/file"]).stdout == "kept\n"
        assert answers(client, store.address)
        assert hosts.facts()[f"limits {STORE}"] == before
        for name in ("client-1", "store-9"):
            with pytest.raises(UsageError, match=name):
                hosts.power_off([name])
        with pytest.raises(UsageError, match="this suite cannot cut"):
            hosts.power_cuts()
        # What is without power at the end leaves nothing either.
        hosts.power_off([STORE])
    assert not ending.find_leftovers(state=tmp_path / "state")
