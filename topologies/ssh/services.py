"""Running and ending a deployment's processes on real hosts: a slice of systemd, with transient
units for services and scopes for programs.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final, Literal

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Service
from weighbridge.topologies.hardware import DEFAULT_PERIOD_S, HostSpec, quota_of
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.ssh.connection import PATH

# A view is a private mount namespace, held by one process. In it the folders that gateways write
# to are overlays over the host's own, /run and /tmp are empty, and /var/log/host is the
# deployment's log folder. The host's own mount table has nothing of it, and when the last process
# in it ends the kernel removes it all, with file systems mounted from disks.


OVERLAID: Final = ("/etc", "/var/lib", "/var/cache", "/var/log", "/srv", "/usr/local")
"""Folders of gateways' configuration, state and of this suite's programs."""
EMPTY: Final = (("/run", "755"), ("/tmp", "1777"))  # noqa: S108 - places in the view, with their modes

# mount(8) only says "wrong fs type" of an upper folder that overlayfs cannot use.
_MOUNT = """
folder=$1
kind=$(stat -f -c %T "$folder")
for place in {places}; do
  [ -d "$place" ] || {{ echo "this host has no $place, where gateways put files" >&2; exit 1; }}
  own=$folder/view/$(echo "${{place#/}}" | tr / -)
  mkdir -p "$own/upper" "$own/work"
  chmod "$(stat -c %a "$place")" "$own/upper"
  layers=lowerdir=$place,upperdir=$own/upper,workdir=$own/work
  mount -t overlay weighbridge -o "$layers" "$place" || {{
    echo "overlays cannot keep changes of $place in $folder, a file system of type $kind." >&2
    echo "Put the folder of deployments (ssh: folder) on ext4 or xfs." >&2
    exit 1
  }}
done
{empty}
mkdir -p /run/lock /run/weighbridge /var/log/host
chmod 1777 /run/lock
chmod 700 /run/weighbridge
mount --bind "$folder/log" /var/log/host
cat >>/etc/hosts
"""


def view_script() -> str:
    """Shell lines that make a view here: `$1` is its folder, stdin is added to /etc/hosts."""
    empty = "\n".join(f"mount -t tmpfs -o mode={mode} weighbridge {place}" for place, mode in EMPTY)
    return _MOUNT.format(places=shlex.join(OVERLAID), empty=empty)


def view_names(addresses: Mapping[str, str]) -> str:
    """Lines of /etc/hosts with the names of all hosts of a deployment."""
    return "".join(f"{address} {name}\n" for name, address in addresses.items())


def check_view_folder(folder: str) -> None:
    """Raise UsageError for a folder of deployments in, at or above one that a view replaces."""
    path = PurePosixPath(folder)
    if ".." in path.parts or path == PurePosixPath("/"):
        raise UsageError(f"ssh: folder: {folder} cannot hold deployments")
    for place in (*OVERLAID, *(place for place, _ in EMPTY), "/proc", "/sys", "/dev"):
        if path.is_relative_to(place) or PurePosixPath(place).is_relative_to(path):
            raise UsageError(
                f"ssh: folder: {folder} is at, above or below {place}, where deployments have "
                "their own layer",
                advice="choose another, such as /opt/weighbridge",
            )


UNMOUNT: Final = """
for round in 1 2; do
  while read -r _ _ device _ point _; do
    for own in "$@"; do
      if [ "$device" = "$own" ]; then umount "$point" || true; fi
    done
  done </proc/self/mountinfo
done
"""
"""Unmounts the devices `$@` (`major:minor`) in its namespace, also mounts below others."""


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
    """A deployment on a host: its `folder`, and the pid `holder` of what holds its view."""

    deployment: str
    folder: str
    holder: int = 0
    boot: str = ""
    """The host's boot; empty: not known."""


# A service that the kernel kills for memory ends alone, as in the lab. Units are killed soon after
# they are asked to end: their data is thrown away.
_UNIT: Final = ("--property=TasksMax=infinity", "--property=TimeoutStopSec=10s")
_SERVICE: Final = (*_UNIT, "--property=OOMPolicy=continue", "--property=StartLimitIntervalSec=0")
_WAYS: Final = ("Read", "Write")


class Services:
    """Commands and scripts for one deployment on one host, to run as root outside of its view.

    In a slice's name `_` replaces dashes, which would be levels.
    """

    def __init__(self, on_host: HostDeployment) -> None:
        self.on_host = on_host

    @property
    def slice(self) -> str:
        return f"weighbridge-{self.on_host.deployment.replace('-', '_')}.slice"

    def unit(self, name: str, kind: str = "service") -> str:
        return f"weighbridge-{self.on_host.deployment}-{name}.{kind}"

    def hold(self, memory_bytes: int | None) -> str:
        """Shell lines that start the view's holder and print its pid."""
        unit = self.unit("view")
        memory = [] if memory_bytes is None else [f"MemoryMax={memory_bytes}", "MemorySwapMax=0"]
        accounting = [f"{what}Accounting=yes" for what in ("CPU", "Memory", "IO")]
        label = f"--setenv={DEPLOYMENT}={self.on_host.deployment}"
        run = ("systemd-run", *self._unit("view"), *_SERVICE, label, f"--setenv={HOLDER}=1")
        hold = ("unshare", "--mount", "--propagation", "private", "sleep", "infinity")
        return "\n".join(
            (
                self._set_properties((*accounting, "TasksMax=infinity", *memory)),
                shlex.join((*run, *hold)),
                f"pid=$(systemctl show --property=MainPID --value {unit})",
                # It gets its own namespace a moment after its start.
                'while [ "$(readlink /proc/$pid/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ]; do',
                "  sleep 0.02",
                "done",
                "echo $pid",
            )
        )

    def _set_properties(self, properties: Sequence[str]) -> str:
        return shlex.join(("systemctl", "set-property", "--runtime", self.slice, *properties))

    def enter(self) -> tuple[str, ...]:
        """Prefix of a command of the suite itself: runs it in the view, but outside the limits."""
        return ("nsenter", f"--mount=/proc/{self.on_host.holder}/ns/mnt", "--")

    def inside(self, tag: str) -> tuple[str, ...]:
        return ("systemd-run", "--scope", *self._unit(tag, "scope"), *_UNIT, *self.enter())

    def _unit(self, name: str, kind: str = "service") -> tuple[str, ...]:
        return (
            "--quiet",
            "--collect",
            f"--unit={self.unit(name, kind)}",
            f"--slice={self.slice}",
            f"--description=Weighbridge {self.on_host.deployment}: {name}",
        )

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

    def kill(self, tag: str) -> str:
        """Shell lines that kill a program with all it started."""
        return _kill_unit(self.unit(tag, "scope"))

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

    def _launch(self, services: Sequence[str]) -> str:
        lines = []
        for service in services:
            run = ("systemd-run", *self._unit(service), *_SERVICE)
            lines.append(shlex.join((*run, *self.enter(), "/bin/sh", self.service_path(service))))
        for service in services:
            unit = self.unit(service)
            lines.append(f"pid=$(systemctl show --property=MainPID --value {unit})")
            lines.append(f'record_start {shlex.quote(self.started)} {service} "$pid"')
        return "\n".join(lines)

    def stop(
        self, service: str, process: HostProcess, timeout_s: float, first: FirstSignal = "TERM"
    ) -> str:
        """Shell lines that end a service: `first` to its first process, then KILL to what is left
        of it after `timeout_s`. They print `left` when its first process is still running.
        """
        # From here on its end is wanted, and no death.
        forget = f"rm -f {shlex.quote(f'{self.started}/{service}')}"
        return f"{forget}\n{self._end(service, process, timeout_s, first)}"

    def _end(self, service: str, process: HostProcess, timeout_s: float, first: FirstSignal) -> str:
        unit = self.unit(service)
        end = f"systemctl kill --kill-who=main --signal={first} {unit} 2>/dev/null || true"
        return f"""{await_end(process, timeout_s, end)}
{_kill_unit(unit)}
if running; then echo left; fi
"""

    def status(self) -> str:
        """Shell lines that print `name alive` or `name dead` of services that were not stopped."""
        look = ("/bin/sh", "-ec", _STATUS, "sh", self.started)
        # Pids mean nothing in another boot.
        boot = "true"
        if self.on_host.boot:
            boot_id = "$(cat /proc/sys/kernel/random/boot_id)"
            boot = f'[ "{boot_id}" = {shlex.quote(self.on_host.boot)} ]'
        here, gone = (shlex.join((*look, where)) for where in ("here", "gone"))
        return f"{START_TICKS}\nif {boot}; then {here}; else {gone}; fi"

    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """Shell lines that put limits on disks at these paths and on CPUs; may be empty."""
        return self._limits(spec, devices, what, lift=False, period_s=period_s)

    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """Shell lines that remove what `limit` puts on."""
        return self._limits(spec, devices, what, lift=True)

    def _limits(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        lift: bool,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        properties: list[str] = []
        writes: list[str] = []
        if "cpu" in what and spec.cpus is not None:
            period_us = quota_of(spec.cpus, period_s).period_us
            properties += ["CPUQuota=" if lift else f"CPUQuota={spec.cpus * 100:.0f}%"]
            properties += ["CPUQuotaPeriodSec=" if lift else f"CPUQuotaPeriodSec={period_us}us"]
        for device, disk in zip(devices, spec.disks, strict=True):
            if "disk" not in what:
                continue
            for kind, rate in (("Bandwidth", disk.bandwidth), ("IOPS", disk.iops)):
                if rate is not None:
                    value = "infinity" if lift else rate
                    properties += [f"IO{way}{kind}Max={device} {value}" for way in _WAYS]
            if disk.iops is not None:
                # systemd does not set blkio.throttle.*_iops_device in cgroup version 1.
                rate = 0 if lift else disk.iops
                folder = f"/sys/fs/cgroup/blkio/{self.group}"
                number = f"$(printf %d:%d $(stat -Lc '0x%t 0x%T' {shlex.quote(device)}))"
                writes += [
                    f'if [ -d {folder} ]; then echo "{number} {rate}" '
                    f">{folder}/blkio.throttle.{way.lower()}_iops_device; fi"
                    for way in _WAYS
                ]
        if not properties:
            return ""
        return "\n".join((self._set_properties(properties), *writes))

    def read_limits(self) -> str:
        """Shell lines that print the kernel's limits, of version 2 or each hierarchy of 1."""
        two = (f"{self.group}/{name}" for name in ("cpu.max", "memory.max", "io.max"))
        quota = (f"cpu/{self.group}/cpu.cfs_{what}_us" for what in ("quota", "period"))
        one = (*quota, f"memory/{self.group}/memory.limit_in_bytes")
        throttle = (
            f"blkio/{self.group}/blkio.throttle.{way}_{what}_device"
            for way in ("read", "write")
            for what in ("bps", "iops")
        )
        paths = " ".join((*two, *one, *throttle))
        show = 'if [ -f "$one" ]; then sed "s|^|${one##*/} |" "$one"; fi'
        return f"cd /sys/fs/cgroup; for one in {paths}; do {show}; done"

    @property
    def group(self) -> str:
        """The deployment's cgroup, below the mount point of each hierarchy."""
        return f"weighbridge.slice/{self.slice}"

    def end(self, numbers: Sequence[str]) -> str:
        """Shell lines that end the deployment's processes, found by its label, then its view, and
        print pids that are left.

        Mounts of the disks with these numbers (`major:minor`) are unmounted in the view before it
        goes, so that the disks are free when this returns.
        """
        label = shlex.quote(f"{DEPLOYMENT}={self.on_host.deployment}")
        return "\n".join((LABELLED, self._end_all(label, shlex.join(numbers)), f"labelled {label}"))

    def _end_all(self, label: str, numbers: str) -> str:
        own = f"weighbridge-{self.on_host.deployment}-"
        return f"""
label={label}
for unit in $(systemctl list-units --all --plain --no-legend '{own}*' | cut -d ' ' -f 1); do
  case $unit in {own}view.service) continue ;; esac
  {_kill_unit('"$unit"')}
done
kill_labelled "$label" {HOLDER}
{unmounting(numbers)}
systemctl stop {self.slice} 2>/dev/null || true
kill_labelled "$label"
systemctl revert {self.slice} >/dev/null 2>&1 || true
systemctl reset-failed '{own}*' {self.slice} 2>/dev/null || true
others=$(systemctl list-units --all --plain --no-legend 'weighbridge-*' |
  grep -v -F {self.slice} || true)
if [ -z "$others" ]; then systemctl stop weighbridge.slice 2>/dev/null || true; fi
"""


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


def _kill_unit(unit: str) -> str:
    return (
        f"systemctl kill --signal=KILL {unit} 2>/dev/null || true\n"
        f"systemctl stop {unit} 2>/dev/null || true"
    )
