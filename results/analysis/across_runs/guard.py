"""Guard facts: what two runs must have in common for a difference between them to mean anything.

The facts are those that reviewers of storage figures ask for (Traeger, Zadok and others 2008) and
that pyperf checks before it compares two files. A fact known of only one run counts as different;
one known of neither is reported as unknown. What runs are compared for, releases and settings, is
not guarded: it is listed with the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Final, Literal, get_args

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import UsageError
from weighbridge.common.record import Record
from weighbridge.results.analysis.across_runs.compared_run import ComparedRun
from weighbridge.results.analysis.across_runs.guard_facts import (
    GUARD_FACTS,
    Facts,
    all_facts,
    computed_names,
    planned,
)

ALL: Final = "all"
NOT_KNOWN: Final = "not known"
NOT_RECORDED: Final = "not recorded"


DifferenceKind = Literal["differs", "computed", "not recorded"]
"""`computed`: one run has the setting from its layout's file, the other one from the size of the
hosts, as the sizing rule has it. `not recorded`: of one run.
"""


class Difference(Record):
    """One thing in which two runs differ, or that is recorded in only one of them."""

    fact: str
    """The guard fact, or the kind of setting."""
    of: str = ""
    """Its host, layout or setting; empty if it is of the run."""
    a: str
    b: str
    kind: DifferenceKind = "differs"

    @property
    def text(self) -> str:
        """`kernel: 6.1 in A, 6.12 in B`, with `of` in brackets."""
        return f"{self.fact}{f' ({self.of})' if self.of else ''}: {self.a} in A, {self.b} in B"


class Guarded(Record):
    """What two runs have in common and what not."""

    same: tuple[str, ...]
    """Guard facts that are known and equal."""
    unknown: tuple[str, ...]
    """Guard facts known of neither run."""
    unlike: tuple[Difference, ...]
    """Guard facts that differ and were allowed to."""
    differs: tuple[Difference, ...]
    """What may differ, and is the point of comparing."""


def guard(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]], despite: Sequence[str] = ()
) -> Guarded:
    """Check the guard facts of two runs, for pairs of layouts of A and B.

    `despite` names guard facts that may differ, or `all`. Raises UsageError if others differ, or
    for unknown names.
    """
    refuse_unknown(despite)
    theirs = {one.name for one in b.plan.suite.workloads}
    shared = [one.name for one in a.plan.suite.workloads if one.name in theirs]
    labels = [one if one == other else f"{one} and {other}" for one, other in pairs]
    of_a, of_b = (
        all_facts(run, shared, dict(zip(labels, [pair[side] for pair in pairs], strict=True)))
        for side, run in enumerate((a, b))
    )
    facts = {name: (of_a[name], of_b[name]) for name in GUARD_FACTS}
    unlike = tuple(chain.from_iterable(differences(name, *sides) for name, sides in facts.items()))
    refused = [one for one in unlike if ALL not in despite and one.fact not in despite]
    if refused:
        lines = "\n".join(f"  {one.text}" for one in refused)
        named = ",".join(dict.fromkeys(one.fact for one in refused))
        raise UsageError(
            f"the two runs differ in what decides their figures:\n{lines}",
            advice="A difference between them would say nothing about the gateways. To compare "
            f"them anyway: --despite {named}",
        )
    differing = {one.fact for one in unlike}
    return Guarded(
        same=tuple(name for name, sides in facts.items() if any(sides) and name not in differing),
        unknown=tuple(name for name, sides in facts.items() if not any(sides)),
        unlike=unlike,
        differs=tuple(settings_apart(a, b, pairs)),
    )


def refuse_unknown(despite: Sequence[str]) -> None:
    """Raise UsageError for names that are no guard facts; `all` is one."""
    unknown = [name for name in despite if name not in (*GUARD_FACTS, ALL)]
    if unknown:
        hints = ", ".join(
            f"no guard fact {name!r}{did_you_mean(name, [*GUARD_FACTS, ALL])}" for name in unknown
        )
        raise UsageError(
            hints,
            advice=f"Guard facts are {', '.join(GUARD_FACTS)}; `all` means every one of them.",
        )


def planned_differences(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]]
) -> tuple[Difference, ...]:
    """How the plans of layouts of A and B differ: release, places and settings."""
    return tuple(
        difference
        for one, other in pairs
        for difference in _settings_of(a, b, one, other, planned(a, one), planned(b, other))
    )


def _settings_of(
    a: ComparedRun, b: ComparedRun, one: str, other: str, of_a: Facts, of_b: Facts
) -> list[Difference]:
    """In what the settings of a layout of A and one of B differ; what matters most comes first."""
    computed = computed_names(a, one) ^ computed_names(b, other)
    apart = [
        found.model_copy(update={"kind": "computed"})
        if found.kind == "differs" and found.of in computed
        else found
        for found in differences(
            one if one == other else f"{one} → {other}", of_a, of_b, missing=NOT_RECORDED
        )
    ]
    return [found for of_kind in by_kind(apart).values() for found in of_kind]


def by_kind(found: Sequence[Difference]) -> dict[DifferenceKind, tuple[Difference, ...]]:
    """Differences of each kind, of which there are some; those that matter most first."""
    kinds: tuple[DifferenceKind, ...] = get_args(DifferenceKind)
    each = {kind: tuple(one for one in found if one.kind == kind) for kind in kinds}
    return {kind: some for kind, some in each.items() if some}


def differences_csv(guarded: Guarded) -> str:
    """All differences as CSV, those of guard facts first."""
    return csv_lines(
        ("guard", "fact", "of", "a", "b"),
        (
            (guards, one.fact, one.of, one.a, one.b)
            for guards, found in ((True, guarded.unlike), (False, guarded.differs))
            for one in found
        ),
    )


def differences(
    fact: str, one: Mapping[str, str], other: Mapping[str, str], missing: str = NOT_KNOWN
) -> list[Difference]:
    """In what two sets of facts differ; `missing` stands for what one lacks."""
    names = dict.fromkeys((*one, *other))
    return [
        Difference(
            fact=fact,
            of=name,
            a=one.get(name, missing),
            b=other.get(name, missing),
            kind="not recorded"
            if missing == NOT_RECORDED and (name not in one or name not in other)
            else "differs",
        )
        for name in names
        if one.get(name) != other.get(name)
    ]


# ---- what may differ

_GUARDED_BELOW: Final = ("replicas", "acknowledgement", "mtu", "kernel", "machine", "verified")
"""Facts of layouts that are guarded, or that say what was done rather than set."""
_PASSING: Final = ("load before", "hardware", "cpu", "cpus", "memory", "kernel")
"""Facts of the machine that are guarded, or momentary."""


def settings_apart(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]]
) -> list[Difference]:
    """Everything else that differs, or is recorded in only one run."""
    general = [
        ("weighbridge", a.manifest.weighbridge_version, b.manifest.weighbridge_version),
        ("begun at", a.manifest.created_at, b.manifest.created_at),
        ("suite", a.plan.suite.name, b.plan.suite.name),
        ("repeats", str(a.plan.suite.repeats), str(b.plan.suite.repeats)),
        ("layouts", ", ".join(a.layouts), ", ".join(b.layouts)),
        (
            "workloads",
            *(
                ", ".join(
                    f"{one.name} at {'/'.join(map(str, one.workers))}"
                    for one in run.plan.suite.workloads
                )
                for run in (a, b)
            ),
        ),
    ]
    found = [
        Difference(fact=name, a=one or NOT_KNOWN, b=other or NOT_KNOWN)
        for name, one, other in general
        if one != other
    ]
    found += differences("machine", _passing(a), _passing(b), missing=NOT_RECORDED)
    for one, other in pairs:
        of_a, of_b = (
            {**planned(run, name), **_deployed(run, name)} for run, name in ((a, one), (b, other))
        )
        found += _settings_of(a, b, one, other, of_a, of_b)
    return found


def _passing(run: ComparedRun) -> Facts:
    facts = run.facts(title="machine").items()
    return {
        name: text
        for name, text in facts
        if name not in _PASSING and not name.startswith("sysctl ")
    }


def _deployed(run: ComparedRun, name: str) -> Facts:
    facts = run.facts(name).items()
    return {
        fact: text
        for fact, text in facts
        if fact not in _GUARDED_BELOW and not fact.startswith(("limits ", "image "))
    }
