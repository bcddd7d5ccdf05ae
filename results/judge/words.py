"""Every sentence, title and card about a comparison: worded here, once, for every output.

The faster layout comes first, and the figure of the slower one is its unit. The present is for
claims alone; what was measured, but is no claim, was so. A caveat is never left out, and never
comes first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, get_args

from weighbridge.results.figures.doubt import (
    Doubt,
    doubt_words,
    graves,
    power_brief,
    power_words,
    with_losses,
)
from weighbridge.results.figures.metrics import METRICS
from weighbridge.results.figures.reading import Interval
from weighbridge.results.figures.service_level import may_rank
from weighbridge.results.figures.statistics import LEVEL, Ratio
from weighbridge.results.figures.summary import Row
from weighbridge.results.figures.use import NOTHING_SEEN
from weighbridge.results.judge.comparison import API_NAMES, Comparison, Effect, Verdict
from weighbridge.results.judge.leads import Lead, Standing, faster, faster_ratio
from weighbridge.results.numbers import (
    alike_as_one,
    all_of,
    counted,
    listed,
    show_figure,
    show_ratio,
    upper,
)
from weighbridge.results.run import Manifest, ResolvedPlan
from weighbridge.results.run.resolved import PlannedLayout

MAX_WORKLOADS: Final = 4
"""A headline names up to so many workloads one by one; of more it says how many."""
SAID_FROM: Final = 0.01
"""A ratio that is adjusted by less says nothing about it."""
MAX_REASON: Final = 90
"""Length in characters of a doubt's own words in a line of caveats; longer ones are named only."""
MOSTLY: Final = 50.0
SELDOM: Final = 10.0
"""Shares of the bytes read, in per cent: from MOSTLY on, and up to SELDOM, two sides that are
compared have their reads from different places. Between them a reader must look at the figures.
"""
_STORES: Final = {"rgw": "RGW", "swift": "Swift"}
"""By kind of gateway. Others are called what their layouts are called."""
_WITHOUT_LEADER: Final[dict[Standing, str]] = {
    "alike": "no difference that matters",
    "mixed": "no layout leads",
    "open": "no difference found",
    "not comparable": "not comparable",
}
NO_STORES: Final[Mapping[str, str]] = MappingProxyType({})
_VERSION: Final = re.compile(r"ceph version (\d+(?:\.\d+)+)")


# Who is compared.


def store_names(plan: ResolvedPlan) -> dict[str, str]:
    """The store of each measured layout, where several layouts may be called by it: `RGW`."""
    return {
        layout.name: _STORES[layout.gateway]
        for layout in plan.layouts
        if layout.gateway in _STORES and layout.name not in plan.twins
    }


def group_name(layouts: Sequence[str], every: Sequence[str], stores: Mapping[str, str]) -> str:
    """What a group of layouts is called among `every` layout that is compared: the name of their
    store if they are all that there are of it, else their names.
    """
    owners = {stores.get(name) for name in layouts}
    if len(owners) == 1 and (owner := owners.pop()) is not None:
        same = [name for name in every if stores.get(name) == owner]
        if set(same) == set(layouts) and len(same) < len(every):
            return owner if len(same) == 1 else all_of(len(same), f"{owner} layouts")
    return listed(list(layouts))


def context(manifest: Manifest, plan: ResolvedPlan, settings: int | None = None) -> str:
    """What was compared, in a line: releases, API, hosts, size of the machine, repeats.

    `settings`: of a tuning, how many settings of its first layout were tried.
    """
    own = [layout for layout in plan.layouts if layout.name not in plan.twins]
    own = own if settings is None else own[:1]
    systems = list(dict.fromkeys(_system(manifest, layout) for layout in own))
    apis = listed([API_NAMES[api] for api in dict.fromkeys(plan.suite.api)])
    over = {1: "over", 2: "both over"}.get(len(systems), "all over")
    parts = [f"{listed(systems)}, {over} {apis}"]
    parts += [] if settings is None else [counted(settings, "setting")]
    if plan.hardware.kind == "existing":
        parts.append("gateways that already ran")
    else:
        hosts = counted(len(plan.hardware.hosts), "host")
        machine = next((one.facts for one in manifest.sheets if one.title == "machine"), {})
        cpus = machine.get("cpus", "")
        shared = plan.hardware.kind == "lab" and cpus
        parts.append(f"{hosts} on {cpus} CPUs" if shared else hosts)
    parts.append(counted(plan.suite.repeats, "repeat"))
    return ", ".join(parts)


def _system(manifest: Manifest, layout: PlannedLayout) -> str:
    """`Ceph RGW 16.2.15`, `OpenStack Swift 2.30`, as its daemons said; else the layout's name."""
    facts: dict[str, str] = {}
    for sheet in manifest.sheets:
        if sheet.layout == layout.name:
            facts |= sheet.facts
    product, _, release = facts.get("gateway", "").partition(", release ")
    if not release:
        return layout.name
    seen = _VERSION.search(facts.get("radosgw", ""))
    return f"{product} {seen[1] if seen else release.partition(',')[0].partition('-')[2]}"


# The answer of a comparison.


def headline(leads: Sequence[Lead], stores: Mapping[str, str] = NO_STORES) -> str:
    """The answer in a sentence without its end: who is how many times as fast in which workload.

    Whoever lost acknowledged writes is named.
    """
    if not leads:
        return "Only one layout was measured: there is nothing to compare it with"
    if all(lead.standing == "not comparable" for lead in leads):
        return f"No ranking{_why_not(leads, ': ')}"
    marks = [mark for lead in leads for mark in lead.power]
    return with_losses("; ".join(_clauses(leads, stores)) + _over(leads), marks)


def _over(leads: Sequence[Lead]) -> str:
    """The API in brackets; empty of several, which are named with their workloads."""
    name, *more = {API_NAMES[lead.kind[2]] for lead in leads}
    named = more or f"over {name}" in leads[0].about
    return "" if named else f" ({name.removeprefix('the ')})"


def _clauses(
    leads: Sequence[Lead], stores: Mapping[str, str], *, intervals: bool = False
) -> list[str]:
    groups: dict[tuple[str, str, str], list[Lead]] = {}
    for lead in leads:
        if lead.standing == "ahead":
            verb = _is(lead, several=len(lead.leaders) > 1)
            groups.setdefault((*_sides(lead, stores), verb), []).append(lead)
    clauses = [
        _ahead(sides, group, len(leads), intervals=intervals)
        for sides, group in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]
    clauses[:1] = map(_begin, clauses[:1])
    for standing, words in _WITHOUT_LEADER.items():
        without = [lead for lead in leads if lead.standing == standing]
        if without:
            at = _workloads([lead.about for lead in without], len(leads))
            why = _largest(without) if standing == "mixed" else ""
            why = _why_not(without, ", since ") if standing == "not comparable" else why
            clauses.append(f"{words} {at}{why}" if clauses else upper(f"{words} {at}{why}"))
    missing = Counter(
        name for lead in leads if lead.standing != "not comparable" for name in lead.excluded
    )
    for name, count in missing.items():
        where = f" in {count} of {len(leads)} workloads" if len(leads) > 1 else ""
        clauses.append(f"{name} not comparable{where}")
    return clauses


def _begin(text: str) -> str:
    """A text that begins a sentence; names of layouts keep their first letter."""
    return upper(text) if text.startswith(("both ", "all ")) else text


def title(lead: Lead, stores: Mapping[str, str] = NO_STORES, *, intervals: bool = False) -> str:
    """The answer for one workload: how many times as fast the leaders are, or that nobody is."""
    return _clauses([lead], stores, intervals=intervals)[0] + _over([lead])


def _ahead(
    sides: tuple[str, str, str], group: Sequence[Lead], total: int, *, intervals: bool
) -> str:
    leaders, others, verb = sides
    known = [lead.ratio for lead in group if lead.ratio is not None]
    ratios = [ratio.value for ratio in known]
    least = "at least " * any(len(lead.leaders) > 1 for lead in group)
    start = f"{leaders} {verb} {least}"
    if len(group) <= MAX_WORKLOADS:
        each = [
            f"{show_ratio(ratio.value)}{_bounds(ratio) if intervals else ''}"
            f"{f' as fast as {others}' if not number else ''} at {lead.about}"
            for number, (lead, ratio) in enumerate(zip(group, known, strict=True))
        ]
        return f"{start}{listed(each)}"
    low, high = show_ratio(min(ratios)), show_ratio(max(ratios))
    by = low if low == high else f"{low} to {high}"
    return f"{start}{by} as fast as {others} {_workloads([''] * len(group), total)}"


def _workloads(names: Sequence[str], total: int) -> str:
    """`at 4 MB reads and 4 MB writes`, `in 5 of 9 workloads`, `in all 9 workloads`."""
    if len(names) <= MAX_WORKLOADS:
        return f"at {listed(list(names))}"
    if len(names) == total:
        return f"in all {total} workloads"
    return f"in {len(names)} of {total} workloads"


def _sides(lead: Lead, stores: Mapping[str, str]) -> tuple[str, str]:
    """The leaders, and the fastest of the others."""
    every = (*lead.leaders, *lead.others)
    leaders = group_name(lead.leaders, every, stores)
    if len(lead.others) == 1:
        return leaders, group_name(lead.others, every, stores)
    return leaders, f"{lead.others[0]}, the next fastest,"


def _is(lead: Lead, *, several: bool = False) -> str:
    """The verb: the present for a claim alone, the plural for several names."""
    return ("are" if several else "is") if lead.claimed else ("were" if several else "was")


def _largest(leads: Sequence[Lead]) -> str:
    """The largest difference that was found in each workload in which nobody leads, of a few."""
    found = [_difference(lead) for lead in leads if lead.effect is not None]
    return f" ({'; '.join(found)})" if len(found) <= MAX_WORKLOADS else ""


def _difference(lead: Lead) -> str:
    if lead.effect is None or lead.ratio is None:
        return ""
    high, low = _rows(lead.effect)
    return f"{high.layout} {_is(lead)} {show_ratio(lead.ratio.value)} as fast as {low.layout}"


def _why_not(leads: Sequence[Lead], start: str = "") -> str:
    """The gravest reason after `start`, and how many more there are; empty without any."""
    effects = [lead.effect for lead in leads if lead.effect is not None]
    doubts = alike_as_one(
        doubt_words([doubt]) for effect in effects for doubt in graves(effect.doubts)
    )
    reasons = doubts or alike_as_one(effect.reasons for effect in effects if effect.reasons)
    if not reasons:
        return ""
    more = f"; and {len(reasons) - 1} more" if len(reasons) > 1 else ""
    return f"{start}{reasons[0]}{more}"


def caveats(leads: Sequence[Lead]) -> str:
    """What keeps the answer from being a claim, in a line; empty for claims."""
    touched = [lead for lead in leads if lead.standing != "not comparable" and lead.doubts]
    if not touched:
        return ""
    brief = doubts_in_brief([doubt for lead in touched for doubt in lead.doubts])
    if len(touched) == len(leads):
        return f"Caveat: {brief}"
    return f"Caveat {_workloads([lead.about for lead in touched], len(leads))}: {brief}"


def doubts_in_brief(doubts: Sequence[Doubt]) -> str:
    """Each doubt once: in its own words if they are few and alike, else by its name."""
    kinds: dict[str, list[str]] = {}
    for doubt in doubts:
        kinds.setdefault(doubt.what, []).append(doubt.words)
    parts = []
    for what, texts in kinds.items():
        alike = alike_as_one(texts)
        parts.append(alike[0] if len(alike) == 1 and len(alike[0]) <= MAX_REASON else what)
    return "; ".join(parts)


@dataclass(frozen=True)
class Card:
    """One workload's answer in large type."""

    about: str
    figure: str
    """`2.6×`; empty where nobody is faster."""
    text: str
    detail: str
    name: str = ""
    """Who is faster, or that nobody is."""
    caveat: str = ""
    layout: str | None = None
    """The layout whose colour it has; None: nobody leads."""
    colour: str = ""
    """Another colour, as CSS."""


def card(lead: Lead, stores: Mapping[str, str] = NO_STORES) -> Card:
    """The card of a workload; of writes with what power cuts did."""
    effect = lead.effect
    if effect is None or lead.ratio is None:
        why = _why_not([lead]) or "see the reasons below"
        return Card(lead.about, "", "", upper(why), "Not comparable")
    high, low = _rows(effect)
    interval = _bounds(lead.ratio).strip(" ()")
    marks = power_brief(effect.power)
    p90s = latencies(high, low)
    parts = [
        f"95 % interval {interval}" if interval else "",
        f"n = {lead.ratio.repeats}",
        f"p90 {p90s}" if p90s else "",
        marks,
    ]
    detail = "; ".join(part for part in parts if part)
    caveat = doubts_in_brief(lead.doubts)
    if lead.standing == "ahead":
        leaders, others = _sides(lead, stores)
        least = "at least " * (len(lead.leaders) > 1)
        figure = show_ratio(lead.ratio.value)
        text = f"{least}as fast as {others.rstrip(',')}"
        return Card(lead.about, figure, text, detail, _begin(leaders), caveat, lead.leaders[0])
    name = upper(_WITHOUT_LEADER[lead.standing])
    text = f"{high.layout} vs {low.layout}: {show_ratio(lead.ratio.value)}"
    text = _difference(lead) if lead.standing == "mixed" else text
    return Card(lead.about, "", text, detail, name, caveat)


# An effect in a sentence: ratio, interval, latencies, repeats, caveats, noise floor.


def sentence(effect: Effect) -> str:
    """A sentence about a judged effect and what power cuts did. Raises ValueError without rows."""
    marks = power_words(effect.power)
    return f"{_sentence(effect)} {upper(marks)}." if marks else _sentence(effect)


def _sentence(effect: Effect) -> str:
    baseline, subject = effect.rows
    if effect.ratio is None:
        return _incomparable(effect)
    if effect.bins is not None:
        return _in_bins(effect, baseline, subject, effect.bins)
    measure = faster_ratio(effect) or effect.ratio
    high, low = _rows(effect)
    relation = _throughput if effect.metric == "throughput" else _latency
    text = f"{opening(effect)}{relation(effect, measure, high, low)}; {strength(effect)}."
    more = (words for words in (limits_of(effect), _places_of(effect)) if words)
    return " ".join((text, *(f"{upper(words)}." for words in more)))


def _rows(effect: Effect) -> tuple[Row, Row]:
    """The rows of the side with the higher figure, and of the other."""
    baseline, subject = effect.rows
    return (baseline, subject) if faster(effect)[0] == baseline.layout else (subject, baseline)


def limits_of(effect: Effect) -> str:
    """What limited the two sides, at the highest comparable count; empty if unknown for both."""
    known = {row.layout: words for row in effect.sides or () if (words := row.limited_by)}
    if not known:
        return ""
    at = _at_workers(effect, effect.rows[0])
    alike = len(set(known.values())) == 1
    words = next(iter(known.values()))
    if alike and words == NOTHING_SEEN:
        both = len(known) == len({row.layout for row in effect.rows})
        return f"{at}no resource was seen at its limit{'' if both else f' ({listed([*known])})'}"
    if alike and len(known) == 2:
        return f"{at}both were limited by {words}"
    return f"{at}limited by {', '.join(f'{each} ({layout})' for layout, each in known.items())}"


def _at_workers(effect: Effect, row: Row) -> str:
    """`with 16 workers ` of what holds at that count alone; empty if it is the only one."""
    return f"with {counted(row.workers, 'worker')} " if len(effect.by_count) > 1 else ""


def _places_of(effect: Effect) -> str:
    """Where reads came from, if one side reads from disks and the other from memory: their ratio is
    then one of caches too. At the worker count of `limits_of`: `bytes read from the measured disks,
    relative to those answered at 16 workers: 98 % (rgw-beast), 2 % (swift)`. Empty otherwise, and
    if unknown for one. Disks read ahead, and whole blocks: it may be more than was asked for.
    """
    known = [(row.layout, row.value("from-disk")) for row in effect.sides or ()]
    shares = [share for _, share in known if share is not None]
    if not shares or len(shares) < len(known) or max(shares) < MOSTLY or min(shares) > SELDOM:
        return ""
    at = f" {_at_workers(effect, effect.rows[0])}".rstrip()
    parts = (f"{share or 0.0:.0f} % ({layout})" for layout, share in known)
    return f"bytes read from the measured disks, relative to those answered{at}: {', '.join(parts)}"


def opening(effect: Effect) -> str:
    """What a sentence begins with that claims nothing, and why; empty for a claim."""
    if effect.verdict == "not significant":
        return f"No difference found{_why_uncertain(effect)}: "
    if effect.verdict != "provisional" or effect.ratio is None:
        return ""
    return "No difference found: " if effect.ratio.open else ""


def did(effect: Effect, claimed: str, measured: str) -> str:
    """A verb in the present for a claim, in the past for what was only measured."""
    return claimed if effect.claimed else measured


def strength(effect: Effect) -> str:
    """The number of repeats, doubts or what makes it equivalent, and what its interval has."""
    text = f"n = {effect.ratio.repeats if effect.ratio is not None else 0}"
    if effect.verdict == "provisional":
        text += f"; caveat: {'; '.join(alike_as_one(doubt.words for doubt in effect.doubts))}"
    elif effect.verdict == "too small to matter":
        text += f"; equivalent: the difference is below the {_matter(effect)} that matter"
    if effect.ratio is not None and abs(math.log(effect.adjusted)) >= SAID_FROM:
        text += f"; {show_ratio(effect.adjusted)} of it for what other programs used"
    if effect.noise is not None:
        text += f"; noise floor {show_ratio(effect.noise)}"
    return text if effect.primary else f"{text}; secondary"


def distinguished(one: Interval, other: Interval) -> str:
    """Two latencies known as intervals, ranked unless these touch."""
    if one == other:
        return f"not distinguishable: both in {one} ms"
    if one.touches(other):
        return f"not distinguishable: in {one} and {other} ms"
    return f"in {one} vs {other} ms"


def percent(measure: Ratio) -> str:
    """How far apart two are, in whole per cent and at least 1."""
    return f"{max(1, round((measure.either_way - 1) * 100))} %"


def _why_uncertain(effect: Effect) -> str:
    if effect.tested is not None and effect.tested.p_beyond(effect.bound) <= LEVEL:
        return f" after correction for {effect.tests} comparisons"
    significant = effect.p is not None and effect.p <= LEVEL
    beyond = f" beyond the {_matter(effect)} that matter" if significant else ""
    could = "" if effect.smallest is None else f" (could have found {show_ratio(effect.smallest)})"
    return f"{beyond}{could}"


def _matter(effect: Effect) -> str:
    return f"{(effect.bound - 1) * 100:.3g} %"


def _incomparable(effect: Effect) -> str:
    why = f" ({effect.reasons})" if effect.reasons else ""
    subject = f"{METRICS[effect.metric].name} of {effect.about}"
    subject = upper(effect.about) if effect.metric == "throughput" else subject
    where = "any number of workers"
    where = where if effect.workers is None else counted(effect.workers, "worker")
    sides = f"{effect.baseline} and {effect.subject}"
    return f"{subject}: {sides} cannot be compared with {where}{why}."


def _near(effect: Effect, measure: Ratio) -> bool:
    """Whether two are near each other: what is measured, and also its interval if there is one."""
    low, high = measure.low or 1.0, measure.high or 1.0
    return max(measure.value, high, 1 / low) < effect.bound


def _throughput(effect: Effect, measure: Ratio, fast: Row, slow: Row) -> str:
    if _near(effect, measure):
        near = f"within {percent(measure)} of each other{_bounds(measure)}"
        text = f"{fast.layout} and {slow.layout} {did(effect, 'are', 'were')} {near}"
    else:
        times = f"{show_ratio(measure.value)}{_bounds(measure)}"
        text = f"{fast.layout} {did(effect, 'is', 'was')} {times} as fast as {slow.layout}"
    p90s = latencies(fast, slow)
    at = f" {_at_workers(effect, fast)}".rstrip()
    where = f"at {effect.about} {_where(effect, slow)}"
    return f"{text} {where}{f', p90{at} {p90s}' if p90s else ''}"


def _latency(effect: Effect, measure: Ratio, high: Row, low: Row) -> str:
    metric = METRICS[effect.metric]
    # The subject is the higher one where the ratio of it to the baseline is above 1.
    values = (effect.baseline_value, effect.subject_value)
    values = values[::-1] if high.layout == effect.subject else values
    figures = ""
    if effect.workers is not None:
        figures = f" {_versus(*values, metric.unit, _lower_bounds(metric.key, high, low))}"
    about = f"{metric.name} of {effect.about} {_where(effect, low)}"
    if _near(effect, measure):
        near = f"within {percent(measure)} of each other{_bounds(measure)}"
        return f"{about}: {high.layout} and {low.layout} {near}{figures and f',{figures}'}"
    times = f"{show_ratio(measure.value)}{_bounds(measure)}"
    verb = did(effect, "is", "was")
    return f"{high.layout}’s {about} {verb} {times} {low.layout}’s{figures and f':{figures}'}"


def _in_bins(effect: Effect, baseline: Row, subject: Row, bins: tuple[Interval, Interval]) -> str:
    first, second = (baseline, subject) if bins[0].low_ms <= bins[1].low_ms else (subject, baseline)
    within = sorted(bins, key=lambda interval: (interval.low_ms, interval.top_ms))
    at = f"with {counted(subject.workers, 'worker')}"
    about = f"{METRICS[effect.metric].name} of {effect.about} {at}"
    judged = f"{distinguished(*within)}; {strength(effect)}"
    return f"{opening(effect)}{about}, {first.layout} and {second.layout}: {judged}."


def _where(effect: Effect, slow: Row) -> str:
    """The worker counts; for several also the range of ratios, and where the other is ahead."""
    if effect.workers is not None:
        return f"with {counted(effect.workers, 'worker')}"
    counts = [count for count, _ in effect.by_count]
    if len(counts) == 1:
        return f"with {counted(counts[0], 'worker')}"
    up = effect.ratio is None or effect.ratio.value > 1
    ratios = [value if up else 1 / value for _, value in effect.by_count]
    low, high = show_ratio(min(ratios)), show_ratio(max(ratios))
    spread = f"{low} with each" if low == high else f"{low} to {high} by number of workers"
    text = f"with {counts[0]} to {counts[-1]} workers ({spread})"
    behind = [
        str(count) for count, value in zip(counts, ratios, strict=True) if value * effect.bound < 1
    ]
    leads = f"{did(effect, 'is', 'was')} {'faster' if effect.metric == 'throughput' else 'higher'}"
    return f"{text}, but {slow.layout} {leads} with {listed(behind)}" if behind else text


def latencies(fast: Row, slow: Row) -> str:
    """Both p90s: `66 ms vs 78 ms`; empty if one of them may not be ranked."""
    if not may_rank(fast, "p90") or not may_rank(slow, "p90"):
        return ""
    of_fast, of_slow = fast.figure("p90"), slow.figure("p90")
    if of_fast.within is not None and of_slow.within is not None:
        return distinguished(of_fast.within, of_slow.within)
    if of_fast.value is None or of_slow.value is None:
        return ""
    return _versus(of_fast.value, of_slow.value, "ms", _lower_bounds("p90", fast, slow))


def _versus(
    one: float | None, other: float | None, unit: str, lower_bounds: tuple[str, str]
) -> str:
    """`66 ms vs ≥ 78 ms`: two digits, or three if they would look equal."""
    digits = 2 if show_figure(one, 2) != show_figure(other, 2) else 3
    texts = (
        f"{sign}{show_figure(value, digits)} {unit}"
        for sign, value in zip(lower_bounds, (one, other), strict=True)
    )
    return " vs ".join(texts)


def _lower_bounds(metric: str, one: Row, other: Row) -> tuple[str, str]:
    return "≥ " * one.figure(metric).at_least, "≥ " * other.figure(metric).at_least


def _bounds(measure: Ratio) -> str:
    if measure.low is None or measure.high is None:
        return ""
    low, high = (show_ratio(end).removesuffix("×") for end in (measure.low, measure.high))
    return f" ({low} to {high})"


def verdict_words(comparison: Comparison) -> str:
    """How many cells have which verdict."""
    found = Counter(effect.verdict for effect in comparison.effects if effect.workers is not None)
    if not found:
        return ""
    counts = ", ".join(
        f"{found[verdict]} {verdict}" for verdict in get_args(Verdict) if found[verdict]
    )
    whose = f" of {comparison.subjects[0]}" if len(comparison.subjects) == 1 else ""
    return f"Of {found.total()} cells{whose} compared with {comparison.baseline}: {counts}."
