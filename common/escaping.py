"""Texts on their way to a terminal or a page: text from elsewhere is escaped, since terminals and
pages obey some control characters, and commands that a text advises can be pasted.
"""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Mapping
from typing import Final, TypeVar

_UNUSUAL: Final = re.compile(r"[^\n\t -~]")
"""Checked one by one; most text has none of these."""

_URL: Final = re.compile(r"""//((?:[^\s"']*(?=@))?)([^\s"'?#]*)((?:[?#][^\s"']*)?)""")

_WORD: Final = re.compile(r"""[^\s"']+""")
_PORT: Final = re.compile(r"\d*[].,:;)}]*|PORT[][]*")
"""A port, and what a sentence or a list has after it; or its place in a form that is advised."""
_SECRET: Final = re.compile(
    r"""((?:key(?!stone)|secret|password|token)[\w-]{0,40}["']?\s{0,9}(?:(:)|=))"""
    r"""((?(2).*|(?:"[^"]*"?|'[^']*'?|[^;&"']*)))""",
    re.IGNORECASE,
)
"""YAML's key with the rest of its line; after `=`, what quotes or a list's next part end."""

_ADVISED: Final = re.compile(r"(?<![\w/.-])weighbridge (?=[a-z])")
"""The program's name before a verb."""

Value = TypeVar("Value")


def escape_controls(text: str) -> str:
    """Text with unprintable characters escaped: control sequences, and marks that reverse it."""
    return text if text.isprintable() else _UNUSUAL.sub(_shown, text)


def mask_urls(text: str) -> str:
    """The text with stars for what may be a secret in URLs: user, query, fragment, and what is no
    number in place of a port; as long.
    """

    def masked(match: re.Match[str]) -> str:
        user, place, query = match.groups()
        address = place.find("]") + 1 if place.lstrip("@").startswith("[") else 0
        port = place[address:].partition(":")[2].partition("/")[0]
        if not _PORT.fullmatch(port):
            place = place.replace(f":{port}", f":{'*' * len(port)}", 1)
        return f"//{'*' * len(user)}{place}{query[:1]}{'*' * len(query[1:])}"

    return _URL.sub(masked, _WORD.sub(_without_user, text))


def _without_user(word: re.Match[str]) -> str:
    """`user:password@host` masked: what lacks its scheme is no less a secret."""
    user, _, host = word[0].rpartition("@")
    if "//" in user or ":" not in user:
        return word[0]
    return f"{'*' * len(user)}@{host}"


def mask_line(line: str) -> str:
    """A line of a file or option, as long, with stars also after a key that may be a secret's."""
    return _SECRET.sub(lambda match: match[1] + re.sub(r"\S", "*", match[3]), mask_urls(line))


def as_started(text: str) -> str:
    """The text with the commands that it advises as this one was started: a shell may not find the
    program by its name. What is kept or sent elsewhere keeps the name.
    """
    return _ADVISED.sub(lambda _: f"{_started()} ", text) if "weighbridge " in text else text


def _started() -> str:
    import shlex  # noqa: PLC0415 - few texts advise a command, and `--help` must be fast
    import shutil  # noqa: PLC0415 - as above

    path = sys.argv[0]
    folder, name = os.path.split(path)
    if name == "__main__.py" and folder.endswith("weighbridge"):
        return f"{shlex.quote(sys.executable)} -m weighbridge"
    by_name = os.path.realpath(shutil.which("weighbridge") or "")
    if not folder or name != "weighbridge" or by_name == os.path.realpath(path):
        return "weighbridge"
    return shlex.quote(path)


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
