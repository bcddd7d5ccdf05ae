"""A tuning in four figures: what helps most, whether it held, what has no effect, what to avoid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weighbridge.results.analysis.cards import FigureCard
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, interval_words
from weighbridge.results.figures import UNKNOWN, upper
from weighbridge.results.percent import show_percent

BLUE: Final = "#0072B2"
ORANGE: Final = "#D55E00"
GREY: Final = "#9aa0ab"


def cards(result: TuningResult) -> tuple[FigureCard, ...]:
    """The cards that have something to say."""
    return (*_best(result), *_confirmed(result), *_without(result), *_harmful(result))


def _best(result: TuningResult) -> Iterator[FigureCard]:
    best = next(iter(result.better), None)
    if best is None:
        return
    found = [
        (number, one, one.ratio)
        for number, one in enumerate(best.effects)
        if one.verdict == "better"
    ]
    for number, effect, ratio in found[:1]:
        if ratio is not None:
            yield FigureCard(
                figure=show_percent(ratio.value),
                about=upper(result.called(number)),
                text=best.name,
                detail=f"{interval_words(effect)}, n = {ratio.repeats}; in its own trials",
                colour=BLUE,
            )


def _confirmed(result: TuningResult) -> Iterator[FigureCard]:
    if result.winner is None:
        return
    found, names = result.confirmation, result.named(result.winner.arm)
    chosen = names[0] if len(names) == 1 else f"{len(names)} settings together"
    if found is None or not found.known:
        why = "no run on fresh deployments" if found is None else f"its run is {found.state}"
        yield FigureCard(
            figure=UNKNOWN, about="Not confirmed yet", text=chosen, detail=why, colour=GREY
        )
        return
    first = next((one for one in found.known if one.verdict == "better"), found.known[0])
    ends = interval_words(first)
    yield FigureCard(
        figure=UNKNOWN if first.ratio is None else show_percent(first.ratio.value),
        about="Confirmed on fresh deployments"
        if found.confirmed
        else "Not confirmed on fresh deployments",
        text=f"{first.metric}: {chosen}",
        detail=f"{f'{ends}, ' if ends else ''}n = {found.repeats}",
        colour=BLUE if found.confirmed else ORANGE,
    )


def _without(result: TuningResult) -> Iterator[FigureCard]:
    verdicts = [one.verdict for one in result.table.entries]
    small = verdicts.count("too small to matter")
    if verdicts:
        yield FigureCard(
            figure=f"{verdicts.count('not significant')} of {len(verdicts)}",
            about="Settings with no effect found",
            text=f"and {small} with one too small to matter" if small else "not significant",
            detail="each with what could have been found",
            colour=GREY,
        )


def _harmful(result: TuningResult) -> Iterator[FigureCard]:
    verdicts = [one.verdict for one in result.table.entries]
    counts = {
        kind: verdicts.count(kind) for kind in ("worse", "trade-off", "not allowed", "failed")
    }
    if any(counts.values()):
        yield FigureCard(
            figure=str(sum(counts.values())),
            about="Settings to avoid",
            text=", ".join(f"{count} {kind}" for kind, count in counts.items() if count),
            detail="the table of trials says why",
            colour=ORANGE,
        )
