"""A probe that runs on a host, as the conductor reads it: one line of numbers a second, on its
stdout.
"""

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
"""A probe tells every second; one that has told nothing for so long while a step ran has stalled.
"""
QUIT_S = 2.0
"""How long a probe may take to end when its stdin is closed, and once more after SIGTERM."""

Note = Callable[[str], None]
"""Told what could not be told, one line each."""


@dataclass(frozen=True)
class ProbeLine:
    """A line of a probe, and when it came, by the monotonic clock."""

    probe: Probe
    at: float
    values: Mapping[str, float]


class Ear:
    """Where probes' lines wait for who writes them down.

    What is told while nobody listens is let go: it could be hours of it.
    """

    def __init__(self) -> None:
        self._told: queue.SimpleQueue[ProbeLine] = queue.SimpleQueue()
        self.listening = threading.Event()

    def put(self, told: ProbeLine) -> None:
        """Keep a line, when somebody listens."""
        if self.listening.is_set():
            self._told.put(told)

    def taken(self) -> list[ProbeLine]:
        """All lines that wait."""
        lines = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(self._told.get_nowait())
        return lines


class ProbeReader:
    """One probe that runs; what it tells goes to `ear` until `close`.

    Raises WeighbridgeError or OSError when it cannot start.
    """

    def __init__(self, probe: Probe, ear: Ear, note: Note, *, stderr: Path) -> None:
        self.probe = probe
        self.last_at = time.monotonic()
        self.ended = False
        self._ear = ear
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
                        f"the probe {self.probe.name} told what is no line of numbers: "
                        f"{line[:120]!r}"
                    )
                self._garbled = True
                continue
            self._ear.put(ProbeLine(self.probe, self.last_at, values))
        self.ended = True
        code = self._process.wait()
        # One that is asked to end ends with 0, or by our signal; any other status is its own, also
        # when it was asked just after.
        if not self._closing or code > 0:
            self._note(
                f"the probe {self.probe.name} ended by itself with status "
                f"{code}{self._last_words()}"
            )

    def silent(self, now: float) -> bool:
        """Whether it has told nothing for SILENCE_S; noted once for each silence."""
        if self.ended or now - self.last_at < SILENCE_S:
            return False
        if not self._stalled:
            self._note(
                f"the probe {self.probe.name} has told nothing for {now - self.last_at:.0f} s"
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
        """Close its stdin, which means its end."""
        self._closing = True
        with contextlib.suppress(OSError, ValueError):  # it may be gone already
            if self._process.stdin is not None:
                self._process.stdin.close()

    def close(self) -> None:
        """See that it has ended: after `ask_to_end` it gets its time, then SIGTERM, then
        SIGKILL.
        """
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
    """The numbers of a probe's line; None when it is anything but a flat object of finite
    numbers.
    """
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
