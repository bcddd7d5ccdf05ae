import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from chart_sources import fake_chart_source, texts_of
from fake_run import WORKLOADS, fake_run, short_run
from made_rows import altered, made_point, made_row, present, summarize
from made_up import fake_measurement
from weighbridge.results import derive
from weighbridge.results.features.baseline import (
    MAX_BARS,
    Baseline,
    HostFigure,
    baseline_chart,
    baseline_csv,
    oddities,
)
from weighbridge.results.features.open_run import open_run
from weighbridge.results.features.overload import KEPT, GoodputCurve, goodput_chart, overloads
from weighbridge.results.features.step_details import endpoint_grid
from weighbridge.results.features.variants import CompleteListing, complete_listings
from weighbridge.results.figures.doubt import Doubt
from weighbridge.results.figures.reading import MetricFigure
from weighbridge.results.figures.summary import Point, Row, visit
from weighbridge.results.figures.validity import judge
from weighbridge.results.judge.run_data import RunData
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import EndpointTally, Measurement, StepKey, StepResult
from weighbridge.results.run.store import RunStore
from weighbridge.results.show.chart import NOT_COMPARABLE
from weighbridge.results.show.charts.by_workers import latency_by_workers, throughput_by_workers
from weighbridge.results.show.tables import STEPS, endpoint_text
from weighbridge.suites import Bounds, Overload, Suite, Workload


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
    return visit(step, workload=workload).points["read"]


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


def test_what_is_not_served_makes_an_overload_no_less_valid_a_saturated_driver_does() -> None:
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


def with_rows(run: RunStore, rows: Sequence[Row]) -> RunData:
    data = open_run(run.folder)
    data.__dict__["rows"] = tuple(rows)
    return data


def curve_of(run: RunStore, rows: Sequence[Row]) -> GoodputCurve:
    (kind,) = overloads(with_rows(run, rows))
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


@pytest.mark.parametrize(("share", "keeps"), [(KEPT, True), (KEPT - 1e-9, False)])
def test_a_rate_is_kept_up_with_from_the_share_that_the_bound_says(
    tmp_path: Path, share: float, keeps: bool
) -> None:
    curve = curve_of(*curves_of(tmp_path, {100: [100 * share] * 5}))
    assert (curve.kept is not None) is keeps


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
    assert goodput_chart(fake_chart_source(run, rows, {overloads: ()})) == ()
    source = fake_chart_source(run, rows, {overloads: overloads(with_rows(run, rows))})
    assert throughput_by_workers(source) == latency_by_workers(source) == ()
    (chart,) = goodput_chart(source)
    shown = [
        (row["offered_ops_s"], row["goodput_ops_s"], row["_stretch"] is not None, row["_text"])
        for row in chart.panels[0].rows
    ]
    assert shown == [
        (100.0, 100.0, True, "40 % refused"),
        (200.0, 182.0, True, "40 % refused"),
        (400.0, 91.0 - 0.2, False, None),
    ]
    assert chart.panels[0].rows[2]["standing"] == NOT_COMPARABLE
    assert len(chart.csv.splitlines()) == 4


def test_the_report_has_sentences_and_a_chart_instead_of_charts_by_workers(tmp_path: Path) -> None:
    workloads = [altered(read_at(100), runtime=2.0)]
    run = fake_run(tmp_path, layouts=("swift",), workloads=workloads, repeats=1, telemetry=False)
    derived = derive(run.folder, pictures=False)
    page = derived.report.read_text()
    said = {section.key: section.sentences for section in derived.sections}["overload"]
    assert said
    assert all(sentence.split(";")[0] in page for sentence in said)
    assert 'id="goodput-over-rate"' in page
    assert 'id="throughput-by-workers"' not in page


MB = 1e6


def host_figure(**given: Any) -> HostFigure:
    return HostFigure.model_validate(given)


def disk(host: str, value: float, **changes: Any) -> HostFigure:
    job = "random read of 64 kB"
    kind = {"kind": "disk", "group": "disk", "what": f"disk wb0 {job}", "job": job, "unit": "B/s"}
    asked = {"operation": "read", "pick": "random", "request_bytes": 64_000, "like": "20 GiB"}
    return host_figure(host=host, value=value, **{**kind, **asked, **changes})


def link(sender: str, receiver: str, value: float, promised: float | None = 1e9) -> HostFigure:
    ends = {"sender": sender, "receiver": receiver, "host": receiver}
    kind = {"kind": "network", "group": "network", "job": "network", "unit": "bit/s"}
    what = f"network from {sender}"
    return host_figure(value=value, promised=promised, what=what, **kind, **ends)


def sent(host: str, value: float, promised: float | None = 1e9) -> HostFigure:
    kind = {"kind": "network", "group": "fabric", "job": "sent", "unit": "bit/s"}
    what = "sent while all hosts send to 2"
    return host_figure(host=host, value=value, promised=promised, what=what, **kind)


def made(*figures: HostFigure) -> Baseline:
    facts = {"hardware": "three", "about": "", "measured_at": "2026-01-01T00:00:00+00:00"}
    return Baseline.model_validate(
        {**facts, "took_s": 1.0, "tools": {}, "machine": {}, "figures": figures}
    )


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        (
            [disk("store-1", 200 * MB), disk("store-2", 190 * MB), disk("store-3", 80 * MB)],
            "on store-3 gave 80.0 MB/s, 58 % less than the median of the 3 (190 MB/s)",
        ),
        (
            [disk("store-1", 200 * MB), disk("store-2", 80 * MB)],
            "on store-2 gave 80.0 MB/s, vs 200 MB/s on store-1",
        ),
        # Disks that differ in the hardware file are not compared.
        ([disk("store-1", 200 * MB), disk("store-2", 80 * MB, like="1 GiB")], ""),
        ([disk("store-1", 91 * MB, promised=100 * MB)], ""),
        (
            [disk("store-1", 85 * MB, promised=100 * MB)],
            "gave 85.0 MB/s, 15 % less than the 100 MB/s promised",
        ),
        (
            [
                *(link("a", "b", 500e6, None), link("b", "a", 950e6, None)),
                *(link("a", "c", 950e6, None), link("c", "a", 900e6, None)),
            ],
            "a sends 500 Mbit/s to b, 47 % less than the 950 Mbit/s in the other direction",
        ),
        ([sent("a", 400e6), sent("b", 500e6)], "reach 900 Mbit/s of the 2.00 Gbit/s of their NICs"),
        ([sent("a", 950e6), sent("b", 950e6)], ""),
        ([sent("a", 400e6), sent("b", 500e6, None)], ""),
    ],
)
def test_what_differs_from_its_equals_or_its_promise_is_reported_once_with_both_figures(
    figures: list[HostFigure], said: str
) -> None:
    found = oddities(figures)
    assert len(found) == bool(said)
    assert said in "".join(found)


def test_the_csv_has_a_line_per_figure_with_empty_unknowns() -> None:
    text = baseline_csv([disk("store-1", 50 * MB, promised=100 * MB), sent("a", 1e8, None)])
    columns = ("host", "value", "share_of_promised", "request_bytes")
    lines = [tuple(map(one.get, columns)) for one in csv.DictReader(io.StringIO(text))]
    assert lines == [("store-1", "50000000.0", "0.5", "64000"), ("a", "100000000.0", "", "")]


def test_the_charts_title_names_anomalies_and_it_shows_every_promise() -> None:
    chart = baseline_chart(
        made(disk("store-1", 50 * MB, promised=100 * MB), link("a", "b", 1e9), sent("a", 1e9))
    )
    assert chart.finding.startswith("Disk wb0 random read of 64 kB on store-1 gave 50.0 MB/s")
    drawn = "\n".join(texts_of(chart))
    for words in ("store-1: disk wb0 random", "50.0 MB/s, 50 %", "a to b", "1.00 Gbit/s, 100 %"):
        assert words in drawn
    assert "equal and reach what is promised" in baseline_chart(made(sent("a", 1e9))).finding


def test_the_chart_of_many_figures_shows_the_lowest_and_says_so() -> None:
    chart = baseline_chart(made(*(sent(f"host-{n:03}", 1e9 + n) for n in range(MAX_BARS + 5))))
    (panel,) = chart.panels
    assert f"the lowest {MAX_BARS} of {MAX_BARS + 5}" in panel.title
    names = panel.spec["encoding"]["y"]["scale"]["domain"]
    assert len(names) == MAX_BARS
    assert names[0].startswith("host-000: ")
    assert len(panel.rows) == MAX_BARS + 5, "its data have all"


def suite(**changed: Any) -> Suite:
    given = {
        "name": "list-all",
        "objects": {"size": 0, "per_container": 1000},
        "operations": {"list-all": 1},
        "workers": [4],
        "runtime": "20s",
        "listed": {"deleted": ["0%", "50%"]},
    }
    return Suite.model_validate({"name": "s", "about": "a", "workloads": [{**given, **changed}]})


def rows(
    workload: str, times_ms: list[float], pages_s: float = 20.0, **more: Any
) -> tuple[Row, Row]:
    about = {"layout": "rgw", "api": "swift", "workload": workload, "workers": 4}
    about |= {"object_size_bytes": 0, "repeats": len(times_ms), "valid": True}
    points = tuple(
        made_point(repeat=number, valid=True, steady=True, p50_ms=time)
        for number, time in enumerate(times_ms)
    )
    listing = {"operation": "list-all", "p50_ms": times_ms[0]}
    listing |= {"p90_ms": 2 * times_ms[0]} if len(times_ms) > 1 else {}
    return (
        made_row(**about, **listing, points=points, **more),
        made_row(**about, operation="list-page", throughput_ops_s=pages_s),
    )


def found(*some: tuple[Row, Row], **changed: Any) -> tuple[CompleteListing, ...]:
    return complete_listings(suite(**changed), [row for pair in some for row in pair])


def test_times_are_compared_by_name_with_those_before_the_deletes() -> None:
    before = rows("list-all", [1000 * (1 + number / 100) for number in range(5)])
    after = rows("list-all-50-deleted", [750 * (1 + number / 100) for number in range(5)], 18.0)
    first, then = found(before, after)
    assert (first.names, first.deleted, first.pages_per_s, first.beside) == (1000, 0, 20, None)
    assert (then.names, then.deleted, then.pages_per_s) == (500, 0.5, 18)
    assert then.beside is not None
    assert then.beside.value == pytest.approx(1.5)
    assert then.beside.claim
    cells = then.cells[3:11]
    assert cells[:6] == ("500", "50 %", "18.0", "0.750", "1.50", "1,500")
    assert cells[6:] == (f"1.50× ({then.beside.low:.2f} to {then.beside.high:.2f})", "ranked")
    # Those after some deletes are not what those after more are compared with.
    _, then = found(before, after, listed={"deleted": ["25%", "50%"]})
    assert (then.deleted, then.beside) == (0.5, None)


def test_what_is_not_known_or_not_ranked_is_not_compared() -> None:
    before = rows("list-all", [1000.0])
    bound = rows("list-all-50-deleted", [500.0])
    at_least = altered(bound[0].points[0].figure("p50"), at_least=True)
    point = altered(bound[0].points[0], figures={"p50": at_least})
    row = altered(bound[0], points=(point,))
    _, then = found(before, (row, bound[1]))
    assert then.beside is None
    grave = Doubt(what="machine busy", grade="grave", words="others used 30 %")
    _, then = found(before, rows("list-all-50-deleted", [500.0], doubts=(grave,)))
    assert then.beside is None
    assert then.cells[-1] == "not ranked: machine busy, few repeats"
    _, then = found(before, rows("list-all-50-deleted", [500.0]))
    assert then.beside is not None
    assert then.cells[-2:] == ("1.00×", "provisional: few repeats")


def test_listings_of_a_prefix_have_no_known_number_of_names() -> None:
    changed = {"listed": None, "listing": {"prefix": "object-00000001"}}
    (one,) = found(rows("list-all", [100.0]), **changed)
    assert one.names is None
    assert one.cells[3] == "–"
    assert one.cells[5:7] == ("20.0", "0.100")
    assert found(operations={"list": 1}) == ()


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
def test_endpoints_are_few_and_have_different_names(names: Iterable[object], why: str) -> None:
    endpoints = [{"name": str(name), "count": 0} for name in names]
    with pytest.raises(ValidationError, match=why):
        Measurement.model_validate({**fake_measurement().model_dump(), "endpoints": endpoints})


def test_counts_and_latencies_are_added_over_repeats() -> None:
    steps = [
        step(0, tally("a", 90, 1000), tally("b", 10, 9000, errors={"reset": 1})),
        step(1, tally("a", 90, 3000), tally("b", 10, 9000, errors={"connect": 2}, left_out=True)),
    ]
    grid = endpoint_grid(steps)
    a, b = grid.lines
    assert len(a) == len(b) == len(grid.head)
    assert a[4:] == ("a", "180", "90.0%", "3.00", "1.80", "none")
    assert b[5:7] == ("20", "10.0%")
    assert b[-1] == "2 connect, 1 reset, left out in 1 repeat"


def test_few_samples_have_no_p90_and_an_unreadable_histogram_is_named() -> None:
    (few,) = endpoint_grid([step(0, tally("a", 9))]).lines
    assert few[7] == "–"
    broken = altered(tally("a", 100), latency="not a histogram")
    (line,) = endpoint_grid([step(0, broken)]).lines
    assert line[7] == "–"
    assert "latencies unreadable" in line[-1]
    assert "latencies unreadable" in endpoint_text(broken)


def test_report_and_exported_steps_have_the_endpoints(tmp_path: Path) -> None:
    run = short_run(tmp_path, workers=(4,), runtime=2.0, repeats=1, telemetry=False)
    plain = derive(run.folder, pictures=False).report.read_text()
    assert 'id="endpoints"' not in plain
    for one in run.steps():
        endpoints = (tally("10.0.0.1:8000", 120), tally("10.0.0.1:8001", 40, errors={"reset": 2}))
        update = {"endpoints": endpoints, "connections": 7}
        changed = present(one.measurement).model_copy(update=update)
        run.append(altered(one, measurement=changed))
    page = derive(run.folder, pictures=False).report.read_text()
    assert 'id="endpoints"' in page
    assert "10.0.0.1:8001" in page
    table = STEPS.of_runs([open_run(run.folder)])
    assert set(table.column("endpoint_imbalance")) == {1.5}
    assert set(table.column("connections")) == {7}
    assert table.column("endpoints")[0] == (
        "10.0.0.1:8000: 120 succeeded, p90 1 ms",
        "10.0.0.1:8001: 40 succeeded, p90 1 ms, 2 reset",
    )
