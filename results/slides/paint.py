from __future__ import annotations

from typing import Any, Final

from lxml import etree
from pptx.dml.color import RGBColor
from pptx.oxml import parse_xml

MAIN: Final = "http://schemas.openxmlformats.org/drawingml/2006/main"
CHART: Final = "http://schemas.openxmlformats.org/drawingml/2006/chart"


def rgb(colour: str) -> RGBColor:
    """`#rrggbb` for python-pptx."""
    found: RGBColor = RGBColor.from_string(bare(colour))
    return found


def bare(colour: str) -> str:
    """`#rrggbb` for XML: without `#`, in upper case."""
    return colour.removeprefix("#").upper()


def xml(text: str) -> Any:
    """An XML element with the prefixes `a` and `c`."""
    name, rest = text[1:].split(">", 1)[0].split(maxsplit=1)[0].rstrip("/"), text[1:]
    return parse_xml(f'<{name} xmlns:a="{MAIN}" xmlns:c="{CHART}"{rest[len(name) :]}')


def serialized(root: Any) -> bytes:
    """A part of the file, from its root."""
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))
