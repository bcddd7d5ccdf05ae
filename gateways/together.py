"""Doing the same to several hosts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

Result = TypeVar("Result")

THREADS = 8
"""Hosts worked on at once; commands on hosts mostly wait."""


def together(calls: Sequence[Callable[[], Result]]) -> list[Result]:
    """Results of all calls, in their order.

    When some fail, all are waited for and the first one's error is raised.
    """
    if len(calls) < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(THREADS, len(calls))) as pool:
        futures = [pool.submit(call) for call in calls]
        wait(futures)
    return [future.result() for future in futures]
