"""A workload at COSBench's controller, from its submission to its archive, or cancelled."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import Archived, Folder, collect
from weighbridge.drivers.cosbench.controller import FINAL, Controller, Unanswered, WorkloadState
from weighbridge.drivers.cosbench.script import INTERVAL_S, Script
from weighbridge.drivers.cosbench.stop_request import StopRequest

POLL_S: Final = 0.4
SILENCE_S: Final = 30.0
"""How long a controller may be silent: the workload runs on meanwhile."""
QUEUE_S: Final = 900.0
"""How long to wait for others' workloads: a controller runs one at a time."""
STAGE_S: Final = INTERVAL_S + 15.0
"""Time of a stage beyond its work: it boots, launches, is polled and closed, and a watchdog ends
hung workers after 11 s.
"""
MARGIN_S: Final = 30.0

log = logging.getLogger(__name__)


class Submission:
    """Runs scripts at a controller, one after the other."""

    def __init__(self, controller: Controller, folder: Folder, stop: StopRequest) -> None:
        self._controller = controller
        self._folder = folder
        self._stop = stop

    def run(self, script: Script, work_s: float, began: Callable[[str], None]) -> Archived:
        """Submit a script whose stages work `work_s` in all, follow it, and return its results.

        `began` is called with each new stage. Raises DriverError when it is refused, when it does
        not end in time (it is then cancelled: with a dead COSBench driver it would run for ever),
        or when its archive does not come.
        """
        number = self._controller.submit(script.text)
        log.info("%s is %s", script.name, number)
        try:
            seen = self._follow(
                number, script, work_s + len(script.stages) * STAGE_S + MARGIN_S, began
            )
        except BaseException:
            self._cancel(number)
            raise
        log.info("%s ended as %s", number, seen.state)
        return collect(
            self._folder, number, script.name, seen.submitted, seen.state, self._stop.wait
        )

    def _follow(
        self, number: str, script: Script, patience_s: float, began: Callable[[str], None]
    ) -> WorkloadState:
        submitted_s = heard_s = time.monotonic()
        running_s: float | None = None
        stages: set[str] = set()
        while True:
            try:
                seen = self._look(number)
                heard_s = time.monotonic()
            except Unanswered as error:
                if time.monotonic() - heard_s > SILENCE_S:
                    raise
                log.warning("%s", error.message)
                self._stop.wait(POLL_S)
                continue
            if seen.state in FINAL:
                return seen
            if seen.state != "QUEUING" and running_s is None:
                running_s = heard_s
            if seen.stage is not None and seen.stage not in stages:
                stages.add(seen.stage)
                began(seen.stage)
            if running_s is None and heard_s - submitted_s > QUEUE_S:
                raise DriverError(
                    f"COSBench did not start {number} within {QUEUE_S:g} s: it runs other "
                    "workloads first",
                    advice="Wait until the controller is idle, or use another one.",
                )
            if running_s is not None and heard_s - running_s > patience_s:
                raise DriverError(
                    f"COSBench did not end {number}-{script.name} within {patience_s:.0f} s; it is "
                    f"at stage {seen.stage}",
                    advice="A workload never ends if a COSBench driver died: check that they run: "
                    + self._drivers(),
                )
            self._stop.wait(POLL_S)

    def _look(self, number: str) -> WorkloadState:
        for one in self._controller.index().active:
            if one.id == number:
                return one
        seen = self._controller.workload(number)
        if seen is None:
            raise DriverError(
                f"COSBench's controller no longer knows {number}: it was restarted, and its "
                "workloads are lost",
                advice="Run again when it is stable.",
            )
        return seen

    def _drivers(self) -> str:
        try:
            drivers = self._controller.index().drivers
        except DriverError:
            return "which cannot be checked now"
        return ", ".join(f"{name} at {url}" for name, url in drivers.items()) or "there is none"

    def _cancel(self, number: str) -> None:
        """Cancel what may still be running, if possible; the reason for it remains the error."""
        with contextlib.suppress(DriverError):
            self._controller.cancel(number)
            log.info("%s cancelled", number)
