"""Hosts that are plain processes of this machine, without root or limits.

Fake hosts run the whole pipeline on loopback, each deployment with its own addresses in 127.0.0.0/8
and each host's files in a folder. Nothing measured on them says anything about a gateway.

Hardware of kind `existing` has this machine itself as the only host: the client of gateways that
already run.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.host import (
    Completed,
    Counters,
    Host,
    Service,
    program_environment,
)
from weighbridge.common.structure import CutDisk
from weighbridge.gateways.gateway import Say
from weighbridge.topologies.hardware import Hardware, HostKind, HostSpec, HostsRequest
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited, PowerCuts
from weighbridge.topologies.local_command import completed

if TYPE_CHECKING:
    from weighbridge.topologies.ssh.observed import ObservedHosts

# The kernel ends a process with the conductor that started it: no process is left over.
WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")


class FakeHost(Host):
    """A host whose paths are below a folder and whose services are processes of this machine."""

    about = "a fake host"

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
        return completed(
            argv,
            stdin=stdin,
            timeout_s=timeout_s,
            env=_environment(env),
            host=self.name,
            prefix=WITH_PARENT,
        )

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
        return f"{self.name}: kernel caches not dropped ({self.about})"

    def power_off(self) -> None:
        """Kill all services."""
        for name in self._services:
            self.kill(name)

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

    def address(self, index: int, spec: HostSpec) -> str:
        return f"127.0.0.{10 + index}"

    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        return lambda label, folder: self.made(label, asked.hardware, folder, asked.names)


FAKE = FakeKind()


class ThisHost(FakeHost):
    """This machine. It caches nothing of the gateway, and has other users: a run drops nothing."""

    about = "this machine, which only makes the load"


class ThisMachine(FakeHosts):
    """The host of hardware of kind `existing`, and the hosts that are only observed."""

    make: ClassVar[type[FakeHost]] = ThisHost

    def __init__(
        self, deployment: str, hardware: Hardware, folder: Path, names: Collection[str]
    ) -> None:
        super().__init__(deployment, hardware, folder, names)
        self._seen: ObservedHosts | None = None
        if hardware.observed:
            from weighbridge.topologies.ssh.observed import ObservedHosts  # noqa: PLC0415 - needs asyncssh

            self._seen = ObservedHosts(hardware, folder)
            self.observed = self._seen.hosts

    def facts(self) -> Mapping[str, str]:
        found = {"client": "this machine, without limits; other programs may be running on it"}
        if self.observed:
            hosts = (f"{name} ({one.cores} CPUs)" for name, one in self.observed.items())
            found["observed"] = f"{', '.join(hosts)}: counters read by ssh, nothing changed"
        return found

    def close(self) -> None:
        super().close()
        if self._seen is not None:
            self._seen.close()


class ThisMachineKind(FakeKind):
    """Hardware of kind `existing`."""

    for_running_gateways: ClassVar[bool] = True
    refuses: ClassVar[str] = "are this machine as it is: none are started"
    passing: ClassVar[str] = "are for gateways that already run: there is nothing to start"
    made: ClassVar[type[FakeHosts]] = ThisMachine


THIS_MACHINE = ThisMachineKind()


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
