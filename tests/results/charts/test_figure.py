import csv
import errno
import io
import os
import random
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest
import vl_convert as vlc

from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered, present
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.steps.summary import summarize
from weighbridge.results.charts import pictures as rendering
from weighbridge.results.charts.chart_theme import DARK, LIGHT, Look, font_folder
from weighbridge.results.charts.composer import SCHEMA, compose, compose_panel
from weighbridge.results.charts.latencies import (
    KindLatencies,
    LayoutLatencies,
    RepeatLatencies,
    read_latencies,
)
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
from weighbridge.results.charts.pictures import RenderingError, draw
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.record.step import StepResult
from weighbridge.results.record.store import RunStore

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
@pytest.mark.long
def test_every_kind_of_mark_is_a_valid_vega_lite_spec_and_drawn(kind: MarkKind, look: Look) -> None:
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
    found = draw([spec(values) for values in (2, 3, 5)], font_folder(), at_most=2)
    assert [one.svg for one in found] == [vlc.vegalite_to_svg(spec(values)) for values in (2, 3, 5)]
    assert {one.png[:4] for one in found} == {b"\x89PNG"}
    assert {one.pdf[:4] for one in found} == {b"%PDF"}
    assert not children()


def test_a_chart_that_cannot_be_drawn_is_an_error_and_no_process_is_left() -> None:
    with pytest.raises(RenderingError, match="cannot be drawn"):
        draw(
            [{"mark": "no such mark", "data": {"url": "nowhere://"}, "encoding": 3}],
            font_folder(),
            at_most=1,
        )
    assert not children()


def test_a_process_that_ends_early_is_an_error_with_its_last_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        rendering, "_CODE", "import sys; sys.stderr.write('no engine here'); sys.exit(3)"
    )
    with pytest.raises(RenderingError, match="ended early: no engine here"):
        draw([spec(2)], font_folder(), at_most=2)
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

    monkeypatch.setattr(subprocess, "Popen", none_left)
    with pytest.raises(
        RenderingError,
        match=r"no process that draws charts can be started: .*Cannot allocate memory",
    ):
        draw([spec(2)], font_folder(), at_most=2)
    assert not children()


def test_no_process_is_left_where_making_a_spec_fails() -> None:
    def specs() -> Iterator[dict[str, Any]]:
        yield spec(2)
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        draw(specs(), font_folder(), at_most=1)
    assert not children()


SHORT = tuple(altered(workload, runtime=3.0, workers=(1, 8)) for workload in WORKLOADS[:1])


def counted(values_us: list[int], repeat: int = 0, *, ranked: bool = True) -> RepeatLatencies:
    buckets = Histogram.of(values_us).buckets()
    reached = tuple(accumulate(count for _, count in buckets))
    tops = tuple(top for top, _ in buckets)
    return RepeatLatencies(
        repeat=repeat, ranked=ranked, tops_us=tops, reached=reached, max_us=max(values_us)
    )


def read(store: RunStore, workers: int | None = None) -> tuple[KindLatencies, ...]:
    rows = summarize(store.plan(), store.steps())
    return read_latencies(store.plan(), rows, store.steps(), workers=workers)


def with_latency(step: StepResult, latency: str) -> StepResult:
    tallies = tuple(altered(tally, latency=latency) for tally in present(step.measurement).tallies)
    return altered(step, measurement=altered(present(step.measurement), tallies=tallies))


def test_percentiles_are_those_of_the_histogram_and_never_above_the_max() -> None:
    values = [10_001, 20_003, 30_007, 40_009, 50_021, 63_001]
    one = counted(values)
    assert one.percentile_us(100) == 63_001
    for percent in (1, 25, 50, 80):
        assert one.percentile_us(percent) == Histogram.of(values).percentile_us(percent)
    with pytest.raises(InvalidMeasurement):
        RepeatLatencies(repeat=0, ranked=True).percentile_us(50)
    assert counted([1000] * 50).interval_us(99) is None, "beyond the samples"


def test_percentiles_of_repeats_are_averaged_geometrically_and_not_pooled() -> None:
    repeats = (counted([1000] * 99 + [9000]), counted([2000] * 100, 1), counted([3000] * 100, 2))
    one = LayoutLatencies(layout="swift", repeats=repeats)
    assert one.middle_us(50) == pytest.approx((1000 * 2000 * 3000) ** (1 / 3), rel=2e-3)
    assert one.middle_us(100) == pytest.approx((9000 * 2000 * 3000) ** (1 / 3), rel=2e-3)
    assert one.largest_us == 9000


def test_repeats_that_are_not_ranked_do_not_count() -> None:
    one = LayoutLatencies(
        layout="swift", repeats=(counted([1000] * 50), counted([70_000] * 50, 1, ranked=False))
    )
    assert one.middle_us(50) < 1100
    assert one.largest_us == 1000
    assert len(one.known) == 2


def test_a_percentile_is_reached_where_every_repeat_has_samples_beyond() -> None:
    one = LayoutLatencies(
        layout="swift", repeats=(counted([1000] * 2000), counted([1000] * 199, 1))
    )
    assert one.reaches(50)
    assert not one.reaches(90)
    assert LayoutLatencies(layout="swift", repeats=(counted([1000] * 200),)).reaches(90)


def test_the_interval_of_a_percentile_holds_the_true_one_about_95_times_in_100() -> None:
    draw = random.Random(5)
    held = 0
    for _ in range(1000):
        values = sorted(draw.randrange(1_000_000, 2_000_000) for _ in range(300))
        each: dict[str, Any] = {
            "tops_us": tuple(values),
            "reached": tuple(range(1, 301)),
            "max_us": values[-1],
        }
        one = RepeatLatencies(repeat=0, ranked=True, **each)
        interval = present(one.interval_us(90))
        held += interval[0] <= 1_900_000 <= interval[1]
    assert 0.94 <= held / 1000 <= 0.98


def test_latencies_are_read_at_the_most_workers_at_which_most_layouts_count(tmp_path: Path) -> None:
    given: dict[str, Any] = {"workloads": SHORT, "repeats": 1, "telemetry": False}
    whole = fake_run(tmp_path / "whole", **given)
    absent = StepFaults(absent=(("swift", "small-read", 8),))
    lacking = fake_run(tmp_path / "lacking", spoilt=absent, **given)
    assert [kind.workers for kind in read(whole)] == [8]
    assert [kind.workers for kind in read(lacking)] == [1]
    assert [kind.workers for kind in read(lacking, workers=8)] == [8]


def test_a_histogram_that_cannot_be_decoded_is_a_gap_that_says_why(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=2, telemetry=False)
    steps = [
        with_latency(step, "HISTnot")
        if (step.key.layout, step.key.workers, step.key.repeat) == ("swift", 8, 0)
        else step
        for step in store.steps()
    ]
    (kind,) = read_latencies(store.plan(), summarize(store.plan(), steps), steps, workers=8)
    beast, swift = kind.layouts
    assert [one.count > 0 for one in swift.repeats] == [False, True]
    assert len(beast.ranked) == 2
    assert len(kind.gaps) == 1
    assert "repeat 1 on swift: a histogram cannot be decoded" in kind.gaps[0]


def test_a_histogram_with_another_count_is_a_gap(tmp_path: Path) -> None:
    store = fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False)
    steps = [with_latency(step, Histogram.of([1000, 2000]).encode()) for step in store.steps()]
    (kind,) = read_latencies(store.plan(), summarize(store.plan(), store.steps()), steps)
    assert not any(one.known for one in kind.layouts)
    assert "counts 2 samples, but" in kind.gaps[0]


def test_latencies_in_bins_are_a_gap_with_that_reason(tmp_path: Path) -> None:
    (kind,) = read(
        fake_run(tmp_path, workloads=SHORT, repeats=1, telemetry=False, driver="cosbench")
    )
    assert all("the driver reports latencies only in bins" in gap for gap in kind.gaps)
    assert not any(one.known for one in kind.layouts)
