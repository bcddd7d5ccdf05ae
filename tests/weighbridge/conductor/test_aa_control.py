"""A/A controls: a layout once more, with the workloads that the suite names and those before."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stub_run import SUITE, Run, Seen, StubGateway, fake_driver_settings
from two_drivers import BOTH, TwoDrivers
from weighbridge.conductor import pass_runner
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.plan import Plan, control_of, make_plan
from weighbridge.conductor.time_estimate import units
from weighbridge.results.record.store import RunStore
from weighbridge.topologies.loader import Planned

AGAIN = "rgw-a-again"
SMALL, MIXED = SUITE["workloads"]
LATE = {**SMALL, "name": "late"}
THREE = [SMALL, MIXED, LATE]


def planned_twice(run: Run) -> list[Planned]:
    control = replace(control_of(run.planned[0]), gateway=StubGateway())
    return [*run.planned, control]


def plan_of(run: Run) -> Plan:
    return make_plan(run.suite, run.hardware, planned_twice(run), controls={AGAIN: "rgw-a"})


def measured(plan: Plan) -> list[str]:
    """The workloads of the control's first visit, in order."""
    visit = next(one for one in plan.visits if one.layout == AGAIN)
    return list(dict.fromkeys(key.workload for key in plan.keys(visit)))


def prepared(plan: Plan) -> list[str]:
    """Those of which it writes objects only."""
    return [one.name for way in plan.passes[AGAIN] for one in way.prepared]


def conduct(run: Run, *driver: str) -> RunStore:
    planned, plan = planned_twice(run), plan_of(run)
    store = RunStore.create(
        run.folder / "runs", plan_yaml="name: trial\n", plan=plan, suite="trial", sheets=[]
    )
    Conductor(plan, planned, store, Seen(), run.place, settings=fake_driver_settings(*driver)).run()
    return store


def test_hosts_are_measured_before_the_first_visit_of_each_layout_and_not_of_its_control(
    tmp_path: Path,
) -> None:
    plan = plan_of(Run(tmp_path, repeats=3))
    assert not any(plan.attested(visit) for visit in plan.visits)
    attesting = plan.model_copy(update={"attest": True})
    asked = [(visit.layout, visit.repeat) for visit in plan.visits if attesting.attested(visit)]
    assert sorted(asked) == [("rgw-a", 0), ("swift-b", 0)]


def test_a_twin_is_a_layout_once_more_under_a_name_of_its_own(tmp_path: Path) -> None:
    run = Run(tmp_path)
    control = control_of(run.planned[0])
    plan = plan_of(run)
    assert control.layout.name == "rgw-a-again"
    assert plan.twins == {"rgw-a-again": "rgw-a"}
    assert control.layout.model_copy(update={"name": "rgw-a"}) == run.planned[0].layout
    long = run.planned[0].layout.model_copy(update={"name": "x" * 40})
    assert control_of(replace(run.planned[0], layout=long)).layout.name == "x" * 34 + "-again"


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (True, ["small", "mixed", "late"]),
        (["small"], ["small"]),
        (["mixed"], ["small", "mixed"]),
        (["mixed", "small"], ["small", "mixed"]),
        (["late"], ["small", "mixed", "late"]),
    ],
)
def test_a_control_measures_all_up_to_the_last_workload_that_the_suite_names(
    tmp_path: Path, asked: Any, wanted: list[str]
) -> None:
    plan = plan_of(Run(tmp_path, control=asked, workloads=THREE))
    assert measured(plan) == wanted
    assert prepared(plan) == []
    others = {key.workload for visit in plan.visits[:2] for key in plan.keys(visit)}
    assert others == {"small", "mixed", "late"}


def test_a_control_writes_the_objects_of_later_workloads_where_its_layout_does_so_first(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, control=["small"], workloads=THREE, cleanup="with-deployment")
    plan = plan_of(run)
    assert (measured(plan), prepared(plan)) == (["small"], ["mixed", "late"])
    work = [
        (unit.kind, unit.work.split(" ")[0]) for unit in units(plan) if unit.visit.layout == AGAIN
    ]
    assert work[1:5] == [("prepare", name) for name in ("small", "mixed", "late")] + [
        ("step", "small")
    ]
    store = conduct(run)
    written = [one.layout for one in store.events() if one.kind == "prepared"]
    assert written.count(AGAIN) == written.count("rgw-a") == 3
    assert [step.key.workload for step in store.steps() if step.key.layout == AGAIN] == [
        "small",
        "small",
    ]


def test_a_control_goes_through_whole_passes_before_the_last_with_a_named_workload(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, control=["small"], workloads=THREE, api=["swift", "s3"])
    for gateway in run.gateways.values():
        gateway.answers = ("swift", "s3")
    control = control_of(run.planned[0])
    plan = make_plan(run.suite, run.hardware, [*run.planned, control], controls={AGAIN: "rgw-a"})
    assert [(way.api, [one.name for one in way.workloads]) for way in plan.passes[AGAIN]] == [
        ("swift", ["small", "mixed", "late"]),
        ("s3", ["small"]),
    ]


def test_a_control_whose_later_objects_cannot_be_written_is_measured_and_said_to_be_unlike(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, control=["small"], cleanup="with-deployment")
    store = conduct(run, "--fail-prepare-of", "mixed")
    steps = [step for step in store.steps() if step.key.layout == AGAIN]
    assert [(step.key.workload, step.valid) for step in steps] == [("small", True)] * 2
    assert {step.notes[-1] for step in steps} == {"unlike its layout: no objects of mixed"}
    others = [step for step in store.steps() if step.key.layout != AGAIN]
    assert not any("unlike" in note for step in others for note in step.notes)
    failures = [one for one in store.events() if one.layout == AGAIN and one.kind == "failed"]
    assert len(failures) == 1


def test_a_driver_of_a_control_that_has_only_objects_to_write_is_open_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"driver": "locust,cosbench", "workloads": BOTH, "cleanup": "with-deployment"}
    run = Run(tmp_path, control=["small"], repeats=1, **options)
    drivers = TwoDrivers(fails="cosbench", times=99)
    monkeypatch.setattr(pass_runner, "opened", drivers.opened)
    plan = plan_of(run)
    store = conduct(run)
    mine = [step for step in store.latest().values() if step.key.layout == AGAIN]
    done = [(step.key.driver, step.key.workers) for step in mine if step.measurement]
    assert done == [("locust", count) for count in (1, 4, 8)]
    written = [(name, text) for name, text in drivers.did if text == "prepare more"]
    assert {name for name, _ in written} == {"locust", "cosbench"}
    # The drivers write in the order that their layout's have.
    both = ("rgw-a", AGAIN)
    of_layout, of_control = ([one for one in plan.visits if one.layout == name] for name in both)
    (ways,) = plan.groups("rgw-a")
    more = [turn.way.driver for turn in plan.turns(of_layout[0], ways)][-2:]
    (ways,) = plan.groups(AGAIN)
    assert [turn.way.driver for turn in plan.prepared(of_control[0], ways)] == more


def test_a_killed_run_goes_on_where_one_driver_of_a_control_has_only_objects_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"driver": "locust,cosbench", "workloads": BOTH, "cleanup": "with-deployment"}
    run = Run(tmp_path, control=["small"], repeats=1, **options)
    monkeypatch.setattr(pass_runner, "opened", TwoDrivers().opened)
    store = conduct(run)
    steps = store.folder / "steps.jsonl"
    lines = steps.read_text().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if f'"{AGAIN}"' in line)
    steps.write_text("".join((*lines[:last], *lines[last + 1 :])))
    again = RunStore.open(store.folder)
    plan, planned = plan_of(run), planned_twice(run)
    Conductor(plan, planned, again, Seen(), run.place, settings=fake_driver_settings()).run()
    assert len(again.steps()) == len(lines)


@pytest.mark.parametrize(
    ("control", "words"), [(["smal"], "no workload 'smal'"), ([], "set false or leave it out")]
)
def test_a_control_with_unknown_workloads_is_refused(
    tmp_path: Path, control: list[str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Run(tmp_path, control=control)
