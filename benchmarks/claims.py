"""How often a comparison makes false claims, covers the truth by its intervals, and finds the
differences that it says it could find.

Complete runs are simulated with fixed seeds and judged by `results.judge.comparing.compare`, as
every report is: two layouts in blocks, two workloads at three worker counts, throughput and p90.
Half of the variance of repeats comes from the deployment, shared by all its cells; p90 rises where
throughput falls. Windows move as short ones do (by a standard deviation of MOVES). What else a
machine may do is in REGIMES.

The rule for claims (`results.figures.statistics`), tested here against each of them: the interval
lies beyond the practical bound, as a p-value `TTest.p_beyond(bound)`; the tests of the primary
metrics are corrected together by Benjamini and Hochberg, and those over all worker counts by
themselves; a claim has q <= 5 %. Where the sides rise and fall together from block to block
(`results.judge.comparing.correlation` is at least 0.5 over all cells of the two) they are compared
block by block. What other programs cost is a slope over their load (`figures.foreign_load`),
and what runs of a machine differ by is in the interval, where three runs or more are known.

Columns, in per cent: runs of a layout vs itself that claim any difference (target: at most 5); 95 %
intervals of cells that cover the truth; where one cell differs by what another run said it would
find 8 times in 10, runs that find it (target: 80), and the median of those differences; cells that
differ by exactly the practical bound and are called equivalent (target: at most 5).

A second table has cells that are found where all differ by one ratio, and those that are
provisional. A third is of runs that go on after BLOCKS blocks until all cells are clear
(`weighbridge.conductor.conductor.is_clear`) or there are MOST_BLOCKS: those with a wrong claim,
cells that are claimed, and the mean number of blocks. A fourth compares runs
(`results.features.compare_runs.compare_runs`): an unchanged layout, measured on days that differ,
is called worse somewhere, by the repeats of the two runs alone and with so many runs of the same
thing known (target: at most 5); and a layout that became 30 % slower in all cells is.

    .venv/bin/python -m benchmarks.claims [--runs 1000] [--regime WORDS]
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.simulated_runs import DIRECTION, Array, SimulatedCell, noise_of, rows_of
from weighbridge.conductor.conductor import is_clear
from weighbridge.results.features.compare_runs import RUNS, compare_runs, regressions
from weighbridge.results.features.run_guard import ComparedRun, Guarded
from weighbridge.results.figures.metrics import PRIMARY
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import compare
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.run.machine import ControlRatio, MachineRun
from weighbridge.results.run.resolved import Manifest, PlannedLayout, ResolvedPlan
from weighbridge.suites import Bounds, Objects, Operation, Suite, Workload

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from fake_layers import hardware

BLOCKS: Final = 5
MOST_BLOCKS: Final = 8
WORKERS: Final = (1, 8, 32)
OPERATIONS: Final[tuple[Operation, ...]] = ("read", "write")
RUN_CELLS: Final = tuple(
    SimulatedCell(operation, operation, workers, 64_000)
    for operation in OPERATIONS
    for workers in WORKERS
)
CELLS: Final = len(RUN_CELLS)
SHAPE: Final = (2, MOST_BLOCKS, CELLS)
"""Layouts, blocks, cells."""
CLAIMED: Final = ("better", "worse")
BURST: Final = (0.4, 0.6)
"""What other programs use of the machine's CPUs in a burst: from, to."""
MOVES: Final = 0.3
"""By how much windows of 2 s move: 0.1 to 0.5 in recorded runs of `quick`."""
PROVISIONAL_AT: Final = 2.0
BOUNDS: Final = Bounds()
WORKLOADS: Final = tuple(
    Workload(
        name=operation,
        objects=Objects(size=64_000),
        operations={operation: 100},
        workers=WORKERS,
        runtime=20.0,
    )
    for operation in OPERATIONS
)


@dataclass(frozen=True)
class Regime:
    """How repeats vary: standard deviations of logarithms, and effects (layout, block, cell)."""

    name: str
    spreads: tuple[float, float]
    more: Callable[[np.random.Generator], Array] = lambda _: np.zeros(SHAPE)
    why: str = ""
    """Why it may exceed the targets."""
    bursts: float = 0.0
    """The share of windows beside other programs, which use BURST of the machine's CPUs."""
    cost: tuple[float, float] = (0.0, 0.0)
    """What a burst takes of each layout's throughput."""
    offsets: float = 0.0
    """By how much runs differ: the standard deviation of the second layout's advantage."""
    known: int = 0
    """Earlier runs of the machine with an A/A control."""


def _outliers(draw: np.random.Generator) -> Array:
    return math.log(0.5) * (draw.random(SHAPE) < 0.1)


def _stalled_visits(draw: np.random.Generator) -> Array:
    return math.log(0.5) * np.broadcast_to(draw.random((*SHAPE[:2], 1)) < 0.1, SHAPE)


def _blocks(draw: np.random.Generator) -> Array:
    return np.broadcast_to(np.cumsum(0.1 * draw.normal(size=MOST_BLOCKS))[None, :, None], SHAPE)


def _line(draw: np.random.Generator, *, balanced: bool = True) -> Array:
    """The machine gets 4 % faster with every visit; which layout comes first is balanced or not."""
    first = np.zeros(MOST_BLOCKS)
    if balanced:
        parts = (np.arange(BLOCKS), np.arange(BLOCKS, MOST_BLOCKS))
        first = np.concatenate([draw.permutation(part % 2) for part in parts])
    places = 2 * np.arange(MOST_BLOCKS) + np.stack([first, 1 - first])
    return np.broadcast_to(0.04 * places[:, :, None], SHAPE)


def _modes(draw: np.random.Generator) -> Array:
    return math.log(0.75) * np.broadcast_to(draw.random((*SHAPE[:2], 1)) < 0.5, SHAPE)


def _modes_of_cells(draw: np.random.Generator) -> Array:
    return math.log(0.75) * (draw.random(SHAPE) < 0.5)


_WIDE = (
    "what is rare is in the spread of the run that has it, and absent from most: intervals "
    "are wide, and show less"
)
_DIFFER = "few or no known runs say little of what runs differ by"
_MODES = "two modes far apart are seen more often than the spread lets expect"
REGIMES: Final = (
    Regime("equal, 5 %", (0.05, 0.05)),
    Regime("equal, 10 %", (0.10, 0.10)),
    Regime("equal, 15 %", (0.15, 0.15)),
    Regime("unequal, 3 and 20 %", (0.03, 0.20)),
    Regime("unequal, 3 and 40 %", (0.03, 0.40)),
    Regime("outliers: 1 step in 10 at half speed", (0.04, 0.04), _outliers, _WIDE),
    Regime("outliers: 1 visit in 10 at half speed", (0.04, 0.04), _stalled_visits, _WIDE),
    Regime("drift: the machine by 10 % a block", (0.04, 0.04), _blocks),
    Regime(
        "drift: a line, 4 % a visit, balanced",
        (0.04, 0.04),
        _line,
        "what is left of a line is in the spread, not in the means",
    ),
    Regime("bimodal: deployments 25 % apart", (0.04, 0.04), _modes, _MODES),
    Regime("bimodal: steps 25 % apart", (0.04, 0.04), _modes_of_cells, _MODES),
    Regime("bursts in 15 % of windows, no cost", (0.05, 0.05), bursts=0.15),
    Regime("bursts in 15 %, both lose 26 %", (0.05, 0.05), bursts=0.15, cost=(0.26, 0.26)),
    Regime("bursts in 15 %, one loses 26 %", (0.05, 0.05), bursts=0.15, cost=(0.26, 0.0)),
    Regime(
        "bursts in 40 %, one loses 26 %",
        (0.05, 0.05),
        bursts=0.40,
        cost=(0.26, 0.0),
        why="how many windows are spoilt, and so what a run can find, differs from run to run",
    ),
    Regime("runs differ by 5 %, none known", (0.05, 0.05), offsets=0.05, why=_DIFFER),
    Regime("runs differ by 5 %, 3 known", (0.05, 0.05), offsets=0.05, known=3, why=_DIFFER),
    Regime("runs differ by 5 %, 10 known", (0.05, 0.05), offsets=0.05, known=10),
    Regime("runs do not differ, 10 known", (0.05, 0.05), known=10),
    Regime(
        "drift: a line, 4 % a visit, never balanced",
        (0.04, 0.04),
        lambda draw: _line(draw, balanced=False),
        "the second layout is 4 % ahead in truth of this machine: plans are balanced for that "
        "reason",
    ),
)


@dataclass
class SimulatedRun:
    """One run: logarithms of its figures (metric, layout, block, cell), and what went on beside."""

    logs: Array
    others: Array
    moves: Array
    earlier: tuple[MachineRun, ...]

    def judged(self, blocks: int = BLOCKS) -> Comparison:
        """The comparison of its first blocks."""
        rows = table_of(self.logs[:, :, :blocks], self.others[:, :blocks], self.moves[:, :blocks])
        return compare(rows, bounds=BOUNDS, earlier=self.earlier)


def run_of(regime: Regime, draw: np.random.Generator) -> SimulatedRun:
    """A run of a layout vs itself."""
    spreads = np.array(regime.spreads)[None, :, None, None]
    logs = spreads * noise_of(draw, *SHAPE) + DIRECTION * regime.more(draw)[None]
    others = np.zeros(SHAPE)
    if regime.bursts:
        for _ in ("first", "again"):
            # What was spoilt is measured again, and the calmer window counts.
            bursts = (draw.random(others.shape) < regime.bursts) * draw.uniform(
                *BURST, others.shape
            )
            others = np.minimum(others, bursts) if others.any() else bursts
        lost = np.log1p(-np.array(regime.cost))[:, None, None] * others / np.mean(BURST)
        logs += DIRECTION * lost[None]
    if regime.offsets:
        logs[:, 1] += DIRECTION[:, 0] * draw.normal() * regime.offsets
    moves = MOVES * draw.normal(size=others.shape)
    return SimulatedRun(logs, others, moves, tuple(_earlier(regime, draw)))


def _earlier(regime: Regime, draw: np.random.Generator) -> Iterator[MachineRun]:
    """The A/A controls of earlier runs, of one cell each."""
    for number in range(regime.known):
        logs = math.sqrt(2) * regime.spreads[0] * draw.normal(size=BLOCKS)
        logs += regime.offsets * draw.normal()
        error = float(np.std(logs, ddof=1)) / math.sqrt(BLOCKS)
        controls = tuple(
            ControlRatio(metric=metric, difference=float(np.mean(logs)), error=error)
            for metric in PRIMARY
        )
        yield MachineRun(run_id=str(number), machine="", controls=controls)


def table_of(
    logs: Array, others: Array | None = None, moves: Array | None = None
) -> tuple[Row, ...]:
    """The table of a run with these logarithms."""
    return rows_of(
        logs,
        RUN_CELLS,
        "ab"[: logs.shape[1]],
        ops_s=1000,
        p90_ms=20,
        samples=20_000,
        others=others,
        moves=moves,
    )


@dataclass
class ClaimTally:
    """Counts over many runs of one regime."""

    runs: int = 0
    claiming: int = 0
    intervals: int = 0
    held: int = 0
    promised: int = 0
    found: int = 0
    at_bound: int = 0
    equivalent: int = 0
    spans: list[float] = field(default_factory=list)
    """The differences that runs said they could find, in per cent."""

    def row(self) -> str:
        """Its line of the table."""
        shares = (
            (self.claiming, self.runs),
            (self.held, self.intervals),
            (self.found, self.promised),
            (self.equivalent, self.at_bound),
        )
        cells = [f"{100 * part / total:.1f}" if total else "-" for part, total in shares]
        return " | ".join(
            [*cells[:3], f"{float(np.median(self.spans)):.0f} %" if self.spans else "-", cells[3]]
        )


def add(tally: ClaimTally, regime: Regime, draw: np.random.Generator) -> None:
    """Count a run of a layout vs itself, one with a difference to find, and one at the bound."""
    first = run_of(regime, draw).judged()
    cells = [effect for effect in first.effects if effect.workers is not None]
    tally.runs += 1
    tally.claiming += any(effect.verdict in CLAIMED for effect in first.effects)
    for effect in cells:
        ratio = effect.ratio
        if ratio is not None and ratio.low is not None and ratio.high is not None:
            tally.intervals += 1
            tally.held += ratio.low <= 1 <= ratio.high
    place = int(draw.integers(len(cells)))
    asked = cells[place]
    if asked.smallest is not None and asked.verdict not in CLAIMED:
        metric, number = ("throughput", "p90").index(asked.metric), _cell(asked)
        run = run_of(regime, draw)
        run.logs[metric, 1, :, number] += math.log(asked.smallest)
        tally.promised += 1
        tally.spans.append(100 * (asked.smallest - 1))
        again = next(one for one in run.judged().effects if _same(one, asked))
        tally.found += again.verdict in CLAIMED
    run = run_of(regime, draw)
    run.logs[0, 1] += math.log(BOUNDS.throughput_ratio)
    run.logs[1, 1] += math.log(BOUNDS.p90_ratio)
    for effect in run.judged().effects:
        if effect.workers is not None:
            tally.at_bound += 1
            tally.equivalent += effect.verdict == "too small to matter"


def _cell(effect: Effect) -> int:
    return OPERATIONS.index(effect.operation) * len(WORKERS) + WORKERS.index(effect.workers or 0)


def _same(one: Effect, other: Effect) -> bool:
    return (one.operation, one.workers, one.metric) == (
        other.operation,
        other.workers,
        other.metric,
    )


RATIOS: Final = (1.1, 1.2, 1.3, 1.5, 2.0, 3.0)
FOUND_IN: Final = (
    Regime("quiet, 5 %", (0.05, 0.05)),
    Regime("quiet, 10 %", (0.10, 0.10)),
    Regime("bursts in 15 %, no cost", (0.05, 0.05), bursts=0.15),
    Regime("bursts in 15 %, both lose 26 %", (0.05, 0.05), bursts=0.15, cost=(0.26, 0.26)),
    Regime("bursts in 15 %, one loses 26 %", (0.05, 0.05), bursts=0.15, cost=(0.0, 0.26)),
    Regime("runs differ by 5 %, 10 known", (0.05, 0.05), offsets=0.05, known=10),
)


def print_found(runs: int) -> None:
    """Print the table of cells that are found, by ratio."""
    head = " | ".join(f"{ratio:g}x" for ratio in RATIOS)
    print(f"\n| cells found at | {head} | provisional at 2x | claimed of the wrong sign |")
    print(f"| --- |{' ---: |' * (len(RATIOS) + 2)}")
    for number, regime in enumerate(FOUND_IN):
        shares, provisional, wrong = [], 0.0, 0
        for ratio in RATIOS:
            cells = []
            for run in range(runs):
                simulated = run_of(regime, np.random.default_rng([7, number, run]))
                simulated.logs[:, 1] += DIRECTION[:, 0] * math.log(ratio)
                cells += [e for e in simulated.judged().effects if e.workers is not None]
            verdicts = Counter(effect.verdict for effect in cells)
            shares.append(f"{100 * verdicts['better'] / len(cells):.0f}")
            wrong += verdicts["worse"]
            if ratio == PROVISIONAL_AT:
                provisional = 100 * verdicts["provisional"] / len(cells)
        print(f"| {regime.name} | {' | '.join(shares)} | {provisional:.1f} | {wrong} |", flush=True)


ENDED_IN: Final = (
    Regime("5 %", (0.05, 0.05)),
    Regime("15 %", (0.15, 0.15)),
    Regime("5 and 20 %", (0.05, 0.20)),
    Regime("5 %, 4 % faster a visit", (0.05, 0.05), _line),
)


def print_ended(runs: int) -> None:
    """Print the table of what further blocks add."""
    rules = (f"{BLOCKS} blocks", "until all is clear")
    head = " | ".join(f"{rule}: wrong | claimed | blocks" for rule in rules)
    print(f"\n| repeats vary by | ratio | {head} |\n| --- |{' ---: |' * (1 + 3 * len(rules))}")
    for number, regime in enumerate(ENDED_IN):
        for ratio in (1.0, 1.3):
            wrong, claimed, blocks = np.zeros(2), np.zeros(2), np.zeros(2)
            for run in range(runs):
                simulated = run_of(regime, np.random.default_rng([5, number, run]))
                simulated.logs[:, 1] += DIRECTION[:, 0] * math.log(ratio)
                looks = [simulated.judged()]
                while len(looks) <= MOST_BLOCKS - BLOCKS and not is_clear(looks[-1]):
                    looks.append(simulated.judged(BLOCKS + len(looks)))
                false = {"worse", "better" if ratio == 1 else "too small to matter"}
                for rule, count in enumerate((1, len(looks))):
                    effects = looks[count - 1].effects
                    cells = [effect.verdict for effect in effects if effect.workers is not None]
                    wrong[rule] += any(effect.verdict in false for effect in effects) / runs
                    claimed[rule] += sum(map(CLAIMED.__contains__, cells)) / len(cells) / runs
                    blocks[rule] += (BLOCKS + count - 1) / runs
            figures = " | ".join(
                f"{100 * wrong[rule]:.1f} | {100 * claimed[rule]:.0f} | {blocks[rule]:.1f}"
                for rule in range(len(rules))
            )
            print(f"| {regime.name} | {ratio:g}x | {figures} |", flush=True)


def day(draw: np.random.Generator, between: float, slower: float = 0.0) -> ComparedRun:
    """A run on its own day: days vary by a standard deviation; cells share half the variance."""
    share = math.sqrt(0.5) * between * (draw.normal() + draw.normal(size=CELLS)) - slower
    steps = share + 0.05 * draw.normal(size=(BLOCKS, CELLS))
    return PLANNED.model_copy(update={"rows": table_of(np.stack([steps, -steps])[:, None])})


def _planned() -> ComparedRun:
    suite = Suite(
        name="made-up", about="made up", workloads=WORKLOADS, repeats=BLOCKS, layouts=("a",)
    )
    layout = PlannedLayout(name="a", about="made up", gateway="rgw", release="none-0")
    manifest = Manifest(
        run_id="made-up", suite="made-up", state="done", created_at="2014-11-04T12:00:00Z"
    )
    plan = ResolvedPlan(
        suite=suite, hardware=hardware(), layouts=(layout,), passes={}, structures={}
    )
    return ComparedRun(folder=Path(), manifest=manifest, plan=plan, rows=())


PLANNED: Final = _planned()


def worse(a: ComparedRun, b: ComparedRun, history: Sequence[ComparedRun]) -> bool:
    """Whether B is called worse than A anywhere."""
    guarded = Guarded(same=(), unknown=(), unlike=(), differs=())
    return bool(regressions(compare_runs(a, b, [("a", "a")], guarded, history)))


def alone(a: ComparedRun, b: ComparedRun) -> bool:
    """The same by the repeats of the two runs alone."""
    rows = [
        row.model_copy(update={"layout": side})
        for side, run in (("A", a), ("B", b))
        for row in run.rows
    ]
    return any(effect.verdict == "worse" for effect in compare(rows, bounds=BOUNDS).effects)


def print_regressions(runs: int) -> None:
    """Print the table of regressions."""
    counts = (RUNS, 6)
    known = " | ".join(f"{count} runs known: false | found" for count in counts)
    print(
        f"\n| days differ by | repeats alone: false | {known} "
        f"|\n|{' ---: |' * (2 + 2 * len(counts))}"
    )
    for between in (0.0, 0.03, 0.10):
        lone, false, found = 0, dict.fromkeys(counts, 0), dict.fromkeys(counts, 0)
        for run in range(runs):
            draw = np.random.default_rng([41, round(100 * between), run])
            a, b = day(draw, between), day(draw, between)
            slow = day(draw, between, slower=math.log(1 / 0.7))
            earlier = [day(draw, between) for _ in range(max(counts) - 1)]
            lone += alone(a, b)
            for count in counts:
                false[count] += worse(a, b, earlier[: count - 1])
                found[count] += worse(a, slow, earlier[: count - 1])
        cells = " | ".join(
            f"{100 * false[count] / runs:.1f} | {100 * found[count] / runs:.1f}" for count in counts
        )
        print(f"| {between:.0%} | {100 * lone / runs:.1f} | {cells} |", flush=True)


def main() -> None:
    """Print the tables in Markdown, as in docs/statistics.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000, help="of each line")
    parser.add_argument("--regime", default="", help="only those with these words")
    options = parser.parse_args()
    runs = options.runs
    began_s = time.monotonic()
    print(
        "| repeats vary by | any claim | covered by 95 % intervals | found, of 80 "
        "| median of that | equivalent at the bound |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for number, regime in enumerate(REGIMES):
        if options.regime not in regime.name:
            continue
        tally = ClaimTally()
        for run in range(runs):
            add(tally, regime, np.random.default_rng([2014, number, run]))
        print(f"| {regime.name}{' *' if regime.why else ''} | {tally.row()} |", flush=True)
    if not options.regime:
        for regime in REGIMES:
            if regime.why:
                print(f"\\* {regime.name}: {regime.why}.")
        print_found(runs // 2)
        print_ended(runs // 2)
        print_regressions(runs // 2)
    print(
        f"\n{runs} runs per line, n = {BLOCKS}, {2 * CELLS} cells; "
        f"{time.monotonic() - began_s:.0f} s"
    )


if __name__ == "__main__":
    main()
