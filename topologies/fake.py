"""Fake hosts: plain processes on loopback without root or limits, to test the whole pipeline.

Each deployment gets its own addresses in 127.0.0.0/8; a host's files are in a folder. Nothing
measured on them says anything about a gateway.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import (
    Completed,
    Counters,
    Host,
    Service,
    program_environment,
)
from weighbridge.common.structure import CutDisk
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.hardware import Hardware, HostKind, HostSite, HostsRequest
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited, PowerCuts

# The kernel ends a process with the conductor that started it: no process is left over.
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


class FakeHost(Host):
    """A host whose paths are below a folder and whose services are processes of this machine."""

    def __init__(self, name: str, address: str, folder: Path) -> None:
        self.name = name
        self.address = address
        self.disks = ()
        self.folder = folder
        self._services: dict[str, subprocess.Popen[bytes]] = {}
        self._programs: list[subprocess.Popen[bytes]] = []
        (folder / "log").mkdir(parents=True, exist_ok=True)

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        target = self.folder / "root" / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        target.chmod(mode)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        try:
            done = subprocess.run(
                [*WITH_PARENT, *argv],
                input=data,
                capture_output=True,
                env=_environment(env),
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(
                self.name, argv, None, (error.stdout or b"").decode(errors="replace")
            ) from error
        if done.returncode:
            raise CommandFailed(
                self.name,
                argv,
                done.returncode,
                (done.stdout + done.stderr).decode(errors="replace"),
            )
        return Completed(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, services: Sequence[Service]) -> None:
        # The signal comes at the end of the thread that started the process.
        lasting = threading.current_thread() is threading.main_thread()
        for service in services:
            with self.log(f"{service.name}.out").open("ab") as log:
                self._services[service.name] = subprocess.Popen(
                    [*(WITH_PARENT if lasting else ()), *service.argv],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=_environment(service.env),
                )

    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        _end(self._services[service], timeout_s)

    def kill(self, service: str) -> None:
        self._services[service].kill()
        self._services[service].wait()

    def alive(self, service: str) -> bool:
        return self._services[service].poll() is None

    def log(self, name: str) -> Path:
        return self.folder / "log" / name

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        with stderr.open("ab") as log:
            program = subprocess.Popen(
                [*WITH_PARENT, *argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(env),
            )
        self._programs.append(program)
        return program

    def variables(self, endpoints: Collection[Endpoint]) -> Mapping[str, str]:
        if any(one.key_source for one in endpoints):
            return dict(os.environ)
        theirs = {secret for one in endpoints for secret in one.secrets}
        return {name: "" for name, value in program_environment().items() if value in theirs}

    def counters(self) -> Counters:
        return Counters()

    def drop_kernel_caches(self) -> str:
        return f"{self.name}: kernel caches not dropped (a fake host)"

    def power_off(self) -> None:
        """Kill all services."""
        for process in self._services.values():
            process.kill()
            process.wait()

    def close(self) -> None:
        """End everything that was started."""
        for process in (*self._services.values(), *self._programs):
            _end(process, 5)


class FakeHosts(Hosts):
    """The fake hosts of one deployment."""

    make: ClassVar[type[FakeHost]] = FakeHost
    """The class of each host."""

    def __init__(
        self, deployment: str, hardware: Hardware, folder: Path, names: Collection[str]
    ) -> None:
        self.deployment = deployment
        self._clients = hardware.clients
        # A random /24 of loopback, so that two runs do not use the same ports.
        net = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}"
        self._hosts = {
            name: self.make(name, f"{net}.{10 + index}", folder / name)
            for index, name in enumerate(hardware.hosts)
            if name in names
        }
        self.hosts: Mapping[str, Host] = self._hosts

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        """Nothing is limited."""

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        """Nothing was limited."""

    def power_off(self, names: Collection[str]) -> None:
        for name in names:
            self._hosts[name].power_off()

    def power_on(self, names: Collection[str]) -> None:
        """Nothing is to be done: a host is this machine."""

    def plug(self, names: Collection[str], *, on: bool) -> None:
        """Nothing: they have no links."""

    def fail_disk(self, name: str, disk: str, *, on: bool) -> None:
        """Nothing: they have no disks."""

    def power_cuts(self) -> PowerCuts:
        """Cuts that take nothing from disks: what a store has in memory alone is lost."""
        return _FakePowerCuts(self, [name for name in self._hosts if name not in self._clients])

    def facts(self) -> Mapping[str, str]:
        return {"hosts": "fake hosts on loopback, without limits"}

    def close(self) -> None:
        for host in self._hosts.values():
            host.close()


class _FakePowerCuts(PowerCuts):
    """Cuts of fake hosts; a disk for each has written a block for each mark."""

    def __init__(self, hosts: FakeHosts, names: Sequence[str]) -> None:
        self._hosts = hosts
        self._names = names
        self._marks = 0

    def record(self, *, flushes: bool) -> None:
        """Nothing is recorded."""

    def mark(self) -> int:
        self._marks += 1
        return self._marks

    def cut(self) -> None:
        self._hosts.power_off(self._names)

    def restore(self, mark: int, *, keep: float, seed: int) -> tuple[CutDisk, ...]:
        self.cut()
        self._hosts.power_on(self._names)
        return tuple(
            CutDisk(name=f"{name}/", writes=mark, flushes=mark, unflushed_blocks=0, kept_blocks=0)
            for name in self._names
        )


class FakeKind(HostKind):
    """Fake hosts."""

    cuts_power: ClassVar[bool] = True
    refuses: ClassVar[str] = "are fake: they can do what this machine can"
    passing: ClassVar[str] = "are fake and end with this command: nothing would be left running"
    made: ClassVar[type[FakeHosts]] = FakeHosts
    """The class of all hosts together."""

    def sites(self, hardware: Hardware) -> Mapping[str, HostSite]:
        return {
            name: HostSite(
                name,
                f"127.0.0.{10 + index}",
                tuple(f"/dev/wb{number}" for number in range(len(spec.disks))),
            )
            for index, (name, spec) in enumerate(hardware.hosts.items())
        }

    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        return lambda label, folder: self.made(label, asked.hardware, folder, asked.names)


FAKE = FakeKind()


def _environment(extra: Mapping[str, str] | None) -> dict[str, str]:
    return {**program_environment(), **(extra or {})}


def _end(process: subprocess.Popen[bytes], timeout_s: float) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
