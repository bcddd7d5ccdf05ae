"""What a comparison of two runs says to a CI system: Markdown for a page or a comment, and tests as
JUnit's XML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree as ET

from weighbridge.common.errors import EXIT_INVALID
from weighbridge.common.escaping import escape_controls
from weighbridge.results.features.compare_runs.comparison import OPEN, RunsSummary
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.statistics import REPEATS_FOR_A_CLAIM
from weighbridge.results.judge.comparison import Comparison, Effect
from weighbridge.results.judge.words import verdict_words
from weighbridge.results.numbers import counted
from weighbridge.results.show.chart import Chart
from weighbridge.results.show.page import render
from weighbridge.results.show.report import effects_grid
from weighbridge.results.show.table import Filled, escape
from weighbridge.results.show.tables import EFFECTS, effect_lines, effect_notes


def runs_effects(comparison: Comparison, run: str) -> Filled:
    """The table of effects of run B compared with A; `run`: the name of B."""
    return Filled(EFFECTS, tuple(one.of_run(run) for one in effect_lines(comparison)))


def runs_markdown(summary: RunsSummary) -> str:
    """The answer, what is worse, what differs between the runs, and the table of all effects."""
    a, b, verdict = summary.a.manifest, summary.b.manifest, summary.verdict
    counts = verdict_words(summary.comparison)
    lines = [
        f"### {escape(verdict.answer or next(iter(counts), 'Nothing could be compared.'))}",
        "",
    ]
    points = [
        *verdict.details,
        *(counts if verdict.answer else ()),
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
    worse = [one for one in effects if one.verdict == "worse"]
    skipped = [one for one in effects if one.verdict in OPEN]
    invalid = summary.verdict.exit_code == EXIT_INVALID
    is_open = not invalid and len(skipped) == len(effects)
    counts = {
        "tests": len(effects) + len(missing) + 1,
        "failures": len(worse),
        "errors": int(invalid),
        "skipped": len(skipped) + len(missing) + is_open,
    }
    root = _element("testsuites", {"name": SUITE, **counts})
    suite = _element("testsuite", {"name": SUITE, "time": 0, **counts}, root)
    properties = _element("properties", {}, suite)
    facts = {
        "a": summary.a.manifest.run_id,
        "b": summary.b.manifest.run_id,
        "earlier runs": summary.earlier,
        "exit code": summary.verdict.exit_code,
    }
    allowed = [("compared despite", one.text) for one in summary.guarded.unlike]
    for name, value in (*facts.items(), *allowed):
        _element("property", {"name": name, "value": value}, properties)
    for one in effects:
        _test(suite, one)
    for cell in missing:
        at = counted(cell.workers, "worker")
        named = {"classname": cell.layout, "name": f"{cell.about} at {at}", "time": 0}
        _element("skipped", {"message": cell.text}, _element("testcase", named, suite))
    itself = _element("testcase", {"classname": SUITE, "name": "verdict", "time": 0}, suite)
    if invalid:
        error = _element("error", {"type": "not judged", "message": summary.verdict.answer}, itself)
        error.text = escape_controls("\n".join((*summary.verdict.details, *summary.lost)))
    elif is_open:
        _element("skipped", {"message": "every comparison is open: nothing was judged"}, itself)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _test(suite: ET.Element, one: Effect) -> None:
    at = "all workers" if one.workers is None else counted(one.workers, "worker")
    named = {
        "classname": f"{one.subject} vs {one.baseline}",
        "name": f"{METRICS[one.metric].name} of {one.about} at {at}",
        "time": 0,
    }
    test = _element("testcase", named, suite)
    if one.verdict == "worse":
        failure = _element("failure", {"type": one.verdict, "message": one.text}, test)
        failure.text = escape_controls(one.text)
    elif one.verdict in OPEN:
        _element("skipped", {"message": one.text or one.verdict}, test)
    elif one.text:
        _element("system-out", {}, test).text = escape_controls(one.text)


def _element(
    name: str, facts: Mapping[str, object], parent: ET.Element | None = None
) -> ET.Element:
    texts = {key: escape_controls(str(value)) for key, value in facts.items()}
    return ET.Element(name, texts) if parent is None else ET.SubElement(parent, name, texts)


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
