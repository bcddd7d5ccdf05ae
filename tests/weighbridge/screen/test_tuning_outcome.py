from __future__ import annotations

import io
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from fake_tuning import OBJECTIVES, FakeCourse, fake_tuning
from fake_tuning import WORKLOADS as STEPS
from weighbridge.command import weighbridge
from weighbridge.results.derivation import Derived, derive
from weighbridge.results.record.store import RunStore
from weighbridge.screen.outcome import print_outcome


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    return fake_tuning(tmp_path_factory.mktemp("tunings"))


@pytest.fixture(scope="module")
def derived(run: RunStore) -> Derived:
    return derive(run.folder, pictures=False)


def printed(derived: Derived, width: int = 100) -> str:
    out = io.StringIO()
    print_outcome(derived, Console(file=out, width=width))
    return out.getvalue()


def test_the_table_of_trials_fits_a_terminal_of_100_columns(derived: Derived) -> None:
    text = printed(derived)
    table = text[: text.index("failed: ")].splitlines()[1:]
    assert max(map(len, table)) <= 100
    assert "…" not in text
    assert derived.tuned is not None
    for entry in derived.tuned.table.entries:
        assert entry.verdict in text


def test_winner_confirmation_and_settings_without_effect_are_sentences(derived: Derived) -> None:
    text = printed(derived)
    assert "▲ Chosen: radosgw.max_concurrent_requests 1024 → 64." in text
    assert "▲ Confirmed on fresh deployments: " in text
    assert (
        "Of 17 settings: no effect was found for 8; the effect of 1 is too small to matter." in text
    )
    assert "~ radosgw.gc.processor_period 3600 → 600: " in text
    assert "the baseline fell by" in text
    assert str(derived.folder / "winner" / "ceph.conf") in text


def test_a_wide_terminal_shows_intervals_and_restarts(derived: Derived) -> None:
    text = printed(derived, 180)
    assert "new buckets" in text
    assert "radosgw.index_shards 11 → 1 " in text
    assert " to +" in text


def test_one_objective_has_its_interval_on_any_terminal(tmp_path: Path) -> None:
    course = FakeCourse(rounds=5, choose=False)
    one = fake_tuning(tmp_path, course, objectives=OBJECTIVES[:1], workloads=STEPS[:1])
    text = printed(derive(one.folder, pictures=False))
    assert "(+" in text
    assert max(map(len, text[: text.index("failed: ")].splitlines()[1:])) <= 100


def test_a_tuning_that_was_cut_off_chose_nothing_yet(tmp_path: Path) -> None:
    cut = fake_tuning(tmp_path, FakeCourse(rounds=1, state="interrupted", choose=False))
    assert "No setting has been chosen yet." in printed(derive(cut.folder, pictures=False))


@pytest.mark.parametrize(
    "words",
    [
        ("report", "--no-charts"),
        ("slides",),
        ("charts", "--list"),
        ("export", "--to", "csv", "--table", "ledger", "--out", "-"),
    ],
    ids=lambda words: words[0],
)
def test_every_verb_about_runs_takes_the_run_of_a_tuning(
    run: RunStore, words: tuple[str, ...]
) -> None:
    verb, *rest = words
    done = CliRunner().invoke(weighbridge, [verb, str(run.folder), *rest])
    assert done.exit_code == 0, done.output
    assert {
        "report": "ledger  ",
        "slides": "slides.pptx",
        "charts": "tornado-p90: ",
        "export": "run,tuning,arm",
    }[verb] in done.output
