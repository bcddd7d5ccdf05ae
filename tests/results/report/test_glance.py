from __future__ import annotations

from compared_rows import MILD, row, times
from made_rows import changed
from weighbridge.results.analysis.comparing import compare
from weighbridge.results.analysis.reasons import reasons
from weighbridge.results.report.glance import glance

RGW = [row("rgw-beast", workers) for workers in (1, 8)]
SWIFT = [row("swift", workers, times(0.5)) for workers in (1, 8)]
ROWS = [RGW[0], SWIFT[0], RGW[1], SWIFT[1]]


def test_each_layout_has_one_line_at_the_most_workers_with_its_place_in_the_table() -> None:
    found = glance(ROWS, compare(ROWS), ())
    assert [(one.layout, one.workers, one.anchor) for one in found.lines] == [
        ("rgw-beast", 8, "row-3"),
        ("swift", 8, "row-4"),
    ]
    assert found.anchors == {"1 MB reads": "row-1"}
    assert [one.ratio for one in found.lines] == ["1", "0.50×"]
    assert [title for title, _ in found.head][:2] == ["Throughput", "Bandwidth"]
    assert found.lines[0].cells[0] == "1.00"


def test_a_ratio_that_claims_nothing_is_in_brackets_and_has_the_mark_of_its_doubt() -> None:
    rows = [*ROWS[:3], changed(SWIFT[1], doubts=(MILD,))]
    comparison = compare(rows)
    found = glance(rows, comparison, reasons(rows, comparison))
    assert (found.lines[1].ratio, found.lines[1].marks) == ("(0.50×)", "a")
    assert found.lines[1].provisional


def test_what_was_not_measured_is_a_dash_and_not_ranked() -> None:
    rows = [RGW[1], row("swift", 8, ())]
    (_, line) = glance(rows, compare(rows), ()).lines
    assert (line.cells, line.ratio, line.ranked) == (("–",) * 5, "–", False)
    assert line.limited_by == "–"


def test_a_baseline_that_was_not_measured_has_no_ratio_of_one() -> None:
    rows = [row("rgw-beast", 8, ()), SWIFT[1]]
    first, second = glance(rows, compare(rows), ()).lines
    assert (first.ratio, second.ratio) == ("–", "–")


def test_controls_have_no_line_and_a_layout_alone_no_ratio() -> None:
    rows = [RGW[1], row("rgw-beast-again", 8)]
    found = glance(rows, None, (), ("rgw-beast-again",))
    assert [(one.layout, one.ratio) for one in found.lines] == [("rgw-beast", "–")]
    assert found.baseline == ""
