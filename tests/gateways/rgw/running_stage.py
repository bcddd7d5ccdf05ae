"""RGW running on stub hosts, to change its settings."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.gateways.rgw import planned_rgw
from tests.gateways.stage import Stage
from tests.gateways.stub_host import StubHost
from weighbridge.common.host import Service
from weighbridge.common.structure import Scope
from weighbridge.gateways.rgw.monitor import effective
from weighbridge.gateways.rgw.rgw import Rgw

CONF = "/etc/ceph/ceph.conf"
STATUS = {
    "ServerVersion": "Apache/2.4.71 (Debian)",
    "ServerMPM": "worker",
    "BusyWorkers": "1",
    "IdleWorkers": "9",
}
DEFAULTS = {
    "objecter_inflight_ops": "24576",
    "objecter_timeout": "10",
    "rgw_max_concurrent_requests": "1024",
}
FIXED = {"rgw_frontends"}
OBSERVED = {"rgw_max_concurrent_requests", "objecter_timeout"}
"""Options that these radosgw observe at runtime."""


class Radosgw:
    """A radosgw behind its admin socket: its file at start, and the options set since."""

    def __init__(self, name: str, conf: str) -> None:
        self.file = effective(conf, name)
        self.given: dict[str, str] = {}
        self.deaf = False

    def answer(self, command: Mapping[str, Any]) -> str:
        what, name = command["prefix"], command.get("var", "")
        if what == "config set":
            if name in FIXED:
                return "ERROR: (1) Operation not permitted"
            if not self.deaf:
                self.given[name] = command["val"][0]
            return json.dumps(
                {
                    "success": ""
                    if name in OBSERVED
                    else f"{name} = '' (not observed, change may require restart) "
                }
            )
        if what == "config help":
            return json.dumps({"option": {"can_update_at_runtime": name not in FIXED, "flags": []}})
        if what == "config diff":
            levels = {name: {"file": value} for name, value in self.file.items()}
            for name in levels.keys() & DEFAULTS.keys():
                levels[name]["default"] = DEFAULTS[name]
            return json.dumps({"diff": levels})
        return json.dumps({name: {**DEFAULTS, **self.file, **self.given}.get(name, "1")})


class Gateway(StubHost):
    """A host whose radosgw read their file when they start."""

    daemons: dict[str, Radosgw]
    fatal = ""
    """A line of the file that kills radosgw."""

    def start(self, services: Sequence[Service]) -> None:
        super().start(services)
        self.dead -= {service.name for service in services}
        for service in services:
            if service.argv[0] == "radosgw":
                conf = str(self.files[CONF])
                self.daemons[service.argv[-1]] = Radosgw(service.argv[-1], conf)
                if self.fatal and self.fatal in conf:
                    self.dead.add(service.name)


class RunningStage(Stage):
    """Stub hosts with a running gateway, and what was asked of them."""

    stub = Gateway

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder)
        self.new_processes = 0
        self.generations = list(range(9))
        for host in self.hosts.values():
            host.daemons = {}
        self.running = rgw(**settings).bring_up(self.hosts, self.hosts["client-1"], print)
        self.events.clear()

    @property
    def gateway(self) -> Gateway:
        return self.hosts["gateway-1"]

    @property
    def radosgw(self) -> Radosgw:
        return next(iter(self.gateway.daemons.values()))

    def answer_on(self, host: str, argv: Sequence[str], stdin: str) -> str:
        line = " ".join(argv)
        if "apache_host" in line and argv[-1] == "once":
            return json.dumps({**STATUS, "ParentServerMPMGeneration": self.generation()})
        if "apache_host" in line:
            return json.dumps({"ended": 20, "new": self.new_processes})
        if "ask_daemon" in line:
            return json.dumps([self.ask(host, path, what) for path, what in json.loads(stdin)])
        if "ceph-conf" in line:
            # The release's parser: these tests write values in its format.
            words = [word for word in shlex.split(argv[-1]) if word.startswith("--")]
            values = [word.partition("=")[2] for word in words if "=" in word]
            wrong = "parse error setting 'objecter_timeout' to 'none'"
            return "".join(f"{wrong if value == 'none' else value}\n\x1e0\x1f" for value in values)
        return super().answer_on(host, argv, stdin)

    def generation(self) -> int:
        return self.generations.pop(0) if len(self.generations) > 1 else self.generations[0]

    def ask(self, host: str, path: str, command: Mapping[str, Any]) -> str:
        daemon = self.hosts[host].daemons.get(Path(path).stem)
        return (
            daemon.answer(command)
            if daemon is not None
            else json.dumps({command.get("var", ""): "1"})
        )

    def change(self, scope: Scope, **settings: Any) -> tuple[str, ...]:
        self.events.clear()
        return self.running.change(rgw(**settings), scope, print)

    def starts(self) -> list[str]:
        return [f"{what}" for _, what in self.events if re.match("(start|stop) ", what)]


def rgw(front: str | None = None, release: str = "ceph-16", **settings: Any) -> Rgw:
    return planned_rgw.rgw(settings, release, **({front: "gateway-1"} if front else {}))
