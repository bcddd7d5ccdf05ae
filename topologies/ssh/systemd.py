"""Hosts with systemd: a deployment is a slice with transient units for services and scopes."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Final

from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.quota import DEFAULT_PERIOD_S, quota_of
from weighbridge.topologies.ssh.services import (
    DEPLOYMENT,
    HOLDER,
    START_TICKS,
    FirstSignal,
    HostProcess,
    Services,
    await_end,
    unmounting,
)

# A service that the kernel kills for memory ends alone, as in the lab. Units are killed soon after
# they are asked to end: their data is thrown away.
_UNIT: Final = ("--property=TasksMax=infinity", "--property=TimeoutStopSec=10s")
_SERVICE: Final = (*_UNIT, "--property=OOMPolicy=continue", "--property=StartLimitIntervalSec=0")


class Systemd(Services):
    """Units of one deployment. In a slice's name `_` replaces dashes, which would be levels."""

    @property
    def slice(self) -> str:
        """The deployment's slice on this host."""
        return f"weighbridge-{self.on_host.deployment.replace('-', '_')}.slice"

    def unit(self, name: str, kind: str = "service") -> str:
        """The unit of a service or of a program."""
        return f"weighbridge-{self.on_host.deployment}-{name}.{kind}"

    def hold(self, memory_bytes: int | None) -> str:
        """Start the holder as a service, after the slice's accounting and memory limit."""
        unit = self.unit("view")
        memory = [] if memory_bytes is None else [f"MemoryMax={memory_bytes}", "MemorySwapMax=0"]
        accounting = [f"{what}Accounting=yes" for what in ("CPU", "Memory", "IO")]
        label = f"--setenv={DEPLOYMENT}={self.on_host.deployment}"
        run = ("systemd-run", *self._unit("view"), *_SERVICE, label, f"--setenv={HOLDER}=1")
        hold = ("unshare", "--mount", "--propagation", "private", "sleep", "infinity")
        return "\n".join(
            (
                START_TICKS,
                self._set_properties((*accounting, "TasksMax=infinity", *memory)),
                shlex.join((*run, *hold)),
                f"pid=$(systemctl show --property=MainPID --value {unit})",
                # It gets its own namespace a moment after its start.
                'while [ "$(readlink /proc/$pid/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ]; do',
                "  sleep 0.02",
                "done",
                'echo "$pid $(start_ticks $pid)"',
            )
        )

    def _set_properties(self, properties: Sequence[str]) -> str:
        return shlex.join(("systemctl", "set-property", "--runtime", self.slice, *properties))

    def enter(self) -> tuple[str, ...]:
        """Enter the holder's namespace."""
        return ("nsenter", f"--mount=/proc/{self.on_host.holder}/ns/mnt", "--")

    def inside(self, tag: str) -> tuple[str, ...]:
        """Run in a scope, which keeps the session's stdin and stdout."""
        return ("systemd-run", "--scope", *self._unit(tag, "scope"), *_UNIT, *self.enter())

    def _unit(self, name: str, kind: str = "service") -> tuple[str, ...]:
        """Options of systemd-run: the unit's name, description and slice."""
        return (
            "--quiet",
            "--collect",
            f"--unit={self.unit(name, kind)}",
            f"--slice={self.slice}",
            f"--description=Weighbridge {self.on_host.deployment}: {name}",
        )

    def kill(self, tag: str) -> str:
        """Kill everything in its scope."""
        return _kill_unit(self.unit(tag, "scope"))

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

    def _end(self, service: str, process: HostProcess, timeout_s: float, first: FirstSignal) -> str:
        """End its first process, then its unit, which contains all that it started."""
        unit = self.unit(service)
        end = f"systemctl kill --kill-who=main --signal={first} {unit} 2>/dev/null || true"
        return f"""{await_end(process, timeout_s, end)}
{_kill_unit(unit)}
if running; then echo left; fi
"""

    def _enter_pids(self) -> tuple[str, ...]:
        """Enter nothing: pids are the host's own."""
        return ()

    def _may_run(self) -> str:
        """Never fail: units outlive the view's holder."""
        return "true"

    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """Set properties of the slice until it ends."""
        return self._limits(spec, devices, what, lift=False, period_s=period_s)

    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """Reset the same properties."""
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
        """Print the limits of cgroup version 2, or of each hierarchy of version 1."""
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
        """The slice's cgroup."""
        return f"weighbridge.slice/{self.slice}"

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


_WAYS: Final = ("Read", "Write")


def _kill_unit(unit: str) -> str:
    return (
        f"systemctl kill --signal=KILL {unit} 2>/dev/null || true\n"
        f"systemctl stop {unit} 2>/dev/null || true"
    )
