"""The rules of steadiness on series with known answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from made_rows import altered
from made_up import fake_measurement
from weighbridge.results.analysis.steps.steadiness import mser_cut, steadiness
from weighbridge.results.record.measurement import Measurement, Second

TRIALS = 200
BASE = fake_measurement(mean_ms=100)


def series(
    counts: Sequence[float],
    *,
    window_s: float | None = None,
    sums_us: Sequence[float] | None = None,
) -> Measurement:
    """A step with these reads per second; seconds without any are left out, as drivers do."""
    seconds = tuple(
        Second(
            second=second,
            operation="read",
            count=round(count),
            bytes=0,
            errors=0,
            max_us=0,
            sum_us=round(sums_us[second]) if sums_us is not None else 0,
        )
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
    """Verdicts on many made-up steps: counts of a Poisson process whose rate scatters from second
    to second.
    """
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
def test_undecidable_steadiness_is_unknown_with_its_reason(
    measurement: Measurement, why: str
) -> None:
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
