"""Repeats of windows that are long enough to be judged by themselves, judged together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from made_rows import altered, made_workload, plan_of, step_of
from made_up import fake_measurement
from weighbridge.results.analysis.steps.summary import BY_ITSELF, Row, summarize
from weighbridge.results.record.measurement import Measurement

WINDOW_S = 30
Level = Callable[[int], float]
"""The share of its usual rate that a window has in each second."""


def tilted(drift: float) -> Level:
    return lambda second: 1 + drift * (second / WINDOW_S - 0.5)


def dented(second: int) -> float:
    """Without a line from end to end."""
    return 0.6 if 12 <= second < 18 else 1.0


def warming(second: int) -> float:
    return 0.6 if second < 6 else 1.0


def stalled(second: int) -> float:
    return 0.0 if 12 <= second < 16 else 1.0


def row(levels: Sequence[Level]) -> Row:
    plan = plan_of(made_workload(1000, runtime=float(WINDOW_S)), repeats=len(levels))
    steps = [step_of(measured(level, number), number) for number, level in enumerate(levels)]
    (found,) = summarize(plan, steps)
    return found


def measured(level: Level, seed: int) -> Measurement:
    complete = fake_measurement(workload="w", window_s=WINDOW_S, seed=seed)
    seconds = [altered(one, count=round(one.count * level(one.second))) for one in complete.seconds]
    return altered(complete, seconds=tuple(one for one in seconds if one.count))


def test_windows_that_move_this_way_and_that_all_count_and_the_step_is_steady() -> None:
    found = row([tilted(drift) for drift in (0.25, -0.25, 0.15, -0.15, 0.0, 0.0)])
    assert (found.repeats, found.steady, found.doubts) == (6, True, ())
    rises, falls = sorted(note for note in found.notes if "over the window" in note)
    assert rises.startswith(f"repeats 1, 3: {BY_ITSELF}: throughput rises by ")
    assert falls.startswith(f"repeats 2, 4: {BY_ITSELF}: throughput falls by ")


def test_windows_that_move_far_leave_it_open_with_the_drift_that_is_not_ruled_out() -> None:
    found = row([tilted(drift) for drift in (0.4, -0.4, 0.3, -0.2, 0.0)])
    assert (found.repeats, found.steady) == (5, None)
    assert found.drift is not None
    assert 0.2 < found.drift < 0.5


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (tilted(0.25), "over 5 repeats it rises by 25 % from the start of the window"),
        (dented, "over 5 repeats fifths of the window vary by 43 % of its mean in the same way"),
        (warming, "over 5 repeats "),
    ],
)
def test_what_every_window_does_makes_the_step_unsteady(level: Level, words: str) -> None:
    found = row([level] * 5)
    assert (found.steady, found.ranked) == (False, False)
    assert any(note.startswith(f"not steady: {words}") for note in found.notes), found.notes


@pytest.mark.parametrize(
    ("levels", "repeats", "out"),
    [
        ([tilted(0.25), *[tilted(0.0)] * 3], 3, "1 of 4 repeats"),
        ([stalled, tilted(0.25), *[tilted(0.0)] * 5], 6, "1 of 7 repeats"),
    ],
)
def test_of_few_repeats_each_decides_for_itself_and_a_stalled_one_is_always_left_out(
    levels: list[Level], repeats: int, out: str
) -> None:
    found = row(levels)
    assert (found.repeats, found.steady) == (repeats, True)
    (doubt,) = found.doubts
    assert (doubt.what, out in doubt.words) == ("repeats left out", True)


@pytest.mark.parametrize(("some", "needed"), [(1, False), (4, True)])
def test_a_longer_warm_up_is_needed_only_if_most_windows_were_warming_up(
    some: int, needed: bool
) -> None:
    found = row([*[warming] * some, *[tilted(0.0)] * (6 - some)])
    assert any(point.warmup_s for point in found.points) == needed
