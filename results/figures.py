"""Figures as people read them: three significant digits, thousands apart, a dash where nothing is known."""

from __future__ import annotations

UNKNOWN = "–"


def show_figure(value: float | None, digits: int = 3) -> str:
    """`0.412`, `20.1`, `1,450`: at least so many significant digits, never an exponent; UNKNOWN for None."""
    if value is None:
        return UNKNOWN
    for decimals in range(digits - 1, -1, -1):
        text = f"{value:,.{decimals}f}"
        if value == 0 or len(text.replace(",", "").replace(".", "").lstrip("0")) <= digits:
            return "0" if value == 0 else text
    return f"{value:,.0f}"


def show_ms(value: float | None) -> str:
    """Milliseconds, without the unit."""
    return show_figure(value)


def show_ratio(value: float) -> str:
    """How many times: two significant digits and the sign (1.8, 12, 0.93), three next to 1 (1.04)."""
    if value < 1.095:
        return f"{value:.2f}×"
    return f"{value:.2g}×" if value < 99.5 else f"{value:,.0f}×"
