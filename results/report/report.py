from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Structure
from weighbridge.results.analysis.agreement import Agreement
from weighbridge.results.analysis.cards import FigureCard, card_words, foremost
from weighbridge.results.analysis.comparison import Comparison
from weighbridge.results.analysis.durability import LayoutDurability
from weighbridge.results.analysis.endpoint_use import EndpointUse
from weighbridge.results.analysis.factor_cost import FactorCost
from weighbridge.results.analysis.find.answers import RATE_HEAD, Found, rate_lines
from weighbridge.results.analysis.findings import (
    Finding,
    headline,
    overall,
)
from weighbridge.results.analysis.host_shares import host_shares, unequal_shares
from weighbridge.results.analysis.keeping import ALL, Costs, KeptRow, MemoryRow
from weighbridge.results.analysis.kinds import subjects
from weighbridge.results.analysis.listing import CompleteListing
from weighbridge.results.analysis.outages import OutageKind, OutageRow, Outages, Spread
from weighbridge.results.analysis.overload import OverloadKind
from weighbridge.results.analysis.reasons import Reason, Remedy
from weighbridge.results.analysis.sameness import sameness
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.trust import TrustSign, outage_trust, trust
from weighbridge.results.charts.gallery import Gallery
from weighbridge.results.charts.resource_strips import resource_finding, strips
from weighbridge.results.doubt import Doubt, doubt_brief, few
from weighbridge.results.figures import UNKNOWN, counted, show_figure
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.record import Attested, Manifest, ResolvedPlan, RunEvent, Sheet
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.results.report.agreement_table import agreement_table
from weighbridge.results.report.durability_table import durability_section
from weighbridge.results.report.glance import anchor_of, glance
from weighbridge.results.report.page import layout_colour, render
from weighbridge.results.report.profile_section import ProfileSection
from weighbridge.results.report.staircase_section import StaircaseSection
from weighbridge.results.report.study_section import STUDY_2014, StudySection, study_2014
from weighbridge.results.report.tables import (
    EFFECT_HEAD,
    EFFECT_NUMBERS,
    effect_lines,
    results_table,
)
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM, Ratio


def ratio_cell(known: Ratio) -> str:
    """A factor with its interval, which is unknown after one repeat."""
    if known.low is None or known.high is None:
        return f"{known.value:.2f}×"
    return f"{known.value:.2f}× ({known.low:.2f} to {known.high:.2f})"


def ratio_times(known: Ratio) -> str:
    """`1.50 times (1.40 to 1.61)`, with what keeps it from being a claim."""
    if known.low is None or known.high is None:
        return f"{known.value:.2f} times (one repeat: no interval)"
    if not known.shown:
        return f"{known.value:.2f} times (not significant, {known.low:.2f} to {known.high:.2f})"
    few = "" if known.claim else f"; {known.repeats} repeats are too few for a claim"
    return f"{known.value:.2f} times ({known.low:.2f} to {known.high:.2f}{few})"


FACTOR_NUMBERS: Final = (1, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class FactorSection:
    """The section of a factor; `differs` ends a sentence about its workloads."""

    key: str
    column: str
    differs: str
    client: str
    """Why ways differ for the load generator."""
    head: tuple[str, ...] = ()
    lines: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[str, ...] = ()


_SECTIONS: Final = (
    FactorSection(
        "signing",
        "Signing",
        "in how S3 requests are signed and checked",
        "which hashes and signs every request",
    ),
    FactorSection(
        "encryption",
        "Encryption",
        "in how stores are asked to encrypt S3 objects",
        "which sends the headers that ask for it",
    ),
)


def factor_sections(found: Sequence[FactorCost]) -> tuple[FactorSection, ...]:
    """A section for each factor of which several ways were measured."""
    of = {one.key: [cost for cost in found if cost.factor == one.key] for one in _SECTIONS}
    return tuple(
        replace(
            one,
            head=_head(one.column),
            lines=factor_lines(of[one.key]),
            sentences=factor_sentences(of[one.key]),
        )
        for one in _SECTIONS
        if of[one.key]
    )


def factor_lines(found: Sequence[FactorCost]) -> tuple[tuple[str, ...], ...]:
    """The cells of each way, over its repeats."""
    return tuple(
        (
            one.workload,
            str(one.workers),
            one.layout,
            one.label,
            show_figure(one.client_us),
            _beside(one, one.client),
            show_figure(one.gateway_us),
            _beside(one, one.gateway),
            show_figure(one.ops_s),
            show_figure(one.p90_ms),
            one.verdict,
        )
        for one in found
    )


def factor_sentences(found: Sequence[FactorCost]) -> tuple[str, ...]:
    """What was found of the costs, one sentence for each way and step with known ratios."""
    return tuple(
        f"{one.workload} on {one.layout}, {counted(one.workers, 'worker')}, beside {one.beside}: "
        + ", ".join(
            f"{who} CPU for an operation is {ratio_times(known)}"
            for who, known in (("client", one.client), ("gateway", one.gateway))
            if known is not None
        )
        + (f". Provisional: {'; '.join(one.doubts)}." if one.doubts else ".")
        for one in found
        if one.client is not None or one.gateway is not None
    )


def _head(column: str) -> tuple[str, ...]:
    return (
        "Workload",
        "Workers",
        "Layout",
        column,
        "Client CPU µs/op",
        "beside the first",
        "Gateway CPU µs/op",
        "beside the first",
        "op/s",
        "p90 ms",
        "Verdict",
    )


def _beside(one: FactorCost, known: Ratio | None) -> str:
    if known is None:
        return "1" if one.label == one.beside else UNKNOWN
    return ratio_cell(known)


LISTING_HEAD: Final = (
    "Workload",
    "Layout",
    "Workers",
    "Names",
    "Deleted before",
    "Pages/s",
    "Listing p50 s",
    "p90 s",
    "µs a name",
    "beside before deletes",
    "Verdict",
)
LISTING_NUMBERS: Final = (2, 3, 4, 5, 6, 7, 8, 9)


def listing_lines(found: Sequence[CompleteListing]) -> tuple[tuple[str, ...], ...]:
    """The cells of each step."""
    return tuple(
        (
            one.row.workload,
            one.row.layout,
            str(one.row.workers),
            UNKNOWN if one.names is None else f"{one.names:,}",
            _share(one),
            show_figure(one.pages_per_s),
            _seconds(one, "p50"),
            _seconds(one, "p90"),
            _by_name(one),
            UNKNOWN if one.beside is None else ratio_cell(one.beside),
            _verdict(one),
        )
        for one in found
    )


def listing_sentences(found: Sequence[CompleteListing]) -> tuple[str, ...]:
    """What was found of each step with known figures, one sentence each."""
    return tuple(_sentence(one) for one in found if one.row.value("p50") is not None)


def _sentence(one: CompleteListing) -> str:
    row = one.row
    after = f" after {_share(one)} of the objects were deleted" if one.deleted else ""
    names = "" if one.names is None else f" of {one.names:,} names"
    p90 = "" if row.value("p90") is None else f" (p90 {_seconds(one, 'p90')} s)"
    text = (
        f"{row.layout}, {counted(row.workers, 'worker')}: a complete listing{names}{after} takes "
        f"{_seconds(one, 'p50')} s{p90}, {show_figure(one.pages_per_s)} pages/s"
    )
    if one.beside is not None:
        text += f"; a name takes {ratio_times(one.beside)} what it took before"
    # What each doubt is about stands in the table of results.
    whats = ", ".join(dict.fromkeys(doubt.what for doubt in _doubts(one)))
    if not row.ranked:
        return f"{text}. Not ranked: {whats or '; '.join(row.notes)}."
    return f"{text}. Provisional: {whats}." if whats else f"{text}."


def _doubts(one: CompleteListing) -> tuple[Doubt, ...]:
    short = few(one.row.repeats)
    return one.row.doubts if short is None else (*one.row.doubts, short)


def _share(one: CompleteListing) -> str:
    return f"{100 * one.deleted:.0f} %"


def _seconds(one: CompleteListing, metric: MetricKey) -> str:
    figure = one.row.figure(metric)
    if figure.value is None:
        return UNKNOWN
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value / 1000)}"


def _by_name(one: CompleteListing) -> str:
    figure = one.row.figure("p50")
    if figure.value is None or not one.names:
        return UNKNOWN
    return f"{'≥ ' * figure.at_least}{show_figure(figure.value * 1000 / one.names)}"


def _verdict(one: CompleteListing) -> str:
    if not one.row.ranked:
        return "not ranked"
    return "provisional" if _doubts(one) else "ranked"


KEPT_HEAD: Final = (
    "Layout",
    "Planned",
    "Workload",
    "Object",
    "Compressible",
    "Objects",
    "Stored",
    "On disks",
    "Per byte stored",
    "Range",
    "Databases beside",
    "Repeats",
)
KEPT_NUMBERS: Final = (3, 4, 5, 6, 7, 8, 9, 10, 11)
MEMORY_HEAD: Final = ("Layout", "Daemons", "Hosts", "Number", "Each", "All together", "Peak of one")
MEMORY_NUMBERS: Final = (3, 4, 5, 6)


def kept_lines(
    rows: Sequence[KeptRow], structures: Mapping[str, Structure]
) -> tuple[tuple[str, ...], ...]:
    """The cells of each layout and workload."""
    return tuple(
        (
            row.layout,
            structures[row.layout].redundancy_words if row.layout in structures else UNKNOWN,
            row.workload,
            show_bytes(row.object_bytes),
            "random" if row.compressible is None else f"{row.compressible:.0%}",
            f"{row.objects:,}",
            _mib(row.stored_bytes),
            _known(row.disk_bytes),
            UNKNOWN if row.times is None else f"{row.times:.2f}",
            _range(row.least_times, row.most_times),
            _known(row.beside_bytes),
            str(row.repeats),
        )
        for row in rows
    )


def memory_lines(rows: Sequence[MemoryRow]) -> tuple[tuple[str, ...], ...]:
    """The cells of each layout and role."""
    return tuple(
        (
            row.layout,
            row.role,
            ", ".join(row.hosts),
            str(row.daemons),
            "" if row.role == ALL else _sizes(row.least_bytes, row.most_bytes),
            _known(row.sum_bytes),
            "" if row.role == ALL else _known(row.peak_bytes),
        )
        for row in rows
    )


def _range(least: float | None, most: float | None) -> str:
    if least is None or most is None:
        return UNKNOWN
    low, high = f"{least:.2f}", f"{most:.2f}"
    return low if low == high else f"{low} to {high}"


def _sizes(least: int | None, most: int | None) -> str:
    if least is None or most is None:
        return UNKNOWN
    low, high = _mib(least), _mib(most)
    return low if low == high else f"{low.removesuffix(' MiB')} to {high}"


def _known(size: float | None) -> str:
    return UNKNOWN if size is None else _mib(size)


def _mib(size: float) -> str:
    return f"{size / 2**20:,.1f} MiB"


_METRICS: Final[tuple[MetricKey, ...]] = (
    "rate-before",
    "unanswered",
    "detect",
    "recover",
    "stall",
    "missed",
    "away-p99",
    "away-max",
    "lowest-back",
)
OUTAGE_HEAD: Final = (
    "Requests",
    "Layout",
    "What",
    *(f"{METRICS[key].title}, {METRICS[key].unit}" for key in _METRICS),
    "Noticed, s",
    "Complete again, s",
    "Errors",
    "Sent by stores, MB/s",
    "In doubt",
    "Repeats",
)
OUTAGE_NUMBERS: Final = (*range(3, 3 + len(_METRICS) + 2), len(OUTAGE_HEAD) - 1)


def outage_lines(kinds: Sequence[OutageKind]) -> tuple[tuple[str, ...], ...]:
    """The cells of each layout: medians over the repeats, with their range."""
    return tuple(_line(kind, row) for kind in kinds for row in kind.rows)


def _line(kind: OutageKind, row: OutageRow) -> tuple[str, ...]:
    sent = row.traffic
    return (
        kind.about,
        row.layout,
        "; ".join(row.what),
        *(_words(row.spread(key)) for key in _METRICS),
        _words(row.noticed_s),
        _words(row.clean_s),
        row.error_words,
        " → ".join(map(show_figure, (sent.before_mb_s, sent.away_mb_s, sent.back_mb_s))),
        doubt_brief(row.doubts),
        str(row.row.repeats),
    )


def _words(found: Spread | None) -> str:
    return UNKNOWN if found is None else found.words


def tolerance_lines(rows: Sequence[OutageRow]) -> tuple[tuple[str, ...], ...]:
    """What decides it: layout, setting, value; each once."""
    found = {(row.layout, name): value for row in rows for name, value in row.settings.items()}
    return tuple((layout, name, value) for (layout, name), value in found.items())


ENDPOINT_HEAD: Final = (
    "Workload",
    "API",
    "Workers",
    "Layout",
    "Endpoint",
    "Requests",
    "Share",
    "p90 ms",
    "Busiest / mean",
    "Failures",
)
ENDPOINT_NUMBERS: Final = (2, 5, 6, 7, 8)


def endpoint_lines(found: Sequence[EndpointUse]) -> tuple[tuple[str, ...], ...]:
    """The cells of each endpoint of each step, over all its repeats."""
    return tuple(
        (
            one.workload,
            one.api,
            str(one.workers),
            one.layout,
            one.name,
            str(one.count),
            f"{one.share:.1%}",
            UNKNOWN if one.p90_ms is None else show_figure(one.p90_ms),
            UNKNOWN if one.imbalance is None else f"{one.imbalance:.2f}",
            one.words or "none",
        )
        for one in found
    )


NO_COSTS: Final = Costs()
NO_OUTAGES: Final = Outages()
_NUMBER: Final = re.compile(r"\d+")

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
    findings: Sequence[Finding],
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
    stripes = strips(own)
    kinds = _kinds(rows, findings)
    return render(
        "report.html.j2",
        gallery.figures,
        plan.layouts,
        manifest=manifest,
        plan=plan,
        plan_yaml=plan_yaml,
        headline=_headline(compared, rows, findings, outages),
        compared=compared,
        kinds=kinds,
        details=tuple(finding for finding in findings if finding.workers is not None),
        cards=tuple(_card(about, pairs, names) for about, pairs in kinds.items()),
        charts=gallery.of("workers"),
        strips={strip.key: strip for strip in stripes if strip.recorded},
        limits=stripes,
        resource_finding=resource_finding(own),
        unsampled=_unsampled(events),
        caches=_caches(names, events),
        attested=sameness(attested, names, plan.twins),
        agreement=agreement_table(agreement, findings, _layout_facts(manifest)),
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
        figures=gallery.of("figures"),
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
        kept_head=KEPT_HEAD,
        kept_numbers=KEPT_NUMBERS,
        kept_lines=kept_lines(cost.kept, plan.structures),
        kept_how={row.layout: row.how for row in cost.kept},
        memory_head=MEMORY_HEAD,
        memory_numbers=MEMORY_NUMBERS,
        memory_lines=memory_lines(cost.memory),
        factor_numbers=FACTOR_NUMBERS,
        factor_sections=factor_sections(factors),
        listing_head=LISTING_HEAD,
        listing_numbers=LISTING_NUMBERS,
        listing_lines=listing_lines(listings),
        listing_sentences=listing_sentences(listings),
        outage_head=OUTAGE_HEAD,
        outage_numbers=OUTAGE_NUMBERS,
        outage_lines=outage_lines(outages.kinds),
        outage_sentences=outages.sentences,
        tolerance_lines=tolerance_lines(outages.rows),
        durability=durability_section(durability),
        power_cuts=gallery.named("power-cuts"),
        control_cuts=gallery.named("power-cut-controls"),
        study=study_2014(),
        study_source=STUDY_2014,
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


def _headline(
    compared: Sequence[str], rows: Sequence[Row], findings: Sequence[Finding], outages: Outages
) -> str:
    """The answer in one line; of a run in whose every step something died, its first stalls."""
    if outages.kinds and not rows:
        return outages.kinds[0].headline
    return headline(findings) if len(compared) > 1 else f"{compared[0]}, measured alone"


def _layout_facts(manifest: Manifest) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for sheet in manifest.sheets:
        if sheet.layout is not None:
            found.setdefault(sheet.layout, {}).update(sheet.facts)
    return found


def _card(about: str, pairs: Sequence[Finding], layouts: Sequence[str]) -> FigureCard:
    finding = foremost(pairs)
    words = card_words(finding)
    return FigureCard(
        figure=words.figure,
        about=about,
        text=words.text,
        detail=words.detail,
        colour=layout_colour(layouts.index(finding.faster)) if finding.shown else "var(--muted)",
    )


def _kinds(rows: Sequence[Row], findings: Sequence[Finding]) -> dict[str, list[Finding]]:
    names = subjects(rows)
    return {names[kind]: pairs for kind, pairs in overall(findings).items()}


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
