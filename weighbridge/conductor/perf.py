"""perf on this machine: what it may record, and starting and stopping it."""

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
"""Not 100, so that periodic work of the system is not sampled each time or never."""
STACK_BYTES: Final = 8192
"""Stack copied per sample: distributions build without frame pointers, so perf unwinds it."""
BEGINNING_S: Final = 2.0
ENDING_S: Final = 20.0
READING_S: Final = 180.0
PMUS: Final = ("cpu", "cpu_core")
"""Hardware counters of CPUs, as the kernel names them."""


class PerfSupport(Record):
    """What this machine allows; a remark says why `event` is None or `blocks` false."""

    event: str | None
    blocks: bool
    remarks: tuple[str, ...]


def able() -> PerfSupport:
    """Try perf: it depends on the kernel, its settings, and this container or virtual machine."""
    if shutil.which("perf") is None:
        why = "no profile: there is no program perf (Debian: apt install linux-perf)"
        return PerfSupport(event=None, blocks=False, remarks=(why,))
    counters = any(Path("/sys/bus/event_source/devices", name).exists() for name in PMUS)
    event = "cycles"
    remarks: list[str] = []
    if not counters:
        event = "cpu-clock"
        remarks.append(
            "this machine has no hardware counters (no PMU): samples were taken by the CPU’s clock"
        )
    stacks = _tried("-e", event, "-F", str(HERTZ), "--call-graph", f"dwarf,{STACK_BYTES}")
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
    return PerfSupport(event=None if stacks else event, blocks=not blocks, remarks=tuple(remarks))


def _tried(*options: str) -> str:
    """Why perf cannot record with these options; empty if it can."""
    with tempfile.TemporaryDirectory() as folder:
        line = ["perf", "record", *options, "-o", f"{folder}/perf.data", "--", "true"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=READING_S, check=False)
    if not done.returncode:
        return ""
    return next(filter(None, map(str.strip, done.stderr.splitlines())), f"status {done.returncode}")


@dataclass
class Perf:
    """A perf process that records until it is stopped."""

    data: Path
    process: subprocess.Popen[bytes]
    orders: int
    answers: int
    """Pipes to and from perf's --control."""
    cpu_s: float = 0.0

    @classmethod
    def start(cls, data: Path, options: Sequence[str]) -> Perf:
        """Start perf, ready but not recording yet. Raises OSError."""
        orders_out, orders_in = os.pipe()
        answers_out, answers_in = os.pipe()
        # -N and -B: keep no copies of programs in the home folder. -D -1: wait to be enabled.
        control = f"--control=fd:{orders_out},{answers_in}"
        line = ["perf", "record", *("-N", "-B", "-D", "-1"), control, "-o", str(data), *options]
        try:
            with data.with_suffix(".log").open("wb") as log:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(orders_out, answers_in),
                    # Ctrl-C in the conductor's terminal is for the conductor to handle.
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
        """Start recording; whether it does. On a busy machine, a slow start is not waited for."""
        try:
            os.write(self.orders, b"enable\n")
        except BrokenPipeError:
            return False
        ready, _, _ = select.select([self.answers], [], [], BEGINNING_S)
        return bool(ready and os.read(self.answers, 64))

    def stop(self) -> None:
        """Write what was recorded and end."""
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
        """End it in any case."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self._close()

    def _close(self) -> None:
        os.close(self.orders)
        os.close(self.answers)

    def script(self, *options: str) -> str:
        """What was recorded, as text. Raises OSError, subprocess.SubprocessError."""
        # perf looks up names in the processes' mount namespaces, so they must still be there. No
        # debug symbols are fetched, nor inlined functions, which take minutes to find.
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
        """Its messages, in one line."""
        log = self.data.with_suffix(".log")
        return " ".join(log.read_text(errors="replace").split())[:300] if log.exists() else ""


def why_not(error: Exception) -> str:
    """Why perf could not print what it recorded."""
    if isinstance(error, subprocess.CalledProcessError):
        return f"perf script ended with {error.returncode}: {str(error.stderr).strip()[-300:]}"
    return f"perf script: {error}"
