"""What survived power cuts on a terminal."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_cuts import dead_cut, kept_cuts, made_cut, record_made_cuts
from weighbridge.results import derive
from weighbridge.results.analysis.durability import durability_of
from weighbridge.results.derivation import Derived
from weighbridge.results.record.durability import PowerCut
from weighbridge.screen.outcome import print_durability, print_outcome
from weighbridge.screen.terminal import InertConsole

WRITES = WORKLOADS[1].model_copy(update={"workers": (1, 32), "runtime": 2.0})


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> Derived:
    store = fake_run(
        tmp_path_factory.mktemp("runs"),
        layouts=("rgw-beast", "swift", "rgw"),
        workloads=[WRITES],
        repeats=1,
    )
    record_made_cuts(store.folder)
    return derive(store.folder, pictures=False)


def printed(*cuts: PowerCut, width: int = 120) -> str:
    screen = io.StringIO()
    print_durability(durability_of(cuts), InertConsole(width=width, file=screen))
    return screen.getvalue()


def test_the_table_has_stores_first_then_controls_and_only_findings_that_there_are() -> None:
    text = printed(*kept_cuts(not_listed=2), made_cut("swift", 1, torn=1))
    lines = [line.split() for line in text.splitlines()]
    head = text.splitlines()[2]
    assert "lost" in head
    assert "torn" in head
    assert "not listed" in head
    assert "stale" not in head
    assert ["rgw-beast", "kept", "20", "20", "2,000", "0", "0", "40", "22"] in lines
    assert ["swift", "lost", "1", "1", "100", "0", "1", "0", "13"] in lines
    assert ["rgw-beast,", "control", "lost", "2", "2", "200", "200", "0", "0", "14"] in lines
    assert text.index("swift") < text.index("rgw-beast, control")


def test_a_sentence_for_each_layout_follows_and_why_a_store_did_not_serve() -> None:
    text = printed(made_cut(), dead_cut(number=2, why_not="osd\x1b[31m died"))
    assert "• rgw-beast did not serve after 1 of 2 power cuts under load" in text
    assert "rgw-beast, cut 2: osd" in text
    assert "\x1b" not in text


def test_nothing_is_printed_where_no_power_was_cut() -> None:
    assert not printed()


@pytest.mark.parametrize("width", [80, 100, 150])
def test_the_outcome_of_a_run_has_the_cuts_that_lost_beside_each_write(
    derived: Derived, width: int
) -> None:
    screen = io.StringIO()
    print_outcome(derived, InertConsole(width=width, file=screen))
    text = screen.getvalue()
    lines = [line for line in text.splitlines() if line.startswith(" write") or "-write" in line]
    assert [line for line in lines if "swift" in line and "3 of 20" in line]
    assert [line for line in lines if " rgw " in line and "not tried" in line]
    assert not [line for line in lines if "rgw" in line and "…" in line]
    heads = [line for line in text.splitlines() if line.startswith("workload")]
    assert any("cuts that lost" in line and "op/s" not in line for line in heads) == (width == 80)
    assert "not durable: lost acknowledged writes in 3 of 20 power cuts" in text
    assert "What survives power cuts:" in text


def test_the_outcome_of_a_run_without_power_cuts_has_no_such_column(tmp_path: Path) -> None:
    made = derive(
        fake_run(tmp_path, workloads=[WRITES], repeats=1, telemetry=False).folder, pictures=False
    )
    screen = io.StringIO()
    print_outcome(made, InertConsole(width=150, file=screen))
    assert "cuts" not in screen.getvalue()
