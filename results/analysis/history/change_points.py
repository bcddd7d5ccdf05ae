"""Where a series of figures changed, by Apache Otava (https://otava.apache.org).

Otava splits a series where the two sides differ most (E-divisive), and merges what Student's t-test
does not tell apart. This module is all that knows it: how it is asked, and which of its answers are
told. The settings are those that `benchmarks/history_changes.py` chose; docs/history.md has what
they find, and how often they are wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.record import Record

OTAVA: Final = "otava"
"""The module, which comes with an extra."""


class ChangeRule(Record):
    """How Otava is asked, and which of its answers are told."""

    most_p: PositiveFloat = 1e-4
    """The largest p of a change in one series."""
    before: PositiveInt = 5
    """Figures that are needed before a change, since the last one: of fewer, Otava underestimates
    the scatter.
    """
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
    """How many figures these are."""
    p: NonNegativeFloat
    """Of Student's t-test of the two sides."""


def change_points(
    values: Sequence[float], least: float, rule: ChangeRule = RULE
) -> tuple[ChangePoint, ...]:
    """The changes of a series of figures above 0, in order.

    `least`: a change by less than this share of the smaller side is not told. Raises ImportError
    without the extra.
    """
    if len(values) < rule.runs:
        return ()
    from otava.analysis import compute_change_points  # noqa: PLC0415 - an extra, and heavy

    found, _ = compute_change_points(
        list(values), window_len=rule.window, max_pvalue=rule.most_p, min_magnitude=least
    )
    ends = [0, *(int(one.index) for one in found), len(values)]
    return tuple(
        ChangePoint(
            at=at,
            before=float(one.stats.mean_1),
            after=float(one.stats.mean_2),
            runs_before=at - start,
            runs_after=end - at,
            p=float(one.stats.pvalue),
        )
        for one, start, at, end in zip(found, ends, ends[1:], ends[2:], strict=False)
        if at - start >= rule.before and end - at >= rule.after
    )
