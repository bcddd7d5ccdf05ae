"""Findings in plain words: how many times one layout is another, cell by cell and over all worker
counts of a workload.

They are the throughputs of a comparison (`results.analysis.comparing`) with the faster layout
first: the same ratios, the same verdicts and the same sentences. A headline counts only what those
verdicts allow. A card is one of them as the head of a page or a talk puts it on a screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparing import NO_TWINS, compare
from weighbridge.results.analysis.comparison import Comparison, Effect, Verdict
from weighbridge.results.analysis.contrast import comparable, reason
from weighbridge.results.analysis.kinds import Kind, kind_of, subjects
from weighbridge.results.analysis.sentence import percent, told_apart
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import Doubt, PairDoubt, doubt_words, graves
from weighbridge.results.figures import UNKNOWN, show_ratio
from weighbridge.results.statistics import Ratio
from weighbridge.suites import DEFAULT_DRIVER, Api, Bounds, DriverName, Operation

__all__ = [
    "NEAR",
    "Finding",
    "Kind",
    "Lead",
    "comparable",
    "find",
    "findings_of",
    "headline",
    "kind_of",
    "lead",
    "leads_by_driver",
    "overall",
    "reason",
    "subjects",
    "told_apart",
]

NEAR: Final = 0.05
"""Ratios nearer to 1 than this are of no practical weight, whatever their interval, where a suite
does not say otherwise.
"""


class Finding(Record):
    """One sentence about two layouts. `ratio` is how many times `faster` does what `slower` does;
    None: not comparable.

    `workers` is None for the finding over all worker counts. `brief` is the relation alone, in a
    few words.
    """

    workload: str
    operation: Operation
    api: Api
    driver: DriverName = DEFAULT_DRIVER
    workers: int | None
    baseline: str
    """The layout that all others are compared with: the first of the run."""
    faster: str
    slower: str
    ratio: Ratio | None
    verdict: Verdict
    """Of the layout that is compared with the baseline."""
    brief: str
    doubts: tuple[Doubt, ...] = ()
    """What there is to doubt of it, the grave first."""
    text: str
    rival: bool = False
    """Whether neither of the two is the baseline."""

    @property
    def shown(self) -> bool:
        """Whether it may be claimed that the one is faster: shown after correction, and by more
        than the rig's noise.
        """
        return self.verdict in ("better", "worse")


def find(
    rows: Sequence[Row],
    twins: Mapping[str, str] = NO_TWINS,
    bounds: Bounds | None = None,
    between: Sequence[PairDoubt] = (),
) -> tuple[Finding, ...]:
    """The findings of a table: for each workload and operation one over all worker counts, then one
    a worker count.

    Every layout is compared with the first; rows must be in the order that `summarize` gives.
    """
    return (
        findings_of(compare(rows, twins, bounds, between))
        if any(row.layout not in twins for row in rows)
        else ()
    )


def findings_of(comparison: Comparison) -> tuple[Finding, ...]:
    """The findings of a comparison, in its order; then those of two layouts of which neither is the
    baseline.
    """
    rivals = tuple(_finding(effect, rival=True) for effect in comparison.rivals)
    return (
        *(_finding(effect) for effect in comparison.effects if effect.metric == "throughput"),
        *rivals,
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
        rival=rival,
    )


def _brief(verdict: Verdict, faster: str, slower: str, measure: Ratio | None) -> str:
    """The relation alone. That two are near each other is said of those that are shown to be."""
    if measure is None:
        return f"{faster}, {slower}: not comparable"
    if verdict == "too small to matter":
        return f"{faster} and {slower} within {percent(measure)}"
    if measure.value < 1 + NEAR and verdict not in ("better", "worse"):
        return (
            f"{faster}, {slower}: "
            f"{'provisional, ' * (verdict == 'provisional')}{undecided(measure)}"
        )
    mark = f", {verdict}" if verdict in ("not shown", "provisional") else ""
    return f"{faster} {show_ratio(measure.value)} {slower}{mark}"


def undecided(measure: Ratio) -> str:
    """That nothing is known of two that came out alike, with the ends of what is not ruled out."""
    if measure.low is None or measure.high is None:
        return "no difference shown"
    return f"no difference shown ({show_ratio(measure.low)} to {show_ratio(measure.high)})"


class Lead(Record):
    """Who leads in a kind of requests by one driver, and by how much; None: too close to call."""

    layout: str | None
    margin: float = 1.0
    repeats: PositiveInt = 1
    """Of the side that has the fewest."""
    doubts: tuple[Doubt, ...] = ()
    """Why it is provisional: the layout did more, and nobody may say that it leads.

    Empty where it is a claim.
    """
    excluded: tuple[str, ...] = ()
    """Layouts that could not be compared."""


def lead(pairs: Sequence[Finding], rivals: Sequence[Finding] = ()) -> Lead | None:
    """Which layout leads by the findings over all worker counts of one kind of requests; None where
    nothing could be compared.

    `rivals` are those of two layouts of which neither is the baseline. The first leads the second
    where the finding about these two shows it: by the same test, threshold and noise floor as any
    other. One that a doubt touches is provisional.
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
    if (
        direct is None
        or direct.ratio is None
        or direct.faster != leader
        or not (direct.shown or direct.verdict == "provisional")
    ):
        return Lead(layout=None, excluded=excluded)
    if direct.verdict == "provisional" and direct.ratio.value < 1 + NEAR:
        return Lead(layout=None, excluded=excluded)
    repeats = min(best.repeats, second.repeats)
    return Lead(
        layout=leader,
        margin=direct.ratio.value,
        repeats=repeats,
        doubts=direct.doubts,
        excluded=excluded,
    )


def leads_by_driver(
    findings: Sequence[Finding],
) -> dict[tuple[str, Operation, Api], tuple[Lead | None, ...]]:
    """Who leads in each kind of requests, by each of the drivers that made them."""
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
    """One sentence over all of a run: which layout leads in how many kinds of requests, as far as
    that may be said.

    A kind that two drivers made counts once, and only for what both of them say: where their
    leaders differ it says so, and where one of them could compare nothing it could not be compared.
    What a doubt touches is provisional, and leads nothing.
    """
    kinds = leads_by_driver(findings)
    if not kinds:
        return "One layout was weighed: there is nothing to compare it with"
    leads: dict[str, list[tuple[float, ...]]] = {}
    ahead: dict[str, list[tuple[float, ...]]] = {}
    doubts: dict[Doubt, None] = {}
    excluded: Counter[str] = Counter()
    close = apart = lacking = 0
    for told in kinds.values():
        known = [one for one in told if one is not None]
        leaders = {one.layout for one in known}
        excluded.update({name for one in known for name in one.excluded})
        if len(known) < len(told):
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
    why = _why(list(doubts))
    if not leads:
        return (
            f"Provisional: {', '.join([*provisional, *rest])} ({why})"
            if ahead
            else f"No layout leads: {', '.join(rest)}"
        )
    rest += [f"{sum(map(len, ahead.values()))} provisional ({why})"] * bool(ahead)
    return ", ".join([*_counted(leads, len(kinds), "leads"), *rest])


def _why(doubts: Sequence[Doubt]) -> str:
    """A lone reason in its own words; of several what each is about, since a headline has no room
    for more.
    """
    words = list(dict.fromkeys(one.words for one in doubts))
    return words[0] if len(words) == 1 else ", ".join(dict.fromkeys(one.what for one in doubts))


def _counted(leads: Mapping[str, Sequence[tuple[float, ...]]], kinds: int, verb: str) -> list[str]:
    """Who does so in how many of so many kinds of requests, the most first; of one who does in all
    of them by how much.
    """
    ordered = sorted(leads.items(), key=lambda item: -len(item[1]))
    if len(ordered) == 1 and len(ordered[0][1]) == kinds:
        name, margins = ordered[0]
        by_all = [margin for by_each in margins for margin in by_each]
        low, high = show_ratio(min(by_all)), show_ratio(max(by_all))
        where = f"all {kinds} kinds of requests" if kinds > 1 else "the requests replayed"
        return [f"{name} {verb} in {where}, by {low}{f' to {high}' if low != high else ''}"]
    parts = [
        f"{name} {verb} in {len(margins)} of {kinds} kinds of requests"
        for name, margins in ordered[:1]
    ]
    return parts + [f"{name} in {len(margins)}" for name, margins in ordered[1:]]


def _nothing(findings: Sequence[Finding]) -> str:
    """That nothing may be ranked, and why, where a doubt is the reason."""
    why = _graves(findings)
    return f"Nothing may be ranked{why}" if why else "Nothing could be compared"


def _graves(findings: Sequence[Finding]) -> str:
    """The gravest reason, to end a clause with; of several how many more there are."""
    found = list(
        dict.fromkeys(
            doubt for one in findings if one.ratio is None for doubt in graves(one.doubts)
        )
    )
    if not found:
        return ""
    more = f"; and {len(found) - 1} more" if len(found) > 1 else ""
    return f", since {doubt_words(found[:1])}{more}"


def _scores(pairs: Sequence[Finding]) -> dict[str, Ratio]:
    """How many times the baseline each layout is, of those that could be compared with it."""
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
    """The findings against the baseline that go over all worker counts, by kind of requests; of
    `rivals` those of two others.
    """
    kinds: dict[Kind, list[Finding]] = {}
    for finding in findings:
        if finding.workers is None and finding.rival == rivals:
            kinds.setdefault(kind_of(finding), []).append(finding)
    return kinds


_CLAIMS_NOTHING: Final[dict[Verdict, str]] = {
    "not shown": "no difference shown",
    "too small to matter": "equivalent: too small to matter",
}
LONGEST: Final = 150
"""Characters of what is in doubt that a card holds; all of it stands below the cards."""


class FigureCard(Record):
    """`figure` in large type, what it is about, and how sure it is; `colour` is CSS."""

    figure: str
    about: str
    text: str
    detail: str
    colour: str


class CardWords(Record):
    """What a card says of a finding.

    Only of one that is a claim it says that one layout is `over` another.
    """

    figure: str
    text: str
    detail: str


def foremost(pairs: Sequence[Finding]) -> Finding:
    """Of several layouts against the first: the one farthest ahead of it, else the one that comes
    nearest to it.

    Claims come before what is provisional or not shown, and those before what cannot be compared.
    """
    known = [pair for pair in pairs if pair.ratio is not None]
    claims = [pair for pair in known if pair.shown]
    ahead = [pair for pair in claims or known if pair.faster != pair.baseline]
    if ahead:
        return max(ahead, key=lambda pair: pair.ratio.value if pair.ratio else 0)
    return min(claims or known or pairs, key=lambda pair: pair.ratio.value if pair.ratio else 0)


def card_words(finding: Finding) -> CardWords:
    """What a card says of a finding over all worker counts."""
    if finding.ratio is None:
        why = doubt_words(graves(finding.doubts)) or "see below why"
        return CardWords(
            figure=UNKNOWN,
            text=f"{finding.faster}, {finding.slower}: not comparable",
            detail=_short(why),
        )
    low, high = finding.ratio.low, finding.ratio.high
    interval = (
        f"95 % interval {show_ratio(low)} to {show_ratio(high)}, "
        if low is not None and high is not None
        else ""
    )
    detail = f"{interval}n = {finding.ratio.repeats}"
    if finding.verdict == "provisional":
        words = list(dict.fromkeys(doubt.words for doubt in finding.doubts))
        kinds = dict.fromkeys(doubt.what for doubt in finding.doubts)
        why = _short(words[0] if len(words) == 1 else ", ".join(kinds))
        relation = (
            f"{finding.faster} did {show_ratio(finding.ratio.value)} what {finding.slower} did"
        )
        return CardWords(
            figure=show_ratio(finding.ratio.value),
            text=f"provisional: {relation}",
            detail=f"{detail}: {why}",
        )
    if finding.verdict in _CLAIMS_NOTHING:
        text = f"{finding.faster} beside {finding.slower}: {_CLAIMS_NOTHING[finding.verdict]}"
        return CardWords(figure=show_ratio(finding.ratio.value), text=text, detail=detail)
    return CardWords(
        figure=show_ratio(finding.ratio.value),
        text=f"{finding.faster} over {finding.slower}",
        detail=detail,
    )


def _short(text: str) -> str:
    """The text as far as a card holds it, up to a whole word."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0].rstrip(',;:')} …"
