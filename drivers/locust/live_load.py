"""Load of a user class of an ordinary locustfile: Locust decides how many users there are and when,
and its statistics follow every second.
"""

from __future__ import annotations

import logging
from typing import Final

import gevent
from locust.stats import RequestStats

from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.figures import LocustFigures
from weighbridge.drivers.locust.worker_process import Begin, End, WorkerProcess
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import Workload

NUMBERS: Final = 1_000_000_007
"""Of how many workers a user's number counts, as nobody knows how many there will be. A prime: with
`pick: sequential` each then visits all objects.
"""
MOST_PROCESSES: Final = 1024
FEED_S: Final = 1.0
WINDOW_S: Final = 60.0
"""After so long a window is forgotten and a new one opened, since it keeps each of its seconds."""

log = logging.getLogger(__name__)


class LiveLoad:
    """Makes a workload's load in this process, from its making to `close`.

    `rank` is this process's number among all of Locust's, `repeat` the test's: users of no two draw
    the same requests. Raises DriverError when the target does not let it in.
    """

    def __init__(
        self, stats: RequestStats, setup: Setup, workload: Workload, *, rank: int, repeat: int
    ) -> None:
        self.process = WorkerProcess(setup)
        first = rank % MOST_PROCESSES
        self.process.begin(
            Begin(
                workload=workload,
                workers=NUMBERS,
                repeat=repeat,
                first=first,
                count=len(range(first, NUMBERS, MOST_PROCESSES)),
                apart=MOST_PROCESSES,
            )
        )
        # Each request of an SDK is an event, of which Locust makes the statistics.
        self._figures = None if self.process.sdk else LocustFigures(stats, workload.name)
        if self._figures is not None:
            self.process.open_window()
        self.process.release()
        self._feeding = gevent.spawn(self._feed)

    def close(self, patience_s: float) -> None:
        """End all workers; outstanding requests may take so long to complete. Raises DriverError
        when the engine failed.
        """
        self._feeding.kill()
        try:
            if self._figures is not None:
                self._figures.add(self.process.close_window())
            self.process.end(End(timeout_s=patience_s))
        finally:
            self.process.close()

    def delete_written(self) -> None:
        """Delete what its workers wrote. What cannot be deleted is still in the buckets."""
        self.process.delete_written()

    def _feed(self) -> None:
        while True:
            gevent.sleep(FEED_S)
            try:
                # Renews a token that was refused, too.
                self.process.progress()
                window = self.process.window_so_far() if self._figures else None
            except (DriverError, RuntimeError) as error:
                log.error("%s", error)  # noqa: TRY400 - no traceback helps users
                return
            if self._figures is None or window is None:
                continue
            self._figures.add(window)
            if window.window_s > WINDOW_S:
                self._figures.forget()
                self.process.open_window()
