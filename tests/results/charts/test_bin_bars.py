from __future__ import annotations

import math
from typing import Any

import pytest

from weighbridge.results.charts.bin_bars import (
    APART_PX,
    LEAST_PX,
    any_bins,
    bin_ends,
    bin_marks,
    height_of,
)
from weighbridge.results.charts.panels import Spot
from weighbridge.results.charts.worker_data import WorkerPanel, WorkerPoint
from weighbridge.results.interval import Interval


def mark(layout: str, low_ms: float, high_ms: float | None, **more: Any) -> WorkerPoint:
    within = Interval(low_ms=low_ms, high_ms=high_ms)
    about = {"layout": layout, "workers": 4, "valid": True, "note": ""}
    figures = {"value": None, "stretch": None, "within": within}
    return WorkerPoint.model_validate({**about, **figures, **more})


def panel_of(*marks: WorkerPoint) -> WorkerPanel:
    return WorkerPanel(
        key="k", title="t", finding="", sentences=(), workers=(1, 4, 16), marks=marks
    )


def drawn(panel: WorkerPanel, ends: tuple[float, float]) -> list[tuple[Spot, ...]]:
    """The bars of p90s, then of maxima."""
    return [one.spots for one in bin_marks(panel, ends) if one.spots]


def test_a_bar_goes_from_end_to_end_of_its_bin_or_of_the_scale() -> None:
    ((bar,),) = drawn(panel_of(mark("a", 10, 20)), (1, 100))
    assert (bar.y, bar.y2, bar.tip) == (10, 20, "a, 4 workers: p90 in (10, 20] ms")
    edges = panel_of(mark("a", 0, 10), mark("b", 500_000, None))
    ((first, last),) = drawn(edges, (5, 1_000_000))
    assert (first.y, first.y2) == (5, 10)
    assert (last.y, last.y2) == (500_000, 1_000_000)
    assert bin_ends(edges) == [5, 10, 500_000, 500_000]


def test_bars_of_different_layouts_do_not_overlap() -> None:
    ((one, other),) = drawn(panel_of(mark("a", 10, 20), mark("b", 10, 20)), (1, 100))
    assert isinstance(one.x, float)
    assert isinstance(other.x, float)
    assert one.x < 4 < other.x
    # 440 px are four doublings of workers.
    assert math.log2(other.x / one.x) * 440 / 4 == pytest.approx(APART_PX)


def test_a_bin_that_is_narrow_on_the_scale_is_visible() -> None:
    ((bar,),) = drawn(panel_of(mark("a", 9990, 10_000)), (1, 10_000))
    assert isinstance(bar.y, float)
    assert bar.y2 is not None
    assert math.log(bar.y2 / bar.y) / math.log(10_000) * 260 == pytest.approx(LEAST_PX)


def test_an_invalid_bar_is_not_drawn_and_maxima_are_a_separate_layer() -> None:
    longest = Interval(low_ms=90, high_ms=100)
    filled, hollow = drawn(
        panel_of(mark("a", 10, 20, top_within=longest), mark("b", 10, 20, valid=False)), (1, 100)
    )
    assert [bar.layout for bar in filled] == ["a"]
    assert hollow[0].tip.endswith("max in (90, 100] ms")


def test_a_label_is_at_the_top_of_a_bar_or_at_the_figure() -> None:
    assert height_of(mark("a", 10, 20)) == 20
    assert height_of(mark("a", 500_000, None)) == 500_000
    assert height_of(mark("a", 10, 20, value=12.0, within=None)) == 12.0
    assert height_of(mark("a", 10, 20, within=None, top=50.0)) == 50.0
    assert height_of(mark("a", 10, 20, within=None)) is None


def test_a_panel_of_figures_has_no_bars() -> None:
    panel = panel_of(mark("a", 10, 20, value=12.0, top=50.0, within=None))
    assert drawn(panel, (1, 100)) == []
    assert bin_ends(panel) == []
    assert not any_bins([panel])
    assert any_bins([panel_of(mark("a", 10, 20, top_within=Interval(low_ms=0, high_ms=10)))])
