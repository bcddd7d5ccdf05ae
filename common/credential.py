"""Keys, passwords and tokens: checked when they are read, and removed from text people see."""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

from weighbridge.common.errors import UsageError

HIDDEN = "***"


def credential(origin: str, value: str) -> str:
    """A key, password or token from `origin`, without the line end that files and pipes add.

    Raises UsageError, without showing the value, if no HTTP header can carry it: a library's own
    message about that would contain the key.
    """
    value = value.removesuffix("\n").removesuffix("\r")
    if not value.isprintable() or any(ord(letter) > 0xFF for letter in value):
        raise UsageError(
            f"{origin}: contains a line break, a control character or a character beyond Latin-1, "
            "which no HTTP header can carry",
            advice='Check how it was set: `printf %s "$NAME" | od -c` shows all its characters.',
        )
    return value


def redacted(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets, also as Python, JSON, XML or a URL writes them."""
    for secret in sorted(filter(None, set(secrets)), key=len, reverse=True):
        for form in dict.fromkeys(sorted(_forms(secret), key=len, reverse=True)):
            text = text.replace(form, HIDDEN)
    return text


def _forms(secret: str) -> tuple[str, ...]:
    return (
        secret,
        repr(secret)[1:-1],
        ascii(secret)[1:-1],
        json.dumps(secret)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        escape(secret),
        escape(secret, {'"': "&quot;"}),
        escape(secret, {'"': "&quot;", "'": "&#39;"}),
    )
