"""Validation of what goes into any configuration file: names of sections and options, values,
lines.

Each is one line, so that a layout's text in one place cannot become an option or section elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from configparser import RawConfigParser
from typing import Annotated, Final

from pydantic import AfterValidator

OptionValue = str | int | float | bool


def _name(pattern: str, what: str, hint: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} is not a valid {what}: use letters, digits{hint}")
        return text

    return check


section_name: Final = _name(
    r"[A-Za-z0-9_][A-Za-z0-9_.:+-]*", "section name", " and any of _ . : + -"
)
"""Such as `app:proxy-server`; raises ValueError."""
option_key: Final = _name(
    r"[A-Za-z0-9_]([A-Za-z0-9_.@/+ -]*[A-Za-z0-9_.@/+-])?",
    "option name",
    ", spaces inside and any of _ . @ / + -",
)
"""Such as `max connections` or `set log_level`; raises ValueError."""


def option_value(value: OptionValue) -> OptionValue:
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
Value = Annotated[OptionValue, AfterValidator(option_value)]
Line = Annotated[str, AfterValidator(config_line)]

# INI files as Ceph, Swift and rsync read them.

Sections = Mapping[str, Mapping[str, OptionValue]]


def ini_text(sections: Sections, *, head: Mapping[str, OptionValue] | None = None) -> str:
    """Sections with the options of `head` before them. Raises ValueError if read otherwise."""
    parts = [_lines(head)] if head else []
    parts += [f"[{section_name(name)}]\n{_lines(options)}" for name, options in sections.items()]
    return "\n".join(parts)


def sections_of(text: str) -> dict[str, dict[str, OptionValue]]:
    """The sections of a file, of which [DEFAULT] is one: its options are in no other."""
    parser = RawConfigParser(
        default_section="", delimiters=("=",), comment_prefixes=("#",), strict=True
    )
    parser.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
    parser.read_string(text)
    return {name: dict(parser[name]) for name in parser.sections()}


def merged_sections(*layers: Sections) -> dict[str, dict[str, OptionValue]]:
    """The sections of all layers; a later layer overrides an earlier one."""
    merged: dict[str, dict[str, OptionValue]] = {}
    for layer in layers:
        for name, options in layer.items():
            merged.setdefault(name, {}).update(options)
    return merged


def masked(text: str, secrets: Sequence[str]) -> str:
    """The text with every secret replaced by `***`."""
    return (
        re.sub("|".join(re.escape(secret) for secret in secrets), "***", text) if secrets else text
    )


def option_word(value: OptionValue) -> str:
    """A value as these files spell it: booleans are `true` and `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines(options: Mapping[str, OptionValue]) -> str:
    lines = ((option_key(name), option_value(value)) for name, value in options.items())
    return "".join(f"{name} = {option_word(value)}\n" for name, value in lines)
