"""The stock: what of a workload stands at the target, as its own listings say; and its end, by
requests of our own.

COSBench's cleanup and dispose never fail, whatever is left.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.ending import EndRequest
from weighbridge.drivers.cosbench.script import PREPARED
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.order import Progress
from weighbridge.suites import Workload

PARALLEL: Final = 8
AT_ONCE: Final = 500
PATIENCE_S: Final = 30.0
"""How long a listing may go on to show what is gone: Swift's containers hear late of their objects.
"""
PAUSE_S: Final = 0.5


class CosbenchContainers:
    """The containers of a workload:

    `{prefix}-{workload}-{number}` from 1 on, as COSBench counts.
    """

    def __init__(self, account: Account, prefix: str, ending: EndRequest) -> None:
        self._account = account
        self._prefix = prefix
        self._ending = ending

    def containers(self, workload: Workload) -> str:
        """What their names begin with."""
        return f"{self._prefix}-{workload.name}-"

    def names(self, workload: Workload) -> list[str]:
        """All their names."""
        return [
            f"{self.containers(workload)}{number}"
            for number in range(1, workload.objects.containers + 1)
        ]

    def make(self, workload: Workload) -> None:
        """See that the containers are there: over S3 COSBench's init says so whatever happened.

        Raises DriverError.
        """
        self._account.authenticate()
        for name in self.names(workload):
            self._ending.check()
            self._account.make_bucket(name)

    def left(self, workload: Workload, at_most: int) -> int:
        """Prepared objects that are listed; when they are more than `at_most`, those after a while
        of looking again.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        self._account.authenticate()
        while True:
            found = sum(
                name.startswith(PREPARED)
                for bucket in self.names(workload)
                for name in self._account.objects(bucket)
            )
            if found <= at_most or time.monotonic() > deadline_s:
                return found
            self._ending.wait(PAUSE_S)

    def delete(
        self, workload: Workload, *, all_of_it: bool, say: Callable[[Progress], None]
    ) -> tuple[int, int]:
        """Delete what was written, or everything and the containers; how many objects were, and how
        many could not be.
        """
        self._account.authenticate()
        deleted = failed = 0
        with ThreadPoolExecutor(PARALLEL) as pool:
            for bucket in self.names(workload):
                names = [
                    name
                    for name in self._account.objects(bucket)
                    if all_of_it or not name.startswith(PREPARED)
                ]
                for start in range(0, len(names), AT_ONCE):
                    self._ending.check()
                    some = names[start : start + AT_ONCE]
                    gone = sum(
                        pool.map(lambda name, bucket=bucket: self._deleted(bucket, name), some)
                    )
                    deleted, failed = deleted + gone, failed + len(some) - gone
                    say(
                        Progress(
                            phase="cleanup", done=deleted, total=deleted + failed, errors=failed
                        )
                    )
                if all_of_it:
                    self._end(bucket)
        return deleted, failed

    def _deleted(self, bucket: str, name: str) -> bool:
        try:
            self._account.delete_object(bucket, name)
        except DriverError:
            return False
        return True

    def _end(self, bucket: str) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._account.delete_bucket(bucket):
            if time.monotonic() > deadline_s:
                raise DriverError(
                    f"{self._account.url}: {bucket} is not empty {PATIENCE_S:g} s after its "
                    "objects were deleted",
                    advice="Delete it by hand; the gateway's log may say what is left in it.",
                )
            self._ending.wait(PAUSE_S)
