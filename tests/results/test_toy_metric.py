"""A metric, a format and a table of another package appear wherever our own do."""

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fake_run import short_run
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.store import RunStore

pytestmark = pytest.mark.long  # runs complete comparisons as programs

TOY = Path(__file__).parents[1] / "support" / "toy_metric"

LINES_OF = """
import sys
from pathlib import Path
from weighbridge.results.show.influx import RunPoints
from weighbridge.results.run.store import RunStore
store = RunStore.open(Path(sys.argv[1]))
for step in store.steps():
    lines = RunPoints(store).step(step)
    print(*(line for line in lines if line.startswith("weighbridge_step")), sep="\\n")
"""


def python(*arguments: object, toy: Path = TOY) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(toy), os.environ.get("PYTHONPATH", "")]),
        "COLUMNS": "140",
    }
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def weighbridge(*arguments: object, toy: Path = TOY) -> str:
    done = python("-m", "weighbridge", *arguments, toy=toy)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two layouts with its report, made where the other package is installed.

    Not to be changed.
    """
    store = short_run(tmp_path_factory.mktemp("runs"), workers=(4,), runtime=3.0, repeats=2)
    weighbridge("report", "--no-charts", store.folder)
    return store.folder


def p95_ms(folder: Path, layout: str) -> list[float]:
    return [
        min(Histogram.decode(tally.latency or "").percentile_us(95), tally.max_us or 0) / 1000
        for step in RunStore.open(folder).steps()
        if step.measurement is not None and step.key.layout == layout
        for tally in step.measurement.tallies
    ]


def test_the_metric_is_in_the_summary_as_geometric_mean_with_its_interval(folder: Path) -> None:
    lines = list(csv.DictReader((folder / "derived" / "summary.csv").read_text().splitlines()))
    assert len(lines) == 2
    for line in lines:
        first, second = p95_ms(folder, line["layout"])
        assert float(line["p95_ms"]) == pytest.approx((first * second) ** 0.5, abs=0.001)
        assert (
            float(line["p95_over_repeats_low_ms"])
            < float(line["p95_ms"])
            < float(line["p95_over_repeats_high_ms"])
        )
        assert line["p95_low_ms"] == ""


def test_the_metric_is_in_the_json_export_of_every_repeat_and_its_schema(folder: Path) -> None:
    tables = json.loads(weighbridge("export", folder, "--to", "json", "--out", "-"))["tables"]
    assert [line["p95_ms"] for line in tables["steps"] if line["layout"] == "swift"] == p95_ms(
        folder, "swift"
    )
    assert [line["p95_ms"] is not None for line in tables["summary"]] == [True, True]
    assert {line["metric"] for line in tables["effects"]} >= {"throughput", "max", "p95"}
    schema = json.loads(weighbridge("export", "--schema"))
    assert "p95_ms" in schema["properties"]["tables"]["properties"]["summary"]["items"]["required"]


def test_metric_and_feature_are_in_the_report(folder: Path) -> None:
    page = (folder / "derived" / "report.html").read_text()
    assert "How long tails are" in page
    assert "95 % of the successful operations took at most this long." in page


def test_the_metric_is_among_the_points_for_influxdb(folder: Path) -> None:
    lines = python("-c", LINES_OF, folder).stdout.splitlines()
    assert [line for line in lines if "p95_ms=" in line and "p95_at_least=0i" in line] == lines
    assert len(lines) == 4


@pytest.mark.test_all
def test_two_runs_are_compared_by_the_metric(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    weighbridge("compare-runs", folder, other, "--out", tmp_path / "compared")
    effects = list(csv.DictReader((tmp_path / "compared" / "effects.csv").read_text().splitlines()))
    mine = [one for one in effects if one["metric"] == "p95" and one["workers"] == "4"]
    assert [float(one["ratio"]) for one in mine] == [1.0, 1.0]
    assert ",p95," in (tmp_path / "compared" / "recap-map.csv").read_text()


def test_a_format_of_another_package_is_in_the_help_and_writes_its_files(folder: Path) -> None:
    assert "p95-lines  a line a row with its p95" in weighbridge("export", "--help")
    said = weighbridge("export", folder, "--to", "p95-lines", "--out", "-").splitlines()
    assert [line.split()[:2] for line in said] == [["rgw-beast", "4"], ["swift", "4"]]


def test_a_table_of_another_package_is_exported_queried_and_described(folder: Path) -> None:
    p95, p50 = (
        json.loads(weighbridge("sql", f"select {name} from summary", folder, "--format", "json"))
        for name in ("p95_ms", "p50_ms")
    )
    ratios = [high["p95_ms"] / low["p50_ms"] for high, low in zip(p95, p50, strict=True)]
    found = json.loads(weighbridge("sql", "select times from tails", folder, "--format", "json"))
    assert [one["times"] for one in found] == pytest.approx(ratios)
    assert (folder / "derived" / "tails.csv").exists()
    assert "| Workers | Tail |" in weighbridge(
        "export", folder, "--to", "markdown", "--table", "tails", "--out", "-"
    )
    assert "tails" in weighbridge("export", "--help")
    assert '"tails"' in weighbridge("export", "--schema")


def test_a_metric_that_cannot_be_imported_is_one_error_that_names_its_package(
    folder: Path, tmp_path: Path
) -> None:
    broken = shutil.copytree(TOY, tmp_path / "broken")
    (broken / "toy_metric.py").write_text("import no_such_library\n")
    done = python("-m", "weighbridge", "report", folder, toy=broken)
    assert done.returncode == 2
    message, advice = done.stderr.splitlines()
    assert "metric 'p95' of the package toy-metric cannot be used" in message
    assert "No module named 'no_such_library'" in message
    assert "uninstall toy-metric" in advice


def test_help_imports_neither_heavy_libraries_nor_a_metric_of_another_package() -> None:
    code = (
        "import sys; import weighbridge.command as it; it.weighbridge(['--help'], "
        "standalone_mode=False); print(*sys.modules)"
    )
    seen = python("-c", code).stdout.split()
    assert not {"altair", "scipy", "numpy", "pydantic", "toy_metric"} & set(seen)
