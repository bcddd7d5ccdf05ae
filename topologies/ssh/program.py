"""A program on a real host with its stdin and stdout as pipes here, carried by the connection."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from types import TracebackType
from typing import Self

from topologies.ssh.connection import Connection


class RemoteProgram:
    """A `ground.piped.Piped`. When its host stops answering, its pipes end and `poll` and `wait` raise TargetError."""

    def __init__(self, connection: Connection, argv: Sequence[str], *, stderr: Path, send: Callable[[int], None]) -> None:
        """Start `argv` on the host; `send` signals it there, with all it started when that is KILL. Raises TargetError."""
        self.args = tuple(argv)
        self._send = send
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self.stdin = os.fdopen(ours_in, "wb")
        self.stdout = os.fdopen(ours_out, "rb")
        try:
            self._ended = connection.start(argv, stdin=theirs_in, stdout=theirs_out, stderr=stderr.open("ab"))
        except BaseException:
            self.stdin.close()
            self.stdout.close()
            raise

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative when a signal ended it; None while it runs, and when its host was lost."""
        if not self._ended.done() or self._ended.cancelled() or self._ended.exception() is not None:
            return None
        return self._ended.result()

    def poll(self) -> int | None:
        """Its exit status when it has ended; None while it runs. Raises TargetError."""
        return self._ended.result() if self._ended.done() else None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status when it ends. Raises subprocess.TimeoutExpired after `timeout` seconds, TargetError."""
        try:
            return self._ended.result(timeout)
        except NotYet:
            raise subprocess.TimeoutExpired(self.args, timeout or 0) from None

    def send_signal(self, sig: int) -> None:
        """Signal it; one that has ended is no error. Raises TargetError."""
        if self.poll() is None:
            self._send(sig)

    def kill(self) -> None:
        """End it at once, with all that it started."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        """Close its pipes and wait for its end."""
        self.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it ended before it had read all
            self.stdin.close()
        self.wait()
