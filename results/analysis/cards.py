"""Cards: one finding in large type, at the head of a page or on a slide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Verdict
from weighbridge.results.analysis.findings import Finding, doubts_in_brief
from weighbridge.results.analysis.power_mark import power_brief
from weighbridge.results.doubt import doubt_words, graves
from weighbridge.results.figures import UNKNOWN, show_ratio

_CLAIMS_NOTHING: Final[dict[Verdict, str]] = {
    "not significant": "no difference found",
    "too small to matter": "equivalent: too small to matter",
}
LONGEST: Final = 150
"""Length in characters of a card's doubts; the complete text follows below the cards."""


class FigureCard(Record):
    """`figure` in large type, what it is about, and how certain it is; `colour` is CSS."""

    figure: str
    about: str
    text: str
    detail: str
    colour: str


class CardWords(Record):
    """The words of a card. Only a claim says that one layout is `over` another."""

    figure: str
    text: str
    detail: str


def foremost(pairs: Sequence[Finding]) -> Finding:
    """The layout furthest ahead of the first, else the closest one: claims come before other
    findings, and those before incomparable ones.
    """
    known = [pair for pair in pairs if pair.ratio is not None]
    claims = [pair for pair in known if pair.shown]
    ahead = [pair for pair in claims or known if pair.faster != pair.baseline]
    if ahead:
        return max(ahead, key=lambda pair: pair.ratio.value if pair.ratio else 0)
    return min(claims or known or pairs, key=lambda pair: pair.ratio.value if pair.ratio else 0)


def card_words(finding: Finding) -> CardWords:
    """The card of a finding over all worker counts; of writes with what power cuts did."""
    words, marks = _words(finding), power_brief(finding.power)
    detail = f"{words.detail}; {marks}" if marks else words.detail
    return words.model_copy(update={"detail": detail})


def _words(finding: Finding) -> CardWords:
    if finding.ratio is None:
        why = doubt_words(graves(finding.doubts)) or "see the reasons below"
        text = f"{finding.faster}, {finding.slower}: not comparable"
        return CardWords(figure=UNKNOWN, text=text, detail=_short(why))
    ratio, figure = finding.ratio, show_ratio(finding.ratio.value)
    detail = f"n = {ratio.repeats}"
    if ratio.low is not None and ratio.high is not None:
        detail = f"95 % interval {show_ratio(ratio.low)} to {show_ratio(ratio.high)}, {detail}"
    text = f"{finding.faster} over {finding.slower}"
    if finding.verdict == "provisional":
        did = f" had {figure} the throughput of {finding.slower}"
        found = f" vs {finding.slower}: no difference found" if ratio.open else did
        text = f"provisional: {finding.faster}{found}"
        detail = f"{detail}: {_short(doubts_in_brief(finding.doubts))}"
    elif finding.verdict in _CLAIMS_NOTHING:
        text = f"{finding.faster} vs {finding.slower}: {_CLAIMS_NOTHING[finding.verdict]}"
    return CardWords(figure=figure, text=text, detail=detail)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0].rstrip(',;:')} …"
