from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from ground.errors import UsageError
from suites import Layer
from weighbridge.passes import left_out
from weighbridge.plan import Plan, make_plan, twin_of
from weighbridge.testing import Run
from weighbridge.verbs.compare import LAYERS


def test_each_repeat_visits_every_layout_once_in_an_order_drawn_by_the_seed(tmp_path: Path) -> None:
    visits = Run(tmp_path, repeats=20).plan().visits
    blocks = [tuple(visit.layout for visit in visits[2 * n : 2 * n + 2]) for n in range(20)]
    assert all(sorted(block) == ["rgw-a", "swift-b"] for block in blocks)
    assert set(blocks) == {("rgw-a", "swift-b"), ("swift-b", "rgw-a")}
    assert Run(tmp_path, repeats=20).plan().visits == visits
    assert Run(tmp_path, repeats=20, seed=1).plan().visits != visits


def test_a_run_of_one_repeat_keeps_the_order_asked_for_whatever_its_seed(tmp_path: Path) -> None:
    for seed in range(8):
        assert [visit.layout for visit in Run(tmp_path, seed=seed).plan().visits] == ["rgw-a", "swift-b"]


def test_a_twin_is_a_layout_once_more_under_a_name_of_its_own(run: Run) -> None:
    twin = twin_of(run.planned[0])
    plan = make_plan(run.suite, run.hardware, [*run.planned, twin], twins={twin.layout.name: "rgw-a"})
    assert twin.layout.name == "rgw-a-again"
    assert plan.twins == {"rgw-a-again": "rgw-a"}
    assert twin.layout.model_copy(update={"name": "rgw-a"}) == run.planned[0].layout
    long = run.planned[0].layout.model_copy(update={"name": "x" * 40})
    assert twin_of(replace(run.planned[0], layout=long)).layout.name == "x" * 34 + "-again"


def test_a_plan_counts_its_steps_and_its_least_seconds(tmp_path: Path) -> None:
    plan = Run(tmp_path, repeats=2).plan()
    assert plan.steps == 2 * 2 * 3
    assert plan.seconds == 2 * 2 * 3 * 10


def test_a_layout_that_lacks_an_api_of_the_suite_is_refused_before_anything_starts(tmp_path: Path) -> None:
    run = Run(tmp_path, api=["swift", "s3"])
    run.gateways["rgw-a"].answers = ("swift", "s3")
    with pytest.raises(UsageError, match="swift-b does not answer the s3 API"):
        run.plan()


def test_two_layouts_of_one_name_are_refused(run: Run) -> None:
    run.planned.append(run.planned[0])
    with pytest.raises(UsageError, match="two layouts are named rgw-a"):
        run.plan()


def test_a_plan_goes_through_json_and_comes_back_the_same(run: Run) -> None:
    assert Plan.model_validate_json(run.plan().model_dump_json()) == run.plan()


def test_layers_that_a_layout_has_not_or_that_a_workload_does_not_fit_are_told_and_not_left_out_in_silence(run: Run) -> None:
    suite = run.suite.changed(layers=["rados", "object-server", "disk"])
    assert left_out(suite, ["rados"]) == (
        "layer rados: mixed: rados is read or written, one of them at a time, not read and write",
        "layer object-server: this layout has none",
    )
    assert all(len(texts) == 2 for texts in make_plan(suite, run.hardware, run.planned).left_out.values())


def test_the_help_of_compare_names_every_layer_that_a_suite_may_have() -> None:
    assert get_args(Layer) == LAYERS
