"""How a real host runs and ends what a deployment has there: the seam between hosts with systemd
and hosts without.
"""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weighbridge.common.host import Service
from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.quota import DEFAULT_PERIOD_S
from weighbridge.topologies.ssh.connection import PATH
from weighbridge.topologies.ssh.view import UNMOUNT

DEPLOYMENT: Final = "WEIGHBRIDGE_DEPLOYMENT"
"""Variable of every process of a deployment, with its label: what is left of one is found by it."""
HOLDER: Final = "WEIGHBRIDGE_HOLDER"
"""Variable of the processes that hold a view: they end last."""
PROGRAM: Final = "WEIGHBRIDGE_PROGRAM"
"""Variable of a program and of all that it starts: which one it is."""
PROGRAMS: Final = "/run/weighbridge"
"""Folder of the view: a file for each program that runs, with its number and when it started."""

BORN: Final = """
born() {
  read -r line <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  case $1 in Z | X) return 1 ;; esac
  echo "${20}"
} 2>/dev/null
"""
"""Shell: when the process `$1` started, in ticks since the boot (proc_pid_stat(5)); fails when
there is none, or a dead one.
"""

BEGUN: Final = f"""{BORN}
begun() {{
  if start=$(born "${{3:-0}}"); then line="$3 $start"; echo "$2 $line"; else line=; fi
  echo "$line" >"$1/.$2"
  mv -f "$1/.$2" "$1/$2"
}}
"""
"""Shell: write down in the folder `$1` that the service `$2` was started and that `$3` is its first
process, and print its line.
"""

# What is written there was written whole. An empty line is of a service that had ended as soon as
# it began.
_ASKED: Final = f"""{BORN}
[ -d "$1" ] || exit 0
cd "$1"
for one in *; do
  [ -f "$one" ] || continue
  read -r pid start <"$one" || continue
  if [ "$2" = here ] && [ -n "$start" ] && [ "$(born "$pid")" = "$start" ]; then echo "$one alive"; else echo "$one dead"; fi
done
"""

# What a login by ssh may open is often 1024, which is less than a gateway or a driver needs.
_WRAP: Final = """
ulimit -S -n "$(ulimit -H -n)"
exec "$@"
"""
_SIGNALLED: Final = f"""{BORN}
echo "$$ $(born $$)" >{PROGRAMS}/${PROGRAM}
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
"""Shell: processes with the variable `$1` (NAME=value) in their environment but not the variable
`$2`, and how they are killed.
"""


@dataclass(frozen=True)
class HostProcess:
    """A process of a host by its number where the deployment runs, and when it started, in ticks
    since the boot.
    """

    pid: int
    started: int


@dataclass(frozen=True)
class Stand:
    """A deployment on one host:

    `folder` is its own there, `holder` the number of the process that holds its view.
    """

    deployment: str
    folder: str
    holder: int = 0
    holder_started: int = 0
    """When that process started, in ticks since the host was booted."""
    boot: str = ""
    """Which boot of the host it is of; empty: not known."""


class Services(ABC):
    """Commands and scripts for one deployment on one host.

    All are run on the host itself, as root, outside of the view.
    """

    def __init__(self, stand: Stand) -> None:
        self.stand = stand

    # the view
    # ----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def hold(self, memory_bytes: int | None) -> str:
        """Shell lines that start the holder of a view; they print its number and when it
        started.
        """

    @abstractmethod
    def enter(self) -> tuple[str, ...]:
        """Words before a command that have it run in the view, beside the limits: for what the
        suite does for itself.
        """

    # programs
    # ----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def inside(self, tag: str) -> tuple[str, ...]:
        """Words before a command that have it run in the view and in the limits."""

    def program(
        self,
        tag: str,
        argv: Sequence[str],
        env: Mapping[str, str] | None = None,
        *,
        signalled: bool = False,
    ) -> tuple[str, ...]:
        """What runs a program as part of the deployment.

        `kill` finds it by `tag`, and if `signalled` so does `signal`.
        """
        wrap = _SIGNALLED if signalled else _WRAP
        return (*self.inside(tag), *self.environment(tag, env), "/bin/sh", "-c", wrap, "sh", *argv)

    def environment(self, tag: str, env: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Words that give a command the environment that all of a deployment has, and nothing of
        who logged in.
        """
        all_of_it = {
            "PATH": PATH,
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            DEPLOYMENT: self.stand.deployment,
            PROGRAM: tag,
            **(env or {}),
        }
        return ("/usr/bin/env", "-i", *(f"{name}={value}" for name, value in all_of_it.items()))

    def signal(self, tag: str, number: int) -> str:
        """Shell lines that signal a program; one that has ended is no error."""
        script = (
            f'{BORN}read -r pid start <{PROGRAMS}/{tag} && [ "$(born $pid)" = "$start" ] && '
            f"kill -{number} $pid; true"
        )
        return shlex.join((*self.enter(), "/bin/sh", "-c", script)) + " 2>/dev/null || true"

    @abstractmethod
    def kill(self, tag: str) -> str:
        """Shell lines that end a program at once, with all it started."""

    # services
    # ----------------------------------------------------------------------------------------------------------------

    def service_file(self, service: Service) -> str:
        """The script that is a service: what it runs, where its output goes."""
        tag = f"service.{service.name}"
        clean = shlex.join((*self.environment(tag), "/bin/sh")) + ' "$0"'
        # What it is given besides may be secret: by the shell itself it is on no command line, not
        # even that of env(1).
        given = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in service.env.items()
        )
        return (
            f"# {service.name} of {self.stand.deployment}\n"
            f'if [ "${{{PROGRAM}-}}" != {shlex.quote(tag)} ]; then exec {clean}; fi\n'
            f"exec </dev/null >>/var/log/host/{service.name}.out 2>&1\n"
            'ulimit -S -n "$(ulimit -H -n)"\n'
            f"{given}exec {shlex.join(service.argv)}\n"
        )

    def service_path(self, service: str) -> str:
        """Where that script is on the host."""
        return f"{self.stand.folder}/services/{service}"

    @property
    def started(self) -> str:
        """Folder on the host with a file for each service that was started and not stopped, as
        BEGUN writes it.
        """
        return f"{self.stand.folder}/started"

    def start(self, services: Sequence[Service]) -> str:
        """Shell lines that start services and print a line `name pid started` for each that has not
        ended already.
        """
        lines = [
            "umask 077",
            f"mkdir -p {shlex.quote(self.stand.folder)}/services {shlex.quote(self.started)}",
        ]
        programs = sorted({service.argv[0] for service in services})
        search = ("/usr/bin/env", f"PATH={PATH}", "/bin/sh", "-c", _SEARCH, "sh", *programs)
        lines.append(shlex.join((*self.enter(), *search)))
        lines += [
            f"printf %s {shlex.quote(self.service_file(one))} >{self.service_path(one.name)}"
            for one in services
        ]
        return "\n".join([*lines, BEGUN, self._launch([service.name for service in services])])

    @abstractmethod
    def _launch(self, services: Sequence[str]) -> str:
        """The lines of `start` that do it; the services' files are there."""

    def stop(self, service: str, process: HostProcess, timeout_s: float) -> str:
        """Shell lines that end a service: TERM to its first process, KILL to all that is left when
        that has ended or time is up.

        They print `stayed` when its first process is there still.
        """
        # It is asked to end from here on: that it has is no death.
        return (
            "rm -f "
            f"{shlex.quote(f'{self.started}/{service}')}\n{self._end(service, process, timeout_s)}"
        )

    @abstractmethod
    def _end(self, service: str, process: HostProcess, timeout_s: float) -> str:
        """The lines of `stop` that do it."""

    def ask(self) -> str:
        """Shell lines that print a line `name alive` or `name dead` for each service that was
        started and not stopped.

        A service is alive as long as its very first process is there.
        """
        look = ("/bin/sh", "-ec", _ASKED, "sh", self.started)
        # Numbers of processes mean nothing in another boot.
        boot = (
            f'[ "$(cat /proc/sys/kernel/random/boot_id)" = {shlex.quote(self.stand.boot)} ]'
            if self.stand.boot
            else "true"
        )
        asked = shlex.join((*self._numbered(), *look, "here"))
        return (
            f"{BORN}\nif {boot} && {self._holds()}; then {asked}; else "
            f"{shlex.join((*look, 'gone'))}; fi"
        )

    @abstractmethod
    def _numbered(self) -> tuple[str, ...]:
        """Words before a command that have it see processes by the numbers that services were
        started with.
        """

    @abstractmethod
    def _holds(self) -> str:
        """A shell command that fails where no service can be alive any more; BORN is known to
        it.
        """

    # limits
    # ------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """Shell lines that put limits on; `devices` are the disks' paths, `period_s` is of the CPU
        quota. Empty: none to put on.
        """

    @abstractmethod
    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """Shell lines that take off again what `limit` puts on."""

    def read_limits(self) -> str:
        """Shell lines that print limits as the kernel tells them."""
        return "true"

    @property
    def group(self) -> str | None:
        """The cgroup that all of the deployment is in, below the mount point of each hierarchy;
        None: it has none.
        """
        return None

    # the end
    # -----------------------------------------------------------------------------------------------------------------

    def end(self, numbers: Sequence[str]) -> str:
        """Shell lines that end all of the deployment and then its view; they print the numbers of
        processes that stayed.

        `numbers` are the disks' `major:minor`: what is mounted from them in the view is unmounted
        before the view goes, so that they are free when this returns. Everything is found by the
        deployment's label.
        """
        label = shlex.quote(f"{DEPLOYMENT}={self.stand.deployment}")
        return "\n".join((LABELLED, self._end_all(label, shlex.join(numbers)), f"labelled {label}"))

    @abstractmethod
    def _end_all(self, label: str, numbers: str) -> str:
        """The lines of `end` that do it."""


def unmounting(numbers: str) -> str:
    """Shell lines for `_end_all`: unmount what is on the disks, in the view of each process that
    holds one.
    """
    return f"""
for pid in $(labelled "$label"); do
  nsenter --mount=/proc/$pid/ns/mnt /bin/sh -c {shlex.quote(UNMOUNT)} sh {numbers} || true
  break
done
"""
