from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID
from weighbridge.common.record import Record
from weighbridge.results.analysis.across_runs.guard import ComparedRun, Guarded
from weighbridge.results.analysis.across_runs.runs_comparison import (
    RUNS,
    MissingCell,
    claims,
    regressions,
    unjudged,
)
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.words import verdict_words
from weighbridge.results.figures import counted
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

DRIFT: Final = (
    "The runs were not interleaved: what changed on the machine between them is part of every "
    "difference"
)


class RunsVerdict(Record):
    """What a comparison of two runs ends with."""

    exit_code: int
    """0; 1 for a regression that was asked about; 4 if it could not have been found."""
    answer: str = ""
    """Why it is not 0, in a sentence; empty if it is."""
    details: tuple[str, ...] = ()
    """What that is about, a line each."""


class RunsSummary(Record):
    """Two compared runs."""

    a: ComparedRun
    b: ComparedRun
    guarded: Guarded
    comparison: Comparison
    lost: tuple[str, ...]
    """What was comparable in A and is not in B, with what is missing there."""
    missing: tuple[MissingCell, ...] = ()
    """Of which B has no result."""
    verdict: RunsVerdict
    earlier: int
    """How many earlier runs of the same thing as A were given."""

    @property
    def headline(self) -> str:
        return self.verdict.answer or next(iter(verdict_words(self.comparison)))

    @property
    def drift_words(self) -> str:
        """What it means that the runs were not interleaved."""
        return drift_words(self.a, self.b, self.earlier)


def drift_words(a: ComparedRun, b: ComparedRun, earlier: int) -> str:
    """What it means that two runs were not interleaved, with so many earlier runs known."""
    if a.manifest.run_id == b.manifest.run_id:
        return "A and B are the same run: a layout compared with itself there cannot differ."
    if earlier + 1 < RUNS:
        return f"{DRIFT}; two earlier runs of A (--history) are needed to tell how much."
    return f"{DRIFT}; intervals include it, from A and {earlier} earlier runs of the same thing."


def runs_verdict(
    comparison: Comparison,
    a: ComparedRun,
    earlier: int,
    *,
    fail_on_regression: bool,
    gone: Sequence[MissingCell] = (),
) -> RunsVerdict:
    """The verdict on B and A, with so many earlier runs; `gone`: cells of which B has no result."""
    if all(effect.ratio is None for effect in comparison.effects):
        return RunsVerdict(exit_code=EXIT_INVALID, answer="Nothing could be compared.")
    if not fail_on_regression:
        return RunsVerdict(exit_code=EXIT_FINE)
    if earlier + 1 < RUNS:
        times = "once" if earlier + 2 == RUNS else "twice"
        again = f": {shlex.join(a.manifest.command)}" if a.manifest.command else "."
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=(
                f"Whether B is worse cannot be judged: that needs {RUNS} runs of the same "
                "thing, A included, which show how far such runs differ."
            ),
            details=(
                f"Measure the same as A {times} more{again}",
                "Then name these runs: --history RUN --history RUN",
            ),
        )
    worse = regressions(comparison)
    if worse:
        return RunsVerdict(
            exit_code=EXIT_DIFFERENCE,
            answer=f"B is worse than A: {len(worse)} of {len(comparison.effects)} comparisons.",
            details=tuple(effect.text for effect in worse),
        )
    if not claims(comparison):
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=f"No comparison has {REPEATS_FOR_A_CLAIM} repeats on each side and no doubt: a "
            "regression could not have been found.",
        )
    left = unjudged(a, comparison)
    if left or gone:
        open_ones = f"Provisional or not comparable: {counted(len(left), 'comparison')} that A has "
        why = [f"{open_ones}results for."] if left else []
        if gone:
            why.append(f"Not measured in B: {counted(len(gone), 'cell')} that A has results for.")
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=" ".join([*why, "B may be worse."]),
            details=(*(one.text for one in left), *(one.text for one in gone)),
        )
    return RunsVerdict(exit_code=EXIT_FINE)
