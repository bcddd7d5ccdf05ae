"""How often the rules of steadiness call steady what is not, and not steady what is.

Three tables of made-up steps, with fixed seeds, judged by the functions that judge real ones. Over
repeats (`results.analysis.steps.steady_repeats`): windows of seconds whose rate drifts by a share
from end to end, in every repeat, with noise from second to second and of counting. Of each drift:
called steady, not steady; what is left is said to be unknown. "beside" are other steps of the
layout: they drift as well, or do not. Stalls (`results.analysis.steps.stalls`): windows that stall
once for 3 s, or never. Dips that come back: windows of 300 s, or without any dip.

    .venv/bin/python -m benchmarks.steadiness_rules [--steps 2000]
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Final

import numpy as np

from weighbridge.results.analysis.steps.stalls import period_s
from weighbridge.results.analysis.steps.steadiness import steadiness
from weighbridge.results.analysis.steps.steady_repeats import (
    steady_over_repeats,
    window_grain,
    window_move,
)
from weighbridge.results.record.measurement import Measurement, Second

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
    """A step that did so much in each second of its window."""
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
    """The moves of a step's repeats by WORKERS workers, and what the coarsest of their windows
    cannot resolve.
    """
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


def over_repeats(steps: int) -> None:
    """The table of the rule over repeats."""
    head = " | ".join(f"drift {drift:.0%}" for drift in DRIFTS)
    print(
        f"| repeats | window | op/s | noise | beside | {head} |\n|{' ---: |' * (5 + len(DRIFTS))}"
    )
    for repeats, window_s, rate, noise in REGIMES:
        line(steps, (repeats, window_s, rate, noise), head="none", drifting=True, beside=0)
    for regime in REGIMES[:7]:
        line(steps, regime, head="5, that drift too", drifting=True, beside=5)
    for regime in REGIMES[:7]:
        line(steps, regime, head="5, that do not", drifting=False, beside=5)


def line(
    steps: int, regime: tuple[int, float, int, float], *, head: str, drifting: bool, beside: int
) -> None:
    """One line of it."""
    repeats, window_s, rate, noise = regime
    cells = []
    for drift in DRIFTS:
        draw = np.random.default_rng(
            [
                repeats,
                round(10 * window_s),
                rate,
                round(100 * noise),
                round(100 * drift),
                beside,
                drifting,
            ]
        )
        said = []
        for _ in range(steps):
            others = (
                moves(draw, drift if drifting else 0.0, repeats * beside, window_s, rate, noise)[0]
                if beside
                else []
            )
            own, grain = moves(draw, drift, repeats, window_s, rate, noise)
            said.append(steady_over_repeats(own, others, grain=grain).steady)
        cells.append(
            f"{100 * said.count(True) / steps:.1f} / {100 * said.count(False) / steps:.1f}"
        )
    print(
        f"| {repeats} | {window_s:g} s | {rate} | {noise:.0%} | {head} | {' | '.join(cells)} |",
        flush=True,
    )


def noisy(
    draw: np.random.Generator, level: np.ndarray, rate: float, noise: float, kept: float = 0.0
) -> np.ndarray:
    """Counts about a level, whose noise carries a share over from a second to the next."""
    rest = draw.normal(size=len(level))
    for place in range(1, len(level)):
        rest[place] = kept * rest[place - 1] + math.sqrt(1 - kept**2) * rest[place]
    return draw.poisson(np.maximum(rate * level * (1 + noise * rest), 0))


def one_stall(steps: int) -> None:
    """The table of single stalls: what is said of windows with one, and how often a stall is said
    to be where none is.
    """
    print(
        "\n| window | op/s | noise | carried over | stall of 3 s: not steady | unknown | none: a "
        "stall is said |"
    )
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for length, rate, noise, kept in (
        (10, 30, 0.1, 0.0),
        (10, 300, 0.2, 0.0),
        (20, 1000, 0.1, 0.5),
        (60, 1000, 0.2, 0.5),
        (60, 5, 0.0, 0.0),
        (120, 200, 0.2, 0.8),
    ):
        draw = np.random.default_rng([2, length, rate])
        said, false = [], 0
        for _ in range(steps):
            start = draw.uniform(0, length - 3)
            level = 1 - np.clip(
                np.minimum(np.arange(length) + 1, start + 3) - np.maximum(np.arange(length), start),
                0,
                1,
            )
            said.append(steadiness(step(noisy(draw, level, rate, noise, kept), length)).steady)
            quiet = steadiness(step(noisy(draw, np.ones(length), rate, noise, kept), length))
            false += any("stall" in note for note in quiet.notes)
        shares = (said.count(False), said.count(None), false)
        cells = " | ".join(f"{100 * one / steps:.1f}" for one in shares)
        print(f"| {length} s | {rate} | {noise:.0%} | {kept:g} | {cells} |", flush=True)


def coming_back(steps: int) -> None:
    """The table of dips that come back in windows of 300 s."""
    print(
        "\n| dip | op/s | noise | carried over | found | without any: said |\n| --- | ---: | ---: "
        "| ---: | ---: | ---: |"
    )
    seconds = np.arange(300)
    for period, width, depth, rate, noise, kept in (
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
            found += (
                period_s([float(one) for one in noisy(draw, level, rate, noise, kept)]) is not None
            )
            false += (
                period_s([float(one) for one in noisy(draw, np.ones(300), rate, noise, kept)])
                is not None
            )
        shares = f"{100 * found / steps:.1f} | {100 * false / steps:.1f}"
        print(
            f"| by {depth:.0%} for {width} s every {period} s | {rate} | {noise:.0%} | {kept:g} | "
            f"{shares} |",
            flush=True,
        )


def main() -> None:
    """Print the three tables, in Markdown as they stand in docs/statistics.md; shares in per
    cent.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=2000, help="of each cell")
    steps = parser.parse_args().steps
    over_repeats(steps)
    one_stall(steps)
    coming_back(steps)


if __name__ == "__main__":
    main()
