"""Hosts without systemd: a deployment is a pid namespace, which ends with its first process."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.quota import DEFAULT_PERIOD_S
from weighbridge.topologies.ssh.services import (
    DEPLOYMENT,
    HOLDER,
    LABELLED,
    PROGRAM,
    RECORD_START,
    START_TICKS,
    FirstSignal,
    HostProcess,
    Services,
    await_end,
    unmounting,
)


class Plain(Services):
    """Processes of one deployment, which can be ended, counted and seen, but not limited."""

    def hold(self, memory_bytes: int | None) -> str:
        """Start the namespace's first process, which reaps orphans and holds the view."""
        assert memory_bytes is None  # noqa: S101 - refused before anything was started
        label = (f"{DEPLOYMENT}={self.on_host.deployment}", f"{HOLDER}=1")
        namespaces = ("--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc")
        first = ("/bin/sh", "-c", "sleep infinity & wait")
        line = shlex.join(("setsid", "env", *label, "unshare", *namespaces, "--kill-child", *first))
        return f"""{START_TICKS}
{line} </dev/null >/dev/null 2>&1 &
parent=$!
pid=
while [ -z "$pid" ]; do
  start_ticks "$parent" >/dev/null || {{ echo "unshare ended at once" >&2; exit 1; }}
  pid=$(cat "/proc/$parent/task/$parent/children" | tr -d ' ')
  sleep 0.02
done
while ! nsenter --mount=/proc/$pid/ns/mnt --pid=/proc/$pid/ns/pid \\
    test -e /proc/1/stat -a ! -e /proc/$parent; do
  start_ticks "$pid" >/dev/null || {{
    echo "the first process of the deployment ended at once" >&2
    exit 1
  }}
  sleep 0.02
done
echo "$pid $(start_ticks $pid)"
"""

    def enter(self) -> tuple[str, ...]:
        """Enter the first process's namespaces."""
        of = f"/proc/{self.on_host.holder}/ns"
        return ("nsenter", f"--mount={of}/mnt", f"--pid={of}/pid", "--")

    def inside(self, tag: str) -> tuple[str, ...]:
        """As `enter`: there are no limits."""
        return self.enter()

    def kill(self, tag: str) -> str:
        """Kill all processes with the program's name in their environment."""
        script = f"{LABELLED}kill_labelled {PROGRAM}={tag}"
        return shlex.join((*self.enter(), "/bin/sh", "-c", script)) + " || true"

    def _launch(self, services: Sequence[str]) -> str:
        # Each has its own session. When the shell ends, the namespace's first process becomes their
        # parent.
        lines = [RECORD_START]
        for service in services:
            path = self.service_path(service)
            lines.append(f"setsid /bin/sh {path} </dev/null >/dev/null 2>&1 &")
            lines.append(f'record_start {shlex.quote(self.started)} {service} "$!"')
        return shlex.join((*self.enter(), "/bin/sh", "-ec", "\n".join(lines)))

    def _end(self, service: str, process: HostProcess, timeout_s: float, first: FirstSignal) -> str:
        """End its first process, then kill all it started, by the name in their environment."""
        script = f"""{LABELLED}{await_end(process, timeout_s, f"kill -{first} {process.pid}")}
kill_labelled {PROGRAM}=service.{service}
if running; then echo left; fi
"""
        return shlex.join((*self.enter(), "/bin/sh", "-c", script))

    def _enter_pids(self) -> tuple[str, ...]:
        """Enter the deployment's pid namespace."""
        return self.enter()

    def _may_run(self) -> str:
        """Check the namespace's first process, with which all others end."""
        return f'[ "$(start_ticks {self.on_host.holder})" = {self.on_host.holder_started} ]'

    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """Nothing: hardware with limits is refused for these hosts before anything is started."""
        return ""

    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """Nothing."""
        return ""

    def _end_all(self, label: str, numbers: str) -> str:
        return f"""
label={label}
kill_labelled "$label" {HOLDER}
{unmounting(numbers)}
kill_labelled "$label"
"""
