"""Hosts with systemd: a deployment is a slice, its services are transient units there, its commands
scopes.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Final

from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.quota import DEFAULT_PERIOD_S, quota_of
from weighbridge.topologies.ssh.services import (
    BORN,
    DEPLOYMENT,
    HOLDER,
    HostProcess,
    Services,
    unmounting,
)

# A service that the kernel ends for memory is that service's end alone, as it is in a lab; and what
# is asked to end is killed soon after, since its data is thrown away.
_UNIT: Final = ("--property=TasksMax=infinity", "--property=TimeoutStopSec=10s")
_SERVICE: Final = (*_UNIT, "--property=OOMPolicy=continue", "--property=StartLimitIntervalSec=0")


class Systemd(Services):
    """Units of one deployment.

    A dash in the name of a slice is a level of its own, so that the label's are written `_`.
    """

    @property
    def slice(self) -> str:
        """The slice that all of the deployment on this host is in."""
        return f"weighbridge-{self.stand.deployment.replace('-', '_')}.slice"

    def unit(self, name: str, kind: str = "service") -> str:
        """The unit of a service or of a program."""
        return f"weighbridge-{self.stand.deployment}-{name}.{kind}"

    def hold(self, memory_bytes: int | None) -> str:
        """Start the holder as a service, the slice's accounts and memory limit first."""
        unit = self.unit("view")
        memory = [] if memory_bytes is None else [f"MemoryMax={memory_bytes}", "MemorySwapMax=0"]
        accounts = (
            "CPUAccounting=yes",
            "MemoryAccounting=yes",
            "IOAccounting=yes",
            "TasksMax=infinity",
        )
        label = f"--setenv={DEPLOYMENT}={self.stand.deployment}"
        run = ("systemd-run", *self._unit("view"), *_SERVICE, label)
        lines = (
            BORN,
            shlex.join(("systemctl", "set-property", "--runtime", self.slice, *accounts, *memory)),
            shlex.join(
                (
                    *run,
                    f"--setenv={HOLDER}=1",
                    "unshare",
                    "--mount",
                    "--propagation",
                    "private",
                    "sleep",
                    "infinity",
                )
            ),
            f"pid=$(systemctl show --property=MainPID --value {unit})",
            # Its namespace is its own only a moment after it was started.
            (
                'while [ "$(readlink /proc/$pid/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ]; do '
                "sleep 0.02; done"
            ),
            'echo "$pid $(born $pid)"',
        )
        return "\n".join(lines)

    def enter(self) -> tuple[str, ...]:
        """By the holder's namespace."""
        return ("nsenter", f"--mount=/proc/{self.stand.holder}/ns/mnt", "--")

    def inside(self, tag: str) -> tuple[str, ...]:
        """In a scope of its own: its stdin and stdout stay those of the session."""
        return ("systemd-run", "--scope", *self._unit(tag, "scope"), *_UNIT, *self.enter())

    def _unit(self, name: str, kind: str = "service") -> tuple[str, ...]:
        """Options of systemd-run: what a unit is called, here and to people, and where it
        belongs.
        """
        told = f"--description=Weighbridge {self.stand.deployment}: {name}"
        return (
            "--quiet",
            "--collect",
            f"--unit={self.unit(name, kind)}",
            f"--slice={self.slice}",
            told,
        )

    def kill(self, tag: str) -> str:
        """All that is in its scope."""
        unit = self.unit(tag, "scope")
        return (
            f"systemctl kill --signal=KILL {unit} 2>/dev/null || true\nsystemctl stop {unit} "
            "2>/dev/null || true"
        )

    def _launch(self, services: Sequence[str]) -> str:
        lines = []
        for service in services:
            run = ("systemd-run", *self._unit(service), *_SERVICE)
            lines.append(shlex.join((*run, *self.enter(), "/bin/sh", self.service_path(service))))
        for service in services:
            unit = self.unit(service)
            lines.append(f"pid=$(systemctl show --property=MainPID --value {unit})")
            lines.append(f'begun {shlex.quote(self.started)} {service} "$pid"')
        return "\n".join(lines)

    def _end(self, service: str, process: HostProcess, timeout_s: float) -> str:
        """By its unit: what it started is in there too, whatever became of its first process."""
        unit = self.unit(service)
        return f"""{BORN}
there() {{ [ "$(born {process.pid})" = {process.started} ]; }}
systemctl kill --kill-who=main --signal=TERM {unit} 2>/dev/null || true
tries=0
while there && [ $tries -lt {max(1, int(timeout_s / 0.05))} ]; do sleep 0.05; tries=$((tries + 1)); done
systemctl kill --signal=KILL {unit} 2>/dev/null || true
systemctl stop {unit} 2>/dev/null || true
if there; then echo stayed; fi
"""

    def _numbered(self) -> tuple[str, ...]:
        """None: they are the host's own."""
        return ()

    def _holds(self) -> str:
        """One that never fails: units live on without the view's holder."""
        return "true"

    # limits
    # ------------------------------------------------------------------------------------------------------------------

    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """As properties of the slice, for as long as it is there."""
        return self._limits(spec, devices, what, lift=False, period_s=period_s)

    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """The same properties, back to none."""
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
            for names, rate in (
                (("IOReadBandwidthMax", "IOWriteBandwidthMax"), disk.bandwidth),
                (_IOPS, disk.iops),
            ):
                if rate is not None:
                    properties += [
                        f"{name}={device} {'infinity' if lift else rate}" for name in names
                    ]
            if disk.iops is not None:
                # systemd makes no blkio.throttle.*_iops_device of these where cgroups are of
                # version 1.
                rate = 0 if lift else disk.iops
                folder = f"/sys/fs/cgroup/blkio/{self.group}"
                number = f"$(printf %d:%d $(stat -Lc '0x%t 0x%T' {shlex.quote(device)}))"
                writes += [
                    f'if [ -d {folder} ]; then echo "{number} {rate}" '
                    f">{folder}/blkio.throttle.{kind}_iops_device; fi"
                    for kind in ("read", "write")
                ]
        if not properties:
            return ""
        return "\n".join(
            (
                shlex.join(("systemctl", "set-property", "--runtime", self.slice, *properties)),
                *writes,
            )
        )

    def read_limits(self) -> str:
        """Of version 2, or of each hierarchy of version 1."""
        two = (f"{self.group}/{name}" for name in ("cpu.max", "memory.max", "io.max"))
        quota = (f"cpu/{self.group}/cpu.cfs_{what}_us" for what in ("quota", "period"))
        one = (*quota, f"memory/{self.group}/memory.limit_in_bytes")
        throttle = (
            f"blkio/{self.group}/blkio.throttle.{way}_{what}_device"
            for way in ("read", "write")
            for what in ("bps", "iops")
        )
        paths = " ".join((*two, *one, *throttle))
        return (
            f'cd /sys/fs/cgroup; for one in {paths}; do if [ -f "$one" ]; then sed '
            '"s|^|${one##*/} |" "$one"; fi; done'
        )

    @property
    def group(self) -> str:
        """The slice's."""
        return f"weighbridge.slice/{self.slice}"

    # the end
    # -----------------------------------------------------------------------------------------------------------------

    def _end_all(self, label: str, numbers: str) -> str:
        mine = f"weighbridge-{self.stand.deployment}-"
        return f"""
label={label}
for unit in $(systemctl list-units --all --plain --no-legend '{mine}*' | cut -d ' ' -f 1); do
  case $unit in {mine}view.service) continue ;; esac
  systemctl kill --signal=KILL "$unit" 2>/dev/null || true
  systemctl stop "$unit" 2>/dev/null || true
done
kill_labelled "$label" {HOLDER}
{unmounting(numbers)}
systemctl stop {self.slice} 2>/dev/null || true
kill_labelled "$label"
systemctl revert {self.slice} >/dev/null 2>&1 || true
systemctl reset-failed '{mine}*' {self.slice} 2>/dev/null || true
others=$(systemctl list-units --all --plain --no-legend 'weighbridge-*' | grep -v -F {self.slice} || true)
if [ -z "$others" ]; then systemctl stop weighbridge.slice 2>/dev/null || true; fi
"""


_IOPS: Final = ("IOReadIOPSMax", "IOWriteIOPSMax")
