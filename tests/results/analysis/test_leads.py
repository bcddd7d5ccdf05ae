"""Findings over several layouts and worker counts: who leads, and effects as CSV."""

from __future__ import annotations

from compared_rows import FIVE, GRAVE, MILD, WIDE, cell, row, times
from made_rows import altered
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.findings import find, headline
from weighbridge.results.doubt import Doubt, PairDoubt
from weighbridge.results.export.effects import effects_csv

ABOVE = Doubt(what="above its ceiling", grade="grave", words="more than the disks can do")


def test_between_two_layouts_that_were_both_compared_with_a_third_a_lead_needs_their_own_test() -> (
    None
):
    rows = [
        row("a", rates=times(100)),
        row("b", rates=times(150, WIDE)),
        row("c", rates=times(165, WIDE[::-1])),
    ]
    assert headline(find(rows)) == "No layout leads: 1 too close to call"
    rows = [row("a", rates=times(100)), row("b", rates=times(150)), row("c", rates=times(165))]
    assert headline(find(rows)) == "c leads in the requests replayed, by 1.1×"


def test_the_csv_of_effects_has_empty_cells_for_unknowns() -> None:
    lines = effects_csv(
        compare([row("a"), row("b", rates=times(2.0)), row("c", rates=())])
    ).splitlines()
    assert len(lines) == 1 + 2 * 2 * 2
    head = lines[0].split(",")
    better, lost = (dict(zip(head, lines[number].split(","), strict=False)) for number in (2, 6))
    assert better["workers"] == "8"
    assert (better["ratio"], better["repeats"], better["verdict"]) == ("2", "5", "better")
    assert float(better["p"]) < 1e-6
    assert (lost["ratio"], lost["p"], lost["verdict"]) == ("", "", "not comparable")


def test_a_lead_over_a_runner_up_is_decided_by_those_two_layouts() -> None:
    differ = Doubt(what="hosts differ", grade="grave", words="CPU of gateway-1")
    rows = [row("a"), row("b", rates=times(1.5)), row("c", rates=times(2.1))]
    assert headline(find(rows)) == "c leads in the requests replayed, by 1.4×"
    apart = find(rows, between=[PairDoubt(layouts=("b", "c"), doubt=differ)])
    assert headline(apart) == "No layout leads: 1 too close to call"
    # A difference within the noise is no lead, between any two layouts.
    near = [row(name, rates=times(of)) for name, of in (("a", 1), ("b", 2), ("c", 2.2), ("t", 1.1))]
    assert headline(find(near, {"t": "a"})) == "No layout leads: 1 too close to call"


def test_an_incomparable_layout_is_named_and_leaves_others_alone() -> None:
    gone = [row("a"), row("b", rates=times(5.0), valid=False), row("c", rates=times(2.0))]
    assert (
        headline(find(gone)) == "c leads in the requests replayed, by 2.0×, b could not be compared"
    )
    doubted = [row("a"), row("b", doubts=(MILD,)), row("c", rates=times(2.0))]
    assert headline(find(doubted)) == "c leads in the requests replayed, by 2.0×"


def test_comparable_at_some_worker_counts_is_provisional_over_all() -> None:
    twice = row("b", 1, times(2.0))
    rows = [row("a", 1), twice, row("a", 8), row("b", 8, times(2.0), doubts=(GRAVE,))]
    found = compare(rows)
    assert cell(found, workers=1).verdict == "better"
    assert cell(found, workers=None).verdict == "provisional"
    assert headline(find(rows)).startswith("Provisional: b does more ")
    assert headline(find(rows)).endswith("by 2.0× (not comparable at 8 workers)")


def test_over_worker_counts_too_few_common_repeats_make_no_claim() -> None:
    complete = row("b", 1, [2.0, 2.02, 1.98, 2.01, 2.0, 1.99, 2.0, 2.0])
    rows = [row("a", 1, (*FIVE, 1.0, 1.01, 0.99)), row("a", 8, (*FIVE, 1.0, 1.01, 0.99)), complete]
    early, late = complete.points[:5], complete.points[3:]
    rows[2] = altered(complete, points=early)
    rows.append(altered(complete, points=late, workers=8))
    found = compare(rows)
    assert cell(found, workers=8).verdict == "better"
    assert cell(found, workers=None).verdict == "provisional"
    assert "a claim needs 5 repeats" in cell(found, workers=None).text
