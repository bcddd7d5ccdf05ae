"""The command lines of this machine while something runs."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class CommandLines:
    """Polls all command lines of this machine while entered; `seen` has each once."""

    PAUSE_S = 0.05
    NEW_LOOKS = 5
    """How often a new process is looked at: what it was forked from, then what it runs."""
    ALL_EVERY = 10
    """In such a look all processes are read again."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.looks = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._poll)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _poll(self) -> None:
        times: dict[str, int] = {}
        while not self._stopped.wait(self.PAUSE_S):
            names = filter(str.isdigit, os.listdir("/proc"))  # noqa: PTH208 - twenty times a second
            times = {name: times.get(name, 0) + 1 for name in names}
            for name, looks in times.items():
                if looks > self.NEW_LOOKS and self.looks % self.ALL_EVERY:
                    continue
                # It may have ended.
                with suppress(OSError), open(f"/proc/{name}/cmdline", "rb", 0) as line:  # noqa: PTH123
                    self.seen.add(line.read())
            self.looks += 1
