from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_run import SUITE, Run, Seen, StubGateway, fake_driver_settings
from two_drivers import BOTH, TwoDrivers
from weighbridge.cli.compare import compare_verb
from weighbridge.common.errors import UsageError
from weighbridge.conductor import pass_runner
from weighbridge.conductor.conductor import Conductor
from weighbridge.conductor.passes import left_out, passes_of
from weighbridge.conductor.plan import Plan, Visit, blocks, control_of, design_length, make_plan
from weighbridge.conductor.time_estimate import TimeEstimate, WorkUnit, show_duration, units
from weighbridge.gateways.rgw.releases import RELEASES as RGW_RELEASES
from weighbridge.gateways.rgw.releases import SWIFT_LACKS
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.releases import RELEASES as SWIFT_RELEASES
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.results.run.step import StepKey
from weighbridge.results.run.store import RunStore
from weighbridge.suites import OPERATIONS, UNSIGNED, VERSIONS, Layer, Suite
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.loader import Planned


def test_each_repeat_visits_every_layout_once_in_a_balanced_order_drawn_by_the_seed(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, repeats=20)
    plan = make_plan(run.suite, run.hardware, run.planned, order_seed=7)
    blocks = [tuple(visit.layout for visit in block) for block in plan.blocks()]
    assert all(
        set(blocks[n : n + 2]) == {("rgw-a", "swift-b"), ("swift-b", "rgw-a")}
        for n in range(0, 20, 2)
    )
    assert plan.order_seed == 7
    assert make_plan(run.suite, run.hardware, run.planned, order_seed=7).visits == plan.visits
    assert {
        make_plan(run.suite, run.hardware, run.planned, order_seed=seed).visits for seed in range(8)
    } != {plan.visits}
    own = Run(tmp_path, repeats=20, order_seed=3)
    plans = [make_plan(own.suite, own.hardware, own.planned, order_seed=drawn) for drawn in (1, 2)]
    assert plans[0] == plans[1]
    assert plans[0].order_seed == 3


def test_workloads_and_counts_are_shuffled_for_each_block_alike_on_all_layouts(
    tmp_path: Path,
) -> None:
    def orders(order: str, **suite: object) -> list[tuple[str, ...]]:
        """Of each block its steps, which are those of the control as far as it goes."""
        base = {**SUITE["workloads"][0], "workers": [2, 1]}
        listed = {**base, "operations": {"list": 1}, "listed": {"deleted": [0, "25%", "50%"]}}
        workloads = [{**base, "name": name} for name in "abc"] + [{**listed, "name": "l"}]
        run = Run(tmp_path, repeats=12, order=order, workloads=workloads, **suite)
        planned = [*run.planned, control_of(run.planned[0])]
        controls = {"rgw-a-again": "rgw-a"}
        plan = make_plan(run.suite, run.hardware, planned, order_seed=5, controls=controls)
        found = []
        for block in plan.blocks():
            each = {}
            for visit in block:
                steps = [f"{key.workload}{key.workers}" for key in plan.keys(visit)]
                each[visit.layout] = tuple(steps)
            assert each["rgw-a"] == each["swift-b"]
            assert each["rgw-a"][: len(each["rgw-a-again"])] == each["rgw-a-again"]
            found.append(each["rgw-a"])
        return found

    listed = ("l1", "l2", "l-25-deleted1", "l-25-deleted2", "l-50-deleted1", "l-50-deleted2")
    assert set(orders("ascending")) == {("a1", "a2", "b1", "b2", "c1", "c2", *listed)}
    assert orders("descending")[0][:4] == ("a2", "a1", "b2", "b1")
    shuffled = orders("shuffle", control=["b"])
    assert orders("shuffle", control=["b"]) == shuffled
    assert len(set(shuffled)) > 6
    counts = [[step for step in one if step[0] == "c"] for one in shuffled]
    assert ["c1", "c2"] in counts
    assert ["c2", "c1"] in counts
    names = ["".join(dict.fromkeys(step[0] for step in one)) for one in shuffled]
    assert {one[:2] for one in names} == {"ab", "ba"}
    assert {one[2:] for one in names} == {"cl", "lc"}
    chains = {tuple(dict.fromkeys(step[:-1] for step in one if step[0] == "l")) for one in shuffled}
    assert chains == {("l", "l-25-deleted", "l-50-deleted")}
    free = {"".join(dict.fromkeys(step[0] for step in one)) for one in orders("shuffle")}
    assert {one[0] for one in free} == set("abcl")


def test_two_drivers_take_turns_step_by_step_and_each_goes_first_as_often(tmp_path: Path) -> None:
    workload = {**SUITE["workloads"][0], "workers": [1, 4]}
    plan = Run(tmp_path, repeats=2, driver="locust,cosbench", workloads=[workload]).plan()
    for layout in ("rgw-a", "swift-b"):
        steps = [
            (key.workers, key.driver)
            for visit in plan.visits
            if visit.layout == layout
            for key in plan.keys(visit)
        ]
        assert [workers for workers, _ in steps] == [1, 1, 4, 4] * 2
        pairs = [(steps[n][1], steps[n + 1][1]) for n in range(0, len(steps), 2)]
        assert all(set(pair) == {"locust", "cosbench"} for pair in pairs)
        assert [first for first, _ in pairs].count("locust") == 2
        assert len({first for (workers, first) in steps[::2] if workers == 1}) == 2


def test_a_run_of_one_repeat_keeps_the_order_asked_for_whatever_its_seed(tmp_path: Path) -> None:
    for seed in range(8):
        visits = Run(tmp_path, seed=seed).plan().visits
        assert [visit.layout for visit in visits] == ["rgw-a", "swift-b"]


def test_a_plan_counts_its_steps_and_seconds(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=2).plan()
    assert plan.steps == 2 * 2 * 3
    assert plan.seconds == 2 * 2 * 3 * 10


def test_a_plan_with_too_many_steps_is_refused_with_the_limit(tmp_path: Path) -> None:
    workload = {**SUITE["workloads"][0], "workers": list(range(1, 101))}
    with pytest.raises(UsageError, match=r"the plan has 200,000 steps; the limit is 100,000"):
        Run(tmp_path, repeats=1000, workloads=[workload]).plan()


def test_a_driver_that_cannot_verify_a_layouts_tls_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, driver="locust,cosbench", api=["swift"])
    run.plan()
    monkeypatch.setattr(type(run.gateways["rgw-a"]), "own_ca", True)
    with pytest.raises(UsageError) as error:
        run.plan()
    assert error.value.message.splitlines() == [
        f"cosbench cannot use the CA of {name}, so it cannot verify its TLS"
        for name in ("rgw-a", "swift-b")
    ]
    assert Run(tmp_path, driver="locust", api=["swift"]).plan()


def test_two_layouts_with_the_same_name_are_refused(run: Run) -> None:
    run.planned.append(run.planned[0])
    with pytest.raises(UsageError, match="two layouts are named rgw-a"):
        run.plan()


def test_layers_that_are_left_out_are_reported(run: Run) -> None:
    suite = run.suite.changed(layers=["rados", "object-server", "disk"])
    assert left_out(suite, ["rados"], run.planned[0].gateway.no_layer) == (
        "layer rados: mixed: rados is either read or written in a workload, not read and write",
        "layer object-server: this layout has none",
    )
    assert all(
        len(texts) == 2 for texts in make_plan(suite, run.hardware, run.planned).left_out.values()
    )


def test_the_help_of_compare_names_every_layer_that_a_suite_may_have() -> None:
    (option,) = (one for one in compare_verb.params if one.name == "layers")
    assert all(layer in str(option.to_info_dict()["help"]) for layer in get_args(Layer))


@pytest.mark.parametrize(
    ("suite", "who"), [({"driver": "cosbench"}, "cosbench"), ({"users": "sdk"}, "users: sdk")]
)
def test_several_endpoints_are_refused_for_drivers_that_use_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: dict[str, str], who: str
) -> None:
    run = Run(tmp_path)
    lone = run.suite.model_copy(update=suite)
    make_plan(lone, run.hardware, run.planned)
    monkeypatch.setattr(type(run.planned[1].gateway), "spreads", lambda _: True)
    make_plan(run.suite, run.hardware, run.planned)
    with pytest.raises(UsageError, match=f"several endpoints, but {who} would use only one"):
        make_plan(lone, run.hardware, run.planned)


def signed(run: Run, signing: object, **suite: object) -> Suite:
    """The run's suite with another way to sign, over S3."""
    workload = {**run.suite.workloads[0].model_dump(), "signing": signing}
    record = {**run.suite.model_dump(), "api": ["s3"], "workloads": [workload], **suite}
    return Suite.model_validate(record)


def test_ways_to_sign_that_a_layout_is_known_to_refuse_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = type(run.planned[1].gateway)
    monkeypatch.setattr(gateway, "apis", lambda _: ("swift", "s3"))
    trailer = signed(run, {"payload": "trailer", "checksum": "crc32"})
    make_plan(trailer, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "s3_lacks", lambda _: {"trailers": "no trailers here"})
    make_plan(signed(run, {"payload": "chunks"}), run.hardware, run.planned)
    with pytest.raises(UsageError, match=r"swift-b \(.*\): no trailers here"):
        make_plan(trailer, run.hardware, run.planned)
    as_shipped = signed(run, "sdk-default", users="sdk")
    make_plan(as_shipped, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "own_ca", True)
    with pytest.raises(UsageError, match="no trailers here"):
        make_plan(as_shipped, run.hardware, run.planned)


def test_encryption_that_a_layout_or_driver_is_known_not_to_do_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = type(run.planned[1].gateway)
    monkeypatch.setattr(gateway, "apis", lambda _: ("swift", "s3"))
    plain = signed(run, UNSIGNED)
    workload = {**plain.workloads[0].model_dump(), "encryption": "sse-c"}
    suite = Suite.model_validate({**plain.model_dump(), "workloads": [workload]})
    make_plan(suite, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "s3_lacks", lambda _: {"sse-c": "stored unencrypted here"})
    make_plan(plain, run.hardware, run.planned)
    with pytest.raises(UsageError, match=r"swift-b \(.*\): stored unencrypted here"):
        make_plan(suite, run.hardware, run.planned)
    swift = Suite.model_validate({**suite.model_dump(), "api": ["swift"]})
    with pytest.raises(UsageError, match="only S3 requests ask for encryption: over swift"):
        make_plan(swift, run.hardware, run.planned)
    with pytest.raises(UsageError, match=r"COSBench asks for no encryption: leave `encryption`"):
        passes_of(suite.changed(driver="cosbench"), ())


def test_operations_and_versions_that_a_layout_is_known_not_to_have_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = type(run.planned[1].gateway)
    make_plan(run.suite, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "operations_lacked", lambda _, api: {"read": f"ignored by {api}"})
    with pytest.raises(
        UsageError, match=r"swift-b \(.*\) has no read over swift: ignored by swift"
    ):
        make_plan(run.suite, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "operations_lacked", lambda _, api: {VERSIONS: f"not by {api}"})
    make_plan(run.suite, run.hardware, run.planned)
    first = run.suite.workloads[0].model_copy(update={"versions": 2})
    suite = run.suite.model_copy(update={"workloads": (first, *run.suite.workloads[1:])})
    why = r"swift-b \(.*\) has no versions over swift: not by swift"
    with pytest.raises(UsageError, match=why):
        make_plan(suite, run.hardware, run.planned)


def test_what_releases_are_said_to_lack_are_operations() -> None:
    said = [
        SWIFT_LACKS,
        config.operations_lacked(SwiftSettings(pipeline="study-2014")),
        *(one.s3_lacks_operations for one in RGW_RELEASES.values()),
        *(one.s3_lacks_operations for one in SWIFT_RELEASES.values()),
        *(one.lacks_operations for one in SWIFT_RELEASES.values()),
    ]
    assert {name for one in said for name in one} <= {*OPERATIONS, VERSIONS}


def test_only_s3_is_signed_and_only_by_drivers_that_do_as_they_are_told(run: Run) -> None:
    chunks = signed(run, {"payload": "chunks"})
    swift = Suite.model_validate({**chunks.model_dump(), "api": ["swift"]})
    with pytest.raises(UsageError, match="only S3 requests are signed: over swift"):
        make_plan(swift, run.hardware, run.planned)
    with pytest.raises(UsageError, match=r"COSBench signs in its own way: leave `signing`"):
        passes_of(chunks.changed(driver="cosbench"), ())


LAYOUTS = st.integers(1, 7).map(lambda size: [f"layout-{number}" for number in range(size)])


@given(LAYOUTS, st.integers(1, 3), st.integers(0, 2**63))
def test_each_design_balances_positions_and_predecessors(
    names: list[str], designs: int, seed: int
) -> None:
    length = design_length(len(names))
    found = blocks(names, designs * length, seed)
    for begin in range(0, len(found), length):
        one = found[begin : begin + length]
        places = Counter(place for block in one for place in enumerate(block))
        followed = Counter(pair for block in one for pair in pairwise(block))
        assert len(places) == len(names) ** 2
        assert len(set(places.values())) == 1
        assert len(followed) == len(names) * (len(names) - 1)
        assert len(set(followed.values())) <= 1


@given(LAYOUTS, st.integers(1, 20), st.integers(0, 2**63))
def test_every_block_visits_every_layout_once_and_the_seed_alone_decides(
    names: list[str], count: int, seed: int
) -> None:
    found = blocks(names, count, seed)
    assert len(found) == count
    assert all(sorted(block) == sorted(names) for block in found)
    assert blocks(names, count, seed) == found


@given(LAYOUTS, st.integers(0, 2**63))
def test_after_as_many_blocks_as_layouts_each_has_had_every_position_once(
    names: list[str], seed: int
) -> None:
    found = blocks(names, len(names), seed)
    assert len({place for block in found for place in enumerate(block)}) == len(names) ** 2


def test_another_seed_gives_another_order_and_each_layout_comes_first_as_often_over_seeds() -> None:
    first = Counter(blocks(["a", "b", "c"], 1, seed)[0] for seed in range(6000))
    assert len(first) == 6
    assert all(800 < times < 1200 for times in first.values())


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
    first = [("prepare", name) for name in ("small", "mixed", "late")]
    assert work[1:5] == [*first, ("step", "small")]
    store = conduct(run)
    written = [one.layout for one in store.events() if one.kind == "prepared"]
    assert written.count(AGAIN) == written.count("rgw-a") == 3
    mine = [step.key.workload for step in store.steps() if step.key.layout == AGAIN]
    assert mine == ["small", "small"]


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


FIRST, SECOND = Visit(layout="rgw-a", repeat=0), Visit(layout="swift-b", repeat=0)
ESTIMATE_AGAIN = Visit(layout="rgw-a", repeat=1)


class Clock:
    """A clock that tests set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("weighbridge.conductor.time_estimate.time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def do(one: TimeEstimate, clock: Clock, unit: WorkUnit, took_s: float) -> None:
    with one.doing(unit.kind, unit.visit, unit.work, unit.workers):
        clock.now += took_s


def test_a_unit_is_estimated_from_the_same_unit_of_the_last_repeat(clock: Clock) -> None:
    todo = [WorkUnit("start", visit, guess_s=10) for visit in (FIRST, SECOND, ESTIMATE_AGAIN)]
    one = TimeEstimate(todo)
    assert one.left_s() == 30
    do(one, clock, todo[0], 20)
    do(one, clock, todo[1], 40)
    assert one.left_s() == 20
    assert one.repeat_s(0) == 0
    assert one.repeat_s(1) == 20


def test_a_guess_is_corrected_by_the_error_of_similar_ones_and_of_steps_beyond_their_window(
    clock: Clock,
) -> None:
    small = WorkUnit("prepare", FIRST, "small", guess_s=2)
    one = TimeEstimate([small, WorkUnit("prepare", FIRST, "large", guess_s=50)])
    do(one, clock, small, 6)
    assert one.left_s() == 150
    step = WorkUnit("step", FIRST, "small", 1, planned_s=10, guess_s=2)
    one = TimeEstimate([step, WorkUnit("step", FIRST, "long", 1, planned_s=100, guess_s=2)])
    do(one, clock, step, 13)
    assert one.left_s() == 103


def test_the_current_unit_counts_with_its_time_left_but_not_below_0(clock: Clock) -> None:
    one = TimeEstimate(
        [WorkUnit("step", FIRST, "small", 1, planned_s=10), WorkUnit("stop", FIRST, guess_s=3)]
    )
    with one.doing("step", FIRST, "small", 1):
        clock.now = 4
        assert one.left_s() == 9
        clock.now = 400
        assert one.left_s() == 3


def test_skipped_and_failed_units_are_dropped_and_not_learned_from(clock: Clock) -> None:
    todo = [WorkUnit("step", FIRST, "small", workers, planned_s=10) for workers in (1, 2, 3)]
    one = TimeEstimate([*todo, WorkUnit("stop", FIRST, guess_s=3)])

    def fail() -> None:
        with one.doing("step", FIRST, "small", 1):
            clock.now += 500
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert one.left_s() == 23
    do(one, clock, WorkUnit("stop", FIRST), 3)
    assert one.left_s() == 0


def test_a_plan_has_all_its_units_and_a_resumed_one_the_rest(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=2).plan()
    everything = units(plan)
    assert sum(unit.kind == "step" for unit in everything) == plan.steps
    assert sum(unit.planned_s for unit in everything) == plan.seconds
    assert len({unit.name for unit in everything}) == len(everything)
    done = {key for visit in plan.visits[:2] for key in plan.keys(visit)} | {
        plan.keys(plan.visits[2])[0]
    }
    left = units(plan, done)
    assert {unit.visit for unit in left} == set(plan.visits[2:])
    assert sum(unit.kind == "step" for unit in left) == plan.steps - len(done)


def test_a_workload_whose_steps_are_all_measured_is_not_prepared(tmp_path: Path) -> None:
    plan = Run(tmp_path).plan()
    small: set[StepKey] = {key for key in plan.keys(plan.visits[0]) if key.workload == "small"}
    first = [unit for unit in units(plan, small) if unit.visit == plan.visits[0]]
    assert [(unit.kind, unit.work.split(" ")[0]) for unit in first if unit.work] == [
        ("prepare", "mixed"),
        ("step", "mixed"),
        ("clean", "mixed"),
    ]


def test_attested_hosts_take_longer_to_start_and_only_in_the_lab(tmp_path: Path) -> None:
    plan = Run(tmp_path).plan()
    lab = Hardware.model_validate(
        {"name": "lab", "kind": "lab", "hosts": {"client-1": {}, "gateway-1": {}}}
    )

    def starting_s(one: Plan, *, attest: bool) -> float:
        return units(one.model_copy(update={"attest": attest}))[0].guess_s

    real = plan.model_copy(update={"hardware": lab})
    bare_s = starting_s(real, attest=False)
    assert starting_s(real, attest=True) > bare_s > starting_s(plan, attest=True)


@pytest.mark.parametrize(("seconds", "shown"), [(7, "0:07"), (425.4, "7:05"), (4025, "1:07:05")])
def test_a_duration_is_shown_like_a_clock(seconds: float, shown: str) -> None:
    assert show_duration(seconds) == shown
