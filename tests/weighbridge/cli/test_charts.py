from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from fake_run import WORKLOADS, fake_run
from weighbridge.command import weighbridge
from weighbridge.common.errors import UsageError
from weighbridge.results.charts.pictures import RenderingError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    small = WORKLOADS[0].model_copy(update={"runtime": 2.0, "workers": (1, 4)})
    return fake_run(tmp_path_factory.mktemp("runs"), workloads=[small], repeats=2).folder


def run(*arguments: str) -> str:
    result = CliRunner().invoke(
        weighbridge, ["charts", *arguments], catch_exceptions=False, standalone_mode=False
    )
    return result.output


def test_charts_are_written_into_the_run_with_data_and_sentence(folder: Path) -> None:
    out = run(str(folder), "--only", "recap-map,throughput-bars")
    charts = folder / "derived" / "charts"
    assert out.splitlines() == [str(charts / "recap-map.png"), str(charts / "throughput-bars.png")]
    assert {path.suffix for path in charts.glob("recap-map.*")} == {
        ".png",
        ".svg",
        ".pdf",
        ".csv",
        ".txt",
    }


def test_dark_charts_are_written_beside_the_light_ones(folder: Path, tmp_path: Path) -> None:
    words = ("--dark", "--only", "throughput-bars")
    run(str(folder), *words)
    assert "#14161a" in (folder / "derived" / "charts" / "dark" / "throughput-bars.svg").read_text()
    run(str(folder), *words, "--out", str(tmp_path / "talk"))
    assert (tmp_path / "talk" / "throughput-bars.png").exists()


def test_the_bound_on_p90_is_a_time(folder: Path) -> None:
    assert "p90 of 40 ms" in run(str(folder), "--list", "--only", "hockey-stick", "--slo", "40ms")


def test_charts_are_listed(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    names = [line.partition(":")[0] for line in run(str(folder), "--list").splitlines()]
    assert names[:2] == ["throughput-by-workers", "latency-by-workers"]
    assert sorted(folder.rglob("*")) == before


def test_an_unknown_chart_is_refused_with_the_closest_name(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"did you mean .*hockey-stick"):
        CliRunner().invoke(
            weighbridge,
            ["charts", str(folder), "--only", "hockeystick"],
            catch_exceptions=False,
            standalone_mode=False,
        )


def test_failed_charts_keep_table_report_and_exit_code(
    folder: Path, run_cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    code_without_charts, *_ = run_cli("report", "--no-charts", folder)

    early = RenderingError("a process that draws charts ended early")
    errors = [early, MemoryError(), OSError(12, "no memory")]

    def fails(*_: object) -> None:
        raise errors.pop()

    monkeypatch.setattr("weighbridge.results_output.write_charts", fails)
    while errors:
        (folder / "derived" / "report.html").unlink()
        code, output, _ = run_cli("report", folder)
        assert code == code_without_charts
        assert (folder / "derived" / "report.html").is_file()
        assert 0 < output.index("small-read") < output.index("the charts could not be drawn (")
        assert f"nothing else is lost; to try again: weighbridge charts {folder}" in output


def test_the_table_is_printed_before_the_first_chart_is_drawn(
    folder: Path,
    run_cli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = []

    def draws(*_: object) -> tuple[Path, ...]:
        before.append(capsys.readouterr().out)
        return ()

    monkeypatch.setattr("weighbridge.results_output.write_charts", draws)
    run_cli("report", folder)
    assert "small-read" in before[0]
    assert "report.html" in before[0]
