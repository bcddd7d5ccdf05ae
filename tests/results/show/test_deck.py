import io
import re
import zipfile
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest
from pptx import Presentation
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from fake_run import StepFaults, fake_run
from talks import SHORT, deck_of
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.deck import TYPEFACE, Deck, bound, height_pt, powerpoint, spoken
from weighbridge.results.show.scales import DARK, LIGHT
from weighbridge.results.show.slide import (
    BAD,
    MAX_NOTE_WORDS,
    Point,
    Series,
    Slide,
    SlideCard,
    SlideChart,
    table_of,
)

CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
LONG = "a-name-of-forty-letters-that-is-very-lon"
LINES = [[f"setting {number}", "some words " * 9, "1"] for number in range(40)]


def opened(deck: Deck) -> Any:
    return Presentation(io.BytesIO(powerpoint(deck)))


def deck_with(*slides: Slide, backup: tuple[Slide, ...] = ()) -> Deck:
    usual: dict[str, Any] = {"title": "t", "footer": "f", "dated": "2026-11-29T10:00:00"}
    return Deck(**usual, layouts=(), slides=slides, backup=backup)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    spoilt = StepFaults(
        failed=(("swift", "small-read", 16),), erring=(("rgw-beast", "small-write", 16),)
    )
    return fake_run(
        tmp_path_factory.mktemp("runs"),
        workloads=SHORT[:2],
        repeats=3,
        spoilt=spoilt,
        layouts=(LONG, "rgw-beast", "swift"),
    )


@pytest.fixture(scope="module")
def planned(run: RunStore) -> Deck:
    return deck_of(run)


@pytest.fixture(scope="module")
def shown(planned: Deck) -> Any:
    return opened(planned)


def native(shown: Any, planned: Deck) -> Iterator[tuple[Any, SlideChart]]:
    """Each chart of a file, with the one that it was made of."""
    for slide, page in zip(shown.slides, planned.pages, strict=True):
        frames = [shape for shape in slide.shapes if shape.has_chart]
        yield from zip(frames, page.charts, strict=True)


def test_each_slide_has_its_title_and_what_a_speaker_can_say(shown: Any, planned: Deck) -> None:
    assert deck_with(alone := Slide(title="one")).pages == (alone,)  # no divider
    assert (shown.slide_width, shown.slide_height) == (Pt(960), Pt(540))
    assert [slide.shapes.title.text for slide in shown.slides] == [
        bound(page.title) for page in planned.pages
    ]
    for slide, page in zip(shown.slides, planned.pages, strict=True):
        assert slide.notes_slide.notes_text_frame.text == spoken(page.notes)


@pytest.mark.parametrize(
    ("words", "said"), [((60, 30, 20), 90), ((150, 20), 100), ((100,), 100), ((), 0)]
)
def test_notes_are_as_many_sentences_as_can_be_said(words: tuple[int, ...], said: int) -> None:
    text = spoken(f"{count} " * (count - 1) + "end." for count in words)
    assert len(text.split()) == said <= MAX_NOTE_WORDS


def test_charts_are_native_and_their_workbooks_have_the_figures(shown: Any, planned: Deck) -> None:
    charts = [(frame.chart, chart) for frame, chart in native(shown, planned)]
    assert {drawn.chart_type for drawn, _ in charts} == {XL_CHART_TYPE.LINE_MARKERS}
    for drawn, chart in charts:
        with zipfile.ZipFile(io.BytesIO(drawn.part.chart_workbook.xlsx_part.blob)) as archive:
            sheet = archive.read("xl/worksheets/sheet1.xml").decode()
        cells = {float(f"{float(text):.9g}") for text in re.findall(r"<v>([^<]+)</v>", sheet)}
        for series in chart.series:
            assert {float(f"{point.y:.9g}") for point in series.points} <= cells


def test_whiskers_reach_the_ends_of_intervals_within_the_axis(shown: Any, planned: Deck) -> None:
    checked = 0
    for frame, chart in native(shown, planned):
        points = {series.name: series.points for series in chart.series}
        for drawn in frame.chart.plots[0].series:
            whole = [point for point in points[drawn.name] if point.low and point.high]
            ends = [
                [float(value.text) for value in bars.iter(f"{CHART}v")]
                for bars in drawn._element.iter(f"{CHART}plus", f"{CHART}minus")
            ]
            if whole:
                assert ends == [
                    pytest.approx([point.high - point.y for point in whole], rel=1e-4),
                    pytest.approx([point.y - point.low for point in whole], rel=1e-4),
                ]
                checked += 1
            for point in points[drawn.name]:
                assert (point.high or point.y) <= frame.chart.value_axis.maximum_scale
    assert checked > 4


def test_nothing_overlaps_and_charts_have_texts_and_ids_that_the_standard_allows(
    shown: Any,
) -> None:
    for slide in shown.slides:
        spots = []
        for shape in slide.shapes:
            assert min(shape.left, shape.top) >= 0
            assert shape.left + shape.width <= shown.slide_width
            assert shape.top + shape.height <= shown.slide_height
            if shape.has_chart:
                about = shape.element.nvGraphicFramePr.cNvPr.get("descr")
                assert about.startswith(slide.shapes.title.text)
                ids = [one.get("val") for one in shape.chart.element.iter(f"{CHART}axId")]
                assert ids
                assert not any(one.startswith("-") for one in ids)
            if shape.has_chart or shape.has_table or shape.text_frame.text:
                spots.append(shape)
        for one, other in combinations(spots, 2):
            apart = any(
                a.top + a.height <= b.top + 1 or a.left + a.width <= b.left + 1
                for a, b in ((one, other), (other, one))
            )
            assert apart, (slide.shapes.title.text, one.name, other.name)


def test_a_table_that_does_not_fit_continues_in_readable_type() -> None:
    wide = [[str(number) for number in range(20)]] * 3
    tables = (table_of(("Setting", "Words", "n"), LINES), table_of(map(str, range(20)), wide))
    deck = deck_with(
        Slide(title="one"), backup=tuple(Slide(title="t", table=one) for one in tables)
    )
    pages = [page for page in deck.pages if page.table]
    assert [page.title for page in pages[:2]] == ["t (1 of 4)", "t (2 of 4)"]
    first = [line[0].text for page in pages for line in page.table[1:] if len(line) == 3]
    assert first == [line[0] for line in LINES]
    assert {page.table[0][0].text for page in pages[-3:]} == {"0"}
    for slide in opened(deck).slides:
        for shape in slide.shapes:
            if shape.has_table:
                cells = [cell.text_frame.paragraphs for cell in shape.table.iter_cells()]
                runs = [run for parts in cells for part in parts for run in part.runs]
                assert min(run.font.size for run in runs) >= Pt(14)


def test_texts_and_bars_of_any_length_are_drawn() -> None:
    points = [Point(f"{LONG} {number}", -number, -2.0 * number, 0.0) for number in range(12)]
    texts = {"caveat": "why " * 40, "lead": "lead " * 60, "foot": "foot " * 90, "code": "c " * 200}
    cards = (SlideCard("2×", "a", "b " * 90, "c", caveat=True),) * 5
    slide = Slide(title="t " * 90, lines=("line " * 50,) * 9, cards=cards, **texts)
    chart = SlideChart("bars", "y", (Series("y", tuple(points)),), limit=5.0)
    shown = opened(deck_with(slide, Slide(title="x", charts=(chart,)), Slide(title="", table=())))
    (drawn,) = [shape.chart for shape in shown.slides[1].shapes if shape.has_chart]
    axis = drawn.value_axis
    assert (axis.minimum_scale, axis.maximum_scale) == (-5.0, 0.0)


def test_paths_with_the_most_points_come_first_since_libreoffice_draws_no_shorter_ones() -> None:
    series = [
        Series(name, tuple(Point(float(x), x, label=str(x)) for x in range(1, count)), BAD)
        for name, count in (("a", 2), ("b", 5))
    ]
    chart = SlideChart("paths", "y", tuple(series))
    shown = opened(deck_with(Slide(title="t", charts=(chart,)))).slides[0].shapes
    (drawn,) = [shape.chart for shape in shown if shape.has_chart]
    assert drawn.chart_type == XL_CHART_TYPE.XY_SCATTER_LINES
    assert [one.name for one in drawn.plots[0].series] == ["b", "a"]


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_the_look_is_the_theme_and_the_file_is_dated_as_its_run(
    look: Any, planned: Deck, run: RunStore
) -> None:
    file = powerpoint(planned, look)
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        theme = archive.read("ppt/theme/theme1.xml").decode()
    assert f'<a:lt1><a:srgbClr val="{look.background[1:].upper()}"/>' in theme
    assert {*re.findall(r'<a:latin typeface="([^"]+)"', theme)} == {TYPEFACE}
    properties = Presentation(io.BytesIO(file)).core_properties
    assert (properties.author, properties.last_modified_by) == ("Weighbridge", "Weighbridge")
    assert f"{properties.created:%Y-%m-%dT%H:%M:%S}" == run.manifest.created_at[:19]


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("short", 100, 1),
        ("one two", 30, 2),
        ("one\ntwo", 500, 2),
        ("rgw-apache-fastcgi", 90, 2),
        ("rgw_apache_fastcgi", 60, 3),
    ],
)
def test_a_text_breaks_between_words_after_hyphens_and_where_it_must(
    text: str, room: float, lines: int
) -> None:
    assert height_pt(text, 14, room) == pytest.approx(lines * 14 * 1.2)
