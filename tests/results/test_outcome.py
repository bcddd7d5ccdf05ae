from __future__ import annotations

import io
import json
import re
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fake_run import WORKLOADS, StepFaults, fake_run
from fake_tuning import OBJECTIVES, FakeCourse, fake_tuning
from fake_tuning import WORKLOADS as STEPS
from made_cuts import dead_cut, kept_cuts, made_cut, record_made_cuts
from made_rows import present
from talks import deck_of, slide
from weighbridge.command import weighbridge
from weighbridge.common.errors import UsageError
from weighbridge.results import derive
from weighbridge.results.derivation import Derived
from weighbridge.results.features.durability import durability_of, durability_section
from weighbridge.results.features.tuning.tuning_result import setting_results
from weighbridge.results.figures.summary import Row
from weighbridge.results.outcome import print_outcome, print_section
from weighbridge.results.run.durability import PowerCut
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.query import QueryResult, answer_csv, answer_json, answer_text
from weighbridge.results.show.terminal import InertConsole

SMALL = WORKLOADS[0].model_copy(update={"workers": (1, 32), "runtime": 2.0})


def derived_run(runs: Path, **how: Any) -> Derived:
    """What is derived of a made-up run, of small reads unless it is said how."""
    return derive(fake_run(runs, **{"workloads": [SMALL], **how}).folder, pictures=False)


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    return derived_run(tmp_path_factory.mktemp("runs"), repeats=1)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    return derived_run(tmp_path_factory.mktemp("runs"), repeats=1, driver="locust,cosbench")


def printed(derived: Derived, width: int) -> list[str]:
    screen = io.StringIO()
    print_outcome(derived, InertConsole(width=width, file=screen))
    return screen.getvalue().splitlines()


def beginning(lines: list[str], *words: str) -> list[str]:
    return [line for line in lines if line.split()[: len(words)] == [*words]]


@pytest.mark.parametrize(
    ("width", "lacking"), [(70, "limited by, p50 ms, MB/s"), (80, "limited by"), (120, "")]
)
def test_a_narrow_terminal_has_one_table_that_says_what_it_lacks_and_cuts_no_names(
    derived: Derived, width: int, lacking: str
) -> None:
    lines = printed(derived, width)
    assert len(beginning(lines, "small-read", "swift", "32", "a")) == 1
    (at,) = [at for at, line in enumerate(lines) if line.startswith("workload")]
    assert lines[at].split()[:4] == ["workload", "layout", "workers", "caveat"]
    head = f"{lines[at - 1]} {lines[at]}".split()  # units may stand below
    shown = {"op/s", "MB/s", "p50", "p90", "max", "errors", "limited"}
    assert shown - {*head} == {title for title in shown if title in lacking}
    said = [line for line in lines if line.startswith("Not shown for want of room")]
    assert said == [f"Not shown for want of room: {lacking}. See the report."] * bool(lacking)
    assert not [line for line in lines if "…" in line and not line.startswith("•")]


def test_the_driver_has_a_column_only_where_there_are_two(derived: Derived, both: Derived) -> None:
    lines = printed(derived, 140)
    assert not [line for line in lines if "driver" in line.split()]
    (line,) = beginning(lines, "small-read", "rgw-beast", "32")
    assert "gateway-1 CPU" in line  # what limited it, on a wide terminal
    lines = printed(both, 150)
    assert [line.split()[:3] for line in lines if line.startswith("workload")] == [
        ["workload", "driver", "layout"]
    ]
    assert len(beginning(lines, "small-read", "COSBench", "swift", "32")) == 1
    # Bins are shown as intervals, and how far two drivers agree in a sentence.
    (line,) = beginning(lines, "small-read", "COSBench", "rgw-beast", "1")
    assert "(0, 10]" in line
    agree = "• Locust and COSBench agree within the bins in "
    assert any(line.startswith(agree) for line in lines)


def with_rows(derived: Derived, *rows: Row) -> Derived:
    data = copy(derived.data)
    data.__dict__["rows"] = rows
    return replace(derived, data=data)


def test_the_reason_for_an_invalid_step_leaves_out_remarks_on_its_driver(derived: Derived) -> None:
    remark, full = "means are 0.5 ms low", "the driver used 87% of its CPU limit"
    notes = ("not valid", full, "the driver's CPU is not known", remark)
    first = derived.data.rows[0]
    points = tuple(point.model_copy(update={"remarks": (remark,)}) for point in first.points)
    spoilt = first.model_copy(update={"valid": False, "notes": notes, "points": points})
    why = {"valid": False, "notes": ("no COSBench there\nName its folder.",)}
    lost = first.model_copy(update={**why, "points": (), "workers": 9})
    changed = with_rows(derived, spoilt, lost)
    assert [line for line in printed(changed, 200) if " not valid: " in line] == [
        f"{mark}  not valid: {words} ({where})"
        for mark, words, where in (
            ("a", full, "rgw-beast: 1 MB reads at 1 worker"),
            ("b", "no COSBench there", "rgw-beast: 1 MB reads at 9 workers"),
        )
    ]


def test_verdicts_are_counted_and_a_missing_noise_floor_is_reported(tmp_path: Path) -> None:
    text = "\n".join(printed(derived_run(tmp_path, telemetry=False), 140))
    assert "Of 8 cells of swift compared with rgw-beast: " in text
    assert text.splitlines()[0] == "RGW is 1.5× as fast as Swift at 1 MB reads (Swift API)."
    assert "How far runs of this machine differ is not known: compare --aa measures it." in text
    assert "saturated" not in text  # no telemetry, and no empty columns for it


def test_doubts_are_said_once_and_named_by_their_letters_after_that(tmp_path: Path) -> None:
    lines = printed(derived_run(tmp_path, repeats=2, telemetry=False), 400)
    assert any(line.startswith("a  provisional: few repeats: a claim needs 5") for line in lines)
    (finding,) = [line for line in lines if line.startswith("• ")]
    assert finding.endswith("; n = 2; caveat: see a.")


def with_control(store: RunStore) -> Derived:
    """What is derived of a run in which swift-again is the control of swift."""
    path = store.folder / "plan.resolved.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "twins": {"swift-again": "swift"}}))
    return derive(store.folder, pictures=False)


def test_a_layout_compared_with_itself_gives_a_noise_floor_and_no_finding(tmp_path: Path) -> None:
    store = fake_run(tmp_path, layouts=["swift", "swift-again"], workloads=[SMALL], telemetry=False)
    derived = with_control(store)
    assert derived.comparable
    text = "\n".join(printed(derived, 140))
    # The made-up control is the slower of two layouts: an A/A control with a difference shows that
    # something is wrong.
    said = re.search(
        "A/A control: swift measured again gave (.*) of its own throughput, (.*);", text
    )
    assert said is not None
    assert said[2] == "which is not the same"
    assert "•" not in text
    assert "A/A control: swift measured again gave " in derived.report.read_text()
    assert "not measured: compare --aa" not in text


def test_a_failed_control_is_not_reported_as_missing(tmp_path: Path) -> None:
    absent = tuple(("swift-again", "small-read", workers) for workers in SMALL.workers)
    layouts, spoilt = ["swift", "rgw-beast", "swift-again"], StepFaults(absent=absent)
    store = fake_run(tmp_path, layouts=layouts, workloads=[SMALL], telemetry=False, spoilt=spoilt)
    derived = with_control(store)
    said = (
        "The noise floor of this machine is unknown: swift-again, the A/A control of swift, "
        "could not be used (swift-again: not measured)"
    )
    sure = slide(deck_of(store), "How sure")
    shown = "\n".join(printed(derived, 140))
    for text in (shown, derived.report.read_text(), "\n".join(sure.notes)):
        assert said in text
        for denied in ("compare --aa", "no A/A control was measured"):
            assert denied not in text


def test_a_row_that_was_not_steady_is_shown_as_not_ranked_with_the_reason(derived: Derived) -> None:
    falls = "not steady: throughput falls by 30 % over the window"
    rows = tuple(
        row.model_copy(update={"steady": False, "notes": ("not steady", falls)})
        if (row.layout, row.workers) == ("swift", 32)
        else row
        for row in derived.data.rows
    )
    changed = with_rows(derived, *rows)
    assert f"a  not comparable: {falls} (swift: 1 MB reads at 32 workers)" in printed(changed, 140)


WRITES = WORKLOADS[1].model_copy(update={"workers": (1, 32), "runtime": 2.0})


@pytest.fixture(scope="module")
def with_cuts(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    layouts = ("rgw-beast", "swift", "rgw")
    runs = tmp_path_factory.mktemp("runs")
    store = fake_run(runs, layouts=layouts, workloads=[WRITES], repeats=1)
    record_made_cuts(store.folder)
    return derive(store.folder, pictures=False)


def printed_cuts(*cuts: PowerCut, width: int = 120) -> str:
    screen = io.StringIO()
    print_section(durability_section(durability_of(cuts)), InertConsole(width=width, file=screen))
    return screen.getvalue()


def test_the_table_has_stores_first_then_controls_and_only_findings_that_there_are() -> None:
    text = printed_cuts(*kept_cuts(not_listed=2), made_cut("swift", 1, torn=1))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        "Layout Verdict Cuts Served after Acknowledged Lost Torn Not listed Serves after, s",
        "rgw-beast kept 20 20 2,000 0 0 40 in 20 cuts 22",
        "swift lost 1 1 100 0 1 in 1 cut 0 13",
        "rgw-beast, control lost 2 2 200 200 in 2 cuts 0 0 14",
    ):
        assert line in lines
    assert text.index("swift") < text.index("rgw-beast, control")


def test_a_sentence_for_each_layout_follows_and_why_a_store_did_not_serve() -> None:
    text = printed_cuts(made_cut(), dead_cut(number=2, why_not="osd\x1b[31m died"))
    assert "• rgw-beast did not serve after 1 of 2 power cuts under load" in text
    assert "rgw-beast, cut 2: osd" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("width", [80, 100, 150])
def test_the_outcome_of_a_run_has_the_cuts_that_lost_beside_each_write(
    with_cuts: Derived, derived: Derived, width: int
) -> None:
    assert "cuts" not in "\n".join(printed(derived, 150))
    shown = printed(with_cuts, width)
    lines = [line for line in shown if line.startswith(" write") or "-write" in line]
    assert [line for line in lines if "swift" in line and "3 of 20" in line]
    assert [line for line in lines if " rgw " in line and "not tried" in line]
    assert not [line for line in lines if "rgw" in line and "…" in line]
    text = "\n".join(shown)
    assert "not durable: lost acknowledged writes in 3 of 20 power cuts" in text
    assert "What survives a power cut" in text


ANSWER = QueryResult(
    columns=("name", "share", "texts"),
    lines=(
        ("a\x1b[31m\nb", 1234.56789, ["x", None]),
        (None, float("inf"), []),
        ("世界", -0.5, None),
    ),
)


def test_a_text_answer_is_aligned_and_has_no_control_characters() -> None:
    head, rule, first, second, third, footer = answer_text(ANSWER).splitlines()
    assert head.split() == ["name", "share", "texts"]
    assert set(rule) == {"-", " "}
    assert first == r'a\x1b[31m\nb  1,234.57  ["x", null]'
    assert second.split() == ["–", "inf", "[]"]
    # Two characters are two columns wide each.
    assert third.index("-0.5") + len("-0.5") + 2 == first.index("57") + len("57")
    assert footer == "(3 lines)"


def test_an_answer_for_programs_is_exact_with_null_for_missing_numbers() -> None:
    found = json.loads(answer_json(ANSWER))
    assert found[0] == {"name": "a\x1b[31m\nb", "share": 1234.56789, "texts": ["x", None]}
    assert found[1]["share"] is None
    assert (
        answer_csv(QueryResult(columns=("a", "b", "c"), lines=((0.1 + 0.2, None, True),)))
        == "a,b,c\n0.30000000000000004,,true\n"
    )


def test_an_empty_answer_says_so_and_json_with_two_columns_of_one_name_is_refused() -> None:
    with pytest.raises(UsageError, match="two columns are named a"):
        answer_json(QueryResult(columns=("a", "b", "a"), lines=((1, 2, 3),)))
    answer = QueryResult(columns=("layout",), lines=())
    assert answer_text(answer) == "layout\n------\n(0 lines)\n"
    assert answer_json(answer) == "[]\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return fake_tuning(tmp_path_factory.mktemp("tunings"))


@pytest.fixture(scope="module")
def tuned(run: RunStore) -> Derived:
    return derive(run.folder, pictures=False)


@pytest.mark.long
def test_the_table_of_trials_fits_a_terminal_of_100_columns(tuned: Derived) -> None:
    text = "\n".join(printed(tuned, 100))
    assert max(map(len, text[: text.index("• ")].splitlines()[1:])) <= 100
    assert "…" not in text
    for entry in present(setting_results(tuned.data)).entries:
        assert entry.verdict in text


def test_winner_confirmation_and_settings_without_effect_are_sentences(tuned: Derived) -> None:
    text = "\n".join(printed(tuned, 100))
    assert "• Chosen: radosgw.max_concurrent_requests 1024 → 64." in text
    assert "• Confirmed on fresh deployments: " in text
    assert (
        "Of 17 settings: no effect was found for 8; the effect of 1 is too small to matter." in text
    )
    assert re.search(r"processor_period 3600 → 600 .* ~ not significant ", text)
    assert "the baseline fell by" in text
    assert str(tuned.folder / "winner" / "ceph.conf") in text


def test_one_objective_has_its_interval_and_a_tuning_cut_off_chose_nothing(tmp_path: Path) -> None:
    course = FakeCourse(rounds=5, choose=False)
    one = fake_tuning(tmp_path, course, objectives=OBJECTIVES[:1], workloads=STEPS[:1])
    text = "\n".join(printed(derive(one.folder, pictures=False), 100))
    assert "(+" in text
    assert max(map(len, text[: text.index("• ")].splitlines()[1:])) <= 100
    cut = fake_tuning(tmp_path, FakeCourse(rounds=1, state="interrupted", choose=False))
    shown = "\n".join(printed(derive(cut.folder, pictures=False), 100))
    assert "No setting has been chosen yet." in shown


@pytest.mark.parametrize(
    ("verb", "options", "shown"),
    [
        ("report", "--no-charts", "ledger  "),
        ("slides", "", "slides.pptx"),
        ("charts", "--list", "tornado-p90: "),
        ("export", "--to csv --table ledger --out -", "run,tuning,arm"),
    ],
)
@pytest.mark.long
def test_every_verb_about_runs_takes_the_run_of_a_tuning(
    run: RunStore, verb: str, options: str, shown: str
) -> None:
    done = CliRunner().invoke(weighbridge, [verb, str(run.folder), *options.split()])
    assert done.exit_code == 0, done.output
    assert shown in done.output
