"""Measuring hosts alone and all at once, with recorded answers."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import pytest

from weighbridge.common.errors import TargetError, UsageError
from weighbridge.topologies.baseline import bare, measure
from weighbridge.topologies.deployment import StateFolders
from weighbridge.topologies.loader import load_hardware, shipped_hardware

sys.path.insert(0, str(Path(__file__).parent))
from test_attestation import HARDWARE, RecordedHosts, quietly

IN_PIECES = json.dumps(
    {
        "jobs": [
            {"jobname": f"{pick} {operation} of 64 kB", "error": 0, operation: {"iops": 1000.0}}
            for pick, operation in itertools.product(("sequential", "random"), ("write", "read"))
        ]
    }
)


@pytest.fixture
def hosts(tmp_path: Path) -> RecordedHosts:
    made = RecordedHosts(tmp_path)
    made.answers["fio"] = IN_PIECES
    return made


def test_disks_are_measured_alone_and_then_all_of_a_host_together(
    hosts: RecordedHosts,
) -> None:
    found = measure(hosts, HARDWARE, [64_000], quietly)
    alone = [one for one in found if one.group == "disk"]
    assert [one.what for one in alone[::4]] == [
        "disk wb0 sequential write of 64 kB",
        "disk wb1 sequential write of 64 kB",
    ]
    assert {one.value for one in alone} == {64e6}
    assert [one.like for one in alone[::4]] == ["1 GiB, 100 MB/s", "300 MiB, 500 requests/s"]
    together = [one for one in found if one.group == "disks"]
    assert {(one.host, one.value) for one in together} == {("store-1", 128e6)}
    # One of the two disks has no limit of random requests: so nothing is promised of both.
    assert [one.promised is not None for one in together] == [True, True, False, False]
    assert set(hosts.limits_during("--name=random read of 64 kB")) == {frozenset({"disk"})}
    assert len(hosts.limits_during("blkdiscard")) == 2


def test_pairs_are_measured_both_ways_and_then_all_hosts_at_once_with_a_server_for_each_flow(
    hosts: RecordedHosts,
) -> None:
    found = measure(hosts, HARDWARE, [64_000], quietly)
    pairs = {(one.sender, one.receiver) for one in found if one.group == "network"}
    assert pairs == set(itertools.permutations(HARDWARE.hosts, 2))
    value = next(one.value for one in found if one.group == "network")
    fabric = {(one.host, one.job): one for one in found if one.group == "fabric"}
    assert set(fabric) == set(itertools.product(HARDWARE.hosts, ("sent", "received")))
    assert {one.value for one in fabric.values()} == {2 * value}
    assert fabric["client-1", "sent"].promised == 10**9
    # Two servers for the pairs, one for each of the six flows.
    assert len(hosts.servers) == 2 + 6
    assert all(server.poll() is not None for server in hosts.servers)
    assert hosts.limited == set()


def test_a_failing_tool_leaves_nothing_on_the_hosts(hosts: RecordedHosts) -> None:
    hosts.answers["iperf3"] = "{}"
    with pytest.raises(TargetError, match=r"iperf3: no end\.sum_received"):
        measure(hosts, HARDWARE, [64_000], quietly)
    assert hosts.limited == set()
    assert len(hosts.limits_during("blkdiscard")) == 2
    assert all(server.poll() is not None for server in hosts.servers)


@pytest.mark.parametrize(
    ("name", "why"), [("loopback", "are fake"), ("this-machine", "are this machine as it is")]
)
def test_hosts_that_cannot_be_measured_have_no_baseline(
    tmp_path: Path, name: str, why: str
) -> None:
    hardware = load_hardware(shipped_hardware()[name])
    with (
        pytest.raises(UsageError, match=why),
        bare(hardware, StateFolders(home=tmp_path, state=tmp_path), quietly),
    ):
        pass
    assert list(tmp_path.iterdir()) == []
