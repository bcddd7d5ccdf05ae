import csv
import re
import shutil
import struct
import sys
from pathlib import Path

import pytest
import vl_convert as vlc
from click.testing import CliRunner

from chart_sources import fake_chart_source
from fake_run import WORKLOADS, fake_run, short_run
from made_rows import altered
from weighbridge.command import weighbridge
from weighbridge.common.registry import Registry
from weighbridge.results import derive
from weighbridge.results.analysis.layers.staircases import staircases
from weighbridge.results.analysis.steps.summary import summarize, summarize_layers
from weighbridge.results.analysis.steps.use import step_use
from weighbridge.results.charts import gallery as gallery_module
from weighbridge.results.charts.by_workers import (
    latency_by_workers,
    latency_panel,
    throughput_by_workers,
    throughput_panel,
)
from weighbridge.results.charts.composer import compose, compose_panel
from weighbridge.results.charts.gallery import CHARTS, OWN, ChartKind, gallery_of
from weighbridge.results.charts.panels import Figure
from weighbridge.results.charts.pictures import write_charts
from weighbridge.results.charts.resource_strips import resources_by_workers
from weighbridge.results.charts.staircase_chart import finding, staircase_figure
from weighbridge.results.charts.worker_data import latency_panels, throughput_panels
from weighbridge.results.derivation import Derived
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Layer

pytestmark = pytest.mark.long  # draws every chart of several runs


def charts_of(run: RunStore) -> tuple[Figure, ...]:
    source = fake_chart_source(run)
    return (*throughput_by_workers(source), *latency_by_workers(source))


def resources_of(run: RunStore) -> tuple[Figure, ...]:
    telemetry = {key: run.telemetry(key) for key in run.latest()}
    uses = {key: step_use(found, 3.0) for key, found in telemetry.items() if found is not None}
    return resources_by_workers(fake_chart_source(run, summarize(run.plan(), run.steps(), uses)))


def texts(svg: str) -> list[str]:
    return re.findall(r"<t(?:ext|span)[^>]*>([^<]+)</t(?:ext|span)>", svg)


def drawn_words(figure: Figure) -> list[str]:
    """As `write_charts` draws it, but in this process and only as SVG."""
    return texts(vlc.vegalite_to_svg(compose(figure)))


@pytest.fixture(scope="module")
def drawn(run: RunStore, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts")
    write_charts(charts_of(run), folder)
    return folder


def test_each_chart_is_written_in_every_format_with_its_data_and_caption(drawn: Path) -> None:
    wanted = {
        f"{name}.{ending}"
        for name in ("throughput-by-workers", "latency-by-workers")
        for ending in ("png", "svg", "pdf", "csv", "txt")
    }
    assert {path.name for path in drawn.iterdir()} == wanted
    assert (drawn / "latency-by-workers.pdf").read_bytes().startswith(b"%PDF-")
    width, height = struct.unpack(">II", (drawn / "throughput-by-workers.png").read_bytes()[16:24])
    assert width >= 2000, "large enough for a screen"
    assert height >= 1500
    svg = (drawn / "throughput-by-workers.svg").read_text()
    assert set(re.findall(r'font-family="([^"]*)"', svg)) == {"Inter, sans-serif"}


def test_the_title_is_the_finding_and_lines_are_labelled_directly(drawn: Path) -> None:
    words = texts((drawn / "throughput-by-workers.svg").read_text())
    assert any(
        word.startswith("Provisional: rgw-beast does more in 2 of 3 kinds of") for word in words
    )
    assert words.count("rgw-beast") == words.count("swift") == 3
    assert {"1 MB reads", "1 MB writes", "64 MB reads", "op/s", "workers"} <= set(words)


def test_a_layout_that_was_never_measured_is_labelled_as_such(runs: Path) -> None:
    run = short_run(runs, workers=(1, 4), repeats=1)
    path = run.folder / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"layout":"swift"' not in line))
    words = drawn_words(charts_of(run)[0])
    assert "swift (none)" in words
    assert "Nothing could be compared" in words


def test_a_run_without_any_step_still_has_charts(runs: Path) -> None:
    run = fake_run(runs, workloads=[altered(WORKLOADS[0], workers=(1, 4), runtime=1.0)], repeats=1)
    (run.folder / "steps.jsonl").unlink()
    assert all(drawn_words(chart) for chart in charts_of(run))
    assert len(charts_of(run)) == 2


def test_one_layout_at_one_worker_count_has_charts(runs: Path) -> None:
    name = "a-layout-with-a-name-of-forty-characters"
    run = short_run(runs, workers=(512,), layouts=(name,), repeats=1)
    assert {"512", name} <= set(drawn_words(charts_of(run)[1]))


def test_resources_have_a_chart_with_a_row_for_each_kind_and_a_legend(run: RunStore) -> None:
    (chart,) = resources_of(run)
    words = drawn_words(chart)
    assert words.count("Gateway CPU") == words.count("Driver CPU") == words.count("100 %") / 5 == 3
    assert {"1 MB reads", "rgw-beast", "swift"} <= set(words)
    lines = list(csv.DictReader(chart.csv.splitlines()))
    assert {line["resource"] for line in lines if line["host"] == "store-1"} == {
        f"{what} of store-1" for what in ("CPU", "disk", "network", "memory")
    }
    assert {line["saturated"] for line in lines} == {"true", "false"}


def test_a_step_that_is_in_doubt_is_hollow_on_its_line(run: RunStore) -> None:
    source = fake_chart_source(run)
    (panel, *_) = throughput_panels(source.rows, source.findings)
    doubted = altered(panel, marks=tuple(altered(mark, provisional=True) for mark in panel.marks))
    panel = altered(panel, marks=tuple(altered(mark, provisional=False) for mark in panel.marks))
    (chart,) = throughput_by_workers(source)
    filled, hollow = (
        vlc.vegalite_to_svg(compose_panel(chart, throughput_panel(one))).count('fill="#ffffff"')
        for one in (panel, doubted)
    )
    assert hollow - filled == sum(mark.stretch is not None for mark in panel.marks)


def test_the_caption_counts_used_repeats_and_not_planned_ones(run: RunStore) -> None:
    # one of two repeats failed, or erred beyond the bound, in two of the steps
    assert "geometric mean of 1 to 2 repeats" in charts_of(run)[0].caption


def test_every_repeat_lies_within_the_scale_of_latencies(run: RunStore) -> None:
    source = fake_chart_source(run)
    (panel, *_) = latency_panels(source.rows, source.findings)
    low = min(dot.value for dot in panel.dots) / 50
    stray = altered(panel.dots[0], value=low)
    assert latency_panel(altered(panel, dots=(*panel.dots, stray))).y.low <= low


def test_a_band_goes_on_where_the_first_of_its_points_has_no_interval(run: RunStore) -> None:
    source = fake_chart_source(run)
    (panel, *_) = throughput_panels(source.rows, source.findings)
    first = altered(panel.marks[0], low=None, high=None)
    bare = throughput_panel(altered(panel, marks=(first, *panel.marks[1:])))
    bands = [trace for mark in bare.marks if mark.kind == "band" for trace in mark.traces]
    (band,) = (trace for trace in bands if trace.layout == first.layout)
    known = [one for one in panel.marks[1:] if one.layout == first.layout]
    assert band.x == tuple(one.workers for one in known if one.high is not None)


TOY = Path(__file__).parents[2] / "support" / "toy_chart"


@pytest.fixture
def small(runs: Path) -> RunStore:
    return short_run(runs, runtime=2.0, workers=(1, 4), repeats=2, telemetry=False)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a package on the path, with a registry that has not read entry points yet."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "toy_chart", raising=False)
    monkeypatch.setattr(
        gallery_module, "CHARTS", Registry(CHARTS.group, CHARTS.what, own=OWN, kind=ChartKind)
    )


def printed(*words: object) -> str:
    done = CliRunner().invoke(
        weighbridge, [str(word) for word in words], catch_exceptions=False, standalone_mode=False
    )
    return done.output


KIND = "from weighbridge.results.charts.gallery import ChartKind\n"


def with_code(tmp_path: Path, code: str) -> Path:
    folder = tmp_path / "other"
    shutil.copytree(TOY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "toy_chart.py").write_text(code)
    return folder


def test_a_chart_of_another_package_is_in_the_report_and_is_drawn_with_its_data(
    small: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(TOY, monkeypatch)
    derived = derive(small.folder)
    drawn = {path.suffix: path for path in derived.charts if path.stem == "errors-by-workers"}
    assert set(drawn) == {".png", ".svg", ".pdf", ".csv", ".txt"}
    assert "swift" in drawn[".svg"].read_text()
    lines = list(csv.DictReader(drawn[".csv"].read_text().splitlines()))
    assert {(line["panel"], line["Layout"], line["workers"]) for line in lines} >= {
        ("1 MB reads", "swift", "4.00")
    }
    page = derived.report.read_text()
    assert 'id="errors-by-workers"' in page
    assert 'id="errors-by-workers"' in page
    assert "made the most errors" in page


def test_the_command_lists_and_draws_it_by_its_name(
    small: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(TOY, monkeypatch)
    assert "errors-by-workers: " in printed("charts", small.folder, "--list")
    drawn = tmp_path / "drawn"
    printed("charts", small.folder, "--only", "errors-by-workers", "--out", drawn)
    assert (tmp_path / "drawn" / "errors-by-workers.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ImportError('no such library')", "ImportError: no such library"),
        ("CHART = 'no chart'", "it is a str, not a ChartKind"),
        (f"{KIND}CHART = ChartKind(draw=lambda source: 1 / 0)", "ZeroDivisionError"),
        (f"{KIND}CHART = ChartKind(draw=lambda source: 'oh')", "a tuple of figures"),
    ],
    ids=["cannot be imported", "is none", "fails", "gives no figures"],
)
def test_a_broken_chart_is_named_and_the_others_are_drawn(
    small: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, why: str
) -> None:
    names = [figure.name for figure in gallery_of(small.folder).figures]
    install(with_code(tmp_path, code), monkeypatch)
    found = gallery_of(small.folder)
    assert [figure.name for figure in found.figures] == names
    (said,) = found.left_out
    assert said.startswith("the chart errors-by-workers is left out: ")
    assert why in said
    assert said.split(": ")[0] in derive(small.folder, pictures=False).report.read_text()
    assert "is left out: " in printed("charts", small.folder, "--list")


def test_a_name_that_two_packages_have_leaves_this_package_s_chart(
    small: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_code(tmp_path, "CHART = None")
    (folder / "toy_chart-1.0.dist-info" / "entry_points.txt").write_text(
        "[weighbridge.charts]\npercentiles = toy_chart:CHART\n"
    )
    install(folder, monkeypatch)
    found = gallery_of(small.folder)
    assert found.named("percentiles") is not None
    assert "two packages have a chart 'percentiles'" in found.left_out[0]


LAYERS: tuple[Layer, ...] = (
    *("disk", "network", "rados", "object-server", "gateway"),
    *("rbd", "cephfs"),
)
SHORT = tuple(altered(workload, runtime=1.0, workers=(1, 16)) for workload in WORKLOADS[:2])


@pytest.fixture(scope="module")
def layered(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """One repeat of two layouts with all of their layers; do not modify it."""
    folder, layouts = tmp_path_factory.mktemp("runs"), ("rgw-haproxy", "swift")
    return fake_run(
        folder, layouts=layouts, workloads=SHORT, repeats=1, layers=LAYERS, telemetry=False
    )


@pytest.fixture(scope="module")
def derived(layered: RunStore) -> Derived:
    return derive(layered.folder)


def test_the_staircase_is_drawn_with_its_data_and_its_finding(derived: Derived) -> None:
    folder = derived.folder / "charts"
    drawn = {path.suffix for path in derived.charts if path.stem == "efficiency-staircase"}
    assert drawn == {".png", ".svg", ".pdf", ".csv", ".txt"}
    words = texts((folder / "efficiency-staircase.svg").read_text())
    layers = {"HAProxy", "Gateway", "RADOS", "Object servers", "Network", "Disks"}
    assert {"rgw-haproxy", "swift", *layers} <= set(words)
    said = (folder / "efficiency-staircase.txt").read_text()
    assert re.match(r"Of what RADOS can do, clients get .+ \(rgw-haproxy\); of what its obj", said)
    assert any(re.fullmatch(r"\d+ % of object servers", word) for word in words)
    assert (folder / "efficiency-staircase.csv").read_text() == (
        derived.folder / "staircase.csv"
    ).read_text()


def test_rows_of_layers_are_in_their_own_table_with_driver_and_layer(derived: Derived) -> None:
    lines = list(csv.DictReader((derived.folder / "layers.csv").read_text().splitlines()))
    assert {(line["layout"], line["driver"], line["layer"]) for line in lines} == {
        ("rgw-haproxy", "locust", "gateway"),
        ("rgw-haproxy", "rados", "rados"),
        ("rgw-haproxy", "rados", "rbd"),
        ("rgw-haproxy", "fio", "rbd"),
        ("rgw-haproxy", "fio", "cephfs"),
        ("swift", "locust", "object-server"),
    }
    assert all(line["workers"] == "16" and float(line["throughput_ops_s"]) > 0 for line in lines)
    summary = csv.DictReader(derived.summary.read_text().splitlines())
    assert {line["api"] for line in summary} == {"swift"}


def test_page_and_terminal_show_the_staircase_and_layers_beside_gateways(derived: Derived) -> None:
    page = derived.report.read_text()
    assert 'id="staircase"' in page
    assert 'id="staircase"' in page
    assert "Beside the gateways, on the same store" in page
    assert page.count('data-spec="efficiency-staircase-') == 2
    assert len([line for line in derived.stairs if " → " in line]) == 4
    start = "swift, 1 MB writes: disks 2,600 op/s → network 1,667 → object servers "
    assert any(line.startswith(start) for line in derived.stairs)


def test_a_run_without_layers_has_no_staircase(runs: Path) -> None:
    run = fake_run(runs, workloads=SHORT[:1], repeats=1, telemetry=False)
    plain = derive(run.folder, pictures=False)
    assert plain.stairs == ()
    assert not (plain.folder / "staircase.csv").exists()
    assert not (plain.folder / "layers.csv").exists()
    assert 'id="staircase"' not in plain.report.read_text()


def test_requested_layers_that_were_not_measured_are_reported_as_gaps(runs: Path) -> None:
    lone = fake_run(
        runs, layouts=("swift",), workloads=SHORT[:1], repeats=1, telemetry=False, layers=("rados",)
    )
    lines = derive(lone.folder, pictures=False).stairs
    assert lines[0].startswith("swift, 1 MB reads: gateway ")
    assert lines[1:] == (
        "Disks of swift: not measured: --layers disk",
        "Network of swift: not measured: --layers network",
        "Object servers of swift: not measured: --layers object-server",
    )


def test_a_run_that_measured_nothing_has_gaps_and_no_chart(runs: Path) -> None:
    empty = fake_run(runs, workloads=SHORT[:1], repeats=1, telemetry=False, layers=("rados",))
    (empty.folder / "steps.jsonl").unlink()
    lines = derive(empty.folder, pictures=False).stairs
    assert "Gateway of rgw-beast, swift: not measured" in lines
    plan = empty.plan()
    stairs = staircases(plan, summarize(plan, []), summarize_layers(plan, []), [])
    assert staircase_figure(stairs, plan.layouts) is None
    assert finding(stairs) == "What each layer can do"
