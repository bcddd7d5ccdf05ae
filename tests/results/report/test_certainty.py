from __future__ import annotations

import pytest

from weighbridge.results.analysis.comparison import Comparison, Effect, Verdict
from weighbridge.results.figures import show_p
from weighbridge.results.report.tables import HEAD, effect_lines
from weighbridge.results.statistics import Ratio


def effect(verdict: Verdict, ratio: Ratio | None, workers: int | None = 4) -> Effect:
    return Effect(
        workload="small-read",
        operation="read",
        api="swift",
        about="64 kB reads",
        workers=workers,
        metric="throughput",
        baseline="rgw-beast",
        subject="swift",
        ratio=ratio,
        verdict=verdict,
        text="",
    )


def test_every_cell_of_the_map_is_a_line_with_a_cell_for_every_column() -> None:
    shown = Ratio(value=0.5, low=0.4, high=0.6, repeats=5)
    effects = (effect("worse", shown), effect("not comparable", None, workers=None))
    lines = effect_lines(
        Comparison(baseline="rgw-beast", subjects=("swift",), effects=effects, tests=1)
    )
    assert [len(line.cells) for line in lines] == [len(HEAD)] * 2
    assert lines[0].cells[:6] == (
        "64 kB reads",
        "4",
        "swift",
        "throughput",
        "0.50×",
        "0.40× to 0.60×",
    )
    assert lines[0].cells[-2:] == ("worse", "")


def test_what_is_not_known_is_a_dash_that_is_sorted_as_nothing() -> None:
    (line,) = effect_lines(
        Comparison(
            baseline="a", subjects=("swift",), effects=(effect("not comparable", None),), tests=0
        )
    )
    assert line.cells[4:11] == ("–",) * 7
    assert line.values[4:11] == ("",) * 7


@pytest.mark.parametrize(
    ("verdict", "weak"),
    [
        ("better", False),
        ("worse", False),
        ("not shown", True),
        ("provisional", True),
        ("too small to matter", True),
    ],
)
def test_only_what_is_claimed_is_in_full_ink(verdict: Verdict, weak: bool) -> None:
    (line,) = effect_lines(
        Comparison(baseline="a", subjects=("swift",), effects=(effect(verdict, None),), tests=0)
    )
    assert line.weak is weak


def test_a_p_value_is_never_shown_as_nothing() -> None:
    assert show_p(0.0) == "< 0.0001"
    assert show_p(0.0312) == "0.031"
    assert show_p(None) == "–"
