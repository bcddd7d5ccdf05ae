"""A store of another package: one server with objects in memory, optionally behind a front."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import toy_wheel
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_store import release_of
from weighbridge.gateways.front import (
    Backend,
    Behind,
    FrontedPlacement,
    FrontedSettings,
    front_of,
    refuse_shared_ports,
    refuse_unfit,
    with_fronts,
)
from weighbridge.gateways.gateway import (
    Gateway,
    HostNeed,
    PypiProgram,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
)
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.running import (
    HostFile,
    RunningStore,
    StorePlan,
    front_daemons,
    put_files,
)
from weighbridge.gateways.verify import OperationCheck


@with_fronts("toy")
class ToyPlacement(FrontedPlacement):
    """The host of the server."""

    server: str


@with_fronts("toy")
class ToySettings(FrontedSettings):
    """Settings of the toy store."""

    port: int = 8080
    """The server's port."""


class RunningToy(RunningStore["Toy"]):
    """The verified server, with its front if it has one."""

    def __init__(self, toy: Toy, hosts: Mapping[str, Host], client: Host, say: Say) -> None:
        self._key = secrets.token_hex(16)
        super().__init__(toy, hosts, client)
        port = toy.settings.port if toy.front is None else toy.front.port
        url = f"http://{hosts[toy.entrance].address}:{port}/auth/v1.0"
        self.endpoints = (Endpoint(api="swift", url=url, user="toy", key=SecretStr(self._key)),)
        self.start(self.plan.daemons, say)
        self.describe(self.verify())

    def planned(self, gateway: Toy) -> StorePlan[Toy]:
        host, port = self.hosts[gateway.place.server], gateway.settings.port
        local = (sys.executable, str(Path(__file__).with_name("toy_server.py")))
        program = ("toy-server",) if gateway.image.programs else local
        server = Service("toy", (*program, host.address, str(port)), {"TOY_KEY": self._key})
        files, at = gateway.files(self.hosts), self.hosts[gateway.entrance]
        put_files(files, self.hosts)
        fronts = front_daemons(gateway.front, at, {file.path: file.text for file in files})
        return StorePlan(gateway, [[Daemon(host, server, port)]], files, gateway.front, fronts)

    def describe(self, checks: Sequence[OperationCheck]) -> None:
        front, at = self.plan.front, self.hosts[self.plan.gateway.entrance]
        self.facts = {
            "gateway": "toy store: objects are kept in memory",
            **({} if front is None else front.facts(at)),
            "verified": f"{len(checks)} operations over swift",
        }

    def settle(self) -> tuple[str, ...]:
        return ("the toy store defers nothing",)

    def drop_caches(self) -> tuple[str, ...]:
        return ("the toy store has no cache",)

    def probes(self) -> tuple[Probe, ...]:
        front, at = self.plan.front, self.hosts[self.plan.gateway.entrance]
        return () if front is None else front.probes(at)


class Toy(Gateway):
    kind = "toy"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "toy-1": RootImage(name="none", suite="none", packages=()),
        **release_of(
            "toy-2",
            PypiProgram(
                name="toy-server",
                package="toy-server-bin",
                version="1.0",
                sha256=toy_wheel.sha256(),
            ),
        ),
    }
    Placement: ClassVar[type[Record]] = ToyPlacement
    Settings: ClassVar[type[Record]] = ToySettings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(place, ToyPlacement)
        assert isinstance(settings, ToySettings)
        self.release, self.place, self.settings = release, place, settings
        self.entrance = place.front or place.server
        self.front = front_of(place, settings, Behind(health_path="/auth/v1.0"))
        refuse_unfit(place, settings, 1, "toy servers")
        refuse_shared_ports(place, self.front, [(place.server, settings.port, "the toy server")])

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift",)

    def cannot_restart(self) -> str:
        return ""

    def needs(self) -> Mapping[str, HostNeed]:
        return {name: HostNeed(roles=("toy",)) for name in (self.place.server, self.entrance)}

    def structure(self, disks: Mapping[str, int]) -> Structure:
        server = (self.place.server,)
        return Structure(
            entrances=(self.entrance,),
            gateways=server,
            stores=server,
            front=None if self.front is None else self.front.label,
            disks={},
            replicas=1,
            answers="memory",
            copied_by="store",
        )

    def files(self, sites: Mapping[str, Site]) -> tuple[HostFile, ...]:
        if self.front is None:
            return ()
        server = sites[self.place.server]
        backends = [Backend("toy", server.address, self.settings.port)]
        texts = self.front.files(sites[self.entrance].address, backends)
        return tuple(HostFile(self.entrance, path, text) for path, text in texts.items())

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return tuple(file.rendered for file in self.files(sites))

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        put_files(self.files(hosts), hosts)
        if self.front is not None:
            self.front.check(hosts[self.entrance])

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        return RunningToy(self, hosts, client, say)
