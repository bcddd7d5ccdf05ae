"""Whether runs of one comparison agree: who leads, by how much, and whether a layout differs from
itself.

Each run is judged as its report is. A table for throughput and one for p90, with a line for each
run: how many times as good the first layout is in each cell, with the 95 % interval, bold where it
is claimed. Below, of all ordered pairs of runs, in how many the ratio of one lies within the
interval of the other, and in how many the two differ by no more than both intervals allow. An
interval that holds the truth in 95 of 100 runs holds the ratio of another run in 83 only, since
that one varies as well (G. Cumming and R. Maillardet, Psychological Methods 11, 2006): of the
differences 95 are to be allowed. Then what each A/A control found, and the mean over runs.

    .venv/bin/python -m benchmarks.run_agreement RUN RUN [RUN ...]
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from weighbridge.results.features.open_run import open_run
from weighbridge.results.figures.metrics import METRICS, PRIMARY, MetricKey
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.numbers import counted
from weighbridge.suites import Bounds

BOUNDS: Final = Bounds()
CLAIMED: Final = ("better", "worse")
CLEAR: Final = 1.5
"""The ratio from which all runs are to say who leads."""


def cells_of(found: Comparison, metric: MetricKey) -> dict[str, Effect]:
    """The cells of a metric at one worker count, by name."""
    return {
        f"{effect.about}, {counted(effect.workers, 'worker')}": effect
        for effect in found.effects
        if effect.workers is not None and effect.metric == metric
    }


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


def shown(effect: Effect | None) -> str:
    """How many times as good the first layout is: `**2.5** (2.2 to 2.8)`."""
    ratio = None if effect is None else effect.ratio
    if effect is None or ratio is None:
        return "-"
    figures = [ratio.value, ratio.low or 0.0, ratio.high or math.inf]
    if METRICS[effect.metric].better == "more":
        figures = [1 / figure if figure else math.inf for figure in (figures[0], *figures[:0:-1])]
    value, low, high = (f"{figure:.3g}" for figure in figures)
    return f"{f'**{value}**' if effect.verdict in CLAIMED else value} ({low} to {high})"


def print_cells(runs: Sequence[Comparison], metric: MetricKey) -> None:
    """Print the table of a metric, and what its cells say together."""
    judged = [cells_of(run, metric) for run in runs]
    names = list(dict.fromkeys(itertools.chain.from_iterable(judged)))
    print(f"| {metric} | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}")
    for number, run in enumerate(judged, 1):
        print(f"| {number} | {' | '.join(shown(run.get(name)) for name in names)} |")
    sums: Counter[str] = Counter()
    counts: dict[str, list[str]] = {"within the other's interval": [], "difference allowed": []}
    for name in names:
        effects = [run[name] for run in judged if name in run]
        ratios = [effect.ratio for effect in effects if effect.ratio is not None]
        pairs = list(itertools.permutations(ratios, 2))
        for words, rule in zip(counts, (within, allowed), strict=True):
            held = sum(rule(*pair) for pair in pairs)
            counts[words].append(f"{held} of {len(pairs)}")
            sums.update({words: held})
        sums.update(pairs=len(pairs))
        mean = fmean(math.log(ratio.value) for ratio in ratios) if ratios else 0.0
        if abs(mean) >= math.log(CLEAR):
            said = Counter(effect.verdict for effect in effects if effect.verdict in CLAIMED)
            sums.update(clear=len(effects), concluded=said.total(), opposed=len(said) > 1)
    for words, texts in counts.items():
        print(f"| {words}: {sums[words]} of {sums['pairs']} | {' | '.join(texts)} |")
    print(
        f"\nWhere the mean ratio is {CLEAR} or more, {sums['concluded']} of {sums['clear']} are "
        f"claimed; {sums['opposed']} cells have claims of both signs.\n"
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
    for metric in PRIMARY:
        print_cells(runs, metric)
    print_controls(runs)


if __name__ == "__main__":
    main()
