"""The layer behind a front: what of a replayed step the front saw, and what it did not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daemon_counters import counters
from weighbridge.conductor.opening import opened
from weighbridge.drivers.protocol import Cleanup, Driver, OnProgress, Prepare, Step
from weighbridge.results.run.step import Measurement, Pass
from weighbridge.suites import Suite, Workload
from weighbridge.topologies.deployment import Deployment


@contextmanager
def driving(
    deployment: Deployment, suite: Suite, folder: Path, one: Pass, prefix: str = "wb-0123"
) -> Iterator[Driver]:
    with opened(deployment, suite, one, prefix=prefix, log=folder / "driver.log") as ready:
        yield ready.driver


def measured(driver: Driver, workload: Workload, heard: OnProgress | None = None) -> Measurement:
    """A step's measurement; of several the first in which a request ended: on a busy disk a short
    window may pass within one write.
    """
    for _ in range(10):
        found = driver.step(Step(workload=workload, workers=workload.workers[0]), heard).measurement
        if any(tally.count or tally.errors for tally in found.tallies):
            break
    return found


def past(deployment: Deployment, suite: Suite, folder: Path) -> dict[str | None, float]:
    """How many answers HAProxy passed on while a step was replayed: over the front, and at the
    layer behind it.
    """
    gained: dict[str | None, float] = {}
    workload = suite.workloads[0]
    for layer in (None, "gateway"):
        one = Pass.model_validate({"api": suite.api[0], "layer": layer, "workloads": ()})
        before = counters(deployment, "haproxy.gateway-1")["frontend.hrsp_2xx"]
        with driving(deployment, suite, folder, one) as driver:
            driver.prepare(Prepare(workload=workload))
            measurement = measured(driver, workload)
            driver.cleanup(Cleanup(workload=workload, what="all"))
        assert sum(tally.count for tally in measurement.tallies) > 0
        assert not any(tally.errors for tally in measurement.tallies)
        gained[layer] = counters(deployment, "haproxy.gateway-1")["frontend.hrsp_2xx"] - before
    return gained
