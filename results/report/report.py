from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.agreement import Agreement
from weighbridge.results.analysis.answer import Answer
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.endpoint_use import EndpointUse
from weighbridge.results.analysis.factor_cost import FactorCost
from weighbridge.results.analysis.find.answers import RATE_HEAD, Found, rate_lines
from weighbridge.results.analysis.host_shares import host_shares, unequal_shares
from weighbridge.results.analysis.keeping import Costs
from weighbridge.results.analysis.leads import overall
from weighbridge.results.analysis.listing import CompleteListing
from weighbridge.results.analysis.outages import Outages
from weighbridge.results.analysis.overload import OverloadKind
from weighbridge.results.analysis.reasons import Reason, Remedy
from weighbridge.results.analysis.sameness import sameness
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.trust import TrustSign, outage_trust, trust
from weighbridge.results.features.keeping import kept_table, memory_table
from weighbridge.results.features.outages import outage_table, tolerance_lines
from weighbridge.results.figures import UNKNOWN
from weighbridge.results.record import Attested, Manifest, ResolvedPlan, RunEvent, Sheet
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.results.report.agreement_table import agreement_table
from weighbridge.results.report.durability_table import durability_section
from weighbridge.results.report.endpoint_table import (
    ENDPOINT_HEAD,
    ENDPOINT_NUMBERS,
    endpoint_lines,
)
from weighbridge.results.report.factor_table import FACTOR_NUMBERS, factor_sections
from weighbridge.results.report.glance import anchor_of, glance
from weighbridge.results.report.listing_table import (
    LISTING_HEAD,
    LISTING_NUMBERS,
    listing_lines,
    listing_sentences,
)
from weighbridge.results.report.page import render
from weighbridge.results.report.profile_section import ProfileSection
from weighbridge.results.report.staircase_section import StaircaseSection
from weighbridge.results.report.study_section import StudySection
from weighbridge.results.report.tables import (
    EFFECT_HEAD,
    EFFECT_NUMBERS,
    effect_lines,
    results_table,
)
from weighbridge.results.show.charts.resources import resource_finding, resource_tables
from weighbridge.results.show.gallery import Gallery
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

NO_COSTS: Final = Costs()
NO_OUTAGES: Final = Outages()
_NUMBER: Final = re.compile(r"\d+")

ANSWERS: Final = ("ratios", "throughput-bars")
"""The charts that are not folded."""
BACKGROUND: Final = "background: "
"""Prefix of facts about background work of daemons: scrub, balancer, auditors, replicators ..."""

NOTABLE_EVENTS: Final = ("resumed", "unlike", "budget")
"""Events a reader must know of: the run was resumed, the environment changed, the budget ended it.
"""


class Fact(Record):
    """One setting: a value for each layout, in order."""

    name: str
    values: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


def report(
    manifest: Manifest,
    plan: ResolvedPlan,
    plan_yaml: str,
    rows: Sequence[Row],
    answer: Answer,
    gallery: Gallery,
    events: Sequence[RunEvent] = (),
    attested: Sequence[Attested] = (),
    agreement: Sequence[Agreement] = (),
    replayed: StudySection | None = None,
    stairs: StaircaseSection | None = None,
    profiles: Sequence[ProfileSection] = (),
    comparison: Comparison | None = None,
    gaps: Sequence[str] = (),
    reasons: Sequence[Reason] = (),
    remedy: Remedy | None = None,
    found: Found | None = None,
    endpoints: Sequence[EndpointUse] = (),
    overload: Sequence[OverloadKind] = (),
    cost: Costs = NO_COSTS,
    factors: Sequence[FactorCost] = (),
    listings: Sequence[CompleteListing] = (),
    outages: Outages = NO_OUTAGES,
    durability: Sequence[LayoutDurability] = (),
) -> str:
    """Render the report.

    `events` say which caches were dropped and what could not be sampled, `attested` what the hosts
    could do, `endpoints` what each of several endpoints served, `overload` goodput beyond capacity,
    `cost` what objects cost to keep, `factors` what ways to sign and to encrypt cost, `listings`
    complete listings, `outages` what died while load ran, `durability` what survived power cuts.
    """
    names = [layout.name for layout in plan.layouts]
    compared = [name for name in names if name not in plan.twins]
    shown = results_table(rows, reasons)
    own = [row for row in rows if row.layout not in plan.twins]
    resources = resource_tables(own)
    kinds = {
        effects[0].about: effects
        for effects in ({} if comparison is None else overall(comparison)).values()
    }
    return render(
        "report.html.j2",
        gallery.charts,
        plan.layouts,
        manifest=manifest,
        plan=plan,
        plan_yaml=plan_yaml,
        headline=answer.headline or f"{compared[0]}, measured alone",
        caveat=answer.caveat,
        context=answer.context,
        compared=compared,
        kinds=kinds,
        details=[
            effect
            for effect in (() if comparison is None else comparison.effects)
            if effect.workers is not None and effect.metric == "throughput"
        ],
        cards=answer.cards,
        charts=gallery.of("workers"),
        strips={one.key: one for one in resources if one.recorded},
        limits=resources,
        resource_finding=resource_finding(own),
        unsampled=_unsampled(events),
        caches=_caches(names, events),
        attested=sameness(attested, names, plan.twins),
        agreement=agreement_table(agreement, answer.leads, _layout_facts(manifest)),
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
        found=found,
        overload=[text for kind in overload for text in kind.sentences],
        found_head=RATE_HEAD,
        found_lines=() if found is None else rate_lines(found),
        signs=_signs(plan, own, attested, comparison, outages),
        glance=glance(rows, comparison, reasons, tuple(plan.twins)),
        anchor_of=anchor_of,
        general=[sheet for sheet in manifest.sheets if sheet.layout is None],
        unequal=unequal_shares(plan),
        facts={**_share_facts(plan), **_facts(manifest.sheets, names)},
        command=shlex.join(manifest.command),
        replayed=replayed,
        stairs=stairs,
        profiles=profiles,
        maps=gallery.of("certainty"),
        bars=[one for one in gallery.of("figures") if one.key in ANSWERS],
        figures=[one for one in gallery.of("figures") if one.key not in ANSWERS],
        leads=answer.leads,
        staircase=gallery.named("efficiency-staircase"),
        recap=gallery.named("recap"),
        comparison=comparison,
        gaps=(*gaps, *gallery.left_out),
        turns=[event for event in events if event.kind in NOTABLE_EVENTS],
        effect_head=EFFECT_HEAD,
        effect_numbers=EFFECT_NUMBERS,
        effect_lines=effect_lines(comparison) if comparison is not None else (),
        endpoint_head=ENDPOINT_HEAD,
        endpoint_numbers=ENDPOINT_NUMBERS,
        endpoint_lines=endpoint_lines(endpoints),
        kept=kept_table(cost, plan.structures),
        kept_how={row.layout: row.how for row in cost.kept},
        memory=memory_table(cost),
        factor_numbers=FACTOR_NUMBERS,
        factor_sections=factor_sections(factors),
        listing_head=LISTING_HEAD,
        listing_numbers=LISTING_NUMBERS,
        listing_lines=listing_lines(listings),
        listing_sentences=listing_sentences(listings),
        outage_table=outage_table(outages.kinds),
        outage_sentences=outages.sentences,
        tolerance_lines=tolerance_lines(outages.rows),
        durability=durability_section(durability),
        power_cuts=gallery.named("power-cuts"),
        control_cuts=gallery.named("power-cut-controls"),
        claim_repeats=REPEATS_FOR_A_CLAIM,
    )


def _signs(
    plan: ResolvedPlan,
    rows: Sequence[Row],
    attested: Sequence[Attested],
    comparison: Comparison | None,
    outages: Outages,
) -> tuple[TrustSign, ...]:
    kind, unequal = plan.hardware.kind, bool(unequal_shares(plan))
    if outages.kinds and not rows:
        return outage_trust(kind, plan.measured, outages, attested, unequal=unequal)
    return trust(kind, plan.measured, rows, attested, comparison, unequal=unequal)


def _layout_facts(manifest: Manifest) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for sheet in manifest.sheets:
        if sheet.layout is not None:
            found.setdefault(sheet.layout, {}).update(sheet.facts)
    return found


def _facts(sheets: Sequence[Sheet], layouts: Sequence[str]) -> dict[str, tuple[Fact, ...]]:
    """The layouts' sheets side by side. Background work comes first: it must be off or the same."""
    background: list[Fact] = []
    found: dict[str, tuple[Fact, ...]] = {}
    for title in dict.fromkeys(sheet.title for sheet in sheets if sheet.layout is not None):
        mine = {sheet.layout: sheet.facts for sheet in sheets if sheet.title == title}
        rest: list[Fact] = []
        for name in dict.fromkeys(name for facts in mine.values() for name in facts):
            values = tuple(mine.get(layout, {}).get(name, UNKNOWN) for layout in layouts)
            fact = Fact(name=name.removeprefix(BACKGROUND), values=values)
            (background if name.startswith(BACKGROUND) else rest).append(fact)
        found[title] = tuple(rest)
    return {**({"background work": tuple(background)} if background else {}), **found}


def _share_facts(plan: ResolvedPlan) -> dict[str, tuple[Fact, ...]]:
    known = {one.layout: one for one in host_shares(plan)}
    if not known:
        return {}
    shares = [known.get(layout.name) for layout in plan.layouts]
    facts = (
        Fact(
            name="in total", values=tuple(UNKNOWN if one is None else one.words for one in shares)
        ),
        Fact(
            name="hosts",
            values=tuple(UNKNOWN if one is None else ", ".join(one.hosts) for one in shares),
        ),
    )
    return {"share of the hosts": facts}


def _caches(layouts: Sequence[str], events: Sequence[RunEvent]) -> tuple[Fact, ...]:
    """Which caches were dropped how often on each layout; texts that differ in numbers are one."""
    found: dict[str, list[RunEvent]] = {}
    for event in events:
        if event.kind == "caches" and event.layout in layouts:
            found.setdefault(_NUMBER.sub("\0", event.text), []).append(event)
    facts = []
    for pattern, same in found.items():
        name = pattern
        for each in zip(*(map(int, _NUMBER.findall(one.text)) for one in same), strict=True):
            low, high = min(each), max(each)
            name = name.replace("\0", f"{low}" if low == high else f"{low} to {high}", 1)
        counts = [sum(one.layout == layout for one in same) for layout in layouts]
        values = tuple(
            UNKNOWN if not count else "once" if count == 1 else f"{count} times" for count in counts
        )
        facts.append(Fact(name=name, values=values))
    return tuple(facts)


def _unsampled(events: Sequence[RunEvent]) -> tuple[str, ...]:
    messages = (f"{event.layout}: {event.text}" for event in events if event.kind == "telemetry")
    return tuple(dict.fromkeys(messages))
