from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results import derive
from weighbridge.results.analysis.layers.staircases import staircases
from weighbridge.results.analysis.steps.summary import summarize, summarize_layers
from weighbridge.results.charts.staircase_chart import finding, staircase_figure
from weighbridge.results.derivation import Derived
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Layer

pytestmark = pytest.mark.long  # draws every chart of several runs

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


def texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())


def test_the_staircase_is_drawn_with_its_data_and_its_finding(derived: Derived) -> None:
    folder = derived.folder / "charts"
    drawn = {path.suffix for path in derived.charts if path.stem == "efficiency-staircase"}
    assert drawn == {".png", ".svg", ".pdf", ".csv", ".txt"}
    words = texts(folder / "efficiency-staircase.svg")
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


def test_page_and_terminal_show_the_staircase_and_the_layers_beside_the_gateways(
    derived: Derived,
) -> None:
    page = derived.report.read_text()
    assert 'id="staircase"' in page
    assert 'href="#staircase"' in page
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
