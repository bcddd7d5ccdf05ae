"""Dropping caches repeatedly while a step runs, if the suite asks for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from weighbridge.common.errors import WeighbridgeError
from weighbridge.suites import CachePolicy, Every


@contextmanager
def dropping(
    cache: CachePolicy,
    drop: Callable[[], None],
    *,
    clock: Callable[[], float] = time.monotonic,
    rest: Callable[[threading.Event, float], object] = threading.Event.wait,
) -> Iterator[None]:
    """Call `drop` while the block runs, at once and then at the interval of `cache`, if it has one.

    `rest` waits for so many seconds of `clock`, or until the event is set. Raises what `drop`
    raised, unless something else failed.
    """
    if not isinstance(cache, Every):
        yield
        return
    done = threading.Event()
    failed: list[WeighbridgeError] = []

    def drop_again() -> None:
        due = clock()
        while not done.is_set():
            try:
                drop()
            except WeighbridgeError as error:
                failed.append(error)
                return
            due += cache.every
            rest(done, max(0.0, due - clock()))

    # A daemon: if a signal's exception comes before the block, it must not keep this process alive.
    thread = threading.Thread(target=drop_again, name="cache-dropper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failed:
        raise failed[0]
