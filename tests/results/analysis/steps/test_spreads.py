from __future__ import annotations

import pytest

from made_rows import made_row
from weighbridge.results.analysis.steps.spreads import show_spread, shown
from weighbridge.results.metric import MetricFigure


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (594.0, 576.0, 612.0, "594 ±3 %"),
        (594.0, 593.0, 595.0, "594 ±<1 %"),
        (594.0, 380.0, 928.0, "594 (380–928)"),
        (594.0, 380.0, None, "594 (≥ 380)"),
        (594.0, None, None, "594"),
        (None, None, None, "–"),
    ],
)
def test_a_figure_shows_half_of_its_interval_or_lopsided_ends(
    value: float | None, low: float | None, high: float | None, text: str
) -> None:
    assert show_spread(MetricFigure(value=value, low=low, high=high)) == text


def test_few_samples_show_an_order_statistic_interval_and_lower_bounds_a_sign() -> None:
    row = made_row(
        layout="a",
        p90_ms=87.0,
        p50_ms=40.0,
        p99_ms=150.0,
        max_ms=2000.0,
        intervals={"p50": (35, 70), "p90": (61, 140), "p99": (70, None)},
        at_least=("p50", "max"),
        valid=True,
    )
    assert shown(row, "p90") == "87.0 [61.0–140]"
    assert shown(row, "p50") == "≥ 40.0 [35.0–70.0]"
    assert shown(row, "p99") == "150 [≥ 70.0]"
    assert shown(row, "p90", spread=False) == "87.0"
    assert shown(row, "max") == "≥ 2,000"
