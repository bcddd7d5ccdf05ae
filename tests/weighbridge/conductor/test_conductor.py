import errno
import os
from pathlib import Path
from typing import Any

import pytest

from stub_run import SUITE, Run, Seen
from two_drivers import BOTH, TwoDrivers
from weighbridge.common.errors import ServiceFailed, TargetError
from weighbridge.conductor import conductor, pass_runner
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.opening import opened
from weighbridge.conductor.step_runner import StepRunner
from weighbridge.drivers.kind import KINDS
from weighbridge.results.record.store import RunStore
from weighbridge.results.record.telemetry import Attested
from weighbridge.results.record.writing import StoreError
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.fake import FakeHosts

DIED = "stub on gateway-1 has died (its log: stub.out)"


def conduct(run: Run, *driver: str) -> tuple[RunStore, Seen]:
    seen = Seen()
    return run.conduct(*driver, display=seen), seen


def test_a_deployment_with_uneven_reads_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stub_run.StubRunning.uneven", ("osd.0 answers all",))
    store, seen = conduct(Run(tmp_path, repeats=2))
    uneven_events = [event for event in store.events() if event.kind == "uneven"]
    assert {(event.layout, event.repeat) for event in uneven_events} == {
        (step.key.layout, step.key.repeat) for step in store.steps()
    }
    assert {event.text for event in uneven_events} == {"osd.0 answers all"}
    assert any("osd.0 answers all: reads are provisional" in words for words in seen.said)


def test_every_step_of_every_layout_and_repeat_is_measured_once_in_order(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=2)
    store, seen = conduct(run)
    steps = store.steps()
    assert len({step.key for step in steps}) == len(steps) == 12
    assert [step.order for step in steps] == list(range(12))
    assert all(step.valid for step in steps)
    assert [(step.key.workload, step.key.workers) for step in steps[:3]] == [
        ("small", 1),
        ("small", 4),
        ("mixed", 2),
    ]
    assert seen.results == list(steps)


def test_caches_are_dropped_before_each_step_and_deferred_work_is_settled_after_it(
    run: Run,
) -> None:
    store, _ = conduct(run)
    assert run.gateways["rgw-a"].did == ["up", *["drop", "settle"] * 3]
    dropped = [
        event for event in store.events() if event.kind == "caches" and event.layout == "rgw-a"
    ]
    assert "memcached flushed" in {event.text for event in dropped}


def test_if_data_goes_with_the_deployment_all_is_prepared_first_and_nothing_deleted(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, cleanup="with-deployment")
    store, seen = conduct(run)
    assert [step.valid for step in store.steps()] == [True] * 6
    assert run.gateways["rgw-a"].did == ["up", *["drop"] * 3]
    kinds = [event.kind for event in store.events() if event.layout == "rgw-a"]
    assert "cleaned" not in kinds
    assert kinds.index("caches") > max(
        place for place, kind in enumerate(kinds) if kind == "prepared"
    )
    assert kinds.count("prepared") == 2
    assert not any(text.startswith("cleaning up") for text in seen.said)


@pytest.mark.parametrize("sized", [False, True])
def test_drivers_start_and_prepare_without_limits_and_steps_are_measured_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sized: bool
) -> None:
    """A driver that sizes itself by the CPUs it finds, as Java does, starts with limits."""
    monkeypatch.setattr(KINDS.get_or_refuse("locust"), "sized_at_start", sized, raising=False)
    did: list[str] = []
    monkeypatch.setattr(FakeHosts, "limit", lambda self, what=(): did.append("limit"))
    monkeypatch.setattr(FakeHosts, "unlimit", lambda self, what=(): did.append("unlimit"))
    prepare, step = StepRunner.prepare, StepRunner.step
    monkeypatch.setattr(StepRunner, "prepare", lambda *one: (did.append("prepare"), prepare(*one)))
    monkeypatch.setattr(
        StepRunner, "step", lambda *one, **named: (did.append("step"), step(*one, **named))
    )
    monkeypatch.setattr(
        Deployment, "drop_caches", lambda self, **named: (did.append("drop caches"), ())[1]
    )
    monkeypatch.setattr(
        pass_runner, "opened", lambda *one, **named: (did.append("start"), opened(*one, **named))[1]
    )
    conduct(Run(tmp_path, cleanup="with-deployment"))
    step_begins = ["step", "unlimit", "drop caches", "limit"]
    start = ["start"] if sized else ["unlimit", "start", "limit"]
    visit = ["limit", *start, "unlimit", "prepare", "prepare", "limit", *step_begins * 3]
    assert did == visit * 2


WARM = {**SUITE["workloads"][0], "name": "warm", "workers": [2, 4], "cache": "none"}
COLD = {**SUITE["workloads"][0], "name": "cold", "workers": [2]}


@pytest.mark.parametrize(
    ("suite", "drops", "said"),
    [
        ({"cache": "kernel"}, 0, "kernel caches"),
        ({"cache": "kernel every 1s"}, 0, "kernel caches"),
        ({"cache": "none"}, 0, ""),
        ({"workloads": [WARM, COLD]}, 1, ""),  # a workload's own policy goes before the suite's
    ],
)
def test_caches_are_dropped_as_the_suite_asks_or_the_workload(
    tmp_path: Path, suite: dict[str, Any], drops: int, said: str
) -> None:
    run = Run(tmp_path, **suite)
    store, _ = conduct(run)
    assert run.gateways["rgw-a"].did.count("drop") == drops
    dropped = [event.text for event in store.events() if event.kind == "caches"]
    assert dropped or not said
    assert all(said in text for text in dropped)


def test_a_run_has_facts_configurations_and_telemetry_no_secret_and_leaves_no_process(
    run: Run,
) -> None:
    store, _ = conduct(run)
    manifest = RunStore.open(store.folder).manifest
    assert {sheet.layout for sheet in manifest.sheets} == {None, "rgw-a", "swift-b"}
    assert [(config.layout, config.path) for config in manifest.configs] == [
        ("rgw-a", "/etc/stub.conf"),
        ("swift-b", "/etc/stub.conf"),
    ]
    for key, step in store.latest().items():
        telemetry = store.telemetry(key)
        assert telemetry is not None
        assert telemetry.head.key == step.key
        assert [(one.host, one.tier) for one in telemetry.head.hosts] == [
            ("client-1", "client"),
            ("gateway-1", "gateway"),
        ]
        assert telemetry.tail is not None
    files = [path for path in store.folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"planted-secret" in path.read_bytes()]
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    alive = [child for child in children if "sleep" in Path(f"/proc/{child}/cmdline").read_text()]
    assert not alive
    assert not list(run.place.deployments.iterdir())


def test_a_gateway_that_does_not_start_ends_the_run_and_leaves_nothing(run: Run) -> None:
    run.gateways["swift-b"].fails_to_start = True
    with pytest.raises(ServiceFailed, match="did not come up"):
        conduct(run)
    assert not list(run.place.deployments.iterdir())


def test_a_step_in_which_a_daemon_died_is_not_valid_and_the_next_workload_gets_a_new_deployment(
    run: Run,
) -> None:
    run.gateways["rgw-a"].dies_at = 2  # the check after the first step
    store, seen = conduct(run)
    first, second, third = (step for step in store.steps() if step.key.layout == "rgw-a")
    assert first.measurement is not None
    assert first.spoilt
    assert not first.valid
    assert first.notes == (f"in this step {DIED}",)
    assert second.measurement is None
    assert second.notes == (f"not measured, since the gateway had failed: {DIED}",)
    assert third.valid
    assert run.gateways["rgw-a"].did == ["up", "drop", "up", "drop", "settle"]
    visits = [
        event.text for event in store.events() if event.kind == "visit" and event.layout == "rgw-a"
    ]
    assert [text.rpartition(", ")[2] for text in visits] == [
        "visit 1 of 2: repeat 1 of 1",
        "on deployment 2",
    ]
    assert all(step.valid for step in store.steps() if step.key.layout == "swift-b")
    assert len(seen.results) == 6
    assert {path.name for path in store.logs.iterdir()} >= {"rgw-a-0", "rgw-a-0-again-1"}
    assert not list(run.place.deployments.iterdir())


def test_a_daemon_that_dies_between_two_steps_is_not_reported_for_one(run: Run) -> None:
    run.gateways["rgw-a"].dies_at = 3  # the check before the second step
    store, _ = conduct(run)
    first, second, third = (step for step in store.steps() if step.key.layout == "rgw-a")
    assert (first.valid, third.valid) == (True, True)
    assert second.measurement is None
    assert second.notes == (f"not measured: {DIED}",)


def test_a_gateway_whose_daemons_always_die_ends_its_visits_and_no_others(run: Run) -> None:
    gateway = run.gateways["rgw-a"]
    gateway.dies_from = 2
    store, _ = conduct(run)
    assert [step.key.layout for step in store.steps() if step.valid] == ["swift-b"] * 3
    assert len(store.steps()) == 6
    assert gateway.did.count("up") == 2


def test_a_driver_that_fails_because_a_daemon_died_is_reported_after_it(run: Run) -> None:
    run.gateways["rgw-a"].dies_at = 2
    store, seen = conduct(run, "--fail", "step")
    first = store.steps()[0]
    assert first.measurement is None
    assert first.notes[0] == f"in this step {DIED}"
    assert first.notes[1].startswith("the driver failed at 'step'")
    assert any(text.startswith("gateway-1: stub: has died") for text in seen.said)
    assert "not measured, since the gateway had failed" in store.steps()[1].notes[0]
    assert any(
        "failed at 'step'" in event.text for event in store.events() if event.kind == "failed"
    )


@pytest.mark.parametrize("order", ["prepare", "step"])
@pytest.mark.parametrize("how", ["--fail", "--end"])
def test_if_a_driver_fails_every_step_is_recorded_with_the_reason(
    tmp_path: Path, how: str, order: str
) -> None:
    # A driver that ends is a program, and one more for each step.
    workloads = SUITE["workloads"] if how == "--fail" else SUITE["workloads"][1:]
    store, _ = conduct(Run(tmp_path, workloads=workloads), how, order)
    steps = store.steps()
    assert len({step.key for step in steps}) == (6 if how == "--fail" else 2)
    assert not any(step.valid or step.measurement for step in steps)
    assert all(step.notes for step in steps)


def test_a_step_whose_driver_fails_leaves_telemetry_that_can_be_read(run: Run) -> None:
    store, _ = conduct(run, "--fail", "step")
    first = store.steps()[0].key
    telemetry = store.telemetry(first)
    assert telemetry is not None
    assert {one.phase for one in telemetry.hosts} <= {"unplaced"}


def test_an_osd_that_cannot_be_measured_is_reported_and_ends_no_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*words: object) -> list[Attested]:
        raise TargetError("store-1: osd.0 answers no bench")

    monkeypatch.setattr(conductor, "ask_osds", refuse)
    store, seen = conduct(run)
    assert all(step.valid for step in store.steps())
    assert len(store.steps()) == 6
    assert [event.layout for event in store.events() if "osd.0 answers no bench" in event.text] == [
        "rgw-a",
        "swift-b",
    ]
    assert "layer osd: store-1: osd.0 answers no bench" in seen.said
    assert store.attested() == ()


def test_a_step_is_recorded_before_the_files_of_its_driver(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Conductor, folder: str, kept: object) -> None:
        if folder.startswith("rgw-a.swift.small"):
            raise StoreError(Path(folder), OSError(errno.ENOSPC, "No space left on device"))

    monkeypatch.setattr(StepRunner, "keep", full)
    store = run.store()
    with pytest.raises(StoreError, match="the disk is full"):
        run.into(store)
    assert [step.valid for step in store.steps()] == [True]


def test_both_drivers_of_a_layout_are_open_at_once_and_take_turns_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = TwoDrivers()
    monkeypatch.setattr(pass_runner, "opened", both.opened)
    store, _ = conduct(Run(tmp_path, driver="locust,cosbench", workloads=BOTH))
    steps = [step.key for step in store.steps() if step.key.layout == "rgw-a"]
    assert [(key.workload, key.workers) for key in steps] == [
        ("small", n) for n in (1, 1, 4, 4, 8, 8)
    ] + [("more", 2)] * 2
    firsts = [key.driver for key in steps[::2]]
    assert {*firsts} == {"locust", "cosbench"}
    assert firsts[:3] in (["locust", "cosbench", "locust"], ["cosbench", "locust", "cosbench"])
    asked = both.did[: len(both.did) // 2]
    assert [text for name, text in asked].count("opened") == 2
    small = [asked.index((name, "prepare small")) for name in ("locust", "cosbench")]
    assert max(small) < min(
        place for place, (_, text) in enumerate(asked) if text.startswith("step")
    )
    assert all((name, "cleanup small") in asked for name in ("locust", "cosbench"))


def test_a_driver_that_fails_loses_the_rest_of_its_workload_and_the_other_driver_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_runner, "opened", TwoDrivers(fails="cosbench").opened)
    store, _ = conduct(Run(tmp_path, driver="locust,cosbench", workloads=BOTH))
    latest = [step for step in store.latest().values() if step.key.layout == "rgw-a"]
    assert len(store.steps()) == len(store.latest()) == 16
    lost = [(step.key.driver, step.key.workload) for step in latest if step.measurement is None]
    assert lost == [("cosbench", "small")] * 3
    assert all(step.measurement for step in store.latest().values() if step.key.layout == "swift-b")
