import csv
import json
import re
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, fake_run, short_run
from made_rows import altered, summarize
from weighbridge.command import weighbridge
from weighbridge.common.errors import UsageError
from weighbridge.common.registry import Registry
from weighbridge.results import derive
from weighbridge.results.derivation import Derived
from weighbridge.results.features.layers import finding, staircase_chart
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.staircase import staircases, stairs_of
from weighbridge.results.figures.summary import rows_of
from weighbridge.results.figures.use import step_use
from weighbridge.results.run.store import RunStore
from weighbridge.results.show import feature as feature_module
from weighbridge.results.show.chart_source import ChartKind
from weighbridge.results.show.charts.by_workers import latency_by_workers, throughput_by_workers
from weighbridge.results.show.charts.resources import resources_by_workers
from weighbridge.results.show.feature import CHARTS, Gallery, gallery
from weighbridge.results.show.pictures import write_charts
from weighbridge.results.show.scales import DARK, LIGHT
from weighbridge.suites import Layer

pytestmark = pytest.mark.long  # draws every chart of several runs

EVERYWHERE = {
    "throughput-by-workers",
    "latency-by-workers",
    "recap-map",
    "throughput-bars",
    "hockey-stick",
    "percentiles",
    "resources-by-workers",
}


@pytest.fixture(scope="module")
def drawn(run: RunStore) -> Gallery:
    return gallery(open_run(run.folder))


def test_a_run_has_all_its_charts_with_unique_keys_findings_and_data(drawn: Gallery) -> None:
    keys = [chart.key for chart in drawn.charts]
    assert set(keys) > EVERYWHERE
    assert len(set(keys)) == len(keys)
    for chart in drawn.charts:
        assert chart.finding, chart.key
        assert not chart.finding.endswith("."), chart.key
        assert chart.caption.endswith("."), chart.key
        assert chart.csv.count("\n") > 1, chart.key


def test_the_dark_look_has_the_same_charts(drawn: Gallery) -> None:
    for chart in drawn.charts:
        for _, spec in chart.pictures(DARK):
            assert spec["config"]["background"] == DARK.background
            shown = json.dumps({key: part for key, part in spec.items() if key != "config"})
            for colour in (LIGHT.background, LIGHT.ink, LIGHT.muted, LIGHT.grid):
                assert f'"{colour}"' not in shown.lower(), chart.key


def test_an_a_a_control_is_in_no_picture(runs: Path) -> None:
    names = ("rgw-beast", "swift", "rgw-beast-again")
    run = short_run(runs, runtime=2.0, workers=(1, 4), layouts=names, repeats=2)
    path = run.folder / "plan.resolved.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "twins": {"rgw-beast-again": "rgw-beast"}}))
    for chart in gallery(open_run(run.folder)).charts:
        shown = (*texts_of(chart), chart.csv, chart.finding)
        assert not any("rgw-beast-again" in text for text in shown), chart.key


def test_a_run_of_which_nothing_was_measured_has_charts_and_claims_nothing(runs: Path) -> None:
    run = short_run(runs, repeats=1, telemetry=False)
    (run.folder / "steps.jsonl").unlink()
    found = gallery(open_run(run.folder))
    keys = [chart.key for chart in found.charts]
    assert keys == ["throughput-by-workers", "latency-by-workers"]
    assert found.charts[0].finding.startswith("No ranking")
    assert all(texts_of(chart) for chart in found.charts)


def texts(svg: str) -> list[str]:
    return re.findall(r"<t(?:ext|span)[^>]*>([^<]+)</t(?:ext|span)>", svg)


def test_each_chart_is_written_in_every_format_with_its_data_and_caption(
    run: RunStore, tmp_path: Path
) -> None:
    source, folder = fake_chart_source(run), tmp_path / "charts"
    write_charts((*throughput_by_workers(source), *latency_by_workers(source)), folder)
    wanted = {
        f"{name}.{ending}"
        for name in ("throughput-by-workers", "latency-by-workers")
        for ending in ("png", "svg", "pdf", "csv", "txt")
    }
    assert {path.name for path in folder.iterdir()} == wanted
    assert (folder / "latency-by-workers.pdf").read_bytes().startswith(b"%PDF-")
    picture = (folder / "throughput-by-workers.png").read_bytes()
    assert struct.unpack(">II", picture[16:24]) == (1920, 1080)
    svg = (folder / "throughput-by-workers.svg").read_text()
    assert set(re.findall(r'font-family="([^"]*)"', svg)) == {"Inter, sans-serif"}
    words = texts(svg)
    said = (folder / "throughput-by-workers.txt").read_text()
    assert any(said.startswith(word) for word in words), "the beginning of the title"
    assert "Caveat" in said
    assert words.count("rgw-beast") == words.count("swift") == 3, "at the end of each line"
    assert {"1 MB reads, op/s", "1 MB writes, op/s", "64 MB reads, op/s"} <= set(words)


def test_a_layout_that_was_never_measured_is_labelled_as_such(runs: Path) -> None:
    run = short_run(runs, workers=(1, 4), repeats=1)
    path = run.folder / "steps.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"layout":"swift"' not in line))
    (chart,) = throughput_by_workers(fake_chart_source(run))
    assert "swift (none)" in texts_of(chart)
    assert chart.finding.startswith("No ranking")


def test_one_layout_at_one_worker_count_has_charts(runs: Path) -> None:
    name = "a-layout-with-a-name-of-forty-characters"
    run = short_run(runs, workers=(512,), layouts=(name,), repeats=1)
    (chart,) = latency_by_workers(fake_chart_source(run))
    assert {"1 MB reads, 512 workers", name} <= set(texts_of(chart))


def test_resources_have_a_chart_with_a_row_for_each_of_them(run: RunStore) -> None:
    telemetry = {key: run.telemetry(key) for key in run.latest()}
    uses = {key: step_use(found, 3.0) for key, found in telemetry.items() if found is not None}
    source = fake_chart_source(run, summarize(run.plan(), run.steps(), uses))
    (chart,) = resources_by_workers(source)
    assert len(chart.panels) == 3
    for panel in chart.panels:
        names = panel.spec["encoding"]["y"]["scale"]["domain"]
        assert names == ["Gateway CPU", "Storage CPU", "Disks", "Network", "Driver CPU"]
    lines = list(csv.DictReader(chart.csv.splitlines()))
    assert {line["resource"] for line in lines if line["host"] == "store-1"} == {
        f"{what} of store-1" for what in ("CPU", "disk", "network", "memory")
    }
    assert {line["saturated"] for line in lines} == {"true", "false"}
    drawn = [line for line in lines if line["drawn_as"] == "Storage CPU"]
    for line in drawn:
        mine = [
            float(one["share"])
            for one in lines
            if one["tier"] == "storage"
            and one["resource"].startswith("CPU")
            and all(one[name] == line[name] for name in ("panel", "layout", "workers"))
        ]
        assert float(line["share"]) == max(mine), "the most used host"


TOY = Path(__file__).parents[2] / "support" / "toy_chart"


@pytest.fixture
def small(runs: Path) -> RunStore:
    return short_run(runs, runtime=2.0, workers=(1, 4), repeats=2, telemetry=False)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a package on the path, with a registry that has not read entry points yet."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "toy_chart", raising=False)
    charts = Registry(CHARTS.group, CHARTS.what, kind=ChartKind)
    monkeypatch.setattr(feature_module, "CHARTS", charts)


def printed(*words: object) -> str:
    done = CliRunner().invoke(
        weighbridge, [str(word) for word in words], catch_exceptions=False, standalone_mode=False
    )
    return done.output


KIND = "from weighbridge.results.show.chart_source import ChartKind\n"


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
    assert {(line["panel"], line["layout"], line["workers"]) for line in lines} >= {
        ("1 MB reads", "swift", "4")
    }
    page = derived.report.read_text()
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


@pytest.mark.parametrize("size", ["1920", "0x100", "axb", "99x1080"])
def test_a_size_that_is_none_is_refused(small: RunStore, size: str) -> None:
    with pytest.raises(UsageError, match="is not a size in pixels"):
        printed("charts", small.folder, "--size", size)


def test_the_command_draws_panels_with_a_title_and_size_of_their_own(
    small: RunStore, tmp_path: Path
) -> None:
    options = ("--only", "throughput-bars", "--panels", "--title", "Look", "--size", "800x600")
    printed("charts", small.folder, *options, "--out", tmp_path / "drawn")
    (picture,) = (tmp_path / "drawn").glob("throughput-bars-*.png")
    assert struct.unpack(">II", picture.read_bytes()[16:24]) == (800, 600)
    assert "Look" in texts(picture.with_suffix(".svg").read_text())


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise ImportError('no such library')", "ImportError: no such library"),
        ("CHART = 'no chart'", "it is a str, not a ChartKind"),
        (f"{KIND}CHART = ChartKind(draw=lambda source: 1 / 0)", "ZeroDivisionError"),
        (f"{KIND}CHART = ChartKind(draw=lambda source: 'oh')", "a tuple of charts"),
    ],
    ids=["cannot be imported", "is none", "fails", "gives no charts"],
)
def test_a_broken_chart_is_named_and_the_others_are_drawn(
    small: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, why: str
) -> None:
    names = [chart.key for chart in gallery(open_run(small.folder)).charts]
    install(with_code(tmp_path, code), monkeypatch)
    found = gallery(open_run(small.folder))
    assert [chart.key for chart in found.charts] == names
    (said,) = found.left_out
    assert said.startswith("the chart errors-by-workers is left out: ")
    assert why in said
    assert said.split(": ")[0] in derive(small.folder, pictures=False).report.read_text()
    assert "is left out: " in printed("charts", small.folder, "--list")


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("lambda data: 1 / 0", "ZeroDivisionError: division by zero"),
        (
            "lambda data: [Section('keeping', 'Twice')]",
            "ValueError: another section has the key keeping",
        ),
    ],
)
def test_a_feature_that_fails_in_its_sections_is_named_and_the_others_are_shown(
    small: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, why: str
) -> None:
    names = [section.key for section in derive(small.folder, pictures=False).sections]
    imports = "import Feature\nfrom weighbridge.results.show.section import Section\n"
    code = f"from weighbridge.results.show.feature {imports}FEATURE = Feature(sections={says})\n"
    folder = with_code(tmp_path, code)
    (folder / "toy_chart-1.0.dist-info" / "entry_points.txt").write_text(
        "[weighbridge.features]\nlast = toy_chart:FEATURE\n"
    )
    install(folder, monkeypatch)
    again: Registry[Any] = Registry("weighbridge.features", "feature", own=feature_module._OWN)
    monkeypatch.setattr(feature_module, "FEATURES", again)
    derived = derive(small.folder, pictures=False)
    assert [section.key for section in derived.sections] == names
    assert f"the feature last is left out: {why}" in derived.report.read_text()


def test_a_name_that_two_packages_have_leaves_this_package_s_chart(
    small: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_code(tmp_path, "CHART = None")
    (folder / "toy_chart-1.0.dist-info" / "entry_points.txt").write_text(
        "[weighbridge.charts]\npercentiles = toy_chart:CHART\n"
    )
    install(folder, monkeypatch)
    found = gallery(open_run(small.folder))
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
    assert re.match(r"1 MB \w+ lose most at the gateway of .+: \d+ % of what .+ can do", said)
    assert any(re.search(r", \d+ % of its object servers$", word) for word in words)
    lines = list(csv.DictReader((folder / "efficiency-staircase.csv").read_text().splitlines()))
    steps = list(csv.DictReader((derived.folder / "staircase.csv").read_text().splitlines()))
    rates = ("layout", "throughput_ops_s", "bandwidth_mb_s", "share_of_below")
    drawn_rates, rates_of_steps = (
        sorted(tuple(line[name] for name in rates) for line in each) for each in (lines, steps)
    )
    assert drawn_rates == rates_of_steps


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


def stairs_said(derived: Derived) -> tuple[str, ...]:
    """What is said of layers; nothing where none was asked."""
    said = [tuple(one.sentences) for one in derived.sections if one.key == "staircase"]
    return said[0] if said else ()


def test_page_and_terminal_show_the_staircase_and_layers_beside_gateways(derived: Derived) -> None:
    page = derived.report.read_text()
    assert 'id="staircase"' in page
    assert 'id="staircase"' in page
    assert "Beside the gateways, on the same store" in page
    assert page.count('data-spec="efficiency-staircase-') == 2
    said = stairs_said(derived)
    assert len([line for line in said if " → " in line]) == 4
    start = "swift, 1 MB writes: disks 2,600 op/s → network 1,667 → object servers "
    assert any(line.startswith(start) for line in said)


def test_a_run_without_layers_has_no_staircase(runs: Path) -> None:
    run = fake_run(runs, workloads=SHORT[:1], repeats=1, telemetry=False)
    plain = derive(run.folder, pictures=False)
    assert stairs_said(plain) == ()
    assert not (plain.folder / "staircase.csv").exists()
    assert not (plain.folder / "layers.csv").exists()
    assert 'id="staircase"' not in plain.report.read_text()


def test_requested_layers_that_were_not_measured_are_reported_as_gaps(runs: Path) -> None:
    lone = fake_run(
        runs, layouts=("swift",), workloads=SHORT[:1], repeats=1, telemetry=False, layers=("rados",)
    )
    lines = stairs_said(derive(lone.folder, pictures=False))
    assert lines[0].startswith("swift, 1 MB reads: gateway ")
    assert lines[1:] == (
        "Disks of swift: not measured: --layers disk",
        "Network of swift: not measured: --layers network",
        "Object servers of swift: not measured: --layers object-server",
    )


def test_a_run_that_measured_nothing_has_gaps_and_no_chart(runs: Path) -> None:
    empty = fake_run(runs, workloads=SHORT[:1], repeats=1, telemetry=False, layers=("rados",))
    (empty.folder / "steps.jsonl").unlink()
    lines = stairs_said(derive(empty.folder, pictures=False))
    assert "Gateway of rgw-beast, swift: not measured" in lines
    plan = empty.plan()
    stairs = staircases(plan, summarize(plan, []), rows_of(plan, {}, layers=True), [])
    assert staircase_chart(fake_chart_source(empty, results={stairs_of: stairs})) == ()
    assert finding(stairs).endswith("cannot be compared: too few of them are known")
