"""Commands that run on a host at once, followed from here until all of them have ended."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Host
from weighbridge.common.piped import Piped
from weighbridge.common.printed import json_value
from weighbridge.common.record import Record
from weighbridge.drivers.driver import GaveUp
from weighbridge.drivers.order import KeptFile

PROGRAM: Final = "/usr/local/lib/weighbridge/at_once.py"
TICK_S: Final = 0.4
"""How often it is told how far they are: at least twice a second."""
END_S: Final = 5.0
"""How long commands may take to end once they are told to."""

# Several clients of one name on one host would each want the admin socket of that name; none is
# asked anything.
QUIET: Final[Mapping[str, str]] = {"CEPH_ARGS": "--admin_socket="}


@dataclass
class CommandOutput:
    """One command. `lines` are what it printed, with seconds after the start of all of them."""

    argv: tuple[str, ...]
    lines: list[tuple[float, str]] = field(default_factory=list)
    errors: str = ""
    code: int | None = None
    """None while it runs; minus the signal that ended it."""
    seconds: float = 0.0
    cpu_s: float = 0.0

    @property
    def name(self) -> str:
        """The program, past the one that unbuffers it."""
        return Path(self.argv[2] if self.argv[0] == "stdbuf" else self.argv[0]).name

    @property
    def text(self) -> str:
        """All that it printed."""
        return "\n".join(line for _, line in self.lines)


Tick = Callable[[float, Sequence[CommandOutput]], bool]
"""Told the seconds since the start and what has been printed so far; true means that they shall
stop.
"""


class HostCommands:
    """Runs commands on one host; `log` gets what the program that starts them there says to
    people.
    """

    def __init__(self, machine: Host, log: Path) -> None:
        self._machine = machine
        self._log = log
        self._program: Piped | None = None

    def run(
        self, commands: Sequence[Sequence[str]], tick: Tick, *, within_s: float
    ) -> list[CommandOutput]:
        """Start all commands at once and wait for their ends; a stopped one may end as it likes,
        any other with 0.

        Raises GaveUp with what was printed when one fails, or when they have not ended after
        `within_s`.
        """
        source = Path(__file__).with_name("at_once.py").read_text(encoding="utf-8")
        self._machine.put(PROGRAM, source)
        program = self._machine.spawn(["python3", "-I", PROGRAM], stderr=self._log, env=QUIET)
        self._program = program
        ran = [CommandOutput(tuple(argv)) for argv in commands]
        try:
            self._send(program, json.dumps([list(one.argv) for one in ran]))
            self._follow(program, ran, tick, within_s)
        finally:
            self.close()
        return ran

    def close(self) -> None:
        """End whatever runs."""
        program, self._program = self._program, None
        if program is None:
            return
        with contextlib.suppress(OSError, ValueError):
            if program.stdin is not None:
                program.stdin.close()
        try:
            program.wait(END_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()
        if program.stdout is not None:
            program.stdout.close()

    def _follow(
        self, program: Piped, ran: list[CommandOutput], tick: Tick, within_s: float
    ) -> None:
        assert program.stdout is not None  # noqa: S101 - spawn promises pipes
        pipe = program.stdout.fileno()
        began = told = time.monotonic()
        stopped = False
        read = b""
        while any(one.code is None for one in ran):
            now = time.monotonic()
            if now - began > within_s + (END_S if stopped else 0):
                raise self._gave_up(ran, f"had not ended after {within_s:.0f} s")
            if now - told >= TICK_S:
                told = now
                if tick(now - began, ran) and not stopped:
                    stopped = True
                    within_s = now - began
                    self._send(program, "stop")
            if not select.select([pipe], [], [], TICK_S / 4)[0]:
                continue
            chunk = os.read(pipe, 1 << 16)
            if not chunk:
                raise self._gave_up(ran, "was ended with the program that started it")
            *lines, read = (read + chunk).split(b"\n")
            for line in lines:
                _hear(ran, line)
            if not stopped and any(one.code for one in ran):
                raise self._gave_up(ran, "")

    def _send(self, program: Piped, text: str) -> None:
        assert program.stdin is not None  # noqa: S101 - spawn promises pipes
        try:
            program.stdin.write(text.encode() + b"\n")
            program.stdin.flush()
        except OSError as error:
            raise DriverError(
                f"{self._machine.name}: {PROGRAM} ended before it had read what to run: {error}"
            ) from error

    def _gave_up(self, ran: Sequence[CommandOutput], what: str) -> GaveUp:
        # Those that were killed because another one failed say nothing about why.
        failed = sorted(
            (one.seconds, number) for number, one in enumerate(ran) if one.code not in (None, 0)
        )
        running = [(0.0, number) for number, one in enumerate(ran) if one.code is None]
        _, number = next(iter((*failed, *running)), (0.0, 0))
        culprit = ran[number]
        name = culprit.name
        which = f"{number + 1} of {len(ran)} " if len(ran) > 1 else ""
        how = what or (
            f"was ended by signal {-(culprit.code or 0)}"
            if (culprit.code or 0) < 0
            else f"ended with {culprit.code}"
        )
        told = [*culprit.errors.splitlines()[-10:], *(line[:200] for _, line in culprit.lines[-5:])]
        lines = "\n".join(f"  | {line}" for line in told) or "  | (it printed nothing)"
        command = " ".join(culprit.argv)[-300:]
        what = f"{self._machine.name}: {which}{name} {how}: {command}\n{lines}"
        return GaveUp(what, advice=f"what started it: {self._log}", kept=kept_of(ran))


def kept_of(ran: Sequence[CommandOutput], name: str = "") -> tuple[KeptFile, ...]:
    """What commands printed, each as a file."""
    files = []
    for number, one in enumerate(ran):
        head = f"$ {' '.join(one.argv)}\n"
        tail = f"\n--- besides\n{one.errors}" if one.errors.strip() else ""
        files.append(
            KeptFile(name=f"{name or one.name}-{number}.txt", text=f"{head}{one.text}\n{tail}")
        )
    return tuple(files)


class _Line(Record):
    """What a command printed."""

    kind: Literal["line"]
    number: NonNegativeInt
    seconds: NonNegativeFloat
    text: str


class _End(Record):
    """How a command ended."""

    kind: Literal["end"]
    number: NonNegativeInt
    seconds: NonNegativeFloat
    status: int
    cpu_s: NonNegativeFloat
    errors: str


def _hear(ran: list[CommandOutput], line: bytes) -> None:
    """Take in what at_once.py told. Raises DriverError when it is none of its lines."""
    told = json_value(PROGRAM, line, DriverError)
    try:
        kind = _End if told[:1] == ["end"] else _Line
        event = kind.model_validate(dict(zip(kind.model_fields, told, strict=True)))
        one = ran[event.number]
    except (IndexError, TypeError, ValueError) as error:
        raise DriverError(f"{PROGRAM}: told what is none of its lines: {line[:300]!r}") from error
    if isinstance(event, _Line):
        one.lines.append((event.seconds, event.text))
    else:
        one.seconds, one.code, one.cpu_s, one.errors = (
            event.seconds,
            event.status,
            event.cpu_s,
            event.errors,
        )
