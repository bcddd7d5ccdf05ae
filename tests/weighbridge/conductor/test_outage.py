"""Faults in steps: what dies, what comes back, what is recorded, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stub_run import SUITE, Run, StubGateway, StubRunning
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.host import Host, Service
from weighbridge.common.structure import Part
from weighbridge.conductor.plan import control_of, make_plan
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import (
    Ask,
    HostNeed,
    RunningGateway,
    Say,
    Site,
    Standing,
    Tolerance,
)
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.outages import outages
from weighbridge.results.run.durability import read_outages
from weighbridge.suites import Suite
from weighbridge.topologies.disk_models import DISK_MODELS
from weighbridge.topologies.fake import FakeHost, FakeHosts, FakeKind
from weighbridge.topologies.hardware import Disk, Hardware

HOSTS = ("gateway-1", "store-1", "store-2")


def fault_workload(name: str, fault: Mapping[str, str]) -> dict[str, Any]:
    changes = {"name": name, "workers": [4], "runtime": "100s", "fault": fault}
    return {**SUITE["workloads"][0], **changes}


# The fake driver says at once that a quarter of the window is over, so that all of it is due.
KILL = fault_workload("host-dies", {"at": "10s", "kill": "storage-host", "back": "20s"})
SILENCE = fault_workload("host-silent", {"at": "10s", "silence": "storage-host", "back": "20s"})
UNPLUG = fault_workload("link-down", {"at": "10s", "unplug": "store-2", "back": "20s"})
NOT_BACK = fault_workload("not-back", {"at": "10s", "kill": "storage-daemon"})


class Breakable(StubRunning):
    """A store of two hosts that says how many of its daemons live."""

    def __init__(self, gateway: BreakableGateway, hosts: Mapping[str, Host]) -> None:
        super().__init__(gateway, hosts["gateway-1"])
        self.breakable = gateway
        self.hosts = hosts

    def daemons(self) -> tuple[Daemon, ...]:
        return tuple(Daemon(self.hosts[one.host], service(one)) for one in PARTS)

    def start_again(self, names: Collection[str], say: Say) -> None:
        if self.breakable.stays_dead:
            raise ServiceFailed("store-1", "osd", "does not come back", log="osd.out", tail=[])
        for one in PARTS:
            if one.host in names:
                self.hosts[one.host].start([service(one)])

    def mend_disk(self, host: str, disk: str) -> None:
        self.breakable.mended.append((host, disk))

    def check(self) -> None:
        for one in self.daemons():
            one.check()

    def tolerance(self) -> Tolerance:
        return Tolerance({"osd_heartbeat_grace": "20"}, self._asking)

    @contextmanager
    def _asking(self) -> Iterator[Ask]:
        yield self._standing

    def _standing(self) -> Standing:
        alive = sum(one.host.alive(one.service.name) for one in self.daemons())
        return Standing(alive == len(PARTS), f"{alive} of {len(PARTS)} alive")


PARTS = (
    Part("gateway-1", "stub", "gateway-daemon", "the only stub"),
    Part("store-1", "osd", "storage-daemon"),
    Part("store-1", "beside"),
    Part("store-2", "osd", "storage-daemon", disks=("/dev/wb0",)),
)


def service(part: Part) -> Service:
    return Service(part.service, ("sleep", "600"))


class BreakableGateway(StubGateway):
    stays_dead = False

    def __init__(self) -> None:
        super().__init__()
        self.mended: list[tuple[str, str]] = []

    def needs(self) -> Mapping[str, HostNeed]:
        return {name: HostNeed(roles=("stub",)) for name in HOSTS}

    def parts(self, sites: Mapping[str, Site]) -> tuple[Part, ...]:
        return PARTS

    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        for one in PARTS:
            hosts[one.host].start([service(one)])
        return Breakable(self, hosts)


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    monkeypatch.setattr("weighbridge.conductor.outage.LOOK_S", 0.01)

    def make(*workloads: Mapping[str, Any], **suite: Any) -> Run:
        run = Run(tmp_path, workloads=list(workloads), **suite)
        names = {"client-1": {}, **{name: {} for name in HOSTS}}
        named = {"name": "pretended", "kind": "fake", "hosts": names}
        run.hardware = Hardware.model_validate(named)
        run.gateways = {name: BreakableGateway() for name in run.gateways}
        run.planned = [
            type(one)(one.layout, gateway, "")
            for one, gateway in zip(run.planned, run.gateways.values(), strict=True)
        ]
        return run

    return make


def test_what_dies_is_back_for_the_next_step_and_all_of_it_is_recorded(
    broken: Callable[..., Run],
) -> None:
    store = broken(KILL, SILENCE, NOT_BACK, seed=1).conduct()
    steps = store.steps()
    assert [(step.valid, step.notes) for step in steps if not step.valid] == []
    outages = read_outages(store.folder)
    assert set(outages) == {step.key for step in steps}
    for key, outage in outages.items():
        assert outage.host in {"store-1", "store-2"}
        assert outage.way == ("silence" if key.workload == "host-silent" else "kill")
        assert outage.settings == {"osd_heartbeat_grace": "20"}
        if key.workload == "not-back":
            assert outage.services == ("osd",)
            assert outage.back is None
        else:
            assert outage.services == (("osd", "beside") if outage.host == "store-1" else ("osd",))
            assert outage.back is not None
            assert outage.fault.begun_s <= outage.fault.done_s <= outage.back.begun_s
        assert outage.seen[-1].words == "4 of 4 alive"
    both = {(key.workload, outage.host) for key, outage in outages.items()}
    assert len(both) == 3, "both layouts draw the same of as many"


def test_a_link_that_is_down_ends_no_daemon(
    broken: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    plugged: list[tuple[Collection[str], bool]] = []

    def plug(self: FakeHosts, names: Collection[str], *, on: bool) -> None:
        plugged.append((names, on))

    monkeypatch.setattr(FakeHosts, "plug", plug)
    store = broken(UNPLUG).conduct()
    assert plugged == [(["store-2"], False), (["store-2"], True)] * 2
    for outage in read_outages(store.folder).values():
        assert (outage.services, outage.words) == ((), "store-2 unplugged")
        assert {one.words for one in outage.seen} <= {"4 of 4 alive"}


def with_disk(run: Run, *, model: bool) -> Run:
    """With a disk on store-2, as only a lab's may have a model."""
    disk = Disk(size=2**30, model=DISK_MODELS["nvme"] if model else None)
    spec = run.hardware.hosts["store-2"].model_copy(update={"disks": (disk,)})
    hosts = {**run.hardware.hosts, "store-2": spec}
    run.hardware = run.hardware.model_copy(update={"hosts": hosts})
    return run


@pytest.mark.parametrize("what", ["storage-disk", "store-2/wb0"])
def test_a_disk_fails_and_what_keeps_data_on_it_runs_again_when_it_answers(
    broken: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    done: list[tuple[str, str, bool]] = []

    def fail_disk(self: FakeHosts, name: str, disk: str, *, on: bool) -> None:
        done.append((name, disk, on))

    monkeypatch.setattr(FakeHosts, "fail_disk", fail_disk)
    monkeypatch.setattr(FakeKind, "contained", True)  # so that their disks may have models
    fault = fault_workload("disk-fails", {"at": "10s", "fail": what, "back": "20s"})
    run = with_disk(broken(fault), model=True)
    store = run.conduct()
    assert done == [("store-2", "/dev/wb0", True), ("store-2", "/dev/wb0", False)] * 2
    for gateway in run.gateways.values():
        assert isinstance(gateway, BreakableGateway)
        assert gateway.mended == [("store-2", "/dev/wb0")]
    for outage in read_outages(store.folder).values():
        assert (outage.services, outage.words) == ((), "disk wb0 of store-2 failed")


@pytest.mark.parametrize(
    ("fault", "model", "why"),
    [
        ({"fail": "storage-disk"}, False, "store-2/wb0: has no model in hardware"),
        ({"fail": "store-2/osd"}, True, "store-2/osd is no disk on"),
        ({"kill": "store-2/wb0"}, True, "store-2/wb0 is a disk on"),
        ({"fail": "store-1/wb0"}, True, "store-1 has no 'wb0'"),
    ],
)
def test_what_is_no_disk_that_may_fail_is_refused(
    broken: Callable[..., Run], fault: Mapping[str, str], *, model: bool, why: str
) -> None:
    run = with_disk(broken(fault_workload("disk-fails", {"at": "10s", **fault})), model=model)
    with pytest.raises(UsageError, match=re.escape(why)):
        run.plan()


def test_steps_in_which_something_dies_are_in_no_table_but_their_own(
    broken: Callable[..., Run],
) -> None:
    plain = {**KILL, "name": "plain"}
    del plain["fault"]
    data = open_run(broken(plain, KILL).conduct().folder)
    assert {row.workload for row in data.rows} == {"plain"}
    assert {row.workload for row in data.every_row if row.fault is not None} == {"host-dies"}
    (kind,) = outages(data).kinds
    assert [row.layout for row in kind.rows] == ["rgw-a", "swift-b"]
    assert all(row.row.steady for row in kind.rows)
    assert kind.rows[0].row.value("throughput") is None
    assert (kind.rows[0].row.value("stall") or 0) > 0
    assert kind.rows[0].settings == {"osd_heartbeat_grace": "20"}


def test_a_daemon_that_does_not_come_back_ends_its_step_and_its_deployment(
    broken: Callable[..., Run],
) -> None:
    run = broken(SILENCE)
    for gateway in run.gateways.values():
        assert isinstance(gateway, BreakableGateway)
        gateway.stays_dead = True
    store = run.conduct()
    assert [step.measurement for step in store.steps()] == [None, None]
    assert all("died" in " ".join(step.notes) for step in store.steps())
    assert read_outages(store.folder) == {}


def test_a_step_that_fails_before_its_window_has_no_fault(
    broken: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[str] = []
    monkeypatch.setattr(FakeHost, "kill", lambda self, service: killed.append(service))
    store = broken(KILL).conduct("--fail", "step")
    assert killed == []
    assert read_outages(store.folder) == {}
    assert {step.notes for step in store.steps()} == {
        ("the driver failed at 'step': 'step' fails as asked",)
    }


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ({"at": "10s", "kill": "store-9"}, "it has no service on 'store-9'"),
        ({"at": "10s", "kill": "gateway-1/stub"}, "gateway-1/stub may not die: it is the only"),
        ({"at": "10s", "kill": "gateway-daemon"}, "gateway-1/stub may not die: it is the only"),
        ({"at": "10s", "silence": "gateway-1"}, "gateway-1 may not die: the only stub is there"),
    ],
)
def test_faults_that_no_layout_can_have_are_refused_before_anything_starts(
    broken: Callable[..., Run], fault: Mapping[str, str], why: str
) -> None:
    with pytest.raises(UsageError) as caught:
        broken(fault_workload("dies", fault)).plan()
    lines = caught.value.message.splitlines()
    way = "silence" if "silence" in fault else "kill"
    places = [line.split(": ")[:4] for line in lines]
    assert places == [["dies", "fault", way, layout] for layout in ("rgw-a", "swift-b")]
    assert why in lines[0]


def lone(broken: Callable[..., Run]) -> Run:
    """Two workloads, the second of which only the second layout can have."""
    run = broken(KILL, fault_workload("gateway-dies", {"at": "10s", "kill": "gateway-daemon"}))
    second = Part("gateway-1", "another", "gateway-daemon")
    first = [
        Part("gateway-1", "stub", "gateway-daemon") if one.service == "stub" else one
        for one in PARTS
    ]
    several: Sequence[Part] = (*first, second)
    run.planned[1].gateway.parts = lambda sites: tuple(several)  # type: ignore[method-assign]
    return run


def test_a_control_that_has_none_of_the_workloads_that_the_suite_names_is_left_out_and_said(
    broken: Callable[..., Run],
) -> None:
    run = lone(broken)
    for one in run.planned:
        one.gateway.apis = lambda: ("swift", "s3")  # type: ignore[method-assign]
    asked = {"api": ["swift", "s3"], "control": ["gateway-dies"]}
    suite = Suite.model_validate({**run.suite.model_dump(), **asked})
    again = control_of(run.planned[0])
    name = again.layout.name
    plan = make_plan(suite, run.hardware, [*run.planned, again], controls={name: "rgw-a"})
    assert [way.api for way in plan.passes["rgw-a"]] == ["swift", "s3"]
    assert (plan.twins, [one.name for one in plan.layouts]) == ({}, ["rgw-a", "swift-b"])
    assert {visit.layout for visit in plan.visits} == {"rgw-a", "swift-b"} == {*plan.passes}
    assert plan.left_out["rgw-a"][-1] == "A/A control: no workload that it names runs here"


def test_a_role_that_a_layout_cannot_miss_is_left_out_there_and_said(
    broken: Callable[..., Run],
) -> None:
    run = lone(broken)
    plan = run.plan()
    names = {
        layout: [one.name for way in ways for one in way.workloads]
        for layout, ways in plan.passes.items()
    }
    assert names == {"rgw-a": ["host-dies"], "swift-b": ["host-dies", "gateway-dies"]}
    assert plan.left_out["rgw-a"] == (
        "gateway-dies: gateway-1/stub may not die: it is the only stub",
    )
    only = Suite.model_validate({**run.suite.model_dump(), "workloads": [run.suite.workloads[1]]})
    with pytest.raises(UsageError, match="rgw-a: no workload is left"):
        make_plan(only, run.hardware, run.planned)


def test_hosts_whose_power_is_not_ours_are_not_silenced(broken: Callable[..., Run]) -> None:
    run = broken(SILENCE)
    run.hardware = run.hardware.model_copy(update={"kind": "ssh"})
    with pytest.raises(UsageError, match="this suite cuts power and links only of lab hosts"):
        make_plan(run.suite, run.hardware, run.planned)
