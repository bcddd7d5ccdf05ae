"""Keys, passwords and tokens: looked at where they are read, and taken out of what others say
before a person reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

from weighbridge.common.errors import UsageError

HIDDEN = "***"


def credential(origin: str, value: str) -> str:
    """A key, password or token as it came from `origin`, without the end of a line that files and
    pipes leave on it.

    Raises UsageError, which does not show it, for one that no field of an HTTP request can carry:
    what a library says of that holds the key itself.
    """
    value = value.removesuffix("\n").removesuffix("\r")
    if not value.isprintable() or not _is_latin_1(value):
        raise UsageError(
            f"{origin}: holds a line break, a control character or one beyond Latin-1, which no "
            "field of a request can carry",
            advice='See how it was set: `printf %s "$NAME" | od -c` shows all of its characters.',
        )
    return value


def redacted(text: str, secrets: Iterable[str]) -> str:
    """A text without the secrets, also where it has them as Python, JSON, XML or a URL writes
    them.
    """
    for secret in sorted(filter(None, set(secrets)), key=len, reverse=True):
        for form in dict.fromkeys(sorted(_forms(secret), key=len, reverse=True)):
            text = text.replace(form, HIDDEN)
    return text


def _forms(secret: str) -> tuple[str, ...]:
    within = repr(secret)[1:-1], ascii(secret)[1:-1], json.dumps(secret)[1:-1]
    coded = quote(secret), quote(secret, safe=""), quote_plus(secret)
    return (
        secret,
        *within,
        *coded,
        escape(secret),
        escape(secret, {'"': "&quot;"}),
        escape(secret, {'"': "&quot;", "'": "&#39;"}),
    )


def _is_latin_1(value: str) -> bool:
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True
