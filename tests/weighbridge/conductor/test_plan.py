from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stub_run import SUITE, Run
from weighbridge.cli.compare import command
from weighbridge.common.errors import UsageError
from weighbridge.conductor.passes import left_out, passes_of
from weighbridge.conductor.plan import Plan, blocks, design_length, make_plan
from weighbridge.gateways.rgw.releases import RELEASES as RGW_RELEASES
from weighbridge.gateways.rgw.releases import SWIFT_LACKS
from weighbridge.gateways.swift import config
from weighbridge.gateways.swift.releases import RELEASES as SWIFT_RELEASES
from weighbridge.gateways.swift.settings import SwiftSettings
from weighbridge.suites import OPERATIONS, UNSIGNED, VERSIONS, Layer, Suite


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


def test_the_order_seed_of_a_suite_takes_precedence(tmp_path: Path) -> None:
    run = Run(tmp_path, repeats=20, order_seed=3)
    plans = [make_plan(run.suite, run.hardware, run.planned, order_seed=drawn) for drawn in (1, 2)]
    assert plans[0] == plans[1]
    assert plans[0].order_seed == 3


def test_worker_counts_ascend_descend_or_are_shuffled_for_each_block_alike_on_all_layouts(
    tmp_path: Path,
) -> None:
    def counts(order: str) -> list[tuple[int, ...]]:
        workload = {**SUITE["workloads"][0], "workers": [4, 1, 16, 2]}
        run = Run(tmp_path, repeats=12, order=order, workloads=[workload])
        plan = make_plan(run.suite, run.hardware, run.planned, order_seed=5)
        found = []
        for block in plan.blocks():
            each = {tuple(key.workers for key in plan.keys(visit)) for visit in block}
            assert len(each) == 1
            found += each
        return found

    assert set(counts("ascending")) == {(1, 2, 4, 16)}
    assert set(counts("descending")) == {(16, 4, 2, 1)}
    shuffled = counts("shuffle")
    assert all(sorted(one) == [1, 2, 4, 16] for one in shuffled)
    assert len(set(shuffled)) > 6
    assert counts("shuffle") == shuffled


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
        assert [visit.layout for visit in Run(tmp_path, seed=seed).plan().visits] == [
            "rgw-a",
            "swift-b",
        ]


def test_a_plan_counts_its_steps_and_seconds(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=2).plan()
    assert plan.steps == 2 * 2 * 3
    assert plan.seconds == 2 * 2 * 3 * 10


def test_a_plan_with_too_many_steps_is_refused_with_the_limit(tmp_path: Path) -> None:
    workload = {**SUITE["workloads"][0], "workers": list(range(1, 101))}
    with pytest.raises(UsageError, match=r"the plan has 200,000 steps; the limit is 100,000"):
        Run(tmp_path, repeats=1000, workloads=[workload]).plan()


def test_a_layout_that_lacks_an_api_of_the_suite_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, api=["swift", "s3"])
    run.gateways["rgw-a"].answers = ("swift", "s3")
    with pytest.raises(UsageError, match="swift-b does not have the s3 API"):
        run.plan()


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


def test_a_plan_goes_through_json_and_comes_back_the_same(run: Run) -> None:
    assert Plan.model_validate_json(run.plan().model_dump_json()) == run.plan()


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
    (option,) = (one for one in command.params if one.name == "layers")
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


def test_operations_that_a_layout_is_known_not_to_do_are_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = type(run.planned[1].gateway)
    make_plan(run.suite, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "operations_lacked", lambda _, api: {"read": f"ignored by {api}"})
    with pytest.raises(
        UsageError, match=r"swift-b \(.*\) has no read over swift: ignored by swift"
    ):
        make_plan(run.suite, run.hardware, run.planned)
    monkeypatch.setattr(gateway, "operations_lacked", lambda _, api: {"tag": "refused"})
    make_plan(run.suite, run.hardware, run.planned)


def test_what_releases_are_said_to_lack_are_operations() -> None:
    said = [
        SWIFT_LACKS,
        config.operations_lacked(SwiftSettings(pipeline="study-2014")),
        *(one.s3_lacks_operations for one in RGW_RELEASES.values()),
        *(one.s3_lacks_operations for one in SWIFT_RELEASES.values()),
        *(one.lacks_operations for one in SWIFT_RELEASES.values()),
    ]
    assert {name for one in said for name in one} <= {*OPERATIONS, VERSIONS}


def test_versions_are_refused_where_a_layout_keeps_none(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = type(run.planned[1].gateway)
    monkeypatch.setattr(gateway, "operations_lacked", lambda _, api: {VERSIONS: f"not by {api}"})
    make_plan(run.suite, run.hardware, run.planned)
    first = run.suite.workloads[0].model_copy(update={"versions": 2})
    suite = run.suite.model_copy(update={"workloads": (first, *run.suite.workloads[1:])})
    why = r"swift-b \(.*\) has no versions over swift: not by swift"
    with pytest.raises(UsageError, match=why):
        make_plan(suite, run.hardware, run.planned)


def test_only_s3_is_signed_and_only_by_drivers_that_do_as_they_are_told(run: Run) -> None:
    chunks = signed(run, {"payload": "chunks"})
    with pytest.raises(UsageError, match="only S3 requests are signed: over swift"):
        make_plan(
            Suite.model_validate({**chunks.model_dump(), "api": ["swift"]}),
            run.hardware,
            run.planned,
        )
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
