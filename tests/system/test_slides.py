"""A talk as LibreOffice shows it: every slide a page, none of them blank, every word of every title
on it, and every text inside its shape, in the font that it is fitted for and in another.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from PIL import ImageFont

from fake_run import WORKLOADS, StepFaults, fake_run
from fake_tuning import fake_tuning
from slide_boxes import LIBERATION, fonts, show, squeezed, strays, tool, unshrunk, words
from weighbridge.results.charts.chart_theme import DARK
from weighbridge.results.slides import typeface
from weighbridge.results.slides.evidence import evidence
from weighbridge.results.slides.powerpoint import powerpoint
from weighbridge.results.slides.slide import Deck
from weighbridge.results.slides.talk import talk

pytestmark = pytest.mark.system

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
    return talk(evidence(store), DARK)


@pytest.fixture(scope="module")
def decks(deck: Deck, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The talk, and that of a tuning, which is mostly tables."""
    tuning = talk(evidence(fake_tuning(tmp_path_factory.mktemp("tunings"))))
    return {"talk": powerpoint(deck), "tuning": powerpoint(tuning)}


@pytest.fixture(scope="module")
def pdfs(decks: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both as PDFs, in the font of Arial's widths, with texts at the sizes that were chosen."""
    plain = {name: unshrunk(deck) for name, deck in decks.items()}
    return show(tmp_path_factory.mktemp("shown"), plain)


@pytest.fixture(scope="module")
def replaced(decks: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both as PDFs where no font has Arial's widths."""
    return show(tmp_path_factory.mktemp("replaced"), decks, liberation=False)


@pytest.fixture(scope="module")
def shown(pdfs: dict[str, Path]) -> Path:
    """The talk."""
    return pdfs["talk"]


def test_each_slide_is_a_page_and_none_is_blank(deck: Deck, shown: Path) -> None:
    tool("pdftoppm", "-r", "40", "-png", shown.name, "page", folder=shown.parent)
    pictures = sorted(shown.parent.glob("page-*.png"))
    assert len(pictures) == len(deck.slides)
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
    """The text of a page, without any space."""
    pages = ("-f", str(number), "-l", str(number))
    return squeezed(tool("pdftotext", *pages, "-layout", pdf.name, "-", folder=pdf.parent))


def test_every_word_of_titles_leads_and_tables_is_on_its_page(deck: Deck, shown: Path) -> None:
    for number, one in enumerate(deck.slides, start=1):
        found = text_of(shown, number)
        cells = [
            cell.text for line in (one.grid.lines if one.grid is not None else ()) for cell in line
        ]
        for text in (one.title, one.lead, one.foot, *one.lines, *cells):
            for word in text.split():
                # A word of a narrow column breaks over lines: its parts are on the page.
                parts = word.split("-") if "-" in word else [word]
                assert all(squeezed(part) in found for part in parts), (one.key, word)


def test_charts_show_their_series_and_their_axes(deck: Deck, shown: Path) -> None:
    for number, one in enumerate(deck.slides, start=1):
        if one.chart is not None:
            found = text_of(shown, number)
            assert all(name in found for name in FIVE), one.key
            assert "op/s" in found


@pytest.mark.parametrize("name", ["talk", "tuning"])
def test_every_text_is_inside_its_shape_in_the_font_that_it_is_fitted_for(
    name: str, decks: dict[str, bytes], pdfs: dict[str, Path]
) -> None:
    assert "LiberationSans" in fonts(pdfs[name])
    assert len([word for page in words(pdfs[name]) for word in page]) > 200
    assert strays(decks[name], pdfs[name]) == []


@pytest.mark.parametrize("name", ["talk", "tuning"])
def test_every_text_is_inside_its_shape_in_a_wider_font_that_replaces_it(
    name: str, decks: dict[str, bytes], replaced: dict[str, Path]
) -> None:
    assert "LiberationSans" not in fonts(replaced[name])
    assert "DejaVuSans" in fonts(replaced[name])
    assert strays(decks[name], replaced[name]) == []


VERSIONS = {"·": (569, 682), "♬": (1536, 2048), "‑": (682, 1536)}
"""Letters that Liberation Sans 1.07 and 2.1 have in different widths, or one of them not at all."""


@pytest.mark.parametrize("name", ["Regular", "Bold"])
def test_letters_are_as_wide_as_in_the_real_font(name: str) -> None:
    em = 2048
    font = ImageFont.truetype(
        str(LIBERATION / f"LiberationSans-{name}.ttf"), em, layout_engine=ImageFont.Layout.BASIC
    )
    path = resources.files("weighbridge.results").joinpath("fonts", "arial-widths.json")
    groups = json.loads(path.read_text(encoding="utf-8"))[name.lower()]
    letters = {letter: int(width) for width, group in groups.items() for letter in group}
    assert len(letters) > 400
    real = {letter: font.getlength(letter) for letter in letters}
    for letter, widths in VERSIONS.items():
        assert real.pop(letter) in widths, letter
        assert letters.pop(letter) in widths, letter
    assert real == letters


def test_no_text_is_measured_narrower_than_it_is(deck: Deck) -> None:
    texts = [text for one in deck.slides for text in (one.title, one.lead, one.foot, *one.lines)]
    for bold in (False, True):
        path = LIBERATION / f"LiberationSans-{'Bold' if bold else 'Regular'}.ttf"
        font = ImageFont.truetype(str(path), 1000)
        for text in ("11 REQUESTS: 1.1", *texts):
            assert typeface.width_pt(text, 1000, bold=bold) >= font.getlength(text) - 1, text
