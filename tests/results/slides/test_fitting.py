from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_rows import altered
from weighbridge.results.charts.panels import AxisScale
from weighbridge.results.slides.fitting import height_pt, largest, lines_pt, size_for, wrapped
from weighbridge.results.slides.label_sides import with_sides
from weighbridge.results.slides.slide import ChartPoint, Series, SeriesChart, SlideTable, TableCell
from weighbridge.results.slides.typeface import width_pt

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
