"""How often the results of a tuning make false claims, cover the truth by their intervals, and find
what helps.

Complete tunings are simulated with fixed seeds and judged by
`results.features.tuning.setting_table` after each round as `weighbridge tune` does: a setting that
is clear is dropped, the others continue. The
test bed has noise and drift: none, linear, or a random walk. For comparison, the same trials are
judged by Welch's test of each setting vs all of the baseline's trials, with the same corrections.
Columns: tunings with any false `better` or `worse`; claims that are false; 95 % intervals (widened
for the number of looks) that cover the truth; settings that help and are found. All in per cent.

    .venv/bin/python -m benchmarks.tuning_claims [--ledgers 400]
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from weighbridge.results.features.tuning.setting_table import SettingTable, setting_table
from weighbridge.results.figures import statistics as stats

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from fake_trials import TrialMaker, fake_variant, tuning_run

ARMS = 15
HELP = 1.20
"""The factor of settings that have an effect."""
DRIFTS = ("none", "line, 20 % an hour", "random walk, 1 % a trial")


@dataclass
class TuningTally:
    """Counts over many tunings, for one way to compare trials with the baseline."""

    ledgers: int = 0
    false: int = 0
    """Tunings with any false `better` or `worse`."""
    claims: int = 0
    wrong: int = 0
    """Claims about settings without effect, or of the wrong sign."""
    intervals: int = 0
    held: int = 0
    helpful: int = 0
    found: int = 0

    def row(self) -> str:
        """Shares in per cent: false tunings, false claims, covering intervals, settings found."""
        shares = (
            (self.false, self.ledgers),
            (self.wrong, self.claims),
            (self.held, self.intervals),
            (self.found, self.helpful),
        )
        return "".join(
            f"{100 * part / total:>12.1f}" if total else f"{'-':>12}" for part, total in shares
        )


@dataclass
class SettingVerdict:
    """The verdict on a setting: its true factor, the interval, and better, worse or neither."""

    factor: float
    low: float
    high: float
    verdict: str


def level(drift: str, seed: int) -> Callable[[float], float]:
    """The baseline's throughput over time, in op/s."""
    if drift.startswith("line"):
        return lambda at_s: 1000 * 1.2 ** (at_s / 3600)
    if drift.startswith("random"):
        draw, walk = random.Random(seed), [0.0]

        def at(at_s: float) -> float:
            while len(walk) <= at_s / 40:
                walk.append(walk[-1] + draw.gauss(0, 0.01))
            return 1000 * math.exp(walk[int(at_s / 40)])

        return at
    return lambda _: 1000.0


def tune(
    seed: int, factors: Sequence[float], scatter: float, drift: str
) -> tuple[TrialMaker, SettingTable]:
    """A screen from its first round to its last."""
    run = tuning_run()
    maker = TrialMaker(run, level(drift, seed), scatter, seed)
    active = {number: (fake_variant(number + 1), factor) for number, factor in enumerate(factors)}
    book = None
    for number in range(run.tuning.trials.most):
        maker.go_round(list(active.values()), number)
        if number + 1 >= run.tuning.trials.least:
            book = setting_table(run, maker.trials, maker.visits)
            clear = {entry.variant.name for entry in book.entries if entry.clear}
            active = {place: one for place, one in active.items() if one[0].name not in clear}
        if not active:
            break
    if book is None:
        raise ValueError("no setting was judged")
    return maker, book


def search(
    seed: int, factors: Sequence[float], scatter: float, drift: str
) -> tuple[TrialMaker, SettingTable]:
    """A search: proposals in groups of four, three trials each; then the best three continue."""
    run = tuning_run()
    maker = TrialMaker(run, level(drift, seed), scatter, seed)
    variants = [(fake_variant(number + 1), factor) for number, factor in enumerate(factors)]
    number = 0
    for first in range(0, len(variants), 4):
        for _ in range(3):
            maker.go_round(variants[first : first + 4], number)
            number += 1
    book = setting_table(run, maker.trials, maker.visits)
    active = [
        next(one for one in variants if one[0].name == entry.variant.name)
        for entry in book.entries[:3]
    ]
    for look in range(3, run.tuning.trials.most):
        maker.go_round(active, number)
        number += 1
        book = setting_table(run, maker.trials, maker.visits)
        if look + 1 >= run.tuning.trials.least:
            clear = {entry.variant.name for entry in book.entries if entry.clear}
            active = [one for one in active if one[0].name not in clear]
        if not active:
            break
    return maker, book


def paired(book: SettingTable, factors: dict[str, float]) -> Iterator[SettingVerdict]:
    """The verdicts of the tuning's results."""
    for entry in book.entries:
        ratio = entry.effects[0].ratio
        if ratio is None or ratio.low is None or ratio.high is None:
            continue
        if ratio.repeats >= stats.REPEATS_FOR_A_CLAIM:
            yield SettingVerdict(factors[entry.variant.name], ratio.low, ratio.high, entry.verdict)


def unpaired(
    book: SettingTable, maker: TrialMaker, factors: dict[str, float]
) -> Iterator[SettingVerdict]:
    """The verdicts of Welch's test on the same trials, each setting's vs all of the baseline's."""
    values: dict[str, list[float]] = {}
    names = {trial.number: trial.arm.name for trial in maker.trials}
    for reading in book.readings:
        if reading.value is not None:
            values.setdefault(names[reading.trial], []).append(reading.value)
    base = values[book.baseline.name]
    tested = {name: stats.welch(own, base) for name, own in values.items() if name in factors}
    looks, bound = book.looks, maker.run.tuning.threshold.throughput_ratio
    judged = {name: len(values[name]) >= stats.REPEATS_FOR_A_CLAIM for name in tested}
    p_values = [min(1.0, one.p * looks) if judged[name] else 1.0 for name, one in tested.items()]
    for (name, one), q in zip(tested.items(), stats.corrected(p_values), strict=True):
        if not judged[name]:
            continue
        reach = stats.t_quantile(1 - stats.LEVEL / looks / 2, one.freedom) * one.error
        verdict = ""
        if q <= stats.LEVEL and one.ratio.either_way >= bound:
            verdict = "better" if one.difference > 0 else "worse"
        low, high = math.exp(one.difference - reach), math.exp(one.difference + reach)
        yield SettingVerdict(factors[name], low, high, verdict)


def add(tally: TuningTally, verdicts: Iterator[SettingVerdict]) -> None:
    """Count one tuning."""
    found = list(verdicts)
    claims = [one for one in found if one.verdict in ("better", "worse")]
    wrong = [
        one for one in claims if one.factor == 1 or (one.verdict == "better") != (one.factor > 1)
    ]
    tally.ledgers += 1
    tally.false += bool(wrong)
    tally.claims += len(claims)
    tally.wrong += len(wrong)
    tally.intervals += len(found)
    tally.held += sum(one.low <= one.factor <= one.high for one in found)
    helpful = [one for one in found if one.factor > 1]
    tally.helpful += len(helpful)
    tally.found += sum(one.verdict == "better" for one in helpful)


@dataclass
class TuningCase:
    """One line of the table."""

    name: str
    make: Callable[[int, Sequence[float], float, str], tuple[TrialMaker, SettingTable]]
    factors: tuple[float, ...]
    scatter: float
    tallies: tuple[TuningTally, TuningTally] = field(
        default_factory=lambda: (TuningTally(), TuningTally())
    )


def cases() -> list[TuningCase]:
    """Screens of settings without effect; screens and searches in which some have one."""
    nothing, some = (1.0,) * ARMS, (HELP, HELP, 1 / HELP, *(1.0,) * (ARMS - 3))
    return [
        *(
            TuningCase("screen, none does anything", tune, nothing, scatter)
            for scatter in (0.03, 0.08)
        ),
        TuningCase("screen, 2 do 20 % more, 1 less", tune, some, 0.04),
        TuningCase("search, none does anything", search, (1.0,) * 24, 0.04),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ledgers", type=int, default=400, help="of each line")
    ledgers = parser.parse_args().ledgers
    columns = "".join(f"{name:>12}" for name in ("any false", "false", "held", "found"))
    print(f"{ledgers} tunings per line; shares in %\n{'':58}{'baseline':>10}{columns}")
    for case in cases():
        for drift in DRIFTS:
            tallies = (TuningTally(), TuningTally())
            for seed in range(ledgers):
                maker, book = case.make(seed, case.factors, case.scatter, drift)
                factors = {
                    fake_variant(number + 1).name: factor
                    for number, factor in enumerate(case.factors)
                }
                add(tallies[0], paired(book, factors))
                add(tallies[1], unpaired(book, maker, factors))
            head = f"{case.name}, {case.scatter:.0%}, {drift}"
            for baseline, tally in zip(("adjacent", "all"), tallies, strict=True):
                print(f"{head:58}{baseline:>10}{tally.row()}", flush=True)
                head = ""


if __name__ == "__main__":
    main()
