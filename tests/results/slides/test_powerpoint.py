import io
import re
import subprocess
import zipfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pptx import Presentation
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Pt

from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered, present
from weighbridge.results.record.store import RunStore
from weighbridge.results.show.scales import AxisScale
from weighbridge.results.show.theme import DARK, LIGHT
from weighbridge.results.slides import deck as deck_of
from weighbridge.results.slides import typeface
from weighbridge.results.slides.evidence import Evidence, evidence
from weighbridge.results.slides.fitting import (
    bound,
    height_pt,
    largest,
    lines_pt,
    size_for,
    wrapped,
)
from weighbridge.results.slides.label_sides import with_sides
from weighbridge.results.slides.powerpoint import powerpoint
from weighbridge.results.slides.slide import (
    ChartPoint,
    Deck,
    Series,
    SeriesChart,
    SlideTable,
    TableCell,
)
from weighbridge.results.slides.talk import talk
from weighbridge.results.slides.typeface import FITTED, TYPEFACE, shown_here, width_pt

SHORT = tuple(altered(workload, runtime=2.0, workers=(1, 16)) for workload in WORKLOADS)
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    spoilt = StepFaults(
        failed=(("swift", "small-read", 16),), erring=(("rgw-beast", "small-write", 16),)
    )
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=SHORT[:2], repeats=3, spoilt=spoilt)


@pytest.fixture(scope="module")
def compared(run: RunStore) -> Evidence:
    return evidence(run)


@pytest.fixture(scope="module")
def planned(compared: Evidence) -> Deck:
    return talk(compared)


@pytest.fixture(scope="module")
def shown(planned: Deck) -> Any:
    return Presentation(io.BytesIO(powerpoint(planned)))


def numbers_of(workbook: bytes) -> set[float]:
    """The numbers in the cells of a workbook, to nine digits."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    return {float(f"{float(found):.9g}") for found in re.findall(r"<v>([^<]+)</v>", sheet)}


def native(shown: Any) -> Iterator[tuple[int, Any]]:
    for number, slide in enumerate(shown.slides):
        yield from ((number, shape.chart) for shape in slide.shapes if shape.has_chart)


def test_each_slide_has_its_title_as_title_and_figures_as_notes(shown: Any, planned: Deck) -> None:
    assert (shown.slide_width, shown.slide_height) == (Pt(960), Pt(540))
    assert [slide.shapes.title.text for slide in shown.slides] == [
        bound(one.title) for one in planned.slides
    ]
    for slide, one in zip(list(shown.slides)[:-1], planned.slides, strict=False):
        assert slide.notes_slide.notes_text_frame.text == "\n".join(one.notes)


def test_the_last_notes_say_for_which_font_the_texts_are_fitted(shown: Any, planned: Deck) -> None:
    last = shown.slides[-1].notes_slide.notes_text_frame.text
    assert last == "\n".join((*planned.slides[-1].notes, FITTED))
    assert {"Arial", "Liberation Sans"} <= {*re.findall("Arial|Liberation Sans", FITTED)}
    theme = zipfile.ZipFile(io.BytesIO(powerpoint(planned))).read("ppt/theme/theme1.xml").decode()
    assert {*re.findall(r'<a:latin typeface="([^"]+)"', theme)} == {TYPEFACE}


def test_charts_are_native_and_workbooks_have_the_decks_figures(shown: Any, planned: Deck) -> None:
    charts = [
        (number, one.chart) for number, one in enumerate(planned.slides) if one.chart is not None
    ]
    drawn = dict(native(shown))
    assert list(drawn) == [number for number, _ in charts]
    for number, expected in charts:
        assert isinstance(expected, SeriesChart)
        plot = drawn[number].plots[0]
        assert [series.name for series in plot.series] == [one.name for one in expected.series]
        for series, one in zip(plot.series, expected.series, strict=True):
            values = [value for value in series.values if value is not None]
            assert values == pytest.approx([point.y for point in one.points])
        cells = numbers_of(drawn[number].part.chart_workbook.xlsx_part.blob)
        assert {float(f"{point.y:.9g}") for one in expected.series for point in one.points} <= cells


def test_whiskers_reach_lowest_and_highest_repeats_in_the_axis(shown: Any, planned: Deck) -> None:
    for number, chart in native(shown):
        expected = planned.slides[number].chart
        assert isinstance(expected, SeriesChart)
        for series, one in zip(chart.plots[0].series, expected.series, strict=True):
            bars = [
                bar
                for bar in series._element.iter(f"{CHART}errBars")
                if (way := bar.find(f"{CHART}errDir")) is None or way.get("val") == "y"
            ]
            for bar in bars:
                known = [
                    (at.y, at.low, at.high)
                    for at in one.points
                    if at.high is not None and at.low is not None
                ]
                plus, minus = (
                    [float(value.text) for value in bar.find(f"{CHART}{name}").iter(f"{CHART}v")]
                    for name in ("plus", "minus")
                )
                assert plus == pytest.approx([high - y for y, _, high in known], rel=1e-4)
                assert minus == pytest.approx([y - low for y, low, _ in known], rel=1e-4)
            assert bars or all(point.high is None for point in one.points)
            assert all((point.high or point.y) <= expected.y.high for point in one.points)


def test_every_chart_has_an_alternative_text(shown: Any) -> None:
    for slide in shown.slides:
        for shape in slide.shapes:
            if shape.has_chart:
                assert slide.shapes.title.text == bound(
                    shape._element.nvGraphicFramePr.cNvPr.get("descr").split(". ")[0]
                )


def test_tables_are_native_with_the_decks_texts_in_readable_type(shown: Any, planned: Deck) -> None:
    for slide, one in zip(shown.slides, planned.slides, strict=True):
        tables = [shape.table for shape in slide.shapes if shape.has_table]
        assert len(tables) == (one.grid is not None)
        for table in tables:
            for row, line in enumerate(present(one.grid).lines):
                for column, cell in enumerate(line):
                    place = table.cell(row, column)
                    assert place.is_spanned == cell.covered
                    if not cell.covered:
                        assert place.text == bound(cell.text)
                        assert all(
                            run.font.size >= Pt(14)
                            for part in place.text_frame.paragraphs
                            for run in part.runs
                        )


def test_nothing_reaches_beyond_the_slide_and_nothing_overlaps(shown: Any) -> None:
    for slide in shown.slides:
        spots = []
        for shape in slide.shapes:
            assert shape.left >= 0
            assert shape.top >= 0
            assert shape.left + shape.width <= shown.slide_width
            assert shape.top + shape.height <= shown.slide_height
            if (
                (shape.has_text_frame and shape.text_frame.text)
                or shape.has_chart
                or shape.has_table
            ):
                spots.append(shape)
        for one, other in combinations(spots, 2):
            apart = any(
                a.top + a.height <= b.top + 1 or a.left + a.width <= b.left + 1
                for a, b in ((one, other), (other, one))
            )
            assert apart, (slide.shapes.title.text, one.name, other.name)


def test_a_deck_is_dated_as_its_run_and_has_no_persons_name(run: RunStore) -> None:
    properties = Presentation(io.BytesIO(deck_of(run))).core_properties
    assert (properties.author, properties.last_modified_by) == ("Weighbridge", "Weighbridge")
    assert f"{properties.created:%Y-%m-%dT%H:%M:%S}" == run.manifest.created_at[:19]


def test_a_dark_deck_is_dark_by_its_master_and_its_texts_are_readable(compared: Evidence) -> None:
    for look in (LIGHT, DARK):
        master = Presentation(io.BytesIO(powerpoint(talk(compared, look)))).slide_masters[0]
        names = master._element.find(
            "{http://schemas.openxmlformats.org/presentationml/2006/main}clrMap"
        )
        assert (names.get("bg1"), names.get("tx1")) == (
            ("dk1", "lt1") if look is DARK else ("lt1", "dk1")
        )


def test_five_names_of_the_greatest_length_fit(tmp_path: Path) -> None:
    names = tuple(f"{letter * 12}-{letter * 13}-{letter * 13}" for letter in "abcde")
    assert {len(name) for name in names} == {40}
    run = fake_run(tmp_path, workloads=SHORT[:1], repeats=2, layouts=names)
    shown = Presentation(io.BytesIO(deck_of(run)))
    test_nothing_reaches_beyond_the_slide_and_nothing_overlaps(shown)
    for slide in shown.slides:
        for shape in slide.shapes:
            if shape.has_table:
                sizes = {
                    run.font.size
                    for cell in shape.table.iter_cells()
                    for part in cell.text_frame.paragraphs
                    for run in part.runs
                }
                assert min(sizes) >= Pt(14), slide.shapes.title.text


def test_paths_have_horizontal_whiskers_too(shown: Any, planned: Deck) -> None:
    checked = 0
    for number, chart in native(shown):
        expected = planned.slides[number].chart
        if not isinstance(expected, SeriesChart) or expected.form != "paths":
            continue
        by_name = {one.name: one for one in expected.series}
        for series in chart.plots[0].series:
            one = by_name[series.name]
            for bar in series._element.iter(f"{CHART}errBars"):
                if bar.find(f"{CHART}errDir").get("val") == "x":
                    plus = [
                        float(value.text) for value in bar.find(f"{CHART}plus").iter(f"{CHART}v")
                    ]
                    assert plus == pytest.approx(
                        [at.x_high - at.x for at in one.points if at.x_high is not None], rel=1e-4
                    )
                    checked += 1
    assert checked >= 2


def test_paths_with_the_most_points_come_first_since_libreoffice_draws_no_shorter_ones_before(
    planned: Deck,
) -> None:
    slides, shortened = [], False
    for one in planned.slides:
        chart = one.chart
        if isinstance(chart, SeriesChart) and chart.form == "paths" and len(chart.series) > 1:
            first, *others = chart.series
            first = altered(first, points=first.points[:1])
            chart, shortened = altered(chart, series=(first, *others)), True
        slides.append(altered(one, chart=chart))
    assert shortened
    deck = altered(planned, slides=tuple(slides))
    scatter = [
        [len(list(series.values)) for series in chart.plots[0].series]
        for _, chart in native(Presentation(io.BytesIO(powerpoint(deck))))
        if chart.chart_type == XL_CHART_TYPE.XY_SCATTER_LINES
    ]
    assert any(counts[-1] == 1 < counts[0] for counts in scatter)
    assert all(counts == sorted(counts, reverse=True) for counts in scatter)


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=40
)


def test_a_text_breaks_between_words_and_after_hyphens() -> None:
    assert wrapped("rgw-apache-fastcgi serves", 110, 14) == ["rgw-apache-", "fastcgi serves"]
    assert wrapped("one two", 500, 14) == ["one two"]
    assert wrapped("one\ntwo", 500, 14) == ["one", "two"]


@given(st.lists(WORDS, min_size=1, max_size=8), st.integers(60, 400))
def test_no_line_is_wider_than_its_room_and_no_letter_is_lost(words: list[str], room: int) -> None:
    text = " ".join(words)
    lines = wrapped(text, room, 14)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(width_pt(line, 14) <= room or len(line) == 1 for line in lines)


def test_the_largest_size_at_which_a_text_fits_its_lines_is_chosen() -> None:
    sizes = ((32, 1), (24, 1), (16, 2))
    assert largest("short", 400, sizes) == 32
    assert largest("a text that is somewhat longer", 400, sizes) == 24
    long = "a text that is so long that nothing but two lines of small type hold it"
    assert largest(long, 400, sizes) == 16
    assert height_pt("short", 400, 20) == pytest.approx(24)


def test_a_cell_over_several_lines_uses_the_room_of_all_of_them() -> None:
    tall = TableCell(text="one two three four five six", down=3)
    covered = TableCell(text="", covered=True)
    one = TableCell(text="x")
    grid = SlideTable(widths=(1, 9), lines=((tall, one), (covered, one), (covered, one)))
    alone = SlideTable(widths=(1, 9), lines=((altered(tall, down=1), one),))
    assert sum(lines_pt(grid, 600, 14)) >= sum(lines_pt(alone, 600, 14)) > 3 * 14


def test_a_table_that_is_too_high_at_every_size_has_none() -> None:
    grid = SlideTable(widths=(1,), lines=tuple((TableCell(text="x"),) for _ in range(20)))
    assert size_for(grid, 600, 20 * 40) == 20
    assert size_for(grid, 600, 20 * 23) == 14
    assert size_for(grid, 600, 20 * 10) is None
    with pytest.raises(ValueError, match="needs 2 cells"):
        SlideTable(widths=(1, 1), lines=((TableCell(text="x"),),))


def test_labels_are_beside_their_lines_and_not_on_them() -> None:
    def side_of_the_middle(*points: tuple[float, float]) -> str:
        found = tuple(ChartPoint(x=x, y=y, label="1") for x, y in points)
        scale = AxisScale(low=0, high=10)
        series = (Series(name="a", layout="a", points=found),)
        chart = SeriesChart(form="paths", x=scale, y=scale, series=series, layouts=())
        return with_sides(chart)[0].points[1].side

    assert side_of_the_middle((1, 5), (5, 5), (9, 5)) in ("above", "below")
    assert side_of_the_middle((5, 1), (5, 5), (5, 9)) in ("left", "right")


LATIN = st.text(st.characters(codec="latin-1", exclude_categories=("C",)), max_size=60)


@pytest.mark.parametrize(
    ("text", "bold", "arial"),
    [
        # Of Arial's own table, in units of which 2048 are its size.
        ("1111", False, 4 * 1139),
        ("R%", False, 1479 + 1821),
        ("mW", False, 1706 + 1933),
        ("1L.", True, 1139 + 1251 + 569),
    ],
)
def test_a_text_is_never_measured_narrower_than_in_arial(text: str, bold: bool, arial: int) -> None:
    assert width_pt(text, 2048, bold=bold) >= arial


def test_a_text_that_is_wider_in_arial_than_in_inter_has_arials_width() -> None:
    assert width_pt("1111", 2048) == 4 * 1139


@given(LATIN, LATIN, st.booleans(), st.integers(8, 60))
def test_widths_grow_with_texts_and_with_sizes(one: str, other: str, bold: bool, size: int) -> None:
    both = width_pt(one + other, size, bold=bold)
    assert both >= width_pt(one, size, bold=bold) - size / 4  # Inter sets some pairs closer
    assert width_pt(one, 2 * size, bold=bold) == pytest.approx(2 * width_pt(one, size, bold=bold))


@pytest.mark.parametrize(
    ("family", "says"),
    [
        (None, "set in Arial"),
        (TYPEFACE, "set in Arial"),
        ("Liberation Sans", "set in Arial, shown here in Liberation Sans, of the same widths"),
        ("DejaVu Sans", "shown here in DejaVu Sans, whose widths differ; install Liberation Sans"),
    ],
)
def test_a_font_is_never_replaced_silently(
    family: str | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typeface, "_family_here", lambda: family)
    said = shown_here()
    assert said == says or (family == "DejaVu Sans" and says in said)


def test_a_fontconfig_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*command: object, **given: object) -> None:
        raise subprocess.TimeoutExpired("fc-match", 10)

    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", silent)
    assert "is not known: fc-match did not answer" in shown_here()
