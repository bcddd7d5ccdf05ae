"""Repeats of one step judged together: a window that moves by itself is not yet a step that does.

On a machine whose speed varies, single windows rise or fall although the step is in a steady state.
Leaving those out would keep the repeats of one level of the machine's speed. So where enough
repeats are known, a window's own drift makes none of them unsteady: what all of them do decides
(`results.analysis.steps.steady_repeats`), and the rest is part of their spread, which the intervals
show. A stall, or a recurring dip, is judged in its own window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.results.analysis.steps.steadiness import NOT_STEADY, Steadiness
from weighbridge.results.analysis.steps.steady_repeats import steady_over_repeats
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.record import StepKey
from weighbridge.results.statistics import REPEATS_FOR_A_CLAIM

BY_ITSELF: Final = f"by itself {NOT_STEADY}"
"""How notes begin of a window that moved, if its repeats decide together."""


def judged_together(found: Mapping[StepKey, JudgedStep]) -> dict[StepKey, JudgedStep]:
    """The same steps; of those with enough repeats, none is unsteady for its own drift alone."""
    cells: dict[StepKey, list[JudgedStep]] = {}
    for key, one in found.items():
        cells.setdefault(key.model_copy(update={"repeat": 0}), []).append(one)
    judged = dict(found)
    for repeats in cells.values():
        fit = [one for one in repeats if one.valid and _move(one) is not None and not _stalls(one)]
        if len(fit) < REPEATS_FOR_A_CLAIM or not any(one.drifts for one in fit):
            continue
        warming = sum(any(point.warmup_s for point in one.points.values()) for one in fit)
        for one in fit:
            if one.drifts:
                judged[one.key] = _left_open(one, warms=2 * warming > len(fit))
    return judged


def verdict_on(shown: Sequence[Point], beside: Sequence[float | None]) -> Steadiness:
    """The verdict on repeats that count: unsteady if one was; if they cannot decide alone, judged
    together. `beside` are the moves of all other steps of the layout.
    """
    verdicts = {point.steady for point in shown}
    if False in verdicts or verdicts == {True}:
        return Steadiness(steady=False not in verdicts)
    # Drift from repeat to repeat is part of the intervals and affects all layouts, since blocks are
    # balanced: it does not make a step unsteady.
    found = steady_over_repeats(
        [point.move for point in shown],
        beside,
        grain=max((point.grain for point in shown), default=0.0),
        shapes=[point.shape for point in shown],
    )
    # With few repeats, the notes of each say why it is unknown.
    return found if len(shown) >= REPEATS_FOR_A_CLAIM else Steadiness(steady=None)


def _move(one: JudgedStep) -> float | None:
    return next((point.move for point in one.points.values()), None)


def _stalls(one: JudgedStep) -> bool:
    return one.steady is False and not one.drifts


def _left_open(one: JudgedStep, *, warms: bool) -> JudgedStep:
    """The step with its own verdict open. `warms`: most of its repeats were still warming up."""

    def notes(of: Sequence[str]) -> tuple[str, ...]:
        start = f"{NOT_STEADY}: "
        return tuple(
            f"{BY_ITSELF}: {note.removeprefix(start)}" if note.startswith(start) else note
            for note in of
        )

    points = {
        operation: point.model_copy(
            update={
                "steady": None,
                "notes": notes(point.notes),
                "warmup_s": point.warmup_s if warms else None,
            }
        )
        for operation, point in one.points.items()
    }
    return one.model_copy(update={"steady": None, "notes": notes(one.notes), "points": points})
