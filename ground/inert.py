"""Texts from elsewhere that are shown to people: terminals and pages obey some of what may stand in them."""

from __future__ import annotations

import unicodedata


def inert(text: str) -> str:
    """A text whose unprintable characters are told by their numbers, as in Python; spaces, ends of lines and tabs stay.

    Escape sequences, which move cursors and set colours and titles, are among them, and marks that turn the order of letters.
    """
    return "".join(one if _shows(one) else one.encode("unicode_escape").decode("ascii") for one in text)


def _shows(letter: str) -> bool:
    return letter.isprintable() or letter in "\n\t" or unicodedata.category(letter) == "Zs"
