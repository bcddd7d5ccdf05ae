"""For tests: a pool of a cluster whose programs keep objects as files, and who else has some."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

import fake_ceph
from fake_ceph import FakeCeph
from threaded_driver import ThreadedProgram
from weighbridge.common.host import PipedProcess
from weighbridge.common.structure import CephPool
from weighbridge.results.run.resolved import BenchedPool

Seen = Callable[..., BenchedPool]

CODED: dict[str, object] = {"type": 3, "erasure_code_profile": "p"}

POOL = CephPool(host="gateway-1", pool="bench", user="client.bench")
NAMESPACE = "wb-0123abcd"
THEIRS = ("theirs/precious", "/benchmark_data_gateway-1_7_object0")
"""Objects of others: in a namespace, and of a bench from the same host."""


class Machine:
    """This machine, with the programs of a fake cluster."""

    name = "gateway-1"
    python = sys.executable

    def __init__(self, ceph: FakeCeph) -> None:
        self.path = f"{ceph.bin}:{os.environ['PATH']}"

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> PipedProcess:
        with stderr.open("ab") as file:
            return subprocess.Popen(
                # Without `site`, a start of Python costs half as much.
                [argv[0], "-S", *argv[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, **(env or {}), "PATH": self.path},
            )


class AskedMachine(Machine):
    """The same for who only asks, with its programs as functions of this process: a start of each
    of them, and of what starts them, is most of the cost of a question.
    """

    def __init__(self, ceph: FakeCeph) -> None:
        super().__init__(ceph)
        self._bin = ceph.bin

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> PipedProcess:
        return ThreadedProgram(self._answer)

    def _answer(self, commands: TextIO, events: TextIO) -> int:
        for number, argv in enumerate(json.loads(commands.readline())):
            said, errors = io.StringIO(), io.StringIO()
            with redirect_stdout(said), redirect_stderr(errors):
                status = self._run(*argv)
            for line in said.getvalue().split("\n")[:-1]:
                print(json.dumps(["line", number, 0.0, line]), file=events)
            print(json.dumps(["end", number, 0.0, status, 0.0, errors.getvalue()]), file=events)
        events.flush()
        commands.read()
        return 0

    def _run(self, program: str, *words: str) -> int:
        if program == "sh":  # which of these programs are there?
            found = (self._bin / name for name in words[3:])
            sys.stdout.writelines(f"{one}\n" for one in found if one.exists())
            return 0
        if program == "env":
            program, *rest = words
            return fake_ceph.main(self._bin / program, rest)
        return fake_ceph.main(self._bin / program, list(words))


def ours(ceph: FakeCeph) -> list[str]:
    return [one for one in ceph.objects if one.startswith(NAMESPACE)]


def untouched(ceph: FakeCeph) -> bool:
    return [one for one in ceph.objects if not one.startswith("wb-")] == sorted(
        f"{'objects' if one.startswith('/') else ''}{one}" for one in THEIRS
    )
