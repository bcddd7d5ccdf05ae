"""Findings in plain words: how many times one layout is another, per cell and over all worker
counts.

They are the throughputs of a comparison (`results.analysis.comparing`) with the faster layout
first: the same ratios, verdicts and sentences. A headline counts only what those verdicts allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparing import NO_CONTROLS, compare
from weighbridge.results.analysis.comparison import Comparison, Effect, Verdict
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.analysis.leads import NEAR
from weighbridge.results.analysis.power_mark import PowerMark, with_losses
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.words import percent
from weighbridge.results.doubt import Doubt, PairDoubt, doubt_words, graves
from weighbridge.results.figures import alike_as_one, all_of, show_ratio
from weighbridge.results.statistics import Ratio
from weighbridge.suites import DEFAULT_DRIVER, Api, Bounds, DriverName, Operation

BRIEF_LETTERS: Final = 60
"""Longer reasons make a headline of four lines."""


class Finding(Record):
    """A sentence about two layouts. `ratio`: faster to slower, None: not comparable; `workers`
    None: over all counts; `brief`: a few words.
    """

    workload: str
    operation: Operation
    api: Api
    driver: DriverName = DEFAULT_DRIVER
    workers: int | None
    baseline: str
    faster: str
    slower: str
    ratio: Ratio | None
    verdict: Verdict
    """Of the layout compared with the baseline."""
    brief: str
    doubts: tuple[Doubt, ...] = ()
    text: str
    power: tuple[PowerMark, ...] = ()
    rival: bool = False
    """Whether neither layout is the baseline."""

    @property
    def shown(self) -> bool:
        """Whether one may be called faster: significant, and above the noise floor."""
        return self.verdict in ("better", "worse")


def find(
    rows: Sequence[Row],
    controls: Mapping[str, str] = NO_CONTROLS,
    bounds: Bounds | None = None,
    between: Sequence[PairDoubt] = (),
) -> tuple[Finding, ...]:
    """Each workload and operation compared with the first layout, over all worker counts and at
    each. Rows are in the order of `summarize`.
    """
    return (
        findings_of(compare(rows, controls, bounds, between))
        if any(row.layout not in controls for row in rows)
        else ()
    )


def findings_of(comparison: Comparison) -> tuple[Finding, ...]:
    """The findings of a comparison in its order, then those of pairs without the baseline."""
    return (
        *(_finding(effect) for effect in comparison.effects if effect.metric == "throughput"),
        *(_finding(effect, rival=True) for effect in comparison.rivals),
    )


def _finding(effect: Effect, *, rival: bool = False) -> Finding:
    up = effect.ratio is not None and effect.ratio.value > 1
    faster, slower = (effect.subject, effect.baseline) if up else (effect.baseline, effect.subject)
    measure = effect.ratio if up or effect.ratio is None else effect.ratio.inverted
    return Finding(
        workload=effect.workload,
        operation=effect.operation,
        api=effect.api,
        driver=effect.driver,
        workers=effect.workers,
        baseline=effect.baseline,
        faster=faster,
        slower=slower,
        ratio=measure,
        verdict=effect.verdict,
        brief=_brief(effect.verdict, faster, slower, measure),
        doubts=effect.doubts,
        text=effect.text,
        power=effect.power,
        rival=rival,
    )


def _brief(verdict: Verdict, faster: str, slower: str, measure: Ratio | None) -> str:
    """The relation in brief. Only layouts proven equivalent are said to be near each other."""
    if measure is None:
        return f"{faster}, {slower}: not comparable"
    if verdict == "too small to matter":
        return f"{faster} and {slower} within {percent(measure)}"
    near = measure.value < 1 + NEAR or (verdict == "provisional" and measure.open)
    if near and verdict not in ("better", "worse"):
        return (
            f"{faster}, {slower}: "
            f"{'provisional, ' * (verdict == 'provisional')}{undecided(measure)}"
        )
    mark = f", {verdict}" if verdict in ("not significant", "provisional") else ""
    return f"{faster} {show_ratio(measure.value)} {slower}{mark}"


def undecided(measure: Ratio) -> str:
    """No difference was found; with the range that is not ruled out."""
    if measure.low is None or measure.high is None:
        return "no difference found"
    return f"no difference found ({show_ratio(measure.low)} to {show_ratio(measure.high)})"


class Lead(Record):
    """Who leads in a kind of requests by one driver, and by how much; None: too close to call."""

    layout: str | None
    margin: float = 1.0
    repeats: PositiveInt = 1
    """Of the side with the fewest."""
    doubts: tuple[Doubt, ...] = ()
    """Why it is provisional, so that nobody may be said to lead; empty if it is a claim."""
    excluded: tuple[str, ...] = ()


def lead(pairs: Sequence[Finding], rivals: Sequence[Finding] = ()) -> Lead | None:
    """The leader according to findings over all worker counts of one kind of requests; None if
    nothing is comparable.

    `rivals` are findings of pairs without the baseline. The first leads the second if their finding
    is significant, by the same test, threshold and noise floor as any other. With a doubt it is
    provisional, if its interval does not include 1.
    """
    scores = _scores(pairs)
    if len(scores) < 2:
        return None
    excluded = tuple(
        pair.slower if pair.faster == pair.baseline else pair.faster
        for pair in pairs
        if pair.ratio is None
    )
    (leader, best), (other, second) = sorted(scores.items(), key=lambda item: -item[1].value)[:2]
    direct = next(
        (one for one in (*pairs, *rivals) if {one.faster, one.slower} == {leader, other}), None
    )
    if direct is None or direct.ratio is None or direct.faster != leader:
        return Lead(layout=None, excluded=excluded)
    ratio = direct.ratio
    ahead = direct.verdict == "provisional" and ratio.value >= 1 + NEAR and not ratio.open
    if not (direct.shown or ahead):
        return Lead(layout=None, excluded=excluded)
    return Lead(
        layout=leader,
        margin=ratio.value,
        repeats=min(best.repeats, second.repeats),
        doubts=direct.doubts,
        excluded=excluded,
    )


def leads_by_driver(
    findings: Sequence[Finding],
) -> dict[tuple[str, Operation, Api], tuple[Lead | None, ...]]:
    """Who leads in each kind of requests, per driver."""
    found: dict[tuple[str, Operation, Api], tuple[Lead | None, ...]] = {}
    rivals = overall([finding for finding in findings if finding.rival], rivals=True)
    for kind, pairs in overall(findings).items():
        workload, operation, api, _ = kind
        found[workload, operation, api] = (
            *found.get((workload, operation, api), ()),
            lead(pairs, rivals.get(kind, ())),
        )
    return found


def headline(findings: Sequence[Finding]) -> str:
    """One sentence about a run: which layout leads in how many kinds of requests.

    A kind measured by two drivers counts once, and only for what both agree on: if their leaders
    differ the sentence says so, and if one could compare nothing it was not comparable. With a
    doubt a lead is provisional. Whoever lost acknowledged writes is named.
    """
    return with_losses(_headline(findings), [mark for one in findings for mark in one.power])


def _headline(findings: Sequence[Finding]) -> str:
    kinds = leads_by_driver(findings)
    if not kinds:
        return "Only one layout was measured: there is nothing to compare it with"
    leads: dict[str, list[tuple[float, ...]]] = {}
    ahead: dict[str, list[tuple[float, ...]]] = {}
    doubts: dict[Doubt, None] = {}
    excluded: Counter[str] = Counter()
    close = apart = lacking = 0
    for by_driver in kinds.values():
        known = [one for one in by_driver if one is not None]
        leaders = {one.layout for one in known}
        excluded.update({name for one in known for name in one.excluded})
        if len(known) < len(by_driver):
            lacking += 1
        elif len(leaders) > 1:
            apart += 1
        elif (leader := known[0].layout) is not None:
            found = [doubt for one in known for doubt in one.doubts]
            (ahead if found else leads).setdefault(leader, []).append(
                tuple(one.margin for one in known)
            )
            doubts.update(dict.fromkeys(found))
        else:
            close += 1
    if lacking == len(kinds):
        return _nothing(findings)
    rest = [f"{close} too close to call"] * bool(close)
    rest += [f"in {apart} the drivers do not agree"] * bool(apart)
    rest += [f"{lacking} could not be compared{_graves(findings)}"] * bool(lacking)
    rest += [
        f"{name} could not be compared{f' in {count}' if len(kinds) > 1 else ''}"
        for name, count in excluded.items()
    ]
    provisional = _counted(ahead, len(kinds), "does more")
    why = doubts_in_brief(list(doubts))
    if not leads and not ahead:
        return f"No layout leads: {', '.join(rest)}"
    if not leads:
        provisional[-1] += f" ({why})"
        return f"Provisional: {', '.join([*provisional, *rest])}"
    rest += [f"{sum(map(len, ahead.values()))} provisional ({why})"] * bool(ahead)
    return ", ".join([*_counted(leads, len(kinds), "leads"), *rest])


def doubts_in_brief(doubts: Sequence[Doubt]) -> str:
    """A single short reason in its own words, others by their names: a headline has little room."""
    words = list(dict.fromkeys(one.words for one in doubts))
    if len(words) == 1 and len(words[0]) <= BRIEF_LETTERS:
        return words[0]
    return ", ".join(dict.fromkeys(one.what for one in doubts))


def _counted(leads: Mapping[str, Sequence[tuple[float, ...]]], kinds: int, verb: str) -> list[str]:
    """Who does so in how many kinds of requests, most first; if in all, by how much."""
    ordered = sorted(leads.items(), key=lambda item: -len(item[1]))
    if len(ordered) == 1 and len(ordered[0][1]) == kinds:
        name, margins = ordered[0]
        by_all = [margin for by_each in margins for margin in by_each]
        low, high = show_ratio(min(by_all)), show_ratio(max(by_all))
        where = all_of(kinds, "kinds of requests") if kinds > 1 else "the requests replayed"
        return [f"{name} {verb} in {where}, by {low}{f' to {high}' if low != high else ''}"]
    parts = [
        f"{name} {verb} in {len(margins)} of {kinds} kinds of requests"
        for name, margins in ordered[:1]
    ]
    return parts + [f"{name} in {len(margins)}" for name, margins in ordered[1:]]


def _nothing(findings: Sequence[Finding]) -> str:
    """Nothing may be ranked, and why if a doubt is the reason."""
    why = _graves(findings)
    return f"Nothing may be ranked{why}" if why else "Nothing could be compared"


def _graves(findings: Sequence[Finding]) -> str:
    """The gravest reason, to end a clause with, and how many more there are."""
    doubts = (doubt for one in findings if one.ratio is None for doubt in graves(one.doubts))
    found = alike_as_one(doubt_words([one]) for one in doubts)
    if not found:
        return ""
    more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
    return f", since {found[0]}{more}"


def _scores(pairs: Sequence[Finding]) -> dict[str, Ratio]:
    known = [(pair, pair.ratio) for pair in pairs if pair.ratio is not None]
    scores = {
        pair.baseline: Ratio(value=1.0, low=1.0, high=1.0, repeats=ratio.repeats)
        for pair, ratio in known
    }
    for pair, ratio in known:
        if pair.faster == pair.baseline:
            scores[pair.slower] = ratio.inverted
        else:
            scores[pair.faster] = ratio
    return scores


def overall(findings: Sequence[Finding], *, rivals: bool = False) -> dict[Kind, list[Finding]]:
    """Findings over all worker counts by kind; with `rivals` those without the baseline."""
    kinds: dict[Kind, list[Finding]] = {}
    for finding in findings:
        if finding.workers is None and finding.rival == rivals:
            kinds.setdefault(kind_of(finding), []).append(finding)
    return kinds
