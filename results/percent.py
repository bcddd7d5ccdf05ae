"""Ratios as changes in per cent."""

from __future__ import annotations

from typing import Final

TIMES: Final = 3.0
"""From this ratio on a change is given as a factor, since `+870 %` is easily misread."""


def percent(ratio: float) -> float:
    """A ratio as a change in per cent: 1.34 is 34, 0.5 is -50."""
    return (ratio - 1) * 100


def show_percent(ratio: float, *, signed: bool = True) -> str:
    """`+34 %`, `+0.4 %` below one per cent, and a factor (3.2 and the sign) from TIMES on."""
    if ratio >= TIMES:
        return f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:,.0f}×"
    change = percent(ratio)
    if abs(change) < 0.05:
        return "0 %"
    # Almost nothing is not nothing: a change that would round to -100 % gets more digits.
    digits = 0 if abs(change) >= 0.95 and change > -99.5 else 1 if change > -99.95 else 3
    words = f"{change:+.{digits}f} %" if signed else f"{change:.{digits}f} %"
    return words.replace("-", "\N{MINUS SIGN}")
