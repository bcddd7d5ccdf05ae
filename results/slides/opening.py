"""The first slide of a talk: the question, and the answer in one sentence with its basis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weighbridge.results.analysis.cards import card_words, foremost
from weighbridge.results.analysis.comparison import NoiseFloor
from weighbridge.results.analysis.findings import Finding, headline
from weighbridge.results.figures import counted, listed, show_ratio, upper
from weighbridge.results.metrics import METRICS
from weighbridge.results.show.theme import Look
from weighbridge.results.slides.evidence import Evidence, rests_on
from weighbridge.results.slides.slide import Slide, SlideCard

CARDS: Final = 8
"""The most cards that are readable; the map has all kinds of requests."""


def opening(evidence: Evidence, look: Look) -> Slide:
    """The first slide."""
    cards = tuple(_card(evidence, about, pairs, look) for about, pairs in _kind_pairs(evidence))
    more = (
        (f"{counted(len(cards) - CARDS, 'more kind')} of requests: see the map.",)
        if len(cards) > CARDS
        else ()
    )
    return Slide(
        key="answer",
        title=answer(evidence),
        lead=_question(evidence),
        cards=cards[:CARDS],
        lines=(*_state(evidence), *more, f"{_repeats(evidence)} {_noise(evidence)}"),
        notes=(
            f"Suite {evidence.plan.suite.name}: {evidence.plan.suite.about}.",
            f"{_repeats(evidence)} {_noise(evidence)}",
            *(finding.text for pairs in evidence.pairs.values() for finding in pairs),
            *(f"{one.mark}: {one.text}." for one in evidence.reasons),
            *_state(evidence),
        ),
        opening=True,
    )


def answer(evidence: Evidence) -> str:
    """The result of the run, a sentence without a full stop."""
    if not any(row.ranked for row in evidence.rows):
        return "Nothing valid was measured"
    return (
        headline(evidence.findings)
        if len(evidence.layouts) > 1
        else f"{evidence.layouts[0]}, measured alone"
    )


def _question(evidence: Evidence) -> str:
    names = list(evidence.called.values())
    what = listed(names) if len(names) <= 3 else f"{len(names)} kinds of requests"
    if len(evidence.layouts) == 1:
        return f"What does {evidence.layouts[0]} do with {what}?"
    which = (
        listed(evidence.layouts, "or")
        if len(evidence.layouts) <= 6
        else f"which of {len(evidence.layouts)} layouts"
    )
    return f"Which serves {what} fastest: {which}?"


def _kind_pairs(evidence: Evidence) -> list[tuple[str, Sequence[Finding]]]:
    return [(evidence.called[kind], pairs) for kind, pairs in evidence.pairs.items()]


def _card(evidence: Evidence, about: str, pairs: Sequence[Finding], look: Look) -> SlideCard:
    """The layout farthest ahead of the first, else its smallest lead; claims are coloured."""
    chosen = foremost(pairs)
    words = card_words(chosen)
    colour = evidence.drawn(look)[chosen.faster].colour if chosen.shown else look.muted
    return SlideCard(
        figure=words.figure, about=upper(about), text=words.text, detail=words.detail, colour=colour
    )


def _repeats(evidence: Evidence) -> str:
    planned, (fewest, most) = evidence.plan.suite.repeats, evidence.repeats
    if not fewest:
        return "Nothing was measured."
    order = ", in balanced order" if evidence.plan.balanced else ""
    text = f"{counted(planned, 'repeat')} of every step{order} ({rests_on(most)})"
    return f"{text}{f'; some figures have only {fewest}' if fewest < planned else ''}."


def _noise(evidence: Evidence) -> str:
    noise = evidence.comparison.noise
    if not noise and evidence.comparison.unused:
        return " ".join(evidence.comparison.unused)
    if not noise:
        return "The noise floor of this machine is not known: no A/A control was measured."
    words = listed([_floor_words(one) for one in noise])
    return f"Noise floor, {noise[0].layout} vs itself: {words}."


def _floor_words(one: NoiseFloor) -> str:
    return f"{METRICS[one.metric].name} {show_ratio(one.ratio)}"


def _state(evidence: Evidence) -> tuple[str, ...]:
    """That a run is not complete, and why."""
    manifest = evidence.manifest
    if manifest.state == "done":
        return ()
    why = f": {manifest.error.splitlines()[0]}" if manifest.error else ""
    return (f"This run is not complete: {manifest.state}{why}.",)
