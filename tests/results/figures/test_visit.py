import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_run import WORKLOADS, fake_run
from made_rows import altered, present, summarize
from made_up import fake_measurement
from weighbridge.results.derivation import derive
from weighbridge.results.figures.reading import (
    NOTHING,
    OutageFigures,
    Reading,
    Times,
    bounded,
    figures,
    order_statistic_interval,
    series,
)
from weighbridge.results.figures.summary import JudgedStep, read_visits, rows_of, visit
from weighbridge.results.figures.use import Resource, StepUse
from weighbridge.results.run import Second
from weighbridge.results.run.histogram import Histogram, band_of
from weighbridge.results.run.step import Measurement, StepKey, StepResult
from weighbridge.results.run.store import RunStore

ONE = (altered(WORKLOADS[0], runtime=3.0, workers=(4,)),)


def step_of(measurement: Measurement, *, repeat: int = 0) -> StepResult:
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=repeat)
    return StepResult(key=key, measurement=measurement, valid=True, order=repeat)


def nic(share: float, tier: str = "client") -> StepUse:
    about = {"what": "network", "host": f"{tier}-1", "tier": tier, "limit": "1 Gbit/s received"}
    return StepUse(resources=(Resource.model_validate({**about, "share": share}),))


def unreadable(measurement: Measurement) -> Measurement:
    (tally,) = measurement.tallies
    return altered(measurement, tallies=(altered(tally, latency=present(tally.latency)[:100]),))


@pytest.mark.parametrize(
    ("use", "valid"),
    [(nic(0.79), True), (nic(0.8), False), (nic(0.99, "gateway"), True), (None, True)],
)
def test_a_step_whose_driver_filled_its_nic_is_not_valid(use: StepUse | None, valid: bool) -> None:
    found = visit(step_of(fake_measurement()), use)
    assert found.valid is found.ranked is found.points["read"].valid is valid
    assert valid or found.notes[0].startswith("network of client-1 (80 % of 1 Gbit/s received)")


@pytest.mark.parametrize(
    ("cpu_share", "use", "full"),
    [(0.79, None, False), (0.8, None, True), (0.2, nic(0.79), False), (0.2, nic(0.8), True)],
)
def test_a_load_generator_at_the_bound_of_its_cpu_or_nic_is_marked(
    cpu_share: float, use: StepUse | None, full: bool
) -> None:
    found = visit(step_of(fake_measurement(driver_share=cpu_share)), use)
    assert found.points["read"].driver_full is full


def test_the_nic_of_every_client_is_judged() -> None:
    second = altered(nic(0.9).resources[0], host="client-2")
    found = visit(step_of(fake_measurement()), StepUse(resources=(*nic(0.1).resources, second)))
    assert not found.valid
    assert found.notes[0].startswith("network of client-2 (90 %")


def test_invalid_steps_are_not_judged_for_steadiness() -> None:
    found = visit(altered(step_of(fake_measurement()), valid=False, notes=("driver busy",)))
    assert (found.valid, found.steady, found.notes) == (False, None, ("driver busy",))


def test_an_unreadable_histogram_spoils_its_step_and_leaves_no_percentile() -> None:
    found = visit(step_of(unreadable(fake_measurement())))
    point = found.points["read"]
    assert found.valid is False
    assert (point.valid, point.value("p50"), point.value("p90")) == (False, None, None)
    assert point.value("throughput") == 400
    assert found.notes[0].startswith("latencies of read: a histogram cannot be decoded: ")


@pytest.fixture
def spoilt(runs: Path) -> RunStore:
    """Two repeats of one step on two layouts, with a bad histogram in line 2 of `steps.jsonl`."""
    run = fake_run(runs, workloads=ONE, repeats=2)
    path = run.folder / "steps.jsonl"
    steps = [StepResult.model_validate_json(line) for line in path.read_text().splitlines()]
    assert steps[1].measurement is not None
    steps[1] = altered(steps[1], measurement=unreadable(steps[1].measurement))
    path.write_text("".join(step.model_dump_json() + "\n" for step in steps))
    return run


def by_layout(run: RunStore) -> dict[tuple[str, int], JudgedStep]:
    return {
        (key.layout, key.repeat): one
        for key, one in read_visits(run, run.plan(), run.steps()).items()
    }


def test_an_unreadable_histogram_spoils_nothing_else_and_a_report_is_made(spoilt: RunStore) -> None:
    found = by_layout(spoilt)
    assert [place for place, one in found.items() if not one.valid] == [("swift", 0)]
    assert len(found) == 4
    assert found["swift", 0].notes[0].startswith("latencies of read: ")
    beast, swift = rows_of(spoilt.plan(), read_visits(spoilt, spoilt.plan(), spoilt.steps()))
    assert (beast.repeats, swift.repeats, swift.valid) == (2, 1, True)
    assert swift.notes[0] == "1 of 2 repeats left out as not valid"
    assert "cannot be decoded" in derive(spoilt.folder, pictures=False).report.read_text()


def test_unreadable_telemetry_is_a_gap_of_its_step(runs: Path) -> None:
    run = fake_run(runs, workloads=ONE, repeats=1)
    key = StepKey(layout="swift", api="swift", workload="small-read", workers=4, repeat=0)
    path = run.folder / "telemetry" / f"{key.file_name}.jsonl"
    path.write_text(path.read_text().replace('"kind":"host"', '"kind":"ghost"', 1))
    found = by_layout(run)
    assert found["rgw-beast", 0].use is not None
    assert found["swift", 0].use is None
    assert found["swift", 0].valid
    assert any(
        str(path) in note and note.startswith("what the hosts used is not known")
        for note in found["swift", 0].notes
    )


def moving(measurement: Measurement) -> Measurement:
    """The same with half the throughput in the second half of its window."""
    seconds = tuple(
        altered(one, count=one.count if one.second < 10 else one.count // 2)
        for one in measurement.seconds
    )
    return altered(measurement, seconds=seconds)


def test_unsteady_repeats_are_left_out_and_a_row_of_only_those_is_not_ranked(runs: Path) -> None:
    plan = fake_run(runs, layouts=("swift",), workloads=ONE, repeats=2, telemetry=False).plan()
    steady, unsteady = fake_measurement(mean_ms=10), moving(fake_measurement(mean_ms=20))
    (mixed,) = summarize(plan, [step_of(unsteady), step_of(steady, repeat=1)])
    assert mixed.repeats == 1
    assert (mixed.steady, mixed.ranked, mixed.value("throughput")) == (True, True, 400)
    assert mixed.notes[0] == "1 of 2 repeats left out as not steady"
    (none,) = summarize(plan, [step_of(unsteady), step_of(unsteady, repeat=1)])
    assert (none.repeats, none.valid) == (2, True)
    assert (none.steady, none.ranked, none.value("throughput")) == (False, False, 200)
    assert none.notes[0] == "not steady"
    assert any(note.startswith("not steady: throughput falls by ") for note in none.notes)
    (unknown,) = summarize(
        plan, [step_of(steady), step_of(fake_measurement(window_s=3.0), repeat=1)]
    )
    assert (unknown.repeats, unknown.steady, unknown.ranked) == (2, None, True)
    refused = altered(step_of(fake_measurement(mean_ms=40), repeat=1), valid=False)
    (one,) = summarize(plan, [step_of(unsteady), refused])
    assert (one.repeats, one.ranked, one.value("throughput")) == (1, False, 200), (
        "an invalid repeat is never averaged with valid ones, steady or not"
    )


def test_requests_in_flight_make_maximum_and_percentiles_lower_bounds(runs: Path) -> None:
    plan = fake_run(runs, layouts=("swift",), workloads=ONE, repeats=1, telemetry=False).plan()
    complete = fake_measurement(mean_ms=10)
    (tally,) = complete.tallies

    def stalled(requests: int, age_us: int) -> Measurement:
        more = {"in_flight": Histogram.of([age_us] * requests).encode(), "in_flight_max_us": age_us}
        return complete.model_copy(update={"tallies": (tally.model_copy(update=more),)})

    usual = visit(step_of(complete)).points["read"]
    late = visit(step_of(stalled(4, 500_000))).points["read"]
    assert (usual.lower_bounds, late.lower_bounds) == ((), ("max",))
    assert late.value("max") == 500
    assert late.value("p90") == pytest.approx(usual.value("p90"), rel=0.01)
    # A fifth of all requests never ended: the 90th percentile is beyond all that did.
    most = visit(step_of(stalled(tally.count // 4, 500_000))).points["read"]
    assert set(most.lower_bounds) == {"p90", "p99", "p99.9", "max"}
    assert most.value("p90") == pytest.approx(500, rel=0.002)
    (row,) = summarize(plan, [step_of(stalled(4, 500_000))])
    assert [(one.what, one.metrics) for one in row.doubts if one.metrics] == [
        ("lower bound", ("max",))
    ]
    words = "requests not seen to end took at least as long, so it may be higher"
    assert words in [one.words for one in row.doubts]
    two = plan.model_copy(update={"suite": altered(plan.suite, repeats=2)})
    (both,) = summarize(two, [step_of(complete), step_of(stalled(4, 500_000), repeat=1)])
    ends = [both.figure(key) for key in ("p90", "max")]
    assert [(end.low is None, end.high is None) for end in ends] == [(False, False), (False, True)]


def stalling(share: float) -> Measurement:
    """Reads that are all first byte; so many more by share were in flight for 5 s at the end."""
    complete = fake_measurement(mean_ms=10)
    (tally,) = complete.tallies
    more: dict[str, object] = {"first_byte": tally.latency}
    if share:
        more["in_flight"] = Histogram.of([5_000_000] * int(share * tally.count)).encode()
        more["in_flight_max_us"] = 5_000_000
    return complete.model_copy(update={"tallies": (tally.model_copy(update=more),)})


@pytest.mark.parametrize(
    ("share", "awaiting", "bound"),
    [
        (0.0, None, False),
        (0.002, None, False),
        (0.13, None, True),
        (0.13, [], False),
        (0.13, [5_000_000] * 300, False),
        (0.13, [5_000_000] * 1000, True),
    ],
)
def test_the_time_to_first_byte_is_a_lower_bound_if_requests_in_flight_could_move_it(
    share: float, awaiting: list[int] | None, bound: bool
) -> None:
    measured = stalling(share)
    known = {} if awaiting is None else {"awaiting": Histogram.of(awaiting).encode()}
    tally = altered(measured.tallies[0], **known)
    point = visit(step_of(altered(measured, tallies=(tally,)))).points["read"]
    figure = point.figure("first-byte")
    assert figure.at_least == bound
    usual_ms = Histogram.decode(tally.first_byte or "").percentile_us(90) / 1000
    if awaiting:
        low, high = (4_990, 5_010) if bound else (usual_ms, usual_ms * 1.2)
        assert low <= present(figure.value) <= high
    else:
        # What is in flight may have had its first byte: its age is no lower bound of that.
        assert present(figure.value) < usual_ms if bound else figure.value == usual_ms


def test_a_stalling_gateway_puts_first_bytes_in_doubt_or_makes_them_unknown(runs: Path) -> None:
    plan = fake_run(runs, layouts=("swift",), workloads=ONE, repeats=1, telemetry=False).plan()
    (row,) = summarize(plan, [step_of(stalling(0.13))])
    assert ("first-byte",) in [one.metrics for one in row.doubts if one.what == "lower bound"]
    point = visit(step_of(stalling(10.0))).points["read"]
    assert (point.value("first-byte"), point.figure("first-byte").at_least) == (None, False)


AT = 10.2


def seconds(counts: Sequence[int], errors: dict[int, int] | None = None) -> list[Second]:
    """Reads: each second with these successes of 10 ms, and `timeout` errors by second."""
    failed = errors or {}
    return [
        Second(
            second=number,
            operation="read",
            count=count,
            bytes=0,
            errors=failed.get(number, 0),
            failures={"timeout": failed[number]} if number in failed else {},
            max_us=10_000 if count else 0,
            sum_us=10_000 * count,
            bands=((band_of(10_000), count),) if count else (),
            in_flight=8,
        )
        for number, count in enumerate(counts)
    ]


BEFORE = [100, 90, 110, 100, 100, 100, 95, 105, 100, 100]


@pytest.mark.parametrize(
    ("after", "back_s", "errors", "wanted"),
    [
        # A rate that never falls is back within a second.
        (
            [98] * 30,
            25.0,
            {},
            {"rate-before": 100, "detect": 0.8, "recover": 0.8, "unanswered": 0}
            | {"missed": 0.02 * 29, "lowest-back": 98},
        ),
        # Second 10 is that of the fault; nothing from 11 to 14, half from 15 to 19, then all: from
        # 19 to 23 it is 91 on average.
        (
            [20, *[0] * 4, *[55] * 5, *[100] * 20],
            32.0,
            {11: 3, 13: 5},
            {"unanswered": 4, "detect": 15 - AT, "recover": 19 - AT, "missed": 4 + 5 * 0.45},
        ),
        # An error shows that the fault is not dealt with; five seconds may end before it.
        ([100] * 30, 32.0, {16: 1}, {"detect": 0.8}),
        ([100] * 30, 32.0, {15: 1}, {"detect": 16 - AT}),
        # What was not reached is at least as long as was looked for it.
        (
            [0] * 30,
            20.0,
            {},
            {"detect": (20 - AT,), "recover": (40 - AT,), "unanswered": 29}
            | {"away-p99": None, "lowest-back": 0},
        ),
        # Service that is back only with what died was not dealt with before.
        ([*[0] * 10, *[100] * 20], 20.0, {}, {"detect": (20 - AT,), "recover": 20 - AT}),
    ],
)
def test_times_run_from_the_fault_to_the_first_of_five_seconds(
    after: Sequence[int],
    back_s: float,
    errors: dict[int, int],
    wanted: dict[str, float | tuple[float] | None],
) -> None:
    found = present(outage_of([*BEFORE, *after], back_s, errors))
    for key, value in wanted.items():
        figure = found.by_metric.get(key, NOTHING)
        least = isinstance(value, tuple)
        known = value[0] if isinstance(value, tuple) else value
        assert figure.value == (None if known is None else pytest.approx(known)), key
        assert figure.at_least is least, key
    assert found.errors == ({"timeout": sum(errors.values())} if errors else {})


def outage_of(
    counts: Sequence[int], back_s: float | None, errors: dict[int, int] | None = None
) -> OutageFigures | None:
    """Of a fault at 10.2 s."""
    window = altered(fake_measurement(), window_s=40.0, seconds=tuple(seconds(counts, errors)))
    return figures(window, "read", Times(fault_s=AT, back_s=back_s))


def test_without_a_rate_before_nothing_is_known() -> None:
    assert outage_of([0] * 40, None) is None


def test_a_seconds_p99_is_the_edge_of_its_band_and_never_above_the_longest() -> None:
    (one,) = series(seconds([100]), 1.0, ("read",))
    assert one.p99_ms == 10.0
    assert (one.count, one.in_flight) == (100, 8)
    (none,) = series([], 1.5, ("read",))
    assert (none.count, none.p99_ms, none.in_flight) == (0, None, None)


SMALL_US = st.integers(1, 1000)
"""Latencies that a histogram represents exactly."""


def product_limit(
    latencies: list[int], ages: list[int], percent: float
) -> tuple[float, float | None]:
    """The estimate by definition: at each time, the share of those at risk that continue."""
    longer = 1.0
    for time in sorted(set(latencies)):
        at_risk = sum(one >= time for one in latencies) + sum(one >= time for one in ages)
        longer *= 1 - latencies.count(time) / at_risk
        if longer <= 1 - percent / 100 + 1e-9:
            return time / 1000, time / 1000
    return max(latencies + ages) / 1000, None


@settings(deadline=None, max_examples=300)
@given(
    st.lists(SMALL_US, max_size=60),
    st.lists(SMALL_US, max_size=20),
    st.sampled_from([1, 25, 50, 90, 99, 100]),
)
def test_a_percentile_is_the_product_limit_estimate(
    latencies: list[int], ages: list[int], percent: float
) -> None:
    found = bounded(Histogram.of(latencies), Histogram.of(ages), percent)
    assert found == (product_limit(latencies, ages, percent) if latencies or ages else None)


@settings(deadline=None)
@given(st.lists(SMALL_US, min_size=1, max_size=200), st.sampled_from([1, 50, 90, 99, 99.9, 100]))
def test_with_none_in_flight_percentiles_are_plain(latencies: list[int], percent: float) -> None:
    wanted_ms = float(np.percentile(latencies, percent, method="inverted_cdf")) / 1000
    for none in (None, Histogram()):
        assert bounded(Histogram.of(latencies), none, percent) == (wanted_ms, wanted_ms)


def test_a_stall_before_the_end_shows_in_the_percentiles() -> None:
    # 16 workers, 10 ms a request for 9.5 s, then nothing: 16 are outstanding for half a second.
    seen, stalled = Histogram.counted([(10_000, 16 * 950)]), Histogram.counted([(500_000, 16)])
    low_ms, high_ms = bounded(seen, stalled, 99.95) or (0.0, None)
    assert (low_ms, high_ms) == (pytest.approx(500, rel=1e-3), None)
    assert bounded(seen, stalled, 99) == (pytest.approx(10, rel=1e-3), pytest.approx(10, rel=1e-3))


def test_when_most_are_in_flight_even_the_median_is_only_a_lower_bound() -> None:
    assert bounded(Histogram.of([10, 20]), Histogram.of([500] * 10), 50) == (0.5, None)
    assert bounded(None, Histogram.of([400, 500]), 50) == (0.5, None)
    assert bounded(None, None, 50) is None


@pytest.mark.parametrize(
    ("max_us", "in_flight_max_us", "known"),
    [
        (5000, 3000, (5.0, False)),
        (5000, None, (5.0, False)),
        (None, 3000, (3.0, True)),
        (10_400, 500_123, (500.123, True)),
        (None, None, None),
    ],
)
def test_a_maximum_is_known_unless_something_older_is_in_flight(
    max_us: int | None, in_flight_max_us: int | None, known: tuple[float, bool] | None
) -> None:
    measurement = fake_measurement()
    ends = {"max_us": max_us, "in_flight_max_us": in_flight_max_us}
    tally = altered(measurement.tallies[0], **ends)
    figure = Reading(tally, measurement, None, None, None).latency(100)
    assert (None if figure is None else (figure.value, figure.at_least)) == known


def below(count: int, share: float, k: int) -> float:
    return math.fsum(math.comb(count, i) * share**i * (1 - share) ** (count - i) for i in range(k))


@settings(deadline=None, max_examples=200)
@given(
    st.lists(SMALL_US, min_size=1, max_size=120),
    st.sampled_from([50, 90, 99]),
)
def test_an_interval_lies_between_the_binomial_ranks(values: list[int], percent: float) -> None:
    low_ms, high_ms = order_statistic_interval(Histogram.of(values), percent)
    ordered, tail, share = sorted(values), 0.025, percent / 100
    ranks = range(len(values) + 2)
    low = max(k for k in ranks if below(len(values), share, k) <= tail)
    high = min(k for k in ranks if 1 - below(len(values), share, k) <= tail)
    assert low_ms == (ordered[low - 1] / 1000 if low else 0)
    assert high_ms == (ordered[high - 1] / 1000 if high <= len(values) else None)


def test_intervals_of_60_samples_hold_the_90th_percentile_95_times_in_100_or_more() -> None:
    draw = np.random.default_rng(2014)
    true_ms = float(np.exp(1.2815515655446004))
    held = 0
    for _ in range(1000):
        values = np.maximum(1, np.rint(np.exp(draw.standard_normal(60)) * 1000)).astype(int)
        low_ms, high_ms = order_statistic_interval(Histogram.of(values.tolist()), 90)
        held += low_ms <= true_ms and (high_ms is None or true_ms <= high_ms * 1.001)
    assert 945 <= held <= 990


def test_few_samples_have_no_upper_end_and_requests_in_flight_widen_the_interval() -> None:
    values = list(range(1, 61))
    low_ms, high_ms = order_statistic_interval(Histogram.of(values), 90)
    assert (low_ms, high_ms) == (0.049, 0.059)
    assert order_statistic_interval(Histogram.of(values[:20]), 90)[1] is None
    stalled = order_statistic_interval(Histogram.of(values), 90, in_flight=Histogram.of([900] * 8))
    assert (stalled[0] >= low_ms, stalled[1]) == (True, None)


@pytest.mark.parametrize(
    ("samples", "percent", "why"),
    [([1], 0, "no interval"), ([1], 100, "no interval"), ([], 90, "no samples")],
)
def test_no_samples_and_what_is_impossible_are_refused(
    samples: list[int], percent: float, why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        order_statistic_interval(Histogram.of(samples), percent)
    if percent == 0:
        for wrong in (0, 101):
            with pytest.raises(ValueError, match="not a percentage"):
                bounded(None, None, wrong)
