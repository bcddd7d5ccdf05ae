"""Letters that XML can hold: an error's reason may have others, of which no PowerPoint file can be made."""

from __future__ import annotations

import re
from typing import Final, TypeVar

from ground.record import Record

_NONE: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What is no character of XML 1.0 (production 2, Char)."""
_INSTEAD: Final = "\N{REPLACEMENT CHARACTER}"

Value = TypeVar("Value")


def writable(value: Value) -> Value:
    """A record, text or tuple with another letter in place of each that XML cannot hold, all the way down."""
    made: object = value
    if isinstance(value, str):
        made = _NONE.sub(_INSTEAD, value)
    elif isinstance(value, tuple):
        made = tuple(writable(one) for one in value)
    elif isinstance(value, dict):
        made = {writable(name): writable(one) for name, one in value.items()}
    elif isinstance(value, Record):
        made = value.model_copy(update={name: writable(getattr(value, name)) for name in type(value).model_fields})
    return made  # type: ignore[return-value]  # of the kind that was given
