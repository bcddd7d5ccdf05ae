"""Ratios as changes in per cent, as a reader takes them in."""

from __future__ import annotations

from typing import Final

TIMES: Final = 3.0
"""From here on a change is told as how many times, since `+870 %` is read wrong."""


def percent(ratio: float) -> float:
    """A ratio as a change in per cent: 1.34 is 34, 0.5 is -50."""
    return (ratio - 1) * 100


def show_percent(ratio: float, *, signed: bool = True) -> str:
    """`+34 %`, `+0.4 %` below one per cent, and how many times (as `3.2`) from three times on."""
    if ratio >= TIMES:
        return f"{ratio:.1f}×" if ratio < 9.95 else f"{ratio:,.0f}×"
    change = percent(ratio)
    if abs(change) < 0.05:
        return "0 %"
    # All but nothing is not nothing: a change that would be rounded to -100 % is told finer.
    digits = 0 if abs(change) >= 0.95 and change > -99.5 else 1 if change > -99.95 else 3
    words = f"{change:+.{digits}f} %" if signed else f"{change:.{digits}f} %"
    return words.replace("-", "\N{MINUS SIGN}")
