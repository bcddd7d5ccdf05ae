"""Comparing two runs: the layouts of B each against its own in A, cell by cell, with the verdicts that `results.comparing` gives.

The repeats of one run are interleaved with each other, never with those of another: what changed on the machine between the two
runs is in every difference, and no test can tell it from the gateways. Guard facts keep out what is known to have changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ground.document import did_you_mean
from ground.errors import UsageError
from results.comparing import contrasts, effect, judge
from results.comparison import Comparison, Effect
from results.guard import Guarded
from results.kinds import kind_of, subjects
from results.noise import floors
from results.weighed import Weighed


def match(a: Weighed, b: Weighed, asked: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Pairs of layouts, of A and of B: those asked for as `A=B` or as one name, else all that are in both by name.

    Raises UsageError when there is none, or one is not in its run.
    """
    if not asked:
        pairs = tuple((name, name) for name in a.layouts if name in b.layouts)
        if not pairs:
            raise UsageError(
                f"no layout is in both runs: A has {', '.join(a.layouts)}; B has {', '.join(b.layouts)}",
                advice="Say which of A is to be compared with which of B: --layouts A=B,...",
            )
        return pairs
    pairs = tuple((one, other or one) for one, _, other in (text.partition("=") for text in asked))
    sides = (("A", a, [one for one, _ in pairs]), ("B", b, [other for _, other in pairs]))
    strange = [
        f"{side} has no layout {name!r}{did_you_mean(name, list(run.layouts))}"
        for side, run, names in sides
        for name in names
        if name not in run.layouts
    ]
    if strange:
        raise UsageError("; ".join(strange), advice="Layouts are named as in the tables of their runs.")
    if len(set(pairs)) < len(pairs):
        raise UsageError("a pair of layouts is named twice", advice="Name each once: --layouts A=B,...")
    return pairs


def compare_runs(a: Weighed, b: Weighed, pairs: Sequence[tuple[str, str]], guarded: Guarded) -> Comparison:
    """Each layout of B against its own of A, in what both measured; thresholds are those of the suite of A.

    Names of layouts have their run in brackets. The noise floor is that of either run that made an A/A trial, the larger of two.
    """
    rows = [
        row.model_copy(update={"layout": called(row.layout, side)})
        for side, run in (("A", a), ("B", b))
        for row in run.rows
        if row.layout not in run.plan.twins
    ]
    noise = tuple(floor for run in (a, b) for floor in floors(run.rows, run.plan.twins))
    sides = [(called(one, "A"), called(other, "B")) for one, other in pairs]
    judged, tests = judge(contrasts(rows, sides), a.plan.suite.bounds, noise)
    # What B calls differently it does not measure alike: the guard facts say so.
    names = subjects(rows[::-1])
    return Comparison(
        baseline="A",
        subjects=tuple(dict.fromkeys(subject for _, subject in sides)),
        effects=tuple(effect(names[kind_of(one.contrast.baseline)], one) for one in judged),
        noise=noise,
        tests=tests,
        unlike=tuple(one.text for one in guarded.unlike),
    )


def called(layout: str, side: str) -> str:
    """A layout with the run that it is of: `swift (A)`."""
    return f"{layout} ({side})"


def regressions(comparison: Comparison) -> tuple[Effect, ...]:
    """Where B is worse than A, beyond threshold and noise."""
    return tuple(one for one in comparison.effects if one.verdict == "worse")


def claims(comparison: Comparison) -> bool:
    """Whether any verdict was possible at all: somewhere both sides were ranked, with enough repeats for a claim."""
    return any(one.verdict not in ("provisional", "not comparable") for one in comparison.effects)


def lost(a: Weighed, b: Weighed, pairs: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """What is valid in A and was measured in B as well, but is not valid there: where, and why not."""
    of_b = {(row.layout, kind_of(row), row.workers): row for row in b.rows}
    found = []
    for one, other in pairs:
        for row in a.rows:
            after = of_b.get((other, kind_of(row), row.workers))
            if row.layout == one and row.valid and after is not None and not after.valid:
                why = next((note for note in after.notes if note != "not valid"), "not valid").splitlines()[0]
                found.append(f"{called(other, 'B')}, {row.workload}, {row.workers} workers: {why}")
    return tuple(dict.fromkeys(found))
