from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from chart_sources import fake_chart_source
from fake_run import WORKLOADS, fake_run
from made_rows import altered
from made_up import fake_measurement
from weighbridge.results.analysis.overload import GoodputCurve, overload_of
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.analysis.steps.validity import judge
from weighbridge.results.analysis.steps.visit import Point, visit
from weighbridge.results.charts.by_workers import latency_by_workers, throughput_by_workers
from weighbridge.results.charts.rates.goodput import goodput_chart
from weighbridge.results.derivation import derive
from weighbridge.results.metric import MetricFigure
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import Measurement
from weighbridge.results.record.step import StepKey, StepResult
from weighbridge.results.record.store import RunStore
from weighbridge.suites import Bounds, Overload, Workload

RATES = (100, 200, 400)


def read_at(rate: float, within: float | None = 1.0) -> Workload:
    return altered(
        WORKLOADS[0],
        name=f"read-at-{rate:g}",
        rate_per_s=rate,
        overload=Overload(within=within),
        workers=(4,),
    )


def point_of(measurement: Measurement, workload: Workload) -> Point:
    key = StepKey(layout="swift", api="swift", workload=workload.name, workers=4, repeat=0)
    measurement = altered(measurement, workload=workload.name)
    step = StepResult(key=key, measurement=measurement, valid=True, order=0)
    return visit(step, closed_loop=False, workload=workload).points["read"]


def test_goodput_counts_what_succeeded_within_the_bound_and_shares_are_of_what_was_due() -> None:
    errors = {"http-503": 300, "http-498": 100, "timeout": 200, "reset": 100, "unfinished": 50}
    measured = altered(fake_measurement(errors=errors), begun=9_000)
    done = measured.tallies[0].count
    all_good = point_of(measured, read_at(500, within=60.0))
    half = point_of(measured, read_at(500, within=0.01))
    assert all_good.value("goodput") == pytest.approx(done / 20)
    assert 0.2 * done / 20 < (half.value("goodput") or 0) < 0.8 * done / 20
    late = half.value("late") or 0
    assert late == pytest.approx(100 * (done - 20 * (half.value("goodput") or 0)) / 10_000)
    shares = [all_good.value(key) for key in ("refused", "timed-out", "failed-otherwise", "late")]
    assert shares == pytest.approx([4.0, 2.0, 1.0, 0.0])
    assert all_good.value("not-sent") == pytest.approx(10.0)


def test_a_request_that_takes_exactly_the_bound_is_good() -> None:
    measured = fake_measurement(window_s=20.0)
    latency = Histogram.counted([(999, 100), (1000, 20), (1001, 3)]).encode()
    tally = altered(measured.tallies[0], count=123, latency=latency)
    found = point_of(altered(measured, tallies=(tally,)), read_at(500, within=0.001))
    assert found.value("goodput") == pytest.approx(120 / 20)


def test_without_overload_nothing_is_said_of_goodput() -> None:
    found = point_of(fake_measurement(), WORKLOADS[0])
    assert not {"goodput", "refused", "not-sent"} & set(found.figures)


def test_what_is_not_served_makes_a_step_of_overload_no_less_valid_a_saturated_driver_does() -> (
    None
):
    measured = altered(fake_measurement(errors={"http-503": 4_000}), begun=100)
    usual = judge(measured, Bounds(), rate_per_s=1000)
    beyond = judge(measured, Bounds(), rate_per_s=1000, may_fail=True)
    assert (usual.valid, beyond.valid) == (False, True)
    assert set(usual.faults) <= set(beyond.notes)
    busy = fake_measurement(driver_share=0.9, errors={"http-503": 4_000})
    assert not judge(busy, Bounds(), rate_per_s=1000, may_fail=True).valid


def curves_of(
    tmp_path: Path, goodput: Mapping[float, Sequence[float]], *, invalid: float | None = None
) -> tuple[RunStore, tuple[Row, ...]]:
    """A run of one layout with this goodput in each repeat, by offered rate."""
    workloads = [read_at(rate) for rate in goodput]
    repeats = len(next(iter(goodput.values())))
    run = fake_run(
        tmp_path, layouts=("swift",), workloads=workloads, repeats=repeats, telemetry=False
    )
    rows = []
    for row, (rate, values) in zip(
        summarize(run.plan(), run.steps()), goodput.items(), strict=True
    ):
        points = tuple(
            altered(point, figures={"goodput": MetricFigure(value=value)})
            for point, value in zip(row.points, values, strict=True)
        )
        figures = {
            "goodput": MetricFigure(value=sum(values) / len(values)),
            "refused": MetricFigure(value=40.0),
        }
        update = {"points": points, "figures": figures, "steady": True, "doubts": ()}
        rows.append(row.model_copy(update={**update, "valid": rate != invalid}))
    return run, tuple(rows)


def curve_of(run: RunStore, rows: Sequence[Row]) -> GoodputCurve:
    (kind,) = overload_of(run.plan(), rows)
    (curve,) = kind.curves
    return curve


FALLING = {100: [100.0] * 5, 200: [180, 181, 182, 183, 184.0], 400: [88, 90, 91, 92, 93.0]}


def test_a_fall_over_the_repeats_is_a_sentence_with_its_interval(tmp_path: Path) -> None:
    curve = curve_of(*curves_of(tmp_path, FALLING))
    assert curve.kept is curve.points[0]
    assert curve.best is curve.points[1]
    assert "keeps up to 100/s; goodput at 400/s falls to 50 % (" in curve.sentence
    assert "40 % refused" in curve.sentence
    assert "provisional" not in curve.sentence


@pytest.mark.parametrize(
    ("at_400", "repeats", "invalid", "said"),
    [
        ([0, 90, 0, 92, 93.0], 5, None, "at 400/s is nothing in 2 of 5 repeats; its best is 182/s"),
        ([30, 300, 60, 200, 150.0], 5, None, "no clear fall"),
        (FALLING[400], 5, 400, "1 rate of 3 cannot be judged"),
        (FALLING[400], 1, None, "provisional: few repeats: a claim needs 5 repeats of each side"),
    ],
)
def test_without_enough_repeats_or_if_they_scatter_there_is_no_clear_fall(
    tmp_path: Path, at_400: list[float], repeats: int, invalid: float | None, said: str
) -> None:
    goodput = {rate: values[:repeats] for rate, values in {**FALLING, 400: at_400}.items()}
    sentence = curve_of(*curves_of(tmp_path, goodput, invalid=invalid)).sentence
    assert said in sentence
    assert repeats == 1 or "falls" not in sentence


def test_the_chart_has_a_line_of_the_judged_points_and_a_csv_of_all(tmp_path: Path) -> None:
    run, rows = curves_of(tmp_path, FALLING, invalid=400)
    assert goodput_chart(fake_chart_source(run, rows)) == ()
    source = fake_chart_source(run, rows, overload=overload_of(run.plan(), rows))
    assert throughput_by_workers(source) == latency_by_workers(source) == ()
    (figure,) = goodput_chart(source)
    (panel,) = figure.panels
    (line,) = next(mark for mark in panel.marks if mark.kind == "line").traces
    (cross,) = next(mark for mark in panel.marks if mark.kind == "cross").spots
    assert (line.x, line.y) == ((100.0, 200.0), (100.0, 182.0))
    assert (cross.x, cross.y) == (400.0, 91.0 - 0.2)
    texts = [spot.text for mark in panel.marks if mark.kind == "beside" for spot in mark.spots]
    assert texts == ["40 % refused"] * 2
    assert len(figure.csv.splitlines()) == 4


def test_the_report_has_the_sentences_and_the_chart_instead_of_charts_by_workers(
    tmp_path: Path,
) -> None:
    workloads = [altered(read_at(100), runtime=2.0)]
    run = fake_run(tmp_path, layouts=("swift",), workloads=workloads, repeats=1, telemetry=False)
    derived = derive(run.folder, pictures=False)
    page = derived.report.read_text()
    assert derived.overload
    assert all(sentence.split(";")[0] in page for sentence in derived.overload)
    assert 'id="goodput-over-rate"' in page
    assert 'id="throughput-by-workers"' not in page
