"""New tokens for a worker group while it makes requests."""

from __future__ import annotations

import logging
import time
from typing import Final

import gevent

from weighbridge.common.errors import DriverError
from weighbridge.common.temporary_keys import RETRY_S
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.worker_group import WorkerGroup, WorkerProgress

log = logging.getLogger(__name__)

APART_S: Final = 1.0
"""Least time between requests for a token: if new tokens are refused too, that causes no load.
Where there is no new one and the old one is still good, the time doubles up to RETRY_S.
"""
_REFUSED: Final = "http-401"


class Renewal:
    """Gives a group a new token when its own was refused, and before one expires whose end is
    known.
    """

    def __init__(self, account: Account, group: WorkerGroup, fault: str = "") -> None:
        """`fault`: why there was no new token before the group began."""
        self._account, self._group = account, group
        self._asking: gevent.Greenlet | None = None
        self._asked_s = time.monotonic() - APART_S
        self._seen = 0
        self.forgotten = self.expired = 0
        """How often there was a new one since the last was refused, and before it expired."""
        self._without, self._in_a_row, self._fault = 0, 0, ""
        if fault:
            self._asked_s += APART_S
            self._kept(fault)

    def look(self, progress: WorkerProgress) -> None:
        """Ask for a new token if the progress or the token's age says so; returns at once."""
        if not self._account.renewable:
            return
        refused = progress.errors.get(_REFUSED, 0)
        is_refused = refused > self._seen
        if not is_refused and not self._account.expires:
            return
        asking = self._asking is not None and not self._asking.ready()
        now_s = time.monotonic()
        is_good = not is_refused and self._account.left_s > 0
        apart_s = APART_S
        if is_good and self._in_a_row:
            apart_s = min(RETRY_S, APART_S * 2 ** (self._in_a_row - 1))
        if asking or now_s - self._asked_s < apart_s:
            return
        self._seen, self._asked_s = refused, now_s
        # In a greenlet: an auth server that hangs must not prolong a window.
        self._asking = gevent.spawn(self._renew, is_refused=is_refused)

    def end(self) -> None:
        """Ask no more."""
        if self._asking is not None:
            self._asking.kill()

    @property
    def note(self) -> str:
        """How often there was no new token or key, and why; "" if never."""
        if not self._without:
            return ""
        times = "once" if self._without == 1 else f"{self._without} times, at last"
        return f"{times}: {self._fault}"

    def _kept(self, fault: str) -> None:
        self._without, self._in_a_row = self._without + 1, self._in_a_row + 1
        ended = "" if self._account.left_s > 0 else "; by then the old ones had ended"
        self._fault = fault + ended

    def _renew(self, *, is_refused: bool) -> None:
        if is_refused:
            self._account.refused()
        try:
            self._account.authenticate()
        except DriverError as error:
            # Requests go on with the old token: refused ones are counted, and the last error says
            # more.
            log.warning("no new token: %s", error)
            self._kept(error.message)
            return
        self._in_a_row = 0
        self._group.renew(self._account)
        self.forgotten += is_refused
        self.expired += not is_refused
