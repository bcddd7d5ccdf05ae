"""A talk as LibreOffice shows it: every slide a page, none of them blank, every word of every title
on it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fake_run import WORKLOADS, StepFaults, fake_run
from weighbridge.results.charts.chart_theme import DARK
from weighbridge.results.slides.evidence import evidence
from weighbridge.results.slides.powerpoint import powerpoint
from weighbridge.results.slides.slide import Deck
from weighbridge.results.slides.talk import talk

pytestmark = pytest.mark.system

FIVE = ("rgw-beast", "rgw-civetweb", "rgw-apache-fastcgi", "rgw-haproxy", "swift")
SHORT = tuple(workload.model_copy(update={"runtime": 3.0}) for workload in WORKLOADS)
DEADLINE_S = 300


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
def pages(deck: Deck, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the talk as PDF and as a picture a page."""
    folder = tmp_path_factory.mktemp("shown")
    (folder / "talk.pptx").write_bytes(powerpoint(deck))
    tool(
        "soffice",
        f"-env:UserInstallation=file://{folder}/profile",
        "--headless",
        "--convert-to",
        "pdf",
        "talk.pptx",
        folder=folder,
    )
    tool("pdftoppm", "-r", "40", "-png", "talk.pdf", "page", folder=folder)
    return folder


def tool(name: str, *arguments: str, folder: Path) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.fail(f"{name} is needed: `make setup` installs it")
    done = subprocess.run(
        [path, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    return done.stdout


def test_each_slide_is_a_page_and_none_is_blank(deck: Deck, pages: Path) -> None:
    pictures = sorted(pages.glob("page-*.png"))
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


def test_every_word_of_titles_leads_and_tables_is_on_its_page(deck: Deck, pages: Path) -> None:
    for number, one in enumerate(deck.slides, start=1):
        shown = squeezed(
            tool(
                "pdftotext",
                "-f",
                str(number),
                "-l",
                str(number),
                "-layout",
                "talk.pdf",
                "-",
                folder=pages,
            )
        )
        cells = [
            cell.text for line in (one.grid.lines if one.grid is not None else ()) for cell in line
        ]
        for text in (one.title, one.lead, one.foot, *one.lines, *cells):
            for word in text.split():
                # A word of a narrow column breaks over lines: its parts are on the page.
                parts = word.split("-") if "-" in word else [word]
                assert all(squeezed(part) in shown for part in parts), (one.key, word)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def test_charts_show_their_series_and_their_axes(deck: Deck, pages: Path) -> None:
    for number, one in enumerate(deck.slides, start=1):
        if one.chart is not None:
            shown = squeezed(
                tool(
                    "pdftotext", "-f", str(number), "-l", str(number), "talk.pdf", "-", folder=pages
                )
            )
            assert all(name in shown for name in FIVE), one.key
            assert "op/s" in shown


def test_no_text_is_below_the_end_of_a_slide(pages: Path) -> None:
    boxes = tool("pdftotext", "-bbox", "talk.pdf", "-", folder=pages)
    heights = {
        float(height) for height in re.findall(r'<page width="[\d.]+" height="([\d.]+)"', boxes)
    }
    assert heights == {540.0}
    found = [
        (float(right), float(low))
        for right, low in re.findall(r'xMax="([\d.]+)" yMax="([\d.]+)"', boxes)
    ]
    assert len(found) > 200
    assert max(right for right, _ in found) <= 960
    assert max(low for _, low in found) <= 540
