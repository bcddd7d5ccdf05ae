"""Words that several slides share."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.results.analysis.contrast import reason
from weighbridge.results.analysis.steps.summary import NOT_STEADY, Row
from weighbridge.results.doubt import doubt_words
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM


def listed(words: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def counted(number: int, noun: str) -> str:
    """`1 worker`, `4 workers`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def upper(text: str) -> str:
    """The same with a capital letter at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def rests_on(fewest: int, most: int | None = None) -> str:
    """What may be said with so many repeats: `n = 5`, `n = 1: provisional`, `n = 2 to 5: provisional below 5`."""
    if fewest == 0:
        return "nothing was measured"
    if most is not None and most != fewest:
        return f"n = {fewest} to {most}" + (f": provisional below {REPEATS_FOR_A_CLAIM}" if fewest < REPEATS_FOR_A_CLAIM else "")
    return f"n = {fewest}" + ("" if fewest >= REPEATS_FOR_A_CLAIM else ": provisional")


def spanned(counts: Sequence[int]) -> str:
    """`1 worker`, `1 to 32 workers`."""
    return counted(counts[0], "worker") if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]} workers"


def why_not(row: Row) -> str:
    """Why a row is not ranked, as short as it can be said."""
    if not row.valid:
        return reason(row)
    return doubt_words(row.condemned) or (NOT_STEADY if row.steady is False else "nothing succeeded")
