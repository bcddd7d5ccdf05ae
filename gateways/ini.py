"""INI files as Ceph, Swift and rsync read them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from weighbridge.gateways import config_text

Value = str | int | float | bool
Sections = Mapping[str, Mapping[str, Value]]


def render(sections: Sections, *, head: Mapping[str, Value] | None = None) -> str:
    """The text of the sections in their order, with the options of `head` before the first.

    Raises ValueError on text that would be read as something else (see gateways.config_text).
    """
    parts = [_lines(head)] if head else []
    parts += [
        f"[{config_text.section_name(name)}]\n{_lines(options)}"
        for name, options in sections.items()
    ]
    return "\n".join(parts)


def merge(*layers: Sections) -> dict[str, dict[str, Value]]:
    """The sections of all layers; a later layer overrides an earlier one."""
    merged: dict[str, dict[str, Value]] = {}
    for layer in layers:
        for name, options in layer.items():
            merged.setdefault(name, {}).update(options)
    return merged


def mask(text: str, secrets: Sequence[str]) -> str:
    """The text with every secret replaced by `***`."""
    return (
        re.sub("|".join(re.escape(secret) for secret in secrets), "***", text) if secrets else text
    )


def word(value: Value) -> str:
    """A value as these files spell it: booleans are `true` and `false`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines(options: Mapping[str, Value]) -> str:
    lines = (
        (config_text.option_key(name), config_text.option_value(value))
        for name, value in options.items()
    )
    return "".join(f"{name} = {word(value)}\n" for name, value in lines)
