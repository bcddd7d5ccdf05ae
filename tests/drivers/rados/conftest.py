"""A host whose Ceph tools are shell scripts that print recorded output of the real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fake_ceph import FakeCeph
from tests.drivers.rados.given_pools import NAMESPACE, POOL, THEIRS, AskedMachine, Machine, Seen
from weighbridge.common.host import Completed
from weighbridge.drivers.rados import GivenPool, look
from weighbridge.drivers.rados.cluster import RadosCluster
from weighbridge.suites import Workload

DATA = Path(__file__).parents[2] / "data"


def one_kind(operation: str = "read", **changed: Any) -> Workload:
    """A workload of one operation, as the tools below gateways have them."""
    usual = {
        "name": "some",
        "objects": {"size": 65536, "per_container": 20},
        "operations": {operation: 1},
        "workers": [8],
        "runtime": "3s",
        "warmup": "0s",
    }
    return Workload.model_validate({**usual, **changed})


def file_system(name: str, state: str = "up:active") -> dict[str, object]:
    """What `ceph fs dump` prints of a cluster with this one."""
    info = {"gid_1": {"state": state}}
    return {"filesystems": [{"mdsmap": {"fs_name": name, "info": info}}]}


class StubMachine:
    """Pools are those created with `ceph`; every other program is a script in `bin`, which
    logs its arguments in `calls`.
    """

    name = "gateway-1"
    address = "127.0.0.1"
    python = "python3"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.pools: dict[str, int] = {}
        self.asked: list[str] = []
        self.unclean = 0
        """How many more times the cluster reports that it is not clean."""
        self.size = 3
        self.answers: dict[str, object] = {}
        self.printed: dict[str, str] = {}
        """What programs print that are waited for, by their names."""
        self.daemons: list[subprocess.Popen[bytes]] = []
        self.broken: tuple[str, ...] = ()
        """Daemons that end at once."""

    def script(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.folder}/calls\n{text}\n')
        path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None:
        assert isinstance(content, str)
        (self.folder / Path(path).name).write_text(content)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        self.asked.append(" ".join(argv))
        printed = self.printed.get(argv[0], "")
        return Completed(self._ceph(list(argv[1:])) if argv[0] == "ceph" else printed, "")

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        if argv[0] == "sh":  # a daemon, which runs until it is ended
            self.asked.append("start " + " ".join(argv[4:]))
            how = "exit 1" if argv[4] in self.broken else "exec sleep 600"
            self.daemons.append(
                subprocess.Popen(["sh", "-c", how], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            )
            return self.daemons[-1]
        here = [sys.executable, "-S", *argv[1:]]
        variables = {**os.environ, **(env or {}), "PATH": f"{self.bin}:{os.environ['PATH']}"}
        with stderr.open("ab") as file:
            return subprocess.Popen(
                here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, env=variables
            )

    def tool(self, name: str) -> tuple[str, ...]:
        return (name,)

    def _ceph(self, words: list[str]) -> str:
        match words:
            case ["--version"]:
                return "ceph version 16.2.15 (6184) pacific (stable)\n"
            case ["osd", "pool", "create", name, groups, _]:
                self.pools[name] = int(groups)
            case ["osd", "pool", "rm", name, again, "--yes-i-really-really-mean-it"] if (
                name == again
            ):
                del self.pools[name]
            case ["osd", "pool", "ls", "detail", *_]:
                found = [
                    {"pool_name": name, "size": self.size, "pg_num": groups}
                    for name, groups in self.pools.items()
                ]
                return "\n" + json.dumps(found)
            case ["status", *_]:
                total = sum(self.pools.values())
                self.unclean -= 1
                state = "active+clean" if self.unclean < 0 else "creating+peering"
                groups = [{"state_name": state, "count": total}]
                status = {"pgmap": {"num_pgs": total, "pgs_by_state": groups}}
                return "\n" + json.dumps(status)
            case _:
                key = " ".join(words)
                for asked, answer in self.answers.items():
                    if key.startswith(asked):
                        return json.dumps(answer)
        return ""


@pytest.fixture
def machine(tmp_path: Path) -> StubMachine:
    return StubMachine(tmp_path)


@pytest.fixture
def cluster(machine: StubMachine) -> RadosCluster:
    return RadosCluster(machine, replicas=3)


@pytest.fixture
def ceph(tmp_path: Path) -> FakeCeph:
    made = FakeCeph(tmp_path / "ceph")
    made.put("theirs", "precious")
    (made.folder / "objects" / THEIRS[1][1:]).write_text("")
    return made


@pytest.fixture
def given(ceph: FakeCeph, tmp_path: Path) -> GivenPool:
    return GivenPool(Machine(ceph), POOL, namespace=NAMESPACE, log=tmp_path / "log")


@pytest.fixture
def seen(ceph: FakeCeph, tmp_path: Path) -> Seen:
    return lambda pool=POOL: look(AskedMachine(ceph), pool, log=tmp_path / "log")
