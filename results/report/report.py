"""The report: one HTML file that opens anywhere, without a network, and says what was found, how,
and how to repeat it.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.agreement import Agreement
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.findings import (
    FigureCard,
    Finding,
    card_words,
    foremost,
    headline,
    overall,
    subjects,
)
from weighbridge.results.analysis.reasons import Reason
from weighbridge.results.analysis.remedy import Remedy
from weighbridge.results.analysis.sameness import sameness
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.charts.chart_theme import styles
from weighbridge.results.charts.gallery import Gallery
from weighbridge.results.charts.resource_strips import resource_finding, strips
from weighbridge.results.figures import show_ratio
from weighbridge.results.record import Attested, Manifest, ResolvedPlan, RunEvent, Sheet
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.results.report.agreement_table import agreement_table
from weighbridge.results.report.page import render, specs_of
from weighbridge.results.report.profile_page import ProfileShown
from weighbridge.results.report.staircase_page import StaircasePage
from weighbridge.results.report.study_page import STUDY_2014, StudyPage, study_2014
from weighbridge.results.report.tables import HEAD, NUMBERS, effect_lines, table
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

_NUMBER: Final = re.compile(r"\d+")

BACKGROUND: Final = "background: "
"""How facts begin that are about work which daemons do beside serving: scrub, balancer, auditors,
replicators ...
"""


TURNS: Final = ("resumed", "unlike", "budget")
"""Events that a reader must know of: the run was gone on with, on what had changed, or was ended by
its budget.
"""


class Fact(Record):
    """One setting of the layouts: a value for each layout, in order; `differs` where they are not
    the same.
    """

    name: str
    values: tuple[str, ...]
    differs: bool


def report(
    manifest: Manifest,
    plan: ResolvedPlan,
    plan_yaml: str,
    rows: Sequence[Row],
    findings: Sequence[Finding],
    gallery: Gallery,
    events: Sequence[RunEvent] = (),
    attested: Sequence[Attested] = (),
    agreement: Sequence[Agreement] = (),
    replayed: StudyPage | None = None,
    stairs: StaircasePage | None = None,
    profiles: Sequence[ProfileShown] = (),
    comparison: Comparison | None = None,
    gaps: Sequence[str] = (),
    reasons: Sequence[Reason] = (),
    remedy: Remedy | None = None,
) -> str:
    """The page. `events` tell what caches were dropped and what could not be sampled, `attested`
    what the hosts could do.
    """
    colours = {style.layout: style.colour for style in styles(plan.layouts)}
    weighed = [layout.name for layout in plan.layouts if layout.name not in plan.twins]
    shown = table(rows, reasons)
    own = [row for row in rows if row.layout not in plan.twins]
    stripes = strips(own)
    return render(
        "report.html.j2",
        specs_of(gallery.figures),
        manifest=manifest,
        plan=plan,
        plan_yaml=plan_yaml,
        headline=headline(findings) if len(weighed) > 1 else f"{weighed[0]}, weighed alone",
        weighed=weighed,
        kinds=_kinds(rows, findings),
        details=tuple(finding for finding in findings if finding.workers is not None),
        cards=_cards(rows, findings, colours),
        charts=gallery.of("workers"),
        strips={strip.key: strip for strip in stripes if strip.recorded},
        limits=stripes,
        resource_finding=resource_finding(own),
        unsampled=_gaps(events),
        caches=_caches(plan, events),
        attested=sameness(attested, [layout.name for layout in plan.layouts], plan.twins),
        agreement=agreement_table(agreement, findings, layout_facts(manifest)),
        several_drivers=len({row.driver for row in rows}) > 1,
        driver_label=driver_label,
        table=shown,
        columns=[
            number
            for number, column in enumerate(shown.columns)
            if column.title not in ("API", "Driver")
            or len({line.cells[number] for line in shown.lines}) > 1
        ],
        spoilt=[
            row
            for row in rows
            if not row.ranked or row.count("errors") or row.repeats < plan.suite.repeats
        ],
        reasons=reasons,
        remedy=remedy,
        colours=colours,
        general=[sheet for sheet in manifest.sheets if sheet.layout is None],
        facts=_grouped(_facts(manifest.sheets, [layout.name for layout in plan.layouts])),
        command=shlex.join(manifest.command),
        replayed=replayed,
        stairs=stairs,
        profiles=profiles,
        maps=gallery.of("certainty"),
        figures=gallery.of("figures"),
        staircase=gallery.named("efficiency-staircase"),
        recap=gallery.named("recap"),
        comparison=comparison,
        gaps=(*gaps, *gallery.left_out),
        turns=[event for event in events if event.kind in TURNS],
        effect_head=HEAD,
        effect_numbers=NUMBERS,
        effect_lines=effect_lines(comparison) if comparison is not None else (),
        ratio=show_ratio,
        study=study_2014(),
        study_source=STUDY_2014,
        claim_repeats=REPEATS_FOR_A_CLAIM,
    )


def layout_facts(manifest: Manifest) -> dict[str, dict[str, str]]:
    """What is known of each layout, of all sheets about it."""
    found: dict[str, dict[str, str]] = {}
    for sheet in manifest.sheets:
        if sheet.layout is not None:
            found.setdefault(sheet.layout, {}).update(sheet.facts)
    return found


def _cards(
    rows: Sequence[Row], findings: Sequence[Finding], colours: dict[str, str]
) -> tuple[FigureCard, ...]:
    made = []
    for about, pairs in _kinds(rows, findings).items():
        finding = foremost(pairs)
        words = card_words(finding)
        colour = colours[finding.faster] if finding.shown else "var(--muted)"
        made.append(
            FigureCard(
                figure=words.figure,
                about=about,
                text=words.text,
                detail=words.detail,
                colour=colour,
            )
        )
    return tuple(made)


def _kinds(rows: Sequence[Row], findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    """The findings over all worker counts by what they are about: `1 MB reads`."""
    names = subjects(rows)
    return {names[kind]: pairs for kind, pairs in overall(findings).items()}


def _facts(sheets: Sequence[Sheet], layouts: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """Sheets of layouts side by side: by title, a line for each setting."""
    found: dict[str, tuple[Fact, ...]] = {}
    for title in dict.fromkeys(sheet.title for sheet in sheets if sheet.layout is not None):
        mine = {sheet.layout: sheet.facts for sheet in sheets if sheet.title == title}
        facts = []
        for name in dict.fromkeys(name for one in mine.values() for name in one):
            values = tuple(mine.get(layout, {}).get(name, "–") for layout in layouts)
            facts.append(Fact(name=name, values=values, differs=len(set(values)) > 1))
        found[title] = tuple(facts)
    return found


def _grouped(facts: dict[str, tuple[Fact, ...]]) -> dict[str, tuple[Fact, ...]]:
    """The same, with what daemons do beside serving under a title of its own: it must be off or the
    same everywhere.
    """
    apart = tuple(
        fact for one in facts.values() for fact in one if fact.name.startswith(BACKGROUND)
    )
    rest = {
        title: tuple(fact for fact in one if not fact.name.startswith(BACKGROUND))
        for title, one in facts.items()
    }
    named = tuple(
        fact.model_copy(update={"name": fact.name.removeprefix(BACKGROUND)}) for fact in apart
    )
    return {**({"background work": named} if named else {}), **rest}


def _caches(plan: ResolvedPlan, events: Sequence[RunEvent]) -> tuple[Fact, ...]:
    """What was dropped on each layout, in the words of who dropped it, and how often; empty where
    nothing was to be dropped.

    Texts that differ in their numbers alone are one, with the range of each number.
    """
    layouts = [layout.name for layout in plan.layouts]
    found: dict[str, list[RunEvent]] = {}
    for event in events:
        if event.kind == "caches" and event.layout in layouts:
            found.setdefault(_NUMBER.sub("\0", event.text), []).append(event)
    facts = []
    for pattern, same in found.items():
        ranges = [
            sorted({int(number) for number in numbers})
            for numbers in zip(*(_NUMBER.findall(one.text) for one in same), strict=True)
        ]
        numbers = [
            f"{each[0]}" if len(each) == 1 else f"{each[0]} to {each[-1]}" for each in ranges
        ]
        words = itertools.chain.from_iterable(
            itertools.zip_longest(pattern.split("\0"), numbers, fillvalue="")
        )
        counts = [sum(one.layout == layout for one in same) for layout in layouts]
        values = tuple(
            "–" if not count else "once" if count == 1 else f"{count} times" for count in counts
        )
        facts.append(Fact(name="".join(words), values=values, differs=len(set(values)) > 1))
    return tuple(facts)


def _gaps(events: Sequence[RunEvent]) -> tuple[str, ...]:
    """What the sampler had to say, each thing once, with the layout it is about."""
    told = [f"{event.layout}: {event.text}" for event in events if event.kind == "telemetry"]
    return tuple(dict.fromkeys(told))
