"""A lab host: a container of this machine as gateways and drivers see a host."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import TypeAdapter, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import CommandFailed, TargetError, UsageError
from weighbridge.common.host import Completed, Counters, Host, Service
from weighbridge.topologies.counters import counters_of, since
from weighbridge.topologies.disk_models import DISK_MODELS
from weighbridge.topologies.hardware import Disk, HostSpec
from weighbridge.topologies.hosts import Daemon, Limited
from weighbridge.topologies.lab import network
from weighbridge.topologies.lab.bundle import Bundle, Lab, tool_argv
from weighbridge.topologies.lab.disk import LoopDisk
from weighbridge.topologies.lab.ending import BUNDLES, until_none
from weighbridge.topologies.lab.model_disks import file_name
from weighbridge.topologies.lab.network import NIC, Port
from weighbridge.topologies.lab.program import LabProcess, LabProgram, kill_family, send, wait_end
from weighbridge.topologies.on_host import telemetry

_IDEAL: Final = DISK_MODELS["ideal"]
_ROOT: Final = Disk(size=4 * 2**30, model=_IDEAL)
"""For all that a host has outside its disks: a mon's store, rings, keys. A sparse file."""

FILE: Final = "daemons.json"
"""In a host's folder: its services that were started and not stopped, so that a later command can
see which of them died.
"""


_DAEMONS: Final = TypeAdapter(dict[str, tuple[int, int] | None])
"""By name the pid and start of its first process here; None: it ended at once."""


def keep_daemons(folder: Path, services: Mapping[str, LabProcess | None]) -> None:
    """Record atomically which services run on the host with this folder. Raises TargetError."""
    started = {
        name: None if process is None else (process.pid, process.started)
        for name, process in services.items()
    }
    try:
        safe_files.write(folder, FILE, _DAEMONS.dump_json(started))
    except OSError as error:
        where = f"{folder.name}: {folder / FILE}"
        raise TargetError(f"{where} cannot be written: {error.strerror}") from error


def daemons(deployment: Path) -> tuple[Daemon, ...]:
    """Services of a deployment's folder, started and not stopped. Raises TargetError."""
    found: list[Daemon] = []
    for path in sorted((deployment / BUNDLES).glob(f"*/{FILE}")):
        try:
            started = _DAEMONS.validate_json(path.read_bytes())
        except FileNotFoundError:
            continue  # the host is being torn down
        except (OSError, ValidationError) as error:
            raise TargetError(f"{path} is not a valid list of started daemons: {error}") from error
        host = path.parent.name
        for name, process in started.items():
            alive = process is not None and telemetry.running(*process)
            log, of = str(deployment / "logs" / host / f"{name}.out"), deployment.name
            found.append(Daemon(host=host, deployment=of, service=name, alive=alive, log=log))
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


class LabHost(Host):
    """A container, from `power_on` on, and again after its power was cut. `image` None: its root is
    this machine's, read only.
    """

    bundle: Bundle
    pid: int
    """Its first process on this machine."""

    def __init__(
        self,
        lab: Lab,
        name: str,
        index: int,
        spec: HostSpec,
        image: Path | None,
    ) -> None:
        self.name = name
        self.address = network.address(index)
        self.disks = tuple(f"/dev/wb{number}" for number in range(len(spec.disks)))
        self.spec = spec
        self.image = image
        self.recorded = lab.recorded and image is not None
        self._lab = lab
        self._index = index
        self._programs = itertools.count(1)
        self._held: tuple[LoopDisk, ...] = ()

    @property
    def all_disks(self) -> tuple[Disk, ...]:
        """Those that it is started with: where all that is written is remembered, without the times
        of their models, and with one for its root at last.
        """
        if not self.recorded:
            return self.spec.disks
        return (*(Disk(size=disk.size, model=_IDEAL) for disk in self.spec.disks), _ROOT)

    @property
    def port(self) -> Port:
        return Port(self._index, self.pid)

    def power_on(self) -> None:
        """Start the container on its disks; nothing runs in it. Raises CommandFailed, TargetError
        or MissingPrerequisite.
        """
        lab, folder = self._lab, self._lab.bundles / self.name
        again = folder.exists()
        attached, root = [*self._held], None
        self._held = ()
        try:
            folder.mkdir(exist_ok=True)
            for index, disk in enumerate(self.all_disks):
                if index >= len(self.spec.disks):
                    root = self._attach(index, disk)
                elif index >= len(attached):
                    attached.append(self._attach(index, disk))
            self.bundle = Bundle(
                lab=lab,
                host=self.name,
                image=self.image,
                spec=self.spec,
                disks=tuple(attached),
                root=root,
                empty=not again,
            )
            before = [telemetry.of_disk(disk.number) for disk in attached]
            self._before = counters_of(self.name, {"disks": before})
            self.pid = self.bundle.start()
        finally:
            for loop in (*attached, *([] if root is None else [root])):
                loop.close()
        self._first = LabProcess.of(self.pid)
        self._root = Path(f"/proc/{self.pid}/root")
        self._services: dict[str, LabProcess | None] = {}

    def _attach(self, index: int, disk: Disk) -> LoopDisk:
        lab, path = self._lab, f"/dev/wb{index}"
        if disk.model is None or lab.model_disks is None:
            return LoopDisk.attach(path, disk.size or 0, lab.bundles / self.name)
        return LoopDisk.over(path, lab.model_disks.path(self._disk_name(index)))

    def _disk_name(self, index: int) -> str:
        return file_name(self._lab.deployment, self.name, index)

    def power_off(self) -> None:
        """Kill all that runs in it. Disks stay attached until it is started again, unless their
        writes are recorded. Raises CommandFailed, TargetError.
        """
        if not self._lab.recorded:
            self._held = tuple(disk.again() for disk in self.bundle.disks)
        self._lab.runc.delete(self.bundle.id)
        left = until_none(self._pids)
        if left:
            raise TargetError(f"{self.name}: {len(left)} processes do not end, even when killed")

    def free_disks(self) -> None:
        """Close the disks that `power_off` kept."""
        for disk in self._held:
            disk.close()
        self._held = ()

    def limit(self, switch_pid: int, what: Collection[Limited], *, lift: bool = False) -> None:
        """Put limits on, or `lift` them; the switch limits what the host receives."""
        lab, spec = self._lab, self.spec
        devices = [disk.number for disk in self.bundle.disks]
        period_s = lab.hardware.cpu_period
        for write in lab.cgroups.limits(
            self.bundle.cgroup, spec, devices, what, period_s=period_s, lift=lift
        ):
            write.apply()
        if spec.nic is not None and "nic" in what:
            if lift:
                network.unlimit(switch_pid, self.port, spec.nic.rate)
            else:
                network.limit(switch_pid, self.port, spec.nic.rate, spec.nic.delay)

    def limits(self) -> str:
        """Its limits as the kernel has them. Raises TargetError, CommandFailed."""
        devices = {disk.number: disk.path for disk in self.bundle.disks}
        own_cpus = self.spec.cpuset is not None
        limits = self._lab.cgroups.read(self.bundle.cgroup, devices, own_cpus=own_cpus)
        return "; ".join((*limits, f"nic {network.read_limit(self.port)}"))

    def fail_disk(self, disk: str, *, on: bool) -> None:
        """See Hosts. Only a disk that has a model can fail. Raises UsageError, TargetError."""
        index = self.disks.index(disk)
        if self._lab.model_disks is None or self.spec.disks[index].model is None:
            raise UsageError(f"{self.name}: {disk} has no model, and only such a disk can fail")
        self._lab.model_disks.fail(self._disk_name(index), on=on)

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
        words = ["exec", "--cwd", "/", "--pid-file", str(pid_file)]
        for name, value in (env or {}).items():
            words += ["--env", f"{name}={value}"]
        line = self._lab.runc.argv(*words, self.bundle.id, *argv)
        return LabProgram(line, pid_file=pid_file, pids=self._pids, stderr=stderr)

    def _pids(self) -> tuple[int, ...]:
        return self._lab.cgroups.pids(self.bundle.cgroup)

    def tool(self, name: str) -> tuple[str, ...]:
        tools = self._lab.tools
        return super().tool(name) if tools is None else tool_argv(tools, name)

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
        keep_daemons(self.bundle.folder, self._services)

    def _find(self, pid: int, started: int) -> LabProcess | None:
        """A process by its number in the host."""
        for outer in self._pids():
            process = LabProcess.of(outer)
            if process is None or process.started != started:
                continue
            with suppress(FileNotFoundError, ProcessLookupError):
                status = Path(f"/proc/{outer}/status").read_text()
                if re.search(rf"^NSpid:.*\s{pid}$", status, re.MULTILINE):
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
        keep_daemons(self.bundle.folder, self._services)

    def alive(self, service: str) -> bool:
        process = self._services.get(service)
        return process is not None and process.running

    def is_up(self) -> bool:
        return self._first is not None and self._first.running

    def counters(self) -> Counters:
        if not self.is_up():
            raise TargetError(f"{self.name}: the host is gone: its first process has ended")
        cgroups, group = self._lab.cgroups, self.bundle.cgroup
        numbers = [disk.number for disk in self.bundle.disks]
        try:
            found = telemetry.counters(group, NIC, numbers, f"/proc/{self.pid}/net/dev")
            if cgroups.version == 1:
                # The host's one memory cgroup is there as long as the host, and counts it alone.
                said = telemetry.read(f"{cgroups.at('memory', group)}/memory.oom_control")
                found["oom_kills"] = telemetry.pairs(said).get("oom_kill")
        except (OSError, KeyError) as error:
            raise TargetError(f"{group}: its counters cannot be read: {error}") from error
        if "network_faults" not in found:
            raise TargetError(f"{group}: its counters cannot be read: no {NIC}")
        used = since(counters_of(self.name, found), self._before)
        if self._lab.model_disks is None or used.disks is None:
            return used
        models = self._lab.model_disks.counts()
        disks = [
            replace(disk, model=models.get(self._disk_name(index)))
            for index, disk in enumerate(used.disks)
        ]
        return replace(used, disks=tuple(disks))

    def drop_kernel_caches(self) -> str:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return (
            "page cache, dentries and inodes of the entire machine (all lab hosts share its kernel)"
        )
