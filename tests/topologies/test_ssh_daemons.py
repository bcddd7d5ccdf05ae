"""The reported state of services on a real host, with the scripts that start and stop them, run on
this machine.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import Completed, Service
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.ssh import claim, ending, leftovers
from weighbridge.topologies.ssh.claim import ClaimedHost
from weighbridge.topologies.ssh.services import HostProcess, Services

pytestmark = pytest.mark.long  # starts an SSH server and programs in every test

SOON_S = 60.0
LABEL = "rgw-beast-abc123"
# Processes of a service are found by its name among all processes, here also those of other tests.
TOKEN = secrets.token_hex(4)
RADOSGW, OSD0, OSD1 = f"radosgw-client.rgw.{TOKEN}", f"osd.0-{TOKEN}", f"osd.1-{TOKEN}"
SHORT = f"short-{TOKEN}"
"""A service that ends before systemd is asked for its first process."""
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()

# Replacements for what only root may do: everything is in the view, and a unit is a process whose
# number is kept.
PROGRAMS = {
    "nsenter": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "systemd-run": """
        while :; do
          case $1 in --unit=*) unit=${1#--unit=} ;; --*) ;; *) break ;; esac
          shift
        done
        setsid "$@" </dev/null >/dev/null 2>&1 &
        echo $! >"$UNITS/$unit"
    """,
    "systemctl": """
        for unit; do :; done
        pid=$(cat "$UNITS/$unit" 2>/dev/null || echo 0)
        case $1 in
          show)
            case $unit in *short*) while [ -e "/proc/$pid/fd/0" ]; do sleep 0.01; done ;; esac
            if [ -e "/proc/$pid/fd/0" ]; then echo "$pid"; else echo 0; fi ;;
          kill) kill -KILL "-$pid" ;;
          stop) rm -f "$UNITS/$unit" ;;
        esac
    """,
}


class Host:
    """This machine as a real host without a connection; `says` replaces its services' report."""

    def __init__(
        self, name: str, root: Path, *, says: str | None = None, lost: bool = False
    ) -> None:
        self.name, self.address = name, "192.0.2.31"
        self.root, self.says, self.lost = root / name, says, lost
        for folder in ("bin", "units", "log"):
            (self.root / folder).mkdir(parents=True)
        for program, script in PROGRAMS.items():
            (self.root / "bin" / program).write_text(f"#!/bin/sh\n{script}")
            (self.root / "bin" / program).chmod(0o755)

    @property
    def folder(self) -> str:
        return str(self.root / "opt")

    @property
    def where(self) -> str:
        return f"{self.name} ({self.address})"

    def open(self) -> None:
        if self.lost:
            raise TargetError(f"{self.where}: cannot be reached: No route to host")

    def close(self) -> None:
        pass

    def sh(
        self, script: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        if self.says is not None:
            return Completed(self.says, "")
        return self._run(
            "/bin/sh", "-ec", script.replace("/var/log/host", str(self.root / "log")), "sh", *words
        )

    def python(
        self, source: str, *words: str, stdin: bytes | str = b"", timeout_s: float = 60
    ) -> Completed:
        # Each host has its own folder, as on separate machines.
        return self._run("python3", "-I", "-c", source, *words[:-1], self.folder, stdin=stdin)

    def _run(self, *argv: str, stdin: bytes | str = b"") -> Completed:
        path = f"{self.root}/bin:{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "UNITS": str(self.root / "units")}
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(argv, input=data, capture_output=True, check=False, env=env)
        if done.returncode:
            raise CommandFailed(self.name, argv, done.returncode, done.stderr.decode())
        return Completed(done.stdout.decode(), done.stderr.decode())


class Deployed:
    """A deployment on such a host: claimed, held, and with services."""

    def __init__(self, host: Host, **more: Any) -> None:
        self.host = host
        self.holder = subprocess.Popen(["sleep", "600"], start_new_session=True)
        mine = claim.new_claim(LABEL, host.folder, since="2026-01-01T00:00:00+00:00")
        held = {"holder": self.holder.pid, **more}
        self.claimed: ClaimedHost = claim.take(host, mine).model_copy(update=held)
        claim.write(host, self.claimed)
        self.processes: dict[str, HostProcess] = {}

    @property
    def services(self) -> Services:
        return ending.services_of(self.claimed)

    def start(self, *names: str, line: str = "exec sleep 600") -> None:
        script = self.services.start([Service(name, ("sh", "-c", line)) for name in names])
        for name, pid, started in map(str.split, self.host.sh(script).stdout.splitlines()):
            self.processes[name] = HostProcess(int(pid), int(started))

    def stop(self, name: str) -> str:
        return self.host.sh(self.services.stop(name, self.processes[name], 5)).stdout

    def close(self) -> None:
        for pid in (self.holder.pid, *(one.pid for one in self.processes.values())):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self.holder.wait()


def started_at(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def gone(pid: int) -> None:
    deadline = time.monotonic() + SOON_S
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.01)
    raise AssertionError(pid)


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[Deployed]:
    found = Deployed(Host("store-1", tmp_path))
    try:
        yield found
    finally:
        found.close()


@contextmanager
def shells(hosts: Mapping[str, Host]) -> Iterator[Mapping[str, Host]]:
    yield hosts


def report(
    monkeypatch: pytest.MonkeyPatch, *hosts: Host, daemons: bool = True
) -> leftovers.LeftoverReport:
    described = {host.name: {"address": f"192.0.2.{index}"} for index, host in enumerate(hosts)}
    hardware = Hardware.model_validate(
        {"name": "real", "kind": "ssh", "clients": [hosts[0].name], "hosts": described}
    )
    monkeypatch.setattr(leftovers, "shells", lambda _: shells({host.name: host for host in hosts}))
    return leftovers.find(hardware, include_suites=True, daemons=daemons)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch, deployed: Deployed) -> Callable[[], dict[str, bool]]:
    return lambda: {one.service: one.alive for one in report(monkeypatch, deployed.host).daemons}


def test_a_service_is_dead_as_soon_as_its_first_process_ended_whatever_that_left_running(
    deployed: Deployed, states: Callable[[], dict[str, bool]]
) -> None:
    assert states() == {}
    deployed.start(OSD0)
    deployed.start(RADOSGW, line="sleep 600 & wait")
    deployed.start(SHORT, line="exit 1")
    assert states() == {OSD0: True, RADOSGW: True, SHORT: False}
    first = deployed.processes[RADOSGW].pid
    os.kill(first, signal.SIGKILL)
    gone(first)
    assert states() == {OSD0: True, RADOSGW: False, SHORT: False}


def test_a_stopped_service_is_no_death_and_a_restarted_one_is_alive(
    deployed: Deployed, states: Callable[[], dict[str, bool]]
) -> None:
    deployed.start(OSD0, OSD1)
    assert deployed.stop(OSD0) == ""
    gone(deployed.processes[OSD0].pid)
    assert states() == {OSD1: True}
    os.kill(deployed.processes[OSD1].pid, signal.SIGKILL)
    gone(deployed.processes[OSD1].pid)
    assert states() == {OSD1: False}
    deployed.start(OSD0, OSD1)
    assert states() == {OSD0: True, OSD1: True}


def test_a_process_with_a_dead_ones_pid_is_not_the_service(
    deployed: Deployed, states: Callable[[], dict[str, bool]]
) -> None:
    deployed.start(RADOSGW)
    path, process = Path(deployed.services.started, RADOSGW), deployed.processes[RADOSGW]
    assert path.read_text() == f"{process.pid} {process.started}\n"
    path.write_text(f"{os.getpid()} {started_at(os.getpid()) - 1}\n")
    assert states() == {RADOSGW: False}


def test_after_a_reboot_no_service_is_alive(
    deployed: Deployed, states: Callable[[], dict[str, bool]]
) -> None:
    deployed.start(RADOSGW)
    assert deployed.claimed.boot == BOOT
    assert states() == {RADOSGW: True}
    deployed.holder.kill()  # of the view: services outlive it
    deployed.holder.wait()
    assert states() == {RADOSGW: True}
    claim.write(deployed.host, deployed.claimed.model_copy(update={"boot": "another"}))
    assert states() == {RADOSGW: False}


def test_a_daemon_is_reported_with_its_host_deployment_and_log(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.start(RADOSGW)
    (one,) = report(monkeypatch, deployed.host).daemons
    assert (one.host, one.deployment, one.service, one.alive) == ("store-1", LABEL, RADOSGW, True)
    assert one.log == f"{ending.folder_of(LABEL, deployed.host.folder)}/log/{RADOSGW}.out"
    assert report(monkeypatch, deployed.host, daemons=False).daemons == ()


def test_an_unreachable_host_is_reported_and_the_others_are_examined(
    deployed: Deployed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.start(RADOSGW)
    lost, free = (Host("store-2", tmp_path, lost=True), Host("store-3", tmp_path))
    found = report(monkeypatch, deployed.host, lost, free)
    assert [(one.host, one.alive) for one in found.daemons] == [("store-1", True)]
    assert list(found.failed) == ["store-2"]
    assert "cannot be reached" in found.failed["store-2"].message


INVALID = (
    *("radosgw\n", "radosgw running\n", "radosgw alive now\n", "../../etc/passwd dead\n"),
    *("\x1b[2J dead\n", "radosgw alive\nradosgw dead\n", f"{'x' * 62} alive\n"),
    *("radosgw alive\x0bosd.0 alive!\n", "\n", "osd.1 alive\n" * 10_000),
    "".join(f"osd.{number} alive\n" for number in range(10_000)),
)


def test_an_invalid_list_of_services_is_refused_completely(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed.start(RADOSGW)
    for says in INVALID:
        deployed.host.says = says
        found = report(monkeypatch, deployed.host)
        assert found.daemons == (), says
        message = found.failed["store-1"].message
        assert message.startswith("store-1 (192.0.2.31): ")
        assert "\x1b" not in message
        assert len(message) < 500
