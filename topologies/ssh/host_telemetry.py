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
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Base64Bytes, Field, ValidationError

from weighbridge.common import safe_files
from weighbridge.common.errors import TargetError
from weighbridge.common.host import Counters, DiskCounters
from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_value, printable
from weighbridge.topologies.hosts import MOST_BYTES, MOST_FILES
from weighbridge.topologies.ssh.program import RemoteProgram
from weighbridge.topologies.ssh.remote import telemetry_program
from weighbridge.topologies.ssh.services import HostProcess

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
    """The program, which runs as long as the deployment; safe for several threads."""

    def __init__(self, program: RemoteProgram, name: str, *, errors: Path) -> None:
        self._program = program
        self._name = name
        self._errors = errors
        self._lock = threading.Lock()
        self._known: dict[str, list[int]] = {}
        self._log_bytes = 0
        self._logs = threading.Lock()

    def counters(self) -> dict[str, Any]:
        """Counters since the start of each. Raises TargetError."""
        found = self._ask({"ask": "counters"})
        if not isinstance(found, dict):
            raise TargetError(f"{self._name}: its counters are not an object: {printable(found)}")
        return found

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
                    fault = error.errors(
                        include_url=False, include_context=False, include_input=False
                    )[0]
                    words = printable(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}")
                    raise TargetError(
                        f"{self._name}: invalid additions to its logs: {words}"
                    ) from None
                # Only full answers continue: a host that says `more` without data would be asked
                # for ever.
                more = new.more and any(added.data for added in new.files.values())
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
                copy.seek(added.offset)
                copy.write(added.data)
        except OSError as error:
            raise TargetError(
                f"{self._name}: its log {printable(path)!r} cannot be copied into {folder}: "
                f"{error.strerror}"
            ) from error
        self._known[path] = [added.inode, added.offset + len(added.data)]

    def close(self) -> None:
        """End the program. If it does not end, it goes with the deployment's other processes."""
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
            except (OSError, ValueError):  # the program ended or was closed
                line = b""
            if len(line) >= LONGEST_ANSWER_BYTES:
                raise TargetError(f"{self._name}: its telemetry program prints too much")
            if not line.endswith(b"\n"):
                code = self._program.wait()
                log = self._errors.read_text(errors="replace") if self._errors.exists() else ""
                raise TargetError(
                    f"{self._name}: its telemetry program ended with {code}: "
                    f"{log.strip()[-400:] or 'no output'}"
                )
        found = json_value(self._name, line, TargetError)
        if not isinstance(found, dict) or not {"error", "answer"} & set(found):
            text = printable(line.decode(errors="replace"))
            raise TargetError(f"{self._name}: invalid answer: {text}")
        if "error" in found:
            raise TargetError(f"{self._name}: {printable(found['error'])}")
        return found["answer"]


def source() -> str:
    """The program's source."""
    return Path(telemetry_program.__file__).read_text(encoding="utf-8")


def since(now: dict[str, Any], before: dict[str, Any]) -> Counters:
    """What was used between two readings; memory as it is now."""
    used = dict(now)
    network = ("network_received_bytes", "network_sent_bytes", "network_faults")
    for name in ("cpu_s", "oom_kills", *network):
        if used.get(name) is not None and before.get(name) is not None:
            used[name] -= before[name]
    disks = tuple(
        DiskCounters(**{key: value - then[key] for key, value in one.items()})
        for one, then in zip(used.pop("disks"), before["disks"], strict=True)
    )
    if disks:
        used["disks"] = disks
        used["disk_read_bytes"] = sum(disk.read_bytes for disk in disks)
        used["disk_written_bytes"] = sum(disk.written_bytes for disk in disks)
    return Counters(**used)
