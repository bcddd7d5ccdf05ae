"""A layout as a command line or a suite names it: `NAME[@RELEASE][:KEY=VALUE]...`.

    rgw-beast                          a shipped layout
    my/layout.yaml                     a file
    rgw-beast@ceph-18                  another release
    rgw-beast:radosgw.threads=64       other settings: keys below `settings`, or `place.KEY`
    swift:replicas=2:proxy.workers=4

Changes are part of the layout's name in results, so that a layout can be compared with its changes.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import BaseModel

from weighbridge.common.document import DocumentError, Fault
from weighbridge.common.errors import UsageError

LONGEST_NAME = 40
"""As in Layout: names of layouts are parts of file names."""

_KEY = re.compile(r"[a-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class ChangedSetting:
    """One changed setting. `path` starts at the top of the file."""

    path: tuple[str, ...]
    value: object
    word: str
    """The value as it was written."""
    column: int
    """Its place in the reference, from 1."""


@dataclass(frozen=True)
class Reference:
    """A layout's file or name, and changes to it; `text` is the reference as it was written."""

    name: str
    text: str
    changes: tuple[ChangedSetting, ...] = ()

    def fault(self, change: ChangedSetting) -> Fault:
        """The place of faults of a change."""
        return Fault("layout", 1, change.column, "", self.text)

    def renamed(self, name: str) -> str:
        """The name of the changed layout, of at most LONGEST_NAME characters."""
        words = [name]
        for change in self.changes:
            last = "" if change.path == ("release",) else change.path[-1]
            words.append(f"{last}-{change.word}" if last else change.word)
        return slug(words, self.text)


def slug(words: Sequence[str], identity: str) -> str:
    """A name of these words; one above LONGEST_NAME characters ends in a hash of `identity`."""
    full = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
    if len(full) <= LONGEST_NAME:
        return full
    digest = hashlib.sha256(identity.encode()).hexdigest()[:6]
    return f"{full[: LONGEST_NAME - 7].rstrip('-')}-{digest}"


def parse(text: str) -> Reference:
    """Read a reference. Raises DocumentError that points into it."""
    head, *parts = _split(text, ":")
    name, at, release = head.partition("@")
    changes = []
    if at:
        if not release:
            raise _wrong(text, len(head), "@ needs a release, such as rgw-beast@ceph-18")
        changes.append(ChangedSetting(("release",), release, release, len(name) + 2))
    column = len(head) + 2
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise _wrong(text, column, f"{part!r} is not KEY=VALUE, such as radosgw.threads=64")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            raise _wrong(text, column, f"{value!r} is not a value in YAML") from None
        keys = tuple(key.split("."))
        path = keys if keys[0] == "place" else ("settings", *keys)
        changes.append(ChangedSetting(path, read, value, column))
        column += len(part) + 1
    return Reference(name, text, tuple(changes))


def path_of(key: str, settings: type[BaseModel]) -> tuple[str, ...]:
    """The path of a dotted key below settings of this record.

    Below a mapping of options a name may itself have dots: the last word is the option and the
    words before it the section, after the server where sections are kept by server:
    `options.client.rgw.gateway-1.rgw_frontends` is the option `rgw_frontends` of the section
    `client.rgw.gateway-1`. Words that the record does not know are kept, for the reader of the
    settings to refuse.
    """
    words, found = key.split("."), list[str]()
    model: type[BaseModel] | None = settings
    while words and model is not None:
        word, *words = words
        found.append(word)
        field = model.model_fields.get(word)
        if field is None:
            break
        levels = _levels(field.annotation)
        if levels and len(words) > levels:
            # With one level all words are the name; else those between server and option are the
            # section.
            servers = max(levels - 2, 0)
            head, rest = words[:servers], words[servers:]
            names = [".".join(rest)] if levels == 1 else [".".join(rest[:-1]), rest[-1]]
            words = [*head, *names]
        if levels:
            break
        model = _record(field.annotation)
    return (*found, *words)


def split(text: str) -> list[str]:
    """The references in a comma-separated list; a comma within brackets belongs to a value."""
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


def _levels(annotation: Any) -> int:
    """How many mappings are nested in this type."""
    if typing.get_origin(annotation) is dict:
        return 1 + _levels(typing.get_args(annotation)[1])
    return 0


def _record(annotation: Any) -> type[BaseModel] | None:
    """The record in this type; None: there is none."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    return next(
        (found for one in typing.get_args(annotation) if (found := _record(one)) is not None), None
    )


def _wrong(text: str, column: int, message: str) -> DocumentError:
    return DocumentError([Fault("layout", 1, column, message, text)])
