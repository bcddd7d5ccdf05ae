"""Texts from elsewhere that are shown in a terminal, which obeys some of what may stand in them."""

from __future__ import annotations


def inert(text: str) -> str:
    """A text whose unprintable characters are told by their numbers, as in Python; ends of lines and tabs stay.

    Escape sequences, which move cursors and set colours and titles, are among them, and marks that turn the order of letters.
    """
    return "".join(one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode("ascii") for one in text)
