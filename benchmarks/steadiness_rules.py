"""How often the steadiness rules call steady what is not, and not steady what is.

Four tables of simulated steps with fixed seeds, judged by the functions that judge real ones. Over
repeats (`results.figures.steadiness`): windows of seconds whose rate drifts by a share
from end to end in every repeat, with noise per second and of counting. For each drift: called
steady, not steady; the rest is called unknown. Windows of 30 s: five repeats on a machine whose
speed wanders, and a drift that all of them have; called steady or not by themselves, and together.
Stalls (`results.figures.steadiness`): windows with one stall of 3 s, or none.
Recurring dips: windows of 300 s with them, or without.

    .venv/bin/python -m benchmarks.steadiness_rules [--steps 2000]
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Final

import numpy as np

from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.figures.steadiness import (
    period_s,
    steadiness,
    steady_over_repeats,
    window_grain,
    window_move,
    window_shape,
)
from weighbridge.results.run.step import Measurement, Second

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from made_up import fake_measurement

BASE: Final = fake_measurement(mean_ms=100, workers=16)
WORKERS: Final = 4
"""Of the windows that drift."""
DRIFTS: Final = (0.0, 0.10, 0.20, 0.30, 0.50)
REGIMES: Final = tuple(
    (repeats, window_s, rate, noise)
    for repeats in (5, 8, 20)
    for window_s, rate, noise in (
        (2.5, 30, 0.05),
        (2.5, 300, 0.10),
        (3.0, 100, 0.10),
        (3.0, 300, 0.05),
        (3.0, 1500, 0.05),
        (3.0, 1500, 0.20),
        (5.0, 300, 0.10),
    )
)


def step(counts: np.ndarray, window_s: float) -> Measurement:
    """A step with these counts per second."""
    seconds = tuple(
        Second(
            second=second, operation="read", count=int(count), bytes=0, errors=0, max_us=0, sum_us=0
        )
        for second, count in enumerate(counts)
        if count
    )
    return BASE.model_copy(update={"seconds": seconds, "window_s": window_s})


def moves(
    draw: np.random.Generator,
    drift: float,
    repeats: int,
    window_s: float,
    rate: float,
    noise: float,
) -> tuple[list[float | None], float]:
    """The moves of a step's repeats with WORKERS workers, and the coarsest window's resolution."""
    lengths = np.array([1.0] * math.floor(window_s) + ([window_s % 1] if window_s % 1 else []))
    places = (np.cumsum(lengths) - lengths / 2) / window_s - 0.5
    rates = (
        rate
        * (1 + drift * places)
        * (1 + noise * draw.normal(size=(repeats, len(lengths))) / np.sqrt(lengths))
    )
    made = [
        step(counts, window_s).model_copy(update={"workers": WORKERS})
        for counts in draw.poisson(np.maximum(rates, 0) * lengths)
    ]
    return [window_move(one) for one in made], max(window_grain(one) for one in made)


def print_over_repeats(steps: int) -> None:
    """Print the table of the rule over repeats."""
    head = " | ".join(f"drift {drift:.0%}" for drift in DRIFTS)
    print(f"| repeats | window | op/s | noise | {head} |\n|{' ---: |' * (4 + len(DRIFTS))}")
    for regime in REGIMES:
        line(steps, regime)


def line(steps: int, regime: tuple[int, float, int, float]) -> None:
    """Print one line of it."""
    repeats, window_s, rate, noise = regime
    cells = []
    for drift in DRIFTS:
        seeds = [repeats, round(10 * window_s), rate, round(100 * noise), round(100 * drift)]
        draw = np.random.default_rng(seeds)
        verdicts = []
        for _ in range(steps):
            own, grain = moves(draw, drift, repeats, window_s, rate, noise)
            verdicts.append(steady_over_repeats(own, grain=grain).steady)
        shares = [100 * verdicts.count(verdict) / steps for verdict in (True, False)]
        cells.append(" / ".join(f"{share:.1f}" for share in shares))
    print(
        f"| {repeats} | {window_s:g} s | {rate} | {noise:.0%} | {' | '.join(cells)} |", flush=True
    )


def noisy(
    draw: np.random.Generator, level: np.ndarray, rate: float, noise: float, carried: float = 0.0
) -> np.ndarray:
    """Counts around a level, with noise that carries over a share from each second to the next."""
    rest = draw.normal(size=len(level))
    for place in range(1, len(level)):
        rest[place] = carried * rest[place - 1] + math.sqrt(1 - carried**2) * rest[place]
    return draw.poisson(np.maximum(rate * level * (1 + noise * rest), 0))


def print_together(steps: int) -> None:
    """Print the table of windows of 30 s, each by itself and five together."""
    print(
        "\n| wander | drift | by itself: steady | not steady | all 5 steady | "
        "together: steady | not steady |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    seconds = np.arange(30)
    for wander in (0.0, 0.05, 0.10, 0.20):
        for drift in (0.0, 0.10, 0.20, 0.40):
            draw = np.random.default_rng([4, round(100 * wander), round(100 * drift)])
            alone: list[bool | None] = []
            whole: list[bool] = []
            verdicts: list[bool | None] = []
            for _ in range(steps):
                level = 1 + drift * (seconds / 30 - 0.5)
                made = [
                    step(wandering(draw, level, 500, wander), 30).model_copy(
                        update={"workers": WORKERS}
                    )
                    for _ in range(REPEATS_FOR_A_CLAIM)
                ]
                each = [steadiness(one).steady for one in made]
                alone += each
                whole.append(all(each))
                found = steady_over_repeats(
                    [window_move(one) for one in made],
                    grain=max(window_grain(one) for one in made),
                    shapes=[window_shape(one) for one in made],
                )
                verdicts.append(found.steady)
            cells = [100 * alone.count(verdict) / len(alone) for verdict in (True, False)]
            cells += [100 * sum(whole) / steps]
            cells += [100 * verdicts.count(verdict) / steps for verdict in (True, False)]
            shown = " | ".join(f"{one:.1f}" for one in cells)
            print(f"| {wander:.0%} | {drift:.0%} | {shown} |", flush=True)


def wandering(
    draw: np.random.Generator, level: np.ndarray, rate: float, wander: float
) -> np.ndarray:
    """Counts around a level, with noise of 5 % per second, on a machine whose speed wanders: noise
    of which 0.9 carries over from each second to the next.
    """
    speed = np.empty(len(level))
    speed[0] = draw.normal()
    for place in range(1, len(level)):
        speed[place] = 0.9 * speed[place - 1] + math.sqrt(1 - 0.9**2) * draw.normal()
    return noisy(draw, level * (1 + wander * speed), rate, 0.05)


def print_stalls(steps: int) -> None:
    """Print the table of single stalls: verdicts on windows with one, and false stalls without."""
    print(
        "\n| window | op/s | noise | carried over | stall of 3 s: not steady | unknown | "
        "false stall reported |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for length, rate, noise, carried in (
        (10, 30, 0.1, 0.0),
        (10, 300, 0.2, 0.0),
        (20, 1000, 0.1, 0.5),
        (60, 1000, 0.2, 0.5),
        (60, 5, 0.0, 0.0),
        (120, 200, 0.2, 0.8),
    ):
        draw = np.random.default_rng([2, length, rate])
        verdicts, false = [], 0
        for _ in range(steps):
            start = draw.uniform(0, length - 3)
            ends = np.minimum(np.arange(length) + 1, start + 3)
            level = 1 - np.clip(ends - np.maximum(np.arange(length), start), 0, 1)
            verdicts.append(
                steadiness(step(noisy(draw, level, rate, noise, carried), length)).steady
            )
            quiet = steadiness(step(noisy(draw, np.ones(length), rate, noise, carried), length))
            false += any("stall" in note for note in quiet.notes)
        shares = (verdicts.count(False), verdicts.count(None), false)
        cells = " | ".join(f"{100 * one / steps:.1f}" for one in shares)
        print(f"| {length} s | {rate} | {noise:.0%} | {carried:g} | {cells} |", flush=True)


def print_recurring_dips(steps: int) -> None:
    """Print the table of recurring dips in windows of 300 s."""
    print("\n| dip | op/s | noise | carried over | found | false: found without any |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    seconds = np.arange(300)
    for period, width, depth, rate, noise, carried in (
        (30, 3, 1.0, 1000, 0.05, 0.0),
        (30, 3, 0.5, 1000, 0.10, 0.0),
        (30, 3, 0.3, 1000, 0.10, 0.0),
        (30, 3, 0.5, 1000, 0.20, 0.5),
        (10, 1, 0.5, 300, 0.10, 0.0),
        (60, 10, 0.4, 1000, 0.10, 0.8),
    ):
        draw = np.random.default_rng([3, period, rate, round(100 * depth)])
        found = false = 0
        for _ in range(steps):
            level = 1 - depth * ((seconds + draw.integers(period)) % period < width)
            found += period_s(noisy(draw, level, rate, noise, carried).tolist()) is not None
            quiet = noisy(draw, np.ones(300), rate, noise, carried)
            false += period_s(quiet.tolist()) is not None
        shares = f"{100 * found / steps:.1f} | {100 * false / steps:.1f}"
        dip = f"by {depth:.0%} for {width} s every {period} s"
        print(f"| {dip} | {rate} | {noise:.0%} | {carried:g} | {shares} |", flush=True)


def main() -> None:
    """Print the four tables in Markdown, as in docs/statistics.md; shares in per cent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=2000, help="of each cell")
    steps = parser.parse_args().steps
    print_over_repeats(steps)
    print_together(steps // 4)
    print_stalls(steps)
    print_recurring_dips(steps)


if __name__ == "__main__":
    main()
