"""Who is fastest in each workload: decided here, once, for every output.

The throughputs over all worker counts of two layouts are an effect (`results.analysis.comparing`).
A layout is ahead of another if that effect is a claim, or if only a caveat keeps it from being one
and its interval does not include 1. The leaders of a workload are the fewest layouts, fastest
first, of which each is ahead of every other layout that is comparable: one layout, or several of
which none is faster than the next, such as all fronts of one store. If that takes all of them,
nobody leads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from weighbridge.results.analysis.comparison import Comparison, Effect
from weighbridge.results.analysis.kinds import Kind, kind_of
from weighbridge.results.doubt import Doubt
from weighbridge.results.statistics import Ratio

NEAR: Final = 0.05
"""Ratios closer to 1 than this do not matter in practice, unless a suite says otherwise."""

Standing = Literal["ahead", "alike", "open", "not comparable"]
"""`ahead`: somebody leads. `alike`: all layouts are equivalent. `open`: no difference was found, or
only between some of them. `not comparable`: fewer than two layouts are."""


@dataclass(frozen=True)
class Lead:
    """The answer for one workload by one driver."""

    kind: Kind
    about: str
    """`64 kB reads`."""
    standing: Standing
    leaders: tuple[str, ...] = ()
    """Fastest first; empty: nobody leads."""
    others: tuple[str, ...] = ()
    """The layouts behind the leaders, fastest first; without leaders all that are comparable."""
    effect: Effect | None = None
    """Of the last leader and the first of the others: the smallest step between the two groups.
    Without leaders that of the two fastest layouts; not comparable: the first that says why."""
    excluded: tuple[str, ...] = ()
    """Layouts that are not comparable."""

    @property
    def ratio(self) -> Ratio | None:
        """By how much the last leader is faster than the first of the others, above 1."""
        return None if self.effect is None else faster_ratio(self.effect)

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Why it is no claim: the caveats; empty for a claim."""
        return () if self.effect is None else self.effect.doubts

    @property
    def claimed(self) -> bool:
        """Whether nothing keeps anybody from saying that the leaders are faster."""
        return self.standing == "ahead" and not self.doubts


def faster(effect: Effect) -> tuple[str, str]:
    """The layout with the higher throughput, and the other; the baseline first if unknown."""
    up = effect.ratio is not None and effect.ratio.value > 1
    return (effect.subject, effect.baseline) if up else (effect.baseline, effect.subject)


def faster_ratio(effect: Effect) -> Ratio | None:
    """How many times the slower layout's throughput the faster one has: at least 1."""
    if effect.ratio is None or effect.ratio.value > 1:
        return effect.ratio
    return effect.ratio.inverted


def is_ahead(effect: Effect) -> bool:
    """Whether the faster of two layouts is ahead of the other; with a doubt: but for a caveat."""
    ratio = faster_ratio(effect)
    if ratio is None:
        return False
    if effect.verdict == "provisional":
        return ratio.value >= effect.bound and not ratio.open
    return effect.verdict in ("better", "worse")


def overall(comparison: Comparison) -> dict[Kind, list[Effect]]:
    """The throughputs over all worker counts of all pairs of layouts, by workload; those with the
    baseline come first.
    """
    kinds: dict[Kind, list[Effect]] = {}
    for effect in (*comparison.effects, *comparison.rivals):
        if effect.metric == "throughput" and effect.workers is None:
            kinds.setdefault(kind_of(effect), []).append(effect)
    return kinds


def leads(comparison: Comparison) -> tuple[Lead, ...]:
    """The answer for each workload and driver, in the order of the comparison."""
    return tuple(lead(effects) for effects in overall(comparison).values())


def lead(effects: Sequence[Effect]) -> Lead:
    """The answer for one workload, from the effects of its pairs: at least one, of throughput over
    all worker counts, those with the baseline first.
    """
    first = effects[0]
    pairs = {frozenset((effect.baseline, effect.subject)): effect for effect in effects}
    layouts = dict.fromkeys(name for one in effects for name in (first.baseline, one.subject))
    scores = {first.baseline: 1.0}
    for effect in effects:
        if effect.baseline == first.baseline and effect.ratio is not None:
            scores[effect.subject] = effect.ratio.value
    ranking = sorted(scores, key=lambda name: -scores[name])
    excluded = tuple(name for name in layouts if name not in scores)
    if len(ranking) < 2:
        return Lead(
            kind_of(first), first.about, "not comparable", effect=first, excluded=tuple(layouts)
        )
    size = next(
        (
            size
            for size in range(1, len(ranking))
            if all(
                _leads(pairs.get(frozenset((leader, other))), leader)
                for leader in ranking[:size]
                for other in ranking[size:]
            )
        ),
        0,
    )
    standing: Standing = "ahead" if size else "open"
    if not size and all(
        (pair := pairs.get(frozenset(two))) is not None and pair.verdict == "too small to matter"
        for two in combinations(ranking, 2)
    ):
        standing = "alike"
    last = max(size - 1, 0)
    return Lead(
        kind_of(first),
        first.about,
        standing,
        leaders=tuple(ranking[:size]),
        others=tuple(ranking[size:]),
        effect=pairs.get(frozenset(ranking[last : last + 2])),
        excluded=excluded,
    )


def _leads(effect: Effect | None, layout: str) -> bool:
    return effect is not None and is_ahead(effect) and faster(effect)[0] == layout
