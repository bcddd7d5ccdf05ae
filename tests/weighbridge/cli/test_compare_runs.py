"""`weighbridge compare-runs` through the command line, by made-up runs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fake_run import WORKLOADS, Spoilt, fake_run
from made_up import fake_measurement
from weighbridge.command import weighbridge
from weighbridge.common.errors import UsageError
from weighbridge.results.record.attestation import Attested, Kind, Unit
from weighbridge.results.record.store import RunStore

SMALL = WORKLOADS[0].model_copy(update={"workers": (1, 32), "runtime": 10.0})
BETTER = "swift=rgw-beast"
WORSE = "rgw-beast=swift"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of five repeats in which rgw-beast is faster than swift."""
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[SMALL], telemetry=False).folder


def another(runs: Path, seed: int, **fields: Any) -> Path:
    """One more run of the same thing: the same plan, but for these fields of its suite, and other
    draws.
    """
    folder = fake_run(runs, workloads=[SMALL], telemetry=False, seed=seed).folder
    plan = json.loads((folder / "plan.resolved.json").read_text())
    plan["suite"] |= {"seed": 2014, **fields}
    (folder / "plan.resolved.json").write_text(json.dumps(plan))
    return folder


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Arguments that name four earlier runs of the same thing as `whole`."""
    folders = [another(tmp_path_factory.mktemp("runs"), seed) for seed in (1, 2, 3, 4)]
    return tuple(part for folder in folders for part in ("--history", str(folder)))


def slowed(run: Path, to: Path, stalled: Collection[int]) -> Path:
    """A copy of a run whose swift takes 8 times as long with 32 workers, and in these repeats
    serves nothing for 4 s.
    """
    store = RunStore.open(shutil.copytree(run, to))
    for key, step in store.latest().items():
        if (key.layout, key.workers) == ("swift", 32):
            assert step.measurement is not None
            mean_ms = 8000 * step.measurement.window_s * 32 / step.measurement.tallies[0].count
            slow = fake_measurement(window_s=10, workers=32, mean_ms=mean_ms, seed=key.repeat)
            gap = {3, 4, 5, 6} if key.repeat in stalled else {}
            seconds = tuple(
                one.model_copy(update={"count": 0}) if one.second in gap else one
                for one in slow.seconds
            )
            store.append(
                step.model_copy(
                    update={"measurement": slow.model_copy(update={"seconds": seconds})}
                )
            )
    return store.folder


def attested(
    run: Path,
    to: Path,
    value: float,
    *,
    kind: Kind = "cpu",
    what: str = "CPU",
    unit: Unit = "events/s",
) -> Path:
    """A copy of a run in which gateway-1 gave this figure under swift, and one that is always the
    same under rgw-beast.
    """
    store = RunStore.open(shutil.copytree(run, to))
    gave = {"swift": value, "rgw-beast": 1000.0}
    store.attest(
        Attested(
            layout=layout, repeat=0, host="gateway-1", kind=kind, what=what, value=of, unit=unit
        )
        for layout, of in gave.items()
    )
    return store.folder


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
        weighbridge,
        ["compare-runs", *map(str, arguments)],
        catch_exceptions=False,
        standalone_mode=False,
    )


def test_a_run_compared_with_itself_has_no_difference_and_passes(
    whole: Path, earlier: tuple[str, ...]
) -> None:
    done = run(whole, whole, *earlier, "--fail-on", "regression")
    assert done.return_value == 0
    assert "What differs between the runs" not in done.output
    assert "A and 4 earlier runs of the same thing tell how much that is" in done.output
    lines = [
        line.split() for line in done.output.splitlines() if line.strip().startswith("1 MB reads")
    ]
    assert [line[3:5] for line in lines] == [
        ["rgw-beast", "1"],
        ["rgw-beast", "32"],
        ["swift", "1"],
        ["swift", "32"],
    ]
    assert re.search(
        r"Of \d+ cells against A: (\d+ (too small to matter|not shown|not comparable)(, )?)+\.",
        done.output,
    )


def test_a_regression_exits_with_1_only_if_asked_about(
    whole: Path, earlier: tuple[str, ...]
) -> None:
    assert run(whole, whole, "--layouts", WORSE, *earlier).return_value == 0
    done = run(whole, whole, "--layouts", WORSE, *earlier, "--fail-on", "regression")
    assert done.return_value == 1
    assert "B is worse than A: " in done.output
    assert "rgw-beast (A) serves" in done.output


def test_an_improvement_is_not_a_regression(whole: Path, earlier: tuple[str, ...]) -> None:
    done = run(whole, whole, "--layouts", BETTER, *earlier, "--fail-on", "regression")
    assert done.return_value == 0
    assert "rgw-beast (B) serves" in done.output
    assert "swift → rgw-beast" in done.output


@pytest.mark.parametrize(("named", "times"), [(0, "twice"), (1, "once")])
def test_without_two_earlier_runs_a_regression_is_neither_found_nor_ruled_out(
    whole: Path, earlier: tuple[str, ...], named: int, times: str
) -> None:
    done = run(whole, whole, "--layouts", WORSE, *earlier[: 2 * named], "--fail-on", "regression")
    assert done.return_value == 4
    assert (
        "Whether B is worse cannot be judged: how far runs of the same thing differ, 3 of them "
        "tell, A among them." in done.output
    )
    assert (
        f"Measure the same as A {times} more: weighbridge compare --suite made-up.yaml"
        in done.output
    )
    assert "B is worse than A" not in done.output
    told = run(whole, whole, "--layouts", WORSE, *earlier[: 2 * named])
    assert told.return_value == 0
    assert "provisional" in told.output
    assert " worse" not in told.output


def test_the_scatter_between_runs_is_part_of_every_interval(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    for name, history in (("alone", ()), ("known", earlier)):
        assert (
            run(whole, whole, "--layouts", WORSE, *history, "--out", tmp_path / name).return_value
            == 0
        )
    alone, known = (
        {
            (one["workers"], one["metric"]): one["ratio"]
            for one in json.loads((tmp_path / name / "comparison.json").read_text())["effects"]
            if one["ratio"] is not None
        }
        for name in ("alone", "known")
    )
    assert alone.keys() == known.keys()
    assert all(known[place]["low"] < alone[place]["low"] for place in alone)
    assert all(known[place]["value"] == alone[place]["value"] for place in alone)


def test_earlier_runs_of_something_else_are_refused(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is A, and earlier runs as well"):
        run(whole, earlier[1], "--history", whole)
    with pytest.raises(UsageError, match="is B, and earlier runs as well"):
        run(whole, earlier[1], *earlier)
    with pytest.raises(UsageError, match="one of the earlier runs, and earlier runs as well"):
        run(whole, whole, *earlier[:2], *earlier[:2])
    with pytest.raises(UsageError, match=r"no earlier run of the same thing as A: (.|\n)*cache: "):
        run(whole, whole, "--history", another(tmp_path / "cache", 5, cache="none"))
    other = another(tmp_path / "settings", 6)
    plan = json.loads((other / "plan.resolved.json").read_text())
    plan["layouts"][1]["settings"] = {"proxy": {"workers": 4}}
    (other / "plan.resolved.json").write_text(json.dumps(plan))
    with pytest.raises(
        UsageError, match=r"no earlier run of the same thing as A:\n.*proxy\.workers"
    ):
        run(whole, whole, "--history", other)
    # B may be set to anything: that is what is tried.
    assert run(whole, other, *earlier).return_value == 0
    lone = fake_run(
        tmp_path / "lone", layouts=("swift",), workloads=[SMALL], telemetry=False
    ).folder
    with pytest.raises(UsageError, match="has no layout 'rgw-beast'"):
        run(whole, whole, "--history", lone)


def test_too_few_repeats_for_a_claim_do_not_pass_as_no_regression(tmp_path: Path) -> None:
    few = fake_run(tmp_path, workloads=[SMALL], repeats=2, telemetry=False).folder
    assert run(few, few).return_value == 0
    others = [another(tmp_path / str(seed), seed, repeats=2) for seed in (1, 2)]
    done = run(few, few, "--history", others[0], "--history", others[1], "--fail-on", "regression")
    assert done.return_value == 4
    assert "No comparison has 5 repeats a side and no doubt" in done.output


def test_a_cell_that_is_no_longer_valid_does_not_pass_as_no_regression(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    broken = fake_run(
        tmp_path,
        workloads=[SMALL],
        telemetry=False,
        spoilt=Spoilt(absent=(("swift", "small-read", 32),)),
    ).folder
    done = run(whole, broken, *earlier, "--fail-on", "regression")
    assert done.return_value == 4
    assert (
        "comparable in A and not in B: swift (B), small-read, 32 workers: not measured"
        in done.output
    )
    assert run(whole, broken).return_value == 0


def test_a_claimed_regression_exits_with_1_whatever_else_is_open(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(whole, slowed(whole, tmp_path / "b", ()), *earlier, "--fail-on", "regression")
    assert (done.return_value, "provisional" in done.output) == (1, False)
    done = run(
        whole,
        slowed(whole, tmp_path / "c", {2}),
        "--layouts",
        WORSE,
        *earlier,
        "--fail-on",
        "regression",
    )
    assert (done.return_value, "provisional" in done.output) == (1, True)


def test_a_regression_with_a_repeat_that_stalls_does_not_pass(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    slow = slowed(whole, tmp_path / "b", {2})
    done = run(whole, slow, *earlier, "--fail-on", "regression")
    assert done.return_value == 4
    assert "B is worse than A" not in done.output
    assert "2 comparisons that A has figures for are provisional or not comparable" in done.output
    _, _, named = done.output.partition("that B is not worse cannot be said.")
    assert re.findall(r"at (\d+) workers.* provisional, ", named) == ["32", "32"]
    assert "1 of 5 repeats were not steady" in named
    assert run(whole, slow, *earlier).return_value == 0


def test_a_regression_that_stalls_in_all_repeats_does_not_pass(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(whole, slowed(whole, tmp_path / "b", range(5)), *earlier, "--fail-on", "regression")
    assert done.return_value == 4
    assert "comparable in A and not in B: swift (B), small-read, 32 workers: " in done.output
    assert "2 comparisons that A has figures for are provisional or not comparable" in done.output
    assert "cannot be compared at 32 workers" in done.output


def test_what_was_not_comparable_in_a_does_not_keep_b_from_passing(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    stalling = slowed(whole, tmp_path / "a", range(5))
    done = run(stalling, whole, *earlier, "--fail-on", "regression")
    assert done.return_value == 0
    assert "not comparable" in done.output


def test_it_exits_with_4_if_nothing_can_be_compared(
    whole: Path, changed: Callable[..., Path]
) -> None:
    suite = json.loads((whole / "plan.resolved.json").read_text())["suite"]
    other = changed(
        "plan.resolved.json",
        suite={**suite, "workloads": [{**suite["workloads"][0], "workers": [2]}]},
        passes={},
    )
    done = run(whole, other)
    assert done.return_value == 4
    assert "Nothing could be compared." in done.output


def test_different_runs_are_refused_unless_accepted_and_reported(
    whole: Path, changed: Callable[..., Path]
) -> None:
    suite = json.loads((whole / "plan.resolved.json").read_text())["suite"]
    other = changed("plan.resolved.json", suite={**suite, "seed": 7})
    with pytest.raises(UsageError, match="seed: 2014 in A, 7 in B"):
        run(whole, other)
    done = run(whole, other, "--despite", "seed")
    assert done.return_value == 0
    assert "compared despite a difference: seed: 2014 in A, 7 in B" in done.output


def test_an_incomplete_run_is_reported_as_such(whole: Path, changed: Callable[..., Path]) -> None:
    assert (
        "interrupted: not whole" in run(whole, changed("manifest.json", state="interrupted")).output
    )


def test_a_run_of_a_newer_format_is_refused(whole: Path, changed: Callable[..., Path]) -> None:
    with pytest.raises(UsageError, match="version 99 of its format"):
        run(whole, changed("manifest.json", schema_version=99))


def test_a_folder_that_is_not_a_run_is_refused(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not the folder of a run"):
        run(whole, tmp_path)


def test_an_aa_control_of_either_run_gives_the_noise_floor(
    whole: Path, changed: Callable[..., Path]
) -> None:
    twice = changed("plan.resolved.json", controls={"swift": "rgw-beast"})
    done = run(whole, twice)
    assert done.return_value == 0
    assert (
        "Noise floor of throughput: rgw-beast beside itself, 10 pairs of repeats in 2 cells: "
        in done.output
    )
    assert "take every verdict with care" in done.output
    assert "swift (B)" not in done.output


def test_effects_comparison_and_maps_are_written_to_the_output_folder(
    whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    done = run(whole, whole, "--layouts", BETTER, "--out", out)
    names = {path.name for path in out.iterdir()}
    assert {
        "effects.csv",
        "differences.csv",
        "comparison.json",
        "recap-map.png",
        "recap-map-p90.svg",
    } <= names
    assert json.loads((out / "comparison.json").read_text())["subjects"] == ["rgw-beast (B)"]
    assert str(out / "effects.csv") in done.output


def test_settings_that_only_one_layout_has_are_listed_or_counted_if_many(
    whole: Path, changed: Callable[..., Path]
) -> None:
    layouts = json.loads((whole / "plan.resolved.json").read_text())["layouts"]
    layouts[0]["settings"] = {"radosgw": {f"key-{number}": number for number in range(13)}}
    layouts[1]["settings"] = {"proxy": {"workers": 4}}
    lines = [
        line.split()
        for line in run(whole, changed("plan.resolved.json", layouts=layouts)).output.splitlines()
    ]
    assert ["rgw-beast", "settings", "of", "one", "alone", "0", "13"] in lines
    assert ["swift", "proxy.workers", "–", "4"] in lines


def test_a_layout_whose_hosts_could_do_less_in_b_is_not_compared(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    fast, slow = (attested(whole, tmp_path / str(value), value) for value in (1395, 245))
    done = run(fast, slow, *earlier, "--fail-on", "regression")
    assert done.return_value == 4
    differ = (
        "(hosts differ: CPU of gateway-1 gave 245 events/s under swift (B) and 1,395 "
        "events/s under swift (A) (82 % apart"
    )
    lines = [line for line in done.output.splitlines() if line.startswith("•")]
    assert [differ in line for line in lines] == ["swift" in line for line in lines]
    assert "4 comparisons that A has figures for are provisional or not comparable" in done.output
    done = run(fast, slow, "--layouts", "swift")
    assert (done.return_value, "Nothing could be compared." in done.output) == (4, True)
    near = attested(whole, tmp_path / "near", 1300)
    assert run(fast, near, *earlier, "--fail-on", "regression").return_value == 0


def test_an_earlier_run_on_different_hosts_gives_no_scatter(whole: Path, tmp_path: Path) -> None:
    fast, slow = (attested(whole, tmp_path / str(value), value) for value in (1395, 245))
    before = attested(another(tmp_path / "runs", 1), tmp_path / "before", 245)
    with pytest.raises(
        UsageError, match="same thing as A: its hosts were not the same: CPU of gateway-1 gave "
    ):
        run(fast, fast, "--history", before)
    assert run(slow, slow, "--history", before).return_value == 0
    assert run(fast, fast, "--layouts", "rgw-beast", "--history", before).return_value == 0


def test_different_osd_rates_are_a_result_and_no_reason_not_to_compare(
    whole: Path, tmp_path: Path
) -> None:
    before, after = (
        attested(whole, tmp_path / str(v), v, kind="osd", what="osd.0 write", unit="B/s")
        for v in (100e6, 400e6)
    )
    done = run(before, after)
    assert (done.return_value, "hosts differ" in done.output) == (0, False)


def test_a_layout_that_was_attested_in_only_one_run_is_compared_provisionally(
    whole: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(attested(whole, tmp_path / "a", 1395), whole, *earlier, "--fail-on", "regression")
    assert done.return_value == 4
    assert "swift (B) was not attested: whether its hosts were the same is not known" in done.output
    assert "worse" not in done.output.partition("that B is not")[0]
