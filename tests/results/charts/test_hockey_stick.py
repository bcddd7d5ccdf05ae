from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, StepFaults, fake_run
from made_rows import altered
from weighbridge.results.charts.chart_theme import DARK
from weighbridge.results.charts.composer import compose
from weighbridge.results.charts.latency.hockey_stick import hockey_data, hockey_stick
from weighbridge.results.charts.panels import Figure
from weighbridge.results.record.store import RunStore

READS = altered(WORKLOADS[0], runtime=3.0)
FEW = altered(WORKLOADS[2], runtime=0.5, workers=(1,))
SPOILT = StepFaults(erring=(("swift", "small-read", 32),))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """One repeat of two layouts; swift has too many errors at 32 workers, and there are too few
    large reads for a p90.
    """
    return fake_run(
        tmp_path_factory.mktemp("hockey_data"),
        workloads=[READS, FEW],
        repeats=1,
        telemetry=False,
        spoilt=SPOILT,
    )


def drawn(store: RunStore, **options: object) -> Figure:
    (figure,) = hockey_stick(fake_chart_source(store, comparison=None, **options))
    return figure


def test_the_finding_is_what_two_layouts_serve_within_the_bound(store: RunStore) -> None:
    figure = drawn(store, slo_ms=15.0)
    source = fake_chart_source(store)
    most, least = (one for one in hockey_data(source.rows, source.kinds, 15.0)[0].served)
    assert figure.finding.startswith("Within a p90 of 15 ms for 1 MB reads rgw-beast serves ")
    assert most.words.removesuffix(" op/s") in figure.finding
    assert figure.finding.endswith(f"swift {least.words.removesuffix(' op/s')}")
    assert "chosen to" not in figure.caption
    found = texts_of(figure)
    assert {"rgw-beast", "swift", "p90 ≤ 15 ms", "1", "4", "16", "32"} <= set(found)
    assert sum(word.endswith(" op/s") for word in found) == 2
    served = {
        cell["layout"]: cell["bound_ms"]
        for cell in csv.DictReader(io.StringIO(figure.csv))
        if not cell["workers"] and cell["workload"] == "small-read"
    }
    assert served == {"rgw-beast": "15", "swift": "15"}


def test_a_bound_is_chosen_and_requests_without_a_p90_and_invalid_points_are_named(
    store: RunStore,
) -> None:
    figure = drawn(store)
    assert "chosen to separate the layouts" in figure.caption
    assert [plot.title for plot in figure.panels] == ["1 MB reads"]
    assert "Left out because no p90 is known: 64 MB reads." in figure.caption
    assert "×: invalid." in figure.caption
    (line,) = [line for line in figure.panels[0].lines if line[:2] == ("swift", "32")]
    assert line[-1] == "no"
    cells = csv.DictReader(io.StringIO(figure.csv))
    wanted = ("swift", "32")
    assert [one["counts"] for one in cells if (one["layout"], one["workers"]) == wanted] == ["no"]
    assert compose(figure, DARK)["config"]["background"] == DARK.background


def test_bins_are_bars_and_give_no_figures_and_without_a_p90_nothing_is_drawn(
    tmp_path: Path,
) -> None:
    binned = fake_run(tmp_path, workloads=[READS], repeats=1, telemetry=False, driver="cosbench")
    figure = drawn(binned)
    assert "the bin that holds p90" in figure.caption
    assert figure.finding == "How p90 rises with throughput"
    assert all(line[4].startswith("in ") and line[-1] == "no" for line in figure.panels[0].lines)
    few = fake_run(tmp_path / "few", workloads=[FEW], repeats=1, telemetry=False)
    assert hockey_stick(fake_chart_source(few, comparison=None)) == ()
