from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.results.analysis.comparison import Effect
from weighbridge.results.analysis.sameness import verdict
from weighbridge.results.analysis.tuning.setting_lines import change_figure, short_names
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, cards
from weighbridge.results.analysis.words import Card
from weighbridge.results.figures import counted, upper
from weighbridge.results.show.theme import Look, diverging
from weighbridge.results.slides.closing import loop_words, repeat
from weighbridge.results.slides.evidence import Evidence
from weighbridge.results.slides.setup import setup
from weighbridge.results.slides.slide import Deck, Slide, SlideCard
from weighbridge.results.slides.tuning import change_chart
from weighbridge.results.slides.tuning_tables import (
    chosen_slides,
    confirmation_slides,
    setting_slides,
    tried_slides,
    without_effect_slides,
)

BARS: Final = 12
_FAULTS: Final = 5
"""The most faults on the slide of limits; the notes have all."""


def tuning_talk(evidence: Evidence, result: TuningResult, look: Look) -> Deck:
    """The deck of a tuning."""
    manifest, tuning = evidence.manifest, result.run.tuning
    return Deck(
        title=result.headline,
        subject=f"{tuning.about}: {tuning.layout}",
        footer=f"Weighbridge · tuning {tuning.name} · {manifest.created_at[:10]}",
        dated=manifest.created_at,
        look=look,
        colours=(diverging(look)[5], diverging(look)[1]),
        slides=(
            _answer(evidence, result),
            *setup(_of_baseline(evidence, result), look),
            *tried_slides(result, look),
            *setting_slides(result, look),
            *_tornados(result),
            *without_effect_slides(result, look),
            *chosen_slides(result, look),
            *confirmation_slides(result, look),
            _limits(evidence, result),
            repeat(evidence),
        ),
    )


def _of_baseline(evidence: Evidence, result: TuningResult) -> Evidence:
    """The evidence of the baseline only, with as many repeats as it has trials."""
    name = result.table.baseline.name
    rows = tuple(row for row in evidence.rows if row.layout == name)
    suite = evidence.plan.suite.model_copy(
        update={"repeats": max((row.repeats for row in rows), default=1) or 1}
    )
    layouts = tuple(one for one in evidence.plan.layouts if one.name == name)
    return evidence.model_copy(
        update={
            "plan": evidence.plan.model_copy(update={"layouts": layouts, "suite": suite}),
            "rows": rows,
        }
    )


def _answer(evidence: Evidence, result: TuningResult) -> Slide:
    run, entries = result.run, result.table.entries
    objectives = " and ".join(result.called(number) for number in range(len(run.objectives)))
    lines = [
        (
            f"{counted(result.table.trials, 'trial')} in {counted(result.rounds, 'round')}, each "
            "compared with the baseline beside it."
        )
    ]
    if result.winner is not None:
        lines.append(result.confirmation_words)
    if evidence.manifest.state != "done":
        lines.insert(0, f"This tuning is not complete: {evidence.manifest.state}.")
    return Slide(
        key="answer",
        title=result.headline,
        lead=f"Which of {counted(len(entries), 'setting')} of {run.tuning.layout} help "
        f"{objectives}?",
        cards=tuple(_card(one) for one in cards(result)),
        lines=tuple(lines) if len(" ".join(lines)) < 260 else tuple(lines[:1]),
        notes=(
            *(f"{effect.text}." for entry in result.better for effect in entry.effects),
            result.winner_words,
            result.confirmation_words,
            result.without_effect_words or "No setting has been tried yet.",
        ),
        opening=True,
    )


def _card(one: Card) -> SlideCard:
    """The card with the setting's short name, since a long one does not fit."""
    return SlideCard(
        figure=one.figure,
        about=one.about,
        text=short_names([one.text])[one.text],
        detail=one.detail,
        colour=one.colour,
    )


def _tornados(result: TuningResult) -> Iterator[Slide]:
    for number, objective in enumerate(result.run.objectives):
        mine = [(one.name, one.effects[number]) for one in result.table.entries]
        known = sorted(
            (one for one in mine if one[1].ratio is not None),
            key=lambda one: one[1].ratio.either_way if one[1].ratio is not None else 0.0,
            reverse=True,
        )
        if not known:
            continue
        shown = known[:BARS]
        short = short_names([name for name, _ in known])
        first, effect = shown[0]
        title = (
            f"{short[first]} changes the {result.called(number)} most: {change_figure(effect)}"
            if effect.verdict in ("better", "worse")
            else f"No setting changes the {result.called(number)} significantly"
        )
        left = f" The notes have {len(known) - len(shown)} more." if len(known) > len(shown) else ""
        yield Slide(
            key=f"tornado-{number + 1}",
            title=title,
            lead=f"{upper(result.called(number))} compared with the baseline beside it; "
            f"{_counted_trials(known)}",
            chart=change_chart(
                [(short[name], change_figure(one), one) for name, one in shown], objective.of
            ),
            foot="Blue: better, orange: worse, grey, ~: no significant effect. Whiskers: "
            f"95 % interval.{left}",
            notes=tuple(f"{one.text}." for _, one in mine),
        )


def _counted_trials(known: Sequence[tuple[str, Effect]]) -> str:
    counts = [one.ratio.repeats for _, one in known if one.ratio is not None]
    low, high = min(counts), max(counts)
    return f"n = {low}" if low == high else f"n = {low} to {high}"


def _limits(evidence: Evidence, result: TuningResult) -> Slide:
    """What does not count, how the machine drifted, and what a screening cannot show."""
    bad = sum(one.value is None for one in result.table.readings)
    readings = len(result.table.readings)
    title = (
        f"{bad} of {counted(readings, 'reading')} {'does' if bad == 1 else 'do'} not count"
        if bad
        else f"All {counted(readings, 'reading')} count"
    )
    if evidence.manifest.state != "done":
        state = evidence.manifest.state
        title = f"The tuning is not complete ({state}): {title[:1].lower()}{title[1:]}"
    refused = [
        f"{one.name}: {one.verdict}{f' ({one.notes[0]})' if one.notes else ''}."
        for one in result.refused
    ]
    drift = [f"{upper(one.words.rstrip('.'))}." for one in result.table.drift]
    alone = ("Each setting was tried alone: combined effects are known only where confirmed.",) * (
        result.run.tuning.strategy == "screen"
    )
    hosts = (
        f"{verdict(evidence.attested)}." if evidence.attested else "The hosts were not attested."
    )
    why = dict.fromkeys(one.why for one in result.table.readings if one.value is None and one.why)
    return Slide(
        key="limits",
        title=title,
        lines=(
            *(f"{upper(gap)}." for gap in evidence.gaps),
            *refused[:_FAULTS],
            *drift[:2],
            *alone,
            hosts,
            *loop_words(evidence),
        ),
        notes=(*refused, *drift, *alone, hosts, *why),
    )
