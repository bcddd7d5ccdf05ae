"""A real host as gateways and drivers see one: all that they do there happens in the deployment's
view and limits.
"""

from __future__ import annotations

import itertools
import re
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weighbridge.common.errors import CommandFailed, MissingMeans, TargetError
from weighbridge.common.host import Command, Completed, Counters, Host, Service
from weighbridge.topologies.ssh.connection import SshConnection
from weighbridge.topologies.ssh.host_reader import HostReader, since
from weighbridge.topologies.ssh.program import RemoteProgram
from weighbridge.topologies.ssh.services import HostProcess, Services

SERVICE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")

# The size says whether all of it came: a connection that breaks off ends the input too.
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
        teller: HostReader,
        suite: Callable[[], Command],
    ) -> None:
        """`suite`: the words that start a module there."""
        self.name = connection.name
        self.address = connection.address
        self.disks = tuple(disks)
        self.connection = connection
        self.services = services
        self.teller = teller
        self._logs = logs
        self._suite = suite
        self._suite_lock = threading.Lock()
        self._found: Command | None = None
        self._programs = itertools.count(1)
        self._services: dict[str, HostProcess | None] = {}
        self._before: dict[str, Any] = teller.counters()
        self._tools: dict[str, bool] = {}
        self._closed = False

    # files
    # -------------------------------------------------------------------------------------------------------------------

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        """Write a file whole or not at all: it takes its name when it is written.

        Raises TargetError.
        """
        if not path.startswith("/"):
            raise TargetError(f"{self.name}: {path} is not an absolute path")
        data = content.encode() if isinstance(content, str) else content
        words = (path, str(len(data)), f"{mode:o}", f"{owner}:" if owner != "root" else "root:root")
        argv = (
            *self.services.enter(),
            *self.services.environment("put"),
            "/bin/sh",
            "-ec",
            _PUT,
            "sh",
            *words,
        )
        done = self.connection.run(argv, stdin=data, timeout_s=120)
        if done.code != 0:
            raise TargetError(f"{self.name}: {path} cannot be written: {done.text.strip()}")

    def log(self, name: str) -> Path:
        """A copy here of the host's file (or with "" of all), brought up to date. Raises
        TargetError.

        When the host is lost, or was given back, it is what was brought last.
        """
        copy = self._logs / name if name else self._logs
        if not self._closed and not self.connection.lost:
            try:
                self.teller.bring(name, self._logs)
            except TargetError:
                if not self.connection.lost:
                    raise
        return copy

    # programs
    # ----------------------------------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        """Run a command to its end; one that takes too long is killed with all it started.

        Raises CommandFailed, TargetError.
        """
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
        """Start a program in the deployment's view and limits; signals sent to what is returned
        reach it. Raises TargetError.
        """
        tag = f"spawn.{next(self._programs)}"
        stderr.parent.mkdir(parents=True, exist_ok=True)
        words = self.services.program(tag, argv, env, signalled=True)
        return RemoteProgram(
            self.connection, words, stderr=stderr, send=lambda number: self._send(tag, number)
        )

    def _send(self, tag: str, number: int) -> None:
        script = (
            self.services.kill(tag)
            if number == signal.SIGKILL
            else self.services.signal(tag, number)
        )
        self.connection.sh(script)

    def module(self, name: str, *arguments: str) -> Command:
        """What runs a module of this suite there, by the suite that was put there.

        Raises MissingMeans or CommandFailed.
        """
        with self._suite_lock:
            if self._found is None:
                self._found = self._suite()
        return Command((*self._found.argv, "-m", name, *arguments), self._found.env)

    def tool(self, name: str) -> tuple[str, ...]:
        """The tool that is installed there. Raises MissingMeans."""
        if not self._tools.get(name):
            done = self.connection.run(
                (*self.services.enter(), "/bin/sh", "-c", 'command -v -- "$1"', "sh", name)
            )
            if done.code != 0:
                raise MissingMeans(
                    f"{self.name}: it has no {name}",
                    advice="have it installed by `weighbridge doctor --hardware FILE --install`",
                )
            self._tools[name] = True
        return (name,)

    # services
    # ----------------------------------------------------------------------------------------------------------------

    def start(self, services: Sequence[Service]) -> None:
        """Start services, all by one command on the host.

        Raises CommandFailed, TargetError for a name that cannot be.
        """
        for service in services:
            if not SERVICE_NAME.fullmatch(service.name) or not service.argv:
                raise TargetError(f"{self.name}: {service.name!r} cannot be a service")
            if self.alive(service.name):
                raise TargetError(f"{self.name}: {service.name} is running already")
        # By stdin: files of services may hold secrets, and a command line has an end.
        done = self.connection.run(
            ("/bin/sh", "-ec", 'script=$(cat); eval "$script"'), stdin=self.services.start(services)
        )
        if done.code != 0:
            raise CommandFailed(
                self.name, ["start", *(service.name for service in services)], done.code, done.text
            )
        found = {
            name: HostProcess(int(pid), int(start))
            for name, pid, start in map(str.split, done.out.decode().splitlines())
        }
        for service in services:
            self._services[service.name] = found.get(service.name)

    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        """End a service: TERM to its first process, KILL to all of it that is left when that has
        ended or time is up.
        """
        process = self._services.get(service)
        if process is None:
            return
        done = self.connection.sh(
            self.services.stop(service, process, timeout_s), timeout_s=timeout_s + 60
        )
        if done.stdout.strip():
            raise TargetError(
                f"{self.name}: {service} cannot be ended: its process {process.pid} is there still"
            )
        self._services[service] = None

    def alive(self, service: str) -> bool:
        """Whether the service's first process is there. Raises TargetError."""
        process = self._services.get(service)
        return process is not None and self.teller.there([process])[0]

    def stands(self) -> bool:
        """Whether the process that holds the deployment's view is there."""
        holder = self.connection.sh(
            f"test -e /proc/{self.services.stand.holder} && echo there || true"
        )
        return bool(holder.stdout)

    # use
    # ---------------------------------------------------------------------------------------------------------------------

    def counters(self) -> Counters:
        """What was used since the deployment stands. Raises TargetError."""
        return since(self.teller.counters(), self._before)

    def drop_kernel_caches(self) -> str:
        """Drop this host's; returns in words what was dropped.

        Raises CommandFailed or TargetError.
        """
        self.connection.sh("sync; echo 3 >/proc/sys/vm/drop_caches", timeout_s=600)
        return "page cache, dentries and inodes of the hosts"

    # the end
    # -----------------------------------------------------------------------------------------------------------------

    def let_go(self) -> None:
        """Bring all logs, and ask no more: what is left is taken away next.

        A host that is lost keeps what was not brought yet.
        """
        if self._closed:
            return
        try:
            self.log("")
        finally:
            self._closed = True
            self.teller.close()
