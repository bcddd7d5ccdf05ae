"""What the process list of this machine shows while something runs."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class CommandLines:
    """Reads all command lines of this machine again and again, from entering to leaving.

    `seen` holds each once.
    """

    PAUSE_S = 0.05

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.looks = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(self.PAUSE_S):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it ended while it was looked at
                    self.seen.add((process / "cmdline").read_bytes())
            self.looks += 1
