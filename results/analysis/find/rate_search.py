"""The search for the highest rate that is served: which rate is measured next, and what is known.

A bisection on a logarithmic scale. It begins below the throughput of a closed loop, goes down or up
in growing factors until one rate is served and a higher one is not, and halves what lies between
until the two are at most RESOLVED apart. The rate that is then the answer is measured again, and if
a step is left the one above it, too: a rate whose steps disagree is measured a third time, and the
majority decides. The last step is kept for an answer that was measured only once.

What is next depends only on the steps so far, so a search that was killed goes on from its record.
A step that says nothing about the rate (its driver was saturated, the machine busy) is repeated
once; after a second one no higher rate is tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat

from weighbridge.common.record import Record
from weighbridge.results.doubt import Doubt

MOST_STEPS: Final = 8
"""Of a layout and workload in one repeat: the closed loop, and the steps at a rate."""
MOST_AT_A_RATE: Final = MOST_STEPS - 1
RESOLVED: Final = 1.05
"""A rate that is served and one that is not, so close, end the search."""
STEP: Final = 1.2
"""The first factor: its square root's square root is below RESOLVED, so two halvings are enough."""
LOWEST: Final = 0.01
"""The lowest rate that is tried, as a share of the closed loop's throughput."""
_TRIES: Final = 2
"""Steps at a rate that say nothing, after which it is given up."""
_DIGITS: Final = 4


class RateTrial(Record):
    """One step at a rate, as it counts in a search."""

    rate_per_s: PositiveFloat
    verdict: Literal["served", "not served", "cannot tell"]
    why: str = ""
    """Why it was not served, or says nothing; empty if it was served."""
    latency_ms: NonNegativeFloat | None = None
    """The bound's metric, of the slowest operation; None: unknown."""
    doubts: tuple[Doubt, ...] = ()


class RateSearch(Record):
    """One search: its start and its steps so far, in order.

    `start_per_s` is the throughput of the closed loop, `least_per_s` the lowest rate that a step
    can judge.
    """

    start_per_s: PositiveFloat
    least_per_s: NonNegativeFloat = 0.0
    trials: Annotated[tuple[RateTrial, ...], Field(max_length=MOST_AT_A_RATE)] = ()

    def heard(self, trial: RateTrial) -> RateSearch:
        """The search after one more step."""
        return self.model_copy(update={"trials": (*self.trials, trial)})

    @property
    def served(self) -> tuple[float, ...]:
        """Rates that were served, by a majority of their steps, below all that were not; sorted."""
        missed = self.missed
        good = sorted(rate for rate, balance in self._balance().items() if balance > 0)
        return tuple(rate for rate in good if not missed or rate < missed[0])

    @property
    def missed(self) -> tuple[float, ...]:
        """Rates that were not served, by a majority of their steps, sorted."""
        return tuple(sorted(rate for rate, balance in self._balance().items() if balance < 0))

    @property
    def tied(self) -> tuple[float, ...]:
        """Rates whose steps disagree, and which have no majority."""
        return tuple(rate for rate, balance in self._balance().items() if balance == 0)

    @property
    def low(self) -> float | None:
        """The highest rate that was served; None: none was."""
        return max(self.served, default=None)

    @property
    def high(self) -> float | None:
        """The lowest rate that was not served; None: none was missed."""
        return min(self.missed, default=None)

    @property
    def resolved(self) -> bool:
        """Whether the most that is served is known as exactly as a search tries to."""
        low, high = self.low, self.high
        return low is not None and high is not None and high <= RESOLVED * low

    @property
    def confirmed(self) -> bool:
        """Whether the answer was measured more than once."""
        return self.low is not None and self._times(self.low) > 1

    @property
    def blocked(self) -> RateTrial | None:
        """The last step at a rate that cannot be judged: two steps said nothing, and none more."""
        unknown = [
            trial
            for trial in self.trials
            if self._unknown(trial.rate_per_s) >= _TRIES and not self._times(trial.rate_per_s)
        ]
        return unknown[-1] if unknown else None

    @property
    def next_per_s(self) -> float | None:
        """The rate to measure next; None: the search is over."""
        left = MOST_AT_A_RATE - len(self.trials)
        wanted = self._wanted(left) if left > 0 else None
        if wanted is None or self._unknown(wanted) < _TRIES:
            return wanted
        low = self.low
        if low is None or self.confirmed or self._unknown(low) >= _TRIES:
            return None
        return low

    def _wanted(self, left: int) -> float | None:
        """The rate that would say most, with so many steps left; None: enough is known."""
        low, high = self.low, self.high
        if self.tied:
            return self.tied[0]
        if low is not None and not self.confirmed and (left == 1 or self.resolved):
            return low
        if self.resolved:
            return high if high is not None and self._times(high) == 1 else None
        return self._between(low, high)

    def _between(self, low: float | None, high: float | None) -> float | None:
        """The next rate while what is searched lies between two rates, or beyond one.

        Beyond, each factor is that from the first rate to the next one: 1.2, 1.44, 2.07, 4.3 ...
        """
        if low is not None and high is not None:
            return _rounded(math.sqrt(low * high))
        begin = self.start_per_s / STEP
        if low is not None:
            return _rounded(low * STEP * max(1.0, low / begin))
        lowest = max(self.least_per_s, LOWEST * self.start_per_s)
        if high is None:
            return _rounded(max(lowest, begin))
        if high <= _rounded(lowest):
            return high if self._times(high) == 1 else None
        return _rounded(max(lowest, high / STEP / max(1.0, begin / high)))

    def _balance(self) -> dict[float, int]:
        """For each rate: steps that were served minus those that were not, of those that tell."""
        found: dict[float, int] = {}
        for trial in self._telling():
            sign = 1 if trial.verdict == "served" else -1
            found[trial.rate_per_s] = found.get(trial.rate_per_s, 0) + sign
        return found

    def _times(self, rate_per_s: float) -> int:
        """How many steps tell something about a rate."""
        return sum(trial.rate_per_s == rate_per_s for trial in self._telling())

    def _unknown(self, rate_per_s: float) -> int:
        """How many steps say nothing about a rate."""
        return sum(trial.rate_per_s == rate_per_s for trial in self.trials) - self._times(
            rate_per_s
        )

    def _telling(self) -> Iterable[RateTrial]:
        return (trial for trial in self.trials if trial.verdict != "cannot tell")


def _rounded(rate_per_s: float) -> float:
    """To four digits: shorter in texts, and far below RESOLVED."""
    return float(f"{rate_per_s:.{_DIGITS}g}")
