"""The interface for running and ending a deployment's processes on real hosts, with systemd or
without.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from weighbridge.common.host import Service
from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.quota import DEFAULT_PERIOD_S
from weighbridge.topologies.ssh.connection import PATH
from weighbridge.topologies.ssh.view import UNMOUNT

DEPLOYMENT: Final = "WEIGHBRIDGE_DEPLOYMENT"
"""Environment variable of all of a deployment's processes, by which they are found: its label."""
HOLDER: Final = "WEIGHBRIDGE_HOLDER"
"""Environment variable of the processes that hold a view, which end last."""
PROGRAM: Final = "WEIGHBRIDGE_PROGRAM"
"""Environment variable of a program and all it starts, with the program's tag."""
PROGRAMS: Final = "/run/weighbridge"
"""Folder of the view with a file for each running program: its pid and start time."""

FirstSignal = Literal["TERM", "KILL"]
"""What a service's first process is sent first."""

START_TICKS: Final = """
start_ticks() {
  read -r line <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  case $1 in Z | X) return 1 ;; esac
  echo "${20}"
} 2>/dev/null
"""
"""Shell: process `$1`'s start in ticks since the boot (proc_pid_stat(5)); fails if it has ended."""

RECORD_START: Final = f"""{START_TICKS}
record_start() {{
  if start=$(start_ticks "${{3:-0}}"); then line="$3 $start"; echo "$2 $line"; else line=; fi
  echo "$line" >"$1/.$2"
  mv -f "$1/.$2" "$1/$2"
}}
"""
"""Shell: record in folder `$1` that service `$2` was started with first process `$3`, and print its
line; an empty line says that it ended at once.
"""

_STATUS: Final = f"""{START_TICKS}
[ -d "$1" ] || exit 0
cd "$1"
for one in *; do
  [ -f "$one" ] || continue
  read -r pid start <"$one" || continue
  state=dead
  if [ "$2" = here ] && [ -n "$start" ] && [ "$(start_ticks "$pid")" = "$start" ]; then
    state=alive
  fi
  echo "$one $state"
done
"""

# An ssh login often allows 1024 open files, too few for a gateway or a driver.
_WRAP: Final = """
ulimit -S -n "$(ulimit -H -n)"
exec "$@"
"""
_SIGNALLED: Final = f"""{START_TICKS}
echo "$$ $(start_ticks $$)" >{PROGRAMS}/${PROGRAM}
{_WRAP}"""

_SEARCH: Final = """
for one in "$@"; do
  command -v -- "$one" >/dev/null || { echo "$one: no such program on this host" >&2; exit 127; }
done
"""

LABELLED: Final = """
labelled() {
  for path in /proc/[0-9]*; do
    grep -qzxF -- "$1" "$path/environ" 2>/dev/null || continue
    if [ -n "${2-}" ] && grep -qz "^$2=" "$path/environ" 2>/dev/null; then continue; fi
    echo "${path#/proc/}"
  done
}
kill_labelled() {
  tries=0
  while left=$(labelled "$@") && [ -n "$left" ] && [ "$tries" -lt 100 ]; do
    kill -KILL $left 2>/dev/null || true
    tries=$((tries + 1))
    sleep 0.05
  done
}
"""
"""Shell: list or kill processes with the variable `$1` (NAME=value) but not the variable `$2`."""


@dataclass(frozen=True)
class HostProcess:
    """A process by its pid where the deployment runs, and its start in ticks since the boot."""

    pid: int
    started: int


@dataclass(frozen=True)
class HostDeployment:
    """A deployment on one host: `folder` is its folder there, `holder` the pid of the process that
    holds its view.
    """

    deployment: str
    folder: str
    holder: int = 0
    holder_started: int = 0
    """When that process started, in ticks since the boot."""
    boot: str = ""
    """The host's boot; empty: not known."""


class Services(ABC):
    """Commands and scripts for one deployment on one host, to run as root outside of its view."""

    def __init__(self, on_host: HostDeployment) -> None:
        self.on_host = on_host

    @abstractmethod
    def hold(self, memory_bytes: int | None) -> str:
        """Shell lines that start the view's holder and print its pid and start time."""

    @abstractmethod
    def enter(self) -> tuple[str, ...]:
        """Prefix of a command of the suite itself: runs it in the view, but outside the limits."""

    @abstractmethod
    def inside(self, tag: str) -> tuple[str, ...]:
        """Prefix of a command that runs it in the view and in the limits."""

    def program(
        self,
        tag: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        signalled: bool = False,
    ) -> tuple[str, ...]:
        """The command that runs a program as part of the deployment.

        `kill` finds it by `tag`, and if `signalled` so does `signal`.
        """
        wrap = _SIGNALLED if signalled else _WRAP
        return (*self.inside(tag), *self.environment(tag, env), "/bin/sh", "-c", wrap, "sh", *argv)

    def environment(self, tag: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Prefix of a command: the deployment's environment, and nothing of the login's."""
        variables = {
            "PATH": PATH,
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            DEPLOYMENT: self.on_host.deployment,
            PROGRAM: tag,
            **(env or {}),
        }
        return ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()))

    def signal(self, tag: str, number: int) -> str:
        """Shell lines that signal a program; one that has ended is no error."""
        script = (
            f"{START_TICKS}read -r pid start <{PROGRAMS}/{tag} && "
            f'[ "$(start_ticks $pid)" = "$start" ] && kill -{number} $pid; true'
        )
        return shlex.join((*self.enter(), "/bin/sh", "-c", script)) + " 2>/dev/null || true"

    @abstractmethod
    def kill(self, tag: str) -> str:
        """Shell lines that kill a program with all it started."""

    def service_file(self, service: Service) -> str:
        """The script of a service: what it runs, and where its output goes."""
        tag = f"service.{service.name}"
        clean = shlex.join((*self.environment(tag), "/bin/sh")) + ' "$0"'
        # Its variables may be secret: exported by the shell they are on no command line.
        exports = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in service.env.items()
        )
        return (
            f"# {service.name} of {self.on_host.deployment}\n"
            f'if [ "${{{PROGRAM}-}}" != {shlex.quote(tag)} ]; then exec {clean}; fi\n'
            f"exec </dev/null >>/var/log/host/{service.name}.out 2>&1\n"
            'ulimit -S -n "$(ulimit -H -n)"\n'
            f"{exports}exec {shlex.join(service.argv)}\n"
        )

    def service_path(self, service: str) -> str:
        """The path of that script on the host."""
        return f"{self.on_host.folder}/services/{service}"

    @property
    def started(self) -> str:
        """Folder on the host with a file for each service that was started and not stopped."""
        return f"{self.on_host.folder}/started"

    def start(self, services: Sequence[Service]) -> str:
        """Shell lines that start services and print `name pid started` for each that is running."""
        lines = [
            "umask 077",
            f"mkdir -p {shlex.quote(self.on_host.folder)}/services {shlex.quote(self.started)}",
        ]
        programs = sorted({service.argv[0] for service in services})
        search = ("/usr/bin/env", f"PATH={PATH}", "/bin/sh", "-c", _SEARCH, "sh", *programs)
        lines.append(shlex.join((*self.enter(), *search)))
        lines += [
            f"printf %s {shlex.quote(self.service_file(one))} >{self.service_path(one.name)}"
            for one in services
        ]
        return "\n".join([*lines, RECORD_START, self._launch([one.name for one in services])])

    @abstractmethod
    def _launch(self, services: Sequence[str]) -> str:
        """Shell lines that start services whose files exist."""

    def stop(
        self, service: str, process: HostProcess, timeout_s: float, first: FirstSignal = "TERM"
    ) -> str:
        """Shell lines that end a service: `first` to its first process, then KILL to what is left
        of it after `timeout_s`. They print `left` when its first process is still running.
        """
        # From here on its end is wanted, and no death.
        forget = f"rm -f {shlex.quote(f'{self.started}/{service}')}"
        return f"{forget}\n{self._end(service, process, timeout_s, first)}"

    @abstractmethod
    def _end(self, service: str, process: HostProcess, timeout_s: float, first: FirstSignal) -> str:
        """Shell lines that end a service and print `left`."""

    def status(self) -> str:
        """Shell lines that print `name alive` or `name dead` for each service that was started and
        not stopped, by its first process.
        """
        look = ("/bin/sh", "-ec", _STATUS, "sh", self.started)
        # Pids mean nothing in another boot.
        boot = "true"
        if self.on_host.boot:
            boot_id = "$(cat /proc/sys/kernel/random/boot_id)"
            boot = f'[ "{boot_id}" = {shlex.quote(self.on_host.boot)} ]'
        here = shlex.join((*self._enter_pids(), *look, "here"))
        gone = shlex.join((*look, "gone"))
        return f"{START_TICKS}\nif {boot} && {self._may_run()}; then {here}; else {gone}; fi"

    @abstractmethod
    def _enter_pids(self) -> tuple[str, ...]:
        """Prefix of a command that shows it processes by their recorded pids."""

    @abstractmethod
    def _may_run(self) -> str:
        """A shell command, with START_TICKS defined, that fails where no service can be running."""

    @abstractmethod
    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """Shell lines that put limits on disks at these paths and on CPUs; may be empty."""

    @abstractmethod
    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """Shell lines that remove what `limit` puts on."""

    def read_limits(self) -> str:
        """Shell lines that print limits as the kernel reports them."""
        return "true"

    @property
    def group(self) -> str | None:
        """The deployment's cgroup, below the mount point of each hierarchy; None: it has none."""
        return None

    def end(self, numbers: Sequence[str]) -> str:
        """Shell lines that end the deployment's processes, found by its label, then its view, and
        print pids that are left.

        Mounts of the disks with these numbers (`major:minor`) are unmounted in the view before it
        goes, so that the disks are free when this returns.
        """
        label = shlex.quote(f"{DEPLOYMENT}={self.on_host.deployment}")
        return "\n".join((LABELLED, self._end_all(label, shlex.join(numbers)), f"labelled {label}"))

    @abstractmethod
    def _end_all(self, label: str, numbers: str) -> str:
        """Shell lines that end all processes and the view."""


def await_end(process: HostProcess, timeout_s: float, end: str) -> str:
    """Shell lines that define `running` for a process, and wait for its end after running `end`."""
    tries = max(1, int(timeout_s / 0.05))
    return f"""{START_TICKS}
running() {{ [ "$(start_ticks {process.pid})" = {process.started} ]; }}
if running; then {end}; fi
tries=0
while running && [ $tries -lt {tries} ]; do
  sleep 0.05
  tries=$((tries + 1))
done
"""


def unmounting(numbers: str) -> str:
    """Shell lines for `_end_all` that unmount disks, in the view of a process that holds one."""
    return f"""
for pid in $(labelled "$label"); do
  nsenter --mount=/proc/$pid/ns/mnt \\
    /bin/sh -c {shlex.quote(UNMOUNT)} sh {numbers} || true
  break
done
"""
