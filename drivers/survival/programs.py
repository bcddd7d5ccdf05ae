"""The conductor's side: starts the programs on a client host, follows them, and ends them."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

from pydantic import TypeAdapter, ValidationError

from weighbridge.common.errors import DriverError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.drivers.process import ClientPrograms, last_lines
from weighbridge.drivers.survival.judge import Expected
from weighbridge.drivers.survival.operation import Operation
from weighbridge.drivers.survival.orders import (
    INSPECTOR_LINE,
    WRITER_LINE,
    Ended,
    Failed,
    Found,
    Inspected,
    InspectOrder,
    Reading,
    Ready,
    WriteOrder,
)
from weighbridge.results.run.durability import MOST_EXAMPLES, Example, Finding, FoundObjects

MOST_OPERATIONS: Final = 2_000_000
"""Of one load: each takes about a KiB of the conductor's memory."""
_WRITER: Final = "weighbridge.drivers.survival.write_objects"
_INSPECTOR: Final = "weighbridge.drivers.survival.inspect_objects"
_LONGEST_LINE: Final = 2**20
_START_S: Final = 120.0
"""A start on a host with a fraction of a CPU, and containers of a slow store."""
_GRACE_S: Final = 60.0
_END_S: Final = 2.0
_LOOK_S: Final = 0.5


class Inspection(Record):
    """What an inspection found after a cut."""

    objects: tuple[FoundObjects, ...]
    examples: tuple[Example, ...]
    """Up to MOST_EXAMPLES, some of every finding."""
    notes: tuple[str, ...]
    """Listings that are not complete, and why."""
    reads_s: float
    lists_s: float
    cpu_s: float
    """CPU time of the program, its start included."""


class _Followed:
    """A program on a host whose lines are read as they come. `name` is for messages."""

    def __init__(
        self,
        programs: ClientPrograms,
        stdout: IO[bytes],
        lines: TypeAdapter[Any],
        *,
        name: str,
        log: Path,
    ) -> None:
        self._programs = programs
        self._adapter = lines
        self._name = name
        self._log = log
        self._read: queue.SimpleQueue[Record | None] = queue.SimpleQueue()
        self._fault = ""
        # What has been printed must not fill the pipe: the program would wait in the midst of it.
        threading.Thread(
            target=self._follow, args=(stdout,), name=f"follow-{log.stem}", daemon=True
        ).start()

    def _follow(self, stdout: IO[bytes]) -> None:
        try:
            for _ in range(MOST_OPERATIONS):
                line = stdout.readline(_LONGEST_LINE)
                if not line:
                    return
                found = self._adapter.validate_json(line)
                if isinstance(found, Failed):
                    self._fault = f"it failed: {found.message}"
                    return
                self._read.put(found)
            self._fault = f"it printed more than {MOST_OPERATIONS:,} lines"
        except ValidationError as error:
            fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
            self._fault = f"it printed a line that is not one of its messages ({fault['msg']})"
        except (OSError, ValueError) as error:
            self._fault = f"its output cannot be read: {error}"
        finally:
            self._read.put(None)

    def check(self) -> None:
        """Raise DriverError when the program has failed or ended."""
        if self._fault:
            raise self.error(self._fault)
        self._programs.check()

    def next(self, silence_s: float) -> Record:
        """The next line. Raises DriverError when there is none for so long."""
        deadline_s = time.monotonic() + silence_s
        while True:
            with contextlib.suppress(queue.Empty):
                if (found := self._read.get(timeout=_LOOK_S)) is not None:
                    return found
                self.check()
                raise self.error("it closed its output")
            self.check()
            if time.monotonic() >= deadline_s:
                raise self.error(f"it was silent for {silence_s:g} s")

    def error(self, what: str) -> DriverError:
        return DriverError("\n".join([f"{self._name}: {what}", *last_lines(self._log)]))


@contextlib.contextmanager
def _program(
    host: Host, module: str, given: str, lines: TypeAdapter[Any], log: Path
) -> Iterator[tuple[_Followed, IO[bytes]]]:
    with ClientPrograms(_END_S) as programs:
        program = programs.add(host, module, host.module(module), log, given.encode())
        if program.stdin is None or program.stdout is None:
            raise DriverError(f"{host.name}: {module} has no pipes")
        name = f"{host.name}: {module.rpartition('.')[2]}"
        yield _Followed(programs, program.stdout, lines, name=name, log=log), program.stdin


class Writing:
    """A load to `go`, `stop` and give `operations`. Raises DriverError when its program ends."""

    def __init__(
        self,
        program: _Followed,
        stdin: IO[bytes],
        order: WriteOrder,
        containers: tuple[str, ...],
    ) -> None:
        self._program = program
        self._stdin = stdin
        self._order = order
        self._operations: tuple[Operation, ...] | None = None
        self.containers = containers
        """All that were made, also those of segments."""

    def go(self) -> None:
        self._send(b"go\n")

    def check(self) -> None:
        self._program.check()

    def stop(self) -> Ended:
        """Stop writing, and wait until nothing is outstanding."""
        self._send(b"stop\n")
        found: list[Operation] = []
        while True:
            line = self._program.next(self._order.drain_s + _GRACE_S)
            if isinstance(line, Ended):
                break
            if isinstance(line, Operation):
                found.append(line)
        if len(found) != line.operations:
            raise self._program.error(f"{len(found)} of its {line.operations} operations arrived")
        self._operations = tuple(found)
        return line

    def operations(self) -> tuple[Operation, ...]:
        if self._operations is None:
            raise self._program.error("it has not stopped: what is in flight is not known")
        return self._operations

    def _send(self, line: bytes) -> None:
        try:
            self._stdin.write(line)
            self._stdin.flush()
        except (OSError, ValueError) as error:
            self._program.check()
            raise self._program.error(f"it reads nothing: {error}") from error


@contextlib.contextmanager
def writing(host: Host, order: WriteOrder, log: Path) -> Iterator[Writing]:
    """A load that is ready, until the end; `log` gets what it says. Raises DriverError."""
    given = order.model_dump_json() + "\n"
    with _program(host, _WRITER, given, WRITER_LINE, log) as (program, stdin):
        ready = program.next(_START_S)
        if not isinstance(ready, Ready):
            raise program.error("it did not say that it is ready")
        yield Writing(program, stdin, order, ready.containers)


def inspect(host: Host, order: InspectOrder, objects: Sequence[Expected], log: Path) -> Inspection:
    """Read all objects from a client host and list their containers. Raises DriverError."""
    given = "".join(f"{one.model_dump_json(exclude_defaults=True)}\n" for one in objects)
    silence_s = _START_S + order.within_s + 4 * order.timeout_s + order.list_again_s
    examples: dict[Finding, list[Example]] = {}
    first = f"{order.model_dump_json()}\n{given}\n"
    with _program(host, _INSPECTOR, first, INSPECTOR_LINE, log) as (program, _):
        while not isinstance(line := program.next(silence_s), Inspected):
            if isinstance(line, Found):
                some = examples.setdefault(line.example.finding, [])
                if len(some) < MOST_EXAMPLES:
                    some.append(line.example)
            elif not isinstance(line, Reading):
                raise program.error("it printed a line of another program")
    return Inspection(
        objects=line.objects,
        examples=_some_of_each(list(examples.values())),
        notes=line.notes,
        reads_s=line.reads_s,
        lists_s=line.lists_s,
        cpu_s=line.cpu_s,
    )


def _some_of_each(examples: list[list[Example]]) -> tuple[Example, ...]:
    """The first of each finding, the second of each, and so on, up to MOST_EXAMPLES."""
    longest = max(map(len, examples), default=0)
    turns = [some[at] for at in range(longest) for some in examples if at < len(some)]
    return tuple(turns[:MOST_EXAMPLES])
