"""A stand-in for `opened`: the fake driver under two drivers' names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fake_driver
from stub_run import SUITE
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.kind import OpenedDriver
from weighbridge.drivers.protocol import Cleanup, Prepare, Setup, Step
from weighbridge.results.run.step import Pass
from weighbridge.suites import Suite

BOTH = [
    {**SUITE["workloads"][0], "workers": [1, 4, 8]},
    {**SUITE["workloads"][0], "name": "more", "workers": [2]},
]


class TwoDrivers:
    """Two drivers that are open at once; `did`: their orders; `fails`: whose first `times` steps
    of the first workload fail.
    """

    def __init__(self, fails: str = "", times: int = 1) -> None:
        self.did: list[tuple[str, str]] = []
        self.fails, self.times = fails, times
        self.open = 0

    @contextmanager
    def opened(
        self, _deployment: object, suite: Suite, one: Pass, **_named: object
    ) -> Iterator[OpenedDriver]:
        self.open += 1
        self.did.append((one.driver, "opened"))
        target = Endpoint(api="swift", url="http://here", user="u", key="k")
        try:
            setup = Setup(target=target, bucket_prefix="wb-test", seed=suite.seed)
            driver: Any = OneOfTwo(self, one.driver, setup)
            yield OpenedDriver(driver, {})
        finally:
            self.open -= 1


class OneOfTwo:
    """The driver of one kind."""

    def __init__(self, both: TwoDrivers, name: str, setup: Setup) -> None:
        self.both, self.name, self.setup = both, name, setup

    def _answer(self, order: Any) -> Any:
        text = f"{order.kind} {order.workload.name}" + (
            f" x{order.workers}" if isinstance(order, Step) else ""
        )
        self.both.did.append((self.name, text))
        if isinstance(order, Step):
            assert self.both.open == 2
            small = order.workload.name == BOTH[0]["name"]
            if small and self.name == self.both.fails and self.both.times > 0:
                self.both.times -= 1
                raise DriverError("the driver broke")
        return fake_driver.answer(self.setup, order, lambda event: None)

    def prepare(self, order: Prepare, heard: object = None) -> Any:
        return self._answer(order)

    def step(self, order: Step, heard: object = None) -> Any:
        return self._answer(order)

    def cleanup(self, order: Cleanup, heard: object = None) -> Any:
        return self._answer(order)
