"""Doubts about a row of the table: what was left out of it, and what was measured beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from weighbridge.results.analysis.steps.steadiness import UNKNOWN_STEADINESS, Steadiness
from weighbridge.results.analysis.steps.use import StepUse, others, quota_touches
from weighbridge.results.analysis.steps.visit import JudgedStep, Point
from weighbridge.results.doubt import Doubt, Grade, beside
from weighbridge.results.metrics import Metric, compared

DRIFT_MOST: Final = 0.5
"""If a larger drift than this is not ruled out, a row is provisional whatever the ratio."""


def row_doubts(
    found: Sequence[JudgedStep],
    points: Sequence[Point],
    shown: Sequence[Point],
    known: Sequence[StepUse | None],
    verdict: Steadiness,
) -> Iterator[Doubt]:
    """The doubts about the figures of a row.

    `found` are its repeats and `points` theirs of its operation, `shown` those that count, and
    `known` what the hosts used in those; `verdict` is that on their steadiness.
    """
    if any(point.valid for point in points):
        kinds = (
            ("not steady", "stalls", sum(one.valid and not one.ranked for one in found)),
            ("not valid", "fails", sum(not one.valid for one in found)),
        )
        for what, does, left in kinds:
            if left and any(point.ranked for point in points):
                favoured = f"leaving them out favours a layout that {does}"
                words = f"{left} of {len(found)} repeats were {what}; {favoured}"
                yield Doubt(what="repeats left out", grade="mild", words=words)
        if verdict.steady is None and (verdict.most is None or verdict.most > DRIFT_MOST):
            notes = (
                *verdict.notes,
                *(
                    note
                    for point in points
                    for note in point.notes
                    if note.startswith(UNKNOWN_STEADINESS)
                ),
            )
            words = next(
                (note.removeprefix(f"{UNKNOWN_STEADINESS}: ") for note in notes),
                "it was not judged",
            )
            yield Doubt(what="steadiness not known", grade="mild", words=words)
    yield from beside(others(known))
    of = {point.repeat: point for point in shown}
    uses = [
        (one.use, of[one.key.repeat])
        for one in found
        if one.use is not None and one.key.repeat in of
    ]
    dead = [one.dead for one in found if one.dead and one.key.repeat in of]
    if dead:
        names = ", ".join(dict.fromkeys(name for some in dead for name in some))
        words = f"in {len(dead)} of {len(shown)} repeats {names} was dead, and others took its load"
        yield Doubt(what="endpoint left out", grade="mild", words=words)
    for metric in compared():
        low = sum(point.figure(metric.key).at_least for point in shown)
        if low:
            ends = f"in {low} of {len(shown)} repeats " if len(shown) > 1 else ""
            words = f"{ends}requests not seen to end took at least as long, so it may be higher"
            yield Doubt(what="lower bound", grade="mild", words=words, metrics=(metric.key,))
        if metric.percent is not None:
            held = [limit for use, point in uses if (limit := _limited(metric, use, point))]
            if held:
                grade: Grade = "grave" if 2 * len(held) > len(uses) else "mild"
                yield Doubt(
                    what="set by the CPU limit",
                    grade=grade,
                    words=held[len(held) // 2],
                    metrics=(metric.key,),
                )


def _limited(metric: Metric, use: StepUse, point: Point) -> str | None:
    """The CPU limit that may have set a percentile or the maximum of a repeat, in words; or None.

    For a bin its upper edge is judged, or its lower one if it has none.
    """
    within = point.within(metric.key)
    value = point.value(metric.key)
    if within is not None:
        value = within.low_ms if within.high_ms is None else within.high_ms
    if value is None or metric.percent is None:
        return None
    return quota_touches(use, metric.percent, value)
