import csv
import io
import json
import math
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chart_sources import fake_chart_source
from fake_run import WORKLOADS, fake_run, short_run
from made_rows import altered, changed
from weighbridge.results.analysis.findings import find
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.charts.by_workers import first_byte_by_workers, latency_headline
from weighbridge.results.charts.chart_theme import (
    DARK,
    LIGHT,
    Look,
    colour_at,
    contrast,
    diverging,
    ink_on,
    styles,
)
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.gallery import Gallery, gallery_of
from weighbridge.results.charts.placing import log_ticks, nice_top, spread
from weighbridge.results.charts.worker_data import (
    interval_of,
    latency_csv,
    latency_panels,
    throughput_csv,
    throughput_panels,
)
from weighbridge.results.doubt import Doubt
from weighbridge.results.metric import MetricFigure
from weighbridge.results.record.resolved import PlannedLayout
from weighbridge.results.record.store import RunStore

places = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@given(places)
def test_labels_are_a_gap_apart_and_keep_their_order(wanted: list[float]) -> None:
    placed = spread(wanted, 0.1)
    order = sorted(range(len(wanted)), key=lambda index: placed[index])
    assert all(placed[b] - placed[a] >= 0.1 - 1e-9 for a, b in pairwise(order))
    assert [wanted[index] for index in order] == sorted(wanted)


def test_labels_that_touch_move_about_their_mean_and_others_stay_where_they_are() -> None:
    assert spread([0.9, 0.1, 0.5], 0.1) == pytest.approx([0.9, 0.1, 0.5])
    assert spread([0.5, 0.5], 0.2) == pytest.approx([0.4, 0.6])


@given(st.floats(1e-3, 1e9))
def test_a_scale_from_0_holds_its_largest_value_with_few_ticks(largest: float) -> None:
    top, step = nice_top(largest)
    assert top >= largest
    assert 2 <= round(top / step) <= 6


@given(st.floats(1e-3, 1e6), st.floats(1, 1e5))
def test_a_log_scale_holds_both_ends_with_few_ticks(low: float, factor: float) -> None:
    start, end, ticks = log_ticks(low, low * factor)
    assert start <= low <= low * factor <= end
    assert start < end
    assert 1 <= len(ticks) <= 9


def test_a_latency_panel_omits_what_is_not_comparable_and_marks_lower_bounds(run: RunStore) -> None:
    held = Doubt(what="set by the CPU limit", grade="grave", words="throttled", metrics=("p90",))
    rows = [row for row in summarize(run.plan(), run.steps()) if row.workload == "small-read"]
    most = max(row.workers for row in rows)

    def said(**update: object) -> tuple[str, str]:
        cells = [changed(row, **update) if row.layout == "swift" else row for row in rows]
        found = find(cells)
        return latency_panels(cells, found)[0].finding, latency_headline(cells, found)

    assert f"p90 at {most} worker" in said()[0]
    assert said(doubts=(held,)) == (
        "no p90 to compare",
        "p90 and the slowest request by worker count",
    )
    finding, headline = said(p90_ms=5000.0, at_least=("p90",))
    assert "≥ 5,000 ms swift" in finding
    assert "≥ 5,000 ms on swift" in headline


def with_one(run: RunStore, **update: object) -> tuple[Row, ...]:
    """The rows of the run, with that of small reads of swift at 4 workers changed."""
    place = ("swift", "small-read", 4)
    return tuple(
        altered(row, **update) if (row.layout, row.workload, row.workers) == place else row
        for row in summarize(run.plan(), run.steps())
    )


def test_a_line_is_broken_where_a_step_is_missing_or_invalid(run: RunStore) -> None:
    rows = with_one(run, valid=False)
    panel = throughput_panels(rows, find(rows))[0]
    swift = {mark.workers: mark.stretch for mark in panel.marks if mark.layout == "swift"}
    assert swift[4] is None
    assert swift[1] != swift[16] == swift[32]
    beast = {mark.stretch for mark in panel.marks if mark.layout == "rgw-beast"}
    assert beast == {0}


def test_an_incomparable_figure_is_off_the_line_of_p90_and_not_of_throughput(run: RunStore) -> None:
    held = Doubt(what="set by the CPU limit", grade="grave", words="throttled", metrics=("p90",))
    rows = with_one(run, doubts=(held,))
    latency, *_ = latency_panels(rows, find(rows))
    throughput, *_ = throughput_panels(rows, find(rows))
    (mark,) = (one for one in latency.marks if (one.layout, one.workers) == ("swift", 4))
    assert (mark.stretch, mark.valid) == (None, False)
    assert mark.note.startswith("throttled")
    (kept,) = (one for one in throughput.marks if (one.layout, one.workers) == ("swift", 4))
    assert kept.stretch is not None


def test_every_repeat_is_a_dot_including_invalid_ones(run: RunStore) -> None:
    rows = summarize(run.plan(), run.steps())
    panel = throughput_panels(rows, find(rows))[1]
    dots = [dot for dot in panel.dots if (dot.layout, dot.workers) == ("rgw-beast", 32)]
    assert [(dot.repeat, dot.valid) for dot in dots] == [(1, False), (2, True)]


def test_the_interval_of_repeats_is_students_on_their_logarithms() -> None:
    # exp(mean +- 2.776 * sd / sqrt(5)) of the logarithms, t of 4 degrees of freedom from a printed
    # table
    low, high = interval_of([90.0, 95.0, 100.0, 105.0, 110.0])
    assert (low, high) == (pytest.approx(90.40, abs=0.02), pytest.approx(110.09, abs=0.02))
    assert interval_of([7.0]) == interval_of([7.0, 0.0]) == (None, None)


def test_only_throughput_has_an_interval_and_only_of_valid_repeats(run: RunStore) -> None:
    rows = summarize(run.plan(), run.steps())
    for panel in throughput_panels(rows, find(rows)):
        for mark in panel.marks:
            good = [
                dot.value
                for dot in panel.dots
                if (dot.layout, dot.workers) == (mark.layout, mark.workers) and dot.valid
            ]
            assert (mark.low, mark.high) == (interval_of(good) if mark.valid else (None, None))
    assert {mark.low for panel in latency_panels(rows, find(rows)) for mark in panel.marks} == {
        None
    }


def test_a_p90_of_too_few_samples_has_no_mark_but_its_max_has(run: RunStore) -> None:
    known = summarize(run.plan(), run.steps())
    rows = [
        changed(row, p90_ms=None) if (row.workload, row.workers) == ("large-read", 1) else row
        for row in known
    ]
    panel = latency_panels(rows, find(rows))[2]
    alone = next(mark for mark in panel.marks if mark.workers == 1)
    assert (alone.value, alone.stretch) == (None, None)
    assert alone.top is not None
    assert alone.valid


def test_the_csv_of_a_chart_has_what_is_drawn(run: RunStore) -> None:
    rows = summarize(run.plan(), run.steps())
    lines = list(csv.DictReader(io.StringIO(throughput_csv(rows))))
    assert sum(line["repeat"] == "" for line in lines) == len(rows)
    assert sum(line["repeat"] != "" for line in lines) == sum(len(row.points) for row in rows)
    assert len(list(csv.DictReader(io.StringIO(latency_csv(rows))))) == len(rows)


def test_six_layouts_differ_by_colour_and_by_shape_and_keep_theirs_among_any_others() -> None:
    names = {"rgw-beast": "rgw", "a": "rgw", "b": "rgw", "swift": "swift", "c": "swift", "d": "x"}
    layouts = [PlannedLayout(name=name, gateway=gateway) for name, gateway in names.items()]
    look = styles(layouts)
    assert len({style.colour for style in look}) == len({style.shape for style in look}) == 6
    beast, swift, tuned = layouts[0], layouts[3], PlannedLayout(name="swift-tuned", gateway="swift")
    assert styles([swift, beast])[0].colour == styles([beast, tuned, swift])[2].colour


def test_a_latency_in_a_bin_is_a_bar_that_no_line_joins(runs: Path) -> None:
    small = altered(WORKLOADS[0], runtime=3.0)
    run = fake_run(runs, workloads=[small], repeats=1, driver="cosbench", telemetry=False)
    rows = summarize(run.plan(), run.steps())
    (panel,) = latency_panels(rows, find(rows))
    assert {mark.stretch for mark in panel.marks} == {None}
    assert all(mark.within is not None and mark.top_within is not None for mark in panel.marks)
    assert panel.finding.startswith("p90 at 32 workers in (")
    lines = list(csv.DictReader(io.StringIO(latency_csv(rows))))
    assert [
        (line["p90_ms"], float(line["p90_high_ms"]) - float(line["p90_low_ms"])) for line in lines
    ] == [("", 10.0)] * len(rows)


SHIPPED = (
    *("rgw-beast", "rgw-civetweb", "rgw-apache-fastcgi", "rgw-apache-proxy", "rgw-haproxy"),
    *("swift", "swift-haproxy", "swift-s3api"),
)
LOOKS = pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])

# G. M. Machado, M. M. Oliveira and L. A. F. Fernandes 2009, full severity: linear RGB to linear
# RGB.
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# B. Ottosson 2020: linear sRGB to cone responses, and their cube roots to Oklab.
CONES = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)

Vector = tuple[float, ...]


def times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def seen(colour: str, vision: str) -> Vector:
    channels = [channel / 255 for channel in bytes.fromhex(colour.removeprefix("#"))]
    linear = tuple(
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels
    )
    light = tuple(min(1.0, max(0.0, one)) for one in times(VISIONS[vision], linear))
    return times(OKLAB, tuple(math.cbrt(one) for one in times(CONES, light)))


def layouts(names: tuple[str, ...]) -> list[PlannedLayout]:
    return [PlannedLayout(name=name, gateway=name.split("-")[0]) for name in names]


@LOOKS
def test_every_colour_contrasts_with_its_background(look: Look) -> None:
    tuned = [f"{gateway}-tuned-{number}" for gateway in ("rgw", "swift") for number in range(8)]
    many = (*SHIPPED, *tuned, "other-a", "other-b")
    chosen = {style.colour for style in styles(layouts(many), look)}
    assert len(chosen) > 12
    assert min(contrast(colour, look.background) for colour in chosen) >= 3
    assert (
        min(contrast(colour, look.background) for colour in (look.ink, look.muted, look.bad)) >= 4.5
    )


@LOOKS
@pytest.mark.parametrize("vision", VISIONS)
def test_shipped_layouts_differ_with_any_colour_vision(look: Look, vision: str) -> None:
    colours = [style.colour for style in styles(layouts(SHIPPED), look)]
    assert (
        min(math.dist(seen(a, vision), seen(b, vision)) for a, b in combinations(colours, 2))
        >= 0.07
    )


@LOOKS
def test_a_family_keeps_its_hues_in_the_dark_look(look: Look) -> None:
    for style in styles(layouts(SHIPPED), look):
        red, _, blue = bytes.fromhex(style.colour.removeprefix("#"))
        assert (blue > red) == style.layout.startswith("swift")


@LOOKS
def test_text_is_readable_on_every_colour_from_worse_to_better(look: Look) -> None:
    colours = [colour_at(place / 50, diverging(look)) for place in range(-50, 51)]
    assert min(contrast(ink_on(colour), colour) for colour in colours) >= 4.2
    assert (colours[0], colours[-1]) == (diverging(look)[0], diverging(look)[-1])
    assert colour_at(-3, diverging(look)) == colours[0]


def test_contrast_is_that_of_the_guidelines() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


EVERYWHERE = {
    "throughput-by-workers",
    "latency-by-workers",
    "recap-map",
    "recap-map-p90",
    "throughput-bars",
    "hockey-stick",
    "resources-by-workers",
}


@pytest.fixture(scope="module")
def drawn(run: RunStore) -> Gallery:
    return gallery_of(run.folder)


def test_a_run_has_all_its_charts_with_unique_names_findings_and_data(drawn: Gallery) -> None:
    names = [drawing.name for drawing in drawn.figures]
    assert set(names) > EVERYWHERE
    assert len(set(names)) == len(names)
    for drawing in drawn.figures:
        assert drawing.finding, drawing.name
        assert not drawing.finding.endswith("."), drawing.name
        assert drawing.caption.endswith("."), drawing.name
        assert drawing.csv.count("\n") > 1, drawing.name


def test_the_dark_look_has_the_same_charts(drawn: Gallery) -> None:
    for drawing in drawn.figures:
        spec = compose(drawing, DARK)
        assert spec["config"]["background"] == DARK.background
        drawn = json.dumps(
            {part: content for part, content in spec.items() if part != "config"}
        ).lower()
        for colour in (LIGHT.background, LIGHT.ink, LIGHT.muted, LIGHT.grid):
            assert f'"{colour}"' not in drawn or colour == LIGHT.background, drawing.name


def test_an_a_a_control_is_in_no_picture(runs: Path) -> None:
    names = ("rgw-beast", "swift", "rgw-beast-again")
    run = short_run(runs, runtime=2.0, workers=(1, 4), layouts=names, repeats=2)
    path = run.folder / "plan.resolved.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "twins": {"rgw-beast-again": "rgw-beast"}}))
    for drawing in gallery_of(run.folder).figures:
        assert "rgw-beast-again" not in json.dumps(compose(drawing)), drawing.name
        assert "rgw-beast-again" not in drawing.csv, drawing.name
        assert "rgw-beast-again" not in drawing.finding, drawing.name


def test_a_run_of_which_nothing_was_measured_has_charts_and_claims_nothing(runs: Path) -> None:
    run = short_run(runs, repeats=1, telemetry=False)
    (run.folder / "steps.jsonl").unlink()
    found = gallery_of(run.folder)
    names = [drawing.name for drawing in found.figures]
    assert names == ["throughput-by-workers", "latency-by-workers"]
    assert found.figures[0].finding == "Nothing could be compared"


def test_first_bytes_have_a_chart_of_p90_and_median_only_where_timed(run: RunStore) -> None:
    rows = summarize(run.plan(), run.steps())
    assert first_byte_by_workers(fake_chart_source(run, rows)) == ()

    def timed(row: Row) -> Row:
        found = {"first-byte-p50": 0.25, "first-byte": 0.5} if row.operation == "read" else {}
        figures = {
            key: MetricFigure(value=share * (row.value("p90") or 1.0))
            for key, share in found.items()
        }
        return altered(row, figures={**row.figures, **figures})

    (figure,) = first_byte_by_workers(fake_chart_source(run, [timed(row) for row in rows]))
    reads = {row.workload for row in rows if row.operation == "read"}
    assert len(figure.panels) == len(reads)
    assert all("reads" in panel.title for panel in figure.panels)
    assert "p90 of time to first byte differs most in" in figure.finding
    lines = figure.csv.splitlines()
    assert {"first_byte_ms", "first_byte_p50_ms", "samples"} < set(lines[0].split(","))
    assert len(lines) == 1 + sum(row.operation == "read" for row in rows)
