"""Hosts whose tools answer as recorded, and which note what runs and which limits are on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from weighbridge.common.errors import CommandFailed
from weighbridge.common.host import Completed, Counters, Host, Service
from weighbridge.gateways.gateway import HostNeed
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.hosts import LIMITED, Hosts, Limited

DATA = Path(__file__).resolve().parents[1] / "data"
ANSWERS = {
    "sysbench": (DATA / "sysbench-1.0.20.txt").read_text(),
    "fio": (DATA / "fio-3.33.json").read_text(),
    "iperf3": (DATA / "iperf3-3.12.json").read_text(),
}
HARDWARE = Hardware.model_validate(
    {
        "name": "recorded",
        "kind": "lab",
        "hosts": {
            "client-1": {"cpus": 0.5, "nic": "1Gbit"},
            "gateway-1": {"cpus": 1.5, "nic": "2Gbit"},
            "store-1": {
                "disks": [{"size": "1GiB", "bandwidth": "100MB"}, {"size": "300MiB", "iops": 500}]
            },
        },
    }
)
NEEDS = {
    "gateway-1": HostNeed(roles=("radosgw",)),
    "store-1": HostNeed(roles=("osd",), disks=2, tier="storage"),
}
SERVER = "print('Server listening on 5201', flush=True); input()"


class Recorded(Host):
    """Gives the tools' recorded answers; `asked` has all commands with the limits that were on."""

    def __init__(self, name: str, hosts: RecordedHosts, folder: Path) -> None:
        self.name = name
        self.address = name
        self.disks = tuple(f"/dev/wb{index}" for index, _ in enumerate(HARDWARE.hosts[name].disks))
        self._hosts = hosts
        self._folder = folder

    def tool(self, name: str) -> tuple[str, ...]:
        return (name,)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Completed:
        self._hosts.asked.append((self.name, " ".join(argv), frozenset(self._hosts.limited)))
        if self._hosts.breaks in argv:
            raise CommandFailed(self.name, argv, 1, "it broke")
        if argv[-1] == "--version":
            return Completed(f"{argv[0]} 1.0 (of today)\n", "")
        tool = argv[3] if argv[0] == "sh" else argv[0]
        if tool == "fio" and "--name=fill" not in argv and self._hosts.slow_jobs:
            return Completed(self._hosts.slow_jobs.pop(), "")
        return Completed(self._hosts.answers.get(tool, ""), "")

    def spawn(
        self, argv: Sequence[str], *, stderr: Path, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            [sys.executable, "-c", self._hosts.server],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._hosts.servers.append(server)
        return server

    def log(self, name: str) -> Path:
        return self._folder / name

    def put(
        self, path: str, content: str | bytes, *, mode: int = 0o644, owner: str = "root"
    ) -> None: ...

    def start(self, services: Sequence[Service]) -> None: ...

    def stop(self, service: str, *, timeout_s: float = 10) -> None: ...

    def alive(self, service: str) -> bool:
        return False

    def counters(self) -> Counters:
        return Counters()

    def drop_kernel_caches(self) -> str:
        return ""


class RecordedHosts(Hosts):
    def __init__(self, folder: Path) -> None:
        self.deployment = "recorded"
        self.limited: set[Limited] = set()
        self.asked: list[tuple[str, str, frozenset[Limited]]] = []
        self.servers: list[subprocess.Popen[bytes]] = []
        self.answers = dict(ANSWERS)
        self.slow_jobs: list[str] = []
        """What fio answers before its answer."""
        self.breaks = ""
        self.server = SERVER
        self.hosts: Mapping[str, Host] = {
            name: Recorded(name, self, folder) for name in HARDWARE.hosts
        }

    def limit(self, what: Collection[Limited] = LIMITED) -> None:
        self.limited |= set(what)

    def unlimit(self, what: Collection[Limited] = LIMITED) -> None:
        self.limited -= set(what)

    def facts(self) -> Mapping[str, str]:
        return {}

    def close(self) -> None: ...

    def limits_during(self, word: str) -> list[frozenset[Limited]]:
        return [limited for _, command, limited in self.asked if word in command]
