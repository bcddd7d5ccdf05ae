"""Escaping of text from elsewhere: terminals and pages obey some control characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, TypeVar

_UNUSUAL: Final = re.compile(r"[^\n\t -~]")
"""Checked one by one; most text has none of these."""

_URL: Final = re.compile(r"""//((?:[^\s"']*(?=@))?)([^\s"'?#]*)((?:[?#][^\s"']*)?)""")

Value = TypeVar("Value")


def escape_controls(text: str) -> str:
    """Text with unprintable characters escaped: control sequences, and marks that reverse it."""
    return text if text.isprintable() else _UNUSUAL.sub(_shown, text)


def mask_urls(text: str) -> str:
    """The text with stars for what may be a secret in URLs: user, query and fragment; as long."""

    def masked(found: re.Match[str]) -> str:
        user, place, query = found.groups()
        return f"//{'*' * len(user)}{place}{query[:1]}{'*' * len(query[1:])}"

    return _URL.sub(masked, text)


def escape_all_controls(value: Value) -> Value:
    """A record, text, mapping, list or tuple with all its text escaped; others unchanged."""
    from weighbridge.common.record import Record  # noqa: PLC0415 - the command line escapes its errors before it imports anything heavy

    made: object = value
    if isinstance(value, str):
        made = escape_controls(value)
    elif isinstance(value, tuple | list):
        made = type(value)(escape_all_controls(one) for one in value)
    elif isinstance(value, Mapping):
        made = {escape_all_controls(name): escape_all_controls(one) for name, one in value.items()}
    elif isinstance(value, Record):
        made = value.model_copy(
            update={
                name: escape_all_controls(getattr(value, name)) for name in type(value).model_fields
            }
        )
    return made  # type: ignore[return-value]  # the same type


def _shown(letter: re.Match[str]) -> str:
    found = letter[0]
    return (
        found
        if found.isprintable() or unicodedata.category(found) == "Zs"
        else found.encode("unicode_escape").decode("ascii")
    )
