"""A client that has joined, as a driver sees it: a host that runs worker processes alone."""

from __future__ import annotations

import io
import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Self

from pydantic import SecretStr

from weighbridge.common.credential import redacted
from weighbridge.common.escaping import escape_controls
from weighbridge.common.host import Command
from weighbridge.drivers.joining.messages import FromRun, Greeting, Kill, Start, Stop

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

GONE: Final = 255
"""Exit status of a program whose client is gone, as ssh(1) has it."""


class JoinedClient:
    """One client. `send` sends it a message, from any thread; it joined at `address`. `unwritten`
    is called when a log of its programs cannot be written.
    """

    def __init__(
        self,
        greeting: Greeting,
        send: Callable[[FromRun], None],
        address: str,
        unwritten: Callable[[OSError], None],
    ) -> None:
        self.name = greeting.name
        self.greeting = greeting
        self._send = send
        self._address = address
        self._unwritten = unwritten
        self._programs: list[JoinedProgram] = []
        self._up = True

    def module(self, name: str, *arguments: str) -> Command:
        """A module of this suite; `spawn` runs but one."""
        return Command((name, *arguments))

    def spawn(
        self,
        argv: Sequence[str],
        *,
        stderr: Path,
        env: Mapping[str, str] | None = None,
    ) -> JoinedProgram:
        """Start a worker process of Locust's, whose arguments end with address, port and number.

        It starts with its first line, and the end of its log is in `stderr` when it has ended.
        """
        address, port, number = argv[-3:]
        # The way here may be through a port of another machine: it knows the way that it came.
        there = None if address == self._address else address
        program = JoinedProgram(
            len(self._programs),
            (there, int(port), int(number)),
            stderr,
            self._send,
            self._unwritten,
        )
        self._programs.append(program)
        if not self._up:
            program.ended(GONE, "")
        return program

    def is_up(self) -> bool:
        """Whether it is there."""
        return self._up

    def ended(self, program: int, code: int, tail: str) -> None:
        """It says that one of its programs has ended."""
        if program < len(self._programs):
            self._programs[program].ended(code, tail)

    def lose(self) -> None:
        """It is gone, with all its programs."""
        self._up = False
        for one in self._programs:
            one.ended(GONE, "")


class JoinedProgram:
    """A worker process on a client that has joined: a PipedProcess."""

    def __init__(
        self,
        number: int,
        master: tuple[str | None, int, int],
        log: Path,
        send: Callable[[FromRun], None],
        unwritten: Callable[[OSError], None],
    ) -> None:
        self._number = number
        self._master = master
        self._log = log
        self._send = send
        self._unwritten = unwritten
        self._over = threading.Event()
        self._ending = threading.Lock()
        self._secrets: tuple[str, ...] = ()
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = io.BufferedWriter(_FirstLine(self._start, self._stop))
        self.stdout: IO[bytes] | None = None
        log.touch()

    def poll(self) -> int | None:
        """See PipedProcess."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """See PipedProcess."""
        if not self._over.wait(timeout) or self.returncode is None:
            raise subprocess.TimeoutExpired("a worker process", timeout or 0.0)
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """KILL kills it, all others ask it to end."""
        if sig == signal.SIGKILL:
            self.kill()
        else:
            self._stop()

    def kill(self) -> None:
        """See PipedProcess."""
        self._send(Kill(program=self._number))

    def ended(self, code: int, tail: str) -> None:
        """It has ended."""
        with self._ending:
            if self.returncode is not None:
                return
            self.returncode = code
            if tail:
                try:
                    # A client may repeat what it was given.
                    self._log.write_text(escape_controls(redacted(tail, self._secrets)))
                except OSError as error:
                    # A full disk here is no client's fault: the run ends for it, by its name.
                    self._unwritten(OSError(error.errno, error.strerror, str(self._log)))
        self._over.set()

    def _start(self, line: bytes) -> None:
        address, port, number = self._master
        with suppress(ValueError):  # a line of something else than a driver has no setup
            self._secrets = tuple(_secrets_in(json.loads(line)))
        self._send(
            Start(
                program=self._number,
                address=address,
                port=port,
                number=number,
                line=SecretStr(line.decode()),
            )
        )

    def _stop(self) -> None:
        self._send(Stop(program=self._number))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """See PipedProcess."""
        if self.stdin is not None:
            self.stdin.close()
        self.wait()


def _secrets_in(part: object, name: str = "") -> Iterator[str]:
    """The values of fields of a start line that are called a key, secret, token or password."""
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _secrets_in(value, str(key))
    elif isinstance(part, list):
        for value in part:
            yield from _secrets_in(value, name)
    elif isinstance(part, str) and re.search("key|secret|token|password", name):
        yield part


class _FirstLine(io.RawIOBase):
    """A stdin that takes one line; closing it ends the program."""

    def __init__(self, start: Callable[[bytes], None], stop: Callable[[], None]) -> None:
        super().__init__()
        self._start = start
        self._stop = stop
        self._data = b""
        self._started = False

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        added = bytes(data)
        self._data += added
        line, end, _ = self._data.partition(b"\n")
        if end and not self._started:
            self._started = True
            self._data = b""
            self._start(line)
        return len(added)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._stop()
