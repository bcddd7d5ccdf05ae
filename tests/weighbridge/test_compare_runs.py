"""`weighbridge compare-runs` through the command line, by made-up runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ground.errors import UsageError
from results.fake_run import WORKLOADS, Spoilt, fake_run
from weighbridge.command import weighbridge

SMALL = WORKLOADS[0].model_copy(update={"workers": (1, 32), "runtime": 2.0})
BETTER = "swift=rgw-beast"
WORSE = "rgw-beast=swift"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of five repeats in which rgw-beast is faster than swift."""
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[SMALL], telemetry=False).folder


@pytest.fixture
def changed(whole: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of the run with other contents of a JSON file of it."""

    def change(file: str, **fields: Any) -> Path:
        folder = shutil.copytree(whole, tmp_path / "changed")
        told = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**told, **fields}))
        return folder

    return change


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "140"}).invoke(
        weighbridge, ["compare-runs", *map(str, arguments)], catch_exceptions=False, standalone_mode=False
    )


def test_a_run_against_itself_shows_no_difference_and_passes(whole: Path) -> None:
    done = run(whole, whole, "--fail-on", "regression")
    assert done.return_value == 0
    assert "What differs between the runs" not in done.output
    assert done.output.count("no difference shown") == 4
    lines = [line.split() for line in done.output.splitlines() if line.strip().startswith("1 MB reads")]
    assert [line[3:5] for line in lines] == [["rgw-beast", "1"], ["rgw-beast", "32"], ["swift", "1"], ["swift", "32"]]
    assert all(line.count("~") == 2 for line in lines)


def test_a_regression_ends_with_1_only_where_it_was_asked_about(whole: Path) -> None:
    assert run(whole, whole, "--layouts", WORSE).return_value == 0
    done = run(whole, whole, "--layouts", WORSE, "--fail-on", "regression")
    assert done.return_value == 1
    assert "B is worse than A: 6 of 6 comparisons." in done.output
    assert "rgw-beast (A) serves" in done.output


def test_what_became_better_is_no_regression(whole: Path) -> None:
    done = run(whole, whole, "--layouts", BETTER, "--fail-on", "regression")
    assert done.return_value == 0
    assert "rgw-beast (B) serves" in done.output
    assert "swift → rgw-beast" in done.output


def test_too_few_repeats_for_a_claim_do_not_pass_as_no_regression(tmp_path: Path) -> None:
    few = fake_run(tmp_path, workloads=[SMALL], repeats=2, telemetry=False).folder
    assert run(few, few).return_value == 0
    done = run(few, few, "--fail-on", "regression")
    assert done.return_value == 4
    assert "No comparison has 5 valid repeats of each side" in done.output


def test_what_is_not_valid_any_more_does_not_pass_as_no_regression(whole: Path, tmp_path: Path) -> None:
    broken = fake_run(tmp_path, workloads=[SMALL], telemetry=False, spoilt=Spoilt(absent=(("swift", "small-read", 32),))).folder
    done = run(whole, broken, "--fail-on", "regression")
    assert done.return_value == 4
    assert "valid in A and not in B: swift (B), small-read, 32 workers: not measured" in done.output
    assert run(whole, broken).return_value == 0


def test_where_nothing_can_be_compared_it_ends_with_4(whole: Path, changed: Callable[..., Path]) -> None:
    suite = json.loads((whole / "plan.resolved.json").read_text())["suite"]
    other = changed("plan.resolved.json", suite={**suite, "workloads": [{**suite["workloads"][0], "workers": [2]}]}, passes={})
    done = run(whole, other)
    assert done.return_value == 4
    assert "Nothing could be compared." in done.output


def test_unlike_runs_are_refused_unless_told_and_then_say_so(whole: Path, changed: Callable[..., Path]) -> None:
    suite = json.loads((whole / "plan.resolved.json").read_text())["suite"]
    other = changed("plan.resolved.json", suite={**suite, "seed": 7})
    with pytest.raises(UsageError, match="seed: 2014 in A, 7 in B"):
        run(whole, other)
    done = run(whole, other, "--despite", "seed")
    assert done.return_value == 0
    assert "compared although unlike: seed: 2014 in A, 7 in B" in done.output


def test_a_run_that_is_not_whole_is_said_to_be_so(whole: Path, changed: Callable[..., Path]) -> None:
    assert "interrupted: not whole" in run(whole, changed("manifest.json", state="interrupted")).output


def test_a_run_of_a_newer_format_is_refused(whole: Path, changed: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="version 99 of its format"):
        run(whole, changed("manifest.json", schema_version=99))


def test_a_folder_that_is_no_run_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the folder of a run"):
        run(whole, tmp_path)


def test_an_aa_trial_of_either_run_gives_the_noise_floor(whole: Path, changed: Callable[..., Path]) -> None:
    twice = changed("plan.resolved.json", twins={"swift": "rgw-beast"})
    done = run(whole, twice)
    assert done.return_value == 0
    assert "Noise floor of throughput: rgw-beast weighed twice a block differs from itself by up to 1." in done.output
    assert "take every verdict with care" in done.output
    assert "swift (B)" not in done.output


def test_effects_comparison_and_maps_are_written_where_asked(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    done = run(whole, whole, "--layouts", BETTER, "--out", out)
    names = {path.name for path in out.iterdir()}
    assert {"effects.csv", "differences.csv", "comparison.json", "recap-map.png", "recap-map-p90.svg"} <= names
    assert json.loads((out / "comparison.json").read_text())["subjects"] == ["rgw-beast (B)"]
    assert str(out / "effects.csv") in done.output


def test_many_settings_that_only_one_of_two_layouts_has_are_counted_and_few_are_listed(
    whole: Path, changed: Callable[..., Path]
) -> None:
    layouts = json.loads((whole / "plan.resolved.json").read_text())["layouts"]
    layouts[0]["settings"] = {"radosgw": {f"key-{number}": number for number in range(13)}}
    layouts[1]["settings"] = {"proxy": {"workers": 4}}
    lines = [line.split() for line in run(whole, changed("plan.resolved.json", layouts=layouts)).output.splitlines()]
    assert ["rgw-beast", "settings", "of", "one", "alone", "0", "13"] in lines
    assert ["swift", "proxy.workers", "–", "4"] in lines
