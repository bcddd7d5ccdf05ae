"""A layout as a command line or a suite names it: `NAME[@RELEASE][:KEY=VALUE]...`.

    rgw-beast                        the layout that ships my/layout.yaml                   a file
    rgw-beast@ceph-18                at another release rgw-beast:radosgw.threads=64     with other
    settings; keys are those below `settings`, or `place.KEY` swift:replicas=2:proxy.workers=4

What is changed is part of the layout's name in results, so that a layout can be compared with
itself changed.
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
"""Names of layouts are parts of file names; Layout bounds them so."""

_KEY = re.compile(r"[a-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True)
class ChangedSetting:
    """One setting that is not as the file has it. `path` starts at the top of the file."""

    path: tuple[str, ...]
    value: object
    word: str
    """As it was written."""
    column: int
    """Where in the reference it was written, from 1."""


@dataclass(frozen=True)
class Reference:
    """A layout's file or name, and what is to be different from it.

    `text` is the reference as it was written.
    """

    name: str
    text: str
    changes: tuple[ChangedSetting, ...] = ()

    def fault(self, change: ChangedSetting) -> Fault:
        """Where faults of a change are told."""
        return Fault("layout", 1, change.column, "", self.text)

    def renamed(self, name: str) -> str:
        """The name of the changed layout, of at most LONGEST_NAME characters."""
        words = [name]
        for change in self.changes:
            last = "" if change.path == ("release",) else change.path[-1]
            words.append(f"{last}-{change.word}" if last else change.word)
        return slug(words, self.text)


def slug(words: Sequence[str], whole: str) -> str:
    """A name of these words, of at most LONGEST_NAME characters: where they are longer, with the
    sum of `whole` at its end.
    """
    full = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")
    if len(full) <= LONGEST_NAME:
        return full
    told = hashlib.sha256(whole.encode()).hexdigest()[:6]
    return f"{full[: LONGEST_NAME - 7].rstrip('-')}-{told}"


def parse(text: str) -> Reference:
    """Read a reference. Raises DocumentError that points into it."""
    head, *parts = _split(text, ":")
    name, at, release = head.partition("@")
    changes = []
    if at:
        if not release:
            raise _wrong(text, len(head), "a release is wanted after @, such as rgw-beast@ceph-18")
        changes.append(ChangedSetting(("release",), release, release, len(name) + 2))
    column = len(head) + 2
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not _KEY.fullmatch(key):
            raise _wrong(text, column, f"{part!r} is not KEY=VALUE, such as radosgw.threads=64")
        try:
            read = yaml.safe_load(value)
        except yaml.YAMLError:
            raise _wrong(
                text, column, f"{value!r} is not a value as a layout file has it"
            ) from None
        path = tuple(key.split("."))
        changes.append(
            ChangedSetting(path if path[0] == "place" else ("settings", *path), read, value, column)
        )
        column += len(part) + 1
    return Reference(name, text, tuple(changes))


def path_of(key: str, settings: type[BaseModel]) -> tuple[str, ...]:
    """The path of a dotted key below settings that are of this record.

    Below a mapping of options a name may have dots of its own: the last word is the option, the
    words before it are the section, and where sections are kept by server the first is the server:
    `options.client.rgw.gateway-1.rgw_frontends` is the option `rgw_frontends` of the section
    `client.rgw.gateway-1`. Words that the record does not know are taken as they are: whoever reads
    the settings says so.
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
            # Of a mapping by name alone the whole rest is the name; else the section is what is
            # between server and option.
            head, rest = words[: max(levels - 2, 0)], words[max(levels - 2, 0) :]
            words = (
                [*head, ".".join(rest)] if levels == 1 else [*head, ".".join(rest[:-1]), rest[-1]]
            )
        if levels:
            break
        model = _record(field.annotation)
    return (*found, *words)


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


def _levels(annotation: Any) -> int:
    """How many mappings are within one another in this type."""
    if typing.get_origin(annotation) is dict:
        return 1 + _levels(typing.get_args(annotation)[1])
    return 0


def _record(annotation: Any) -> type[BaseModel] | None:
    """The record in this type, where there is one."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return annotation
    return next(
        (found for one in typing.get_args(annotation) if (found := _record(one)) is not None), None
    )


def _wrong(text: str, column: int, message: str) -> DocumentError:
    return DocumentError([Fault("layout", 1, column, message, text)])
