"""Real daemons die in a step while its load goes on, and come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from suite_command import measured, weighbridge
from weighbridge.environment import place
from weighbridge.results.record.outage import Outage, read_outages
from weighbridge.topologies.lab import ending

pytestmark = [pytest.mark.system, pytest.mark.long]

SUITE = """
name: trial
about: Something dies
api: [swift]
repeats: 1
cache: none
workloads:
"""
WORKLOAD = """
  - name: NAME
    objects: {size: 4kB, containers: 1, per_container: 20}
    operations: {read: 90, write: 10}
    workers: [4]
    warmup: 1s
    rate_per_s: 30  # a closed loop would take all of the machine
    runtime: ENDs
    fault: {at: 5s, FAULT, back: BACKs}
"""


def outages(
    folder: Path, layout: str, *faults: str, hardware: str = "lab-cpu", back_s: int = 8
) -> tuple[dict[str, Outage], str]:
    """The outages of a run with a step for each fault, by fault, and the run's report. What was
    broken is back after `back_s` seconds of the window.
    """
    names = {re.sub(r"\W+", "-", fault): fault for fault in faults}
    path = folder / "trial.yaml"
    times = WORKLOAD.replace("BACK", str(back_s)).replace("END", str(back_s + 6))
    workloads = (times.replace("NAME", name).replace("FAULT", names[name]) for name in names)
    path.write_text(SUITE + "".join(workloads))
    words = f"--layouts {layout} --hardware {hardware} --no-attest --no-charts --out {folder}/runs"
    store = measured(weighbridge(f"compare --suite {path} {words}"), folder / "runs")
    run = store.folder
    steps = store.latest()
    found = {names[one.key.workload]: one for one in read_outages(run).values()}
    assert found.keys() == set(faults)
    for one in found.values():
        assert steps[one.key].measurement is not None, steps[one.key]
        assert 5 <= one.fault.begun_s < one.fault.done_s
        assert one.back is not None
        assert back_s <= one.back.begun_s < one.back.done_s
    page = (run / "derived" / "report.html").read_text()
    assert "While something is broken" in page
    assert not ending.find_leftovers(state=place().state)
    return found, page


def test_one_radosgw_of_two_dies_behind_haproxy_which_notices_it_and_has_it_back(
    tmp_path: Path,
) -> None:
    found, page = outages(tmp_path, "rgw-haproxy", "kill: gateway-daemon", back_s=15)
    (one,) = found.values()
    assert len(one.services) == 1
    assert "radosgw" in one.services[0]
    # By its checks, every 2 s, of which three must fail: long before it is back.
    assert "HAProxy noticed after" in page


@pytest.mark.test_all
def test_a_storage_host_of_swift_falls_silent_is_unplugged_and_is_killed_and_comes_back(
    tmp_path: Path,
) -> None:
    # A run for each: Swift's proxies avoid a host with some ten errors for a minute
    # (error_suppression_interval), and with two such hosts of three they refuse writes.
    ways = ("silence", "unplug", "kill")
    of_way, pages = {}, {}
    for way in ways:
        (tmp_path / way).mkdir()
        found, pages[way] = outages(tmp_path / way, "swift", f"{way}: storage-host")
        (of_way[way],) = found.values()
    silent, unplugged, killed = of_way.values()
    assert (silent.way, unplugged.way, killed.way) == ways
    servers = {"account-server", "container-server", "object-server"}
    assert silent.host.startswith("store-")
    assert servers <= set(silent.services)
    assert unplugged.services == ()
    assert f"{unplugged.host} unplugged" in pages["unplug"]
    assert {"syslog", *servers} <= set(killed.services)


@pytest.mark.test_all
@pytest.mark.parametrize("layout", ["rgw-beast", "swift"])
def test_a_disk_of_a_store_fails_and_its_daemons_run_again_when_it_answers(
    tmp_path: Path, layout: str
) -> None:
    found, page = outages(tmp_path, layout, "fail: storage-disk", hardware="lab-disks")
    (one,) = found.values()
    assert (one.way, one.disk, one.services) == ("fail", "wb0", ())
    assert f"disk wb0 of {one.host} failed" in page
