import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from weighbridge.common.errors import InvalidMeasurement
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.export import export
from weighbridge.results.export.hgrm_format import distribution, hgrm_files
from weighbridge.results.record.histogram import Histogram, rank_of
from weighbridge.results.record.store import RunStore, read_log

RECORDED = Path(__file__).parents[2] / "data" / "hdrhistogram"
LINE = re.compile(r"^ *([0-9.]+) ([01]\.[0-9]{12}) +([0-9]+)(?: +([0-9.]+))?$")


def parsed(text: str) -> list[tuple[float, float, int]]:
    """(value in ms, percentile of 1, count at or below) of each line, as HdrHistogram's plotter
    takes them.
    """
    head, empty, *lines = text.splitlines()
    assert (head.split(), empty) == (["Value", "Percentile", "TotalCount", "1/(1-Percentile)"], "")
    found = [LINE.match(line) for line in lines if not line.startswith("#")]
    assert all(found)
    return [(float(match[1]), float(match[2]), int(match[3])) for match in found if match]


def test_a_histogram_log_gives_the_same_digits_as_the_java_tool() -> None:
    # step.hlog was read by HistogramLogProcessor of HdrHistogram 2.2.2: -tag read
    # -outputValueUnitRatio 1000.
    logged = {
        tag: histogram for tag, _, _, histogram in read_log((RECORDED / "step.hlog").read_text())
    }
    assert distribution(logged["read"]) == (RECORDED / "java-2.2.2.hgrm").read_text()


@given(st.lists(st.integers(1, 3_600_000_000), min_size=1, max_size=300))
def test_every_value_is_that_at_rank_ceil_n_p_and_the_last_is_the_exact_maximum(
    values: list[int],
) -> None:
    lines = parsed(distribution(Histogram.of(values), max(values), sum(values)))
    ordered = sorted(values)
    for value_ms, share, count in lines:
        exact = ordered[rank_of(len(values), share * 100) - 1] if share else ordered[0]
        # To the top of its bucket, 0.1 % above at most, and to the three decimals that are printed.
        assert exact / 1000 - 0.0006 <= value_ms <= exact / 1000 * 1.001 + 0.0006
        assert count >= rank_of(len(values), share * 100) if share else count >= 1
    assert lines[-1] == (round(max(values) / 1000, 3), 1.0, len(values))
    assert [share for _, share, _ in lines] == sorted(share for _, share, _ in lines)


def test_of_six_samples_the_90th_percentile_is_the_highest_and_none_have_no_distribution() -> None:
    lines = parsed(distribution(Histogram.of([10, 20, 30, 40, 50, 60])))
    assert [value for value, share, _ in lines if share == 0.8] == [0.05]
    assert [value for value, share, _ in lines if share > 0.84] == [0.06, 0.06]
    with pytest.raises(InvalidMeasurement, match="no samples"):
        distribution(Histogram())


def test_each_step_and_operation_has_a_file_and_a_step_without_a_histogram_is_named(
    run: RunStore, tmp_path: Path
) -> None:
    data = RunData(run.folder)
    done = export(run.folder, "hgrm", out=tmp_path)
    measured = {
        key: step.measurement for key, step in data.steps.items() if step.measurement is not None
    }
    assert {path.name for path in done.paths} == {
        f"{key.file_name}.read.hgrm" for key in measured if "read" in key.workload
    } | {f"{key.file_name}.write.hgrm" for key in measured if "write" in key.workload}
    for key, measurement in measured.items():
        (tally,) = measurement.tallies
        assert tally.max_us is not None
        lines = parsed((tmp_path / f"{key.file_name}.{tally.operation}.hgrm").read_text())
        assert lines[-1] == (tally.max_us / 1000, 1.0, tally.count)
    assert any(
        "1 of 42 steps have no histogram: swift, swift, small-read, 16 workers, repeat 1" in one
        for one in done.remarks
    )


def test_a_histogram_that_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    workload = altered(WORKLOADS[0], workers=(1,), runtime=1.0)
    store = fake_run(tmp_path / "runs", workloads=[workload], repeats=1)
    steps = store.folder / "steps.jsonl"
    text = steps.read_text()
    steps.write_text(text.replace('"latency":"HIST', '"latency":"MIST', 1))
    made = hgrm_files(RunData(store.folder))
    assert [file.name for file in made.files] == ["swift.swift.small-read.w1.r0.read.hgrm"]
    assert len(made.remarks) == 1
    assert "rgw-beast, swift, small-read, 1 workers, repeat 1, read" in made.remarks[0]
