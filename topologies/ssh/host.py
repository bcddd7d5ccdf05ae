"""A real host as gateways and drivers see it: in the deployment's view and limits."""

from __future__ import annotations

import itertools
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from weighbridge.common.errors import CommandFailed, MissingPrerequisite, TargetError
from weighbridge.common.host import Command, Completed, Counters, Host, Service
from weighbridge.topologies.ssh.connection import RemoteProgram, SshConnection
from weighbridge.topologies.ssh.host_telemetry import HostTelemetry
from weighbridge.topologies.ssh.services import FirstSignal, HostProcess, Services

SERVICE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")

# The size tells whether all of it came: a broken connection ends the input too.
_PUT: Final = """
folder=$(dirname -- "$1")
mkdir -p -- "$folder"
draft=$(mktemp -- "$folder/.weighbridge.XXXXXX")
trap 'rm -f -- "$draft"' EXIT
cat >"$draft"
[ "$(stat -c %s -- "$draft")" = "$2" ] || { echo "only a part of it came" >&2; exit 1; }
chown -- "$4" "$draft"
chmod -- "$3" "$draft"
mv -f -- "$draft" "$(readlink -f -- "$1" || echo "$1")"
"""


class SshHost(Host):
    """One host of a deployment, reached over SSH."""

    def __init__(
        self,
        connection: SshConnection,
        services: Services,
        *,
        disks: Sequence[str],
        logs: Path,
        telemetry: HostTelemetry,
        suite: Callable[[], Command],
        cores: int | None = None,
    ) -> None:
        """`suite`: returns what starts Python with this suite on the host."""
        self.name = connection.name
        self.address = connection.address
        self.disks = tuple(disks)
        self.cores = cores
        self.connection = connection
        self.services = services
        self.telemetry = telemetry
        self._logs = logs
        self._suite = suite
        self._suite_lock = threading.Lock()
        self._suite_command: Command | None = None
        self._programs = itertools.count(1)
        self._services: dict[str, HostProcess | None] = {}
        telemetry.counters()  # from now on
        self._tools: dict[str, bool] = {}
        self._closed = False

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        if not path.startswith("/"):
            raise TargetError(f"{self.name}: {path} is not an absolute path")
        data = content.encode() if isinstance(content, str) else content
        words = (path, str(len(data)), f"{mode:o}", f"{owner}:" if owner != "root" else "root:root")
        argv = (
            *self.services.enter(),
            *self.services.environment("put"),
            *("/bin/sh", "-ec", _PUT, "sh", *words),
        )
        done = self.connection.run(argv, stdin=data, timeout_s=120)
        if done.code != 0:
            raise TargetError(f"{self.name}: {path} cannot be written: {done.text.strip()}")

    def log(self, name: str) -> Path:
        # A new copy; the last one when the host is lost or was given back.
        copy = self._logs / name if name else self._logs
        if not self._closed and not self.connection.lost:
            try:
                self.telemetry.copy_logs(name, self._logs)
            except TargetError:
                if not self.connection.lost:
                    raise
        return copy

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        tag = f"run.{next(self._programs)}"
        try:
            done = self.connection.run(
                self.services.program(tag, argv, env), stdin=stdin, timeout_s=timeout_s
            )
        except (KeyboardInterrupt, SystemExit):
            self._send(tag, signal.SIGKILL)
            raise
        if done.code is None:
            self._send(tag, signal.SIGKILL)
        if done.code != 0:
            raise CommandFailed(self.name, argv, done.code, done.text)
        return Completed(done.out.decode(errors="replace"), done.err.decode(errors="replace"))

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> RemoteProgram:
        tag = f"spawn.{next(self._programs)}"
        stderr.parent.mkdir(parents=True, exist_ok=True)
        words = self.services.program(tag, argv, env, signalled=True)
        return self.connection.spawn(
            words, stderr=stderr, send=lambda number: self._send(tag, number)
        )

    def _send(self, tag: str, number: int) -> None:
        kill = number == signal.SIGKILL
        self.connection.sh(self.services.kill(tag) if kill else self.services.signal(tag, number))

    def module(self, name: str, *arguments: str) -> Command:
        with self._suite_lock:
            if self._suite_command is None:
                self._suite_command = self._suite()
            command = self._suite_command
        return Command((*command.argv, "-m", name, *arguments), command.env)

    def tool(self, name: str) -> tuple[str, ...]:
        if not self._tools.get(name):
            done = self.connection.run(
                (*self.services.enter(), "/bin/sh", "-c", 'command -v -- "$1"', "sh", name)
            )
            if done.code != 0:
                raise MissingPrerequisite(
                    f"{self.name}: {name} is not installed",
                    advice="`weighbridge doctor --hardware FILE` lists what to install",
                )
            self._tools[name] = True
        return (name,)

    def start(self, services: Sequence[Service]) -> None:
        for service in services:
            if not SERVICE_NAME.fullmatch(service.name) or not service.argv:
                raise TargetError(f"{self.name}: {service.name!r} is not a service's name")
            if self.alive(service.name):
                raise TargetError(f"{self.name}: {service.name} is already running")
        # By stdin: files of services may hold secrets, and command lines are limited in length.
        done = self.connection.run(
            ("/bin/sh", "-ec", 'script=$(cat); eval "$script"'), stdin=self.services.start(services)
        )
        if done.code != 0:
            command = ["start", *(service.name for service in services)]
            raise CommandFailed(self.name, command, done.code, done.text)
        lines = map(str.split, done.out.decode().splitlines())
        found = {name: HostProcess(int(pid), int(started)) for name, pid, started in lines}
        for service in services:
            self._services[service.name] = found.get(service.name)

    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        self._end(service, timeout_s, "TERM")

    def kill(self, service: str) -> None:
        self._end(service, 5, "KILL")

    def _end(self, service: str, timeout_s: float, first: FirstSignal) -> None:
        process = self._services.get(service)
        if process is None:
            return
        script = self.services.stop(service, process, timeout_s, first)
        if self.connection.sh(script, timeout_s=timeout_s + 60).stdout.strip():
            raise TargetError(f"{self.name}: {service} does not end: process {process.pid} is left")
        self._services[service] = None

    def alive(self, service: str) -> bool:
        process = self._services.get(service)
        return process is not None and self.telemetry.running([process])[0]

    def is_up(self) -> bool:
        holder = self.services.on_host.holder
        return bool(self.connection.sh(f"test -e /proc/{holder} && echo running || true").stdout)

    def counters(self) -> Counters:
        return self.telemetry.counters()

    def drop_kernel_caches(self) -> str:
        self.connection.sh("sync; echo 3 >/proc/sys/vm/drop_caches", timeout_s=600)
        return "page cache, dentries and inodes of the hosts"

    def disconnect(self) -> None:
        """Copy all logs a last time, which a lost host keeps, and end the telemetry."""
        if self._closed:
            return
        try:
            self.log("")
        finally:
            self._closed = True
            self.telemetry.close()
