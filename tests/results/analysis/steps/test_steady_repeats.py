"""The rule of steadiness over repeats on windows with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from made_rows import altered
from made_up import fake_measurement
from weighbridge.results.analysis.steps.steadiness import (
    MOST,
    steady_over_repeats,
    window_grain,
    window_move,
)
from weighbridge.results.record.measurement import Measurement, Second

BASE = fake_measurement(mean_ms=100)


def series(counts: list[int], window_s: float, sums_us: list[int] | None = None) -> Measurement:
    """A step with these reads per second of two alternating operations."""
    seconds = tuple(
        Second(
            second=second,
            operation=operation,
            count=part,
            bytes=0,
            errors=0,
            max_us=0,
            sum_us=0 if sums_us is None else sums_us[second] // 2,
        )
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
    """Moves of windows whose rate drifts by a share of its mean, with noise per second and of
    counting.
    """
    lengths = np.array([1.0] * math.floor(window_s) + ([window_s % 1] if window_s % 1 else []))
    places = np.cumsum(lengths) - lengths / 2
    moves = []
    for _ in range(repeats):
        level = (
            rate
            * (1 + drift * (places / window_s - 0.5))
            * (1 + noise * draw.normal(size=len(lengths)) / np.sqrt(lengths))
        )
        move = window_move(
            series([int(one) for one in draw.poisson(np.maximum(level, 0) * lengths)], window_s)
        )
        assert move is not None
        moves.append(move)
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


REGIMES = pytest.mark.parametrize(
    ("repeats", "rate", "noise", "window_s"),
    [
        (5, 1500, 0.05, 3.0),
        (5, 30, 0.05, 2.5),
        (8, 300, 0.1, 2.5),
        pytest.param(8, 1500, 0.2, 3.0, marks=pytest.mark.test_all),
        pytest.param(5, 300, 0.05, 3.0, marks=pytest.mark.test_all),
    ],
)


@REGIMES
@pytest.mark.parametrize("way", [1, pytest.param(-1, marks=pytest.mark.test_all)])
def test_a_drift_of_20_percent_is_rarely_called_steady(
    repeats: int, rate: float, noise: float, window_s: float, way: int
) -> None:
    found = said(way * MOST, repeats=repeats, rate=rate, noise=noise, window_s=window_s)
    assert found.count(True) <= 0.08 * len(found)  # 5 %, and what chance adds in 400


@REGIMES
def test_steady_noise_is_rarely_called_unsteady(
    repeats: int, rate: float, noise: float, window_s: float
) -> None:
    found = said(0.0, repeats=repeats, rate=rate, noise=noise, window_s=window_s)
    assert found.count(False) <= 0.03 * len(found)  # below 2 %, and what chance adds


def test_steadiness_and_drift_are_found_if_noise_allows() -> None:
    assert said(0.0, rate=1500, noise=0.05).count(True) >= 0.7 * 400
    assert said(0.0, rate=300, noise=0.1, repeats=20).count(True) >= 0.9 * 400
    assert said(0.4, rate=1500, noise=0.05).count(False) >= 0.9 * 400
    assert said(0.0, rate=30, noise=0.2).count(None) >= 0.9 * 400


def test_the_drift_not_ruled_out_covers_the_real_one_as_often_as_promised() -> None:
    draw = np.random.default_rng(8)
    found = [
        steady_over_repeats(
            windows(0.15, repeats=5, rate=300, noise=0.1, draw=draw, window_s=3.0)
        ).most
        for _ in range(400)
    ]
    assert sum(most is not None and most >= 0.15 for most in found) >= 0.93 * 400
    unknown = steady_over_repeats([0.3, -0.3, 0.2, -0.1, 0.0])
    assert unknown.steady is None
    assert "over 5 repeats a drift of 25 % " in unknown.notes[0]


def test_a_move_is_the_line_from_the_start_of_the_window_to_its_end() -> None:
    assert window_move(series([90, 100, 110], 3.0)) == pytest.approx(0.30)
    assert window_move(series([100, 100, 100], 3.0)) == pytest.approx(0.0)
    # The last half second did half of what a second does: it counts for as long as it is.
    assert window_move(series([100, 100, 50], 2.5)) == pytest.approx(0.0)
    # A line from 80 to 120 op/s: means of 88, 104 and 116 over 1, 1 and 0.5 s.
    assert window_move(series([88, 104, 58], 2.5)) == pytest.approx(0.40)
    # A clock's small error is not another second.
    assert window_move(series([90, 100, 110, 3], 3.02)) == pytest.approx(0.30)
    assert window_move(series([90, 100, 110], 2.97)) == pytest.approx(0.30)
    assert window_move(series([0, 0, 300], 3.0)) == pytest.approx(4.5)


def test_at_a_constant_rate_the_move_is_that_of_the_mean_latency() -> None:
    slower = series([100, 100, 100], 3.0, sums_us=[900_000, 1_000_000, 1_100_000])
    assert window_move(slower) == pytest.approx(0.0)
    assert window_move(slower, closed_loop=False) == pytest.approx(0.30)
    assert window_move(series([100, 0, 100], 3.0, sums_us=[1, 0, 1]), closed_loop=False) is None


def test_a_window_without_two_seconds_or_figures_has_no_move() -> None:
    assert window_move(series([100], 1.4)) is None
    assert window_move(series([0, 0, 0], 3.0)) is None
    assert window_move(fake_measurement(bins=True)) is None


def test_a_drift_in_every_repeat_is_noted_with_its_size_also_without_noise() -> None:
    found = steady_over_repeats([0.28, 0.31, 0.33, 0.29, 0.29])
    assert found.steady is False
    assert found.notes[0].startswith("not steady: over 5 repeats it rises by 30 % ")
    assert steady_over_repeats([0.0] * 5).steady is True
    assert steady_over_repeats([0.1] * 5).steady is False


def test_other_steps_of_the_layout_help_a_noisy_step() -> None:
    noisy, quiet = [0.3, -0.3, 0.25, -0.1, 0.05], [0.02, -0.03, 0.01, 0.04, -0.02] * 4
    assert steady_over_repeats(noisy).steady is None
    helped = steady_over_repeats(noisy, beside=quiet)
    assert (helped.steady, helped.notes) == (True, ())
    # Its own figures must agree, others that drift do not help, and none replace missing repeats.
    assert steady_over_repeats([move + 0.21 for move in noisy], beside=quiet).steady is None
    assert steady_over_repeats(noisy, beside=[move + 0.3 for move in quiet]).steady is None
    assert steady_over_repeats(noisy[:4], beside=quiet).steady is None
    assert steady_over_repeats([0.28, 0.31, 0.33, 0.29, 0.29], beside=quiet).steady is False


@pytest.mark.parametrize("others", [0.0, pytest.param(1.0, marks=pytest.mark.test_all)])
def test_with_other_steps_a_drift_is_still_rarely_called_steady(others: float) -> None:
    drift = MOST if others else 2 * MOST
    draw, steady = np.random.default_rng(9), 0
    for _ in range(200):
        beside = windows(others * drift, repeats=25, rate=300, noise=0.1, draw=draw, window_s=3.0)
        own = windows(drift, repeats=5, rate=300, noise=0.1, draw=draw, window_s=3.0)
        steady += steady_over_repeats(own, beside=list(beside)).steady is True
    assert steady <= 0.08 * 200


@pytest.mark.parametrize(
    ("moves", "why"),
    [([0.0] * 4, "this has 4"), ([0.0] * 5 + [None], "this has 5 of 6"), ([], "this has 0")],
)
def test_too_few_repeats_decide_nothing(moves: list[float | None], why: str) -> None:
    found = steady_over_repeats(moves)
    assert (found.steady, found.most) == (None, None)
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
        one = altered(series(counts, window_s), workers=workers)
        move = window_move(one)
        assert move is not None
        assert abs(move) <= window_grain(one)
        assert steady_over_repeats([move] * 5, grain=window_grain(one)).steady is not False
    # Larger drifts are found.
    found = steady_over_repeats([window_grain(one) + 0.06] * 5, grain=window_grain(one))
    assert found.steady is False
