"""A program for a host: starts several commands at once, tells what they print and how they end,
and ends them.

stdin: one line of JSON, the commands; later a line `stop`, for SIGINT to all that run. When stdin
closes, all are killed. stdout: a list of JSON a line:

    ["line", number, seconds, text]                          a line that a command printed, so long
    after the start ["end", number, seconds, status, CPU seconds, stderr]    it has ended: the last
    of what it printed besides

A status is the exit status, or minus the signal that ended it. When one ends with another status
than 0 before anybody said stop, the others are killed: together they are one measurement. Standard
library only, good for Python 3.9.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence

_TAIL_BYTES = 4000


class AtOnce:
    """Commands that run at once."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self._lock = threading.Lock()
        self._stopping = False
        self._began = time.monotonic()
        self._errors = [tempfile.TemporaryFile() for _ in commands]  # noqa: SIM115 - they live as long as the commands
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        for number, (argv, errors) in enumerate(zip(commands, self._errors)):  # noqa: B905 - Python 3.9 has no strict
            self._running[number] = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )

    def run(self) -> None:
        """Follow them all to their end."""
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
        if process.stdout is not None:
            for line in process.stdout:
                self._tell(
                    "line", number, self._seconds(), line.decode(errors="replace").rstrip("\n")
                )
        # It is collected under the lock: until then its number cannot be another process's, which a
        # signal would reach.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self._lock:
            _, status, used = os.wait4(process.pid, 0)
            del self._running[number]
            stopping = self._stopping
        code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self._tell(
            "end", number, self._seconds(), code, used.ru_utime + used.ru_stime, self._tail(number)
        )
        if code and not stopping:
            self._signal(signal.SIGKILL)

    def _signal(self, which: int) -> None:
        with self._lock:
            self._stopping = True
            for process in self._running.values():
                os.kill(process.pid, which)

    def _tail(self, number: int) -> str:
        file = self._errors[number]
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read().decode(errors="replace")

    def _seconds(self) -> float:
        return time.monotonic() - self._began

    def _tell(self, *event: object) -> None:
        text = json.dumps(event) + "\n"
        with self._lock:
            sys.stdout.write(text)
            sys.stdout.flush()


if __name__ == "__main__":
    # Where a shell started all this with `&`, SIGINT is ignored, which commands would inherit, and
    # no `stop` would end them; a signal that is handled here has its default effect there.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    AtOnce(json.loads(sys.stdin.readline())).run()
