"""What a run folder says of a run to resume: its plan, changed facts, leftovers and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from stub_run import Run, StubGateway
from weighbridge import resumption
from weighbridge.common.registry import Registry
from weighbridge.conductor.conductor import RESUMED
from weighbridge.conductor.plan import Plan, control_of, make_plan
from weighbridge.gateways.gateway import RootImage
from weighbridge.results.record.manifest import Sheet
from weighbridge.results.record.store import Holder
from weighbridge.resumption import ResumableRun
from weighbridge.selection import hardware_named, layout_named
from weighbridge.suites import VERSIONS, Suite, encryption_needs, signing_needs
from weighbridge.suites.loader import load, shipped
from weighbridge.topologies import images, loader
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.lab.claim import ClaimedMachine


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "STORES", Registry("none", "gateway", own={"stub": StubGateway}))


def takes(one: loader.Planned, suite: Suite) -> bool:
    """Whether a layout takes the requests of a suite, and S3 requests as it makes them."""
    ways = {
        way
        for workload in suite.workloads
        for way in (
            *signing_needs(workload.signed, tls=False),
            *encryption_needs(workload.encrypted),
        )
    }
    if "s3" in suite.api and not ways.isdisjoint(one.gateway.s3_lacks()):
        return False
    asked: set[str] = {name for workload in suite.workloads for name in workload.operations}
    asked |= {VERSIONS for workload in suite.workloads if workload.versions}
    served = {*one.gateway.apis()} & {*suite.api}
    return all(asked.isdisjoint(one.gateway.operations_lacked(api)) for api in served)


def test_plans_of_shipped_layouts_and_suites_survive_a_round_trip() -> None:
    hardware = hardware_named("lab-cpu")
    names = (
        "rgw-beast",
        "rgw-civetweb",
        "rgw-apache-fastcgi",
        "rgw-haproxy",
        "swift",
        "swift-haproxy",
        "swift-s3api",
        "rgw-beast@ceph-18",
        "swift@swift-2.35",
    )
    found = [layout_named(name, hardware) for name in names]
    found.append(control_of(layout_named("rgw-beast:radosgw.tcp_nodelay=0", hardware)))
    for path in shipped().values():
        suite = load(path)
        able = [
            one
            for one in found
            if {*suite.api} <= {*one.gateway.apis(), *one.gateway.layers()} and takes(one, suite)
        ]
        assert able, suite.name
        plan = make_plan(suite, hardware, able)
        back = Plan.model_validate_json(plan.model_dump_json(indent=2))
        assert back == plan
        for layout, one in zip(back.layouts, able, strict=True):
            again = loader.checked_again(layout, back.hardware, "plan.resolved.json")
            assert again.layout == one.layout
            assert again.gateway.needs() == one.gateway.needs()
            assert vars(again.gateway) == vars(one.gateway)


def test_a_rebuilt_image_with_other_packages_is_reported_with_its_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = RootImage(name="none", suite="none", packages=("radosgw",))
    monkeypatch.setattr(StubGateway, "releases", {"1": image})
    run = Run(tmp_path)
    lab = Hardware.model_validate(
        {"name": "lab", "kind": "lab", "hosts": {"client-1": {}, "gateway-1": {}}}
    )
    run.place.images.mkdir(parents=True)
    listed = run.place.images / f"{images.key(image)}.packages"
    listed.write_text("radosgw=16\n")
    store = run.store()
    facts = {
        f"image {images.key(image)}": images.packages_sum(run.place.images / images.key(image))
    }
    store.write_manifest(
        store.manifest.model_copy(
            update={"sheets": (Sheet(title="deployment", layout="rgw-a", facts=facts),)}
        )
    )
    left = ResumableRun(
        store, run.plan().model_copy(update={"hardware": lab}), tuple(run.planned), frozenset()
    )
    assert not resumption.changed_facts(left, run.place)
    listed.write_text("radosgw=17\n")
    assert [(one.fact, one.of) for one in resumption.changed_facts(left, run.place)] == [
        ("image", "rgw-a")
    ]


def test_memory_that_a_kernel_reserves_is_no_change_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    store = run.store()
    store.add_facts(
        [Sheet(title="machine", facts={"memory": "24684096 kB", "sysctl kernel.osrelease": "6.1"})]
    )
    left = ResumableRun(store, run.plan(), tuple(run.planned), frozenset())
    now = {"memory": "24684000 kB", "sysctl kernel.osrelease": "6.2"}
    monkeypatch.setattr(resumption, "facts_of_machine", lambda _: now)
    assert [
        (one.fact, one.before, one.now) for one in resumption.changed_facts(left, run.place)
    ] == [("kernel", "6.1", "6.2")]
    assert resumption.refuse_changed(left, run.place, ["all"]) == resumption.changed_facts(
        left, run.place
    )


def test_only_what_a_process_of_the_run_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = StateFolders(home=tmp_path / "home", state=tmp_path / "state")
    since = "2026-01-01T00:00:0"
    for name, pid, at in (("ours-1", 11, 5), ("older-1", 11, 1), ("theirs-1", 12, 5)):
        ClaimedMachine(
            deployment=name, pid=pid, since=f"{since}{at}+00:00", folder=tmp_path / name
        ).write(place.state)
    removed: list[str] = []

    def remove(deployment: str, **_named: object) -> tuple[str, ...]:
        removed.append(deployment)
        return ("container", "disk")

    monkeypatch.setattr("weighbridge.topologies.lab.ending.remove_leftovers", remove)
    said: list[str] = []
    holders = [Holder(pid=11, since=f"{since}3+00:00"), Holder(pid=13, since=f"{since}6+00:00")]
    resumption.remove_leftovers(holders, place, said.append)
    assert removed == ["ours-1"]
    assert said == ["removed ours-1, which was left running: 2 items"]


def test_time_between_sessions_is_not_counted_as_spent(tmp_path: Path) -> None:
    store = Run(tmp_path).store()
    store.write_manifest(
        store.manifest.model_copy(update={"created_at": "2026-01-01T00:00:00+00:00"})
    )
    lines = [("00:10", "up"), ("05:00", RESUMED), ("05:30", "up")]
    text = "".join(
        f'{{"at": "2026-01-01T00:{at}.000+00:00", "kind": "{kind}", "text": ""}}\n'
        for at, kind in lines
    )
    (store.folder / "events.jsonl").write_text(text)
    assert resumption.spent_s(store) == 40
