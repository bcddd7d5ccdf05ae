"""Reports progress at least twice a second, whatever a command waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Self

from weighbridge.drivers.protocol import Progress

PERIOD_S: Final = 0.4

Meter = Callable[[], float]
"""CPU seconds so far."""


class ProgressReporter:
    """A context manager; while entered it reports a command's progress to `send`.

    `meter` is read at both ends of the window.
    """

    def __init__(
        self, send: Callable[[Progress], None], first: Progress, meter: Meter | None = None
    ) -> None:
        self._send = send
        self._progress = first
        self._meter = meter
        self._window: tuple[float, float, float] | None = None
        self._ends: dict[str, tuple[float, float]] = {}
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._report, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Joined, since no event may follow the answer to the command.
        self._over.set()
        self._thread.join()

    def set(self, progress: Progress) -> None:
        """Report this from now on."""
        with self._lock:
            self._progress = progress

    def stage_began(self, warmup_s: float, runtime_s: float) -> None:
        """A step's stage starts now: report by the clock."""
        began_s = time.monotonic()
        with self._lock:
            self._window = (began_s, warmup_s, runtime_s)

    @property
    def cpu(self) -> tuple[float, float] | None:
        """CPU seconds used in the window, and the seconds between its two readings, or None."""
        if {"began", "ended"} - set(self._ends):
            return None
        (before, began_s), (after, ended_s) = self._ends["began"], self._ends["ended"]
        return after - before, ended_s - began_s

    def _report(self) -> None:
        while True:
            self._send(self._now())
            if self._over.wait(PERIOD_S):
                return

    def _now(self) -> Progress:
        with self._lock:
            window, last = self._window, self._progress
        if window is None:
            return last
        began_s, warmup_s, runtime_s = window
        since_s = time.monotonic() - began_s
        if since_s < warmup_s:
            return Progress(phase="warm-up", done=since_s, total=warmup_s)
        if since_s < warmup_s + runtime_s:
            self._read("began")
            return Progress(phase="measure", done=since_s - warmup_s, total=runtime_s)
        if "began" in self._ends:
            self._read("ended")
        return Progress(phase="drain", done=0, total=0)

    def _read(self, end: str) -> None:
        if self._meter is not None and end not in self._ends:
            self._ends[end] = (self._meter(), time.monotonic())
