"""Reading a probe that runs on a host: one line of numbers per second on its stdout."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from weighbridge.gateways.probe import Probe

SILENCE_S = 5.0
"""A probe reports every second; after so long without a line during a step it has stalled."""
QUIT_S = 2.0
"""Time for a probe to end after its stdin is closed, and again after SIGTERM."""

Note = Callable[[str], None]
"""Records what is missing, one line each."""


@dataclass(frozen=True)
class ProbeLine:
    """A line of a probe, and when it arrived, by the monotonic clock."""

    probe: Probe
    at: float
    values: Mapping[str, float]


class ProbeInbox:
    """Lines of probes that wait to be recorded; between steps they are dropped."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[ProbeLine] = queue.SimpleQueue()
        self.open = threading.Event()

    def put(self, line: ProbeLine) -> None:
        """Keep a line if the inbox is open."""
        if self.open.is_set():
            self._lines.put(line)

    def taken(self) -> list[ProbeLine]:
        """All lines that wait, removed."""
        lines = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(self._lines.get_nowait())
        return lines


class ProbeReader:
    """A running probe; its lines go to `inbox` until `close`.

    Raises WeighbridgeError or OSError if it cannot start.
    """

    def __init__(self, probe: Probe, inbox: ProbeInbox, note: Note, *, stderr: Path) -> None:
        self.probe = probe
        self.last_at = time.monotonic()
        self.ended = False
        self._inbox = inbox
        self._note = note
        self._stderr = stderr
        self._closing = False
        self._stalled = False
        self._garbled = False
        self._process = probe.host.spawn(probe.argv, stderr=stderr, env=probe.env)
        if self._process.stdin is None or self._process.stdout is None:
            raise ValueError("the stdin and stdout of a probe must be pipes")
        self._thread = threading.Thread(
            target=self._read, args=(self._process.stdout,), name=f"probe-{probe.name}", daemon=True
        )
        self._thread.start()

    def _read(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            self.last_at, self._stalled = time.monotonic(), False
            values = _values(line)
            if values is None:
                if not self._garbled:
                    self._note(
                        f"the probe {self.probe.name} sent something other than a line of numbers: "
                        f"{line[:120]!r}"
                    )
                self._garbled = True
                continue
            self._inbox.put(ProbeLine(self.probe, self.last_at, values))
        self.ended = True
        code = self._process.wait()
        # A probe that is asked to end exits with 0 or by our signal; any other status means that it
        # ended by itself.
        if not self._closing or code > 0:
            self._note(
                f"the probe {self.probe.name} ended by itself with status "
                f"{code}{self._last_words()}"
            )

    def silent(self, now: float) -> bool:
        """Whether it has sent nothing for SILENCE_S; noted once for each silence."""
        if self.ended or now - self.last_at < SILENCE_S:
            return False
        if not self._stalled:
            self._note(
                f"the probe {self.probe.name} has sent nothing for {now - self.last_at:.0f} s"
            )
        self._stalled = True
        return True

    def _last_words(self) -> str:
        try:
            lines = self._stderr.read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return f": {lines[-1][:200]} ({self._stderr})" if lines else ""

    def ask_to_end(self) -> None:
        """Close its stdin, which asks it to end."""
        self._closing = True
        with contextlib.suppress(OSError, ValueError):  # it may be gone already
            if self._process.stdin is not None:
                self._process.stdin.close()

    def close(self) -> None:
        """End it: by `ask_to_end`, then SIGTERM, then SIGKILL."""
        self.ask_to_end()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                self._process.send_signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(QUIT_S)
                break
        self._thread.join(QUIT_S)
        if not self._thread.is_alive() and self._process.stdout is not None:
            self._process.stdout.close()


def _values(line: bytes) -> dict[str, float] | None:
    """The numbers of a probe's line; None unless it is a flat object of finite numbers."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    good = all(
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
        for value in found.values()
    )
    return {str(name): float(value) for name, value in found.items()} if good else None
