"""An errand: one workload at COSBench's controller, from its submission to its archive, cancelled
on every other path.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.archive import Archived, Folder, collect
from weighbridge.drivers.cosbench.controller import FINAL, Controller, Unanswered, WorkloadState
from weighbridge.drivers.cosbench.ending import EndRequest
from weighbridge.drivers.cosbench.script import INTERVAL_S, Script

POLL_S: Final = 0.4
SILENCE_S: Final = 30.0
"""A controller that ran may be silent for so long: what it runs goes on meanwhile."""
QUEUE_S: Final = 900.0
"""A controller does one workload at a time; this long is waited for those of others."""
STAGE_S: Final = INTERVAL_S + 15.0
"""What a stage may last beyond its work: it boots, launches, is asked and closed, and a watchdog
ends hung workers after 11 s.
"""
MARGIN_S: Final = 30.0
CANCEL_S: Final = 5.0

log = logging.getLogger(__name__)


class Submission:
    """Does scripts at one controller, one after the other."""

    def __init__(self, controller: Controller, folder: Folder, ending: EndRequest) -> None:
        self._controller = controller
        self._folder = folder
        self._ending = ending

    def run(self, script: Script, work_s: float, began: Callable[[str], None]) -> Archived:
        """Submit a script whose stages work for so many seconds in all, follow it, and return what
        it left.

        `began` hears each stage as it is first seen. Raises DriverError when it is refused, when it
        does not end in time (it is cancelled then: a COSBench driver that died would leave it
        running for ever), or when its archive does not come.
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
            self._folder, number, script.name, seen.submitted, seen.state, self._ending.wait
        )

    def _follow(
        self, number: str, script: Script, patience_s: float, began: Callable[[str], None]
    ) -> WorkloadState:
        submitted_s = heard_s = time.monotonic()
        running_s: float | None = None
        told: set[str] = set()
        while True:
            try:
                seen = self._look(number)
                heard_s = time.monotonic()
            except Unanswered as error:
                if time.monotonic() - heard_s > SILENCE_S:
                    raise
                log.warning("%s", error.message)
                self._ending.wait(POLL_S)
                continue
            if seen.state in FINAL:
                return seen
            if seen.state != "QUEUING" and running_s is None:
                running_s = heard_s
            if seen.stage is not None and seen.stage not in told:
                told.add(seen.stage)
                began(seen.stage)
            if running_s is None and heard_s - submitted_s > QUEUE_S:
                raise DriverError(
                    f"COSBench has not begun {number} within {QUEUE_S:g} s: it does other "
                    "workloads first",
                    advice="Wait until the controller is idle, or use another one.",
                )
            if running_s is not None and heard_s - running_s > patience_s:
                raise DriverError(
                    f"COSBench has not ended {number}-{script.name} within {patience_s:.0f} s; it "
                    f"was at stage {seen.stage}",
                    advice="A COSBench driver that dies leaves its workload so for ever: see that "
                    "they run: " + self._drivers(),
                )
            self._ending.wait(POLL_S)

    def _look(self, number: str) -> WorkloadState:
        for one in self._controller.index().active:
            if one.id == number:
                return one
        seen = self._controller.workload(number)
        if seen is None:
            raise DriverError(
                f"COSBench's controller knows no {number} any more: it was restarted, and its "
                "workloads are lost",
                advice="Run again when it stays up.",
            )
        return seen

    def _drivers(self) -> str:
        try:
            return (
                ", ".join(
                    f"{name} at {url}" for name, url in self._controller.index().drivers.items()
                )
                or "there is none"
            )
        except DriverError:
            return "which cannot be asked now"

    def _cancel(self, number: str) -> None:
        """Cancel what may still run, as well as that can be done; the reason for it stays the
        error.
        """
        with contextlib.suppress(DriverError):
            self._controller.cancel(number)
            log.info("%s cancelled", number)
