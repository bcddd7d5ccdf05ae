"""A workload's containers at the target: listed, and deleted by direct requests.

COSBench's cleanup and dispose never fail, whatever remains.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.script import PREPARED
from weighbridge.drivers.cosbench.stop_request import StopRequest
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.protocol import Progress
from weighbridge.suites import Workload

PARALLEL: Final = 8
AT_ONCE: Final = 500
PATIENCE_S: Final = 30.0
"""How long listings may show deleted objects: Swift updates them later."""
PAUSE_S: Final = 0.5


class CosbenchContainers:
    """A workload's containers, `{prefix}-{workload}-{number}`, numbered from 1 as by COSBench."""

    def __init__(self, account: Account, prefix: str, stop: StopRequest) -> None:
        self._account = account
        self._prefix = prefix
        self._stop = stop

    def prefix(self, workload: Workload) -> str:
        """The containers' names without their numbers."""
        return f"{self._prefix}-{workload.name}-"

    def names(self, workload: Workload) -> list[str]:
        """The containers' names."""
        return [
            f"{self.prefix(workload)}{number}"
            for number in range(1, workload.objects.containers + 1)
        ]

    def make(self, workload: Workload) -> None:
        """Make the containers: over S3 COSBench's init reports success whatever happened.

        Raises DriverError.
        """
        self._account.renew()
        for name in self.names(workload):
            self._stop.check()
            self._account.make_bucket(name)

    def left(self, workload: Workload, at_most: int) -> int:
        """The number of prepared objects listed; while more than `at_most`, looks again a while."""
        deadline_s = time.monotonic() + PATIENCE_S
        self._account.renew()
        while True:
            found = sum(
                name.startswith(PREPARED)
                for bucket in self.names(workload)
                for name in self._account.objects(bucket)
            )
            if found <= at_most or time.monotonic() > deadline_s:
                return found
            self._stop.wait(PAUSE_S)

    def delete(
        self, workload: Workload, *, everything: bool, send: Callable[[Progress], None]
    ) -> tuple[int, int]:
        """Delete what was written, or everything with the containers.

        Returns (deleted, failed) objects.
        """
        self._account.renew()
        deleted = failed = 0
        with ThreadPoolExecutor(PARALLEL) as pool:
            for bucket in self.names(workload):
                names = [
                    name
                    for name in self._account.objects(bucket)
                    if everything or not name.startswith(PREPARED)
                ]
                for start in range(0, len(names), AT_ONCE):
                    self._stop.check()
                    some = names[start : start + AT_ONCE]
                    gone = sum(
                        pool.map(lambda name, bucket=bucket: self._deleted(bucket, name), some)
                    )
                    deleted, failed = deleted + gone, failed + len(some) - gone
                    total = deleted + failed
                    send(Progress(phase="cleanup", done=deleted, total=total, errors=failed))
                if everything:
                    self._delete_container(bucket)
        return deleted, failed

    def _deleted(self, bucket: str, name: str) -> bool:
        try:
            self._account.delete_object(bucket, name)
        except DriverError:
            return False
        return True

    def _delete_container(self, bucket: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._account.delete_bucket(bucket):
            if time.monotonic() > deadline_s:
                raise DriverError(
                    f"{self._account.url}: {bucket} is not empty {PATIENCE_S:g} s after its "
                    "objects were deleted",
                    advice="Delete it by hand; the gateway's log may say what remains in it.",
                )
            self._stop.wait(PAUSE_S)
