"""A driver of another package: sends HEAD requests to an S3 endpoint, and has its own option.

This file and an entry point of the group `weighbridge.drivers` are all that a package needs.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Final
from urllib.parse import urlsplit

import click
from pydantic import Field, TypeAdapter

from weighbridge.common.record import Record
from weighbridge.drivers.answering import answer_commands, event_writer
from weighbridge.drivers.kind import DriverKind, LoadSite, OpenedDriver
from weighbridge.drivers.protocol import (
    Cleaned,
    Cleanup,
    Event,
    Measured,
    Prepare,
    Prepared,
    Quit,
    Ready,
    Setup,
    Step,
)
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import DriverTraits, Measurement, Tally
from weighbridge.suites import Api, Workload


class ToySettings(Record):
    """Its settings, from its option."""

    pause_ms: float = 0.0


class ToySetup(Setup):
    """The first command, with the settings."""

    pause_ms: float


class ToyKind(DriverKind):
    """What the suite knows about the driver."""

    traits = DriverTraits(name="toy", label="Toy driver")
    apis: ClassVar[tuple[Api, ...]] = ("s3",)
    packages = ("toy-driver",)
    options = (
        click.Option(
            ["--toy-pause"], type=float, default=0.0, metavar="MS", help="Pause between requests."
        ),
    )

    def settings(self, given: Mapping[str, object], hidden: Collection[str]) -> ToySettings:
        """The pause between requests."""
        return ToySettings.model_validate({"pause_ms": given.get("toy_pause", 0.0)})

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        """It can only send HEAD requests."""
        only_head = set(workload.operations) == {"head"}
        return () if only_head else ("the toy driver knows no operation but head",)

    @contextmanager
    def opened(self, site: LoadSite) -> Iterator[OpenedDriver]:
        """One process on the first client."""
        settings = site.settings_as(ToySettings) or ToySettings()
        with site.process("toy_driver") as driver:
            ready = driver.setup(site.setup(ToySetup, pause_ms=settings.pause_ms))
            yield OpenedDriver(driver, ready.versions)
            driver.quit()


KIND: Final = ToyKind()

TOY_COMMAND: Final = TypeAdapter[Setup | Prepare | Step | Cleanup | Quit](
    Annotated[ToySetup | Prepare | Step | Cleanup | Quit, Field(discriminator="kind")]
)


def measure(setup: ToySetup, step: Step) -> Measurement:
    """Request the target's root until the window ends; any response counts as a success."""
    url, took_us, started_at = urlsplit(setup.target.url), [], datetime.now(UTC).isoformat()
    began_s = time.monotonic()
    while time.monotonic() - began_s < step.workload.runtime:
        asked_s = time.monotonic()
        connection = http.client.HTTPConnection(
            url.hostname or "", url.port, timeout=setup.request_timeout_s
        )
        connection.request("HEAD", "/")
        connection.getresponse().read()
        connection.close()
        took_us.append(max(1, round((time.monotonic() - asked_s) * 1e6)))
        time.sleep(setup.pause_ms / 1e3)
    tally = Tally(
        operation="head",
        count=len(took_us),
        bytes=0,
        latency=Histogram.counted([(one, 1) for one in took_us]).encode(),
        min_us=min(took_us),
        max_us=max(took_us),
        sum_us=sum(took_us),
    )
    return Measurement(
        api=setup.target.api,
        workload=step.workload.name,
        workers=step.workers,
        driver="toy",
        started_at=started_at,
        window_s=time.monotonic() - began_s,
        warmup_s=0.0,
        tallies=(tally,),
        load=None,
        notes=(f"pauses of {setup.pause_ms:g} ms",),
    )


class Toy:
    """The driver's process: answers commands."""

    setup: ToySetup

    def answer(self, command: ToySetup | Prepare | Step | Cleanup) -> Event:
        """Execute a command and return its event."""
        if isinstance(command, ToySetup):
            self.setup = command
            return Ready(versions={"toy": "1.0"})
        if isinstance(command, Step):
            return Measured(measurement=measure(self.setup, command))
        if isinstance(command, Prepare):
            return Prepared(objects=0, bytes=0, seconds=0.0)
        return Cleaned(deleted=0)


if __name__ == "__main__":
    sys.exit(
        answer_commands(sys.stdin.buffer, TOY_COMMAND, Toy().answer, event_writer(1, lambda: None))
    )
