"""A program for a host: starts commands in parallel, reports their output and exits, and ends them.

stdin: one line of JSON, the commands; later a line `stop`, for SIGINT to all that are running. When
stdin closes, all are killed. stdout: a JSON list a line:

    ["line", number, seconds, text]                          a command's output line
    ["end", number, seconds, status, CPU seconds, stderr]    a command's end, with its last stderr

Seconds count from the start. A status is the exit status, or minus the signal that ended it. When a
command ends with another status than 0 before `stop`, the others are killed: together they are one
measurement. It writes no file. Standard library only, for Python 3.9 and later.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

_TAIL_BYTES = 4000
_ASIDE_S = 1.0
"""Time for the rest of an ended command's stderr, which what it started may hold open."""


class ParallelCommands:
    """Commands that run in parallel."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self._lock = threading.Lock()
        self._stopping = False
        self._began = time.monotonic()
        # Of stderr; in memory, and no more than that: the host may be anybody's.
        self._tails = [b"" for _ in commands]
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for number, argv in enumerate(commands):
            self._running[number] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._follow, args=item) for item in list(self._running.items())
        ]
        threading.Thread(target=self._listen, daemon=True).start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _listen(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stop":
                self._signal(signal.SIGINT)
        self._signal(signal.SIGKILL)

    def _follow(self, number: int, process: subprocess.Popen[bytes]) -> None:
        aside = threading.Thread(target=self._keep_tail, args=(number, process), daemon=True)
        aside.start()
        if process.stdout is not None:
            for line in process.stdout:
                text = line.decode(errors="replace").rstrip("\n")
                self._report("line", number, self._seconds(), text)
        # Reaped under the lock: before that its pid cannot be another process's, which a signal
        # would hit.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        seconds = self._seconds()
        aside.join(_ASIDE_S)
        with self._lock:
            _, status, used = os.wait4(process.pid, 0)
            del self._running[number]
            stopping = self._stopping
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        cpu_s = used.ru_utime + used.ru_stime
        errors = self._tails[number].decode(errors="replace")
        self._report("end", number, seconds, code, cpu_s, errors)
        if code and not stopping:
            self._signal(signal.SIGKILL)

    def _signal(self, which: int) -> None:
        with self._lock:
            self._stopping = True
            for process in self._running.values():
                os.kill(process.pid, which)

    def _keep_tail(self, number: int, process: subprocess.Popen[bytes]) -> None:
        while process.stderr is not None:
            chunk = os.read(process.stderr.fileno(), 1 << 16)
            if not chunk:
                return
            self._tails[number] = (self._tails[number] + chunk)[-_TAIL_BYTES:]

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _report(self, *event: object) -> None:
        text = json.dumps(event) + "\n"
        with self._lock:
            sys.stdout.write(text)
            sys.stdout.flush()


if __name__ == "__main__":
    # If a shell started this with `&`, SIGINT is ignored, commands would inherit that, and `stop`
    # would not end them; a signal that is handled here has its default effect there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ParallelCommands(json.loads(sys.stdin.readline())).run()
