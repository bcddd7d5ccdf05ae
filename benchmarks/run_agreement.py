"""Whether runs of one comparison agree: who leads, by how much, and whether a layout differs from
itself.

Each run is judged as its report is. A line for each cell of throughput and p90: its ratio in every
run, bold where it is claimed, and of all ordered pairs of runs, in how many the ratio of one lies
within the interval of the other, and in how many the two differ by no more than both intervals
allow. An interval that holds the truth in 95 of 100 runs holds the ratio of another run in 83 only,
since that one varies as well (G. Cumming and R. Maillardet, Psychological Methods 11, 2006): of the
differences 95 are to be allowed. Then what each A/A control found, and the mean over runs.

    .venv/bin/python -m benchmarks.run_agreement RUN RUN [RUN ...]
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.metrics import PRIMARY
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.numbers import show_ratio
from weighbridge.suites import Bounds

BOUNDS: Final = Bounds()
CLAIMED: Final = ("better", "worse")
CLEAR: Final = 1.5
"""The ratio from which all runs are to say who leads."""


def cells_of(found: Comparison) -> Iterator[tuple[str, Effect]]:
    """The cells of throughput and p90 at one worker count, by name."""
    for effect in found.effects:
        if effect.workers is not None and effect.metric in PRIMARY:
            yield f"{effect.about}, {effect.workers} workers, {effect.metric}", effect


def within(one: Ratio, other: Ratio) -> bool:
    """Whether a ratio lies within the other's interval."""
    return (other.low or 0.0) <= one.value <= (other.high or math.inf)


def allowed(one: Ratio, other: Ratio) -> bool:
    """Whether two ratios differ by no more than both their intervals allow."""
    log = math.log(other.value / one.value)
    if log < 0:
        return allowed(other, one)
    up = math.log((one.high or math.inf) / one.value)
    down = math.log(other.value / other.low) if other.low else math.inf
    return log <= math.hypot(up, down)


def shown(effect: Effect) -> str:
    """Such as `**2.5** (2.2 to 2.8)`."""
    ratio = effect.ratio
    if ratio is None:
        return effect.verdict
    value = show_ratio(ratio.value)
    value = f"**{value}**" if effect.verdict in CLAIMED else value
    return f"{value} ({ratio.low or 0:.3g} to {ratio.high or math.inf:.3g})"


def print_cells(runs: Sequence[Mapping[str, Effect]]) -> None:
    """Print the table of cells, and what all of them say together."""
    counts = " | ".join(f"run {number}" for number in range(1, len(runs) + 1))
    print(f"| cell | {counts} | within the other's interval | difference allowed |")
    print(f"| --- |{' ---: |' * (len(runs) + 2)}")
    sums: Counter[str] = Counter()
    for name in dict.fromkeys(itertools.chain.from_iterable(runs)):
        effects = [run[name] for run in runs if name in run]
        ratios = [effect.ratio for effect in effects if effect.ratio is not None]
        pairs = list(itertools.permutations(ratios, 2))
        held, fit = (sum(rule(*pair) for pair in pairs) for rule in (within, allowed))
        print(
            f"| {name} | {' | '.join(map(shown, effects))} | {held} of {len(pairs)} | "
            f"{fit} of {len(pairs)} |"
        )
        sums.update(held=held, fit=fit, pairs=len(pairs))
        mean = fmean(math.log(ratio.value) for ratio in ratios) if ratios else 0.0
        if abs(mean) >= math.log(CLEAR):
            said = Counter(effect.verdict for effect in effects if effect.verdict in CLAIMED)
            sums.update(clear=len(effects), concluded=said.total(), opposed=len(said) > 1)
    print(
        f"\n{sums['held']} of {sums['pairs']} ratios lie within the other's interval, "
        f"{sums['fit']} differences are allowed. Where the mean ratio is {CLEAR} or more: "
        f"{sums['concluded']} of {sums['clear']} conclude, {sums['opposed']} cells with claims "
        "of both signs."
    )


def print_controls(runs: Sequence[Comparison]) -> None:
    """Print what A/A controls found."""
    for metric in PRIMARY:
        found = [one for run in runs for one in run.noise if one.metric == metric]
        logs = [math.log(one.ratio.value) for one in found]
        if len(logs) < 2:
            continue
        mean, error = fmean(logs), stdev(logs) / math.sqrt(len(logs))
        bound = BOUNDS.throughput_ratio if metric == "throughput" else BOUNDS.p90_ratio
        ends = [(one.ratio.low or 0.0, one.ratio.high or math.inf) for one in found]
        beyond = [low > bound or high < 1 / bound for low, high in ends]
        print(
            f"A/A {metric}: {', '.join(f'{one.ratio.value:.3f}' for one in found)}; "
            f"{sum(one.shown for one in found)} intervals without 1, {sum(beyond)} claims; "
            f"mean {math.exp(mean):.3f} (standard error {error:.3f})"
        )


def main() -> None:
    """Print the tables in Markdown, as in docs/first-run.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    runs = [open_run(folder).comparison for folder in parser.parse_args().runs]
    print_cells([dict(cells_of(run)) for run in runs])
    print()
    print_controls(runs)


if __name__ == "__main__":
    main()
