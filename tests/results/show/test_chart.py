import csv
import errno
import io
import os
import re
import subprocess
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any

import psutil
import pytest
import vl_convert as vlc

from weighbridge.results.run.resolved import PlannedLayout
from weighbridge.results.show import pictures as rendering
from weighbridge.results.show.chart import (
    COLOUR,
    COMPARABLE,
    HEIGHT_PX,
    SCHEMA,
    Chart,
    End,
    Panel,
    PictureStyle,
    in_lines,
    layer,
    standing_layers,
)
from weighbridge.results.show.drawing_process import fitted
from weighbridge.results.show.pictures import RenderingError, draw
from weighbridge.results.show.scales import DARK, LIGHT, AxisScale, Look, config, font_folder

LAYOUTS = tuple(PlannedLayout(name=name, gateway="swift") for name in ("a", "b", "c"))
TEN = AxisScale.from_zero(10, "op/s")
ROWS = [
    {"layout": name, "workers": workers, "ops_s": 5.0 + workers, "_at": 5.0, "standing": COMPARABLE}
    for name in ("a", "b", "c")
    for workers in (1, 4)
]


def panel(key: str = "reads", *, ends: tuple[End, ...] = ()) -> Panel:
    workers = AxisScale.workers([1, 4]).encoding("workers")
    line = layer("line", "path", y="ops_s")
    spec = {
        "encoding": {"x": workers, "y": TEN.encoding(), "color": COLOUR},
        "layer": [line, *standing_layers("ops_s")],
    }
    return Panel(key, key.capitalize(), ROWS, spec, finding="all alike", ends=ends, y=TEN)


def chart(*panels: Panel, finding: str = "All are alike", caption: str = "So.") -> Chart:
    return Chart("one", "One", finding, caption, panels or (panel(),), LAYOUTS)


def drawn(given: Chart, **style: Any) -> list[str]:
    """The pictures of a chart as SVG, fitted as the drawing process does it."""
    specs = [spec for _, spec in given.pictures(LIGHT, PictureStyle(**style))]
    return [fitted(vlc.vegalite_to_svg(spec), spec["usermeta"]) for spec in specs]


ENDS = tuple(End(name, 4, 9.0, note="1 op/s") for name in ("a", "b", "c"))
LONG = "rgw-beast is 2.6 times as fast as swift at 64 kB writes and 2.8 times at 64 kB reads"


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(1920, 1080), (1000, 1000)], ids=["wide", "square"])
def test_a_picture_has_its_size_and_text_that_can_be_read_from_afar(
    count: int, size: tuple[int, int]
) -> None:
    ends = tuple(End(name, 4, 9.0) for name in ("a", "b", "c"))
    panels = [panel(f"panel-{number}", ends=ends) for number in range(count)]
    given = chart(*panels, finding=LONG, caption=f"{LONG}. {LONG}.")
    svg = drawn(given, width=size[0], height=size[1])[0]
    width, height, *box = (
        float(one)
        for one in re.findall(r'width="(\d+)" height="(\d+)" viewBox="\S+ \S+ (\S+) ([^"]+)"', svg)[
            0
        ]
    )
    assert (width, height) == (round(HEIGHT_PX * size[0] / size[1]), HEIGHT_PX)
    assert box[0] / box[1] == pytest.approx(size[0] / size[1], rel=0.01)
    smallest = min(float(one) for one in re.findall(r'font-size="([\d.]+)px"', svg))
    assert smallest / box[1] >= 0.03


def test_a_chart_of_many_panels_has_several_pictures_or_one_for_each_panel() -> None:
    many = chart(*(panel(f"p{number}") for number in range(6)))
    assert [(name, len(spec["concat"])) for name, spec in many.pictures()] == [
        ("one", 3),
        ("one-2", 3),
    ]
    single = [name for name, _ in many.pictures(LIGHT, PictureStyle(single=True))]
    assert single == [f"one-p{number}" for number in range(6)]


def test_a_title_can_be_given_instead_of_the_finding() -> None:
    (spec,) = (spec for _, spec in chart().pictures(LIGHT, PictureStyle(title="Look here")))
    assert spec["title"]["text"] == ["Look here"]


@pytest.mark.parametrize("width", [30, 45, 60])
def test_no_line_of_a_title_has_a_word_alone_or_begins_with_a_unit(width: int) -> None:
    text = "Half of 64 kB reads at 16 workers are done within 33.9 ms on rgw-beast, 10 % on swift"
    lines = in_lines(text, width)
    assert " ".join(lines) == text
    assert max(map(len, lines)) <= width
    assert len(lines) == 1 or min(map(len, lines)) >= 0.5 * max(map(len, lines))
    assert not any(line.startswith(("ms", "%", "op/s")) for line in lines)


def test_names_at_the_right_do_not_overlap_and_none_is_missing() -> None:
    given = panel(ends=ENDS)
    layers = chart(given).on_page(given)["layer"]
    names = next(one for one in layers if one["mark"].get("style") == "name")["data"]["values"]
    heights = sorted(row["_at"] for row in names)
    assert [row["_name"] for row in names] == ["a", "b", "c"]
    assert all(below - above >= 30 for above, below in pairwise(heights))
    assert min(heights) > 0


def test_the_data_of_a_chart_are_the_rows_of_its_panels_without_what_is_only_drawn() -> None:
    given = chart(panel("reads"), panel("writes"))
    lines = list(csv.DictReader(io.StringIO(given.csv)))
    assert list(lines[0]) == ["panel", "layout", "workers", "ops_s", "standing"]
    assert [line["panel"] for line in lines] == ["Reads"] * 6 + ["Writes"] * 6
    assert panel().table[:2] == (
        ("layout", "workers", "ops s", "standing"),
        ("a", "1", "6.00", COMPARABLE),
    )


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_a_spec_is_valid_and_has_the_colours_of_its_look(look: Look) -> None:
    given = panel(ends=ENDS)
    spec = chart(given).on_page(given)
    alt = import_module("altair")  # slow, and nothing else in these tests needs it
    alt.Chart.from_dict(spec, validate=True)
    assert "$" not in str({**spec, "$schema": ""}.values())
    svg = vlc.vegalite_to_svg({**spec, "width": 300, "config": config(look, LAYOUTS, 14)})
    assert look.ink in svg.lower()


def test_specs_are_of_the_version_of_vega_lite_that_draws_them() -> None:
    newest = max(int(version.split(".")[0]) for version in vlc.get_vegalite_versions())
    assert SCHEMA.endswith(f"/v{newest}.json")


def spec(values: int) -> dict[str, Any]:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "data": {"values": [{"a": value} for value in range(values)]},
        "mark": "point",
        "encoding": {"x": {"field": "a", "type": "quantitative", "title": f"{values} µs"}},
    }


def children() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process(os.getpid()).children()
        if "drawing_process" in " ".join(one.cmdline())
    ]


def test_pictures_have_the_order_of_their_specs_and_are_what_the_library_draws() -> None:
    vlc.register_font_directory(font_folder())
    found = draw([spec(values) for values in (2, 3, 5)])
    assert [one.svg for one in found] == [vlc.vegalite_to_svg(spec(values)) for values in (2, 3, 5)]
    assert {one.png[:4] for one in found} == {b"\x89PNG"}
    assert {one.pdf[:4] for one in found} == {b"%PDF"}
    assert not children()


def test_a_chart_that_cannot_be_drawn_is_an_error_and_no_process_is_left() -> None:
    with pytest.raises(RenderingError, match="cannot be drawn"):
        draw([{"mark": "no such mark", "data": {"url": "nowhere://"}, "encoding": 3}])
    assert not children()


def test_a_process_that_ends_early_is_an_error_with_its_last_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        rendering, "_CODE", "import sys; sys.stderr.write('no engine here'); sys.exit(3)"
    )
    with pytest.raises(RenderingError, match="ended early: no engine here"):
        draw([spec(2)])
    assert not children()


def test_a_machine_without_room_for_the_processes_is_an_error_and_no_process_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, started = subprocess.Popen, []

    def none_left(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        if started:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        started.append(real(*arguments, **options))
        return started[0]

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(subprocess, "Popen", none_left)
    with pytest.raises(
        RenderingError,
        match=r"no process that draws charts can be started: .*Cannot allocate memory",
    ):
        draw([spec(2)])
    assert not children()


def test_no_process_is_left_where_making_a_spec_fails() -> None:
    def specs() -> Iterator[dict[str, Any]]:
        yield spec(2)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        draw(specs())
    assert not children()
