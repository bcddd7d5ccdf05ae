"""A chart of another package is found by its entry point, without a change elsewhere."""

from __future__ import annotations

import csv
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.command import weighbridge
from weighbridge.common.registry import Registry
from weighbridge.results import derive
from weighbridge.results.charts import gallery as gallery_module
from weighbridge.results.charts.gallery import CHARTS, OWN, ChartKind, gallery_of
from weighbridge.results.record.store import RunStore

pytestmark = pytest.mark.long  # draws every chart of several runs

TOY = Path(__file__).parents[2] / "support" / "toy_chart"


@pytest.fixture
def small(runs: Path) -> RunStore:
    workload = altered(WORKLOADS[0], runtime=2.0, workers=(1, 4))
    return fake_run(runs, workloads=[workload], repeats=2, telemetry=False)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts a package on the path, with a registry that has not read entry points yet."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "toy_chart", raising=False)
    monkeypatch.setattr(
        gallery_module, "CHARTS", Registry(CHARTS.group, CHARTS.what, own=OWN, kind=ChartKind)
    )


def printed(*words: object) -> str:
    """What the command prints."""
    done = CliRunner().invoke(
        weighbridge, [str(word) for word in words], catch_exceptions=False, standalone_mode=False
    )
    return done.output


KIND = "from weighbridge.results.charts.gallery import ChartKind\n"


def with_code(tmp_path: Path, code: str) -> Path:
    """The toy package with other code."""
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
    assert 'href="#errors-by-workers"' in page
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
