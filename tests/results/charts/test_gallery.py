from __future__ import annotations

import json
from pathlib import Path

import pytest

from chart_sources import fake_chart_source
from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.charts.by_workers import first_byte_by_workers
from weighbridge.results.charts.chart_theme import DARK, LIGHT
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.gallery import Gallery, gallery_of
from weighbridge.results.metric import MetricFigure
from weighbridge.results.record.store import RunStore

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
    small = altered(WORKLOADS[0], runtime=2.0, workers=(1, 4))
    run = fake_run(
        runs, workloads=[small], layouts=("rgw-beast", "swift", "rgw-beast-again"), repeats=2
    )
    path = run.folder / "plan.resolved.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "twins": {"rgw-beast-again": "rgw-beast"}}))
    for drawing in gallery_of(run.folder).figures:
        assert "rgw-beast-again" not in json.dumps(compose(drawing)), drawing.name
        assert "rgw-beast-again" not in drawing.csv, drawing.name
        assert "rgw-beast-again" not in drawing.finding, drawing.name


def test_a_run_of_which_nothing_was_measured_has_charts_and_claims_nothing(runs: Path) -> None:
    short = altered(WORKLOADS[0], runtime=1.0, workers=(1,))
    run = fake_run(runs, workloads=[short], repeats=1, telemetry=False)
    (run.folder / "steps.jsonl").unlink()
    found = gallery_of(run.folder)
    names = [drawing.name for drawing in found.figures]
    assert names == ["throughput-by-workers", "latency-by-workers"]
    assert found.figures[0].finding == "Nothing could be compared"


def test_first_bytes_have_a_chart_of_p90_and_median_only_where_they_were_timed(
    run: RunStore,
) -> None:
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
