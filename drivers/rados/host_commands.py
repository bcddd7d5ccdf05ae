"""Commands that run in parallel on a host, followed until all have ended."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from pydantic import NonNegativeFloat, NonNegativeInt

from weighbridge.common.errors import DriverError
from weighbridge.common.host import PipedProcess, ProgramHost
from weighbridge.common.program_lines import NoLine, ProgramLines, end
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_value
from weighbridge.drivers.protocol import DriverFailure, KeptFile

PROGRAM: Final = "run_parallel.py"
TICK_S: Final = 0.4
"""How often `tick` is called: at least twice a second."""
END_S: Final = 5.0
"""Time for commands to end after `stop`."""
MOST_BYTES: Final = 256 * 2**20
"""The limit for all output of commands."""
MOST_LINES: Final = 2_000_000
"""The same in lines: short ones take more memory here than there."""

# Clients of the same name on a host would compete for its admin socket; neither that nor a log is
# needed.
QUIET: Final[Mapping[str, str]] = {"CEPH_ARGS": "--admin_socket= --log_file="}


@dataclass
class CommandOutput:
    """One command. `lines` is its output, with seconds since the start of all commands."""

    argv: tuple[str, ...]
    lines: list[tuple[float, str]] = field(default_factory=list)
    errors: str = ""
    code: int | None = None
    """None while it is running; minus the signal that ended it."""
    seconds: float = 0.0
    cpu_s: float = 0.0

    @property
    def name(self) -> str:
        """The program, not the one that unbuffers it."""
        return Path(self.argv[2] if self.argv[0] == "stdbuf" else self.argv[0]).name

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


Tick = Callable[[float, Sequence[CommandOutput]], bool]
"""Called with the seconds since the start and the output so far; returns True to stop."""


class HostCommands:
    """Runs commands of one host's Python, writing nothing there; `log` gets stderr."""

    def __init__(self, machine: ProgramHost, log: Path) -> None:
        self._machine = machine
        self._log = log
        self._program: PipedProcess | None = None

    def run(
        self, commands: Sequence[Sequence[str]], tick: Tick, *, within_s: float
    ) -> list[CommandOutput]:
        """Start all commands in parallel and wait for their ends; only stopped ones may fail.

        Raises DriverFailure with the output when one fails, or when they have not ended in
        `within_s`; TargetError when the host does not answer.
        """
        return self._run(commands, tick, within_s, may_fail=False)

    def ask(self, argv: Sequence[str], *, within_s: float) -> CommandOutput:
        """Run one command to its end, whatever its status. Raises as `run` for all else."""
        (found,) = self._run([argv], lambda _seconds, _ran: False, within_s, may_fail=True)
        return found

    def _run(
        self, commands: Sequence[Sequence[str]], tick: Tick, within_s: float, *, may_fail: bool
    ) -> list[CommandOutput]:
        source = Path(__file__).with_name(PROGRAM).read_text(encoding="utf-8")
        argv = [self._machine.python, "-I", "-B", "-c", source]
        program = self._machine.spawn(argv, stderr=self._log, env=QUIET)
        self._program = program
        ran = [CommandOutput(tuple(argv)) for argv in commands]
        lines = ProgramLines(program, longest_bytes=MOST_BYTES)
        try:
            self._send(lines, json.dumps([list(one.argv) for one in ran]))
            self._follow(lines, ran, tick, within_s, may_fail=may_fail)
        finally:
            self.close()
        return ran

    def close(self) -> None:
        program, self._program = self._program, None
        if program is not None:
            end(program, within_s=END_S)

    def _follow(
        self,
        lines: ProgramLines,
        ran: list[CommandOutput],
        tick: Tick,
        within_s: float,
        *,
        may_fail: bool,
    ) -> None:
        began = ticked = time.monotonic()
        stopped = False
        read_bytes = read_lines = 0

        def look() -> None:
            nonlocal ticked, stopped, within_s
            now = time.monotonic()
            if now - began > within_s + (END_S if stopped else 0):
                raise self._failure(ran, f"had not ended after {within_s:.0f} s")
            if now - ticked >= TICK_S:
                ticked = now
                if tick(now - began, ran) and not stopped:
                    stopped = True
                    within_s = now - began
                    self._send(lines, "stop")

        while any(one.code is None for one in ran):
            look()
            try:
                line = lines.next(math.inf, look)
            except NoLine as error:
                why = f"was ended with the program that started it, which {error}"
                raise self._failure(ran, why) from None
            read_bytes, read_lines = read_bytes + len(line), read_lines + 1
            if read_bytes > MOST_BYTES:
                raise self._failure(ran, f"printed more than {show_bytes(MOST_BYTES)}")
            if read_lines > MOST_LINES:
                raise self._failure(ran, f"printed more than {MOST_LINES:,} lines")
            _handle(ran, line)
            if not (stopped or may_fail) and any(one.code for one in ran):
                raise self._failure(ran, "")

    def _send(self, lines: ProgramLines, text: str) -> None:
        try:
            lines.send(text, END_S)
        except NoLine as error:
            raise DriverError(f"{self._machine.name}: {PROGRAM} took no order: {error}") from error

    def _failure(self, ran: Sequence[CommandOutput], what: str) -> DriverFailure:
        # The first that failed: those killed because of it do not say why.
        failed = sorted(
            (one.seconds, number) for number, one in enumerate(ran) if one.code not in (None, 0)
        )
        running = [(0.0, number) for number, one in enumerate(ran) if one.code is None]
        _, number = next(iter((*failed, *running)), (0.0, 0))
        first = ran[number]
        which = f"{number + 1} of {len(ran)} " if len(ran) > 1 else ""
        code = first.code or 0
        how = what or (f"was ended by signal {-code}" if code < 0 else f"ended with {code}")
        output = [*first.errors.splitlines()[-10:], *(line[:200] for _, line in first.lines[-5:])]
        lines = "\n".join(f"  | {line}" for line in output) or "  | (it printed nothing)"
        command = " ".join(first.argv)[-300:]
        what = f"{self._machine.name}: {which}{first.name} {how}: {command}\n{lines}"
        return DriverFailure(what, advice=f"the log of its parent: {self._log}", kept=kept_of(ran))


def kept_of(ran: Sequence[CommandOutput], name: str = "") -> tuple[KeptFile, ...]:
    """The output of commands, each as a file."""
    files = []
    for number, one in enumerate(ran):
        head = f"$ {' '.join(one.argv)}\n"
        tail = f"\n--- stderr\n{one.errors}" if one.errors.strip() else ""
        files.append(
            KeptFile(name=f"{name or one.name}-{number}.txt", text=f"{head}{one.text}\n{tail}")
        )
    return tuple(files)


class _Line(Record):
    kind: Literal["line"]
    number: NonNegativeInt
    seconds: NonNegativeFloat
    text: str


class _End(Record):
    kind: Literal["end"]
    number: NonNegativeInt
    seconds: NonNegativeFloat
    status: int
    cpu_s: NonNegativeFloat
    errors: str


def _handle(ran: list[CommandOutput], line: bytes) -> None:
    """Handle a line of run_parallel.py. Raises DriverError when it is not one."""
    fields = json_value(PROGRAM, line, DriverError)
    try:
        kind = _End if fields[:1] == ["end"] else _Line
        event = kind.model_validate(dict(zip(kind.model_fields, fields, strict=True)))
        one = ran[event.number]
    except (IndexError, TypeError, ValueError) as error:
        raise DriverError(f"{PROGRAM}: printed an unknown line: {line[:300]!r}") from error
    if isinstance(event, _Line):
        one.lines.append((event.seconds, event.text))
    else:
        one.seconds, one.code = event.seconds, event.status
        one.cpu_s, one.errors = event.cpu_s, event.errors
