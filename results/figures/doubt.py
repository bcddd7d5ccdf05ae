"""Doubts: reasons not to rank a cell, shown wherever the affected figures are shown.

A grave doubt makes cells not comparable. A mild one makes them provisional: they are shown and
marked, and no sentence claims a lead based on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.numbers import show_share

Grade = Literal["grave", "mild"]

What = Literal[
    "hosts differ",
    "hosts below promise",
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
    "resolution",
    "above its ceiling",
    "endpoint left out",
    "incomplete",
    "runs apart",
]

BUSY_GRAVE: Final = 0.25
"""Share of a machine's CPUs used by other programs from which no figure is ranked."""
BUSY_MILD: Final = 0.10
"""The share from which figures are provisional."""


class Doubt(Record):
    """One reason not to rank a cell, worded to fit in brackets or after a colon."""

    what: What
    grade: Grade
    words: str
    metrics: tuple[str, ...] = ()
    """Keys of the affected metrics; empty: all of them."""

    def touches(self, metric: str) -> bool:
        """Whether a figure of this metric is in doubt."""
        return not self.metrics or metric in self.metrics


class PairDoubt(Record):
    """A doubt about the comparison of two layouts: their hosts differed."""

    layouts: tuple[str, str]
    doubt: Doubt

    def about(self, one: str, other: str) -> bool:
        """Whether it is about these two layouts, in either order."""
        return {one, other} == set(self.layouts)


def touching(doubts: Iterable[Doubt], metric: str) -> tuple[Doubt, ...]:
    """The doubts about a metric, grave ones first, each once."""
    found = dict.fromkeys(one for one in doubts if one.touches(metric))
    return tuple(sorted(found, key=lambda one: one.grade != "grave"))


def graves(doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """The grave doubts."""
    return tuple(one for one in doubts if one.grade == "grave")


def doubt_words(doubts: Sequence[Doubt]) -> str:
    """The doubts as text, each once: `hosts differ: CPU of ...; machine busy: ...`."""
    return "; ".join(dict.fromkeys(f"{one.what}: {one.words}" for one in doubts))


def doubt_brief(doubts: Sequence[Doubt]) -> str:
    """`not comparable: machine busy, few repeats`; empty without doubts."""
    grade = "not comparable" if graves(doubts) else "provisional"
    words = ", ".join(dict.fromkeys(one.what for one in doubts))
    return f"{grade}: {words}" if words else ""


def doubt_text(one: Doubt) -> str:
    """`grave: hosts differ: CPU of gateway-1 ...`, or with its metrics `mild (p90, max): ...`."""
    touched = f" ({', '.join(one.metrics)})" if one.metrics else ""
    return f"{one.grade}{touched}: {one.what}: {one.words}"


def beside(shares: Sequence[float | None]) -> Iterator[Doubt]:
    """Doubts from the share of CPUs that others used in each repeat (None: unknown): the median
    decides on a grave one; a repeat at BUSY_GRAVE is enough for a mild one.
    """
    known = [share for share in shares if share is not None]
    middle = median(known) if known else 0.0
    often = sum(share >= BUSY_GRAVE for share in known)
    if middle >= BUSY_MILD or often:
        used, repeats = f"{show_share(middle)} of this machine’s CPUs", ""
        grade: Grade = "grave" if middle >= BUSY_GRAVE else "mild"
        if often and grade == "mild":
            used = f"up to {show_share(max(known))} of this machine’s CPUs"
            repeats = f" in {often} of {len(shares)} repeats"
        words = f"other programs used {used}{repeats}"
        yield Doubt(what="machine busy", grade=grade, words=words)
    lost = len(shares) - len(known)
    if lost:
        in_which = f" in {lost} of {len(shares)} repeats" if len(shares) > 1 else ""
        words = f"what other programs used of this machine’s CPUs{in_which} was not recorded"
        yield Doubt(what="machine not known", grade="mild", words=words)


def few(repeats: int) -> tuple[Doubt, ...]:
    """The doubt about figures of this many repeats; none if there are enough for a claim."""
    if repeats >= REPEATS_FOR_A_CLAIM:
        return ()
    words = f"a claim needs {REPEATS_FOR_A_CLAIM} repeats of each side"
    return (Doubt(what="few repeats", grade="mild", words=words),)
