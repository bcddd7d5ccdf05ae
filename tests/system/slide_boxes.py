"""A deck as LibreOffice shows it: where each word is, and in which font, beside where its shape is.

All figures are points from the upper left corner of a slide.
"""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pptx import Presentation
from pptx.oxml.ns import qn

from packaged import packaged

DEADLINE_S = 300
TOLERANCE_PT = 0.5
BEYOND = 0.12
"""A word's box reaches from its font's lowest to its highest letter: so much of it may be above
and below what its line takes.
"""
LIBERATION = Path("/usr/share/fonts/truetype/liberation")
NO_LIBERATION = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <cachedir>{folder}/fontcache</cachedir>
  <include ignore_missing="yes">/etc/fonts/conf.d</include>
  <selectfont><rejectfont><glob>*/liberation*/*</glob></rejectfont></selectfont>
</fontconfig>
"""
"""A machine without Arial and without a font of its widths, as Debian's minimal ones are."""


@dataclass(frozen=True)
class Box:
    """A word on a page, or a shape with its text; None: any text, as that of a chart."""

    text: str | None
    left: float
    top: float
    right: float
    low: float

    def holds(self, word: Box) -> bool:
        """Whether a word is of this shape's text, and inside it."""
        beyond = TOLERANCE_PT + BEYOND * (word.low - word.top)
        return (
            self.says(word)
            and self.left - TOLERANCE_PT <= word.left
            and self.top - beyond <= word.top
            and word.right <= self.right + TOLERANCE_PT
            and word.low <= self.low + beyond
        )

    def says(self, word: Box) -> bool:
        """Whether the word is of its text."""
        return self.text is None or (word.text or "") in squeezed(self.text)


def squeezed(text: str) -> str:
    """A text without any space."""
    return re.sub(r"\s+", "", text)


def tool(
    name: str, *arguments: str, folder: Path, hidden: Path | None = None, **environment: str
) -> str:
    """What a program of Poppler's, or `soffice`, prints, for which the folder `hidden` is empty."""
    package = "libreoffice-impress" if name == "soffice" else "poppler-utils"
    command = (packaged(name, package), *arguments)
    if hidden is not None:
        line = 'mount -t tmpfs none "$0" && exec "$@"'
        command = ("unshare", "--mount", "sh", "-c", line, str(hidden), *command)
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
        env={**os.environ, **environment},
    )
    return done.stdout


def unshrunk(deck: bytes) -> bytes:
    """The deck as PowerPoint shows it, which sets no text smaller before somebody edits it."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(deck)) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<a:normAutofit/>", b""))
    assert out.getvalue() != deck
    return out.getvalue()


def show(folder: Path, decks: Mapping[str, bytes], *, liberation: bool = True) -> dict[str, Path]:
    """The decks as PDFs in the folder, by their names."""
    for name, deck in decks.items():
        (folder / f"{name}.pptx").write_bytes(deck)
    environment = {}
    if not liberation:
        # Fontconfig is not asked by LibreOffice 25.2 alone.
        (folder / "fonts.conf").write_text(NO_LIBERATION.format(folder=folder))
        environment["FONTCONFIG_FILE"] = str(folder / "fonts.conf")
    tool(
        "soffice",
        f"-env:UserInstallation=file://{folder}/profile",
        "--headless",
        "--convert-to",
        "pdf",
        *(f"{name}.pptx" for name in decks),
        folder=folder,
        hidden=None if liberation else LIBERATION,
        **environment,
    )
    return {name: folder / f"{name}.pdf" for name in decks}


def fonts(pdf: Path) -> set[str]:
    """The families of a PDF's fonts, without spaces and weights."""
    lines = tool("pdffonts", pdf.name, folder=pdf.parent).splitlines()[2:]
    return {line.split()[0].partition("+")[2].partition("-")[0] for line in lines}


def words(pdf: Path) -> list[list[Box]]:
    """The words of each page."""
    pages = tool("pdftotext", "-bbox", pdf.name, "-", folder=pdf.parent).split("<page ")[1:]
    return [
        [
            Box(html.unescape(text), *map(float, (left, top, right, low)))
            for left, top, right, low, text in re.findall(
                r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">'
                r"(.*?)</word>",
                page,
            )
        ]
        for page in pages
    ]


def shapes(deck: bytes) -> list[list[Box]]:
    """The shapes of each slide that have a text, and the cells of its tables."""
    return [[*_of_slide(slide)] for slide in Presentation(io.BytesIO(deck)).slides]


def _of_slide(slide: Any) -> Iterator[Box]:
    for one in slide.shapes:
        left, top = one.left.pt, one.top.pt
        box = (left, top, left + one.width.pt, top + one.height.pt)
        if one.has_chart:
            yield Box(None, *box)
        elif one.has_table:
            yield from _cells(one.table, left, top)
        elif one.has_text_frame and squeezed(text := _text(one)):
            yield Box(text, *box)


def _text(shape: Any) -> str:
    """A shape's text, with that of fields, which python-pptx leaves out, and its bullets."""
    element = shape._element
    bullets = [one.get("char") for one in element.iter(qn("a:buChar"))]
    return "".join((*bullets, *element.itertext()))


def _cells(table: Any, left: float, top: float) -> Iterator[Box]:
    lefts, tops = [left], [top]
    for column in table.columns:
        lefts.append(lefts[-1] + column.width.pt)
    for row in table.rows:
        tops.append(tops[-1] + row.height.pt)
    for row in range(len(table.rows)):
        for column in range(len(table.columns)):
            cell = table.cell(row, column)
            if not cell.is_spanned and cell.text:
                right, low = column + cell.span_width, row + cell.span_height
                yield Box(
                    cell.text,
                    lefts[column],
                    tops[row],
                    lefts[right if cell.is_merge_origin else column + 1],
                    tops[low if cell.is_merge_origin else row + 1],
                )


def strays(deck: bytes, pdf: Path) -> list[str]:
    """The words that are outside every shape that has them, each with its slide. The marks of lists
    are none: LibreOffice takes them from a font of symbols, whose box is higher than its line.
    """
    found: list[str] = []
    pages, slides = words(pdf), shapes(deck)
    assert len(pages) == len(slides)
    for number, (page, areas) in enumerate(zip(pages, slides, strict=True), start=1):
        assert page
        for word in page:
            if word.text != "•" and not any(one.holds(word) for one in areas):
                where = [
                    (round(one.left), round(one.top), round(one.right), round(one.low))
                    for one in areas
                    if one.says(word)
                ]
                found.append(
                    f"slide {number}: {word.text!r} is at {word.left:.0f}, {word.top:.0f}, "
                    f"{word.right:.0f}, {word.low:.0f}, but its shapes are at {where}"
                )
    return found
