"""What stands wherever the affected figures are shown: doubts, which are reasons not to rank a
cell, and what power cuts did.

A grave doubt makes cells not comparable. A mild one makes them provisional: they are shown and
marked, and no sentence claims a lead based on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Final, Literal

from weighbridge.common.record import Record
from weighbridge.common.structure import ANSWERS, Answers
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.numbers import listed, show_share

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
    "repeats left out",
    "few repeats",
    "lower bound",
    "resolution",
    "endpoint left out",
    "incomplete",
    "runs apart",
]

SPOILT: Final = 0.25
"""The share of a machine's CPUs that other programs use, from which a window is spoilt."""
HOPELESS: Final = 0.5
"""The share from which, if they use it in every window, no figure is ranked."""


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


def spoilt(share: float | None) -> bool:
    """Whether other programs spoilt a window in which they used this share of a machine's CPUs."""
    return share is not None and share >= SPOILT


def beside(shares: Sequence[float | None]) -> Iterator[Doubt]:
    """Doubts from the share of CPUs that others used in each repeat (None: unknown): a mild one if
    more than half are SPOILT, a grave one if all are HOPELESS. What fewer did to the figures is
    estimated (`results.figures.foreign_load`).
    """
    known = [share for share in shares if share is not None]
    disturbed = sum(map(spoilt, known))
    if 2 * disturbed > len(known):
        grade: Grade = "grave" if min(known) >= HOPELESS else "mild"
        used = f"other programs used {show_share(median(known))} of this machine’s CPUs"
        some = f": {disturbed} of {len(shares)} repeats" if disturbed < len(shares) else ""
        yield Doubt(what="machine busy", grade=grade, words=f"{used}{some}")
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


# What power cuts did to a layout, and what it has on disk when it acknowledges a write, in the few
# words that stand beside its write results.
#
# It is not a doubt: what lost acknowledged writes is ranked all the same, and marked.


Judgement = Literal["kept", "lost", "cannot-tell"]
"""`kept`: no acknowledged write was lost, and the control lost some. `lost`: some were.
`cannot-tell`: nothing can be said, for a reason."""
CUTS_THAT_LOST: Final = "cuts that lost"
"""The head of a narrow column of marks."""
ACKNOWLEDGED: Final = "acknowledged"
"""The head of a narrow column of what acknowledgements rest on."""


UNSYNCED: Final[frozenset[Answers]] = frozenset(ANSWERS) - {"disk"}
"""With these a power cut takes acknowledged writes."""


class PowerMark(Record):
    """The mark of a layout where power was cut, or where writes are acknowledged before disks."""

    layout: str
    judgement: Judgement | None
    """None: the layout was not tried."""
    said: str
    """`20 cuts: 0 of 41,200 acknowledged lost`; empty where no power was cut."""
    count: str
    """The cuts that lost writes, for a narrow column: `0 of 20`."""
    listings: tuple[str, ...] = ()
    """What listings have wrong: `3,100 not listed`."""
    answers: Answers | None = None
    """What is on disk when it acknowledges a write; None: unknown, or all layouts have all."""
    loss: str = ""
    """`lost acknowledged writes in 3 of 20 power cuts`, for titles; empty if none were lost."""

    @property
    def words(self) -> str:
        """`20 cuts: 0 of 41,200 acknowledged lost; 3,100 not listed`."""
        answers = () if self.answers is None else (ANSWERS[self.answers],)
        return "; ".join(part for part in (self.of_cuts, *answers) if part)

    @property
    def of_cuts(self) -> str:
        """The words without what it has on disk."""
        return f"{self.said}; {', '.join(self.listings)}" if self.listings else self.said

    @property
    def brief(self) -> str:
        """`0 of 20 (3,100 not listed)`: where there is little room."""
        return f"{self.count} ({', '.join(self.listings)})" if self.listings else self.count

    @property
    def lost(self) -> bool:
        return self.judgement == "lost"

    @property
    def unsynced(self) -> bool:
        """Whether it acknowledges writes before all of them is on disk."""
        return self.answers is not None and self.answers in UNSYNCED

    @property
    def endangered(self) -> bool:
        """Whether it is never shown unmarked: it lost acknowledged writes, or may by its design."""
        return self.lost or self.unsynced


def not_tried(layout: str) -> PowerMark:
    """The mark of a layout that was not tried, beside one that was."""
    return PowerMark(layout=layout, judgement=None, said="not tried", count="not tried")


def no_cuts(layout: str) -> PowerMark:
    """The mark of a layout in a run in which no power was cut."""
    return PowerMark(layout=layout, judgement=None, said="", count="")


def marks_of(marks: Iterable[PowerMark | None]) -> tuple[PowerMark, ...]:
    """Those that there are, each once."""
    return tuple(dict.fromkeys(mark for mark in marks if mark is not None))


def power_words(marks: Iterable[PowerMark]) -> str:
    """`power cuts: rgw-beast (20 cuts: ...), swift (lost acknowledged writes in ...)`, each layout
    once, and `durability: versitygw acknowledges from the page cache`; empty without marks.
    """
    known = marks_of(marks)
    cuts = [f"{mark.layout} ({mark.of_cuts})" for mark in known if mark.said]
    answers = [f"{mark.layout} {ANSWERS[mark.answers]}" for mark in known if mark.answers]
    parts = (("power cuts", cuts), ("durability", answers))
    return "; ".join(f"{what}: {', '.join(dict.fromkeys(each))}" for what, each in parts if each)


def power_brief(marks: Iterable[PowerMark]) -> str:
    """`power cuts that lost writes: rgw-beast 0 of 20, swift 3 of 20`, and who acknowledges what is
    not on disk; empty without marks.
    """
    known = marks_of(marks)
    cuts = dict.fromkeys(f"{mark.layout} {mark.brief}" for mark in known if mark.said)
    parts = [f"power cuts that lost writes: {', '.join(cuts)}"] if cuts else []
    return "; ".join((*parts, *_unsynced_words(known)))


def with_losses(title: str, marks: Iterable[PowerMark]) -> str:
    """A title, and after it what was lost by layouts that it is about: `swift lost acknowledged
    writes in 3 of 20 power cuts`; and who acknowledges what is not on disk.
    """
    known = marks_of(marks)
    lost = dict.fromkeys(f"{mark.layout} {mark.loss}" for mark in known if mark.lost)
    return "; ".join((title, *lost, *_unsynced_words(known)))


def _unsynced_words(marks: Iterable[PowerMark]) -> Iterator[str]:
    """`seaweedfs and minio acknowledge before the name is on disk`, and so on."""
    layouts: dict[str, list[str]] = {}
    for mark in marks:
        if mark.answers is not None and mark.unsynced:
            layouts.setdefault(ANSWERS[mark.answers], []).append(mark.layout)
    for words, names in layouts.items():
        each = list(dict.fromkeys(names))
        verb, rest = words.split(" ", 1)
        yield f"{listed(each)} {verb if len(each) == 1 else verb.removesuffix('s')} {rest}"
