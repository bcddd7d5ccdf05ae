from __future__ import annotations

import re
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.common.errors import UsageError
from weighbridge.results.charts.chart_theme import DARK
from weighbridge.results.slides.evidence import Evidence, evidence
from weighbridge.results.slides.markdown import markdown, write_markdown
from weighbridge.results.slides.slide import Deck, Slide, SlideTable, TableCell
from weighbridge.results.slides.talk import talk

SHORT = tuple(altered(workload, runtime=2.0, workers=(1, 16)) for workload in WORKLOADS[:1])
HOSTILE = "</style><script>x</script> | **bold** --> `code`\n---\n# no"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return evidence(fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT, repeats=2))


def only(slide: Slide) -> Deck:
    return Deck(
        title="t",
        subject="s",
        footer="f",
        dated="2026-01-01",
        look=DARK,
        colours=("#000000",),
        slides=(slide,),
    )


def slides_of(text: str) -> list[str]:
    """The slides as Marp splits them: at lines of three hyphens, after the front matter."""
    return re.split(r"^---$", text, flags=re.MULTILINE)[2:]


def test_each_slide_is_a_marp_slide_with_its_title_and_notes(compared: Evidence) -> None:
    deck = talk(compared)
    text = markdown(deck)
    assert text.startswith("---\nmarp: true\n")
    found = slides_of(text)
    assert len(found) == len(deck.slides)
    for part, one in zip(found, deck.slides, strict=True):
        assert part.strip().startswith("# ")
        assert part.count("<!--") == part.count("-->") == 1
        assert one.notes[0].split("--")[0] in part


def test_charts_are_pictures_in_files_beside_the_text(compared: Evidence, tmp_path: Path) -> None:
    deck = talk(compared, DARK)
    page, *pictures = write_markdown(deck, tmp_path / "talk")
    named = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text())
    assert len(named) == sum(one.chart is not None for one in deck.slides) == 2
    assert [page.parent / name for name in named] == pictures
    for path in pictures:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 20_000


def test_names_are_inert_in_markdown() -> None:
    grid = SlideTable(widths=(1,), lines=((TableCell(text="head"),), (TableCell(text=HOSTILE),)))
    deck = only(
        Slide(
            key="one",
            title=HOSTILE,
            lead=HOSTILE,
            grid=grid,
            lines=(HOSTILE,),
            foot=HOSTILE,
            notes=(HOSTILE,),
        )
    )
    text = markdown(deck)
    assert len(slides_of(text.split("<!--")[0])) == 1
    assert "<script" not in text.split("<!--")[0].split("\n---\n", 1)[1]
    assert text.count("-->") == 1
    assert text.count("\n# ") == 2  # the title, and the notes, which are in a comment
    assert "\\| \\*\\*bold\\*\\*" in text


def test_a_cell_over_several_columns_points_back_to_the_first(compared: Evidence) -> None:
    grid = SlideTable(
        widths=(1, 1, 1),
        lines=(
            tuple(TableCell(text=text) for text in ("", "a", "b")),
            (
                TableCell(text="x"),
                TableCell(text="same", across=2),
                TableCell(text="", covered=True),
            ),
        ),
    )
    assert "| x | same | ← |" in markdown(
        only(Slide(key="one", title="t", grid=grid, notes=("n",)))
    )


def test_a_map_with_two_head_lines_has_one_in_markdown(compared: Evidence) -> None:
    assert "|  | workers | swift op/s | swift p90 |" in markdown(talk(compared))


def test_a_folder_that_cannot_be_created_is_an_error(compared: Evidence, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be made"):
        write_markdown(talk(compared), tmp_path / "file")
