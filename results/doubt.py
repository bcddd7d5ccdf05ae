"""Doubts: reasons not to rank a cell. A doubt travels with the figures it touches to every place
where they are shown.

A grave doubt makes the cells that it touches not comparable. A mild one makes them provisional:
they are shown and marked, and no sentence says that a layout leads by them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

Grade = Literal["grave", "mild"]

What = Literal[
    "hosts differ",
    "hosts not attested",
    "machine busy",
    "machine not known",
    "reads uneven",
    "set by the CPU limit",
    "not steady",
    "steadiness not known",
    "repeats left out",
    "few repeats",
    "lower bound",
    "above its ceiling",
    "not whole",
    "runs apart",
]

BUSY_GRAVE: Final = 0.25
"""Share of a machine's CPUs that other programs use from which on nothing measured beside them is
ranked.
"""
BUSY_MILD: Final = 0.10
"""The same from which on it is provisional."""


class Doubt(Record):
    """One reason not to rank a cell, in words that can stand in brackets or after a colon."""

    what: What
    grade: Grade
    words: str
    metrics: tuple[str, ...] = ()
    """Keys of the metrics that it touches; empty: all of them."""

    def touches(self, metric: str) -> bool:
        """Whether a figure of this metric is in doubt."""
        return not self.metrics or metric in self.metrics


class PairDoubt(Record):
    """A doubt about two layouts beside each other, not about one of them: their hosts were not the
    same.
    """

    layouts: tuple[str, str]
    doubt: Doubt

    def about(self, one: str, other: str) -> bool:
        """Whether it is about these two, in either order."""
        return {one, other} == set(self.layouts)


def touching(doubts: Iterable[Doubt], metric: str) -> tuple[Doubt, ...]:
    """Those that touch a metric, the grave ones first, each once."""
    found = dict.fromkeys(one for one in doubts if one.touches(metric))
    return tuple(sorted(found, key=lambda one: one.grade != "grave"))


def graves(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """The grave ones."""
    return tuple(one for one in doubts if one.grade == "grave")


def doubt_words(doubts: Sequence[Doubt]) -> str:
    """What is in doubt, each reason once:

    `hosts differ: CPU of gateway-1 gave ...; machine busy: ...`.
    """
    return "; ".join(dict.fromkeys(f"{one.what}: {one.words}" for one in doubts))


def doubt_text(one: Doubt) -> str:
    """One doubt as data has it:

    `grave: hosts differ: CPU of gateway-1 ...`, `mild (p90, max): ...` where not all is touched.
    """
    touched = f" ({', '.join(one.metrics)})" if one.metrics else ""
    return f"{one.grade}{touched}: {one.what}: {one.words}"


def busy(share: float | None) -> Doubt | None:
    """The doubt about steps beside which other programs used this share of the machine's CPUs; None
    below BUSY_MILD.
    """
    if share is None or share < BUSY_MILD:
        return None
    grade: Grade = "grave" if share >= BUSY_GRAVE else "mild"
    return Doubt(
        what="machine busy",
        grade=grade,
        words=f"other programs used {share * 100:.0f} % of this machine’s CPUs",
    )


def beside(shares: Sequence[float | None]) -> Iterator[Doubt]:
    """The doubts about repeats beside each of which other programs used this share of the machine's
    CPUs, None: not known.

    The median of those known decides whether they are in grave doubt; a single one at BUSY_GRAVE is
    enough for a mild one.
    """
    known = [share for share in shares if share is not None]
    doubt = busy(median(known)) if known else None
    often = sum(share >= BUSY_GRAVE for share in known)
    if often and (doubt is None or doubt.grade != "grave"):
        words = (
            f"other programs used up to {max(known) * 100:.0f} % of this machine’s CPUs in "
            f"{often} of {len(shares)} repeats"
        )
        doubt = Doubt(what="machine busy", grade="mild", words=words)
    if doubt is not None:
        yield doubt
    lost = len(shares) - len(known)
    if lost:
        in_which = f" in {lost} of {len(shares)} repeats" if len(shares) > 1 else ""
        words = f"what other programs used of this machine’s CPUs{in_which} was not recorded"
        yield Doubt(what="machine not known", grade="mild", words=words)


def few(repeats: int) -> Doubt | None:
    """The doubt about figures of so many repeats; None where there are enough for a claim."""
    if repeats >= REPEATS_FOR_A_CLAIM:
        return None
    return Doubt(
        what="few repeats",
        grade="mild",
        words=f"a claim needs {REPEATS_FOR_A_CLAIM} repeats of each side",
    )
