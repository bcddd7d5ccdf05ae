"""A card: one figure as the head of a page puts it on a screen."""

from __future__ import annotations

from ground.record import Record


class Card(Record):
    """`figure` in large type, what it is about, and how sure it is; `colour` is CSS."""

    figure: str
    about: str
    text: str
    detail: str
    colour: str
