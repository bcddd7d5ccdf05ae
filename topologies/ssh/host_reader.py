"""Asking the program on a real host that tells of it: one line there, one line back, without a
process for each question.

The host is what is measured, and may be anybody's: what it answers is checked before anything is
done with it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Base64Bytes, Field, ValidationError

from weighbridge.common import inside
from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters, DiskCounters
from weighbridge.common.printed import json_value, printable
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.topologies.kept_logs import MOST_BYTES, MOST_FILES
from weighbridge.topologies.ssh.program import RemoteProgram
from weighbridge.topologies.ssh.services import HostProcess
from weighbridge.topologies.ssh.there import tell_host

END_S: Final = 5.0
LONGEST_ANSWER_BYTES: Final = 64 * 2**20
"""An answer has 2 MiB of logs at most, and the names of files that are new."""


class Added(Record):
    """What was added to a log: from `offset` on `data`, which may be a file's end or, where 0, all
    of one that was begun anew.
    """

    inode: Annotated[int, Field(ge=0)]
    offset: Annotated[int, Field(ge=0)]
    data: Base64Bytes


class News(Record):
    """What is new in logs, by their paths in the host's folder of logs; `more`: ask again."""

    files: dict[str, Added]
    more: bool


class HostReader:
    """The program, for as long as the deployment stands.

    Questions of several threads are asked one after the other.
    """

    def __init__(self, program: RemoteProgram, name: str, *, errors: Path) -> None:
        self._program = program
        self._name = name
        self._errors = errors
        self._lock = threading.Lock()
        self._known: dict[str, list[int]] = {}
        self._log_bytes = 0
        self._logs = threading.Lock()

    def counters(self) -> dict[str, Any]:
        """What has been used since whenever each began to count. Raises TargetError."""
        told = self._ask({"ask": "counters"})
        if not isinstance(told, dict):
            raise TargetError(
                f"{self._name}: what it says it has used are no counters: {printable(told)}"
            )
        return told

    def there(self, processes: Sequence[HostProcess]) -> list[bool]:
        """Which of these very processes are there. Raises TargetError."""
        told = self._ask(
            {"ask": "there", "processes": [[one.pid, one.started] for one in processes]}
        )
        if not isinstance(told, list) or len(told) != len(processes):
            raise TargetError(
                f"{self._name}: does not say of each process whether it is there: {printable(told)}"
            )
        return [one is True for one in told]

    def bring(self, name: str, folder: Path) -> None:
        """Add to the copies of logs in `folder` what is new in one of the host's, or with "" in
        all. Raises TargetError.
        """
        with self._logs:
            more = True
            while more:
                told = self._ask({"ask": "log", "name": name, "known": self._known})
                try:
                    news = News.model_validate(told)
                except ValidationError as error:
                    fault = error.errors(
                        include_url=False, include_context=False, include_input=False
                    )[0]
                    words = printable(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}")
                    raise TargetError(
                        f"{self._name}: what it says is new in its logs cannot be: {words}"
                    ) from None
                # What goes on is what fills an answer: a host that says `more` and gives nothing
                # would be asked for ever.
                more = news.more and any(added.data for added in news.files.values())
                for path, added in news.files.items():
                    self._add(folder, path, added)

    def _add(self, folder: Path, path: str, added: Added) -> None:
        """Add to one copy, which is below the folder whatever the host calls it.

        Raises TargetError.
        """
        known = self._known.get(path, [0, 0])[1]
        if added.offset not in (0, known):
            raise TargetError(
                f"{self._name}: says that {printable(path)!r} goes on at byte {added.offset}, and "
                f"{known} are known: logs go on "
                "where they ended, or are begun anew"
            )
        self._log_bytes += len(added.data)
        if self._log_bytes > MOST_BYTES or (
            path not in self._known and len(self._known) >= MOST_FILES
        ):
            raise TargetError(
                f"{self._name}: its logs are more than {MOST_FILES} files or "
                f"{show_bytes(MOST_BYTES)}: no more is copied",
                advice="see what fills the folder of its logs",
            )
        try:
            if not path.isprintable():
                raise inside.Refused(errno.EINVAL, "is no plain path", path)
            descriptor = inside.opened(folder, path, os.O_WRONLY | os.O_CREAT, make_folders=True)
            with os.fdopen(descriptor, "wb") as copy:
                copy.truncate(added.offset)
                copy.seek(added.offset)
                copy.write(added.data)
        except OSError as error:
            raise TargetError(
                f"{self._name}: its log {printable(path)!r} cannot be copied into {folder}: "
                f"{error.strerror}"
            ) from error
        self._known[path] = [added.inode, added.offset + len(added.data)]

    def close(self) -> None:
        """End it. One that does not end by itself, or cannot be told to, is ended with all of the
        deployment, which follows.
        """
        with self._lock, contextlib.suppress(OSError, subprocess.TimeoutExpired):
            try:
                self._program.stdin.close()
                self._program.wait(END_S)
            finally:
                self._program.stdout.close()

    def _ask(self, question: dict[str, Any]) -> Any:
        with self._lock:
            try:
                self._program.stdin.write(json.dumps(question).encode() + b"\n")
                self._program.stdin.flush()
                line = self._program.stdout.readline(LONGEST_ANSWER_BYTES)
            except (OSError, ValueError):  # it has ended, or was closed
                line = b""
            if len(line) >= LONGEST_ANSWER_BYTES:
                raise TargetError(
                    f"{self._name}: the program that tells of the host says more than it was "
                    "asked for"
                )
            if not line.endswith(b"\n"):
                code = self._program.wait()
                said = (
                    self._errors.read_text(errors="replace").strip()
                    if self._errors.exists()
                    else ""
                )
                raise TargetError(
                    f"{self._name}: the program that tells of the host ended with {code}: "
                    f"{said[-400:] or 'no words'}"
                )
        told = json_value(self._name, line, TargetError)
        if not isinstance(told, dict) or not {"error", "answer"} & set(told):
            raise TargetError(
                f"{self._name}: what it answers is none of ours: "
                f"{printable(line.decode(errors='replace'))}"
            )
        if "error" in told:
            raise TargetError(f"{self._name}: {printable(told['error'])}")
        return told["answer"]


def source() -> str:
    """The program's text."""
    return Path(tell_host.__file__).read_text(encoding="utf-8")


def since(now: dict[str, Any], before: dict[str, Any]) -> Counters:
    """What was used between two tellings; memory as it is now."""
    told = dict(now)
    for name in (
        "cpu_s",
        "oom_kills",
        "network_received_bytes",
        "network_sent_bytes",
        "network_faults",
    ):
        if told.get(name) is not None and before.get(name) is not None:
            told[name] -= before[name]
    disks = tuple(
        DiskCounters(**{key: value - then[key] for key, value in one.items()})
        for one, then in zip(told.pop("disks"), before["disks"], strict=True)
    )
    if disks:
        told["disks"] = disks
        told["disk_read_bytes"] = sum(disk.read_bytes for disk in disks)
        told["disk_written_bytes"] = sum(disk.written_bytes for disk in disks)
    return Counters(**told)
