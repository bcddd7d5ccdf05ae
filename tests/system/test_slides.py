"""A talk as LibreOffice shows it: every slide a page, none of them blank, every word of every title
on it, and every text inside its shape, in a font of Arial's widths and in another.
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

import pytest
from pptx import Presentation
from pptx.oxml.ns import qn

from fake_run import WORKLOADS, StepFaults, fake_run
from fake_tuning import fake_tuning
from packaged import packaged
from talks import deck_of
from weighbridge.results.show.deck import Deck, powerpoint
from weighbridge.results.show.scales import DARK

# One core is enough for it: company for those that want no more beside them.
pytestmark = [pytest.mark.system, pytest.mark.pair]


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
        beyond = TOLERANCE_PT + BEYOND * (word.low - word.top)
        return (
            self.says(word)
            and self.left - TOLERANCE_PT <= word.left
            and self.top - beyond <= word.top
            and word.right <= self.right + TOLERANCE_PT
            and word.low <= self.low + beyond
        )

    def says(self, word: Box) -> bool:
        return self.text is None or (word.text or "") in squeezed(self.text)


def squeezed(text: str) -> str:
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


FIVE = ("rgw-beast", "rgw-civetweb", "rgw-apache-fastcgi", "rgw-haproxy", "swift")
SHORT = tuple(workload.model_copy(update={"runtime": 3.0}) for workload in WORKLOADS)


@pytest.fixture(scope="module")
def deck(tmp_path_factory: pytest.TempPathFactory) -> Deck:
    spoilt = StepFaults(
        erring=(("rgw-beast", "small-write", 32),), absent=(("swift", "large-read", 8),)
    )
    store = fake_run(
        tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=5, layouts=FIVE, spoilt=spoilt
    )
    return deck_of(store)


@pytest.fixture(scope="module")
def decks(deck: Deck, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The talk in dark, and that of a tuning, which is mostly tables."""
    tuning = deck_of(fake_tuning(tmp_path_factory.mktemp("tunings")))
    return {"talk": powerpoint(deck, DARK), "tuning": powerpoint(tuning)}


@pytest.fixture(scope="module")
def pdfs(decks: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both as PDFs, in the font of Arial's widths, with texts at the sizes that were chosen."""
    plain = {name: unshrunk(deck) for name, deck in decks.items()}
    return show(tmp_path_factory.mktemp("shown"), plain)


@pytest.fixture(scope="module")
def replaced(decks: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return show(tmp_path_factory.mktemp("replaced"), decks, liberation=False)


@pytest.fixture(scope="module")
def shown(pdfs: dict[str, Path]) -> Path:
    return pdfs["talk"]


def test_each_slide_is_a_page_and_none_is_blank(deck: Deck, shown: Path) -> None:
    tool("pdftoppm", "-r", "40", "-png", shown.name, "page", folder=shown.parent)
    pictures = sorted(shown.parent.glob("page-*.png"))
    assert len(pictures) == len(deck.pages)
    for path in pictures:
        colours = shades(path)
        assert len(colours) > 20, f"{path.name} shows next to nothing"
        assert max(colours, key=lambda shade: colours[shade]) == (0x14, 0x16, 0x1A), (
            f"{path.name} is not dark"
        )


def shades(path: Path) -> dict[object, int]:
    from PIL import Image  # noqa: PLC0415 - of this test alone

    with Image.open(path) as picture:
        return {
            colour: count
            for count, colour in picture.convert("RGB").getcolors(maxcolors=2**24) or ()
        }


def text_of(pdf: Path, number: int) -> str:
    pages = ("-f", str(number), "-l", str(number))
    return squeezed(tool("pdftotext", *pages, "-layout", pdf.name, "-", folder=pdf.parent))


def test_every_word_of_titles_leads_and_tables_is_on_its_page(deck: Deck, shown: Path) -> None:
    for number, page in enumerate(deck.pages, start=1):
        found = text_of(shown, number)
        cells = [cell.text for line in page.table for cell in line]
        for text in (page.title, page.caveat, page.lead, page.foot, *page.lines, *cells):
            for word in text.split():
                # A word of a narrow column breaks over lines: its parts are on the page.
                parts = word.split("-") if "-" in word else [word]
                assert all(squeezed(part) in found for part in parts), (page.title, word)


def test_charts_show_their_series_and_their_axes(deck: Deck, shown: Path) -> None:
    for number, page in enumerate(deck.pages, start=1):
        if page.charts:
            found = text_of(shown, number)
            curves = [chart for chart in page.charts if chart.form != "bars"]
            named = {series.name for chart in curves for series in chart.series}
            assert all(name in found for name in named), page.title
            assert "op/s" in found


@pytest.mark.parametrize("name", ["talk", "tuning"])
def test_every_text_is_inside_its_shape_in_the_font_that_it_is_fitted_for(
    name: str, decks: dict[str, bytes], pdfs: dict[str, Path]
) -> None:
    assert "LiberationSans" in fonts(pdfs[name])
    assert len([word for page in words(pdfs[name]) for word in page]) > 200
    assert strays(decks[name], pdfs[name]) == []


@pytest.mark.test_all
@pytest.mark.parametrize("name", ["talk", "tuning"])
def test_every_text_is_inside_its_shape_in_a_wider_font_that_replaces_it(
    name: str, decks: dict[str, bytes], replaced: dict[str, Path]
) -> None:
    assert "LiberationSans" not in fonts(replaced[name])
    assert "DejaVuSans" in fonts(replaced[name])
    assert strays(decks[name], replaced[name]) == []
