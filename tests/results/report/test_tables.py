from __future__ import annotations

import pytest

from compared_rows import made_effect
from made_rows import altered
from weighbridge.results.analysis.comparison import Comparison, Effect, Verdict
from weighbridge.results.figures import show_p
from weighbridge.results.report.tables import EFFECT_HEAD, effect_lines
from weighbridge.results.statistics import Ratio


def effect(verdict: Verdict, ratio: Ratio | None, workers: int | None = 4) -> Effect:
    return altered(made_effect("swift", None, verdict, workers=workers), ratio=ratio, text="")


def compared(*effects: Effect) -> Comparison:
    return Comparison(baseline="rgw-beast", subjects=("swift",), effects=effects, tests=1)


def test_each_effect_is_a_line_with_a_cell_for_each_column() -> None:
    ratio = Ratio(value=0.5, low=0.4, high=0.6, repeats=5)
    lines = effect_lines(
        compared(effect("worse", ratio), effect("not comparable", None, workers=None))
    )
    assert [len(line.cells) for line in lines] == [len(EFFECT_HEAD)] * 2
    about = ("64 kB reads", "4", "swift", "throughput")
    assert lines[0].cells[:6] == (*about, "0.50×", "0.40× to 0.60×")
    assert lines[0].cells[-2:] == ("worse", "")


def test_an_unknown_value_is_shown_as_a_dash_and_sorted_as_empty() -> None:
    (line,) = effect_lines(compared(effect("not comparable", None)))
    assert line.cells[4:11] == ("–",) * 7
    assert line.values[4:11] == ("",) * 7


@pytest.mark.parametrize(
    ("verdict", "weak"),
    [
        *(("better", False), ("worse", False), ("not significant", True)),
        *(("provisional", True), ("too small to matter", True)),
    ],
)
def test_only_lines_with_a_claim_are_not_weak(verdict: Verdict, weak: bool) -> None:
    (line,) = effect_lines(compared(effect(verdict, None)))
    assert line.weak is weak


def test_a_p_value_is_never_shown_as_zero() -> None:
    assert show_p(0.0) == "< 0.0001"
    assert show_p(0.0312) == "0.031"
    assert show_p(None) == "–"
