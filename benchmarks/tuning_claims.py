"""How often a tuning's ledger claims what is not there, holds the truth in its intervals, and finds
what is there.

Whole tunings are made up, with fixed seeds, and judged by `results.analysis.tuning.ledger` after
each round as `weighbridge tune` does: a setting that is clear drops out, the others go on. The rig
scatters and drifts: not at all, along a line, or as a random walk. Beside it stands what the same
trials say when a setting's are set against all of the baseline's by Welch's test, with the same
corrections. Columns: ledgers with any false `better` or `worse`; claims that are false; 95 %
intervals (wider for the number of looks) that hold the truth; settings that help and are found. All
in per cent.

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

from weighbridge.results.analysis.tuning.ledger import Ledger, ledger
from weighbridge.results.statistics import LEVEL, REPEATS_FOR_A_CLAIM, corrected, t_quantile, welch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from fake_trials import Rig, arm, tuning_run

ARMS = 15
HELP = 1.20
"""What the settings do that do something, where some do."""
DRIFTS = ("none", "line, 20 % an hour", "random walk, 1 % a trial")


@dataclass
class Tally:
    """What many ledgers came to, of one way to set trials against the baseline."""

    ledgers: int = 0
    false: int = 0
    """Ledgers with any false `better` or `worse`."""
    claims: int = 0
    wrong: int = 0
    """Of the claims, those of settings that do nothing, or the wrong way."""
    intervals: int = 0
    held: int = 0
    helpful: int = 0
    found: int = 0

    def row(self) -> str:
        """Shares in per cent: false ledgers, false claims, intervals that hold the truth, helpful
        settings found.
        """
        shares = (
            (self.false, self.ledgers),
            (self.wrong, self.claims),
            (self.held, self.intervals),
            (self.found, self.helpful),
        )
        return "".join(
            f"{100 * part / whole:>12.1f}" if whole else f"{'-':>12}" for part, whole in shares
        )


@dataclass
class Side:
    """A setting as one way judged it: its factor, the interval, and whether it was called better or
    worse.
    """

    factor: float
    low: float
    high: float
    said: str


def level(drift: str, seed: int) -> Callable[[float], float]:
    """What the baseline does at a time, in op/s."""
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


def tune(seed: int, factors: Sequence[float], scatter: float, drift: str) -> tuple[Rig, Ledger]:
    """A screen from its first round to its last."""
    run = tuning_run()
    rig = Rig(run, level(drift, seed), scatter, seed)
    going = {number: (arm(number + 1), factor) for number, factor in enumerate(factors)}
    book = None
    for number in range(run.tuning.trials.most):
        rig.go_round(list(going.values()), number)
        if number + 1 >= run.tuning.trials.least:
            book = ledger(run, rig.trials, rig.visits)
            clear = {entry.arm.name for entry in book.entries if entry.clear}
            going = {place: one for place, one in going.items() if one[0].name not in clear}
        if not going:
            break
    if book is None:
        raise ValueError("no look")
    return rig, book


def search(seed: int, factors: Sequence[float], scatter: float, drift: str) -> tuple[Rig, Ledger]:
    """A search: four proposals a round, three trials each, one lot after the other; then the best
    three go on together.
    """
    run = tuning_run()
    rig = Rig(run, level(drift, seed), scatter, seed)
    arms = [(arm(number + 1), factor) for number, factor in enumerate(factors)]
    number = 0
    for first in range(0, len(arms), 4):
        for _ in range(3):
            rig.go_round(arms[first : first + 4], number)
            number += 1
    book = ledger(run, rig.trials, rig.visits)
    going = [
        next(one for one in arms if one[0].name == entry.arm.name) for entry in book.entries[:3]
    ]
    for look in range(3, run.tuning.trials.most):
        rig.go_round(going, number)
        number += 1
        book = ledger(run, rig.trials, rig.visits)
        if look + 1 >= run.tuning.trials.least:
            clear = {entry.arm.name for entry in book.entries if entry.clear}
            going = [one for one in going if one[0].name not in clear]
        if not going:
            break
    return rig, book


def paired(book: Ledger, factors: dict[str, float]) -> Iterator[Side]:
    """What the ledger says."""
    for entry in book.entries:
        ratio = entry.effects[0].ratio
        if (
            ratio is not None
            and ratio.low is not None
            and ratio.high is not None
            and ratio.repeats >= REPEATS_FOR_A_CLAIM
        ):
            yield Side(factors[entry.arm.name], ratio.low, ratio.high, entry.verdict)


def unpaired(book: Ledger, rig: Rig, factors: dict[str, float]) -> Iterator[Side]:
    """What Welch's test says of the same trials, each setting's against all of the baseline's."""
    values: dict[str, list[float]] = {}
    names = {trial.number: trial.arm.name for trial in rig.trials}
    for reading in book.readings:
        if reading.value is not None:
            values.setdefault(names[reading.trial], []).append(reading.value)
    base = values[book.baseline.name]
    tested = {name: welch(own, base) for name, own in values.items() if name in factors}
    looks, bound = book.looks, rig.run.tuning.threshold.throughput_ratio
    judged = {name: len(values[name]) >= REPEATS_FOR_A_CLAIM for name in tested}
    q_of = dict(
        zip(
            tested,
            corrected(
                [min(1, one.p * looks) if judged[name] else 1 for name, one in tested.items()]
            ),
            strict=True,
        )
    )
    for name, one in tested.items():
        if not judged[name]:
            continue
        reach = t_quantile(1 - LEVEL / looks / 2, one.freedom) * one.error
        said = (
            ""
            if q_of[name] > LEVEL or one.ratio.either_way < bound
            else "better"
            if one.difference > 0
            else "worse"
        )
        yield Side(
            factors[name], math.exp(one.difference - reach), math.exp(one.difference + reach), said
        )


def add(tally: Tally, sides: Iterator[Side]) -> None:
    """Count one ledger."""
    found = list(sides)
    claims = [one for one in found if one.said in ("better", "worse")]
    wrong = [one for one in claims if one.factor == 1 or (one.said == "better") != (one.factor > 1)]
    tally.ledgers += 1
    tally.false += bool(wrong)
    tally.claims += len(claims)
    tally.wrong += len(wrong)
    tally.intervals += len(found)
    tally.held += sum(one.low <= one.factor <= one.high for one in found)
    helpful = [one for one in found if one.factor > 1]
    tally.helpful += len(helpful)
    tally.found += sum(one.said == "better" for one in helpful)


@dataclass
class Case:
    """One line of the table."""

    name: str
    make: Callable[[int, Sequence[float], float, str], tuple[Rig, Ledger]]
    factors: tuple[float, ...]
    scatter: float
    tallies: tuple[Tally, Tally] = field(default_factory=lambda: (Tally(), Tally()))


def cases() -> list[Case]:
    """Screens of settings that do nothing, screens and searches in which some do."""
    nothing, some = (1.0,) * ARMS, (HELP, HELP, 1 / HELP, *(1.0,) * (ARMS - 3))
    return [
        *(Case("screen, none does anything", tune, nothing, scatter) for scatter in (0.03, 0.08)),
        Case("screen, 2 do 20 % more, 1 less", tune, some, 0.04),
        Case("search, none does anything", search, (1.0,) * 24, 0.04),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ledgers", type=int, default=400, help="of each line")
    ledgers = parser.parse_args().ledgers
    columns = "".join(f"{name:>12}" for name in ("any false", "false", "held", "found"))
    print(f"{ledgers} ledgers a line; shares in %\n{'':58}{'against':>10}{columns}")
    for case in cases():
        for drift in DRIFTS:
            tallies = (Tally(), Tally())
            for seed in range(ledgers):
                rig, book = case.make(seed, case.factors, case.scatter, drift)
                factors = {
                    arm(number + 1).name: factor for number, factor in enumerate(case.factors)
                }
                add(tallies[0], paired(book, factors))
                add(tallies[1], unpaired(book, rig, factors))
            head = f"{case.name}, {case.scatter:.0%}, {drift}"
            for against, tally in zip(("beside", "all"), tallies, strict=True):
                print(f"{head:58}{against:>10}{tally.row()}", flush=True)
                head = ""


if __name__ == "__main__":
    main()
