"""The rules of steadiness on series with known answers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from made_rows import altered, present
from made_up import fake_measurement
from weighbridge.results.figures.steadiness import (
    MOST,
    Stall,
    mser_cut,
    period_s,
    stall_words,
    stalls,
    steadiness,
    steady_over_repeats,
    window_grain,
    window_move,
)
from weighbridge.results.run.step import Measurement, Second

TRIALS = 200
BASE = fake_measurement(mean_ms=100)


def done(second: int, operation: str, count: int, sum_us: float) -> Second:
    """So many of an operation in a second, which took so long together."""
    about = {"second": second, "operation": operation, "count": count, "sum_us": round(sum_us)}
    return Second.model_validate({**about, "bytes": 0, "errors": 0, "max_us": 0})


def series(
    counts: Sequence[float],
    *,
    window_s: float | None = None,
    sums_us: Sequence[float] | None = None,
) -> Measurement:
    """A step with these reads per second; seconds without any are left out, as drivers do."""
    seconds = tuple(
        done(second, "read", round(count), sums_us[second] if sums_us is not None else 0)
        for second, count in enumerate(counts)
        if round(count)
    )
    return altered(BASE, seconds=seconds, window_s=window_s or float(len(counts)), warmup_s=5.0)


def level(shape: str, length: int, draw: np.random.Generator) -> np.ndarray:
    """Expected throughput per second, relative to its usual level."""
    along = np.arange(length) / (length - 1)
    match shape:
        case "ramp":
            return 1 + 0.3 * (along - 0.5)
        case "fall":
            return 1 - 0.3 * (along - 0.5)
        case "step":
            return np.where(along < draw.uniform(0.25, 0.75), 1.0, 0.7)
        case "warm-up":
            return np.minimum(1.0, (np.arange(length) + 0.5) / (length / 5))
    return np.ones(length)


def verdicts(shape: str, length: int, mean: float, spread: float) -> list[bool | None]:
    """Verdicts on many made-up steps: counts of a Poisson process whose rate scatters."""
    draw = np.random.default_rng([2014, length, round(mean), round(spread * 100)])
    found = []
    for _ in range(TRIALS):
        rates = mean * level(shape, length, draw) * (1 + spread * draw.normal(size=length))
        found.append(steadiness(series(draw.poisson(np.maximum(rates, 0)))).steady)
    return found


@pytest.mark.parametrize(
    ("length", "mean", "spread"),
    [
        (10, 1000, 0.06),
        (20, 1000, 0.03),
        (20, 1000, 0.06),
        (20, 1000, 0.1),
        (60, 200, 0.05),
        (20, 30, 0.0),
        (60, 30, 0.0),
        (20, 5, 0),
    ],
)
def test_of_steady_steps_with_the_scatter_of_real_ones_at_most_5_percent_are_called_unsteady(
    length: int, mean: float, spread: float
) -> None:
    assert verdicts("steady", length, mean, spread).count(False) <= 0.05 * TRIALS


@pytest.mark.parametrize("shape", ["ramp", "fall", "step", "warm-up"])
@pytest.mark.parametrize(
    ("length", "mean", "spread"),
    [(20, 1000, 0.03), (20, 1000, 0.06), (20, 300, 0.05), (60, 1000, 0.1)],
)
@pytest.mark.long
def test_of_ramps_of_30_percent_and_steps_in_the_level_at_least_90_percent_are_caught(
    shape: str, length: int, mean: float, spread: float
) -> None:
    assert verdicts(shape, length, mean, spread).count(False) >= 0.9 * TRIALS


@pytest.mark.parametrize(
    ("length", "mean", "spread"), [(10, 1000, 0.1), (20, 30, 0.0), (20, 5, 0.0)]
)
def test_too_much_scatter_to_show_a_ramp_of_30_percent_is_rarely_called_steady(
    length: int, mean: float, spread: float
) -> None:
    assert verdicts("ramp", length, mean, spread).count(True) <= 0.2 * TRIALS


STALLED = [500.0] * 8 + [0.0] * 8 + [500.0] * 4


@pytest.mark.parametrize(
    ("measurement", "steady", "notes"),
    [
        (series([500] * 20), True, ()),
        # A partial last second is left out.
        (series([*[500] * 20, 7], window_s=20.02), True, ()),
        (series([500] * 20, window_s=19.97), True, ()),
        # A stall is found in a window too short for other rules, and a short one does not matter.
        (series([500, 0, 500]), False, ("not steady: a stall of 1 s after 1 s",)),
        (series([500, 480, 520]), None, None),
        (series([500] * 100 + [0] + [500] * 199), True, ("a stall of 1 s after 100 s",)),
        (series(STALLED), False, None),  # a second without completions counts as zero
    ],
)
def test_stalls_make_a_step_unsteady_if_they_are_a_part_of_its_window(
    measurement: Measurement, steady: bool | None, notes: tuple[str, ...] | None
) -> None:
    found = steadiness(measurement)
    assert found.steady is steady
    assert notes in (None, found.notes)


def test_a_step_still_warming_up_is_noted_with_the_needed_warm_up() -> None:
    found = steadiness(series([100, 200, 300, 400, *[500] * 26]))
    assert found.steady is False
    assert "after the first 6 s is 7 % higher" in found.notes[0]
    assert found.notes[0].endswith("warm up for 11 s or more")
    assert found.warmup_s == 11


@pytest.mark.parametrize("rate", [30, 300])
@pytest.mark.parametrize("start", [0, 2, 4, 7])
def test_a_total_stall_of_3_s_in_10_is_never_unknown(rate: int, start: int) -> None:
    draw = np.random.default_rng([1, rate, start])
    for _ in range(50):
        counts = draw.poisson(rate * np.maximum(0, 1 + 0.1 * draw.normal(size=10)))
        counts[start : start + 3] = 0
        found = steadiness(series(counts))
        assert found.steady is False
        assert any(f"a stall of {length} s after {start} s" in found.notes[0] for length in (3, 4))


@pytest.mark.parametrize(
    ("depth", "why"), [(1.0, "stalls of 3 s every 30 s"), (0.4, "throughput dips every 30 s")]
)
def test_stalls_and_dips_every_30_s_of_300_are_found(depth: float, why: str) -> None:
    draw = np.random.default_rng(30)
    level = 1 - depth * (np.arange(300) % 30 < 3)
    found = steadiness(series(draw.poisson(1000 * level * (1 + 0.05 * draw.normal(size=300)))))
    assert found.steady is False
    assert f"not steady: {why}" in found.notes


@pytest.mark.parametrize(
    ("measurement", "why"),
    [
        (series([500] * 5), "a window of 5 s is too short to tell (needs 10 s)"),
        (series([500] * 9, window_s=9.9), "too short"),
        (fake_measurement(bins=True), "no per-second figures"),
        (series([3, 0, 1, 5, 2, 0, 4, 1, 2, 3] * 2), "a drift of 30 % would not have been"),
        (altered(BASE, seconds=(altered(BASE.seconds[0], count=0, errors=9),)), "nothing was done"),
    ],
)
def test_undecidable_steadiness_is_unknown_and_why(measurement: Measurement, why: str) -> None:
    found = steadiness(measurement)
    assert found.steady is None
    assert why in found.notes[0]


def test_at_a_constant_rate_a_gateway_that_falls_behind_shows_in_its_latency() -> None:
    behind = series([100] * 30, sums_us=[100 * (5000 + 2000 * second) for second in range(30)])
    assert steadiness(behind).steady is True  # a closed loop: throughput alone
    found = steadiness(behind, closed_loop=False)
    assert found.steady is False
    assert any("mean latency rises" in note for note in found.notes)
    kept_up = series([100] * 30, sums_us=[100 * 5000] * 30)
    assert steadiness(kept_up, closed_loop=False).steady is True


def test_mser_cuts_a_ramp_where_it_ends_and_a_constant_series_nowhere() -> None:
    assert mser_cut([*range(15), *[20] * 85], 5) == 15
    assert mser_cut([4.0] * 100, 5) == 0
    assert mser_cut([1.0] * 80 + [9.0] * 20, 5) <= 50


def alternating(
    counts: list[int], window_s: float, sums_us: list[int] | None = None
) -> Measurement:
    """A step with these reads per second of two alternating operations."""
    seconds = tuple(
        done(second, operation, part, 0 if sums_us is None else sums_us[second] // 2)
        for second, count in enumerate(counts)
        for operation, part in (("read", count // 2), ("write", count - count // 2))
        if part
    )
    return altered(BASE, seconds=seconds, window_s=window_s)


def windows(
    drift: float,
    *,
    repeats: int,
    rate: float,
    noise: float,
    draw: np.random.Generator,
    window_s: float,
) -> list[float]:
    """Moves of windows whose rate drifts by a share, with noise per second and of counting."""
    lengths = np.array([1.0] * math.floor(window_s) + ([window_s % 1] if window_s % 1 else []))
    places = np.cumsum(lengths) - lengths / 2
    moves = []
    for _ in range(repeats):
        drifting = rate * (1 + drift * (places / window_s - 0.5))
        level = drifting * (1 + noise * draw.normal(size=len(lengths)) / np.sqrt(lengths))
        counts = [int(one) for one in draw.poisson(np.maximum(level, 0) * lengths)]
        moves.append(present(window_move(alternating(counts, window_s))))
    return moves


def said(
    drift: float, *, repeats: int = 5, rate: float = 300, noise: float = 0.1, window_s: float = 3.0
) -> list[bool | None]:
    draw = np.random.default_rng([7, repeats, round(rate), round(noise * 100)])
    return [
        steady_over_repeats(
            windows(drift, repeats=repeats, rate=rate, noise=noise, draw=draw, window_s=window_s)
        ).steady
        for _ in range(400)
    ]


@pytest.mark.parametrize(
    ("drift", "rate", "noise", "given", "verdict", "least", "most"),
    [
        # 5 % of drifts are called steady and less than 2 % of noise is not, but for chance in 400.
        (MOST, 1500, 0.05, {}, True, 0, 0.08),
        (-MOST, 1500, 0.05, {}, True, 0, 0.08),
        (MOST, 30, 0.05, {"window_s": 2.5}, True, 0, 0.08),
        (MOST, 300, 0.1, {"repeats": 8, "window_s": 2.5}, True, 0, 0.08),
        (0.0, 30, 0.05, {"window_s": 2.5}, False, 0, 0.03),
        (0.0, 300, 0.1, {"repeats": 8, "window_s": 2.5}, False, 0, 0.03),
        pytest.param(MOST, 1500, 0.2, {"repeats": 8}, True, 0, 0.08, marks=pytest.mark.test_all),
        pytest.param(0.0, 1500, 0.2, {"repeats": 8}, False, 0, 0.03, marks=pytest.mark.test_all),
        # Both are found if noise allows.
        (0.0, 1500, 0.05, {}, True, 0.7, 1),
        (0.0, 300, 0.1, {"repeats": 20}, True, 0.9, 1),
        (0.4, 1500, 0.05, {}, False, 0.9, 1),
        (0.0, 30, 0.2, {}, None, 0.9, 1),
    ],
)
def test_drift_and_steadiness_over_repeats_are_told_as_often_as_promised(
    drift: float,
    rate: float,
    noise: float,
    given: dict[str, Any],
    verdict: bool | None,
    least: float,
    most: float,
) -> None:
    found = said(drift, rate=rate, noise=noise, **given)
    assert least <= found.count(verdict) / len(found) <= most


def test_what_is_left_open_has_the_drift_that_is_not_ruled_out() -> None:
    unknown = steady_over_repeats([0.3, -0.3, 0.2, -0.1, 0.0])
    assert unknown.steady is None
    assert "over 5 repeats a drift of 25 % " in unknown.notes[0]


def test_a_move_is_the_line_from_the_start_of_the_window_to_its_end() -> None:
    assert window_move(alternating([90, 100, 110], 3.0)) == pytest.approx(0.30)
    assert window_move(alternating([100, 100, 100], 3.0)) == pytest.approx(0.0)
    # The last half second did half of what a second does: it counts for as long as it is.
    assert window_move(alternating([100, 100, 50], 2.5)) == pytest.approx(0.0)
    # A line from 80 to 120 op/s: means of 88, 104 and 116 over 1, 1 and 0.5 s.
    assert window_move(alternating([88, 104, 58], 2.5)) == pytest.approx(0.40)
    # A clock's small error is not another second.
    assert window_move(alternating([90, 100, 110, 3], 3.02)) == pytest.approx(0.30)
    assert window_move(alternating([90, 100, 110], 2.97)) == pytest.approx(0.30)
    assert window_move(alternating([0, 0, 300], 3.0)) == pytest.approx(4.5)


def test_at_a_constant_rate_the_move_is_that_of_the_mean_latency() -> None:
    slower = alternating([100, 100, 100], 3.0, sums_us=[900_000, 1_000_000, 1_100_000])
    assert window_move(slower) == pytest.approx(0.0)
    assert window_move(slower, closed_loop=False) == pytest.approx(0.30)
    assert (
        window_move(alternating([100, 0, 100], 3.0, sums_us=[1, 0, 1]), closed_loop=False) is None
    )


def test_a_window_without_two_seconds_or_figures_has_no_move() -> None:
    assert window_move(alternating([100], 1.4)) is None
    assert window_move(alternating([0, 0, 0], 3.0)) is None
    assert window_move(fake_measurement(bins=True)) is None


def test_a_drift_in_every_repeat_is_noted_with_its_size_also_without_noise() -> None:
    found = steady_over_repeats([0.28, 0.31, 0.33, 0.29, 0.29])
    assert found.steady is False
    assert found.notes[0].startswith("not steady: over 5 repeats it rises by 30 % ")
    assert steady_over_repeats([0.0] * 5).steady is True
    assert steady_over_repeats([0.1] * 5).steady is False


@pytest.mark.parametrize(
    ("moves", "why"),
    [([0.0] * 4, "this has 4"), ([0.0] * 5 + [None], "this has 5 of 6"), ([], "this has 0")],
)
def test_too_few_repeats_decide_nothing(moves: list[float | None], why: str) -> None:
    found = steady_over_repeats(moves)
    assert found.steady is None
    assert why in found.notes[0]


@pytest.mark.parametrize(
    ("workers", "answer_s", "window_s"),
    [(4, 0.06, 2.0), (4, 0.063, 3.0), (16, 0.11, 2.5), (7, 0.3, 10.0)],
)
def test_workers_in_step_are_no_drift_however_equal_the_repeats(
    workers: int, answer_s: float, window_s: float
) -> None:
    for shift in np.linspace(0, answer_s, 23):
        # All workers end their requests at once, and every repeat begins alike.
        ends = [at for turn in range(1000) if 0 <= (at := turn * answer_s + shift) < window_s]
        counts = [
            workers * sum(second <= at < second + 1 for at in ends)
            for second in range(math.ceil(window_s))
        ]
        one = altered(alternating(counts, window_s), workers=workers)
        move = present(window_move(one))
        assert abs(move) <= window_grain(one)
        assert steady_over_repeats([move] * 5, grain=window_grain(one)).steady is not False
    # Larger drifts are found.
    found = steady_over_repeats([window_grain(one) + 0.06] * 5, grain=window_grain(one))
    assert found.steady is False


def stalling(
    length: int, rate: float, noise: float, draw: np.random.Generator, *, kept: float = 0.0
) -> list[float]:
    """Counts of a Poisson process whose rate scatters; `kept` of that stays in the next second."""
    rest = draw.normal(size=length)
    for place in range(1, length):
        rest[place] = kept * rest[place - 1] + np.sqrt(1 - kept**2) * rest[place]
    return [float(one) for one in draw.poisson(np.maximum(rate * (1 + noise * rest), 0))]


@pytest.mark.parametrize(
    ("length", "rate", "noise", "kept"),
    [(10, 30, 0.2, 0), (60, 1000, 0.2, 0.5), (60, 5, 0, 0), (120, 200, 0.1, 0.8)],
)
def test_chance_rarely_looks_like_a_stall_or_periodic_dips(
    length: int, rate: float, noise: float, kept: float
) -> None:
    draw = np.random.default_rng([2, length])
    made = [stalling(length, rate, noise, draw, kept=kept) for _ in range(400)]
    assert sum(bool(stalls(one, 16)) for one in made) <= 2
    assert sum(period_s(one) is not None for one in made) <= 2


def test_bursts_of_all_workers_are_no_stall() -> None:
    lockstep = [0.0, 0.0, 0.0, 64.0] * 15
    assert stalls(lockstep, 64) == ()
    assert stalls(lockstep, 1)


def test_a_stalls_length_includes_what_is_missing_next_to_it() -> None:
    assert stalls([100, 100, 100, 50, 0, 0, 50, 100, 100, 100], 4) == (
        Stall(second=4, length_s=3.0),
    )
    assert stalls([0, 0, 100, 100, 100, 100], 4) == (Stall(second=0, length_s=2.0),)
    assert stalls([100, 100, 100, 100, 0], 4) == (Stall(second=4, length_s=1.0),)
    assert stalls([100, 9, 100, 100, 100], 4) == ()  # more than a tenth of the mean second
    assert stalls([100, 7, 100, 100, 100], 4)[0].length_s == pytest.approx(0.93)


def test_few_completions_can_be_chance() -> None:
    assert stalls([3, 0, 1, 5, 2, 0, 4, 1, 2, 3], 1) == ()
    assert stalls([6, 8, 0, 0, 0, 0, 0, 0, 6, 10, 8, 6], 1)[0].second == 2
    assert stalls([], 4) == stalls([0, 0, 0], 4) == ()


def test_stalls_are_described_with_length_and_period() -> None:
    def words(*starts: int, length_s: float = 3.0) -> str:
        return stall_words([Stall(second=start, length_s=length_s) for start in starts])

    assert words(4) == "a stall of 3 s after 4 s"
    assert words(4, 17) == "2 stalls of 3 s after 4 and 17 s"
    assert words(10, 40, 71, 100) == "stalls of 3 s every 30 s"
    assert words(10, 40, 90, 100, 130) == "5 stalls of 3 s after 10, 40, 90, 100 ... s"
    assert words(3, length_s=0.6) == "a stall of 1 s after 3 s"
    assert (
        stall_words([Stall(second=1, length_s=1.0), Stall(second=9, length_s=4.2)])
        == "2 stalls of 1 to 4 s after 1 and 9 s"
    )
    with pytest.raises(ValueError, match="no stall"):
        stall_words([])


@pytest.mark.parametrize(
    ("period", "width", "depth", "noise"),
    [(30, 3, 0.3, 0.05), (30, 15, 0.2, 0.1), (10, 2, 0.5, 0.1), (60, 6, 0.5, 0.05)],
)
def test_periodic_dips_are_found(period: int, width: int, depth: float, noise: float) -> None:
    draw = np.random.default_rng([3, period])
    level = 1 - depth * (np.arange(300) % period < width)
    found = [
        period_s(
            [float(one) for one in draw.poisson(1000 * level * (1 + noise * draw.normal(size=300)))]
        )
        for _ in range(40)
    ]
    assert sum(one is not None and one % period == 0 for one in found) >= 38


def test_drifts_steps_and_small_dips_are_not_periodic() -> None:
    draw = np.random.default_rng(4)
    along = np.arange(300)
    for level in (1 + along / 300, np.where(along < 140, 1.0, 0.6), 1 - 0.03 * (along % 30 < 3)):
        assert period_s([float(one) for one in draw.poisson(20_000 * level)]) is None
    assert period_s([500.0] * 300) is None
    assert period_s([0.0] * 300) is None
    assert period_s([1.0, 2.0] * 7) is None
