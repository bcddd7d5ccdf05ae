"""Load of a user class of an ordinary locustfile: Locust decides how many users there are and when,
and its statistics follow every second.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

import gevent
from locust.stats import RequestStats

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.figures import LocustFigures
from weighbridge.drivers.locust.worker_process import Begin, End, WorkerProcess
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import Workload

NUMBERS: Final = 1_000_003
"""Of how many workers a user's number counts, as nobody knows how many there will be. A prime: with
`pick: sequential` each then visits all objects.
"""
MOST_PROCESSES: Final = 1024
FEED_S: Final = 1.0
WINDOW_S: Final = 60.0
"""After so long a window is forgotten and a new one opened, since it keeps each of its seconds."""

log = logging.getLogger(__name__)


class Load(Protocol):
    """The load of a user class in one process and test."""

    def close(self, patience_s: float) -> None:
        """End all workers; outstanding requests may take so long to complete. Raises DriverError
        when the engine failed.
        """

    def delete_written(self) -> None:
        """Delete what its workers wrote. What cannot be deleted is still in the buckets."""


class LiveLoad:
    """Makes a workload's load in this process, from its making to `close`.

    `rank` is this process's number among all of Locust's, `repeat` the test's: users of no two draw
    the same requests. Raises DriverError when the target does not let it in.
    """

    def __init__(
        self, stats: RequestStats, setup: Setup, workload: Workload, *, rank: int, repeat: int
    ) -> None:
        self.process = WorkerProcess(setup)
        self.process.begin(
            Begin(
                workload=workload,
                workers=NUMBERS,
                repeat=repeat,
                rank=rank % MOST_PROCESSES,
                processes=MOST_PROCESSES,
            )
        )
        self._figures = LocustFigures(stats, workload.name)
        self.process.open_window()
        self._feeding = gevent.spawn(self._feed)

    def close(self, patience_s: float) -> None:
        """See Load."""
        self._feeding.kill()
        try:
            self._figures.add(self.process.close_window())
            self.process.end(End(timeout_s=patience_s))
        finally:
            self.process.close()

    def delete_written(self) -> None:
        """See Load."""
        self.process.delete_written()

    def _feed(self) -> None:
        while True:
            gevent.sleep(FEED_S)
            try:
                # Renews a token that was refused, too.
                self.process.progress()
                window = self.process.window_so_far()
            except (DriverError, RuntimeError) as error:
                log.error("%s", error)  # noqa: TRY400 - no traceback helps users
                return
            self._figures.add(window)
            if window.window_s > WINDOW_S:
                self._figures.forget()
                self.process.open_window()
