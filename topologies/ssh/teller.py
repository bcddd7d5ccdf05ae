"""Asking the program on a real host that tells of it: one line there, one line back, without a process for each question."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from gateways.host import Counters, DiskCounters
from ground.errors import TargetError
from topologies.ssh import tell_host
from topologies.ssh.program import RemoteProgram
from topologies.ssh.services import Process

END_S: Final = 5.0


class Teller:
    """The program, for as long as the deployment stands. Questions of several threads are asked one after the other."""

    def __init__(self, program: RemoteProgram, name: str, *, errors: Path) -> None:
        self._program = program
        self._name = name
        self._errors = errors
        self._lock = threading.Lock()
        self._known: dict[str, list[int]] = {}
        self._logs = threading.Lock()

    def counters(self) -> dict[str, Any]:
        """What has been used since whenever each began to count. Raises TargetError."""
        told: dict[str, Any] = self._ask({"ask": "counters"})
        return told

    def there(self, processes: Sequence[Process]) -> list[bool]:
        """Which of these very processes are there. Raises TargetError."""
        told: list[bool] = self._ask({"ask": "there", "processes": [[one.pid, one.started] for one in processes]})
        return told

    def bring(self, name: str, folder: Path) -> None:
        """Add to the copies of logs in `folder` what is new in one of the host's, or with "" in all. Raises TargetError."""
        with self._logs:
            more = True
            while more:
                told = self._ask({"ask": "log", "name": name, "known": self._known})
                more = told["more"]
                for path, (inode, offset, text) in told["files"].items():
                    data = base64.b64decode(text)
                    copy = folder / path
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    with copy.open("r+b" if copy.exists() else "wb") as file:
                        file.truncate(offset)
                        file.seek(offset)
                        file.write(data)
                    self._known[path] = [inode, offset + len(data)]

    def close(self) -> None:
        """End it. One that does not end by itself, or cannot be told to, is ended with all of the deployment, which follows."""
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
                line = self._program.stdout.readline()
            except (OSError, ValueError):  # it has ended, or was closed
                line = b""
            if not line.endswith(b"\n"):
                code = self._program.wait()
                said = self._errors.read_text(errors="replace").strip() if self._errors.exists() else ""
                raise TargetError(
                    f"{self._name}: the program that tells of the host ended with {code}: {said[-400:] or 'no words'}"
                )
        told = json.loads(line)
        if "error" in told:
            raise TargetError(f"{self._name}: {told['error']}")
        return told["answer"]


def source() -> str:
    """The program's text."""
    return Path(tell_host.__file__).read_text(encoding="utf-8")


def since(now: dict[str, Any], before: dict[str, Any]) -> Counters:
    """What was used between two tellings; memory as it is now."""
    told = dict(now)
    for name in ("cpu_s", "oom_kills", "network_received_bytes", "network_sent_bytes", "network_faults"):
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
