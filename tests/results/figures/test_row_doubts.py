from collections.abc import Callable, Mapping, Sequence

import pytest

from made_rows import altered, made_workload, plan_of, step_of, summarize
from made_up import fake_measurement
from weighbridge.results.figures.doubt import HOPELESS, SPOILT
from weighbridge.results.figures.summary import BY_ITSELF, Row
from weighbridge.results.figures.use import Resource, StepUse, Throttled
from weighbridge.results.judge.run_data import with_event_doubts
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.resolved import RunEvent
from weighbridge.results.run.step import EndpointTally, Measurement

DISK = Resource(what="disk", host="store-1", tier="storage", share=0.95, limit="200 MB/s written")
IDLE = altered(DISK, share=0.2)

WORKLOAD = made_workload(1000)
REPEATS = 5
HELD = Throttled(
    host="gateway-1",
    quota_cpus=0.6,
    period_ms=100.0,
    periods=200,
    throttled_periods=180,
    throttled_s=9.72,
    window_s=19.44,
)


def row_of(
    measured: Sequence[Measurement],
    uses: Mapping[int, StepUse] | None = None,
    *,
    invalid: int | None = None,
) -> Row:
    plan = plan_of(WORKLOAD, repeats=len(measured))
    steps = [step_of(one, number, valid=number != invalid) for number, one in enumerate(measured)]
    used = {steps[number].key: use for number, use in (uses or {}).items()}
    (found,) = summarize(plan, steps, used)
    return found


def steady(seed: int = 0, window_s: float = 20.0) -> Measurement:
    return fake_measurement(workload="w", window_s=window_s, seed=seed)


def stalled() -> Measurement:
    """The same with four seconds of its window in which nothing was done."""
    complete = steady()
    seconds = tuple(one for one in complete.seconds if not 8 <= one.second < 12)
    return altered(complete, seconds=seconds)


STEADY = [steady(seed) for seed in range(REPEATS)]


def each(use: Mapping[str, object] | StepUse) -> dict[int, StepUse]:
    return {number: StepUse.model_validate(use) for number in range(REPEATS)}


def test_steady_repeats_on_a_quiet_machine_have_no_doubt() -> None:
    found = row_of(STEADY, each({"others": 0.03}))
    assert (found.doubts, found.steady, found.ranked, found.provisional) == ((), True, True, False)
    alone = row_of(STEADY, {0: StepUse(gateway_cpu_s=1.0)})
    assert alone.doubts == (), "hosts that are not containers need no machine"


@pytest.mark.parametrize(
    ("share", "quiet", "grade"),
    [
        # Others disturb: up to half of the windows without a doubt, and all of them beyond rank.
        (HOPELESS, REPEATS // 2 + 1, None),
        (SPOILT - 0.01, 0, None),
        (SPOILT, REPEATS // 2, "mild"),
        (HOPELESS, 1, "mild"),
        (HOPELESS - 0.01, 0, "mild"),
        (HOPELESS, 0, "grave"),
    ],
)
def test_what_others_use_of_the_machine_decides_the_doubt(
    share: float, quiet: int, grade: str | None
) -> None:
    shares = {n: StepUse(others=0.0 if n < quiet else share) for n in range(REPEATS)}
    found = row_of(STEADY, shares)
    assert [(one.what, one.grade) for one in found.doubts] == (
        [("machine busy", grade)] if grade else []
    )
    assert found.ranked == (grade != "grave")


def test_a_busy_machine_says_what_it_used_and_in_how_many_repeats() -> None:
    uses = {number: StepUse(others=0.9 * (number < 4)) for number in range(REPEATS)}
    (doubt,) = row_of(STEADY, uses).doubts
    assert doubt.words == "other programs used 90 % of this machine’s CPUs: 4 of 5 repeats"


@pytest.mark.parametrize("lost", [None, StepUse(lab=True)])
def test_a_repeat_with_unknown_use_by_others_is_a_mild_doubt(lost: StepUse | None) -> None:
    uses = {number: StepUse(others=0.0, lab=True) for number in range(REPEATS)}
    if lost is None:
        del uses[1]
    else:
        uses[1] = lost
    (doubt,) = row_of(STEADY, uses).doubts
    assert (doubt.what, doubt.grade) == ("machine not known", "mild")
    words = "what other programs used of this machine’s CPUs in 1 of 5 repeats was not recorded"
    assert doubt.words == words


def test_stalled_and_invalid_repeats_left_out_are_a_doubt_about_the_others() -> None:
    found = row_of([stalled(), *STEADY])
    assert (found.repeats, found.steady, found.provisional) == (REPEATS, True, True)
    (doubt,) = found.doubts
    assert (doubt.what, doubt.grade) == ("repeats left out", "mild")
    assert "1 of 6 repeats" in doubt.words
    found = row_of([steady(number) for number in range(6)], invalid=0)
    (doubt,) = found.doubts
    assert found.repeats == 5
    assert doubt.words.startswith("1 of 6 repeats were not valid; ")


def test_one_short_window_leaves_steadiness_open_and_several_are_judged_together() -> None:
    found = row_of([steady(window_s=5.0)])
    assert (found.steady, found.ranked, found.doubts) == (None, True, ())
    assert any("a window of 5 s is too short" in note for note in found.notes)
    found = row_of([steady(seed, window_s=5.0) for seed in range(REPEATS)])
    assert found.doubts == ()
    assert not any("too short to tell" in note for note in found.notes)
    slower = [
        fake_measurement(workload="w", window_s=5.0, seed=seed, mean_ms=10.0 + seed)
        for seed in range(REPEATS)
    ]
    assert row_of(slower).steady is not False, "from repeat to repeat they may drift"


def test_only_a_percentile_set_by_a_cpu_limit_is_in_grave_doubt() -> None:
    limited = row_of(STEADY, each({"throttled": (HELD,)}))
    assert {one.grade for one in limited.doubts} == {"grave"}
    assert {metric for one in limited.doubts for metric in one.metrics} == {"p90", "p99", "max"}
    assert limited.ranked  # its throughput may be compared
    assert "throttled in 90 % of its periods of 100 ms" in limited.doubts[0].words
    for repeats, held in ((REPEATS, 1), (4, 2)):
        uses = {number: StepUse(throttled=(HELD,) * (number < held)) for number in range(repeats)}
        assert {one.grade for one in row_of(STEADY[:repeats], uses).doubts} == {"mild"}


def test_only_repeats_that_count_decide_on_a_cpu_limit() -> None:
    # Unthrottled repeats that do not count do not dilute it.
    found = row_of(
        [*STEADY, *(stalled() for _ in range(REPEATS))],
        {
            number: StepUse(throttled=(HELD,) if number < REPEATS else ())
            for number in range(2 * REPEATS)
        },
    )
    assert {(one.grade, one.metrics) for one in found.doubts if one.metrics} == {
        ("grave", (key,)) for key in ("p90", "p99", "max")
    }


def test_the_interval_of_a_lower_bound_has_no_upper_end() -> None:
    complete = [*STEADY]
    more = {"in_flight": Histogram.of([500_000] * 4).encode(), "in_flight_max_us": 500_000}
    (tally,) = complete[0].tallies
    late = complete[0].model_copy(update={"tallies": (tally.model_copy(update=more),)})
    found = row_of([late, *complete[1:]])
    assert found.figure("max").low is not None
    assert (found.figure("max").high, found.lower_bounds) == (None, ("max",))
    assert found.figure("p90").high is not None


@pytest.mark.parametrize(
    ("measured", "stall_ms", "metrics"),
    [
        ({}, 54.0, {"p90", "p99", "max"}),
        ({}, 4.0, set()),
        ({"mean_ms": 14.5, "spread": 0.001}, 54.0, {"p90", "max"}),
        ({"mean_ms": 14.5, "spread": 0.001}, 9.0, set()),
    ],
)
def test_a_percentile_in_bins_does_not_escape_the_cpu_limit(
    measured: dict[str, float], stall_ms: float, metrics: set[str]
) -> None:
    held = altered(HELD, throttled_s=0.18 * stall_ms, window_s=0.36 * stall_ms)
    binned = [
        fake_measurement(workload="w", bins=True, seed=seed, **measured) for seed in range(REPEATS)
    ]
    found = row_of(binned, each({"throttled": (held,)}))
    assert (found.value("p90"), str(found.within("p90"))) == (None, "(10, 20]")
    limited = [one for one in found.doubts if one.what == "set by the CPU limit"]
    missing = {"p99"} if measured else set()
    assert {metric for one in limited for metric in one.metrics} - missing == metrics


def test_reads_not_shared_by_storage_hosts_are_provisional() -> None:
    measured = row_of(STEADY)
    text = "osd.0 answers 51 % of the reads; an even share of 3 OSDs would be 33 %"
    events = [
        RunEvent(at="", kind="uneven", text=text, layout="swift", repeat=repeat)
        for repeat in range(3)
    ]
    (uneven,) = with_event_doubts([measured], events)
    assert [(one.what, one.grade, one.words) for one in uneven.doubts] == [
        ("reads uneven", "mild", text)
    ]
    writes = altered(measured, operation="write")
    assert with_event_doubts([writes], events) == (writes,)
    assert with_event_doubts([measured], events[:2]) == (measured,)


def test_a_repeat_in_which_a_dead_endpoint_was_left_out_is_a_mild_doubt() -> None:
    dead = EndpointTally(name="10.0.0.1:8001", count=0, errors={"connect": 3}, left_out=True)
    alive = altered(dead, name="10.0.0.1:8000", errors={}, left_out=False)
    measured = [*STEADY]
    measured[1] = altered(measured[1], endpoints=(alive, dead))
    found = row_of(measured, each({"others": 0.03}))
    (doubt,) = found.doubts
    assert (doubt.what, doubt.grade, found.provisional) == ("endpoint left out", "mild", True)
    assert doubt.words == "in 1 of 5 repeats 10.0.0.1:8001 was dead, and others took its load"


WINDOW_S = 30
Level = Callable[[int], float]
"""The share of its usual rate that a window has in each second."""


def tilted(drift: float) -> Level:
    return lambda second: 1 + drift * (second / WINDOW_S - 0.5)


def dented(second: int) -> float:
    return 0.6 if 12 <= second < 18 else 1.0


def warming(second: int) -> float:
    return 0.6 if second < 6 else 1.0


def together_stalled(second: int) -> float:
    return 0.0 if 12 <= second < 16 else 1.0


def together_row(levels: Sequence[Level]) -> Row:
    plan = plan_of(made_workload(1000, runtime=float(WINDOW_S)), repeats=len(levels))
    steps = [step_of(measured(level, number), number) for number, level in enumerate(levels)]
    (found,) = summarize(plan, steps)
    return found


def measured(level: Level, seed: int) -> Measurement:
    complete = fake_measurement(workload="w", window_s=WINDOW_S, seed=seed)
    seconds = [altered(one, count=round(one.count * level(one.second))) for one in complete.seconds]
    return altered(complete, seconds=tuple(one for one in seconds if one.count))


def test_windows_that_move_this_way_and_that_all_count_and_the_step_is_steady() -> None:
    found = together_row([tilted(drift) for drift in (0.25, -0.25, 0.15, -0.15, 0.0, 0.0)])
    assert (found.repeats, found.steady, found.doubts) == (6, True, ())
    rises, falls = sorted(note for note in found.notes if "over the window" in note)
    assert rises.startswith(f"repeats 1, 3: {BY_ITSELF}: throughput rises by ")
    assert falls.startswith(f"repeats 2, 4: {BY_ITSELF}: throughput falls by ")


def test_windows_that_move_far_leave_it_open_with_the_drift_that_is_not_ruled_out() -> None:
    found = together_row([tilted(drift) for drift in (0.4, -0.4, 0.3, -0.2, 0.0)])
    assert (found.repeats, found.steady, found.doubts) == (5, None, ())
    assert "is not ruled out" in found.notes[0]


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (tilted(0.25), "over 5 repeats it rises by 25 % from the start of the window"),
        (dented, "over 5 repeats fifths of the window vary by 43 % of its mean in the same way"),
        (warming, "over 5 repeats "),
    ],
)
def test_what_every_window_does_makes_the_step_unsteady(level: Level, words: str) -> None:
    found = together_row([level] * 5)
    assert (found.steady, found.ranked) == (False, False)
    assert any(note.startswith(f"not steady: {words}") for note in found.notes), found.notes


@pytest.mark.parametrize(
    ("levels", "repeats", "out"),
    [
        ([tilted(0.25), *[tilted(0.0)] * 3], 3, "1 of 4 repeats"),
        ([together_stalled, tilted(0.25), *[tilted(0.0)] * 5], 6, "1 of 7 repeats"),
    ],
)
def test_of_few_repeats_each_decides_for_itself_and_a_stalled_one_is_always_left_out(
    levels: list[Level], repeats: int, out: str
) -> None:
    found = together_row(levels)
    assert (found.repeats, found.steady) == (repeats, True)
    (doubt,) = found.doubts
    assert (doubt.what, out in doubt.words) == ("repeats left out", True)


@pytest.mark.parametrize(("some", "needed"), [(1, False), (4, True)])
def test_a_longer_warm_up_is_needed_only_if_most_windows_warmed_up(some: int, needed: bool) -> None:
    found = together_row([*[warming] * some, *[tilted(0.0)] * (6 - some)])
    assert any(point.warmup_s for point in found.points) == needed
