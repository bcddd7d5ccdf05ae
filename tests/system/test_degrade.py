"""Real daemons die in a step while its load goes on, and come back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from weighbridge.environment import place
from weighbridge.results.record.outage import Outage, read_outages
from weighbridge.results.record.store import RunStore
from weighbridge.topologies.lab import leftovers

pytestmark = [pytest.mark.system, pytest.mark.long]

SUITE = """
name: trial
about: Something dies
api: [swift]
repeats: 1
cache: none
workloads:
  - name: broken
    objects: {size: 4kB, containers: 1, per_container: 20}
    operations: {read: 90, write: 10}
    workers: [4]
    warmup: 1s
    runtime: 26s
    fault: {at: 6s, FAULT, back: 20s}
"""


def outage(folder: Path, layout: str, fault: str, hardware: str = "lab-cpu") -> tuple[Outage, str]:
    """The outage of the one step of a run, and the run's report."""
    path = folder / "trial.yaml"
    path.write_text(SUITE.replace("FAULT", fault))
    words = ("--layouts", layout, "--hardware", hardware, "--no-attest", "--no-charts")
    done = subprocess.run(
        [sys.executable, "-m", "weighbridge", "compare", "--suite", path, *words, "--out", folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode in (0, 4), done.stdout + done.stderr
    (run,) = folder.glob("*-trial-*")
    (step,) = RunStore.open(run).latest().values()
    assert step.measurement is not None, step
    (found,) = read_outages(run).values()
    assert found.key == step.key
    assert 6 <= found.fault.begun_s < found.fault.done_s
    assert found.back is not None
    assert 20 <= found.back.begun_s < found.back.done_s
    page = (run / "derived" / "report.html").read_text()
    assert "While something is broken" in page
    assert not leftovers.find(state=place().state)
    return found, page


def test_one_radosgw_of_two_dies_behind_haproxy_which_notices_it_and_has_it_back(
    tmp_path: Path,
) -> None:
    found, page = outage(tmp_path, "rgw-haproxy", "kill: gateway-daemon")
    assert len(found.services) == 1
    assert "radosgw" in found.services[0]
    # By its checks, every 2 s, of which three must fail: long before it is back.
    assert "HAProxy noticed after" in page


def test_a_storage_host_of_swift_falls_silent_with_all_its_servers_and_comes_back(
    tmp_path: Path,
) -> None:
    found, _ = outage(tmp_path, "swift", "silence: storage-host")
    assert found.way == "silence"
    assert found.host.startswith("store-")
    assert {"account-server", "container-server", "object-server"} <= set(found.services)


def test_a_storage_host_of_swift_is_unplugged_and_its_servers_go_on(tmp_path: Path) -> None:
    found, page = outage(tmp_path, "swift", "unplug: storage-host")
    assert (found.way, found.services) == ("unplug", ())
    assert f"{found.host} unplugged" in page


def test_all_servers_of_a_swift_storage_host_are_killed_and_run_again_with_their_syslog(
    tmp_path: Path,
) -> None:
    found, _ = outage(tmp_path, "swift", "kill: storage-host")
    assert found.way == "kill"
    assert {"syslog", "account-server", "container-server", "object-server"} <= set(found.services)


@pytest.mark.parametrize("layout", ["rgw-beast", "swift"])
def test_a_disk_of_a_store_fails_and_its_daemons_run_again_when_it_answers(
    tmp_path: Path, layout: str
) -> None:
    found, page = outage(tmp_path, layout, "fail: storage-disk", "lab-disks")
    assert (found.way, found.disk, found.services) == ("fail", "wb0", ())
    assert f"disk wb0 of {found.host} failed" in page
