"""The last slides of a talk: its limits, and how to repeat the run."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Final

from weighbridge.results.analysis.kinds import kind_of
from weighbridge.results.analysis.power_mark import loss_words, marks_of, with_losses
from weighbridge.results.analysis.sameness import verdict, warnings
from weighbridge.results.figures import counted, listed, upper
from weighbridge.results.slides.evidence import Evidence, rests_on
from weighbridge.results.slides.slide import Slide

LINES: Final = 5
"""The most faults on the slide; the notes have all."""
_VERSIONS: Final = ("gateway", "radosgw", "packages")


def closing(evidence: Evidence) -> tuple[Slide, ...]:
    """Limits, and how to repeat the run."""
    return (_limits(evidence), repeat(evidence))


def _limits(evidence: Evidence) -> Slide:
    faults = (
        *(f"{upper(gap)}." for gap in evidence.gaps),
        *(f"{upper(one.text)}." for one in evidence.reasons),
        *_faults(evidence),
    )
    more = len(faults) - LINES
    shown = (*faults[:LINES], f"{more} more: see the notes.") if more > 0 else faults
    would = evidence.remedy
    hosts = (
        f"{verdict(evidence.attested, evidence.layouts)}."
        if evidence.attested
        else "The hosts were not attested."
    )
    return Slide(
        key="limits",
        title=_title(evidence),
        lines=(
            *shown,
            *([f"{would.says.removesuffix('.')}."] if would is not None else []),
            hosts,
            *loop_words(evidence),
        ),
        notes=(
            *faults,
            *_fewer_repeats(evidence),
            hosts,
            *warnings(evidence.attested),
            f"Repeats: {rests_on(*evidence.repeats)}.",
            *([f"{would.says}: {would.command}"] if would is not None and would.command else []),
            *_end_words(evidence),
        ),
    )


def loop_words(evidence: Evidence) -> tuple[str, ...]:
    """What a closed loop measures; empty where a workload has a fixed rate."""
    if any(workload.rate_per_s is not None for workload in evidence.plan.suite.workloads):
        return ()
    words = "A closed loop: each worker waits for its answer, so this measures capacity"
    return (f"{words}, not what users experience.",)


def _title(evidence: Evidence) -> str:
    cells = len(evidence.rows)
    bad = [row for row in evidence.rows if not row.ranked]
    if evidence.manifest.state != "done":
        lacking = (
            f"{len(bad)} of {counted(cells, 'figure')} do not count"
            if bad
            else "some figures have fewer repeats"
        )
        return f"The run is not complete ({evidence.manifest.state}): {lacking}"
    if bad:
        marked = {
            cell for one in evidence.reasons if one.status == "provisional" for cell in one.cells
        }
        rest = {(row.layout, kind_of(row), row.workers) for row in evidence.rows if row.ranked}
        others = "; the others are provisional" if rest and rest <= marked else ""
        return (
            f"{len(bad)} of {counted(cells, 'figure')} {'does' if len(bad) == 1 else 'do'} not "
            f"count{others}"
        )
    marks = marks_of([row.power for row in evidence.rows])
    counts = f"{_all_of(cells)} of {counted(evidence.repeats[0], 'repeat')} or more"
    if loss_words(marks):
        return with_losses(_in_doubt(evidence) or counts, marks)
    return _in_doubt(evidence) or f"{counts}, and nothing is in doubt"


def _in_doubt(evidence: Evidence) -> str:
    """How many figures are not comparable, else provisional; empty where none is in doubt."""
    for status in ("not comparable", "provisional"):
        touched = {cell for one in evidence.reasons if one.status == status for cell in one.cells}
        if touched:
            cells = {(row.layout, kind_of(row), row.workers) for row in evidence.rows}
            if touched >= cells:
                return f"{_all_of(len(cells))} {status}"
            return (
                f"{len(touched)} of {counted(len(cells), 'figure')} "
                f"{'is' if len(touched) == 1 else 'are'} {status}"
            )
    return ""


def _all_of(cells: int) -> str:
    return "The one figure is" if cells == 1 else f"All {cells} figures are"


def _faults(evidence: Evidence) -> Iterator[str]:
    called, fewer = evidence.called, Counter[int]()
    for row in evidence.rows:
        where = f"{row.layout}, {called[kind_of(row)]} at {counted(row.workers, 'worker')}"
        if row.ranked and (errors := row.count("errors")):
            left_out = row.repeats < evidence.plan.suite.repeats
            bound = (
                "; repeats beyond the bound are left out" if left_out else ", all within the bound"
            )
            yield f"{where}: {counted(errors, 'request')} failed{bound}."
        if row.ranked and row.repeats < evidence.plan.suite.repeats:
            fewer[row.repeats] += 1
    if fewer:
        counts = [
            f"{repeats} in {counted(count, 'figure')}" for repeats, count in sorted(fewer.items())
        ]
        yield f"Fewer than {evidence.plan.suite.repeats} repeats count: {listed(counts)}."


def _fewer_repeats(evidence: Evidence) -> Iterator[str]:
    for row in evidence.rows:
        if row.ranked and row.repeats < evidence.plan.suite.repeats:
            where = (
                f"{row.layout}, {evidence.called[kind_of(row)]} at {counted(row.workers, 'worker')}"
            )
            yield (
                f"{where}: {row.repeats} of {evidence.plan.suite.repeats} repeats count "
                f"({'; '.join(row.notes)})."
            )


def _end_words(evidence: Evidence) -> Iterator[str]:
    if evidence.manifest.error:
        yield f"The run ended with: {evidence.manifest.error}"


def repeat(evidence: Evidence) -> Slide:
    """The last slide: the command, versions and facts."""
    manifest, plan = evidence.manifest, evidence.plan
    version = manifest.weighbridge_version or "(version not recorded)"
    releases = list(dict.fromkeys(layout.release for layout in plan.layouts if layout.release))
    facts = [
        (
            f"Weighbridge {version}, suite {plan.suite.name}, hardware {plan.hardware.name}, seed "
            f"{plan.suite.seed}."
        ),
        f"Releases: {', '.join(releases)}." if releases else "",
        f"Run {manifest.run_id}, started {manifest.created_at[:16].replace('T', ' ')} UTC.",
        "The run folder has all histograms, seconds, settings and configuration files.",
    ]
    return Slide(
        key="repeat",
        title="The run can be repeated with one command"
        if manifest.command
        else "The command of this run was not recorded",
        code=shlex.join(manifest.command),
        lines=tuple(fact for fact in facts if fact),
        notes=(
            *(fact for fact in facts if fact),
            *(
                f"{layout}: {name} {facts_of[name]}"
                for layout, facts_of in evidence.facts.items()
                for name in _VERSIONS
                if name in facts_of
            ),
            *(
                f"{name}: {value}"
                for sheet in manifest.sheets
                if sheet.layout is None
                for name, value in sheet.facts.items()
            ),
        ),
    )
