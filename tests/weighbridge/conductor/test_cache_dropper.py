"""Repeated cache drops: at once, then at intervals of a simulated clock."""

from __future__ import annotations

import threading

import pytest

from weighbridge.common.errors import TargetError
from weighbridge.conductor.step_runner import dropping
from weighbridge.suites import Every

LATE_S = 10.0
"""A drop that has not come by then does not come."""


class Hours:
    """A clock that advances while the dropper waits, and caches of which a drop takes `takes_s`."""

    def __init__(self, *, takes_s: float = 0.0, fails_at: int = -1) -> None:
        self.now_s = 100.0
        self.at: list[float] = []
        self.dropped = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self._takes_s = takes_s
        self._fails_at = fails_at

    def drop(self) -> None:
        if len(self.at) == self._fails_at:
            self.dropped.release()
            raise TargetError("the store has gone")
        self.at.append(self.now_s - 100.0)
        self.now_s += self._takes_s
        self.dropped.release()

    def rest(self, done: threading.Event, seconds: float) -> None:
        while not done.is_set():
            if self.allowed.acquire(timeout=0.05):
                self.now_s += seconds
                return

    def run(self, cache: str | Every, times: int) -> list[float]:
        """Seconds from the start of so many drops, or of all if there are fewer."""
        with dropping(cache, self.drop, clock=lambda: self.now_s, rest=self.rest):
            for _ in range(times):
                if not self.dropped.acquire(timeout=LATE_S):
                    break
                self.allowed.release()
        return self.at[:times]


def test_caches_are_dropped_at_once_and_then_every_minute_of_a_step() -> None:
    assert Hours().run(Every(every=60.0), 5) == [0.0, 60.0, 120.0, 180.0, 240.0]


def test_a_slow_drop_does_not_delay_the_next_one() -> None:
    assert Hours(takes_s=7.0).run(Every(every=60.0), 4) == [0.0, 60.0, 120.0, 180.0]
    assert Hours(takes_s=90.0).run(Every(every=60.0), 3) == [0.0, 90.0, 180.0]


def test_nothing_is_dropped_in_a_step_unless_the_suite_asks_for_it() -> None:
    hours = Hours()
    with dropping("before-step", hours.drop):
        pass
    assert hours.at == []


def test_a_drop_that_fails_fails_the_step_when_it_ends() -> None:
    hours = Hours(fails_at=1)
    with pytest.raises(TargetError, match="the store has gone"):
        hours.run(Every(every=60.0), 2)
    assert hours.at == [0.0]
