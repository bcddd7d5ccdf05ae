"""A layout as a command line or a suite names it: `NAME[@RELEASE][:KEY=VALUE]...`.

    rgw-beast                        the layout that ships
    my/layout.yaml                   a file
    rgw-beast@ceph-18                at another release
    rgw-beast:radosgw.threads=64     with other settings; keys are those below `settings`, or `place.KEY`
    swift:replicas=2:proxy.workers=4

What is changed is part of the layout's name in results, so that a layout can be compared with itself changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from ground.document import DocumentError, Fault
from ground.errors import UsageError

LONGEST_NAME = 40
"""Names of layouts are parts of file names; Layout bounds them so."""

_KEY = re.compile(r"[a-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class Change:
    """One setting that is not as the file has it. `path` starts at the top of the file."""

    path: tuple[str, ...]
    value: object
    word: str
    """As it was written."""
    column: int
    """Where in the reference it was written, from 1."""


@dataclass(frozen=True)
class Reference:
    """A layout's file or name, and what is to be different from it. `text` is the reference as it was written."""

    name: str
    text: str
    changes: tuple[Change, ...] = ()

    def fault(self, change: Change) -> Fault:
        """Where faults of a change are told."""
        return Fault("layout", 1, change.column, "", self.text)

    def renamed(self, name: str) -> str:
        """The name of the changed layout, of at most LONGEST_NAME characters."""
        words = [name]
        for change in self.changes:
            last = "" if change.path == ("release",) else change.path[-1]
            words.append(f"{last}-{change.word}" if last else change.word)
        full = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
        if len(full) <= LONGEST_NAME:
            return full
        told = hashlib.sha256(self.text.encode()).hexdigest()[:6]
        return f"{full[: LONGEST_NAME - 7].rstrip('-')}-{told}"


def parse(text: str) -> Reference:
    """Read a reference. Raises DocumentError that points into it."""
    head, *parts = _split(text, ":")
    name, at, release = head.partition("@")
    changes = []
    if at:
        if not release:
            raise _wrong(text, len(head), "a release is wanted after @, such as rgw-beast@ceph-18")
        changes.append(Change(("release",), release, release, len(name) + 2))
    column = len(head) + 2
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise _wrong(text, column, f"{part!r} is not KEY=VALUE, such as radosgw.threads=64")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            raise _wrong(text, column, f"{value!r} is not a value as a layout file has it") from None
        path = tuple(key.split("."))
        changes.append(Change(path if path[0] == "place" else ("settings", *path), read, value, column))
        column += len(part) + 1
    return Reference(name, text, tuple(changes))


def split(text: str) -> list[str]:
    """References with commas between; a comma within brackets belongs to a value."""
    return [word.strip() for word in _split(text, ",") if word.strip()]


def _split(text: str, mark: str) -> Sequence[str]:
    parts, depth = [""], 0
    for character in text:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0)
        if character == mark and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise UsageError(f"{text!r}: brackets are not closed")
    return parts


def _wrong(text: str, column: int, message: str) -> DocumentError:
    return DocumentError([Fault("layout", 1, column, message, text)])
