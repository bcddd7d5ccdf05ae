"""The claims of a first run: how often the suite `quick` claims falsely, when it ends, and what it
finds.

Complete runs of its cells are simulated with fixed seeds, in the order that a plan would have
(`weighbridge.conductor.plan`), with its A/A control, and judged after 5, 6, 7 and 8 repeats by
the functions that make claims (`results.judge.comparing.compare`) and end a run
(`weighbridge.conductor.conductor.is_clear`). Half of the variance of repeats comes from the
deployment, shared by all its cells; p90 rises where throughput falls. Two rules are compared on the
same figures:

- five: the run ends after 5 repeats, whatever it found: what two busy cores have time for.
- strict: the suite's rule. The run ends after 5, 6 or 7 repeats only if every cell is decided at
  0.1 %, else after 8.

Columns, in per cent of runs or cells: runs with a false claim (a difference where there is none,
one of the wrong sign, or equivalence of what differs by more than the bound), cells whose
difference is claimed, and the mean number of repeats.

    .venv/bin/python -m benchmarks.first_run_claims [--runs 1000] [--truth WORDS]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.simulated_runs import DIRECTION, Array, SimulatedCell, noise_of, rows_of
from weighbridge.conductor.conductor import is_clear
from weighbridge.conductor.plan import blocks
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import PRIMARY, compare
from weighbridge.results.judge.comparison import Comparison
from weighbridge.suites import Bounds, Suite, loader

NAMES: Final = ("A", "B", "A-again")
BOUNDS: Final = Bounds()
RULES: Final = ("five", "strict")


@dataclass(frozen=True)
class TruthCase:
    """The truth, as the ratio of B to A in each cell (`last` for the last one), and how repeats
    vary.

    `spreads` are A's and B's; `drift` is the share by which the machine gets faster with each
    visit.
    """

    name: str
    ratio: float
    last: float
    spreads: tuple[float, float]
    drift: float = 0.0


def _cases() -> tuple[TruthCase, ...]:
    scatter = (
        ("5 %", (0.05, 0.05), 0.0),
        ("15 %", (0.15, 0.15), 0.0),
        ("5 and 20 %", (0.05, 0.20), 0.0),
    )
    drifting = (*scatter, ("5 %, 3 % faster a visit", (0.05, 0.05), 0.03))
    truths = (
        ("no difference", 1.0, 1.0),
        ("2x but in one cell", 2.0, 1.0),
        ("2x", 2.0, 2.0),
        ("1.3x", 1.3, 1.3),
    )
    return tuple(
        TruthCase(f"{what}; spread {how}", *truth, *spread)
        for what, *truth in truths
        for how, *spread in drifting
    )


def cells_of(suite: Suite) -> tuple[SimulatedCell, ...]:
    """The cells of a suite, one per worker count."""
    return tuple(
        SimulatedCell(one.name, operation, workers, one.objects.mean_bytes)
        for one in suite.workloads
        for operation in one.operations
        for workers in one.workers
    )


def logs_of(case: TruthCase, cells: int, repeats_max: int, draw: np.random.Generator) -> Array:
    """Logarithms of one run's figures: metric (throughput, p90), layout, repeat, cell."""
    order = blocks(NAMES, repeats_max, int(draw.integers(2**32)))
    place = np.array(
        [
            [block * len(NAMES) + order[block].index(name) for block in range(repeats_max)]
            for name in NAMES
        ]
    )
    spreads = np.array([case.spreads[0], case.spreads[1], case.spreads[0]])[None, :, None, None]
    noise = noise_of(draw, len(NAMES), repeats_max, cells)
    differs = np.zeros((len(NAMES), 1, cells))
    differs[1] = math.log(case.ratio)
    differs[1, :, -1] = math.log(case.last)
    drift = case.drift * place[:, :, None]
    return spreads * noise + DIRECTION * (differs + drift)[None]


def table_of(logs: Array, cells: Sequence[SimulatedCell], repeats: int) -> tuple[Row, ...]:
    """The table of the first repeats of a run with these logarithms."""
    return rows_of(logs[:, :, :repeats], cells, NAMES, ops_s=300, p90_ms=40, samples=1000)


def wrong(case: TruthCase, found: Comparison, cells: Sequence[SimulatedCell]) -> bool:
    """Whether any claim is false."""
    for one in found.effects:
        last = (one.workload, one.workers) == (cells[-1].workload, cells[-1].workers)
        if one.workers is None and case.ratio != case.last and one.workload == cells[-1].workload:
            last = True
        truth = case.last if last else case.ratio
        # Wherever the two differ, B is better in throughput and in p90.
        if one.verdict == "worse" or (one.verdict == "better" and truth == 1):
            return True
        if one.verdict == "too small to matter" and truth > BOUNDS.p90_ratio:
            return True
    return False


def claimed(found: Comparison) -> int:
    """How many cells of throughput and p90 have a claimed difference."""
    return sum(
        one.verdict in ("better", "worse")
        for one in found.effects
        if one.workers is not None and one.metric in PRIMARY
    )


def last_look(rule: str, looks: Sequence[Comparison]) -> int:
    """The look at which a rule ends a run."""
    last = len(looks) - 1
    if rule == "five":
        return 0
    return next((number for number, look in enumerate(looks[:-1]) if is_clear(look)), last)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--truth",
        default="",
        metavar="WORDS",
        help="only cases whose name contains this, such as '2x;'",
    )
    options = parser.parse_args()
    runs = options.runs
    suite = loader.load(loader.find("quick"))
    cells = cells_of(suite)
    counts = range(
        suite.repeats, suite.repeats + (suite.further.blocks if suite.further else 0) + 1
    )
    print(
        f"{runs} runs a line; {len(cells)} cells of 2 metrics; {counts[0]} to {counts[-1]} "
        "repeats\n"
    )
    print(
        "| truth and scatter | "
        + " | ".join(f"{rule}: wrong | claimed | n" for rule in RULES)
        + " |"
    )
    print("| --- |" + " --: |" * (3 * len(RULES)))
    began = time.monotonic()
    for number, case in enumerate(_cases()):
        if options.truth not in case.name:
            continue
        errors, differences, ended = (dict.fromkeys(RULES, 0) for _ in range(3))
        for run in range(runs):
            logs = logs_of(case, len(cells), counts[-1], np.random.default_rng([2014, number, run]))
            looks = [
                compare(table_of(logs, cells, repeats), {"A-again": "A"}, BOUNDS)
                for repeats in counts
            ]
            for rule in RULES:
                last = last_look(rule, looks)
                errors[rule] += wrong(case, looks[last], cells)
                differences[rule] += claimed(looks[last])
                ended[rule] += counts[last]
        parts = []
        for rule in RULES:
            claimed_share = differences[rule] / runs / len(cells) / 2
            parts.append(
                f"{errors[rule] / runs * 100:.1f} | {claimed_share * 100:.0f} | "
                f"{ended[rule] / runs:.1f}"
            )
        print(f"| {case.name} | " + " | ".join(parts) + " |", flush=True)
    print(f"\n{time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
