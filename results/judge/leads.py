"""Who is fastest in each workload: decided here, once, for every output.

The throughputs over all worker counts of two layouts are an effect (`results.judge.comparing`).
A layout is ahead of another if that effect is a claim, or if only a caveat keeps it from being one
and its interval does not include 1. The leaders of a workload are the fewest layouts, fastest
first, of which each is ahead of every other layout that is comparable: one layout, or several of
which none is faster than the next, such as all fronts of one store. If that takes all of them,
nobody leads, which does not mean that no difference was found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from weighbridge.results.figures.doubt import Doubt, PowerMark
from weighbridge.results.figures.statistics import Ratio
from weighbridge.results.judge.comparison import Comparison, Effect, Kind, kind_of

NEAR: Final = 0.05
"""Ratios closer to 1 than this do not matter in practice, unless a suite says otherwise."""

Standing = Literal["ahead", "alike", "mixed", "open", "not comparable"]
"""`ahead`: somebody leads. `alike`: all layouts are equivalent. `mixed`: nobody leads, but a layout
is ahead of another. `open`: no difference was found. `not comparable`: fewer than two layouts are.
"""

Pairs = Mapping[frozenset[str], Effect]


@dataclass(frozen=True)
class Lead:
    """The answer for one workload by one driver."""

    kind: Kind
    about: str
    """`64 kB reads`."""
    standing: Standing
    effect: Effect | None
    """Of the last leader and the first of the others: the smallest step between the two groups.
    `mixed`: the largest difference that was found. Not comparable: the first that says why. Else
    that of the two fastest layouts."""
    leaders: tuple[str, ...] = ()
    """Fastest first; empty: nobody leads."""
    others: tuple[str, ...] = ()
    """The layouts behind the leaders, fastest first; without leaders all that are comparable."""
    doubts: tuple[Doubt, ...] = ()
    """Why it is no claim: the caveats of every pair of a leader and another layout, and without
    leaders of the effect; empty for a claim."""
    excluded: tuple[str, ...] = ()
    """Layouts that are not comparable."""
    power: tuple[PowerMark, ...] = ()
    """What power cuts did to any of the layouts, if they write."""

    @property
    def ratio(self) -> Ratio | None:
        """By how much the last leader is faster than the first of the others, above 1."""
        return None if self.effect is None else faster_ratio(self.effect)

    @property
    def claimed(self) -> bool:
        """Whether nothing keeps anybody from saying who is faster."""
        return self.standing in ("ahead", "mixed") and not self.doubts


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
    layouts = list(dict.fromkeys(name for one in effects for name in (one.baseline, one.subject)))
    ranking = _ranking(layouts, pairs)
    size = _leading(ranking, pairs)
    known = [pairs[frozenset(two)] for two in combinations(ranking, 2) if frozenset(two) in pairs]
    ahead = [effect for effect in known if is_ahead(effect)]
    standing: Standing = "open"
    deciding: Sequence[Effect] = known[:1]
    if len(ranking) < 2:
        standing, deciding = "not comparable", effects[:1]
    elif size:
        standing = "ahead"
        deciding = [
            pairs[frozenset((leader, other))]
            for leader in reversed(ranking[:size])
            for other in ranking[size:]
        ]
    elif all(effect.verdict == "too small to matter" for effect in known):
        standing = "alike"
    elif ahead:
        standing = "mixed"
        deciding = [max(ahead, key=lambda effect: effect.ratio.either_way if effect.ratio else 0)]
    return Lead(
        kind_of(first),
        first.about,
        standing,
        effect=deciding[0],
        leaders=tuple(ranking[:size]),
        others=tuple(ranking[size:]),
        doubts=tuple(dict.fromkeys(doubt for effect in deciding for doubt in effect.doubts)),
        excluded=tuple(name for name in layouts if len(ranking) < 2 or name not in ranking),
        power=tuple(dict.fromkeys(mark for effect in effects for mark in effect.power)),
    )


def _ranking(layouts: Sequence[str], pairs: Pairs) -> list[str]:
    """The layouts that are comparable, fastest first: those that have a ratio to the layout to
    which most have one, which is the baseline unless that is not comparable itself.
    """
    best: dict[str, float] = {}
    for reference in layouts:
        scores = {reference: 1.0}
        for other in layouts:
            effect = pairs.get(frozenset((reference, other)))
            if effect is not None and effect.ratio is not None:
                relative = effect.ratio if effect.subject == other else effect.ratio.inverted
                scores[other] = relative.value
        if len(scores) > len(best):
            best = scores
    return sorted(best, key=lambda name: -best[name])


def _leading(ranking: Sequence[str], pairs: Pairs) -> int:
    """How many of the fastest layouts lead: the fewest that are ahead of all others. 0: none."""
    for size in range(1, len(ranking)):
        if all(
            _leads(pairs.get(frozenset((leader, other))), leader)
            for leader in ranking[:size]
            for other in ranking[size:]
        ):
            return size
    return 0


def _leads(effect: Effect | None, layout: str) -> bool:
    return effect is not None and is_ahead(effect) and faster(effect)[0] == layout
