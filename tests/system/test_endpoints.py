"""Several real daemons without a front: who gets which requests, by the daemons' own counters, the
kernel's tables and the access log; and one that is killed in a step.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median_low

import pytest

from behind_front import driving, measured
from daemon_counters import counters
from deaths import compare, kill
from deployed_layouts import deployed, unlimited, witness, written_once
from suite_command import trial, trial_suite
from weighbridge.drivers.protocol import Cleanup, OnProgress, Prepare, Progress
from weighbridge.results.run.step import EndpointTally, Measurement, Pass
from weighbridge.topologies.deployment import Deployment
from witness import ODD_NAMES

pytestmark = pytest.mark.system

ADDRESS = "10.80.0.11"
ESTABLISHED = "01"
MOST_IMBALANCE = {"round-robin": 1.3, "per-worker": 1.8}
"""Workers that keep their endpoint do as much as their writes let them: two of them may wait for a
busy disk while the others read.
"""
WORKERS = 4


def replayed(deployment: Deployment, api: str, folder: Path) -> Measurement:
    given = trial_suite(
        *(f"[{api}]", "{read: 3, write: 1}", "3s"),
        name="spread",
        per_container=20,
        workers=WORKERS,
        warmup="500ms",
    )
    workload = given.workloads[0]
    one = Pass.model_validate({"api": api, "workloads": ()})
    with driving(deployment, given, folder, one) as driver:
        driver.prepare(Prepare(workload=workload))
        with connections(deployment) as (seen, heard):
            measurement = measured(driver, workload, heard)
        driver.cleanup(Cleanup(workload=workload, what="all"))
    assert not any(tally.errors for tally in measurement.tallies), measurement.notes
    assert len(seen) == 2, seen
    assert set(seen.values()) <= {WORKERS // 2, WORKERS}, seen
    return measurement


@contextmanager
def connections(deployment: Deployment) -> Iterator[tuple[dict[int, int], OnProgress]]:
    """How many connections were established at once in the window, by port of the gateway host, as
    its kernel has them; filled at the end. It must hear of the driver's progress.
    """
    found: dict[int, int] = {}
    measuring = threading.Event()
    looks: dict[int, list[int]] = {port: [] for port in PORTS}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            now: Counter[int] = Counter()
            before = measuring.is_set()
            text = deployment.hosts["gateway-1"].run(["cat", "/proc/net/tcp"]).stdout
            for line in text.splitlines()[1:]:
                _, local, _, state = line.split()[:4]
                port = int(local.rpartition(":")[2], 16)
                now[port] += state == ESTABLISHED and port in PORTS
            for port, counts in looks.items() if before and measuring.is_set() else ():
                counts.append(now[port])

    def heard(progress: Progress) -> None:
        (measuring.set if progress.phase == "measure" else measuring.clear)()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found, heard
    finally:
        ended.set()
        thread.join(30)
        usual = {port: median_low(counts) for port, counts in looks.items() if counts}
        found.update({port: count for port, count in usual.items() if count})


PORTS = (8000, 8001, 8080, 8081)


def by_port(measurement: Measurement) -> dict[int, EndpointTally]:
    found = {int(one.name.rpartition(":")[2]): one for one in measurement.endpoints}
    assert all(one.name.startswith(f"{ADDRESS}:") for one in measurement.endpoints)
    assert sum(one.count for one in found.values()) == sum(one.count for one in measurement.tallies)
    return found


@pytest.mark.test_all
@pytest.mark.parametrize("spread", ["round-robin", "per-worker"])
def test_two_radosgw_share_the_requests_as_their_own_counters_say(
    spread: str, tmp_path: Path
) -> None:
    def change(layout: str) -> str:
        return layout.replace(
            "settings:\n", f"settings:\n  endpoints: {{spread: {spread}}}\n"
        ).replace("    frontend: beast\n", "    frontend: beast\n    daemons: 2\n")

    with deployed("rgw-beast", tmp_path, change, change_hardware=unlimited, once=True) as rgw:
        probes = [one.name for one in rgw.running_gateway.probes() if "gateway-1" in one.name]
        assert len(probes) == 2
        for api in ("s3", "swift"):
            before = [counters(rgw, name)["req"] for name in probes]
            measurement = replayed(rgw, api, tmp_path)
            after = [counters(rgw, name)["req"] for name in probes]
            gained = [now - was for now, was in zip(after, before, strict=True)]
            found = by_port(measurement)
            assert set(found) == {8000, 8001}
            for port, served in zip((8000, 8001), gained, strict=True):
                # The daemon also served the warm-up, and one of the two what is not measured.
                assert 0 < found[port].count <= served
            assert min(gained) > 0.3 * max(gained)
            assert measurement.imbalance is not None
            assert measurement.imbalance < MOST_IMBALANCE[spread]
        assert witness(rgw, "s3")["same"] == ODD_NAMES
        assert rgw.facts()["s3: several endpoints"] == (
            f"http://{ADDRESS}:8000, http://{ADDRESS}:8001; {spread}"
        )


def logged(deployment: Deployment) -> Counter[int]:
    """Requests for the step's objects in the proxies' access log, by the port in their Host."""
    text = deployment.hosts["gateway-1"].log("swift.log").read_text(errors="replace")
    found: Counter[int] = Counter()
    for line in text.splitlines():
        host = re.search(rf"Host:(?:%20| ){re.escape(ADDRESS)}:(\d+)", line)
        if host is not None and re.search(r"wb-0123-spread-0/(object|written)-", line):
            found[int(host[1])] += 1
    return found


@pytest.mark.test_all
@pytest.mark.parametrize(
    "spread", ["per-worker", pytest.param("round-robin", marks=pytest.mark.test_all)]
)
def test_two_proxies_share_the_requests_as_their_access_log_says(
    spread: str, tmp_path: Path
) -> None:
    def change(layout: str) -> str:
        more = (
            f"settings:\n  endpoints: {{spread: {spread}}}\n  s3api: true\n  options:\n"
            '    proxy: {"filter:proxy-logging": {access_log_headers: true}}\n'
        )
        return (
            layout.replace("settings:\n", more)
            .replace("  proxy:\n", "  proxy:\n    daemons: 2\n")
            .replace("log_requests: false", "log_requests: true")
        )

    with deployed("swift", tmp_path, change, change_hardware=unlimited, once=True) as swift:
        for api in ("swift", "s3"):
            before = logged(swift)
            measurement = replayed(swift, api, tmp_path)
            gained = logged(swift) - before
            found = by_port(measurement)
            assert set(found) == set(gained) == {8080, 8081}
            for port, one in found.items():
                assert 0 < one.count <= gained[port]
            assert measurement.imbalance is not None
            assert measurement.imbalance < MOST_IMBALANCE[spread]


DEATHS = trial(
    *("[s3]", "{read: 50, write: 50}", "8s"),
    name="one-dies",
    size="64KiB",
    per_container=20,
    workers=4,
    rate=60,
)


@pytest.mark.long
@pytest.mark.parametrize("drop_dead", [True, pytest.param(False, marks=pytest.mark.test_all)])
def test_a_radosgw_that_is_killed_in_a_step_is_counted_and_named(
    tmp_path: Path, drop_dead: bool
) -> None:
    layout = written_once("rgw-beast", tmp_path)
    ended = compare(
        tmp_path,
        DEATHS,
        f"{layout}:radosgw.daemons=2:endpoints.drop_dead={str(drop_dead).lower()}",
        {"one-dies": kill("gateway-1", r"^radosgw .*gateway-1\.1\b")},
        "--no-charts",
    )
    step = next(iter(ended.store.steps()))
    assert step.spoilt
    assert "radosgw.1 on gateway-1 died" in step.notes[0]
    assert step.measurement is not None
    alive, dead = step.measurement.endpoints
    assert (alive.name, dead.name) == (f"{ADDRESS}:8000", f"{ADDRESS}:8001")
    assert set(dead.errors) <= {"connect", "reset", "short-body"}
    assert dead.errors["connect"] >= 3
    assert alive.errors == {}
    assert (dead.left_out, alive.left_out) == (drop_dead, False)
    named = [note for note in step.measurement.notes if f"endpoint {ADDRESS}:8001" in note]
    assert len(named) == 1
    assert ("was left out" in named[0]) == drop_dead
    if drop_dead:
        assert dead.failed < 20
        assert alive.count > dead.count
    assert f"{ADDRESS}:8001" in (ended.store.derived / "report.html").read_text()
