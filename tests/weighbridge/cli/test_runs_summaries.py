"""Page, Markdown and JUnit of `weighbridge compare-runs`, with made-up runs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from fake_run import StepFaults, fake_run
from tests.weighbridge.cli.compared_runs import SMALL, another, run, slowed
from weighbridge.common.errors import UsageError


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[SMALL], telemetry=False).folder


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Arguments that name two earlier runs of the same thing as `run_folder`."""
    folders = [another(tmp_path_factory.mktemp("runs"), seed) for seed in (1, 2)]
    return tuple(part for folder in folders for part in ("--history", str(folder)))


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
    done = run(run_folder, slow, *earlier, *asked(tmp_path))
    assert done.return_value == 1
    answer = next(line for line in done.output.splitlines() if line.startswith("B is worse"))
    page = (tmp_path / "deep" / "page.html").read_text()
    assert f"<h1>{answer}</h1>" in page
    assert 'data-spec="recap-map-throughput"' in page
    assert (tmp_path / "summary.md").read_text().startswith(f"### {answer}\n")
    found = outcomes(tmp_path / "junit.xml")
    swift = "swift (B) vs swift (A): throughput of 1 MB reads at"
    assert found[f"{swift} 32 workers"] == "failure"
    assert found[f"{swift} 1 worker"] == "passed"
    assert found["weighbridge compare-runs: verdict"] == "passed"
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    counts = {name: int(suite.get(name, "")) for name in ("tests", "failures", "skipped", "errors")}
    assert counts["tests"] == len(found)
    for name, tag in (("failures", "failure"), ("skipped", "skipped"), ("errors", "error")):
        assert counts[name] == list(found.values()).count(tag)
    exits = [one.get("value") for one in suite.iter("property") if one.get("name") == "exit code"]
    assert exits == ["1"]


def test_what_could_not_be_judged_is_skipped_and_the_verdict_an_error(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    broken = fake_run(
        tmp_path / "runs",
        workloads=[SMALL],
        telemetry=False,
        spoilt=StepFaults(absent=(("swift", "small-read", 32),)),
    ).folder
    done = run(run_folder, broken, *earlier, *asked(tmp_path))
    assert done.return_value == 4
    found = outcomes(tmp_path / "junit.xml")
    swift = "swift (B) vs swift (A): throughput of 1 MB reads at"
    assert found[f"{swift} 32 workers"] == "skipped"
    assert found["weighbridge compare-runs: verdict"] == "error"
    lost = "swift (B), small-read, 32 workers: not measured"
    assert lost in (tmp_path / "junit.xml").read_text()
    assert lost in (tmp_path / "deep" / "page.html").read_text()
    assert lost in (tmp_path / "summary.md").read_text()


def test_equal_runs_pass_all_tests(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    done = run(run_folder, run_folder, *earlier, *asked(tmp_path))
    assert done.return_value == 0
    assert set(outcomes(tmp_path / "junit.xml").values()) == {"passed"}
    table = MarkdownIt("gfm-like", {"linkify": False}).render((tmp_path / "summary.md").read_text())
    assert table.count("<tr>") > 8


@pytest.fixture
def lone(tmp_path: Path) -> Path:
    """A run of the same plan without swift."""
    return fake_run(
        tmp_path / "lone", layouts=("rgw-beast",), workloads=[SMALL], telemetry=False
    ).folder


def test_what_b_no_longer_measures_does_not_pass_as_no_regression(
    run_folder: Path, earlier: tuple[str, ...], lone: Path, tmp_path: Path
) -> None:
    done = run(run_folder, lone, *earlier, *asked(tmp_path))
    assert done.return_value == 4
    answer = "Not measured in B: 2 cells that A has results for. B may be worse."
    assert answer in done.output
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


def test_layouts_that_were_not_chosen_are_not_missing(
    run_folder: Path, earlier: tuple[str, ...], lone: Path
) -> None:
    chosen = ("--layouts", "rgw-beast", "--fail-on", "regression")
    done = run(run_folder, lone, *earlier, *chosen)
    assert (done.return_value, "swift" in done.output.partition("Of ")[2]) == (0, False)


def test_a_worker_count_that_b_lacks_does_not_pass_as_no_regression(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    fewer = [SMALL.model_copy(update={"workers": (1,)})]
    less = fake_run(tmp_path / "less", workloads=fewer, telemetry=False).folder
    done = run(run_folder, less, *earlier, "--despite", "all", "--fail-on", "regression")
    assert done.return_value == 4
    assert "swift (A), 1 MB reads of small-read, 32 workers: B has no result of it" in done.output


def test_a_verdict_of_open_tests_alone_is_skipped_too(run_folder: Path, tmp_path: Path) -> None:
    run(run_folder, run_folder, "--junit", tmp_path / "junit.xml")
    assert set(outcomes(tmp_path / "junit.xml").values()) == {"skipped"}
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("skipped") == suite.get("tests")


def test_what_a_passed_test_says_and_what_was_allowed_to_differ_are_in_the_xml(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    other = another(tmp_path / "other", 3, cache="none")
    run(run_folder, other, *earlier, "--despite", "cache", "--junit", tmp_path / "junit.xml")
    root = ET.parse(tmp_path / "junit.xml").getroot()
    (allowed,) = (one for one in root.iter("property") if one.get("name") == "compared despite")
    assert (allowed.get("value") or "").startswith("cache: ")
    said = [one.text for one in root.iter("system-out")]
    assert said
    assert any("No difference found" in (text or "") for text in said)


def test_summaries_are_written_without_an_opinion_on_regressions(
    run_folder: Path, tmp_path: Path
) -> None:
    done = run(run_folder, run_folder, "--markdown", tmp_path / "summary.md")
    assert done.return_value == 0
    assert (tmp_path / "summary.md").read_text().startswith("### Of ")


def test_texts_of_runs_are_inert_in_all_summaries(
    run_folder: Path, earlier: tuple[str, ...], tmp_path: Path
) -> None:
    bad = another(tmp_path / "bad", 3)
    manifest = json.loads((bad / "manifest.json").read_text())
    manifest["run_id"] = "</h1><script>alert(1)</script>\x00\x1b[31m|`*"
    (bad / "manifest.json").write_text(json.dumps(manifest))
    assert run(run_folder, bad, *earlier, *asked(tmp_path)).return_value == 0
    assert "<script>alert" not in (tmp_path / "deep" / "page.html").read_text()
    summary = (tmp_path / "summary.md").read_text()
    assert "<script>" not in summary
    assert "\x1b" not in summary
    named = [
        one.get("value")
        for one in ET.parse(tmp_path / "junit.xml").getroot().iter("property")
        if one.get("name") == "b"
    ]
    assert named == ["</h1><script>alert(1)</script>\\x00\\x1b[31m|`*"]


def test_summaries_that_would_overwrite_each_other_or_a_run_are_refused_before_anything(
    run_folder: Path, tmp_path: Path
) -> None:
    other = another(tmp_path / "b", 1)
    manifest = (other / "manifest.json").read_text()
    link = tmp_path / "link"
    link.symlink_to(other)
    same, out = tmp_path / "same", tmp_path / "out"
    for arguments, fault in (
        (("--junit", same, "--markdown", tmp_path / "x" / ".." / "same"), "--junit .*is also --m"),
        (("--junit", link / "manifest.json"), "--junit .*is in the folder of the run"),
        (("--html", other / "derived" / "page.html"), "--html .*is in the folder of the run"),
        (("--markdown", out / "effects.csv", "--out", out), "is also effects.csv of --out"),
    ):
        with pytest.raises(UsageError, match=fault):
            run(run_folder, other, *arguments)
    assert (other / "manifest.json").read_text() == manifest
    assert not same.exists()
    assert not out.exists()


def test_names_of_runs_make_no_links_and_no_mentions(run_folder: Path, tmp_path: Path) -> None:
    bad = another(tmp_path / "bad", 3)
    manifest = json.loads((bad / "manifest.json").read_text())
    manifest["run_id"] = (
        "@admin http://evil.example WWW.evil.example _www.evil.example a@evil.example"
    )
    (bad / "manifest.json").write_text(json.dumps(manifest))
    run(run_folder, bad, "--markdown", tmp_path / "summary.md")
    summary = (tmp_path / "summary.md").read_text()
    assert "evil" in summary
    for live in ("@admin", "://", "WWW.", "www.", "a@evil"):
        assert live not in summary
