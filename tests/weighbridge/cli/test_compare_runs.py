"""`weighbridge compare-runs`, its page, Markdown and JUnit, with made-up runs."""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from fake_run import StepFaults, fake_run
from tests.weighbridge.cli.compared_runs import SMALL, another, attested, run, slowed
from weighbridge.common.errors import UsageError
from weighbridge.results.features import run_guard as guard


def judged(code: int, *words: object) -> str:
    return run(code, *words, "--fail-on", "regression")


BETTER = "swift=rgw-beast"
WORSE = "rgw-beast=swift"


@pytest.fixture(scope="module", autouse=True)
def each_folder_is_read_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "read_compared_run", functools.cache(guard.read_compared_run))
        yield


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of five repeats in which rgw-beast is faster than swift."""
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[SMALL], telemetry=False).folder


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Arguments that name two earlier runs of the same thing as `run_folder`."""
    folders = [another(tmp_path_factory.mktemp("runs"), seed) for seed in (1, 2)]
    return tuple(part for folder in folders for part in ("--history", str(folder)))


@pytest.fixture
def changed(run_folder: Path, tmp_path: Path) -> Callable[..., Path]:
    def change(file: str, **fields: Any) -> Path:
        folder = shutil.copytree(run_folder, tmp_path / "changed")
        text = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps({**text, **fields}))
        return folder

    return change


def test_a_run_compared_with_itself_has_no_difference_and_passes_all_tests(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    copy = shutil.copytree(run_folder, tmp_path / "copy")
    said = run(0, run_folder, copy, *earlier, *asked(tmp_path))
    assert "What differs between the runs" not in said
    same = "A and B are the same run: a layout compared with itself there cannot differ."
    assert same in said
    assert same in (tmp_path / "summary.md").read_text()
    assert "not interleaved" not in said
    lines = [line.split() for line in said.splitlines() if line.strip().startswith("1 MB reads")]
    assert [line[3:5] for line in lines] == [
        ["rgw-beast", "1"],
        ["rgw-beast", "32"],
        ["swift", "1"],
        ["swift", "32"],
    ]
    assert re.search(
        r"Of \d+ cells compared with A: "
        r"(\d+ (too small to matter|not significant|not comparable)(, )?)+\.",
        said,
    )
    assert set(outcomes(tmp_path / "junit.xml").values()) == {"passed"}
    table = MarkdownIt("gfm-like", {"linkify": False}).render((tmp_path / "summary.md").read_text())
    assert table.count("<tr>") > 8


def test_a_regression_exits_with_1_if_asked_about_and_an_improvement_does_not(
    run_folder: Path, earlier: tuple[str, ...]
) -> None:
    run(0, run_folder, run_folder, "--layouts", WORSE, *earlier)
    said = judged(1, run_folder, run_folder, "--layouts", WORSE, *earlier)
    assert "B is worse than A: " in said
    assert "rgw-beast (A) is " in said
    said = judged(0, run_folder, run_folder, "--layouts", BETTER, *earlier)
    assert "rgw-beast (B) is " in said
    assert "swift → rgw-beast" in said


@pytest.mark.parametrize(("named", "times"), [(0, "twice"), (1, "once")])
def test_without_two_earlier_runs_a_regression_is_neither_found_nor_ruled_out(
    run_folder: Path, earlier: tuple[str, ...], named: int, times: str
) -> None:
    said = judged(4, run_folder, run_folder, "--layouts", WORSE, *earlier[: 2 * named])
    assert (
        "Whether B is worse cannot be judged: that needs 3 runs of the same thing, A included, "
        "which show how far such runs differ." in said
    )
    assert f"Measure the same as A {times} more: weighbridge compare --suite made-up.yaml" in said
    assert "B is worse than A" not in said
    plain = run(0, run_folder, run_folder, "--layouts", WORSE, *earlier[: 2 * named])
    assert "provisional" in plain
    assert " worse" not in plain


@pytest.mark.long
def test_the_scatter_between_runs_is_part_of_every_interval(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    for name, history in (("alone", ()), ("known", earlier)):
        run(0, run_folder, run_folder, "--layouts", WORSE, *history, "--out", tmp_path / name)
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
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    cached = another(tmp_path / "cache", 5, cache="none")
    other = another(tmp_path / "settings", 6)
    plan = json.loads((other / "plan.resolved.json").read_text())
    plan["layouts"][1]["settings"] = {"proxy": {"workers": 4}}
    (other / "plan.resolved.json").write_text(json.dumps(plan))
    # The settings of B may differ: they are what is tried.
    run(0, run_folder, other, *earlier)
    one = {"layouts": ("swift",), "workloads": [SMALL]}
    lone = fake_run(tmp_path / "lone", telemetry=False, **one).folder
    unlike = "not an earlier run of the same thing as A:"
    for b, history, words in (
        (earlier[1], ("--history", run_folder), "is A and also given as an earlier run"),
        (earlier[1], earlier, "is B and also given as an earlier run"),
        (run_folder, (*earlier[:2], *earlier[:2]), "one of the earlier runs and also given as"),
        (run_folder, ("--history", cached), rf"{unlike} (.|\n)*cache"),
        (run_folder, ("--history", other), rf"{unlike}\n.*proxy\.workers"),
        (run_folder, ("--history", lone), "has no layout 'rgw-beast'"),
    ):
        with pytest.raises(UsageError, match=words):
            run(0, run_folder, b, *history)


def test_too_few_repeats_for_a_claim_do_not_pass_as_no_regression(tmp_path: Path) -> None:
    few = fake_run(tmp_path, workloads=[SMALL], repeats=2, telemetry=False).folder
    run(0, few, few)
    others = [another(tmp_path / str(seed), seed, repeats=2) for seed in (1, 2)]
    said = judged(4, few, few, "--history", others[0], "--history", others[1])
    assert "No comparison has 5 repeats on each side and no doubt" in said


def test_a_claimed_regression_exits_with_1_and_one_with_a_repeat_that_stalls_does_not_pass(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    said = judged(1, run_folder, slowed(run_folder, tmp_path / "b", ()), *earlier)
    assert "provisional" not in said
    slow = slowed(run_folder, tmp_path / "c", {2})
    assert "provisional" in judged(1, run_folder, slow, "--layouts", WORSE, *earlier)
    said = judged(4, run_folder, slow, *earlier)
    assert "B is worse than A" not in said
    open_cells = "Provisional or not comparable: 2 comparisons that A has results for."
    assert open_cells in said
    _, _, named = said.partition("B may be worse.")
    assert re.findall(r" with (\d+) workers.*caveat: ", named) == ["32", "32"]
    assert "1 of 5 repeats were not steady" in named
    run(0, run_folder, slow, *earlier)


def test_what_stalls_in_all_repeats_does_not_pass_unless_it_did_so_in_a(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    stalling = slowed(run_folder, tmp_path / "b", range(5))
    said = judged(4, run_folder, stalling, *earlier)
    assert "comparable in A and not in B: swift (B), 1 MB reads of small-read, 32 workers: " in said
    assert "Provisional or not comparable: 2 comparisons that A has" in said
    assert "cannot be compared with 32 workers" in said
    assert "not comparable" in judged(0, stalling, run_folder, *earlier)


def test_different_runs_are_refused_unless_accepted_and_reported(
    run_folder: Path, changed: Callable[..., Path]
) -> None:
    suite = json.loads((run_folder / "plan.resolved.json").read_text())["suite"]
    other = changed("plan.resolved.json", suite={**suite, "seed": 7})
    with pytest.raises(UsageError, match="seed: 2014 in A, 7 in B"):
        run(0, run_folder, other)
    said = run(0, run_folder, other, "--despite", "seed")
    assert "compared despite a difference: seed: 2014 in A, 7 in B" in said


def test_an_incomplete_run_is_reported_as_such_and_another_folder_is_refused(
    run_folder: Path, changed: Callable[..., Path], tmp_path: Path
) -> None:
    stopped = changed("manifest.json", state="interrupted")
    assert "interrupted: incomplete" in run(0, run_folder, stopped)
    with pytest.raises(UsageError, match="is not the folder of a run"):
        run(0, run_folder, tmp_path)


def test_effects_comparison_and_maps_are_written_to_the_output_folder(
    run_folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    said = run(0, run_folder, run_folder, "--layouts", BETTER, "--out", out)
    for name in ("effects.csv", "differences.csv", "recap-map.png", "recap-map.svg"):
        assert (out / name).is_file()
    assert json.loads((out / "comparison.json").read_text())["subjects"] == ["rgw-beast (B)"]
    assert str(out / "effects.csv") in said


def test_settings_that_only_one_layout_has_are_listed_or_counted_if_many(
    run_folder: Path, changed: Callable[..., Path]
) -> None:
    layouts = json.loads((run_folder / "plan.resolved.json").read_text())["layouts"]
    layouts[0]["settings"] = {"radosgw": {f"key-{number}": number for number in range(13)}}
    layouts[1]["settings"] = {"proxy": {"workers": 4}}
    said = run(0, run_folder, changed("plan.resolved.json", layouts=layouts))
    lines = [line.split() for line in said.splitlines()]
    assert ["rgw-beast", "recorded", "in", "one", "run", "only", "0", "13"] in lines
    assert ["swift", "proxy.workers", "not", "recorded", "4"] in lines


def test_a_layout_whose_hosts_could_do_less_in_b_is_not_compared(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    fast, slow = (attested(run_folder, tmp_path / str(value), value) for value in (1395, 245))
    said = judged(4, fast, slow, *earlier)
    differ = (
        "(hosts differ: CPU of gateway-1 gave 245 events/s under swift (B) and 1,395 "
        "events/s under swift (A) (82 % apart"
    )
    lines = [line for line in said.splitlines() if line.startswith("•")]
    assert [differ in line for line in lines] == ["swift" in line for line in lines]
    assert "Provisional or not comparable: 4 comparisons that A has" in said
    assert "Nothing could be compared." in run(4, fast, slow, "--layouts", "swift")
    near = attested(run_folder, tmp_path / "near", 1300)
    judged(0, fast, near, *earlier)
    # Rates of OSDs are a result.
    osds = (
        attested(run_folder, tmp_path / str(v), v, kind="osd", what="osd.0 write", unit="B/s")
        for v in (100e6, 400e6)
    )
    assert "hosts differ" not in run(0, *osds)


def test_an_earlier_run_on_different_hosts_gives_no_scatter(
    run_folder: Path, tmp_path: Path
) -> None:
    fast, slow = (attested(run_folder, tmp_path / str(value), value) for value in (1395, 245))
    before = attested(another(tmp_path / "runs", 1), tmp_path / "before", 245)
    with pytest.raises(
        UsageError, match="same thing as A: its hosts differ: CPU of gateway-1 gave "
    ):
        run(0, fast, fast, "--history", before)
    run(0, slow, slow, "--history", before)
    run(0, fast, fast, "--layouts", "rgw-beast", "--history", before)


def test_a_layout_that_was_attested_in_only_one_run_is_compared_provisionally(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    said = judged(4, attested(run_folder, tmp_path / "a", 1395), run_folder, *earlier)
    assert "swift (B) was not attested: whether its hosts were equal is unknown" in said
    assert "worse" not in said.partition("B may be worse")[0]


def asked(to: Path) -> tuple[str, ...]:
    return (
        *("--html", str(to / "deep" / "page.html")),
        *("--markdown", str(to / "summary.md")),
        *("--junit", str(to / "junit.xml")),
        *("--fail-on", "regression"),
    )


def outcomes(path: Path) -> dict[str, str]:
    """What became of each test of the XML: `failure`, `skipped`, `error` or `passed`."""
    return {
        f"{test.get('classname')}: {test.get('name')}": next(
            (one.tag for one in test if one.tag != "system-out"), "passed"
        )
        for test in ET.parse(path).getroot().iter("testcase")
    }


def test_a_regression_fails_its_tests_and_heads_page_and_summary(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    slow = slowed(run_folder, tmp_path / "b", ())
    said = run(1, run_folder, slow, *earlier, *asked(tmp_path))
    answer = next(line for line in said.splitlines() if line.startswith("B is worse"))
    page = (tmp_path / "deep" / "page.html").read_text()
    assert f"<h1>{answer}</h1>" in page
    assert 'data-spec="recap-map-throughput-0"' in page
    assert (tmp_path / "summary.md").read_text().startswith(f"### {answer}\n")
    found = outcomes(tmp_path / "junit.xml")
    swift = "swift (B) vs swift (A): throughput of 1 MB reads at"
    assert found[f"{swift} 32 workers"] == "failure"
    assert found[f"{swift} 1 worker"] == "passed"
    assert found["weighbridge compare-runs: verdict"] == "passed"
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("tests") == str(len(found))
    for name, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
        assert suite.get(name) == str(list(found.values()).count(tag))
    exits = [one.get("value") for one in suite.iter("property") if one.get("name") == "exit code"]
    assert exits == ["1"]


def test_what_could_not_be_judged_is_skipped_and_the_verdict_an_error(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    spoilt = StepFaults(absent=(("swift", "small-read", 32),))
    runs = tmp_path / "runs"
    broken = fake_run(runs, workloads=[SMALL], telemetry=False, spoilt=spoilt).folder
    said = run(4, run_folder, broken, *earlier, *asked(tmp_path))
    found = outcomes(tmp_path / "junit.xml")
    swift = "swift (B) vs swift (A): throughput of 1 MB reads at"
    assert found[f"{swift} 32 workers"] == "skipped"
    assert found["weighbridge compare-runs: verdict"] == "error"
    lost = "swift (B), 1 MB reads of small-read, 32 workers: not measured"
    for file in ("junit.xml", "summary.md", "deep/page.html"):
        assert lost in (tmp_path / file).read_text()
    assert f"comparable in A and not in B: {lost}" in said
    run(0, run_folder, broken)


def test_what_b_no_longer_measures_does_not_pass_as_no_regression_if_it_was_chosen(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    one = {"layouts": ("rgw-beast",), "workloads": [SMALL]}
    lone = fake_run(tmp_path / "lone", telemetry=False, **one).folder
    said = run(4, run_folder, lone, *earlier, *asked(tmp_path))
    answer = "Not measured in B: 2 cells that A has results for. B may be worse."
    assert answer in said
    found = outcomes(tmp_path / "junit.xml")
    assert {name: found[name] for name in found if name.startswith("swift")} == {
        "swift (A): 1 MB reads at 1 worker": "skipped",
        "swift (A): 1 MB reads at 32 workers": "skipped",
    }
    text = "swift (A), 1 MB reads of small-read, 32 workers: B has no result of it"
    for file in ("junit.xml", "summary.md", "deep/page.html"):
        assert text in (tmp_path / file).read_text()
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("skipped")) == (str(len(found)), "2")
    said = judged(0, run_folder, lone, *earlier, "--layouts", "rgw-beast")
    assert "swift" not in said.partition("Of ")[2]
    fewer = [SMALL.model_copy(update={"workers": (1,)})]
    less = fake_run(tmp_path / "less", workloads=fewer, telemetry=False).folder
    said = judged(4, run_folder, less, *earlier, "--despite", "all")
    assert "swift (A), 1 MB reads of small-read, 32 workers: B has no result of it" in said


def test_summaries_without_an_opinion_on_regressions_have_only_open_tests(
    run_folder: Path, tmp_path: Path
) -> None:
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    run(0, run_folder, run_folder, "--junit", junit, "--markdown", summary)
    assert summary.read_text().startswith("### Of ")
    assert set(outcomes(tmp_path / "junit.xml").values()) == {"skipped"}
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("skipped") == suite.get("tests")


def test_what_a_passed_test_says_and_what_was_allowed_to_differ_are_in_the_xml(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    other = another(tmp_path / "other", 3, cache="none")
    run(0, run_folder, other, *earlier, "--despite", "cache", "--junit", tmp_path / "junit.xml")
    root = ET.parse(tmp_path / "junit.xml").getroot()
    (allowed,) = (one for one in root.iter("property") if one.get("name") == "compared despite")
    assert (allowed.get("value") or "").startswith("cache: ")
    said = [one.text for one in root.iter("system-out")]
    assert said
    assert any("No difference found" in (text or "") for text in said)


def test_texts_of_runs_are_inert_in_all_summaries_and_make_no_links_and_no_mentions(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    hostile = "</h1><script>alert(1)</script>\x00\x1b[31m|`* @admin http://evil.example a@evil"
    bad = another(tmp_path / "bad", 3)
    manifest = json.loads((bad / "manifest.json").read_text())
    manifest["run_id"] = f"{hostile} WWW.evil.example _www.evil.example"
    (bad / "manifest.json").write_text(json.dumps(manifest))
    run(0, run_folder, bad, *earlier, *asked(tmp_path))
    assert "<script>alert" not in (tmp_path / "deep" / "page.html").read_text()
    summary = (tmp_path / "summary.md").read_text()
    assert "evil" in summary
    for live in ("<script>", "\x1b", "@admin", "://", "WWW.", "www.", "a@evil"):
        assert live not in summary
    properties = ET.parse(tmp_path / "junit.xml").getroot().iter("property")
    (named,) = (one.get("value") or "" for one in properties if one.get("name") == "b")
    assert named.startswith("</h1><script>alert(1)</script>\\x00\\x1b[31m|`* @admin")


def test_summaries_that_would_overwrite_each_other_or_a_run_are_refused_before_anything(
    run_folder: Path, tmp_path: Path
) -> None:
    other = another(tmp_path / "b", 1)
    manifest = (other / "manifest.json").read_text()
    link = tmp_path / "link"
    link.symlink_to(other)
    same, out, edited = tmp_path / "same", tmp_path / "out", tmp_path / "edited.html"
    edited.touch()
    for arguments, fault in (
        (("--junit", same, "--markdown", tmp_path / "x" / ".." / "same"), "--junit .*is also --m"),
        (("--junit", link / "manifest.json"), "manifest.json: is in the folder of the run"),
        (("--html", other / "derived" / "page.html"), "--html .*is in the folder of the run"),
        (("--markdown", out / "effects.csv", "--out", out), "is also effects.csv of --out"),
        (("--html", edited), "edited.html: exists already"),
    ):
        with pytest.raises(UsageError, match=fault):
            run(0, run_folder, other, *arguments)
    assert (other / "manifest.json").read_text() == manifest
    assert not same.exists()
    assert not out.exists()
