"""What may stand in a configuration file: the name of a section and of an option, a value, a line.
Whatever file, whoever wrote it.

Each is one line, so that nothing that a layout says in one place becomes an option or a section in
another.
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

Plain = str | int | float | bool

_SECTION: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]*")
_KEY: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.@/+ -]*[A-Za-z0-9_.@/+-])?")


def section_name(text: str) -> str:
    """The name of a section, such as `app:proxy-server`. Raises ValueError."""
    if not _SECTION.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name of a section: letters, digits and any of _ . : + - are wanted"
        )
    return text


def option_key(text: str) -> str:
    """The name of an option, such as `max connections` or `set log_level`. Raises ValueError."""
    if not _KEY.fullmatch(text):
        raise ValueError(
            f"{text!r} is no name of an option: letters, digits, blanks inside and any of _ . @ / "
            "+ - are wanted"
        )
    return text


def option_value(value: Plain) -> Plain:
    """The value of an option, which may be empty. Raises ValueError."""
    if isinstance(value, str):
        _see_one_line(value)
    return value


def config_line(text: str) -> str:
    """A line with something in it. Raises ValueError."""
    if not text.strip():
        raise ValueError(f"{text!r} is not one line: it is empty")
    _see_one_line(text)
    return text


def _see_one_line(text: str) -> None:
    # Readers differ in what ends a line for them: all that any of them may take for an end is
    # refused. Only tabs may stay.
    if not text.replace("\t", " ").isprintable():
        raise ValueError(
            f"{text!r} is not one line: it has a line break, a control character or one that "
            "cannot be shown"
        )
    if text.endswith("\\"):
        raise ValueError(
            f"{text!r} is not one line: the backslash at its end joins the next one to it"
        )


Section = Annotated[str, AfterValidator(section_name)]
Key = Annotated[str, AfterValidator(option_key)]
Value = Annotated[Plain, AfterValidator(option_value)]
Line = Annotated[str, AfterValidator(config_line)]
