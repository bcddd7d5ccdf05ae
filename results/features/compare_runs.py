"""Comparing two runs: each layout of B with its counterpart in A, cell by cell, with the verdicts
of `results.judge.comparing`.

Repeats are interleaved within a run, never between runs: whatever changed on the machine between
the two runs is part of every difference, and no test can separate it from the gateways. Guard facts
and attestation exclude known changes; how far runs of the same thing differ otherwise is estimated
from earlier runs. Without those every verdict is provisional.

Repeats of a run share its start, its files on the disks and the state of the machine. Two runs of
the same thing therefore differ by more than the repeats of either suggest: comparing them alone
calls 17 to 66 % of such pairs different somewhere. With earlier runs of the same thing as A the
scatter is known: A and those are samples of one distribution, B is one more. The standard error of
the difference is then at least the standard deviation of the runs times the root of two (it
includes the repeats' own part), with as many degrees of freedom as there are runs less one
(`across_runs`). How often an unchanged B is called worse: benchmarks/claims.py, table in
docs/statistics.md.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import stdev
from typing import Final
from xml.etree import ElementTree as ET

from weighbridge.common.document import did_you_mean
from weighbridge.common.errors import EXIT_DIFFERENCE, EXIT_FINE, EXIT_INVALID, UsageError
from weighbridge.common.escaping import escape_controls
from weighbridge.results.features.run_guard import ComparedRun, Guarded, guard, planned_differences
from weighbridge.results.figures.doubt import Doubt, PairDoubt, graves
from weighbridge.results.figures.metrics import METRICS, PRIMARY
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM, TTest
from weighbridge.results.figures.summary import Row
from weighbridge.results.judge.comparing import (
    at_workers,
    comparable,
    contrasts,
    judge,
    reason,
    with_sentences,
    with_test,
)
from weighbridge.results.judge.comparison import (
    Comparison,
    Effect,
    Kind,
    Verdict,
    kind_of,
    subjects,
)
from weighbridge.results.judge.host_equality import host_doubts
from weighbridge.results.judge.words import verdict_words
from weighbridge.results.numbers import counted
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.page import render
from weighbridge.results.show.report import effects_grid
from weighbridge.results.show.table import Filled, escape
from weighbridge.results.show.tables import EFFECTS, effect_lines, effect_notes

Place = tuple[Kind, str, int | None, str]
"""What identifies a cell across runs: workload of requests, layout, workers (None: all), metric."""

OPEN: Final[tuple[Verdict, ...]] = ("provisional", "not comparable")
"""Verdicts that claim nothing and rule nothing out."""


def match(a: ComparedRun, b: ComparedRun, asked: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Pairs of layouts of A and B: those requested, as `A=B` or one name, else all common names.
    Raises UsageError if there is none, or one is not in its run.
    """
    if not asked:
        pairs = tuple((name, name) for name in a.layouts if name in b.layouts)
        if not pairs:
            raise UsageError(
                f"no layout is in both runs: A has {', '.join(a.layouts)}; B has "
                f"{', '.join(b.layouts)}",
                advice="Say which layout of A to compare with which of B: --layouts A=B,...",
            )
        return pairs
    pairs = tuple((one, other or one) for one, _, other in (text.partition("=") for text in asked))
    unknown = [
        f"{side} has no layout {pair[place]!r}{did_you_mean(pair[place], list(run.layouts))}"
        for place, (side, run) in enumerate((("A", a), ("B", b)))
        for pair in pairs
        if pair[place] not in run.layouts
    ]
    if unknown:
        raise UsageError(
            "; ".join(unknown), advice="Layouts are named as in the tables of their runs."
        )
    if len(set(pairs)) < len(pairs):
        raise UsageError(
            "a pair of layouts is named twice", advice="Name each once: --layouts A=B,..."
        )
    return pairs


def _check_history(
    a: ComparedRun,
    b: ComparedRun,
    history: Sequence[ComparedRun],
    pairs: Sequence[tuple[str, str]],
    despite: Sequence[str] = (),
) -> None:
    """Check that earlier runs are of the same thing as A. Raises UsageError if a guard fact,
    setting or host differs, a layout is lacking, or one is given twice.
    """
    seen = {a.manifest.run_id: "A", b.manifest.run_id: "B"}
    same = [(layout, layout) for layout in dict.fromkeys(one for one, _ in pairs)]
    for run in history:
        name = run.manifest.run_id
        if name in seen:
            raise UsageError(
                f"{name} is {seen[name]} and also given as an earlier run",
                advice="Scatter from run to run needs different runs.",
            )
        seen[name] = "one of the earlier runs"
        advice = "Name earlier runs of the same suite and settings as A, on equal hosts."
        lacking = [layout for layout, _ in same if layout not in run.layouts]
        if lacking:
            raise UsageError(f"{name} has no layout {lacking[0]!r}", advice=advice)
        other = f"{name} is not an earlier run of the same thing as A:"
        unlike = "".join(f"\n  {one.text}" for one in planned_differences(a, run, same))
        if unlike:
            raise UsageError(f"{other}{unlike}", advice=advice)
        try:
            guard(a, run, same, despite)
        except UsageError as error:
            raise UsageError(f"{other} {error}", advice=error.advice) from error
        apart = graves(one.doubt for one in hosts_apart(a, run, same, "earlier"))
        if apart:
            raise UsageError(f"{other} its hosts differ: {apart[0].words}", advice=advice)


def summarize(
    a: ComparedRun,
    b: ComparedRun,
    history: Sequence[ComparedRun] = (),
    *,
    layouts: Sequence[str] = (),
    despite: Sequence[str] = (),
    fail_on_regression: bool = False,
) -> RunsSummary:
    """Compare B with A: pairs of `layouts` (`match`), `despite` differences in guard facts, with
    earlier runs of the same thing as A. Raises UsageError where they cannot be compared.
    """
    pairs = match(a, b, layouts)
    guarded = guard(a, b, pairs, despite)
    _check_history(a, b, history, pairs, despite)
    comparison = compare_runs(a, b, pairs, guarded, history)
    lost = _lost(a, b, pairs, chosen=bool(layouts))
    missing = tuple(cell for cell in lost if not cell.measured)
    verdict = RunsVerdict(exit_code=EXIT_FINE)
    if all(effect.ratio is None for effect in comparison.effects):
        verdict = RunsVerdict(exit_code=EXIT_INVALID, answer="Nothing could be compared.")
    elif fail_on_regression:
        verdict = _verdict(comparison, a, len(history), missing)
    return RunsSummary(
        a=a,
        b=b,
        guarded=guarded,
        comparison=comparison,
        lost=tuple(dict.fromkeys(cell.text for cell in lost)),
        missing=missing,
        verdict=verdict,
        earlier=len(history),
    )


def compare_runs(
    a: ComparedRun,
    b: ComparedRun,
    pairs: Sequence[tuple[str, str]],
    guarded: Guarded,
    history: Sequence[ComparedRun] = (),
) -> Comparison:
    """Compare each layout of B with its counterpart in A, in everything both measured.

    Thresholds are those of A's suite. `history` are earlier runs of the same thing as A
    (checked), whose scatter is part of every interval; without enough of them verdicts are
    provisional. Layouts are named with their run in brackets.
    """
    rows = [*_rows(a, "A"), *_rows(b, "B")]
    sides = [(_labelled(one, "A"), _labelled(other, "B")) for one, other in pairs]
    known = _figures(a, history, [one for one, _ in pairs])
    found = [
        _across(one, known.get(_place(one), ()))
        for one in contrasts(rows, sides, hosts_apart(a, b, pairs))
    ]
    judged, tests = judge(found, a.plan.suite.bounds)
    return Comparison(
        baseline="A",
        subjects=tuple(dict.fromkeys(subject for _, subject in sides)),
        effects=with_sentences(judged),
        tests=tests,
        unlike=tuple(one.text for one in guarded.unlike),
    )


def _rows(run: ComparedRun, side: str) -> Iterator[Row]:
    for row in run.rows:
        if row.layout not in run.plan.twins:
            yield row.model_copy(update={"layout": _labelled(row.layout, side)})


def hosts_apart(
    a: ComparedRun, other: ComparedRun, pairs: Sequence[tuple[str, str]], side: str = "B"
) -> tuple[PairDoubt, ...]:
    """Doubts about pairs of layouts because their hosts differ."""
    sides = [(_labelled(one, "A"), _labelled(another, side)) for one, another in pairs]
    attested = [
        figure.model_copy(update={"layout": _labelled(figure.layout, name)})
        for run, name in ((a, "A"), (other, side))
        for figure in run.attested
        # An OSD's figure depends on the store, which may have changed, as much as on the host.
        if figure.kind != "osd"
    ]
    found = host_doubts(attested, list(dict.fromkeys(name for names in sides for name in names)))
    return tuple(doubt for doubt in found if any(doubt.about(*names) for names in sides))


def _figures(
    a: ComparedRun, history: Sequence[ComparedRun], layouts: Sequence[str]
) -> Mapping[Place, Sequence[float]]:
    """Per compared cell: the logarithm of each run's figure relative to A's; 0 for A itself."""
    figures: dict[Place, list[float]] = {}
    sides = [(_labelled(one, "A"), _labelled(one, "earlier")) for one in dict.fromkeys(layouts)]
    for run in history:
        for effect in contrasts([*_rows(a, "A"), *_rows(run, "earlier")], sides):
            if effect.ratio is not None:
                figures.setdefault(_place(effect), [0.0]).append(math.log(effect.ratio.value))
    return figures


def _place(one: Effect) -> Place:
    return kind_of(one), one.baseline, one.workers, one.metric


def _across(one: Effect, runs: Sequence[float]) -> Effect:
    """An effect of A and B with the scatter from run to run; in doubt if that is unknown."""
    if one.ratio is None:
        return one
    if one.tested is None or len(runs) < RUNS:
        words = (
            f"estimating the scatter from run to run needs {RUNS} runs of the same thing, A "
            "included"
        )
        doubts = (*one.doubts, Doubt(what="runs apart", grade="mild", words=words))
        return one.model_copy(update={"doubts": doubts})
    return with_test(one, across_runs(one.tested, runs))


def _labelled(layout: str, side: str) -> str:
    """A layout with its run: `swift (A)`."""
    return f"{layout} ({side})"


def regressions(comparison: Comparison) -> tuple[Effect, ...]:
    """Cells in which B is worse than A, beyond threshold and noise."""
    return tuple(one for one in comparison.effects if one.verdict == "worse")


def _cell(row: Row) -> tuple[str, Kind, int]:
    return row.layout, kind_of(row), row.workers


@dataclass(frozen=True)
class LostCell:
    """A cell that is comparable in A and not in B."""

    layout: str
    """With its run in brackets: `swift (A)`."""
    about: str
    workload: str
    workers: int
    why: str
    measured: bool
    """Whether B has any result of it."""

    @property
    def text(self) -> str:
        at = counted(self.workers, "worker")
        return f"{self.layout}, {self.about} of {self.workload}, {at}: {self.why}"


def _lost(
    a: ComparedRun, b: ComparedRun, pairs: Sequence[tuple[str, str]], *, chosen: bool
) -> tuple[LostCell, ...]:
    """What is lost of the compared layouts, if those were chosen, else of all of A; what B has
    results of comes first.
    """
    of_b = {_cell(row): row for row in b.rows if row.layout in b.layouts}
    theirs = list(pairs)
    if not chosen:
        compared = {one for one, _ in pairs}
        theirs += [(name, name) for name in a.layouts if name not in compared]
    names = subjects(a.rows)
    cells = []
    for one, other in theirs:
        for row in a.rows:
            after = of_b.get((other, *_cell(row)[1:]))
            if row.layout != one or not comparable(row) or (after and comparable(after)):
                continue
            label = _labelled(one, "A") if after is None else _labelled(other, "B")
            why = "B has no result of it" if after is None else reason(after)
            place = (label, names[kind_of(row)], row.workload, row.workers)
            cells.append(LostCell(*place, why, measured=after is not None))
    return tuple(sorted(dict.fromkeys(cells), key=lambda cell: not cell.measured))


def _unjudged(a: ComparedRun, comparison: Comparison) -> list[Effect]:
    """Cells of throughput and p90 with a figure in A where no regression could be detected."""
    rows = {_cell(row): row for row in _rows(a, "A")}
    unjudged = []
    for effect in comparison.effects:
        if effect.verdict in OPEN and effect.metric in PRIMARY and effect.workers is not None:
            row = rows[effect.baseline, kind_of(effect), effect.workers]
            # If A cannot be compared with itself, nothing is lost in B.
            if at_workers(METRICS[effect.metric], row, row).ratio is not None:
                unjudged.append(effect)
    return unjudged


RUNS: Final = 3
"""Runs of the same thing, A included, needed to estimate the scatter; two give one difference."""


def across_runs(tested: TTest, runs: Sequence[float]) -> TTest:
    """The comparison widened by the scatter from run to run: `runs` are logarithms of one figure of
    at least RUNS runs like A, with it. Raises ValueError for fewer.
    """
    if len(runs) < RUNS:
        raise ValueError(f"{len(runs)} runs give no scatter from run to run: {RUNS} are needed")
    return TTest(
        difference=tested.difference,
        error=max(tested.error, stdev(runs) * math.sqrt(2)),
        freedom=min(tested.freedom, len(runs) - 1),
        repeats=tested.repeats,
    )


DRIFT: Final = (
    "The runs were not interleaved: what changed on the machine between them is part of every "
    "difference"
)


@dataclass(frozen=True)
class RunsVerdict:
    """What a comparison of two runs ends with."""

    exit_code: int
    """0; 1 for a regression that was asked about; 4 if it could not have been found."""
    answer: str = ""
    """Why it is not 0, in a sentence; empty if it is."""
    details: tuple[str, ...] = ()
    """What that is about, a line each."""


@dataclass(frozen=True)
class RunsSummary:
    """Two compared runs."""

    a: ComparedRun
    b: ComparedRun
    guarded: Guarded
    comparison: Comparison
    lost: tuple[str, ...]
    """What was comparable in A and is not in B, with what is missing there."""
    missing: tuple[LostCell, ...]
    verdict: RunsVerdict
    earlier: int
    """How many earlier runs of the same thing as A were given."""

    @property
    def headline(self) -> str:
        words = verdict_words(self.comparison)
        return self.verdict.answer or words or "Nothing could be compared."

    @property
    def drift_words(self) -> str:
        """What it means that the runs were not interleaved."""
        if self.a.manifest.run_id == self.b.manifest.run_id:
            return "A and B are the same run: a layout compared with itself there cannot differ."
        if self.earlier + 1 < RUNS:
            return f"{DRIFT}; two earlier runs of A (--history) are needed to tell how much."
        runs = f"A and {self.earlier} earlier runs of the same thing"
        return f"{DRIFT}; intervals include it, from {runs}."


def _verdict(
    comparison: Comparison, a: ComparedRun, earlier: int, gone: Sequence[LostCell]
) -> RunsVerdict:
    """Whether B is worse than A, with so many earlier runs; `gone`: of which B has no result."""
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
    if all(effect.verdict in OPEN for effect in comparison.effects):
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=f"No comparison has {REPEATS_FOR_A_CLAIM} repeats on each side and no doubt: a "
            "regression could not have been found.",
        )
    left = _unjudged(a, comparison)
    why = []
    if left:
        open_ones = counted(len(left), "comparison")
        why.append(f"Provisional or not comparable: {open_ones} that A has results for.")
    if gone:
        why.append(f"Not measured in B: {counted(len(gone), 'cell')} that A has results for.")
    if why:
        return RunsVerdict(
            exit_code=EXIT_INVALID,
            answer=" ".join([*why, "B may be worse."]),
            details=(*(effect.text for effect in left), *(cell.text for cell in gone)),
        )
    return RunsVerdict(exit_code=EXIT_FINE)


# Tables, page and JUnit's XML, for people and for a CI system.


def runs_effects(comparison: Comparison, run: str) -> Filled:
    """The table of effects of run B compared with A; `run`: the name of B."""
    return Filled(EFFECTS, tuple(one.of_run(run) for one in effect_lines(comparison)))


def runs_markdown(summary: RunsSummary) -> str:
    """The answer, what is worse, what differs between the runs, and the table of all effects."""
    a, b, verdict = summary.a.manifest, summary.b.manifest, summary.verdict
    lines = [f"### {escape(summary.headline)}", ""]
    points = [
        *verdict.details,
        *([verdict_words(summary.comparison)] if verdict.answer else ()),
        f"A: {a.run_id}, {a.created_at}, {a.state}",
        f"B: {b.run_id}, {b.created_at}, {b.state}",
        *(f"comparable in A and not in B: {text}" for text in summary.lost),
        *(f"compared despite a difference: {one.text}" for one in summary.guarded.unlike),
        summary.drift_words,
    ]
    lines += [*(f"- {escape(text)}" for text in points), ""]
    if summary.guarded.differs:
        lines += ["<details><summary>What differs between the runs</summary>", ""]
        lines += [f"- {escape(one.text)}" for one in summary.guarded.differs]
        lines += ["", "</details>", ""]
    table = runs_effects(summary.comparison, b.run_id).markdown(
        f"{b.run_id} compared with {a.run_id}", effect_notes((), summary.comparison)
    )
    return "\n".join(lines) + f"\n{table}"


# JUnit's XML: a test is one compared figure, which fails if B is worse, and is skipped if that
# could not be judged, as is a cell of A of which B has no result. One more test is the command
# itself, in error where it ends with 4, and skipped if no test was judged.


SUITE: Final = "weighbridge compare-runs"


def junit_xml(summary: RunsSummary) -> str:
    """The XML."""
    effects, missing = summary.comparison.effects, summary.missing
    skipped = sum(effect.verdict in OPEN for effect in effects)
    invalid = summary.verdict.exit_code == EXIT_INVALID
    is_open = not invalid and skipped == len(effects)
    counts = {
        "tests": len(effects) + len(missing) + 1,
        "failures": sum(effect.verdict == "worse" for effect in effects),
        "errors": int(invalid),
        "skipped": skipped + len(missing) + is_open,
    }
    root = _element("testsuites", {"name": SUITE, **counts})
    suite = _element("testsuite", {"name": SUITE, "time": 0, **counts}, root)
    properties = _element("properties", {}, suite)
    facts = [
        ("a", summary.a.manifest.run_id),
        ("b", summary.b.manifest.run_id),
        ("earlier runs", summary.earlier),
        ("exit code", summary.verdict.exit_code),
        *(("compared despite", one.text) for one in summary.guarded.unlike),
    ]
    for name, value in facts:
        _element("property", {"name": name, "value": value}, properties)
    for effect in effects:
        at = "all workers" if effect.workers is None else counted(effect.workers, "worker")
        name = f"{METRICS[effect.metric].name} of {effect.about} at {at}"
        test = _test(suite, f"{effect.subject} vs {effect.baseline}", name)
        if effect.verdict == "worse":
            _element("failure", {"type": "worse", "message": effect.text}, test, effect.text)
        elif effect.verdict in OPEN:
            _element("skipped", {"message": effect.text or effect.verdict}, test)
        elif effect.text:
            _element("system-out", {}, test, effect.text)
    for cell in missing:
        test = _test(suite, cell.layout, f"{cell.about} at {counted(cell.workers, 'worker')}")
        _element("skipped", {"message": cell.text}, test)
    itself = _test(suite, SUITE, "verdict")
    if invalid:
        said = {"type": "not judged", "message": summary.verdict.answer}
        _element("error", said, itself, "\n".join((*summary.verdict.details, *summary.lost)))
    elif is_open:
        _element("skipped", {"message": "every comparison is open: nothing was judged"}, itself)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _test(suite: ET.Element, of: str, name: str) -> ET.Element:
    return _element("testcase", {"classname": of, "name": name, "time": 0}, suite)


def _element(
    name: str, facts: Mapping[str, object], parent: ET.Element | None = None, text: str = ""
) -> ET.Element:
    texts = {key: escape_controls(str(value)) for key, value in facts.items()}
    element = ET.Element(name, texts) if parent is None else ET.SubElement(parent, name, texts)
    element.text = escape_controls(text) or None
    return element


def runs_page(summary: RunsSummary, maps: Sequence[Chart]) -> str:
    """Render the page; `maps` are those of the comparison."""
    comparison = summary.comparison
    return render(
        "runs.html.j2",
        maps,
        summary=summary,
        manifest=summary.b.manifest,
        headline=summary.headline,
        counts=verdict_words(comparison),
        over_all=[
            one.text
            for one in comparison.effects
            if one.workers is None and one.text not in summary.verdict.details
        ],
        comparison=comparison,
        maps=maps,
        effects=effects_grid(
            comparison,
            over="repeats",
            subject="layout of B",
            baseline="its counterpart in A",
            csv="",
        ),
        claim_repeats=REPEATS_FOR_A_CLAIM,
    )
