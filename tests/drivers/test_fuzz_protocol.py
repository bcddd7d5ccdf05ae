"""Malformed commands and events of the protocol between conductor and drivers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, cast

import pytest
from pydantic import SecretStr, TypeAdapter, ValidationError

from made_up import fake_measurement
from tests.mutation import Dice, bounded, cases, tried, wrong_json
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.errors import DriverError
from weighbridge.drivers.cosbench.site import COSBENCH_COMMAND, CosbenchSetup, CosbenchSite
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import (
    DRIVER_COMMAND,
    EVENT,
    AgeBuckets,
    Aged,
    AgeRound,
    Cleaned,
    Cleanup,
    DriverCommand,
    DriverFailure,
    Event,
    Failed,
    KeptFile,
    Measured,
    Prepare,
    Prepared,
    Progress,
    Quit,
    Ready,
    Ring,
    RingDisk,
    Setup,
    Step,
)
from weighbridge.suites import Age as SuiteAge
from weighbridge.suites import Objects, Workload

WORKLOAD: Final = Workload(
    name="small-read",
    objects=Objects(size=4096),
    operations={"read": 100},
    workers=(2,),
    runtime=1.0,
)
DISK: Final = RingDisk(address="10.0.0.1", port=6200, device="d0")
TARGET: Final = Endpoint(
    api="s3",
    url="http://10.0.0.1:8080",
    user="me",
    key=SecretStr("planted"),
    token=SecretStr("too"),
)
RING: Final = Ring(
    disks=(DISK,),
    table=((0, 0),),
    part_power=1,
    hash_prefix=SecretStr("a"),
    hash_suffix=SecretStr("b"),
)
SITE: Final = CosbenchSite(controller="http://10.0.0.1:19088/controller", archive="/var/archive")
COMMANDS: Final[tuple[DriverCommand, ...]] = (
    Setup(target=TARGET, bucket_prefix="wb-a", seed=1),
    Setup(
        target=Endpoint(api="swift", url="http://10.0.0.1:8080/AUTH_a", user="AUTH_a"),
        ring=RING,
        bucket_prefix="wb-a",
        seed=1,
    ),
    Prepare(workload=WORKLOAD),
    Step(workload=WORKLOAD, workers=2),
    Cleanup(workload=WORKLOAD, what="all"),
    AgeBuckets(age=SuiteAge(fill="100MB", size="4KiB"), objects=10),
    Quit(),
)
MEASUREMENT: Final = fake_measurement(window_s=1.0, workers=1, mean_ms=50, errors={"http-503": 2})
KEPT: Final = (KeptFile(name="a.txt", text="some output"),)
ROUND: Final = AgeRound(number=0, deleted=1, deleted_bytes=1, written=1, written_bytes=1)
SHORT: Final = MEASUREMENT.model_copy(update={"seconds": MEASUREMENT.seconds[:2]})
EVENTS: Final[tuple[Event, ...]] = (
    Ready(versions={"locust": "2.43"}),
    Progress(phase="measure", done=1.5, total=3.0),
    Prepared(objects=3, bytes=9, seconds=0.5, kept=KEPT),
    Measured(measurement=SHORT, kept=KEPT),
    Cleaned(deleted=3),
    Aged(objects=3, bytes=3, filled_bytes=3, rounds=(ROUND,), seconds=1.0, fingerprint="00ff"),
    Failed(message="no such host", kept=KEPT),
)
COSBENCH_SETUP: Final = CosbenchSetup(target=TARGET, bucket_prefix="wb-a", seed=1, site=SITE)
DOCUMENTS: Final = {
    "cosbench": (
        COSBENCH_COMMAND,
        [one.model_dump(mode="json") for one in (COSBENCH_SETUP, *COMMANDS[2:])],
    ),
    "command": (DRIVER_COMMAND, [one.model_dump(mode="json") for one in COMMANDS]),
    "event": (EVENT, [one.model_dump(mode="json") for one in EVENTS]),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_any_line_is_refused_by_its_record_or_serialised_again_unchanged(name: str) -> None:
    adapter, documents = cast("tuple[TypeAdapter[Any], list[Any]]", DOCUMENTS[name])

    @cases
    def case(dice: Dice) -> None:
        line = wrong_json(dice, dice.choice(documents))
        with bounded():
            try:
                found = adapter.validate_json(line)
            except ValidationError:
                return
        again = found.model_dump_json()
        assert adapter.validate_json(again).model_dump_json() == again

    case()


class EndedDriver:
    """A driver that has sent one line and ended."""

    def __init__(self, line: bytes) -> None:
        self.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY), "wb")
        self.stdout = os.fdopen(os.memfd_create("line"), "wb+")
        self.stdout.write(line + b"\n")
        self.stdout.seek(0)
        self.returncode = 3

    def poll(self) -> int:
        return 3

    def wait(self, timeout: float | None = None) -> int:
        return 3


@cases
def test_any_line_of_a_driver_is_an_answer_or_a_driver_error(dice: Dice) -> None:
    ended = EndedDriver(wrong_json(dice, dice.choice(DOCUMENTS["event"][1])))
    process = DriverProcess(cast("Any", ended), Path("/nowhere/driver.log"))
    answer = tried(
        lambda: process.step(Step(workload=WORKLOAD, workers=2)),
        DriverError,
        DriverFailure,
        saying="driver",
    )
    assert answer is None or isinstance(answer, Measured)
    process.close()
