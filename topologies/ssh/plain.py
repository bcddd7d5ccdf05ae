"""Hosts without systemd: a deployment is a namespace of processes, so that its first one's end is
the end of all.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from weighbridge.topologies.hardware import HostSpec
from weighbridge.topologies.hosts import Limited
from weighbridge.topologies.quota import DEFAULT_PERIOD_S
from weighbridge.topologies.ssh.services import (
    BEGUN,
    BORN,
    DEPLOYMENT,
    HOLDER,
    LABELLED,
    PROGRAM,
    HostProcess,
    Services,
    unmounting,
)


class Plain(Services):
    """Processes of one deployment. They can be ended, counted and seen, but not limited."""

    def hold(self, memory_bytes: int | None) -> str:
        """Start the namespace's first process, which reaps whatever its children leave behind, and
        holds the view.
        """
        assert memory_bytes is None  # noqa: S101 - refused before anything was started
        label = (f"{DEPLOYMENT}={self.stand.deployment}", f"{HOLDER}=1")
        share = (
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
        )
        first = ("/bin/sh", "-c", "sleep infinity & wait")
        line = shlex.join(("setsid", "env", *label, *share, *first))
        return f"""{BORN}
{line} </dev/null >/dev/null 2>&1 &
parent=$!
pid=
while [ -z "$pid" ]; do
  born "$parent" >/dev/null || {{ echo "{shlex.join(share[:1])} ended at once" >&2; exit 1; }}
  pid=$(cat "/proc/$parent/task/$parent/children" | tr -d ' ')
  sleep 0.02
done
while ! nsenter --mount=/proc/$pid/ns/mnt --pid=/proc/$pid/ns/pid test -e /proc/1/stat -a ! -e /proc/$parent; do
  born "$pid" >/dev/null || {{ echo "the first process of the deployment ended at once" >&2; exit 1; }}
  sleep 0.02
done
echo "$pid $(born $pid)"
"""

    def enter(self) -> tuple[str, ...]:
        """By the first process's namespaces."""
        of = f"/proc/{self.stand.holder}/ns"
        return ("nsenter", f"--mount={of}/mnt", f"--pid={of}/pid", "--")

    def inside(self, tag: str) -> tuple[str, ...]:
        """The same: there are no limits to be in."""
        return self.enter()

    def kill(self, tag: str) -> str:
        """All that has the program's name in its environment."""
        return (
            shlex.join((*self.enter(), "/bin/sh", "-c", f"{LABELLED}kill_labelled {PROGRAM}={tag}"))
            + " || true"
        )

    def _launch(self, services: Sequence[str]) -> str:
        # Each in a session of its own. The namespace's first process becomes their parent when the
        # shell ends.
        inner = [BEGUN]
        for service in services:
            inner.append(
                f"setsid /bin/sh {self.service_path(service)} </dev/null >/dev/null 2>&1 &"
            )
            inner.append(f'begun {shlex.quote(self.started)} {service} "$!"')
        return shlex.join((*self.enter(), "/bin/sh", "-ec", "\n".join(inner)))

    def _end(self, service: str, process: HostProcess, timeout_s: float) -> str:
        """By its process, and then by its name in the environment of all that it started."""
        script = f"""{BORN}{LABELLED}
there() {{ [ "$(born {process.pid})" = {process.started} ]; }}
if there; then kill -TERM {process.pid}; fi
tries=0
while there && [ $tries -lt {max(1, int(timeout_s / 0.05))} ]; do sleep 0.05; tries=$((tries + 1)); done
kill_labelled {PROGRAM}=service.{service}
if there; then echo stayed; fi
"""
        return shlex.join((*self.enter(), "/bin/sh", "-c", script))

    def _numbered(self) -> tuple[str, ...]:
        """They are those of the deployment's own namespace."""
        return self.enter()

    def _holds(self) -> str:
        """Whether the namespace's first process is there, with which all others end."""
        return f'[ "$(born {self.stand.holder})" = {self.stand.holder_started} ]'

    def limit(
        self,
        spec: HostSpec,
        devices: Sequence[str],
        what: Collection[Limited],
        *,
        period_s: float = DEFAULT_PERIOD_S,
    ) -> str:
        """None: hardware that asks for limits here is refused before anything is started."""
        return ""

    def unlimit(self, spec: HostSpec, devices: Sequence[str], what: Collection[Limited]) -> str:
        """None."""
        return ""

    def _end_all(self, label: str, numbers: str) -> str:
        return f"""
label={label}
kill_labelled "$label" {HOLDER}
{unmounting(numbers)}
kill_labelled "$label"
"""
