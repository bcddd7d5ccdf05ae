"""Validation of what goes into any configuration file: names of sections and options, values,
lines.

Each is one line, so that a layout's text in one place cannot become an option or section elsewhere.
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
            f"{text!r} is not a valid section name: use letters, digits and any of _ . : + -"
        )
    return text


def option_key(text: str) -> str:
    """The name of an option, such as `max connections` or `set log_level`. Raises ValueError."""
    if not _KEY.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a valid option name: use letters, digits, spaces inside and any of "
            "_ . @ / + -"
        )
    return text


def option_value(value: Plain) -> Plain:
    """The value of an option, which may be empty. Raises ValueError."""
    if isinstance(value, str):
        _check_one_line(value)
    return value


def config_line(text: str) -> str:
    """A line that is not empty. Raises ValueError."""
    if not text.strip():
        raise ValueError(f"{text!r} is not one line: it is empty")
    _check_one_line(text)
    return text


def _check_one_line(text: str) -> None:
    # Programs differ in what they take for a line break: anything that might be one is refused.
    # Only tabs are allowed.
    if not text.replace("\t", " ").isprintable():
        raise ValueError(
            f"{text!r} is not one line: it contains a line break, a control character or one that "
            "cannot be displayed"
        )
    if text.endswith("\\"):
        raise ValueError(
            f"{text!r} is not one line: the backslash at its end joins the next one to it"
        )


Section = Annotated[str, AfterValidator(section_name)]
Key = Annotated[str, AfterValidator(option_key)]
Value = Annotated[Plain, AfterValidator(option_value)]
Line = Annotated[str, AfterValidator(config_line)]
