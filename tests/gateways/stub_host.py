"""A host that starts nothing: it records requests and gives prepared answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from threaded_driver import Serve, ThreadedProgram
from weighbridge.common.host import Completed, Counters, Host, PipedProcess, Service

Answer = Callable[[Sequence[str], str], str]
"""argv, stdin -> stdout of a command."""


class StubHost(Host):
    """`events` is shared by the hosts of a deployment: (host, what) in the order of requests."""

    def __init__(
        self,
        name: str,
        address: str,
        folder: Path,
        events: list[tuple[str, str]],
        answer: Answer,
        programs: Mapping[str, Serve],
    ) -> None:
        self.name = name
        self.address = address
        self.disks = ("/dev/wb0", "/dev/wb1") if name.startswith("store") else ()
        self.files: dict[str, str | bytes] = {}
        self.modes: dict[str, tuple[int, str]] = {}
        self.services: dict[str, Service] = {}
        self.dead: set[str] = set()
        """What does not live, even once it is started: unless it was stopped before."""
        self.stopped: set[str] = set()
        self._folder = folder
        self._events = events
        self._answer = answer
        self._programs = programs

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        self.files[path] = content
        self.modes[path] = (mode, owner)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        self._events.append((self.name, " ".join(argv)))
        return Completed(
            self._answer(argv, stdin if isinstance(stdin, str) else stdin.decode()), ""
        )

    def start(self, services: Sequence[Service]) -> None:
        for service in services:
            self._events.append((self.name, f"start {service.name}"))
            self.services[service.name] = service
            if service.name in self.stopped:
                self.stopped.discard(service.name)
                self.dead.discard(service.name)

    def stop(self, service: str, *, timeout_s: float = 10) -> None:
        self._events.append((self.name, f"stop {service}"))
        self.dead.add(service)
        self.stopped.add(service)

    def alive(self, service: str) -> bool:
        return service not in self.dead

    def log(self, name: str) -> Path:
        logs = self._folder / self.name
        logs.mkdir(exist_ok=True)
        return logs / name

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> PipedProcess:
        stub = next(program for name, program in self._programs.items() if name in " ".join(argv))
        return ThreadedProgram(stub)

    def counters(self) -> Counters:
        return Counters()

    def drop_kernel_caches(self) -> str:
        return "nothing"


def run_program(path: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program for hosts with stdin closed, so that it prints its counters once."""
    argv = [sys.executable, "-I", path, *arguments]
    return subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60
    )


def ports(order: TextIO, found: TextIO) -> int:
    """A stub of gateways.await_answers: every port answers at once."""
    for index in range(len(json.loads(order.readline())["wanted"])):
        print(index, file=found, flush=True)
    order.read()
    return 0
