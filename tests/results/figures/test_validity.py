from typing import Any

import pytest
from pydantic import ValidationError

from made_rows import altered, present
from made_up import fake_measurement
from weighbridge.results.figures.reading import order_statistic_interval
from weighbridge.results.figures.validity import enough_samples, judge, least_samples
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import LAST_ERROR, RAN_OUT, ClientLoad, Load, Measurement, Tally
from weighbridge.suites import Bounds

QUIET = fake_measurement()
SLOW = fake_measurement(mean_ms=500)
WITHOUT = altered(SLOW, tallies=(altered(SLOW.tallies[0], latency=None),), driver="rados-bench")


@pytest.mark.parametrize(
    ("measurement", "valid", "notes"),
    [
        (QUIET, True, ()),
        (altered(QUIET, tallies=()), False, ("nothing was done inside the window",)),
        (
            altered(QUIET, tallies=(), notes=("a note", f"{RAN_OUT} in the warm-up")),
            False,
            (f"{RAN_OUT} in the warm-up: nothing was done inside the window",),
        ),
        (fake_measurement(mean_ms=1000), True, ("reads: too few samples for p99 (needs 368)",)),
        (fake_measurement(bins=True), True, ("the driver's CPU is not known",)),
        (WITHOUT, True, ("rados bench reports no percentiles",)),  # however many samples
    ],
)
def test_what_is_not_known_of_a_step_is_noted_and_one_without_operations_is_not_valid(
    measurement: Measurement, valid: bool, notes: tuple[str, ...]
) -> None:
    verdict = judge(measurement, Bounds())
    assert (verdict.valid, verdict.notes) == (valid, notes)


def test_errors_within_the_bound_are_noted_and_beyond_it_refused() -> None:
    measurement = fake_measurement(errors={"http-503": 60, "timeout": 20})
    exactly = 80 / (measurement.tallies[0].count + 80)
    within, at_bound, beyond = (
        judge(measurement, Bounds(error_share=bound)) for bound in (0.02, exactly, 0.005)
    )
    assert (within.valid, at_bound.valid, beyond.valid) == (True, True, False)
    assert "0.99% of operations failed (http-503: 60, timeout: 20)" in within.notes[0]
    assert "beyond the bound of 0.50%" in beyond.notes[0]


def test_only_failures_are_not_valid_whatever_the_bound() -> None:
    nothing: dict[str, Any] = {"latency": None, "min_us": None, "max_us": None, "sum_us": 0}
    failed = altered(QUIET.tallies[0], count=0, errors={"connect": 9}, **nothing)
    verdict = judge(altered(QUIET, tallies=(failed,)), Bounds(error_share=1))
    assert not verdict.valid
    assert "no read succeeded (connect: 9)" in verdict.notes[0]


@pytest.mark.parametrize("tally", [QUIET.tallies[0], Tally(operation="read", count=0, bytes=0)])
def test_what_is_not_served_is_said_in_the_targets_words(tally: Tally) -> None:
    failed = altered(tally, errors={"http-403": 900})
    quota = altered(QUIET, tallies=(failed,), notes=(f"{LAST_ERROR}403: QuotaExceeded",))
    # Not at its end: rows leave out notes that end with what the driver remarked.
    assert "; the last error: 403: QuotaExceeded)" in judge(quota, Bounds()).unserved[0]


@pytest.mark.parametrize(("share", "valid"), [(0.79, True), (0.81, False), (1.3, False)])
def test_a_busy_driver_may_have_been_the_bottleneck(share: float, valid: bool) -> None:
    verdict = judge(fake_measurement(driver_share=share), Bounds())
    assert verdict.valid is valid
    assert valid or "the driver used" in verdict.notes[0]


def test_the_busiest_of_several_clients_is_judged_and_named() -> None:
    def used(*cpu_s: float) -> Measurement:
        clients = tuple(
            ClientLoad(client=f"client-{n}", cpu_s=one, cpu_limit=0.5)
            for n, one in enumerate(cpu_s, start=1)
        )
        measurement = fake_measurement()
        window_s = measurement.window_s
        load = Load(
            cpu_s=sum(cpu_s), cpu_limit=0.5 * len(cpu_s), window_s=window_s, clients=clients
        )
        return altered(measurement, load=load)

    half = 0.5 * fake_measurement().window_s
    busy = used(0.1 * half, 0.93 * half, 0.1 * half)
    assert present(busy.load).share == pytest.approx(0.93)
    verdict = judge(busy, Bounds())
    assert not verdict.valid
    assert verdict.notes[0].startswith("the driver on client-2 used 93% of its CPU limit")
    assert judge(used(0.7 * half, 0.7 * half), Bounds()).valid


def test_a_load_recorded_before_several_clients_existed_is_read() -> None:
    load = Load.model_validate_json('{"cpu_s": 0.9, "cpu_limit": 0.5, "window_s": 2.0}')
    assert (load.share, load.busiest.client, load.clients) == (0.9, "", ())


def of_littles_law(measurement: Measurement) -> list[str]:
    return [note for note in judge(measurement, Bounds()).notes if "Little" in note]


def slowed(measurement: Measurement, factor: float) -> Measurement:
    """The same samples over a longer or shorter window: what Little's law cannot explain."""
    window_s = measurement.window_s * factor
    return altered(
        measurement, window_s=window_s, load=Load(cpu_s=0.1, cpu_limit=1, window_s=window_s)
    )


@pytest.mark.parametrize(
    ("factor", "valid", "noted"),
    [
        (1.0, True, False),
        (1.1, True, True),
        (1.4, False, True),
        (0.9, True, True),
        (0.6, False, True),
    ],
)
def test_littles_law_is_noted_beyond_5_and_refused_beyond_20_percent(
    factor: float, valid: bool, noted: bool
) -> None:
    verdict = judge(slowed(fake_measurement(), factor), Bounds())
    assert verdict.valid is valid
    assert any("Little" in note for note in verdict.notes) is noted
    early = altered(slowed(fake_measurement(), factor), notes=(f"{RAN_OUT} after 0.02 s",))
    said = " ".join(judge(early, Bounds()).notes)
    assert valid or f"{RAN_OUT} after 0.02 s: throughput x mean latency makes" in said
    assert "samples were lost" not in said


def test_littles_law_is_not_applied_at_a_rate_or_with_unknown_times_of_failures() -> None:
    assert judge(slowed(fake_measurement(), 2), Bounds(), rate_per_s=200).valid
    assert judge(slowed(fake_measurement(errors={"timeout": 1}), 2), Bounds()).valid


def timed(measurement: Measurement, **parts: int) -> Measurement:
    """With parts of the workers' time in microseconds; the others are 0."""
    times = {"failed_us": 0, "outstanding_us": 0, "before_us": 0, **parts}
    return measurement.model_copy(
        update={"tallies": tuple(one.model_copy(update=times) for one in measurement.tallies)}
    )


def test_failures_with_known_time_keep_littles_law_on() -> None:
    # 4 workers for 20 s are 80 s, which the successes of the made-up step fill.
    failing = fake_measurement(errors={"http-503": 1})
    unexplained = timed(slowed(failing, 2))
    assert not judge(unexplained, Bounds()).valid
    assert of_littles_law(unexplained)
    # The other half of twice the time went into the failure.
    explained = timed(slowed(failing, 2), failed_us=80_000_000)
    assert judge(explained, Bounds()).valid
    assert not of_littles_law(explained)


@pytest.mark.parametrize(
    ("part", "sign"), [("failed_us", 1), ("outstanding_us", 1), ("before_us", -1)]
)
def test_each_part_of_the_workers_time_enters_littles_law(part: str, sign: int) -> None:
    step = timed(fake_measurement(), **{part: 12_000_000})
    (note,) = of_littles_law(step)
    share = int(note.removeprefix("throughput x mean latency makes ").partition("%")[0])
    assert abs(share - (100 + sign * 15)) <= 1
    assert not of_littles_law(timed(fake_measurement()))


@pytest.mark.parametrize(("factor", "noted"), [(1.15, True), (1.04, False)])
def test_count_x_mean_latency_is_noted_beside_the_accounted_time(
    factor: float, noted: bool
) -> None:
    # 80 s are counted; the rest went into requests that the end of the window cut.
    rest_us = round((factor - 1) * 80e6)
    verdict = judge(timed(slowed(fake_measurement(), factor), outstanding_us=rest_us), Bounds())
    assert verdict.valid
    said = [note for note in verdict.notes if note.startswith("count x mean latency makes 87% ")]
    assert bool(said) is noted


def test_littles_law_is_wide_for_few_operations_and_sharp_with_known_times() -> None:
    few = slowed(fake_measurement(workers=8, mean_ms=10_000, window_s=20), 1.3)
    assert not of_littles_law(few)
    assert of_littles_law(timed(few))


@pytest.mark.parametrize(
    ("begun", "rate_per_s", "valid"),
    [
        (8000, 400, True),
        (7919, 400, True),  # with the one that is due, 99 %
        (7918, 400, False),
        (8000, 410, False),
        (None, 402, True),
        (None, 410, False),
    ],
)
def test_a_step_that_did_not_keep_its_rate_is_not_valid(
    begun: int | None, rate_per_s: float, valid: bool
) -> None:
    step = fake_measurement()
    assert step.tallies[0].count == 8000
    verdict = judge(altered(step, begun=begun), Bounds(), rate_per_s=rate_per_s)
    assert verdict.valid is valid


def test_a_missed_rate_is_noted_with_the_accumulated_delay() -> None:
    late = altered(fake_measurement(), begun=8000, behind_us=4_000_000)
    verdict = judge(late, Bounds(), rate_per_s=500)
    assert "400 requests/s were sent of the 500 intended (80.0%)" in verdict.notes[0]
    assert "4000 ms behind" in verdict.notes[0]
    assert "is not known" in judge(fake_measurement(), Bounds(), rate_per_s=500).notes[0]


def test_a_histogram_that_counts_other_than_its_tally_is_refused() -> None:
    measurement = fake_measurement()
    tally = altered(measurement.tallies[0], count=measurement.tallies[0].count + 1)
    verdict = judge(altered(measurement, tallies=(tally,)), Bounds())
    assert not verdict.valid
    assert "counts 8000 samples where 8001 succeeded" in verdict.notes[0]


@pytest.mark.parametrize(
    ("part", "what"),
    [("count", "8001 successes"), ("bytes", "bytes where"), ("errors", "1 failures where 0")],
)
def test_seconds_that_count_other_than_their_tally_are_refused(part: str, what: str) -> None:
    measurement = fake_measurement()
    assert judge(measurement, Bounds()).valid
    first, *others = measurement.seconds
    wrong = altered(first, **{part: getattr(first, part) + 1})
    verdict = judge(altered(measurement, seconds=(wrong, *others)), Bounds())
    assert not verdict.valid
    assert f"the seconds of {first.operation} have" in verdict.notes[0]
    assert what in verdict.notes[0]


@pytest.mark.parametrize(
    ("percent", "needed"), [(1, 368), (50, 6), (90, 36), (99, 368), (99.9, 3688)]
)
def test_a_percentile_needs_samples_for_both_ends_of_its_interval(
    percent: float, needed: int
) -> None:
    assert least_samples(percent) == needed
    for count in (needed - 1, needed):
        low, high = order_statistic_interval(Histogram.of(list(range(1, count + 1))), percent)
        closed = low > 0 and high is not None
        assert closed == enough_samples(count, percent) == (count == needed)


def test_a_driver_without_latencies_is_judged_by_what_it_reports() -> None:
    measurement = fake_measurement()
    unknown = {"latency": None, "first_byte": None, "min_us": None, "max_us": None, "sum_us": None}
    tally = Tally.model_validate({**measurement.tallies[0].model_dump(), **unknown})
    assert judge(altered(measurement, tallies=(tally,)), Bounds()).valid
    with pytest.raises(ValidationError, match="do not fit the latencies"):
        Tally.model_validate({**tally.model_dump(), "sum_us": 0})


def cut(mean_ms: float, factor: float, *, workers: int = 4) -> Measurement:
    """A COSBench step with as many operations as explain only the part `factor` of the window."""
    measured = fake_measurement(mean_ms=mean_ms, workers=workers, bins=True, window_s=50.0)
    return altered(measured, window_s=measured.window_s / factor)


@pytest.mark.parametrize(
    ("mean_ms", "factor", "noted"),
    [
        (2.0, 0.97, False),  # 1.5 ms were told where 2 were taken: what was cut is not lost time
        (2.0, 0.70, True),  # but 30 % lost are more than those explain
        (200.0, 0.97, False),
        (200.0, 0.90, True),  # half a millisecond of 200 explains nothing
        (200.0, 1.10, True),  # nor can a sum that was cut be too much
    ],
)
def test_littles_law_allows_for_cosbenchs_truncated_milliseconds(
    mean_ms: float, factor: float, noted: bool
) -> None:
    assert bool(of_littles_law(cut(mean_ms, factor))) is noted
    assert judge(cut(mean_ms, factor), Bounds()).valid


def test_littles_law_allows_cosbench_two_uncounted_requests_per_worker() -> None:
    # 8 operations a worker: 20 % are missing where one a worker makes 12.5 and two make 25.
    for bins in (False, True):
        step = fake_measurement(workers=8, mean_ms=5_000, window_s=40, spread=0.01, bins=bins)
        assert bool(of_littles_law(slowed(step, 1.25))) is not bins
