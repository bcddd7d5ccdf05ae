"""A real COSBench 0.4.2, where there is one: alone with its own mock storage, and replaying a suite
against a real Swift.
"""

from __future__ import annotations

import os
import time
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from deaths import soon_nothing_left
from small_lab import within
from sockets import open_sockets
from suite_command import measured, trial, weighbridge
from weighbridge.drivers.cosbench.installation import Installation

HOME = os.environ.get("COSBENCH_HOME")

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        HOME is None,
        reason="COSBENCH_HOME names no unpacked COSBench, and none can be had as a package",
    ),
]

MOCK = """<workload name="mock">
<storage type="mock" config="size=1000;delay=10;logging=false"/><workflow>
<workstage name="init">
<work type="init" workers="1" interval="1" config="containers=r(1,2)"/></workstage>
<workstage name="main"><work name="main" workers="2" runtime="2" interval="1">
<operation type="read" ratio="100" config="containers=u(1,2);objects=u(1,10)"/></work></workstage>
</workflow></workload>"""

SUITE = trial(
    *("[swift]", "{read: 100}", "4s"),
    size="64KB",
    containers=2,
    per_container=10,
    warmup="1s",
    suite="driver: locust,cosbench",
)


def submit(controller: str, xml: str) -> str:
    """The controller's answer to a workload, put together by hand: what our own client sends is not
    trusted here.
    """
    body = (
        '--b\r\nContent-Disposition: form-data; name="config"; '
        f'filename="w.xml"\r\n\r\n{xml}\r\n--b--\r\n'
    )
    request = urllib.request.Request(
        f"{controller}/cli/submit.action?username=anonymous&password=cosbench",
        body.encode(),
        {"Content-Type": "multipart/form-data; boundary=b"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def test_it_runs_a_workload_where_it_may_not_set_the_clock_and_leaves_its_home_as_it_was(
    tmp_path: Path,
) -> None:
    home = Path(HOME or "")

    def seen() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in [home, *sorted(home.rglob("*"))]}

    before, clock = seen(), time.time() - time.monotonic()
    with Installation(home, "127.0.0.1", tmp_path / "run", print) as running:
        port = urllib.parse.urlsplit(running.controller).port
        assert port is not None
        listeners = {one.address for one in open_sockets("self") if one.port == port}
        assert listeners == {"127.0.0.1"}
        # The date that its driver is to find, but one that tells what it was asked.
        date = running.folder / "shim" / "date"
        date.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/dates\n')
        assert submit(running.controller, MOCK) == "Accepted with ID: w1"
        assert within(120, (running.archive / "w1-mock" / "scripts.log").exists)
        read = (running.archive / "w1-mock" / "w1-mock.csv").read_text().splitlines()[2].split(",")
        assert (read[0], read[1], read[16]) == ("s2-main", "read", "completed")
        assert int(read[3]) > 0
        assert running.cpu_s() > 0
    assert "-s 20" in (tmp_path / "dates").read_text()
    assert abs((time.time() - time.monotonic()) - clock) < 0.5, "the clock was set"
    assert seen() == before


def test_both_drivers_measure_the_same_step_of_a_real_swift_and_leave_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "both.yaml").write_text(SUITE)
    done = weighbridge(
        f"compare --suite {tmp_path}/both.yaml --layouts swift --hardware lab-cpu --no-attest "
        f"--out {tmp_path}/runs"
    )
    store = measured(done, tmp_path / "runs")
    steps = {step.key.driver: step for step in store.steps()}
    assert set(steps) == {"locust", "cosbench"}
    for step in steps.values():
        assert step.measurement is not None
        (tally,) = step.measurement.tallies
        assert tally.operation == "read"
        assert tally.count > 0
        assert tally.bytes == 64_000 * tally.count
        assert not tally.errors
    cosbench = steps["cosbench"].measurement
    assert cosbench is not None
    assert cosbench.tallies[0].bins is not None
    soon_nothing_left(store)
