"""COSBench's workload files as elements that know their places. They come from anywhere: nothing in them is trusted.

Read by expat with everything refused that a workload file has no use for: document types, and with them entities and what
they unfold to or fetch; and whatever is larger or deeper than any such file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ground.document import DocumentError, Fault
from ground.errors import UsageError

LARGEST_FILE_BYTES = 1_000_000
DEEPEST = 12
MOST_ELEMENTS = 20_000
"""COSBench's own samples have some 4 kB, five levels and a few dozen elements."""

LONGEST_SHOWN = 400
"""Characters of a line that are shown with a fault."""

_SECRET = re.compile(r"(?i)\b(password|secretkey|accesskey|token|usertoken|username|userid)\s*=\s*[^;\"'>]*")
"""What must not be shown of a line, as it stands in a config."""


@dataclass(frozen=True)
class Place:
    """Where something stands in the file: line and column from 1, and the text of that line without secrets."""

    file: str
    line: int
    column: int
    text: str

    def fault(self, message: str) -> Fault:
        """A fault there."""
        return Fault(self.file, self.line, self.column, message, self.text)


@dataclass(frozen=True)
class Element:
    """An element, its attributes and children in the order of the file, and the places of it and of its attributes."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    place: Place
    places: tuple[Place, ...]
    """Of the attributes, in their order."""
    children: list[Element] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Text between the tags, where it is more than blanks."""

    def get(self, name: str) -> str | None:
        """The value of an attribute."""
        return next((value for key, value in self.attributes if key == name), None)

    def at(self, name: str) -> Place:
        """Where an attribute stands; where there is none of the name, the element."""
        return next((place for (key, _), place in zip(self.attributes, self.places, strict=True) if key == name), self.place)

    def all(self, tag: str) -> Iterator[Element]:
        """The children of a name."""
        return (child for child in self.children if child.tag == tag)


def read(path: Path) -> Element:
    """The root element of a file. Raises DocumentError, or UsageError when the file cannot be read."""
    try:
        if not path.is_file():
            raise UsageError(f"{path}: {'not a file' if path.exists() else 'there is no such file'}")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if len(data) > LARGEST_FILE_BYTES:
        raise UsageError(f"{path}: larger than {LARGEST_FILE_BYTES} bytes: not a workload of COSBench")
    return parse(str(path), data)


def parse(file: str, data: bytes) -> Element:
    """The root element of a document; `file` is only its name in messages. Raises DocumentError."""
    return _Reader(file, data).read()


class _Reader:
    """One reading of one document."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file = file
        self.data = data
        self.lines = data.decode("utf-8", errors="replace").split("\n")
        self.shown: dict[int, str] = {}
        self.open: list[Element] = []
        self.root: Element | None = None
        self.count = 0
        self.parser = expat.ParserCreate()
        self.parser.ordered_attributes = True
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
            place = self._place(error.lineno, error.offset + 1)
            raise DocumentError([place.fault(f"not XML: {expat.ErrorString(error.code)}")]) from None
        except (LookupError, ValueError) as error:  # an encoding that is none, or that has more than a byte a character
            raise DocumentError([self._place(1, 1).fault(f"not XML: {error}")]) from None
        if self.root is None:
            raise DocumentError([self._place(1, 1).fault("not XML: nothing in it")])
        return self.root

    def _place(self, line: int, column: int) -> Place:
        if line not in self.shown:  # there may be many places in one line
            text = self.lines[line - 1][:LONGEST_SHOWN] if 0 < line <= len(self.lines) else ""
            hidden = _SECRET.sub(lambda found: f"{found[1]}=" + "*" * max(3, len(found[0]) - len(found[1]) - 1), text)
            self.shown[line] = "".join(one if one.isprintable() else " " for one in hidden)
        return Place(self.file, line, column, self.shown[line])

    def _here(self) -> Place:
        return self._place(self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def _refuse(self, message: str) -> DocumentError:
        return DocumentError([self._here().fault(message)])

    def _doctype(self, *_: object) -> int:
        raise self._refuse("a document type or an entity: no workload needs one, and it may stand for anything: take it out")

    def _start(self, tag: str, attributes: list[str]) -> None:
        self.count += 1
        if self.count > MOST_ELEMENTS:
            raise self._refuse(f"more than {MOST_ELEMENTS} elements")
        if len(self.open) >= DEEPEST:
            raise self._refuse(f"nested deeper than {DEEPEST} elements")
        pairs = tuple(zip(attributes[::2], attributes[1::2], strict=True))
        here = self._here()
        places = self._attributes(here, len(pairs))
        element = Element(tag, pairs, here, tuple(places.get(name, here) for name, _ in pairs))
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def _attributes(self, tag: Place, count: int) -> dict[str, Place]:
        """Where the attributes of the tag that begins here stand: expat does not tell, so they are looked for."""
        places: dict[str, Place] = {}
        if not count:
            return places
        begin = self.parser.CurrentByteIndex
        rest = self.data[begin : begin + 65536]
        for found in re.finditer(rb"""\s([^\s=<>"']+)\s*=\s*(?:"[^"]*"|'[^']*')""", rest):
            before = rest[: found.start(1)]
            lines = before.count(b"\n")
            column = found.start(1) - before.rfind(b"\n") if lines else tag.column + found.start(1)
            places[found[1].decode("utf-8", errors="replace")] = self._place(tag.line + lines, column)
            if len(places) == count:
                break
        return places

    def _end(self, tag: str) -> None:
        self.open.pop()

    def _characters(self, text: str) -> None:
        if text.strip():
            self.open[-1].words.append(text.strip())
