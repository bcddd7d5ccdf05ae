"""For tests: a gateway whose settings decide its made-up speed, on hosts that are processes."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import yaml
from pydantic import SecretStr
from rich.console import Console

from fake_driver import VALUES, Answering, measurement_of, tally
from weighbridge.common.document import Document
from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.errors import DriverError, ServiceFailed, UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    Measured,
    OnProgress,
    Prepare,
    Prepared,
    Progress,
    Setup,
    Step,
)
from weighbridge.gateways.gateway import (
    Gateway,
    HostNeed,
    Rendered,
    RootImage,
    RunningGateway,
    Say,
    Site,
)
from weighbridge.results.run.step import Measurement, Pass
from weighbridge.run import Doing
from weighbridge.suites import Suite
from weighbridge.suites.tuning import Tuning
from weighbridge.topologies.deployment import Deployment, StateFolders
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Layout, Planned
from weighbridge.tuning import preparation, session
from weighbridge.tuning.preparation import PreparedTuning
from weighbridge.tuning.session import TuningOutcome

SCOPES: Mapping[str, Scope] = {"live": "nothing", "shards": "buckets", "pools": "cluster"}


class Settings(Record):
    """Settings that change its speed, change nothing, or break it."""

    speed: float = 1.0
    threads: int = 8
    """At 16 it is a quarter faster."""
    dummy: int = 0
    live: int = 0
    shards: int = 1
    pools: int = 1
    starts: bool = True
    answers: bool = True
    known: bool = True
    """Whether its programs accept the configuration."""


class NoPlacement(Record):
    """It always runs on the same host."""


class TunableGateway(RunningGateway):
    """The running gateway, whose settings can be changed."""

    def __init__(self, gateway: Tunable, host: Host) -> None:
        self.gateway = gateway
        self.host = host
        self.endpoints = (
            Endpoint(
                api="s3", url=f"http://{host.address}", user="u", key=SecretStr("planted-secret")
            ),
        )
        self._describe()

    def _describe(self) -> None:
        self.facts = {"speed": f"{self.gateway.settings.speed:g}"}
        self.rendered = self.gateway.render({self.host.name: self.host})

    def settle(self) -> tuple[str, ...]:
        return ()

    def drop_caches(self) -> tuple[str, ...]:
        return ()

    def check(self) -> None:
        if not self.gateway.settings.answers:
            raise ServiceFailed(
                self.host.name, "tunable", "has died", log="tunable.out", tail=["as asked"]
            )

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        """Running daemons accept only `live`, and not below 0."""
        assert isinstance(gateway, Tunable)
        if scope == "nothing" and gateway.settings.live < 0:
            raise UsageError(f"a running daemon does not accept live {gateway.settings.live}")

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        assert isinstance(gateway, Tunable)
        if scope == "cluster":
            raise UsageError("a running cluster cannot be changed")
        self.gateway = gateway
        gateway.refuse(self.host)
        self._describe()
        return (f"{scope} of tunable on {self.host.name}",)


class Tunable(Gateway):
    """Starts nothing."""

    kind = "tunable"
    releases: ClassVar[Mapping[str, RootImage]] = {
        "1": RootImage(name="none", suite="none", packages=())
    }
    Placement = NoPlacement
    Settings = Settings

    def __init__(self, release: str, place: Record, settings: Record) -> None:
        assert isinstance(settings, Settings)
        self.release = release
        self.settings = settings

    @classmethod
    def scope(cls, key: str) -> Scope:
        return SCOPES.get(key, "restart")

    def needs(self) -> Mapping[str, HostNeed]:
        return {"gateway-1": HostNeed(roles=("tunable",))}

    def apis(self) -> tuple[ObjectApi, ...]:
        return ("s3",)

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        text = "[client]\n" + "".join(
            f"{key} = {value}\n" for key, value in self.settings.model_dump().items()
        )
        text += f"listen = {sites['gateway-1'].address}:80 x{self.settings.speed:g}\n"
        return (Rendered(host="gateway-1", path="/etc/ceph/ceph.conf", text=text),)

    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        if not self.settings.known:
            raise UsageError("no option 'known'")

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        self.refuse(hosts["gateway-1"])
        return TunableGateway(self, hosts["gateway-1"])

    def refuse(self, host: Host) -> None:
        if not self.settings.starts:
            raise ServiceFailed(
                host.name, "tunable", "did not come up", log="tunable.out", tail=["as asked"]
            )


class StubDriver(Answering):
    """A driver in this process: the current settings decide what it measures."""

    def __init__(self, deployment: Deployment, suite: Suite) -> None:
        target = Endpoint(api="s3", url="http://here", user="u", key=SecretStr("k"))
        super().__init__(Setup(target=target, bucket_prefix="wb-test", seed=suite.seed))
        self.deployment = deployment
        self.suite = suite
        self.held: set[str] = set()

    def _answer(self, order: Any, heard: OnProgress | None) -> Any:
        running = self.deployment.running_gateway
        assert isinstance(running, TunableGateway)
        if isinstance(order, Step):
            if not running.gateway.settings.answers:
                raise DriverError("the gateway answers nothing")
            if heard is not None:
                heard(
                    Progress(
                        phase="measure", done=order.workload.runtime, total=order.workload.runtime
                    )
                )
            return Measured(
                measurement=measurement(
                    running.gateway.settings, self.deployment.layout.name, self.suite.seed, order
                )
            )
        return super()._answer(order, heard)

    def prepare(self, order: Prepare, heard: OnProgress | None = None) -> Prepared:
        self.held.add(order.workload.name)
        return super().prepare(order, heard)

    def step(self, order: Step, heard: OnProgress | None = None) -> Measured:
        """Measure one; its workload must have been prepared."""
        if order.workload.name not in self.held:
            raise DriverError(f"{order.workload.name} was not prepared")
        return super().step(order, heard)

    def cleanup(self, order: Cleanup, heard: OnProgress | None = None) -> Cleaned:
        if order.what == "all":
            self.held.discard(order.workload.name)
        return super().cleanup(order, heard)


def measurement(settings: Settings, layout: str, seed: int, step: Step) -> Measurement:
    """A closed loop's measurement: 2 ms a read by default; repeats scatter by about 2 %."""
    dice = random.Random(f"{seed} {layout} {step.workload.name} {step.workers} {step.repeat}")
    quick = settings.speed * (1.25 if settings.threads >= 16 else 1.0)
    base_us = 2000 / quick * dice.lognormvariate(0, 0.02)
    values_us = [max(1, round(base_us * dice.lognormvariate(0, 0.1))) for _ in range(VALUES)]
    [operation] = step.workload.operations
    count = round(step.workers * step.workload.runtime * 1e6 * VALUES / sum(values_us))
    both = tally(operation, count, values_us, step.workload)
    return measurement_of(step, [both], api="s3", driver="locust-engine")


@contextmanager
def opened(
    deployment: Deployment, suite: Suite, _one: Pass, **_named: object
) -> Iterator[OpenedDriver]:
    """Replaces `weighbridge.conductor.opening.opened`."""
    yield OpenedDriver(StubDriver(deployment, suite), {})


HARDWARE = Hardware.model_validate(
    {"name": "pretended", "kind": "fake", "hosts": {"client-1": {}, "gateway-1": {}}}
)

TUNING: dict[str, Any] = {
    "name": "trial",
    "about": "A trial",
    "layout": "tunable",
    "workloads": [
        {
            "name": "small",
            "objects": {"size": "4KiB"},
            "operations": {"read": 1},
            "workers": [4],
            "runtime": "5s",
        },
    ],
    "objectives": [{"workload": "small"}],
    "parameters": [{"key": "speed", "values": [2.0]}, {"key": "dummy", "values": [1]}],
    "trials": {"least": 5, "most": 6, "baseline_every": 3},
    "confirm": 0,
}


class TuningFixture:
    """All that a tuning needs, in its own folder; `changes` replace keys of `TUNING`."""

    def __init__(
        self, folder: Path, settings: Mapping[str, object] | None = None, **changes: Any
    ) -> None:
        self.folder = folder
        self.place = StateFolders(home=folder / "home", state=folder / "state")
        self.out = folder / "runs"
        self.text = yaml.safe_dump({**TUNING, **changes}, sort_keys=False)
        self.document = Document("trial.yaml", self.text)
        layout = Layout(
            name="tunable",
            about="",
            gateway="tunable",
            release="1",
            place={},
            settings=dict(settings or {}),
        )
        self.baseline = Planned(
            layout, Tunable("1", NoPlacement(), Settings.model_validate(layout.settings)), ""
        )
        self.screen = io.StringIO()

    def ready(self) -> PreparedTuning:
        return preparation.checked(
            self.document, self.document.into(Tuning), HARDWARE, self.baseline
        )

    def doing(self) -> Doing:
        """Its surroundings: state, terminal and no pictures."""
        return Doing(self.place, Console(file=self.screen, width=200), pictures=False)

    def tune(self) -> TuningOutcome:
        return session.tune(self.ready(), self.doing(), out=self.out, attest=False)

    def run_folder(self) -> Path:
        [found] = self.out.iterdir()
        return found
