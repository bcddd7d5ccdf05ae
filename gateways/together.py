"""Run calls for several hosts at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Result = TypeVar("Result")

THREADS = 8
"""Hosts worked on at the same time; commands on hosts mostly wait."""


def together(calls: Sequence[Callable[[], Result]], threads: int = THREADS) -> list[Result]:
    """The results of all calls, in order.

    Waits for all of them; then raises the error of the first that failed, if any. When it is
    interrupted, calls that have not begun do not begin.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    pool = ThreadPoolExecutor(min(threads, len(calls)))
    try:
        futures = [pool.submit(call) for call in calls]
        wait(futures)
    finally:
        # An interrupt too waits for calls that have begun, so that what they start can be ended;
        # no others begin.
        pool.shutdown(wait=True, cancel_futures=True)
    return [future.result() for future in futures]


def at_once(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """As `together`, all of them at the very same time, however many: they load the machine."""
    return together(calls, len(calls))
