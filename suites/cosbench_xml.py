"""COSBench's workload files as elements with positions. Nothing in them is trusted.

Parsed by expat, which refuses what no workload file needs: document types, and with them entities
and their expansion; and files that are too large or nested too deeply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from weighbridge.common.document import DocumentError, Fault
from weighbridge.common.errors import UsageError

LARGEST_FILE_BYTES = 1_000_000
DEEPEST = 12
MOST_ELEMENTS = 20_000
"""COSBench's own samples have some 4 kB, five levels and a few dozen elements."""

LONGEST_SHOWN = 400
"""Characters of a tag that are shown with a fault."""

DECODED = frozenset({"gb2312", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"})
"""Encodings that expat does not know and COSBench does: what is no character becomes U+FFFD."""
_DECLARED = re.compile(rb"""<\?xml\s[^>]{1,80}?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")

HIDDEN = "***"
SHOWN_ATTRIBUTES = frozenset({
    "name", "description", "type", "workers", "interval", "division", "runtime", "rampup",
    "rampdown", "afr", "totalOps", "totalBytes", "driver", "ratio", "id", "closuredelay",
})  # fmt: skip
SHOWN_KEYS = frozenset({
    "containers", "objects", "sizes", "cprefix", "csuffix", "oprefix", "osuffix", "chunked",
    "content", "hashCheck", "fileselection", "createContainer", "deleteContainer", "histogram",
    "timeout", "policy", "path_style_access", "logging", "retry", "caching", "service", "region",
    "storage_class", "aws_region", "no_verify_ssl", "part_size", "restore_days", "is_prefetch",
    "is_range_request", "file_length", "chunk_length",
})  # fmt: skip
"""Config keys whose values are shown; all others may be secrets of some COSBench extension."""
SHOWN_URLS = frozenset({"auth_url", "url", "storage_url", "endpoint"})
"""Shown only if they are plain URLs."""
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(/[^?#;@]*)?")


@dataclass(frozen=True)
class XmlPlace:
    """A position in the file: line and column from 1, the tag without secrets, a caret in it."""

    file: str
    line: int
    column: int
    text: str
    caret: int

    def fault(self, message: str) -> Fault:
        """A fault at this position."""
        return Fault(self.file, self.line, self.column, message, self.text, self.caret)


@dataclass(frozen=True)
class Element:
    """An element with its attributes and children in file order, and their positions."""

    tag: str
    attributes: Mapping[str, str]
    place: XmlPlace
    places: Mapping[str, XmlPlace]
    """Of the attributes."""
    children: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Text between the tags, without blanks."""

    def get(self, name: str) -> str | None:
        return self.attributes.get(name)

    def at(self, name: str) -> XmlPlace:
        """The position of an attribute; of the element if there is no such attribute."""
        return self.places.get(name, self.place)

    def all(self, tag: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag == tag)


def read(path: Path) -> Element:
    """A file's root element. Raises DocumentError, or UsageError if it cannot be read."""
    try:
        if not path.is_file():
            raise UsageError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if len(data) > LARGEST_FILE_BYTES:
        raise UsageError(f"{path}: larger than {LARGEST_FILE_BYTES} bytes: no COSBench workload")
    return parse(str(path), data)


def parse(file: str, data: bytes) -> Element:
    """The root element of a document; `file` is only its name in messages. Raises DocumentError."""
    return _Reader(file, data).read()


class _Reader:
    """One parse of one document."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file = file
        declared = _DECLARED.match(data)
        encoding = declared[1].decode().lower() if declared else ""
        decoded = encoding in DECODED
        self.data = data.decode(encoding, "replace").encode() if decoded else data
        self.tags: dict[int, list[str]] = {}
        """By line, the tags read so far as they may be shown."""
        self.open: list[Element] = []
        self.root: Element | None = None
        self.count = 0
        self.parser = expat.ParserCreate("utf-8" if decoded else None)
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype
        self.parser.ExternalEntityRefHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters

    def read(self) -> Element:
        try:
            self.parser.Parse(self.data, True)  # noqa: FBT003 - the parameter has no name
        except expat.ExpatError as error:
            message = f"not XML: {expat.ErrorString(error.code)}"
            raise self._refused(message, error.lineno, error.offset + 1) from None
        except (LookupError, ValueError) as error:  # an unknown or a multi-byte encoding
            raise self._refused(f"not XML: {error}; save it as UTF-8", 1, 1) from None
        if self.root is None:
            raise self._refused("not XML: no element", 1, 1)
        return self.root

    def _refused(self, message: str, line: int, column: int) -> DocumentError:
        """A fault outside any known tag, shown with the tags that begin on its line."""
        shown = " ".join(self.tags.get(line, ()))[:LONGEST_SHOWN]
        return DocumentError([Fault(self.file, line, column, message, shown, 0)])

    def _here(self) -> tuple[int, int]:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def _doctype(self, *_: object) -> int:
        message = (
            "a document type or an entity: no workload needs one, and it may expand to anything; "
            "remove it"
        )
        raise self._refused(message, *self._here())

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST_ELEMENTS:
            raise self._refused(f"more than {MOST_ELEMENTS} elements", *self._here())
        if len(self.open) >= DEEPEST:
            raise self._refused(f"nested deeper than {DEEPEST} elements", *self._here())
        line, column = self._here()
        # Never show the file's own text: there a secret may be encoded in many ways.
        text, carets = _tag_shown(tag, attributes)
        self.tags.setdefault(line, []).append(text)
        positions = self._attributes(line, column, len(attributes))
        places = {
            name: XmlPlace(self.file, *positions.get(name, (line, column)), text, caret)
            for name, caret in carets.items()
        }
        element = Element(tag, attributes, XmlPlace(self.file, line, column, text, 1), places)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _attributes(self, tag_line: int, tag_column: int, count: int) -> dict[str, tuple[int, int]]:
        """Positions of the current tag's attributes, which expat does not report."""
        places: dict[str, tuple[int, int]] = {}
        if not count:
            return places
        begin = self.parser.CurrentByteIndex
        rest = self.data[begin : begin + 65536]
        for found in re.finditer(rb"""\s([^\s=<>"']+)\s*=\s*(?:"[^"]*"|'[^']*')""", rest):
            before = rest[: found.start(1)]
            lines = before.count(b"\n")
            column = found.start(1) - before.rfind(b"\n") if lines else tag_column + found.start(1)
            places[found[1].decode("utf-8", errors="replace")] = tag_line + lines, column
            if len(places) == count:
                break
        return places

    def _end(self, tag: str) -> None:
        self.open.pop()

    def _characters(self, text: str) -> None:
        if text.strip():
            self.open[-1].words.append(text.strip())


def _tag_shown(tag: str, attributes: Mapping[str, str]) -> tuple[str, dict[str, int]]:
    """A tag with its attributes as they may be shown, and the column of each in it, from 1."""
    text, carets = f"<{tag}", {}
    for name, value in attributes.items():
        carets[name] = len(text) + 2
        if name == "config":
            shown = ";".join(_pair_shown(*part.partition("=")) for part in value.split(";"))
        else:
            shown = value if name in SHOWN_ATTRIBUTES else HIDDEN
        text += f' {name}="{shown}"'
    return f"{text}>", carets


def _pair_shown(key: str, equals: str, value: str) -> str:
    name = key.strip()
    if not equals:  # it may be the rest of a secret that contains a semicolon
        return HIDDEN if name else key
    harmless = name in SHOWN_KEYS or (name in SHOWN_URLS and _PLAIN_URL.fullmatch(value.strip()))
    return f"{key}={value if harmless else HIDDEN}"
