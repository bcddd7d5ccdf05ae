"""A card: one figure as the head of a page or a talk puts it on a screen, and in which words a finding stands on one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.common.record import Record
from weighbridge.results.analysis.comparison import Verdict
from weighbridge.results.analysis.findings import Finding
from weighbridge.results.doubt import doubt_words, graves
from weighbridge.results.figures import UNKNOWN, show_ratio

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
    """What a card says of a finding. Only of one that is a claim it says that one layout is `over` another."""

    figure: str
    text: str
    detail: str


def foremost(pairs: Sequence[Finding]) -> Finding:
    """Of several layouts against the first: the one farthest ahead of it, else the one that comes nearest to it.

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
        return CardWords(figure=UNKNOWN, text=f"{finding.faster}, {finding.slower}: not comparable", detail=_short(why))
    low, high = finding.ratio.low, finding.ratio.high
    interval = f"95 % interval {show_ratio(low)} to {show_ratio(high)}, " if low is not None and high is not None else ""
    detail = f"{interval}n = {finding.ratio.repeats}"
    if finding.verdict == "provisional":
        words = list(dict.fromkeys(doubt.words for doubt in finding.doubts))
        kinds = dict.fromkeys(doubt.what for doubt in finding.doubts)
        why = _short(words[0] if len(words) == 1 else ", ".join(kinds))
        relation = f"{finding.faster} did {show_ratio(finding.ratio.value)} what {finding.slower} did"
        return CardWords(figure=show_ratio(finding.ratio.value), text=f"provisional: {relation}", detail=f"{detail}: {why}")
    if finding.verdict in _CLAIMS_NOTHING:
        text = f"{finding.faster} beside {finding.slower}: {_CLAIMS_NOTHING[finding.verdict]}"
        return CardWords(figure=show_ratio(finding.ratio.value), text=text, detail=detail)
    return CardWords(figure=show_ratio(finding.ratio.value), text=f"{finding.faster} over {finding.slower}", detail=detail)


def _short(text: str) -> str:
    """The text as far as a card holds it, up to a whole word."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST].rsplit(' ', 1)[0].rstrip(',;:')} …"
