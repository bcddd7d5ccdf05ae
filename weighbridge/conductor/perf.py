"""perf on this machine: what it may record, and one that records until it is told to stop."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.record import block_trace

HERTZ: Final = 99
"""Not 100, so that work that the system does by its own clock is not hit each time or never."""
STACK_BYTES: Final = 8192
"""Of each thread's stack, a sample: distributions build without frame pointers, so perf unwinds
what it has copied.
"""
BEGINNING_S: Final = 2.0
ENDING_S: Final = 20.0
READING_S: Final = 180.0
PMUS: Final = ("cpu", "cpu_core")
"""Hardware counters of CPUs, as the kernel names them."""


class Able(Record):
    """What this machine allows.

    `event` is None, or `blocks` false, where there is a remark that says why.
    """

    event: str | None
    blocks: bool
    remarks: tuple[str, ...]


def able() -> Able:
    """Ask perf by trying: it depends on the kernel, its settings, and what may be done in this
    container or virtual machine.
    """
    if shutil.which("perf") is None:
        why = "no profile: there is no program perf (Debian: apt install linux-perf)"
        return Able(event=None, blocks=False, remarks=(why,))
    counters = any(Path("/sys/bus/event_source/devices", name).exists() for name in PMUS)
    event = "cycles" if counters else "cpu-clock"
    remarks = (
        []
        if counters
        else [
            (
                "this machine shows no hardware counters (no PMU): samples were taken by the CPU’s "
                "clock"
            )
        ]
    )
    stacks = _tried("-e", event, "--call-graph", f"dwarf,{STACK_BYTES}")
    blocks = _tried("-e", block_trace.EVENTS[0], "-a")
    if stacks:
        setting = Path("/proc/sys/kernel/perf_event_paranoid")
        level = (
            f"; perf_event_paranoid is {setting.read_text().strip()}" if setting.exists() else ""
        )
        remarks = [f"no stacks: perf cannot record {event} here: {stacks}{level}"]
    if blocks:
        remarks.append(
            f"no disk was traced: perf cannot record the kernel’s block events here: {blocks}"
        )
    return Able(event=None if stacks else event, blocks=not blocks, remarks=tuple(remarks))


def _tried(*options: str) -> str:
    """Why perf cannot record so; empty when it can."""
    with tempfile.TemporaryDirectory() as folder:
        line = [
            "perf",
            "record",
            *options,
            "-F",
            str(HERTZ),
            "-o",
            f"{folder}/perf.data",
            "--",
            "true",
        ]
        if "-a" in options:
            line = [word for word in line if word not in ("-F", str(HERTZ))]
        done = subprocess.run(line, capture_output=True, text=True, timeout=READING_S, check=False)
    said = [text.strip() for text in done.stderr.splitlines() if text.strip()]
    return (said[0] if said else f"status {done.returncode}") if done.returncode else ""


@dataclass
class Perf:
    """A perf that records until it is told to stop."""

    data: Path
    process: subprocess.Popen[bytes]
    orders: int
    answers: int
    """Pipes: what it is told, and that it has done it."""
    cpu_s: float = 0.0

    @classmethod
    def start(cls, data: Path, options: Sequence[str]) -> Perf:
        """Start one that is ready and does not record yet. Raises OSError."""
        orders_out, orders_in = os.pipe()
        answers_out, answers_in = os.pipe()
        # -N and -B: it keeps no copies of programs in the home folder. -D -1: it waits until it is
        # told to begin.
        line = [
            "perf",
            "record",
            "-N",
            "-B",
            "-D",
            "-1",
            f"--control=fd:{orders_out},{answers_in}",
            "-o",
            str(data),
            *options,
        ]
        try:
            with data.with_suffix(".log").open("wb") as log:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(orders_out, answers_in),
                    # Ctrl-C in the conductor's terminal is the conductor's to decide about.
                    start_new_session=True,
                )
        except BaseException:
            os.close(orders_in)
            os.close(answers_out)
            raise
        finally:
            os.close(orders_out)
            os.close(answers_in)
        return cls(data, process, orders_in, answers_out)

    def begin(self) -> bool:
        """Have it record from now on; whether it does.

        One that takes long to start up (a busy machine) is not waited for.
        """
        try:
            os.write(self.orders, b"enable\n")
        except BrokenPipeError:
            return False
        ready, _, _ = select.select([self.answers], [], [], BEGINNING_S)
        return bool(ready and os.read(self.answers, 64))

    def stop(self) -> None:
        """Have it write what it has and end."""
        if self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + ENDING_S
        while time.monotonic() < deadline:
            pid, status, use = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = use.ru_utime + use.ru_stime
                self._close()
                return
            time.sleep(0.05)
        self.kill()

    def kill(self) -> None:
        """End it whatever it does."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        os.close(self.orders)
        os.close(self.answers)

    def told(self, *options: str) -> str:
        """What was recorded, in words. Raises OSError, subprocess.SubprocessError."""
        # Names are looked up where the processes are: perf goes into their mount namespaces, so
        # they must still be there. No debug symbols are fetched from anywhere, and inlined
        # functions, which cost minutes to find, are not told.
        line = ["perf", "script", "--no-inline", "-i", str(self.data), *options]
        environment = {**os.environ, "DEBUGINFOD_URLS": ""}
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=READING_S,
            check=True,
            env=environment,
        )
        return done.stdout

    def words(self) -> str:
        """What it said to people, in one line."""
        log = self.data.with_suffix(".log")
        return " ".join(log.read_text(errors="replace").split())[:300] if log.exists() else ""


def why_not(error: Exception) -> str:
    """Why perf could not tell what it recorded."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"perf script ended with {error.returncode}: {str(error.stderr).strip()[-300:]}"
    return f"perf script: {error}"
