"""For tests: a gateway that serves nothing, on hosts that are processes, with the fake driver."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.record import Record
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.opening import DriverSettings
from weighbridge.conductor.plan import Plan, make_plan
from weighbridge.conductor.step_runner import Display
from weighbridge.drivers.locust.kind import LocustModule
from weighbridge.drivers.protocol import Progress
from weighbridge.gateways.gateway import (
    Gateway,
    HostNeed,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
)
from weighbridge.results.run.resolved import LatencyBound, Sheet
from weighbridge.results.run.step import StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment, StateFolders, deploy
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, Planned


def fake_driver_settings(*arguments: str) -> DriverSettings:
    """Settings that replace Locust with the fake driver."""
    return {"locust": LocustModule(module=("tests.support.fake_driver", *arguments))}


class NoSettings(Record):
    """No settings and no placement."""


class StubRunning(RunningGateway):
    """Records in its gateway what was called."""

    def __init__(self, gateway: StubGateway, host: Host) -> None:
        self.endpoints = tuple(
            Endpoint(
                api=api, url=f"http://{host.address}:8080/{api}", user="u", key="planted-secret"
            )
            for api in gateway.apis()
        )
        self.facts = {"replicas": "3"}
        self.rendered = (Rendered(host=host.name, path="/etc/stub.conf", text="key = ***\n"),)
        self.gateway = gateway

    def settle(self) -> tuple[str, ...]:
        self.gateway.did.append("settle")
        return ("collected garbage",)

    def drop_caches(self) -> tuple[str, ...]:
        self.gateway.did.append("drop")
        return ("memcached flushed",)

    def check(self) -> None:
        self.gateway.checks += 1
        checks, first = self.gateway.checks, self.gateway.dies_from
        if checks == self.gateway.dies_at or 0 < first <= checks:
            tail = ["out of memory"]
            raise ServiceFailed("gateway-1", "stub", "has died", log="stub.out", tail=tail)


class StubGateway(Gateway):
    """Starts one idle process; `did` records the calls.

    The check number `dies_at` fails, and so do all from number `dies_from` on.
    """

    kind = "stub"
    releases: ClassVar = {"1": RootImage(name="none", suite="none", packages=())}
    Placement = NoSettings
    Settings = NoSettings

    def __init__(self, release: str = "1", place: Any = None, settings: Any = None) -> None:
        self.release = release
        self.did: list[str] = []
        self.checks = 0
        self.dies_at = 0
        self.dies_from = 0
        self.fails_to_start = False
        self.unknown_option = ""
        self.answers: tuple[Any, ...] = ("swift",)

    def needs(self) -> Mapping[str, HostNeed]:
        return {"gateway-1": HostNeed(roles=("stub",))}

    def apis(self) -> tuple[Any, ...]:
        return self.answers

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        return tuple(
            Rendered(host=site.name, path="/etc/stub.conf", text=f"address = {site.address}\n")
            for site in sites.values()
        )

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        self.did.append("preflight")
        if self.unknown_option:
            raise UsageError(f"no option {self.unknown_option!r}")

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        host = hosts["gateway-1"]
        host.start([Service("stub", ("sleep", "600"))])
        self.did.append("up")
        if self.fails_to_start:
            raise ServiceFailed(
                "gateway-1", "stub", "did not come up", log="stub.out", tail=["bind: in use"]
            )
        return StubRunning(self, host)


def _workload(
    name: str, size: str, workers: list[int], operations: dict[str, int]
) -> dict[str, object]:
    objects = {"size": size}
    about = {"name": name, "objects": objects, "operations": operations, "workers": workers}
    return {**about, "runtime": "5s"}


SUITE: dict[str, Any] = {
    "name": "trial",
    "about": "A trial",
    "workloads": [
        _workload("small", "4KiB", [1, 4], {"read": 1}),
        _workload("mixed", "1MB", [2], {"read": 1, "write": 1}),
    ],
}


class Silent:
    """A display that shows nothing."""

    def say(self, text: str) -> None: ...

    def begins(self, key: StepKey, number: int) -> None: ...

    def progress(self, progress: Progress) -> None: ...

    def ended(self, result: StepResult) -> None: ...


class Seen:
    """A display that remembers its calls: texts in `said`, results in `results`."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.results: list[StepResult] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def begins(self, key: StepKey, number: int) -> None:
        self.said.append(f"begins {number}")

    def progress(self, progress: Progress) -> None:
        self.said.append(progress.phase)

    def ended(self, result: StepResult) -> None:
        self.said.append("ended")
        self.results.append(result)


class Run:
    """All that a conductor needs, in its own folder."""

    def __init__(self, folder: Path, *, find: LatencyBound | None = None, **suite: Any) -> None:
        self.suite = Suite.model_validate({**SUITE, **suite})
        self.find = find
        self.hardware = Hardware.model_validate(
            {"name": "pretended", "kind": "fake", "hosts": {"client-1": {}, "gateway-1": {}}}
        )
        self.gateways = {name: StubGateway() for name in ("rgw-a", "swift-b")}
        self.planned = [
            Planned(
                Layout(name=name, about=name, gateway="stub", release="1", place={}), gateway, ""
            )
            for name, gateway in self.gateways.items()
        ]
        self.place = StateFolders(home=folder / "home", state=folder / "state")
        self.folder = folder

    def plan(self) -> Plan:
        return make_plan(self.suite, self.hardware, self.planned, find=self.find)

    def deployed(self, gateway: Gateway | None = None, **named: Any) -> Deployment:
        """A deployment of the first layout, with another gateway if there is one."""
        first = self.planned[0]
        planned = Planned(first.layout, gateway or first.gateway, first.text)
        return deploy(planned, self.hardware, self.place, lambda _: None, **named)

    def store(self) -> RunStore:
        sheets = [Sheet(title="machine", facts={"cpus": "2"})]
        return RunStore.create(
            self.folder / "runs",
            plan_yaml="name: trial\n",
            plan=self.plan(),
            suite="trial",
            command=("weighbridge", "\udcff"),  # an argument that is not UTF-8
            sheets=sheets,
        )

    def conduct(self, *driver: str, display: Display | None = None, **named: Any) -> RunStore:
        """The folder of the complete run, by the fake driver with these arguments."""
        store = self.store()
        self.into(store, *driver, display=display, **named)
        return store

    def into(
        self, store: RunStore, *driver: str, display: Display | None = None, **named: Any
    ) -> None:
        settings = fake_driver_settings(*driver)
        plan, shown = named.pop("plan", None) or self.plan(), display or Silent()
        Conductor(plan, self.planned, store, shown, self.place, settings=settings, **named).run()
