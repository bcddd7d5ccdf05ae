"""The conductor's side of the protocol: a driver process, its events, and its end on any path."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self, TypeVar

from pydantic import ValidationError

from weighbridge.common import program_lines
from weighbridge.common.errors import DriverError
from weighbridge.common.host import Command, Host, PipedProcess
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines
from weighbridge.drivers.protocol import (
    EVENT,
    AgeBuckets,
    Aged,
    Cleaned,
    Cleanup,
    DriverCommand,
    DriverFailure,
    Event,
    Failed,
    Listening,
    Measured,
    OnProgress,
    Open,
    Prepare,
    Prepared,
    Progress,
    Quit,
    Ready,
    Setup,
    Step,
)

Answer = TypeVar("Answer", Ready, Prepared, Measured, Cleaned, Aged)

SILENCE_S = 60.0
"""A driver sends an event at least twice a second while a command runs; the longest silence is its
start on a host with a fraction of a CPU.
"""

QUIT_S = 10.0
"""How long a driver may take to end by itself, and once more after SIGTERM."""

LONGEST_EVENT_BYTES: Final = 2**28
"""A step that takes a day has 40 MB of seconds, and tools' files may be beside them."""

TAIL_LINES = 15


class DriverProcess:
    """A running driver, given as a Popen with stdin and stdout as pipes; `log` has its stderr.

    For one conductor thread. A context manager that ends the driver. Every command raises
    DriverError when the driver fails, ends, sends a line that is not an event, or is silent for
    `silence_s` seconds; after that only `close` may be called.
    `look` is called at least twice a second while a command runs, and raises DriverError when
    something that the driver depends on has ended.
    """

    def __init__(
        self,
        process: PipedProcess,
        log: Path,
        *,
        silence_s: float = SILENCE_S,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.process = process
        self.log = log
        self.silence_s = silence_s
        self._look = look
        self._lines = ProgramLines(process, longest_bytes=LONGEST_EVENT_BYTES)
        self._busy = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setup(self, command: Setup, listening: Callable[[Listening], None] | None = None) -> Ready:
        """Set it up, starting other clients' workers by `listening`; the versions of its parts."""
        return self._ask(command, Ready, None, listening)

    def prepare(self, command: Prepare, on_progress: OnProgress | None = None) -> Prepared:
        return self._ask(command, Prepared, on_progress)

    def step(self, command: Step, on_progress: OnProgress | None = None) -> Measured:
        return self._ask(command, Measured, on_progress)

    def cleanup(self, command: Cleanup, on_progress: OnProgress | None = None) -> Cleaned:
        return self._ask(command, Cleaned, on_progress)

    def age(self, command: AgeBuckets, on_progress: OnProgress | None = None) -> Aged:
        return self._ask(command, Aged, on_progress)

    def quit(self) -> None:
        """End an idle driver. Raises DriverError when it is not idle or did not end well."""
        if self._busy or self.process.poll() is not None:
            raise self._error(
                "was asked to quit, but "
                + ("a command is running" if self._busy else self._how_it_ended())
            )
        self._send(Quit())
        try:
            self.process.wait(QUIT_S)
        except subprocess.TimeoutExpired:
            raise self._error(f"did not end within {QUIT_S:g} s of being asked to") from None
        finally:
            self.close()
        if self.process.returncode != 0:
            raise self._error(self._how_it_ended())

    def close(self) -> None:
        """End the driver whatever it is doing: close stdin (Quit), SIGTERM, SIGKILL by its pid."""
        within_s = QUIT_S / 4 if self._busy else QUIT_S
        program_lines.end(self.process, within_s=within_s, terminate_s=QUIT_S)

    def _send(self, command: DriverCommand | Open) -> None:
        try:
            self._lines.send(command.model_dump_json(), self.silence_s)
        except NoLine as error:
            raise self._error(self._what(error)) from None

    def _ask(
        self,
        command: DriverCommand,
        wanted: type[Answer],
        on_progress: OnProgress | None,
        listening: Callable[[Listening], None] | None = None,
    ) -> Answer:
        if self._busy:
            raise self._error(f"was given {command.kind!r} before its last command was answered")
        # Stays so when this raises: a driver that failed answers nothing more.
        self._busy = True
        self._send(command)
        while True:
            event = self._next(command)
            if isinstance(event, Progress):
                if on_progress is not None and on_progress(event):
                    self._send(Open())
            elif isinstance(event, Listening) and listening is not None:
                listening(event)
            elif isinstance(event, Failed):
                what = f"the driver failed at {command.kind!r}: {event.message}"
                raise DriverFailure(what, advice=f"its log: {self.log}", kept=event.kept)
            elif isinstance(event, wanted):
                self._busy = False
                return event
            else:
                raise self._error(f"answered {command.kind!r} with {event.kind!r}")

    def _next(self, command: DriverCommand) -> Event:
        try:
            line = self._lines.next(self.silence_s, self._look)
        except NoLine as error:
            raise self._error(f"{self._what(error)} during {command.kind!r}") from None
        try:
            return EVENT.validate_json(line)
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False, include_input=False)
            text = line[:200].decode(errors="replace").rstrip()
            raise self._error(
                f"sent a line that is not an event ({faults[0]['msg']}): {text}"
            ) from None

    def _what(self, error: NoLine) -> str:
        return self._how_it_ended() if isinstance(error, ProgramEnded) else str(error)

    def _how_it_ended(self) -> str:
        code = self.process.returncode
        return "closed its output" if code is None else how_it_ended(code)

    def _error(self, what: str) -> DriverError:
        return DriverError("\n".join([f"the driver {what}", *last_lines(self.log)]))


def how_it_ended(code: int) -> str:
    """How a program ended, by exit status: signal N is -N, or 128 + N by a shell or ssh."""
    number = -code if code < 0 else code - 128
    if number not in set(signal.Signals):
        return f"ended with exit status {code}"
    name = signal.Signals(number).name
    return f"was ended by {name}" if code < 0 else f"ended with exit status {code} ({name})"


def last_lines(log: Path) -> list[str]:
    """The last lines of a log, below a heading that names it."""
    try:
        lines = program_lines.last_lines(log, TAIL_LINES)
    except OSError as error:
        return [f"{log} cannot be read: {error.strerror}"]
    return (
        [f"last lines of {log}:", *[f"  | {line}" for line in lines]]
        if lines
        else [f"its log is empty: {log}"]
    )


KILLED_S: Final = 10.0
"""How long to wait for killed programs, in all: their host may be gone."""
HOST_GONE_S: Final = 2.0
"""How long a host may take to be gone after its programs."""
_KILLED: Final = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})


@dataclass(frozen=True)
class _Program:
    name: str
    host: Host
    program: PipedProcess
    log: Path
    writing: threading.Thread


class ClientPrograms:
    """Programs that end when their stdin closes, within `end_s`; it ends them all."""

    def __init__(self, end_s: float) -> None:
        self._end_s = end_s
        self._programs: list[_Program] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(
        self, host: Host, name: str, command: Command, log: Path, line: bytes = b""
    ) -> PipedProcess:
        """Start a program and write `line` to its stdin, left open; its stderr goes to `log`."""
        program = host.spawn(command.argv, stderr=log, env=command.env)
        if program.stdin is None:
            raise DriverError(f"{host.name}: {name} has no stdin")
        # In a thread: a program that does not read must keep nobody waiting.
        writing = threading.Thread(
            target=_write, args=(program.stdin, line), name=f"write-{host.name}", daemon=True
        )
        self._programs.append(_Program(name, host, program, log, writing))
        writing.start()
        return program

    def check(self) -> None:
        """Raise DriverError when a program has ended, or its host is gone."""
        for one in self._programs:
            code = one.program.poll()
            if code is None:
                continue
            # A host's first process ends after all others: is this the host's end, or its own?
            deadline_s = time.monotonic() + HOST_GONE_S
            while code in _KILLED and one.host.is_up() and time.monotonic() < deadline_s:
                time.sleep(0.02)
            how = how_it_ended(code) if one.host.is_up() else "has ended: the host is gone"
            raise DriverError(
                "\n".join([f"{one.host.name}: {one.name} {how}", *last_lines(one.log)])
            )

    def close(self) -> None:
        """End all programs: close their stdin, then kill those still running by their pid."""
        for one in self._programs:
            if one.writing.is_alive():
                one.program.kill()  # it does not even read its first line
                one.writing.join(KILLED_S)
            if one.program.stdin is not None and not one.writing.is_alive():
                with contextlib.suppress(OSError, ValueError):
                    one.program.stdin.close()
        deadline_s = time.monotonic() + self._end_s
        left = [
            one for one in self._programs if not _ended(one.program, deadline_s - time.monotonic())
        ]
        for one in left:
            one.program.kill()
        deadline_s = time.monotonic() + KILLED_S
        for one in left:
            _ended(one.program, deadline_s - time.monotonic())
        for one in self._programs:
            if one.program.stdout is not None:
                one.program.stdout.close()


def _write(stdin: IO[bytes], line: bytes) -> None:
    # `check` reports a program that has ended, with how it ended.
    with contextlib.suppress(OSError, ValueError):
        stdin.write(line)
        stdin.flush()


def _ended(program: PipedProcess, timeout_s: float) -> bool:
    with contextlib.suppress(subprocess.TimeoutExpired):
        program.wait(max(0.05, timeout_s))
        return True
    return False
