"""Trying again what a gateway refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import gevent

from weighbridge.common.errors import DriverError


def retried(act: Callable[[], object], pauses_s: Iterable[float]) -> None:
    """Call `act`, and again after each pause as long as it raises DriverError; raises the last."""
    for pause_s in pauses_s:
        try:
            act()
        except DriverError:
            gevent.sleep(pause_s)
        else:
            return
    act()
