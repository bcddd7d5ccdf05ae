"""A program on a real host with its stdin and stdout as pipes here."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import Final, Self

from weighbridge.common.errors import TargetError
from weighbridge.topologies.ssh.connection import SshConnection

LOST: Final = 255
"""The status of a program whose host stopped answering, as ssh(1) reports it."""


class RemoteProgram:
    """A `PipedProcess` on a real host; when the host is lost, its pipes end with status LOST."""

    def __init__(
        self,
        connection: SshConnection,
        argv: Sequence[str],
        *,
        stderr: Path,
        send: Callable[[int], None],
    ) -> None:
        """Start `argv` there; `send` signals it, KILL with all it started. Raises TargetError."""
        self.args = tuple(argv)
        self._connection = connection
        self._stderr = stderr
        self._send = send
        self._reason_logged = False
        remote_in, local_in = os.pipe()
        local_out, remote_out = os.pipe()
        self.stdin = os.fdopen(local_in, "wb")
        self.stdout = os.fdopen(local_out, "rb")
        try:
            self._ended = connection.start(
                argv, stdin=remote_in, stdout=remote_out, stderr=stderr.open("ab")
            )
        except BaseException:
            self.stdin.close()
            self.stdout.close()
            raise

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative for a signal, LOST for a lost host; None: it is running."""
        return self.poll()

    def poll(self) -> int | None:
        return self.wait() if self._ended.done() else None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        try:
            return self._ended.result(timeout)
        except NotYet:
            raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
        except TargetError as error:
            self._log_reason(error.message)
        except CancelledError:
            self._log_reason(f"{self._connection.where}: its host was released while it ran")
        return LOST

    def _log_reason(self, why: str) -> None:
        if not self._reason_logged:
            self._reason_logged = True
            with self._stderr.open("a", encoding="utf-8") as log:
                log.write(f"{why}\n")

    def send_signal(self, sig: int) -> None:
        """Signal it; one that has ended or whose host is lost is no error. Raises TargetError."""
        if self.poll() is not None:
            return
        try:
            self._send(sig)
        except TargetError:
            if not self._connection.lost:
                raise

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        with contextlib.suppress(BrokenPipeError):  # it ended before it read everything
            self.stdin.close()
        self.wait()
