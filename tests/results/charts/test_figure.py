from __future__ import annotations

import csv
import io
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import get_args

import pytest
import vl_convert as vlc

from made_rows import altered
from weighbridge.results.charts.chart_theme import DARK, LIGHT, Look
from weighbridge.results.charts.composer import SCHEMA, compose, compose_panel
from weighbridge.results.charts.panels import (
    AxisScale,
    Figure,
    Label,
    Mark,
    MarkKind,
    Panel,
    Spot,
    Trace,
)
from weighbridge.results.record.resolved import PlannedLayout

TEN = AxisScale.from_zero(10, "x", grid=False)
OF_TRACES = ("line", "thin line", "faint line", "dotted line", "dashed line", "band")


def plot(key: str, text: str) -> Panel:
    mark = Mark(kind="text", spots=(Spot(x=5.0, y=5.0, text=text),))
    return Panel(key=key, title=key, x=TEN, y=TEN, marks=(mark,))


def figure_of(*panels: Panel) -> Figure:
    layouts = (PlannedLayout(name="swift", gateway="swift"),)
    return Figure(
        name="one", title="One", finding="It is", caption="So.", panels=panels, layouts=layouts
    )


def test_every_panel_of_a_figure_shows_its_own_data() -> None:
    svg = vlc.vegalite_to_svg(compose(figure_of(plot("a", "apples"), plot("b", "pears"))))
    assert ">apples<" in svg
    assert ">pears<" in svg


def test_a_figure_without_a_finding_keeps_its_caption() -> None:
    figure = altered(figure_of(plot("a", "apples")), finding="")
    assert ">So.<" in vlc.vegalite_to_svg(compose(figure))
    bare = altered(figure, caption="")
    assert "title" not in compose(bare)


@cache
def empty_svg() -> str:
    panel = Panel(key="a", title="A", x=TEN, y=TEN, marks=())
    return vlc.vegalite_to_svg(compose(figure_of(panel)))


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("kind", get_args(MarkKind))
def test_every_kind_of_mark_is_a_valid_vega_lite_spec_and_is_drawn(
    kind: MarkKind, look: Look
) -> None:
    spot = Spot(x=2.0, x2=4.0, y=3.0, y2=5.0, layout="swift", text="here", tip="told")
    trace = Trace(x=(1.0, 2.0), y=(3.0, 4.0), y2=(5.0, 6.0), layout="swift")
    mark = Mark(kind=kind, traces=(trace,)) if kind in OF_TRACES else Mark(kind=kind, spots=(spot,))
    panel = Panel(key="a", title="A", x=TEN, y=TEN, marks=(mark,))
    spec = compose_panel(figure_of(panel), panel, look)
    alt = import_module("altair")  # slow, and nothing else in these tests needs it
    alt.Chart.from_dict({**spec, "config": {}}, validate=True)
    if look is LIGHT:  # only colours differ
        assert len(vlc.vegalite_to_svg(compose(figure_of(panel)))) > len(empty_svg())


def test_names_at_the_right_do_not_overlap_and_none_is_missing() -> None:
    labels = tuple(Label(layout=name, x=10.0, y=5.0, note="1 op/s") for name in ("a", "b", "c"))
    panel = Panel(key="a", title="A", x=TEN, y=TEN, marks=(), labels=labels)
    layers = compose_panel(figure_of(panel), panel)["layer"]
    names = next(
        layer["data"]["values"] for layer in layers if layer["mark"].get("fontWeight") == 600
    )
    heights = sorted(TEN.share(row["y"]) * panel.height for row in names)
    assert [row["text"] for row in names] == ["a", "b", "c"]
    assert all(above - below >= 30 for below, above in pairwise(heights))


def test_a_line_keeps_the_order_of_its_points() -> None:
    line = Mark(kind="line", traces=(Trace(x=(5.0, 1.0, 9.0), y=(1.0, 2.0, 3.0)),))
    panel = Panel(key="a", title="A", x=TEN, y=TEN, marks=(line,))
    (group,) = vlc.vegalite_to_vega(compose_panel(figure_of(panel), panel))["marks"]
    assert [mark["type"] for mark in group["marks"]] == ["line"]
    assert "sort" not in group["marks"][0]


def test_the_data_of_a_chart_are_by_default_the_tables_of_its_panels() -> None:
    text = figure_of(plot("a", "apples"), plot("b", "pears")).csv
    cells = [(one["panel"], one["x"], one["Notes"]) for one in csv.DictReader(io.StringIO(text))]
    assert cells == [("a", "5.00", "apples"), ("b", "5.00", "pears")]


def test_specs_are_of_the_version_of_vega_lite_that_draws_them() -> None:
    newest = max(int(version.split(".")[0]) for version in vlc.get_vegalite_versions())
    assert SCHEMA.endswith(f"/v{newest}.json")
