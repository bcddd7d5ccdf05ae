"""Texts from elsewhere that are shown to people: terminals and pages obey some of what may stand in
them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, TypeVar

_UNUSUAL: Final = re.compile(r"[^\n\t -~]")
"""What is looked at one by one: most texts have nothing of it."""

Value = TypeVar("Value")


def inert(text: str) -> str:
    """A text whose unprintable characters are told by their numbers, as in Python; spaces, ends of
    lines and tabs stay.

    Escape sequences, which move cursors and set colours and titles, are among them, and marks that
    turn the order of letters.
    """
    return text if text.isprintable() else _UNUSUAL.sub(_shown, text)


def inert_all(value: Value) -> Value:
    """A record, text, mapping, list or tuple with all its texts inert, all the way down; anything
    else as it is.
    """
    from weighbridge.common.record import Record  # noqa: PLC0415 - the command line makes its errors inert before it imports anything heavy

    made: object = value
    if isinstance(value, str):
        made = inert(value)
    elif isinstance(value, tuple | list):
        made = type(value)(inert_all(one) for one in value)
    elif isinstance(value, Mapping):
        made = {inert_all(name): inert_all(one) for name, one in value.items()}
    elif isinstance(value, Record):
        made = value.model_copy(
            update={name: inert_all(getattr(value, name)) for name in type(value).model_fields}
        )
    return made  # type: ignore[return-value]  # of the kind that was given


def _shown(letter: re.Match[str]) -> str:
    found = letter[0]
    return (
        found
        if found.isprintable() or unicodedata.category(found) == "Zs"
        else found.encode("unicode_escape").decode("ascii")
    )
