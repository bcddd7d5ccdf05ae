"""What each of several endpoints served: of a step, over repeats, in tables and the report."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from fake_run import WORKLOADS, fake_run
from made_rows import altered
from made_up import fake_measurement
from weighbridge.results import derive
from weighbridge.results.analysis.endpoint_use import endpoint_text, endpoint_use
from weighbridge.results.analysis.run_data import RunData
from weighbridge.results.export.run_tables import steps_table
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import EndpointTally, Measurement
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.report.endpoint_table import ENDPOINT_HEAD, endpoint_lines


def tally(name: str, count: int, latency_us: int = 1000, **more: Any) -> EndpointTally:
    latency = Histogram.counted([(latency_us, count)]).encode() if count else None
    return EndpointTally(name=name, count=count, latency=latency, **more)


def measured(*endpoints: EndpointTally) -> Measurement:
    return altered(fake_measurement(), endpoints=endpoints)


def step(repeat: int, *endpoints: EndpointTally) -> StepResult:
    key = StepKey(layout="rgw", api="swift", workload="small-read", workers=4, repeat=repeat)
    return StepResult(key=key, order=repeat, valid=True, measurement=measured(*endpoints))


def test_the_imbalance_is_the_busiest_endpoint_by_the_mean() -> None:
    for counts, imbalance in (
        ((30, 10), 1.5),
        ((20, 20), 1.0),
        ((20, 0, 0), 3.0),
        ((0, 0), None),
        ((5,), None),
        ((), None),
    ):
        tallies = (tally(name, count) for name, count in zip("abc", counts, strict=False))
        assert measured(*tallies).imbalance == imbalance


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("a", {"count": 3, "latency": None}),
        ("a", {"count": 0, "latency": "HISTFAAA"}),
        ("a", {"count": 0, "errors": {"connect": 0}}),
        ("a", {"count": 0, "errors": {"<b>": 1}}),
        ("a\nb", {"count": 0}),
        ("<script>\u2028", {"count": 0}),
        ("", {"count": 0}),
        ("x" * 301, {"count": 0}),
    ],
)
def test_an_endpoints_counts_must_be_coherent(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EndpointTally(name=name, **wrong)


@pytest.mark.parametrize(
    ("names", "why"), [("aa", "two tallies of one endpoint"), (range(65), "at most 64")]
)
def test_endpoints_of_a_measurement_are_few_and_have_different_names(
    names: Iterable[object], why: str
) -> None:
    endpoints = [{"name": str(name), "count": 0} for name in names]
    with pytest.raises(ValidationError, match=why):
        Measurement.model_validate({**fake_measurement().model_dump(), "endpoints": endpoints})


def test_counts_and_latencies_are_added_over_repeats() -> None:
    steps = [
        step(0, tally("a", 90, 1000), tally("b", 10, 9000, errors={"reset": 1})),
        step(1, tally("a", 90, 3000), tally("b", 10, 9000, errors={"connect": 2}, left_out=True)),
    ]
    a, b = endpoint_use(steps)
    assert (a.name, a.count, a.share, a.imbalance, a.words) == ("a", 180, 0.9, 1.8, "")
    assert a.p90_ms == pytest.approx(3.0, rel=0.01)
    assert (b.count, b.share, b.errors) == (20, 0.1, {"reset": 1, "connect": 2})
    assert b.words == "2 connect, 1 reset, left out in 1 repeat"
    (line, _) = endpoint_lines([a, b])
    assert len(line) == len(ENDPOINT_HEAD)
    assert line[4:9] == ("a", "180", "90.0%", "3.00", "1.80")


def test_few_samples_have_no_p90_and_an_unreadable_histogram_is_named() -> None:
    (few,) = endpoint_use([step(0, tally("a", 9))])
    assert few.p90_ms is None
    broken = altered(tally("a", 100), latency="not a histogram")
    (one,) = endpoint_use([step(0, broken)])
    assert one.p90_ms is None
    assert "latencies unreadable" in one.words
    assert "latencies unreadable" in endpoint_text(broken)


def test_a_step_says_of_each_endpoint_what_it_served() -> None:
    assert endpoint_text(tally("a:1", 100)) == "a:1: 100 succeeded, p90 1 ms"
    assert endpoint_text(tally("a:1", 0, errors={"connect": 3}, left_out=True)) == (
        "a:1: 0 succeeded, 3 connect, left out"
    )


def test_report_and_exported_steps_have_the_endpoints(tmp_path: Path) -> None:
    small = altered(WORKLOADS[0], workers=(4,), runtime=2.0)
    run = fake_run(tmp_path, workloads=[small], repeats=1, telemetry=False)
    plain = derive(run.folder, pictures=False).report.read_text()
    assert 'id="endpoints"' not in plain
    for one in run.steps():
        assert one.measurement is not None
        endpoints = (tally("10.0.0.1:8000", 60), tally("10.0.0.1:8001", 20, errors={"reset": 2}))
        update = {"endpoints": endpoints, "connections": 7}
        changed = one.measurement.model_copy(update=update)
        run.append(altered(one, measurement=changed))
    page = derive(run.folder, pictures=False).report.read_text()
    assert 'id="endpoints"' in page
    assert "10.0.0.1:8001" in page
    table = steps_table([RunData(run.folder)])
    assert set(table.column("endpoint_imbalance")) == {1.5}
    assert set(table.column("connections")) == {7}
    assert table.column("endpoints")[0] == (
        "10.0.0.1:8000: 60 succeeded, p90 1 ms",
        "10.0.0.1:8001: 20 succeeded, p90 1 ms, 2 reset",
    )
