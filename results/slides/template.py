"""The empty file for a deck: one layout (title only) at 16:9, with the deck's font and colours as
theme.

A speaker who changes the theme changes the complete deck; added slides look like the others.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from lxml import etree
from pptx import Presentation
from pptx.opc.constants import RELATIONSHIP_TYPE
from pptx.oxml.ns import qn
from pptx.util import Pt

from weighbridge.results.show.theme import DARK, LIGHT
from weighbridge.results.slides.fitting import HEIGHT_PT, LEFT_PT, ROOM_PT, TOP_PT, WIDTH_PT
from weighbridge.results.slides.paint import MAIN, bare, serialized, xml
from weighbridge.results.slides.slide import Deck
from weighbridge.results.slides.typeface import TYPEFACE

_AUTHOR: Final = "Weighbridge"
_TITLE_ONLY: Final = "Title Only"
_ACCENTS: Final = 6


def blank(deck: Deck) -> Any:
    """A presentation without slides."""
    presentation = Presentation()
    presentation.slide_width, presentation.slide_height = Pt(WIDTH_PT), Pt(HEIGHT_PT)
    _keep_one_layout(presentation)
    _paint(presentation, deck)
    _place_titles(presentation)
    _remove_extras(presentation)
    properties = presentation.core_properties
    properties.title, properties.subject = deck.title[:255], deck.subject[:255]
    properties.author = properties.last_modified_by = _AUTHOR
    properties.keywords = properties.comments = properties.category = ""
    properties.revision = 1
    properties.created = properties.modified = _when(deck.dated)
    return presentation


def _when(dated: str) -> datetime:
    return datetime.fromisoformat(dated).astimezone(UTC).replace(tzinfo=None, microsecond=0)


def _keep_one_layout(presentation: Any) -> None:
    for layout in list(presentation.slide_layouts):
        if layout.name != _TITLE_ONLY:
            presentation.slide_layouts.remove(layout)


def _place_titles(presentation: Any) -> None:
    """Put the titles of master and layout where slides have theirs: left, bold, of a fixed size."""
    master = presentation.slide_masters[0]
    for sheet in (master, presentation.slide_layouts[0]):
        for shape in list(sheet.placeholders):
            # 1 and 3 are titles; body, date, footer and number are removed.
            if shape.placeholder_format.type not in (1, 3):
                shape._element.getparent().remove(shape._element)  # noqa: SLF001 - python-pptx removes no shapes
                continue
            shape.left, shape.top, shape.width, shape.height = (
                Pt(LEFT_PT),
                Pt(TOP_PT),
                Pt(ROOM_PT),
                Pt(78),
            )
            body = shape._element.txBody.find(qn("a:bodyPr"))  # noqa: SLF001 - as above
            for name in list(body):
                body.remove(name)
            for name in ("lIns", "rIns", "tIns", "bIns"):
                body.set(name, "0")
            body.set("anchor", "t")
            body.set("wrap", "square")
    style = master._element.find(qn("p:txStyles")).find(qn("p:titleStyle")).find(qn("a:lvl1pPr"))  # noqa: SLF001 - as above
    style.set("algn", "l")
    style.find(qn("a:defRPr")).set("b", "1")
    style.find(qn("a:defRPr")).set("sz", "3200")


def _paint(presentation: Any, deck: Deck) -> None:
    """Set the theme's font and colours; a dark deck swaps them by the master's map."""
    master = presentation.slide_masters[0]
    part = master.part.part_related_by(RELATIONSHIP_TYPE.THEME)
    theme = etree.fromstring(part.blob)
    dark = deck.look.name == "dark"
    colours = {
        "dk1": (DARK.background if dark else LIGHT.ink),
        "lt1": (DARK.ink if dark else LIGHT.background),
        "dk2": deck.look.axis,
        "lt2": deck.look.grid,
    }
    accents = [deck.colours[number % len(deck.colours)] for number in range(_ACCENTS)]
    colours |= {f"accent{number}": colour for number, colour in enumerate(accents, start=1)}
    scheme = theme.find(f".//{{{MAIN}}}clrScheme")
    for name, colour in colours.items():
        place = scheme.find(f"{{{MAIN}}}{name}")
        for old in list(place):
            place.remove(old)
        etree.SubElement(place, f"{{{MAIN}}}srgbClr").set("val", bare(colour))
    for latin in theme.iterfind(f".//{{{MAIN}}}fontScheme//{{{MAIN}}}latin"):
        latin.set("typeface", TYPEFACE)
    part._blob = serialized(theme)  # noqa: SLF001 - python-pptx has no API for themes
    if dark:
        colour_map = master._element.find(qn("p:clrMap"))  # noqa: SLF001 - as above
        for name, value in (("bg1", "dk1"), ("tx1", "lt1"), ("bg2", "dk2"), ("tx2", "lt2")):
            colour_map.set(name, value)
    ground = master._element.cSld.find(qn("p:bg"))  # noqa: SLF001 - as above
    if ground is not None:
        master._element.cSld.remove(ground)  # noqa: SLF001 - as above
    master.background.fill.solid()
    master._element.cSld.find(qn("p:bg")).find(f".//{{{MAIN}}}solidFill").append(  # noqa: SLF001 - as above
        xml('<a:schemeClr val="bg1"/>')
    )


def _remove_extras(presentation: Any) -> None:
    """Remove the thumbnail and printer settings of python-pptx's default file."""
    package = presentation.part.package
    for owner in (package, presentation.part):
        rels = owner._rels  # noqa: SLF001 - no API
        for key, rel in list(rels.items()):
            if rel.reltype.endswith(("/thumbnail", "/printerSettings")):
                rels.pop(key)
