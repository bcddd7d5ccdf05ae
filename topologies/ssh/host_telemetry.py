"""Counters, processes and logs of a real host, from a program there that answers line by line.

The host is under test, and may be anybody's: its answers are validated.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Base64Bytes, Field, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters
from weighbridge.common.program_lines import NoLine, ProgramEnded, ProgramLines, last_lines
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_value, printable
from weighbridge.topologies.counters import counters_of, fault_of, since
from weighbridge.topologies.hosts import MOST_BYTES, MOST_FILES
from weighbridge.topologies.on_host import telemetry
from weighbridge.topologies.ssh.connection import RemoteProgram
from weighbridge.topologies.ssh.services import HostProcess

ANSWER_S: Final = 10.0
"""A program that is wedged must keep neither a sampler nor a check any longer."""
END_S: Final = 5.0
LONGEST_ANSWER_BYTES: Final = 64 * 2**20
"""An answer has 2 MiB of logs at most, and the names of new files."""


class Added(Record):
    """Data added to a log at `offset`; at 0 it is all of a file, new or truncated."""

    inode: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    data: Base64Bytes


class NewLogs(Record):
    """Additions to logs by their paths in the host's log folder; `more`: ask again."""

    files: dict[str, Added]
    more: bool


class HostTelemetry:
    """The program, which runs as long as the deployment; safe for several threads.

    One that has not answered is given up: counters are missing from then on, and the next question
    about processes or logs, which others wait for, is asked of another one.
    """

    def __init__(self, start: Callable[[], RemoteProgram], name: str, *, errors: Path) -> None:
        """`start` starts the program. Raises TargetError."""
        self._start = start
        self._name = name
        self._errors = errors
        self._lock = threading.Lock()
        self._program: RemoteProgram | None = None
        self._fault = ""
        self._closing = False
        self._first: Counters | None = None
        self._known: dict[str, list[int]] = {}
        self._log_bytes = 0
        self._logs = threading.Lock()

    def counters(self) -> Counters:
        """What was used since the first reading; memory as it is now. Raises TargetError."""
        answer = self._ask({"ask": "counters"}, again=self._first is None)
        now = counters_of(self._name, answer)
        self._first = self._first or now
        if _known(now) != _known(self._first):
            raise TargetError(f"{self._name}: its counters are not those of the first reading")
        return since(now, self._first)

    def running(self, processes: Sequence[HostProcess]) -> list[bool]:
        """Which of these processes are still running. Raises TargetError."""
        pairs = [[one.pid, one.started] for one in processes]
        found = self._ask({"ask": "running", "processes": pairs})
        if not isinstance(found, list) or len(found) != len(processes):
            raise TargetError(
                f"{self._name}: does not say which processes are running: {printable(found)}"
            )
        return [one is True for one in found]

    def copy_logs(self, name: str, folder: Path) -> None:
        """Copy what is new in a log, or with "" in all, to `folder`. Raises TargetError."""
        with self._logs:
            more = True
            while more:
                found = self._ask({"ask": "log", "name": name, "known": self._known})
                try:
                    new = NewLogs.model_validate(found)
                except ValidationError as error:
                    raise TargetError(
                        f"{self._name}: invalid additions to its logs: {fault_of(error)}"
                    ) from None
                # Only full answers continue: a host that says `more` without data would be asked
                # for ever.
                data_bytes = sum(len(added.data) for added in new.files.values())
                more = new.more and data_bytes >= telemetry.MOST_BYTES
                for path, added in new.files.items():
                    self._add(folder, path, added)

    def _add(self, folder: Path, path: str, added: Added) -> None:
        """Add to a copy, which is always below the folder. Raises TargetError."""
        known = self._known.get(path, [0, 0])[1]
        if added.offset not in (0, known):
            raise TargetError(
                f"{self._name}: log {printable(path)!r} continues at byte {added.offset}, not at "
                f"{known}, where it ended"
            )
        self._log_bytes += len(added.data)
        too_many = path not in self._known and len(self._known) >= MOST_FILES
        if too_many or self._log_bytes > MOST_BYTES:
            raise TargetError(
                f"{self._name}: its logs are more than {MOST_FILES} files or "
                f"{show_bytes(MOST_BYTES)}: no more is copied",
                advice="check what fills its log folder",
            )
        try:
            if not path.isprintable():
                raise safe_files.Refused(errno.EINVAL, "is not a plain path", path)
            descriptor = safe_files.open_descriptor(
                folder, path, os.O_WRONLY | os.O_CREAT, make_folders=True
            )
            with os.fdopen(descriptor, "wb") as copy:
                copy.truncate(added.offset)
                # A hole stays one: zeros would fill this machine's disk.
                if any(added.data):
                    copy.seek(added.offset)
                    copy.write(added.data)
                copy.truncate(added.offset + len(added.data))
        except OSError as error:
            raise TargetError(
                f"{self._name}: its log {printable(path)!r} cannot be copied into {folder}: "
                f"{error.strerror}"
            ) from error
        self._known[path] = [added.inode, added.offset + len(added.data)]

    def close(self) -> None:
        """End the program. If it does not end, it goes with the deployment's other processes."""
        self._closing = True  # whoever waits for an answer stops waiting
        with self._lock:
            self._give_up(END_S)

    def _give_up(self, within_s: float) -> None:
        program, self._program = self._program, None
        if program is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                if program.stdin is not None:
                    program.stdin.close()
                program.wait(within_s)
            program.stdout.close()

    def _ask(self, question: dict[str, Any], *, again: bool = True) -> Any:
        """The answer to a question. `again`: also if the program must be started again for it."""
        with self._lock:
            if self._closing or not (self._program or again):
                raise TargetError(f"{self._name}: its telemetry program {self._fault or 'ended'}")
            if self._program is None:
                self._program = self._start()
                self._lines = ProgramLines(self._program, longest_bytes=LONGEST_ANSWER_BYTES)
            try:
                self._lines.send(json.dumps(question), ANSWER_S)
                line = self._lines.next(ANSWER_S, self._look)
            except NoLine as error:
                self._give_up(0)
                self._fault = str(error)
                if isinstance(error, ProgramEnded):
                    with contextlib.suppress(OSError):
                        words = " ".join(last_lines(self._errors, 5)).strip()[-400:]
                        self._fault += f": {words or 'no output'}"
                raise TargetError(f"{self._name}: its telemetry program {self._fault}") from None
        found = json_value(self._name, line, TargetError)
        if not isinstance(found, dict) or not {"error", "answer"} & set(found):
            text = printable(line.decode(errors="replace"))
            raise TargetError(f"{self._name}: invalid answer: {text}")
        if "error" in found:
            raise TargetError(f"{self._name}: {printable(found['error'])}")
        return found["answer"]

    def _look(self) -> None:
        if self._closing:
            raise NoLine("was closed")


def source() -> str:
    """The program's source."""
    return Path(telemetry.__file__).read_text(encoding="utf-8")


def _known(counters: Counters) -> tuple[set[str], int]:
    names = {name for name, value in vars(counters).items() if value is not None}
    return names, len(counters.disks or ())
