from __future__ import annotations

import pytest

from weighbridge.results.figures import show_figure, show_ratio


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (0, "0"),
        (0.4123, "0.412"),
        (0.00456, "0.00456"),
        (4.8, "4.80"),
        (20.06, "20.1"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1450.2, "1,450"),
    ],
)
def test_figures_have_three_digits_and_never_an_exponent(value: float | None, shown: str) -> None:
    assert show_figure(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "1.00×"),
        (1.04, "1.04×"),
        (1.84, "1.8×"),
        (2.0, "2.0×"),
        (0.93, "0.93×"),
        (12.4, "12×"),
        (1234.0, "1,234×"),
    ],
)
def test_ratios_near_one_keep_another_digit(value: float, shown: str) -> None:
    assert show_ratio(value) == shown
