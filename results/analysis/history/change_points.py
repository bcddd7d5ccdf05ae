"""Where a series of figures changed, by Apache Otava (https://otava.apache.org).

Otava splits a series where the two sides differ most (E-divisive), and merges what Student's t-test
does not tell apart. This module is all that knows it: how it is asked, and which of its answers are
told. A level that did not last is passed over: the levels before and after it are compared. The
settings are those that `benchmarks/history_changes.py` chose; docs/history.md has what
they find, and how often they are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.record import Record

OTAVA: Final = "otava"


class ChangeRule(Record):
    """How Otava is asked, and which of its answers are told."""

    most_p: PositiveFloat = 1e-4
    """The largest p of a change in one series."""
    before: PositiveInt = 5
    """Figures that are needed before a change: of fewer, Otava underestimates the scatter."""
    after: PositiveInt = 2
    """Figures from a change on: one run may be off by itself."""
    window: PositiveInt = 50
    """Figures that Otava looks at together: its own default."""

    @property
    def runs(self) -> int:
        """The least runs in which a change can be found."""
        return self.before + self.after


RULE: Final = ChangeRule()


class ChangePoint(Record):
    """A place where a series changed."""

    at: NonNegativeInt
    """The number of the first figure after it, from 0."""
    before: PositiveFloat
    """The mean of the figures before it, since the change before that."""
    after: PositiveFloat
    """The mean of the figures after it, until the next change."""
    runs_before: NonNegativeInt
    runs_after: NonNegativeInt
    passing: NonNegativeInt = 0
    """Figures between the two sides, at levels that did not last, in neither mean."""
    p: NonNegativeFloat
    """Of Student's t-test of the two sides."""

    @property
    def sides(self) -> tuple[slice, slice]:
        """Where the figures before it and after it are in the series."""
        until = self.at - self.passing
        return slice(until - self.runs_before, until), slice(self.at, self.at + self.runs_after)


def change_points(
    values: Sequence[float], least: float, rule: ChangeRule = RULE
) -> tuple[ChangePoint, ...]:
    """The changes of figures above 0. `least`: a share of the smaller side, below which none is
    told. Raises ImportError without the extra.
    """
    if len(values) < rule.runs:
        return ()
    from otava.analysis import compute_change_points  # noqa: PLC0415 - an extra, and heavy

    found, _ = compute_change_points(
        list(values), window_len=rule.window, max_pvalue=rule.most_p, min_magnitude=least
    )
    places = [int(one.index) for one in found]
    if places and len(values) - places[-1] < rule.after:
        # The last run may be off by itself: where the level before it ends is known all the same.
        *places, end = places
    else:
        end = len(values)
    ends = [0, *places, end]
    told, first = [], 0
    for number, at in enumerate(places, start=1):
        if number < len(places) and places[number] - at < rule.before:
            continue
        before, after = slice(ends[first], ends[first + 1]), slice(at, ends[number + 1])
        one = _between(values, before, after, least, rule)
        told += [one] if one is not None else []
        first = number
    return tuple(told)


def differ(
    before: Sequence[float], after: Sequence[float], least: float, rule: ChangeRule = RULE
) -> tuple[float, float, float] | None:
    """Both means and p, if they differ by the rule. Raises ImportError without the extra."""
    if len(before) < rule.before or len(after) < rule.after:
        return None
    low, high = sorted((fmean(before), fmean(after)))
    if high / low - 1 <= least:
        return None
    from otava.analysis import TTestSignificanceTester  # noqa: PLC0415 - an extra, and heavy

    found = TTestSignificanceTester(rule.most_p).compare(before, after)
    if found.pvalue >= rule.most_p:
        return None
    return float(found.mean_1), float(found.mean_2), float(found.pvalue)


def _between(
    values: Sequence[float], before: slice, after: slice, least: float, rule: ChangeRule
) -> ChangePoint | None:
    """The change from one level to another, with those between them passed over."""
    found = differ(values[before], values[after], least, rule)
    if found is None:
        return None
    return ChangePoint(
        at=after.start,
        before=found[0],
        after=found[1],
        runs_before=before.stop - before.start,
        runs_after=after.stop - after.start,
        passing=after.start - before.stop,
        p=found[2],
    )
