from __future__ import annotations

from weighbridge.results.statistics import Ratio


def ratio_cell(known: Ratio) -> str:
    """A factor with its interval, which is unknown after one repeat."""
    if known.low is None or known.high is None:
        return f"{known.value:.2f}×"
    return f"{known.value:.2f}× ({known.low:.2f} to {known.high:.2f})"


def ratio_times(known: Ratio) -> str:
    """`1.50 times (1.40 to 1.61)`, with what keeps it from being a claim."""
    if known.low is None or known.high is None:
        return f"{known.value:.2f} times (one repeat: no interval)"
    if not known.shown:
        return f"{known.value:.2f} times (not significant, {known.low:.2f} to {known.high:.2f})"
    few = "" if known.claim else f"; {known.repeats} repeats are too few for a claim"
    return f"{known.value:.2f} times ({known.low:.2f} to {known.high:.2f}{few})"
