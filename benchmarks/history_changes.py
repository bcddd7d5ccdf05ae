"""How often a history tells a change where there is none, and how soon it finds a step of 10 %.

Histories are simulated with fixed seeds, and searched as `weighbridge history` does
(`results.features.run_series.change_points`) after each run, as CI would: one layout, two workloads
at three worker counts, throughput and p90, 12 series. Runs scatter by a standard deviation of the
logarithm; half of its variance is shared by all cells of a run, as in `benchmarks/claims.py`, and
p90 rises where throughput falls. Cells of five repeats scattered so in the runs of this suite on
two shared cores: 1 to 8 % (a median of 3 %) in one, 3 to 12 % (6 %) in docs/example.

Columns: false changes that are told at any time in 100 quiet runs, in all 12 series together
(target: at most 1), with Otava's own p of 0.001 and every answer told, and by the rule; then, of
100 histories whose throughput falls by 10 % after 30 quiet runs, those in which that is told as
worse within one run of its place: in any cell after 3 runs (target: 90) and after 10, and the share
of cells after 3. Then outliers: those that are told at any time in 100 quiet runs, in all series
together (target: at most 1), by the modified z-score's own 3.5 and by the rule, which asks more of
few neighbours; and of 100 histories of which one run is 30 % slower after 30 quiet ones, those in
which it is told at once, in any cell.

    python -m benchmarks.history_changes [--histories 10] [--scatter 0.03]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Final

import numpy as np

from benchmarks.simulated_runs import Array
from weighbridge.results.features import run_series as series
from weighbridge.suites import Bounds

RUNS: Final = 100
BEFORE: Final = 30
CELLS: Final = 6
STEP: Final = 0.9
STEPS: Final = 100
"""Histories with a step."""
SCATTERS: Final = (0.01, 0.02, 0.03, 0.06)
LEAST: Final = (Bounds().throughput_ratio - 1, Bounds().p90_ratio - 1)
"""Of throughput and p90: the practical thresholds."""
PEAK: Final = 0.7
PLAIN: Final = series.OutlierRule(few=0.0)
"""As Iglewicz and Hoaglin have it, however few the neighbours."""
DEFAULT: Final = series.ChangeRule(most_p=0.001, before=1, after=1)
"""Otava's own defaults."""


def figures_of(draw: np.random.Generator, scatter: float, runs: int) -> Array:
    """Figures around 1: metric (throughput, p90), cell, run."""
    of_run, of_cell = draw.normal(size=(1, runs)), draw.normal(size=(CELLS, runs))
    logs = scatter * math.sqrt(0.5) * (of_run + of_cell)
    return np.exp(np.stack([logs, -logs]))


def false_changes(draw: np.random.Generator, scatter: float, rule: series.ChangeRule) -> int:
    """The changes that are told in quiet runs, searched again after each of them."""
    figures = figures_of(draw, scatter, RUNS)
    told = {
        (metric, cell, at)
        for metric, least in enumerate(LEAST)
        for cell in range(CELLS)
        for runs in range(rule.runs, RUNS + 1)
        for at in series.change_points(figures[metric, cell, :runs].tolist(), least, rule)
    }
    return len(told)


def found_after(draw: np.random.Generator, scatter: float, after: Sequence[int]) -> list[int]:
    """In how many cells a step of throughput is told, after so many runs each."""
    figures = figures_of(draw, scatter, BEFORE + max(after))[0]
    figures[:, BEFORE:] *= STEP
    return [
        sum(
            any(
                abs(at - BEFORE) <= 1 and one.after < one.before
                for at, one in series.change_points(
                    cell[: BEFORE + runs].tolist(), LEAST[0]
                ).items()
            )
            for cell in figures
        )
        for runs in after
    ]


def false_outliers(draw: np.random.Generator, scatter: float, rule: series.OutlierRule) -> int:
    """The outliers that are told in quiet runs, searched again after each of them."""
    figures = figures_of(draw, scatter, RUNS)
    told = {
        (metric, cell, at)
        for metric, least in enumerate(LEAST)
        for cell in range(CELLS)
        for runs in range(rule.least + 1, RUNS + 1)
        for at in series.outlying(figures[metric, cell, :runs].tolist(), least, rule=rule)
    }
    return len(told)


def peak_is_found(draw: np.random.Generator, scatter: float) -> bool:
    """Whether one slow run is told as an outlier as soon as it is there."""
    figures = figures_of(draw, scatter, BEFORE + 1)[0]
    figures[:, BEFORE] *= PEAK
    return any(BEFORE in series.outlying(cell.tolist(), LEAST[0]) for cell in figures)


def print_line(number: int, scatter: float, histories: int) -> None:
    """Print the line of the table for one scatter."""
    cells = []
    for rule in (DEFAULT, series.RULE):
        draws = (np.random.default_rng([22, number, one]) for one in range(histories))
        found = [false_changes(draw, scatter, rule) for draw in draws]
        cells.append(f"{sum(found) / histories:.2f}")
    steps = [
        found_after(np.random.default_rng([10, number, one]), scatter, (3, 10))
        for one in range(STEPS)
    ]
    soon, late = zip(*steps, strict=True)
    cells += [
        f"{100 * sum(one > 0 for one in soon) / STEPS:.0f}",
        f"{100 * sum(one > 0 for one in late) / STEPS:.0f}",
        f"{100 * sum(soon) / STEPS / CELLS:.0f}",
    ]
    for outlier_rule in (PLAIN, series.OUTLIER_RULE):
        draws = (np.random.default_rng([35, number, one]) for one in range(histories))
        found = [false_outliers(draw, scatter, outlier_rule) for draw in draws]
        cells.append(f"{sum(found) / histories:.2f}")
    peaks = [
        peak_is_found(np.random.default_rng([36, number, one]), scatter) for one in range(STEPS)
    ]
    cells.append(f"{100 * sum(peaks) / STEPS:.0f}")
    print(f"| {scatter:.0%} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print the table in Markdown, as in docs/history.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=10, help="quiet ones of each line")
    parser.add_argument("--scatter", type=float, choices=SCATTERS, help="only this line")
    given = parser.parse_args()
    began_s = time.monotonic()
    print(
        "| runs scatter by | false, Otava’s defaults | false | 10 % found after 3 runs "
        "| after 10 | cells after 3 | false outliers, z 3.5 | false outliers "
        f"| 30 % found |\n|{' ---: |' * 9}"
    )
    for number, scatter in enumerate(SCATTERS):
        if given.scatter in (None, scatter):
            print_line(number, scatter, given.histories)
    print(f"\n{given.histories} quiet histories a line; {time.monotonic() - began_s:.0f} s")


if __name__ == "__main__":
    main()
