"""A store of another package: one server with objects in memory, optionally behind a front."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import ClassVar

import toy_wheel
from pydantic import SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
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
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.probe import Probe
from weighbridge.gateways.verify import verify


@with_fronts("toy")
class ToyPlacement(FrontedPlacement):
    """The host of the server."""

    server: str


@with_fronts("toy")
class ToySettings(FrontedSettings):
    """Settings of the toy store."""

    port: int = 8080
    """The server's port."""


class RunningToy(RunningGateway):
    """The verified server, with its front if it has one."""

    def __init__(
        self,
        daemons: list[Daemon],
        endpoint: Endpoint,
        facts: Mapping[str, str],
        probes: tuple[Probe, ...],
        client: Host,
    ) -> None:
        self._client = client
        self._daemons = daemons
        self._probes = probes
        self.endpoints = (endpoint,)
        self.facts = facts
        self.rendered = ()

    def settle(self) -> tuple[str, ...]:
        return ("the toy store defers nothing",)

    def drop_caches(self) -> tuple[str, ...]:
        return ("the toy store has no cache",)

    def check(self) -> None:
        daemon.check(self._daemons)

    def start_again(self, names: Collection[str], say: Say) -> None:
        daemons = [one for one in self._daemons if one.host.name in names]
        daemon.start(daemons)
        await_ports(self._client, daemons, say)

    def probes(self) -> tuple[Probe, ...]:
        return self._probes


class Toy(Gateway):
    kind = "toy"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "toy-1": RootImage(name="none", suite="none", packages=()),
        "toy-2": RootImage(
            name="toy-2",
            suite="bookworm",
            packages=("python3",),
            programs=(
                PypiProgram(
                    name="toy-server",
                    package="toy-server-bin",
                    version="1.0",
                    sha256=toy_wheel.sha256(),
                ),
            ),
        ),
    }
    Placement: ClassVar[type[Record]] = ToyPlacement
    Settings: ClassVar[type[Record]] = ToySettings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(place, ToyPlacement)
        assert isinstance(settings, ToySettings)
        self.release, self.place, self.settings = release, place, settings
        self.front = front_of(place, settings, Behind(health_path="/auth/v1.0"))
        refuse_unfit(place, settings, 1, "toy servers")
        refuse_shared_ports(place, self.front, [(place.server, settings.port, "the toy server")])

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("swift",)

    def cannot_restart(self) -> str:
        return ""

    def needs(self) -> Mapping[str, HostNeed]:
        return {
            name: HostNeed(roles=("toy",))
            for name in (self.place.server, self.place.front)
            if name is not None
        }

    def structure(self, disks: Mapping[str, int]) -> Structure:
        front = None if self.front is None else self.front.label
        server = (self.place.server,)
        return Structure(
            entrances=(self.place.front or self.place.server,),
            gateways=server,
            stores=server,
            front=front,
            disks={},
            replicas=1,
            answers="memory",
            copied_by="store",
        )

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        if self.front is None or self.place.front is None:
            return ()
        server = sites[self.place.server]
        texts = self.front.files(
            sites[self.place.front].address, [Backend("toy", server.address, self.settings.port)]
        )
        return tuple(
            Rendered(host=self.place.front, path=path, text=text) for path, text in texts.items()
        )

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        if self.front is not None and self.place.front is not None:
            self._write(hosts)
            self.front.check(hosts[self.place.front])

    def _write(self, hosts: Mapping[str, Host]) -> None:
        for one in self.render(hosts):
            hosts[one.host].put(one.path, one.text)

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        key, host, port = secrets.token_hex(16), hosts[self.place.server], self.settings.port
        local = (sys.executable, str(Path(__file__).with_name("toy_server.py")))
        program = ("toy-server",) if self.releases[self.release].programs else local
        server = Service("toy", (*program, host.address, str(port)), {"TOY_KEY": key})
        daemons, address = [Daemon(host, server, port)], host.address
        facts: dict[str, str] = {"gateway": "toy store: objects are kept in memory"}
        probes: tuple[Probe, ...] = ()
        daemon.start(daemons)
        await_ports(client, daemons, say)
        if self.front is not None and self.place.front is not None:
            self._write(hosts)
            at = hosts[self.place.front]
            fronts = self.front.daemons(at)
            daemon.start(fronts)
            await_ports(client, fronts, say)
            daemons, address, port = [*daemons, *fronts], at.address, self.front.port
            facts, probes = {**facts, **self.front.facts(at)}, self.front.probes(at)
        endpoint = Endpoint(
            api="swift", url=f"http://{address}:{port}/auth/v1.0", user="toy", key=SecretStr(key)
        )
        facts["verified"] = f"{len(verify(client, [endpoint]))} operations over swift"
        return RunningToy(daemons, endpoint, facts, probes, client)
