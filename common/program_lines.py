"""Lines of a program on a host: a deadline for each, a bound on its length, and the program's end.

A program may stop answering, print without an end, or survive its end: whoever waits for it waits
for a bounded time. What it did in place of a line is a `NoLine`, in words that follow the program's
name; callers turn it into their room's error.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from weighbridge.common.host import PipedProcess

LOOK_S: Final = 0.5
"""How often `look` is called while there is no line."""
ENDED_S: Final = 5.0
TAIL_BYTES: Final = 65536
KILLED_S: Final = 5.0
"""How long to wait for a killed program: where its host hangs, it goes with the host."""


class NoLine(Exception):
    """What a program did in place of a line."""


class ProgramEnded(NoLine):
    """It ended with `code`; None: it closed its pipes, and is still running."""

    def __init__(self, code: int | None) -> None:
        super().__init__("closed its pipes" if code is None else f"ended with {code}")
        self.code = code


class ProgramLines:
    """The pipes of a program that speaks lines, for one thread at a time.

    After a NoLine nothing more may be asked: a late answer would be taken for that of the next.
    """

    def __init__(self, process: PipedProcess, *, longest_bytes: int = 2**20) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the program's stdin and stdout must be pipes")
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._longest_bytes = longest_bytes
        self._read = bytearray()
        self._searched = 0
        # A program that does not read must keep nobody waiting.
        os.set_blocking(process.stdin.fileno(), False)

    def send(self, line: str, within_s: float) -> None:
        """Write a line. Raises NoLine if the program has ended, or does not read all of it."""
        rest = line.encode() + b"\n"
        deadline_s = time.monotonic() + within_s
        while rest:
            if not self._ready(self._stdin, select.POLLOUT, deadline_s - time.monotonic()):
                raise NoLine(f"did not read for {within_s:g} s")
            try:
                rest = rest[os.write(self._stdin.fileno(), rest) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._ended() from None

    def next(self, within_s: float = math.inf, look: Callable[[], None] | None = None) -> bytes:
        """The next line, without its end. Raises NoLine, and what `look` raises."""
        deadline_s = time.monotonic() + within_s
        while (end := self._read.find(b"\n", self._searched)) < 0:
            self._searched = len(self._read)
            if self._searched > self._longest_bytes:
                raise NoLine(f"printed a line of more than {self._longest_bytes:,} bytes")
            # What it has printed comes first, whatever `look` would say.
            while not self._ready(self._stdout, select.POLLIN, 0):
                if look is not None:
                    look()
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise NoLine(f"was silent for {within_s:g} s")
                self._ready(self._stdout, select.POLLIN, left_s if look is None else LOOK_S)
            chunk = os.read(self._stdout.fileno(), 2**16)
            if not chunk:
                raise self._ended()
            self._read += chunk
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        self._searched = 0
        return line

    def _ready(self, pipe: IO[bytes], event: int, within_s: float) -> bool:
        if pipe.closed:
            raise self._ended()
        waiting = select.poll()
        waiting.register(pipe, event)
        return bool(waiting.poll(None if math.isinf(within_s) else max(0.0, within_s) * 1000))

    def _ended(self) -> ProgramEnded:
        # Its pipes are closed a moment before its end can be seen.
        with contextlib.suppress(subprocess.TimeoutExpired):
            return ProgramEnded(self._process.wait(ENDED_S))
        return ProgramEnded(None)


def end(
    process: PipedProcess, *, within_s: float = 5.0, terminate_s: float = 0.0, close: bool = True
) -> None:
    """Close a program's stdin, which tells most to end: behind runc or ssh a kill would miss them.
    Later SIGTERM, if there is time for that, and kill it. `close`: also stdout, which nobody reads.
    """
    if process.stdin is not None:
        # What is still buffered for a program that is gone cannot be taken, and need not.
        with contextlib.suppress(OSError, ValueError):
            process.stdin.close()
    for number, patience_s in (
        (None, within_s),
        (signal.SIGTERM, terminate_s),
        (signal.SIGKILL, KILLED_S),
    ):
        if number is signal.SIGKILL:
            process.kill()
        elif number is not None and patience_s:
            process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
            break
    if close and process.stdout is not None:
        process.stdout.close()


def last_lines(log: Path, count: int) -> list[str]:
    """The last lines of a file that may be large. Raises OSError."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return file.read(TAIL_BYTES).decode(errors="replace").splitlines()[-count:]
