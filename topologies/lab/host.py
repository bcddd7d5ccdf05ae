"""A lab host: a container of this machine as gateways and drivers see a host."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import CommandFailed, TargetError
from weighbridge.common.host import (
    Completed,
    Counters,
    DiskCounters,
    Host,
    ModelDiskCounters,
    Service,
)
from weighbridge.common.record import Record
from weighbridge.topologies.lab.bundle import Bundle, tool_argv
from weighbridge.topologies.lab.cgroup import Cgroups, counters
from weighbridge.topologies.lab.ending import BUNDLES, until_none
from weighbridge.topologies.lab.model_disks import ModelDisks, file_name
from weighbridge.topologies.lab.program import LabProcess, LabProgram, kill_family, send, wait_end
from weighbridge.topologies.lab.runc import Runc

# Services that were started on a lab host and not stopped, kept in its folder, so that a later
# command can see which of them died.


FILE: Final = "daemons.json"


class LabDaemon(Record):
    """A service by its first process on this machine; `pid` None: it ended at once."""

    host: str
    service: str
    pid: int | None
    started: int = 0

    @property
    def alive(self) -> bool:
        if self.pid is None:
            return False
        now = LabProcess.of(self.pid)
        return now is not None and now.started == self.started


class KeptDaemons(Record):
    """The content of the file."""

    daemons: tuple[LabDaemon, ...]


def keep_daemon(folder: Path, host: str, services: Mapping[str, LabProcess | None]) -> None:
    """Record atomically which services run on the host with this folder. Raises TargetError."""
    daemons = tuple(
        LabDaemon(host=host, service=name, pid=one.pid, started=one.started)
        if one
        else LabDaemon(host=host, service=name, pid=None)
        for name, one in services.items()
    )
    try:
        safe_files.write(folder, FILE, KeptDaemons(daemons=daemons).model_dump_json().encode())
    except OSError as error:
        raise TargetError(f"{host}: {folder / FILE} cannot be written: {error.strerror}") from error


def daemons(deployment: Path) -> tuple[LabDaemon, ...]:
    """Services of a deployment's folder, started and not stopped. Raises TargetError."""
    found: list[LabDaemon] = []
    for path in sorted((deployment / BUNDLES).glob(f"*/{FILE}")):
        try:
            found += KeptDaemons.model_validate_json(path.read_bytes()).daemons
        except FileNotFoundError:
            continue  # the host is being torn down
        except (OSError, ValidationError) as error:
            raise TargetError(f"{path} is not a valid list of started daemons: {error}") from error
    return tuple(found)


SERVICE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}")
MOST_LINKS = 40
"""Symbolic links followed in one path, as many as the kernel follows."""

# Each service gets its own session, and the host's first process becomes its parent as soon as this
# shell ends, so that it is reaped at once. It must not inherit runc's stdio: runc would wait until
# that is closed. Prints the service's name, its pid in the host and its start time (ticks since
# boot).
START = """
start() {
  name=$1; shift
  setsid env -- "$@" </dev/null >>"/var/log/host/$name.out" 2>&1 &
  pid=$!
  read -r line <"/proc/$pid/stat" || return 0
  set -- ${line##*) }
  echo "$name $pid ${20}"
}
need() {
  command -v -- "$1" >/dev/null && return
  echo "$1: no such program on this host" >&2
  exit 127
}
"""


@dataclass(frozen=True)
class Started:
    """A started container: its disks' counts `before`, and the `pid` of its first process here."""

    bundle: Bundle
    before: tuple[DiskCounters, ...]
    pid: int


class LabHost(Host):
    """A running container. `model_disks` serves the disks that have a model."""

    def __init__(
        self,
        started: Started,
        address: str,
        runc: Runc,
        cgroups: Cgroups,
        *,
        model_disks: ModelDisks | None = None,
    ) -> None:
        self.name = started.bundle.host
        self.address = address
        self.disks = tuple(disk.path for disk in started.bundle.disks)
        self._runc = runc
        self._cgroups = cgroups
        self._model_disks = model_disks
        self._programs = itertools.count(1)
        self.power_on(started)

    def power_on(self, started: Started) -> None:
        """It is the container that was started: nothing runs in it."""
        self.bundle = started.bundle
        self.pid = started.pid
        self._first = LabProcess.of(started.pid)
        self._root = Path(f"/proc/{started.pid}/root")
        self._before = started.before
        self._services: dict[str, LabProcess | None] = {}

    def power_off(self) -> None:
        """Kill all that runs in it. Raises CommandFailed, TargetError."""
        self._runc.delete(self.bundle.id)
        left = until_none(self._pids)
        if left:
            raise TargetError(f"{self.name}: {len(left)} processes do not end, even when killed")

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        data = content.encode() if isinstance(content, str) else content
        user, group = self._owner(owner)
        try:
            target = self._inside(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_name(f".{target.name}.{os.getpid()}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            try:
                descriptor = os.open(draft, flags, 0o600)
                with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
                    file.write(data)
                    os.fchown(descriptor, user, group)
                    os.fchmod(descriptor, mode)
                draft.replace(target)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise TargetError(f"{self.name}: {path} cannot be written: {error.strerror}") from error

    def _inside(self, path: str) -> Path:
        """A path of the host on this machine; symbolic links are followed as the host would, and
        the last part may be missing.

        /proc/PID/root is the host's root, but an absolute link below it would lead to this
        machine's files.
        """
        if not path.startswith("/"):
            raise TargetError(f"{self.name}: {path} is not an absolute path")
        parts = list(reversed(PurePosixPath(path).parts[1:]))
        reached: list[str] = []
        links = 0
        while parts:
            part = parts.pop()
            if part == "..":
                del reached[-1:]
                continue
            here = self._root.joinpath(*reached, part)
            if not here.is_symlink():
                reached.append(part)
                continue
            links += 1
            if links > MOST_LINKS:
                raise TargetError(f"{self.name}: {path}: too many symbolic links")
            target = here.readlink()
            if target.is_absolute():
                reached.clear()
            parts += reversed([one for one in target.parts if one != "/"])
        return self._root.joinpath(*reached)

    def _owner(self, name: str) -> tuple[int, int]:
        """User and group number of a host's user: they differ between images."""
        if name == "root":
            return 0, 0
        for line in self._inside("/etc/passwd").read_text().splitlines():
            fields = line.split(":")
            if fields[0] == name and len(fields) > 3:
                return int(fields[2]), int(fields[3])
        raise TargetError(f"{self.name}: there is no user {name}")

    def log(self, name: str) -> Path:
        return self.bundle.logs / name

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        program = self._program(argv, env, stderr=subprocess.PIPE)
        try:
            out, err = program.communicate(data, timeout=timeout_s)
            code = program.returncode
        except subprocess.TimeoutExpired:
            program.kill()
            out, err = program.communicate()
            code = None
        except BaseException:
            program.kill()
            program.communicate()
            raise
        finally:
            program.forget()
        if code != 0:
            raise CommandFailed(self.name, argv, code, (out + err).decode(errors="replace"))
        return Completed(out.decode(errors="replace"), err.decode(errors="replace"))

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        # In the host's log folder `stderr` may be anything that the host has put there.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            if stderr.parent == self.bundle.logs:
                descriptor = safe_files.open_descriptor(stderr.parent, stderr.name, flags)
            else:
                descriptor = os.open(stderr, flags | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise TargetError(f"{self.name}: {stderr}: {error.strerror}") from error
        try:
            return self._program(argv, env, stderr=descriptor)
        finally:
            os.close(descriptor)

    def _program(
        self, argv: Sequence[str], env: Mapping[str, str] | None, *, stderr: int
    ) -> LabProgram:
        pid_file = self.bundle.folder / f"program-{next(self._programs)}.pid"
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        line = self._runc.exec_argv(self.bundle.id, argv, env=variables, pid_file=pid_file)
        return LabProgram(line, pid_file=pid_file, pids=self._pids, stderr=stderr)

    def _pids(self) -> tuple[int, ...]:
        return self._cgroups.pids(self.bundle.cgroup)

    def tool(self, name: str) -> tuple[str, ...]:
        if self.bundle.tools is None:
            return super().tool(name)
        return tool_argv(self.bundle.tools, name)

    def start(self, services: Sequence[Service]) -> None:
        for service in services:
            if not SERVICE_NAME.fullmatch(service.name) or not service.argv:
                raise TargetError(f"{self.name}: {service.name!r} is not a service's name")
            if self.alive(service.name):
                raise TargetError(f"{self.name}: {service.name} is already running")
        lines = [shlex.join(("need", service.argv[0])) for service in services]
        for service in services:
            variables = [f"{name}={value}" for name, value in service.env.items()]
            lines.append(shlex.join(("start", service.name, *variables, *service.argv)))
        done = self.run(["/bin/sh", "-ec", START + "\n".join(lines)])
        started = {
            name: (int(pid), int(ticks))
            for name, pid, ticks in map(str.split, done.stdout.splitlines())
        }
        for service in services:
            found = started.get(service.name)
            self._services[service.name] = self._find(*found) if found is not None else None
        keep_daemon(self.bundle.folder, self.name, self._services)

    def _find(self, pid: int, started: int) -> LabProcess | None:
        for outer in self._pids():
            process = LabProcess.of(outer)
            if process is not None and process.started == started and _number_inside(outer) == pid:
                return process
        return None

    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        process = self._services.get(service)
        if process is None:
            return
        send(process, signal.SIGTERM)
        wait_end(process, timeout_s)
        self.kill(service)

    def kill(self, service: str) -> None:
        process = self._services.get(service)
        if process is None:
            return
        if not kill_family(process.pid, self._pids):
            raise TargetError(f"{self.name}: {service} does not end, even when killed")
        del self._services[service]
        keep_daemon(self.bundle.folder, self.name, self._services)

    def alive(self, service: str) -> bool:
        process = self._services.get(service)
        return process is not None and LabProcess.of(process.pid) == process

    def is_up(self) -> bool:
        return self._first is not None and LabProcess.of(self.pid) == self._first

    def counters(self) -> Counters:
        if not self.is_up():
            raise TargetError(f"{self.name}: the host is gone: its first process has ended")
        minors = [disk.minor for disk in self.bundle.disks]
        group = self.bundle.cgroup
        said = self._said()
        return counters(self._cgroups, group, self.pid, minors, self._before, said)

    def _said(self) -> tuple[ModelDiskCounters | None, ...]:
        if self._model_disks is None:
            return ()
        said = self._model_disks.counts()
        deployment = self.bundle.deployment
        return tuple(
            said.get(file_name(deployment, self.name, index)) for index in range(len(self.disks))
        )

    def drop_kernel_caches(self) -> str:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return (
            "page cache, dentries and inodes of the entire machine (all lab hosts share its kernel)"
        )


def _number_inside(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return next(
        (int(line.split()[-1]) for line in status.splitlines() if line.startswith("NSpid:")), None
    )
