"""Doubts about a row: what was left out of it, and what was measured beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from made_rows import altered, made_workload, plan_of, step_of
from made_up import fake_measurement
from weighbridge.results.analysis.run_data import with_event_doubts
from weighbridge.results.analysis.steps.summary import Row, summarize
from weighbridge.results.analysis.steps.use import StepUse, Throttled
from weighbridge.results.doubt import BUSY_GRAVE, BUSY_MILD
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.manifest import RunEvent
from weighbridge.results.record.measurement import EndpointTally, Measurement

WORKLOAD = made_workload(1000)
REPEATS = 5
HELD = Throttled(
    host="gateway-1",
    tier="gateway",
    quota_cpus=0.6,
    share_of_periods=0.9,
    share_of_time=0.5,
    period_ms=100.0,
    stall_ms=54.0,
    stalls=180,
)


def row(
    measured: Sequence[Measurement],
    uses: Mapping[int, StepUse] | None = None,
    *,
    invalid: int | None = None,
) -> Row:
    """`invalid`: the repeat that is not valid."""
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
    """The same use in every repeat."""
    return {number: StepUse.model_validate(use) for number in range(REPEATS)}


def test_steady_repeats_on_a_quiet_machine_have_no_doubt() -> None:
    found = row(STEADY, each({"others": 0.03}))
    assert (found.doubts, found.steady, found.ranked, found.provisional) == ((), True, True, False)
    alone = row(STEADY, {0: StepUse(gateway_cpu_s=1.0)})
    assert alone.doubts == (), "hosts that are not containers need no machine"


@pytest.mark.parametrize(
    ("share", "grade"),
    [
        (BUSY_MILD - 0.01, None),
        (BUSY_MILD, "mild"),
        (BUSY_GRAVE - 0.01, "mild"),
        (BUSY_GRAVE, "grave"),
    ],
)
def test_the_share_of_the_machine_used_by_others_decides_the_doubt(
    share: float, grade: str | None
) -> None:
    # One repeat was undisturbed: the median counts.
    shares = {number: StepUse(others=share if number else 0.0) for number in range(REPEATS)}
    found = row(STEADY, shares)
    assert [(one.what, one.grade) for one in found.doubts] == (
        [("machine busy", grade)] if grade else []
    )
    assert found.ranked == (grade != "grave")


def test_a_busy_machine_in_some_repeats_is_a_mild_doubt_however_quiet_it_was_in_most() -> None:
    found = row(STEADY, {number: StepUse(others=0.9 * (number < 2)) for number in range(REPEATS)})
    (doubt,) = found.doubts
    assert (doubt.what, doubt.grade, found.provisional) == ("machine busy", "mild", True)
    assert doubt.words == "other programs used up to 90 % of this machine’s CPUs in 2 of 5 repeats"


@pytest.mark.parametrize("lost", [None, StepUse(lab=True)])
def test_a_repeat_with_unknown_use_by_others_is_a_mild_doubt(lost: StepUse | None) -> None:
    uses = {number: StepUse(others=0.0, lab=True) for number in range(REPEATS)}
    if lost is None:
        del uses[1]
    else:
        uses[1] = lost
    (doubt,) = row(STEADY, uses).doubts
    assert (doubt.what, doubt.grade) == ("machine not known", "mild")
    assert (
        doubt.words
        == "what other programs used of this machine’s CPUs in 1 of 5 repeats was not recorded"
    )


def test_stalled_and_invalid_repeats_left_out_are_a_doubt_about_the_others() -> None:
    found = row([stalled(), *STEADY])
    assert (found.repeats, found.steady, found.provisional) == (REPEATS, True, True)
    (doubt,) = found.doubts
    assert (doubt.what, doubt.grade) == ("repeats left out", "mild")
    assert "1 of 6 repeats" in doubt.words
    found = row([steady(number) for number in range(6)], invalid=0)
    (doubt,) = found.doubts
    assert found.repeats == 5
    assert doubt.words.startswith("1 of 6 repeats were not valid; ")


def test_one_short_window_leaves_steadiness_open_and_several_are_judged_together() -> None:
    found = row([steady(window_s=5.0)])
    assert (found.steady, found.ranked, found.provisional) == (None, True, True)
    assert [one.what for one in found.doubts] == ["steadiness not known"]
    assert "a window of 5 s is too short" in found.doubts[0].words
    found = row([steady(seed, window_s=5.0) for seed in range(REPEATS)])
    assert found.doubts == ()
    assert found.steady or (found.drift is not None and found.drift > 0.2)
    assert not any("too short to tell" in note for note in found.notes)
    slower = [
        fake_measurement(workload="w", window_s=5.0, seed=seed, mean_ms=10.0 + seed)
        for seed in range(REPEATS)
    ]
    assert row(slower).steady is not False, "from repeat to repeat they may drift"


def test_only_a_percentile_set_by_a_cpu_limit_is_in_grave_doubt() -> None:
    limited = row(STEADY, each({"throttled": (HELD,)}))
    assert {one.grade for one in limited.doubts} == {"grave"}
    assert {metric for one in limited.doubts for metric in one.metrics} == {"p90", "p99", "max"}
    assert limited.ranked  # its throughput may be compared
    assert "throttled in 90 % of its periods of 100 ms" in limited.doubts[0].words
    once = row(STEADY, {**each({}), 0: StepUse(throttled=(HELD,))})
    assert {one.grade for one in once.doubts} == {"mild"}


def test_only_repeats_that_count_decide_on_a_cpu_limit() -> None:
    # Unthrottled repeats that do not count do not dilute it.
    found = row(
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
    found = row([late, *complete[1:]])
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
    held = altered(HELD, stall_ms=stall_ms)
    binned = [
        fake_measurement(workload="w", bins=True, seed=seed, **measured) for seed in range(REPEATS)
    ]
    found = row(binned, each({"throttled": (held,)}))
    assert (found.value("p90"), str(found.within("p90"))) == (None, "(10, 20]")
    limited = [one for one in found.doubts if one.what == "set by the CPU limit"]
    missing = {"p99"} if measured else set()
    assert {metric for one in limited for metric in one.metrics} - missing == metrics


def test_a_row_whose_deployments_started_on_a_busy_machine_is_provisional() -> None:
    measured = row(STEADY)

    def event(repeat: int, layout: str = "swift") -> RunEvent:
        return RunEvent(
            at="",
            kind="busy",
            text="others use 53 % of this machine’s CPUs",
            layout=layout,
            repeat=repeat,
            share=0.53,
        )

    (busy,) = with_event_doubts([measured], [event(repeat) for repeat in range(3)])
    assert [(one.what, one.grade) for one in busy.doubts] == [("machine busy", "mild")]
    assert with_event_doubts([measured], [event(0), event(1)]) == (measured,)
    assert with_event_doubts(
        [measured], [event(repeat, "rgw-beast") for repeat in range(REPEATS)]
    ) == (measured,)


def test_reads_not_shared_by_storage_hosts_are_provisional() -> None:
    measured = row(STEADY)
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
    found = row(measured, each({"others": 0.03}))
    (doubt,) = found.doubts
    assert (doubt.what, doubt.grade, found.provisional) == ("endpoint left out", "mild", True)
    assert doubt.words == "in 1 of 5 repeats 10.0.0.1:8001 was dead, and others took its load"
