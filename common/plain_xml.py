"""Untrusted XML, such as a server's bucket listing: elements, attributes and text, nothing else.

Document types are refused, and with them entities, their expansion and what they would fetch; so is
anything larger or deeper than such a response can be.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html import unescape
from typing import Final
from xml.parsers import expat

LARGEST_BYTES = 32 * 1024 * 1024
"""A listing of 1000 names of 1024 bytes, each byte an entity of six, has some 7 MB."""
DEEPEST = 50
LONGEST_ERROR_BYTES = 4096
"""Of an error no more is read."""


class NotPlain(ValueError):
    """Not XML, or refused. The message says what and where."""


def parse(data: bytes) -> ET.Element:
    """The root element, with names as `{namespace}name`. Raises NotPlain."""
    if len(data) > LARGEST_BYTES:
        raise NotPlain(f"XML of {len(data)} bytes: more than {LARGEST_BYTES} are not read")
    return _Reader().read(data)


_PAGE_TITLE = re.compile(r"<title>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TOLD = re.compile(r"<(?:\w+:)?(?:Code|Message)>(.*?)(?:</|\Z)", re.DOTALL)
_LONGEST_WORDS = 200
REMEDIES: Final = {
    "InvalidLocationConstraint": "give this store's region, mostly us-east-1, in $AWS_REGION",
    "QuotaExceeded": "delete some, or raise the quota",
    "TooManyBuckets": "delete some (`weighbridge clean` finds what runs left), or raise the limit",
    "413 Request Entity Too Large": "raise client_max_body_size of the nginx before the store",
}
"""What to do, by S3's codes of refusals that no key is to blame for, and by titles of pages."""


def error_words(body: bytes) -> str:
    """What the body of an error says, on one line: S3's code, message and what to do, the title of
    a page, or its beginning. The body may be cut off.
    """
    text = body[:LONGEST_ERROR_BYTES].decode(errors="replace")
    title = _PAGE_TITLE.search(text)
    told = [unescape(words) for words in _TOLD.findall(text)]
    words = ": ".join(filter(None, told)) or (title[1] if title else text)
    if "\ufffd" in words.rstrip("\ufffd"):
        words = "(no text)"
    words = " ".join("".join(sign if sign.isprintable() else " " for sign in words).split())
    words = words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 4]} ..."
    remedy = REMEDIES.get(told[0] if told else words)
    return f"{words}; {remedy}" if remedy else words


def bucket_body(api: str, region: str) -> bytes:
    """The body that creates a bucket in a region; none is needed for us-east-1 (S3 API reference,
    CreateBucket), and Swift has none.
    """
    if api != "s3" or region == "us-east-1":
        return b""
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    location = f"<LocationConstraint>{region}</LocationConstraint>"
    document = f'<CreateBucketConfiguration xmlns="{space}">{location}</CreateBucketConfiguration>'
    return document.encode()


class _Reader:
    def __init__(self) -> None:
        self._builder = ET.TreeBuilder()
        self._depth = 0
        self._parser = expat.ParserCreate(namespace_separator="}")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._parser.ExternalEntityRefHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._builder.data

    def read(self, data: bytes) -> ET.Element:
        try:
            self._parser.Parse(data, True)  # noqa: FBT003 - the parameter has no name
            return self._builder.close()
        except expat.ExpatError as error:
            raise NotPlain(f"not XML: {error}") from None
        except NotPlain:
            raise
        except (LookupError, ValueError) as error:  # an unknown or a multi-byte encoding
            raise NotPlain(f"not XML: {error}") from None

    def _refuse(self, *_: object) -> int:
        raise NotPlain(
            f"line {self._parser.CurrentLineNumber}: a document type or an entity, not allowed here"
        )

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise NotPlain(
                f"line {self._parser.CurrentLineNumber}: nested deeper than {DEEPEST} elements"
            )
        self._builder.start(_name(tag), {_name(name): value for name, value in attributes.items()})

    def _end(self, tag: str) -> None:
        self._depth -= 1
        self._builder.end(_name(tag))


def _name(name: str) -> str:
    return f"{{{name}" if "}" in name else name
