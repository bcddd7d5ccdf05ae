"""A program on a real host with its stdin and stdout as pipes here, carried by the connection."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from weighbridge.common.errors import TargetError
from weighbridge.topologies.ssh.connection import SshConnection

LOST: Final = 255
"""The status of a program whose host has stopped answering, as ssh(1) has it."""


class RemoteProgram:
    """A `common.piped.Piped`.

    When its host stops answering its pipes end, and for who asks here it has ended with LOST.
    """

    def __init__(
        self,
        connection: SshConnection,
        argv: Sequence[str],
        *,
        stderr: Path,
        send: Callable[[int], None],
    ) -> None:
        """Start `argv` on the host; `send` signals it there, with all it started when that is KILL.

        Raises TargetError.
        """
        self.args = tuple(argv)
        self._connection = connection
        self._stderr = stderr
        self._send = send
        self._told = False
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self.stdin = os.fdopen(ours_in, "wb")
        self.stdout = os.fdopen(ours_out, "rb")
        try:
            self._ended = connection.start(
                argv, stdin=theirs_in, stdout=theirs_out, stderr=stderr.open("ab")
            )
        except BaseException:
            self.stdin.close()
            self.stdout.close()
            raise

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative when a signal ended it, LOST when its host was lost; None while
        it runs.
        """
        return self.poll()

    def poll(self) -> int | None:
        """Its exit status when it has ended; None while it runs."""
        return self.wait() if self._ended.done() else None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status when it ends.

        Raises subprocess.TimeoutExpired after `timeout` seconds.
        """
        try:
            return self._ended.result(timeout)
        except NotYet:
            raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
        except TargetError as error:
            self._tell(error.message)
        except CancelledError:
            self._tell(f"{self._connection.where}: its host was given back while it ran")
        return LOST

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            with self._stderr.open("a", encoding="utf-8") as said:
                said.write(f"{why}\n")

    def send_signal(self, sig: int) -> None:
        """Signal it; one that has ended, or whose host is lost, is no error. Raises TargetError."""
        if self.poll() is not None:
            return
        try:
            self._send(sig)
        except TargetError:
            if not self._connection.lost:
                raise

    def kill(self) -> None:
        """End it at once, with all that it started."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close its pipes and wait for its end."""
        self.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it ended before it had read all
            self.stdin.close()
        self.wait()
