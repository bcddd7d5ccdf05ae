from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from stub_run import SUITE, Run, Seen
from two_drivers import BOTH, TwoDrivers
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import ServiceFailed, TargetError, UsageError
from weighbridge.conductor import conductor, opening, pass_runner
from weighbridge.conductor.conductor import FURTHER, STRICT, Conductor, is_clear, unclear
from weighbridge.conductor.opening import opened
from weighbridge.conductor.passes import (
    asked_of_hosts,
    finding,
    left_out_of_search,
    passes_of,
    wants_tools,
)
from weighbridge.conductor.plan import Plan
from weighbridge.conductor.step_runner import StepRunner
from weighbridge.conductor.time_estimate import TimeAllowance
from weighbridge.drivers.cosbench.site import CosbenchSetup, CosbenchSite
from weighbridge.drivers.kind import KINDS, LoadSite, OpenedDriver
from weighbridge.drivers.protocol import Setup
from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.run.reading import StoreError
from weighbridge.results.run.resolved import ResolvedPlan
from weighbridge.results.run.step import Pass
from weighbridge.results.run.store import RunStore
from weighbridge.results.run.telemetry import Attested
from weighbridge.suites import Suite, loader
from weighbridge.suites.loader import find, load
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
PURE = {**COLD, "name": "pure", "operations": {"write": 1}}


@pytest.mark.parametrize(
    ("suite", "drops", "said"),
    [
        ({"cache": "kernel"}, 0, "kernel caches"),
        ({"cache": "kernel every 1s"}, 0, "kernel caches"),
        ({"cache": "none"}, 0, ""),
        ({"workloads": [WARM, COLD]}, 1, ""),  # a workload's own policy goes before the suite's
        ({"workloads": [PURE]}, 0, ""),  # what is not read need not be cold
        ({"workloads": [{**PURE, "cache": "before-step"}]}, 1, ""),
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
    last = [text.rpartition(", ")[2] for text in visits]
    assert last == ["visit 1 of 2: repeat 1 of 1", "on deployment 2"]
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
@pytest.mark.long
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
    said = [event for event in store.events() if "osd.0 answers no bench" in event.text]
    assert [event.layout for event in said] == ["rgw-a", "swift-b"]
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


TARGET = Endpoint(api="s3", url="http://127.0.0.1:1", user="u", key=SecretStr("k"))
SITE = CosbenchSite(controller="http://127.0.0.1:9/controller", archive="/nowhere")


@pytest.mark.parametrize(("driver", "kind"), [("locust", Setup), ("cosbench", CosbenchSetup)])
def test_a_driver_gets_the_timeout_of_its_suite(
    driver: str, kind: type[Setup], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sites: list[LoadSite] = []

    @contextmanager
    def opened(_kind: object, site: LoadSite) -> Iterator[OpenedDriver]:
        sites.append(site)
        yield cast("OpenedDriver", None)

    monkeypatch.setattr(type(KINDS[driver]), "opened", opened)
    monkeypatch.setattr(opening, "_endpoint", lambda *_: TARGET)
    suite = loader.load(loader.find("quick")).model_copy(update={"timeout": 90.0})
    client, layout = SimpleNamespace(name="client-1"), SimpleNamespace(name="one")
    deployment = cast("Deployment", SimpleNamespace(clients=(client,), layout=layout))
    one = Pass(api="s3", workloads=suite.workloads, driver=driver)
    with opening.opened(deployment, suite, one, prefix="wb-one", log=tmp_path / "log"):
        pass
    (site,) = sites
    setup = site.setup(kind, **({"site": SITE} if kind is CosbenchSetup else {}))
    assert setup.request_timeout_s == 90.0


def test_an_option_of_a_driver_that_a_run_does_not_use_is_refused() -> None:
    given = {"cosbench": "http://127.0.0.1:19088/controller"}
    with pytest.raises(UsageError, match="--cosbench is for the driver cosbench, which this run"):
        opening.settings_of(["fio"], given, lab=False)


def effect(q: float | None, **changes: Any) -> Effect:
    known = {
        "workload": "small",
        "operation": "read",
        "api": "swift",
        "about": "4 KiB reads",
        "workers": 4,
        "metric": "throughput",
        "baseline": "rgw-a",
        "subject": "swift-b",
        "ratio": Ratio(value=1.5, low=1.2, high=1.9, repeats=5),
        "p": q,
        "q": q,
        "verdict": "better",
        "text": "",
    }
    return Effect.model_validate({**known, **changes})


def comparison(*effects: Effect) -> Comparison:
    return Comparison(baseline="rgw-a", subjects=("swift-b",), effects=effects, tests=len(effects))


def test_a_run_is_clear_if_every_cell_is_significant_at_the_strict_level() -> None:
    shown, almost = effect(STRICT), effect(STRICT * 1.01, metric="p90")
    assert is_clear(comparison(shown))
    assert not is_clear(comparison(shown, almost))
    assert unclear(comparison(shown, almost)) == (almost,)
    # Effects over all worker counts, other metrics and incomparable cells do not prolong a run.
    beside = (
        effect(0.5, workers=None),
        effect(0.5, metric="max"),
        effect(None, ratio=None, verdict="not comparable"),
    )
    assert is_clear(comparison(shown, *beside))
    assert not is_clear(comparison(*beside[:1]))
    assert not is_clear(comparison())


def conduct_further(run: Run, within_s: float = 3600) -> tuple[RunStore, list[Plan]]:
    plans: list[Plan] = []
    return run.conduct(further=TimeAllowance(within_s), grown=plans.append), plans


FURTHER_BLOCKS = {"blocks": 2, "within": "1h"}
SMALL = [SUITE["workloads"][0]]


def test_blocks_follow_until_all_is_clear_and_are_in_the_plan_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[Comparison] = []
    monkeypatch.setattr(conductor, "is_clear", lambda one: looks.append(one) or len(looks) > 1)
    run = Run(tmp_path, repeats=2, further={"blocks": 5, "within": "1h"}, workloads=SMALL)
    store, grown = conduct_further(run)
    assert looks[-1] == open_run(store.folder).comparison
    assert sorted({step.key.repeat for step in store.steps()}) == [0, 1, 2]
    assert len(store.steps()) == 3 * 2 * 2
    plan = Plan.model_validate_json((store.folder / "plan.resolved.json").read_bytes())
    assert (plan.suite.repeats, plan.suite.further.blocks) == (3, 4)  # type: ignore[union-attr]
    assert plan.visits[: len(run.plan().visits)] == run.plan().visits
    assert grown == [plan]
    assert isinstance(store.plan(), ResolvedPlan)
    texts = [event.text for event in store.events() if event.kind == FURTHER]
    assert texts[0].endswith("not clear after 2 repeats: repeat 3 follows")
    assert texts[1] == "every comparable difference of throughput and p90 is clear after 3 repeats"


def test_no_more_blocks_follow_than_the_suite_allows_in_the_order_of_a_longer_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conductor, "is_clear", lambda _: False)
    run = Run(tmp_path, repeats=2, further=FURTHER_BLOCKS, workloads=SMALL)
    store, grown = conduct_further(run)
    assert len(store.steps()) == 4 * 2 * 2
    assert grown[-1].suite.further is None
    assert grown[-1].visits == Run(tmp_path / "longer", repeats=4, workloads=SMALL).plan().visits


def test_no_block_follows_without_time_for_it_or_if_none_is_allowed_or_nothing_compared(
    tmp_path: Path,
) -> None:
    for case, within_s, said in (("late", 1, 1), ("none", 3600, 0), ("alone", 3600, 0)):
        blocks = None if case == "none" else FURTHER_BLOCKS
        run = Run(tmp_path / case, repeats=2, further=blocks, workloads=SMALL)
        del run.planned[1 if case == "alone" else 2 :]
        store, grown = conduct_further(run, within_s)
        texts = [event.text for event in store.events() if event.kind == FURTHER]
        assert (grown, len(texts)) == ([], said), case
        assert all(text.startswith("no time for repeat 3: it would take") for text in texts)


def workload(name: str, operations: dict[str, int], **more: Any) -> dict[str, Any]:
    return {**SUITE["workloads"][0], "name": name, "operations": operations, **more}


WORKLOADS = [
    workload("fixed", {"read": 1}, objects={"size": 64_000}),
    workload("again", {"write": 1}, objects={"size": 64_000}),
    workload("drawn", {"write": 1, "delete": 1}, objects={"size": {"uniform": [1000, 3000]}}),
    workload("listed", {"list": 1}, objects={"size": 77}),
]


def suite(**changes: object) -> Suite:
    return Suite.model_validate(
        {"name": "asking", "about": "test", "workloads": WORKLOADS, **changes}
    )


def test_disks_are_measured_once_for_each_size_and_for_the_mean_of_random_sizes() -> None:
    assert not asked_of_hosts(suite(layers=["rados"]), sameness=False)
    asked = asked_of_hosts(suite(layers=["disk", "network"]), sameness=False)
    assert asked.sizes == (2000, 64_000)
    assert asked.all_pairs
    assert not asked.sameness


def test_tools_are_needed_for_fio_which_cannot_load_gateways() -> None:
    assert wants_tools(suite(layers=["rbd"]))
    assert wants_tools(suite(layers=["cephfs"]))
    assert wants_tools(suite(api=["rbd"]))
    assert not wants_tools(suite(layers=["rados", "disk"]))
    with pytest.raises(UsageError, match="fio cannot load swift"):
        passes_of(suite(driver="fio"), ())


def test_object_servers_get_as_many_writes_at_once_as_a_gateway_sends_them() -> None:
    workloads = [
        workload("reads", {"read": 1}, workers=[1, 4]),
        workload("writes", {"write": 1}, workers=[1, 4]),
        workload("mix", {"read": 1, "write": 1}, workers=[1, 4]),
    ]
    asked = suite(layers=["object-server"], workloads=workloads)
    *_, servers = passes_of(asked, ["object-server"], 3)
    workers = {one.name: one.workers for one in servers.workloads}
    assert workers == {"reads": (4,), "writes": (12,), "mix": (4,)}


def test_two_drivers_take_turns_in_the_order_in_which_the_suite_names_them() -> None:
    workloads = WORKLOADS[:2]
    named = [
        [one.driver for one in passes_of(suite(driver=driver, workloads=workloads), ())]
        for driver in ("locust,cosbench", "cosbench,locust")
    ]
    assert named == [["locust", "cosbench"], ["cosbench", "locust"]]


def trial(**more: Any) -> Suite:
    return Suite.model_validate({**SUITE, **more})


def test_reads_and_writes_are_searched_at_their_largest_worker_count_once() -> None:
    found = finding(trial(repeats=5, control=True, further={"blocks": 1, "within": "5m"}))
    assert [(one.name, one.workers) for one in found.workloads] == [
        ("small", (4,)),
        ("mixed", (2,)),
    ]
    assert (found.repeats, found.control, found.further) == (1, False, None)
    assert finding(trial(), repeats=3).repeats == 3


def test_other_workloads_are_left_out_and_named_and_a_suite_of_no_others_is_refused() -> None:
    given = trial(
        workloads=[
            workload("reads", {"read": 1}),
            workload("deletes", {"delete": 1}),
            workload("lists", {"list": 1, "read": 1}),
            workload("paced", {"read": 1}, rate_per_s=5.0),
        ]
    )
    found = finding(given)
    assert [one.name for one in found.workloads] == ["reads"]
    assert "deletes, lists, paced" in left_out_of_search(given, found)
    assert left_out_of_search(found, found) == ""
    with pytest.raises(UsageError, match="has no reads or writes"):
        finding(trial(workloads=[workload("deletes", {"delete": 1})]))


def test_the_default_suite_can_be_searched() -> None:
    found = finding(load(find("quick")))
    assert [(one.name, one.workers) for one in found.workloads] == [
        ("small-write", (16,)),
        ("small-read", (16,)),
        ("large-read", (4,)),
        ("large-write", (4,)),
    ]
