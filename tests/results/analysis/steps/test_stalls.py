"""Stalls and periodic dips, found in series with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from weighbridge.results.analysis.steps.steadiness import Stall, period_s, stall_words, stalls


def series(
    length: int, rate: float, noise: float, draw: np.random.Generator, *, kept: float = 0.0
) -> list[float]:
    """Counts of a Poisson process with a scattering rate, of which `kept` carries over to the next
    second.
    """
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
    made = [series(length, rate, noise, draw, kept=kept) for _ in range(400)]
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
def test_periodic_dips_are_found_with_their_period(
    period: int, width: int, depth: float, noise: float
) -> None:
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
