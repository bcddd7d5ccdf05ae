"""Real daemons die in a step while its load goes on, and come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite_command import measured, trial, weighbridge
from weighbridge.environment import place
from weighbridge.results.record.outage import Outage, read_outages
from weighbridge.topologies.lab import ending

pytestmark = [pytest.mark.system, pytest.mark.long]


def outage(
    folder: Path, layout: str, fault: str, hardware: str = "lab-cpu", back_s: int = 8
) -> tuple[Outage, str]:
    """The outage of a run of one step with a fault, and the run's report. What was broken is back
    after `back_s` seconds of the window.
    """
    path = folder / "trial.yaml"
    path.write_text(
        trial(
            *("[swift]", "{read: 90, write: 10}", f"{back_s + 6}s"),
            size="4kB",
            per_container=20,
            workers=4,
            rate=30,  # a closed loop would take all of the machine
            warmup="1s",
            suite="cache: none",
            workload=f"fault: {{at: 5s, {fault}, back: {back_s}s}}",
        )
    )
    words = f"--layouts {layout} --hardware {hardware} --no-attest --no-charts --out {folder}/runs"
    store = measured(weighbridge(f"compare --suite {path} {words}"), folder / "runs")
    (found,) = read_outages(store.folder).values()
    step = store.latest()[found.key]
    assert step.measurement is not None, step
    assert 5 <= found.fault.begun_s < found.fault.done_s
    assert found.back is not None
    assert back_s <= found.back.begun_s < found.back.done_s
    page = (store.folder / "derived" / "report.html").read_text()
    assert "While something is broken" in page
    assert not ending.find_leftovers(state=place().state)
    return found, page


def test_one_radosgw_of_two_dies_behind_haproxy_which_notices_it_and_has_it_back(
    tmp_path: Path,
) -> None:
    one, page = outage(tmp_path, "rgw-haproxy", "kill: gateway-daemon", back_s=15)
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
        of_way[way], pages[way] = outage(tmp_path / way, "swift", f"{way}: storage-host")
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
    one, page = outage(tmp_path, layout, "fail: storage-disk", hardware="lab-disks")
    assert (one.way, one.disk, one.services) == ("fail", "wb0", ())
    assert f"disk wb0 of {one.host} failed" in page
