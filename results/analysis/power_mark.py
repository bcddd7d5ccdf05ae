"""What power cuts did to a layout, in the few words that stand beside its write results.

It is not a doubt: what lost acknowledged writes is ranked all the same, and marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from weighbridge.common.record import Record

Judgement = Literal["kept", "lost", "cannot-tell"]
"""`kept`: no acknowledged write was lost, and the control lost some. `lost`: some were, whatever
the control did. `cannot-tell`: nothing can be said, for a reason.
"""
CUTS_THAT_LOST: Final = "cuts that lost"
"""The head of a narrow column of marks."""


class PowerMark(Record):
    """The mark of a layout, in a run in which the power of some layout was cut."""

    layout: str
    judgement: Judgement | None
    """None: the layout was not tried."""
    said: str
    """`20 cuts: 0 of 41,200 acknowledged lost`."""
    count: str
    """The cuts that lost writes, for a narrow column: `0 of 20`."""
    listings: tuple[str, ...] = ()
    """What listings have wrong: `3,100 not listed`."""
    loss: str = ""
    """`lost acknowledged writes in 3 of 20 power cuts`, for titles; empty if none were lost."""

    @property
    def words(self) -> str:
        """`20 cuts: 0 of 41,200 acknowledged lost; 3,100 not listed`."""
        return f"{self.said}; {', '.join(self.listings)}" if self.listings else self.said

    @property
    def brief(self) -> str:
        """`0 of 20 (3,100 not listed)`: where there is little room."""
        return f"{self.count} ({', '.join(self.listings)})" if self.listings else self.count

    @property
    def lost(self) -> bool:
        """Whether it lost acknowledged writes."""
        return self.judgement == "lost"


def not_tried(layout: str) -> PowerMark:
    """The mark of a layout that was not tried, beside one that was."""
    return PowerMark(layout=layout, judgement=None, said="not tried", count="not tried")


def power_words(marks: Iterable[PowerMark]) -> str:
    """`power cuts: rgw-beast (20 cuts: ...), swift (lost acknowledged writes in ...)`, each layout
    once; empty without marks.
    """
    each = list(dict.fromkeys(f"{one.layout} ({one.words})" for one in marks))
    return f"power cuts: {', '.join(each)}" if each else ""


def power_brief(marks: Iterable[PowerMark]) -> str:
    """`power cuts that lost writes: rgw-beast 0 of 20, swift 3 of 20`; empty without marks."""
    each = list(dict.fromkeys(f"{one.layout} {one.brief}" for one in marks))
    return f"power cuts that lost writes: {', '.join(each)}" if each else ""


def loss_words(marks: Iterable[PowerMark]) -> tuple[str, ...]:
    """What each layout that lost writes did: `swift lost acknowledged writes in 3 of 20 power
    cuts`.
    """
    return tuple(dict.fromkeys(f"{one.layout} {one.loss}" for one in marks if one.lost))


def with_losses(title: str, marks: Iterable[PowerMark]) -> str:
    """A title, and after it what was lost by layouts that it is about."""
    return "; ".join((title, *loss_words(marks)))


def marks_of(found: Sequence[PowerMark | None]) -> tuple[PowerMark, ...]:
    """Those that there are, each once."""
    return tuple(dict.fromkeys(one for one in found if one is not None))
