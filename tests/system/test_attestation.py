"""Attestation of real hosts: it sees their limits, leaves nothing behind, and tells two deployments
apart.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest

from deployed_layouts import left_over
from exposure import check_listeners, shown_by
from small_lab import raised
from suite_command import trial
from weighbridge.environment import place
from weighbridge.gateways.gateway import HostNeed
from weighbridge.gateways.swift.swift import Swift
from weighbridge.results.judge.host_equality import warnings
from weighbridge.results.run.telemetry import Attested
from weighbridge.topologies.attestation import (
    IMAGE,
    PRIMES_EVENTS,
    REGION_BYTES,
    Attestation,
    HostCeiling,
    attest,
    cpu_arguments,
)
from weighbridge.topologies.hardware import Hardware
from weighbridge.topologies.images import ensure
from weighbridge.topologies.lab import LabHosts
from weighbridge.topologies.lab.claim import claims

pytestmark = [pytest.mark.system, pytest.mark.pair]

MB = 10**6
CPUS = 0.3
BANDWIDTH = 50 * MB
RATE_BIT_PER_S = 100 * MB
ROOT = Path("/")
NEEDS = {
    "gateway-1": HostNeed(roles=("proxy",)),
    "store-1": HostNeed(roles=("object",), disks=1, tier="storage"),
}


def hardware(bandwidth: int) -> Hardware:
    return Hardware.model_validate(
        {
            "name": "attest-test",
            "kind": "lab",
            "hosts": {
                "client-1": {"memory": "512MiB"},
                "gateway-1": {"cpus": CPUS, "memory": "512MiB", "nic": "100Mbit"},
                "store-1": {
                    "memory": "512MiB",
                    "disks": [{"size": "1GiB", "bandwidth": bandwidth}],
                },
            },
        }
    )


@dataclass(frozen=True)
class Attesting:
    """Hosts that were attested and still stand.

    `backing` are descriptors of the files below their disks.
    """

    hosts: LabHosts
    attestation: Attestation
    backing: tuple[int, ...]
    state: Path

    def found(self, host: str, what: str) -> HostCeiling:
        return next(
            one for one in self.attestation.ceilings if (one.host, one.what) == (host, what)
        )

    def as_kept(self, layout: str) -> list[Attested]:
        return [
            Attested(layout=layout, repeat=0, **one.model_dump())
            for one in self.attestation.ceilings
        ]


@contextmanager
def attesting(
    folder: Path, made: Hardware, names: list[str], images: Mapping[str, Path]
) -> Iterator[Attesting]:
    backing: list[int] = []
    make = tempfile.mkstemp

    def remembered(dir: Path, prefix: str) -> tuple[int, str]:  # noqa: A002 - mkstemp's
        descriptor, name = make(dir=dir, prefix=prefix)
        backing.append(os.dup(descriptor))
        return descriptor, name

    tools = ensure(IMAGE, print, store=place().images)
    label = f"attest-{secrets.token_hex(3)}"
    state = folder / "state"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("weighbridge.topologies.lab.disk.tempfile.mkstemp", remembered)
        hosts = raised(label, folder / "deployment", state, images, made, names=names, tools=tools)
    try:
        with hosts:
            yield Attesting(hosts, attest(hosts, made, NEEDS, print), tuple(backing), state)
    finally:
        for descriptor in backing:
            os.close(descriptor)


@pytest.fixture(scope="module")
def attested(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attesting]:
    image = ensure(Swift.releases["swift-2.35"], print, store=place().images)
    made = hardware(BANDWIDTH)
    roots = {"gateway-1": image, "store-1": ROOT}
    with attesting(
        tmp_path_factory.mktemp("attest"), made, list(made.hosts), roots
    ) as attesting_hosts:
        yield attesting_hosts


def test_the_limit_of_a_disk_is_seen(attested: Attesting) -> None:
    for what in ("disk wb0 write", "disk wb0 read"):
        found = attested.found("store-1", what)
        # What passes before the throttle first holds is a tenth; a machine that is busy gives less
        # than it promises.
        assert 0.4 * BANDWIDTH < found.value < 1.2 * BANDWIDTH
        assert found.promised == BANDWIDTH


def test_the_limit_of_a_nic_is_seen_in_both_directions(attested: Attesting) -> None:
    for host, what in (
        *(("gateway-1", "network from client-1"), ("gateway-1", "network to client-1")),
        *(("store-1", "network from gateway-1"), ("store-1", "network to gateway-1")),
    ):
        found = attested.found(host, what)
        assert 0.4 * RATE_BIT_PER_S < found.value < 1.15 * RATE_BIT_PER_S
        assert found.promised == RATE_BIT_PER_S
    assert attested.found("store-1", "network from client-1").value > 2 * RATE_BIT_PER_S


def test_the_quota_of_a_cpu_is_seen(attested: Attesting) -> None:
    host = attested.hosts.hosts["gateway-1"]
    before = host.counters()
    spent_s = []
    for events in (PRIMES_EVENTS, 20 * PRIMES_EVENTS):
        was_s = host.counters().cpu_s
        host.run([*host.tool("sysbench"), *cpu_arguments(1, events=events)])
        now_s = host.counters().cpu_s
        assert was_s is not None
        assert now_s is not None
        spent_s.append(now_s - was_s)
    # By CPU time, which does not depend on what else this machine does; the difference leaves out
    # what starting it costs.
    events_per_cpu_s = 19 * PRIMES_EVENTS / (spent_s[1] - spent_s[0])
    assert attested.found("gateway-1", "CPU").value < 1.4 * CPUS * events_per_cpu_s
    assert before.throttled_s is not None
    assert before.throttled_s > 0.1


def test_tools_are_the_same_in_a_host_of_an_image_and_in_one_of_this_machine(
    attested: Attesting,
) -> None:
    versions = [
        host.run([*host.tool("fio"), "--version"]).stdout.strip()
        for host in attested.hosts.hosts.values()
    ]
    assert versions == [attested.attestation.tools["fio"]] * 3


def test_disks_are_as_empty_as_before(attested: Attesting) -> None:
    store = attested.hosts.hosts["store-1"]
    written = store.counters().disk_written_bytes
    assert written is not None
    assert written > REGION_BYTES
    (backing,) = attested.backing
    assert os.fstat(backing).st_blocks * 512 < 2**20
    store.run(["cmp", "-n", str(REGION_BYTES), "/dev/wb0", "/dev/zero"])


def test_limits_are_off_again_and_no_tool_runs(attested: Attesting) -> None:
    facts = attested.hosts.facts()
    assert "tbf" not in facts["limits gateway-1"]
    assert "3000" not in facts["limits gateway-1"].replace(";", "").split()
    assert str(BANDWIDTH) not in facts["limits store-1"]
    assert [one.root_limits for one in claims(attested.state)] == [()]
    for throttle in Path("/sys/fs/cgroup/blkio").glob("blkio.throttle.*_bps_device"):
        assert str(BANDWIDTH) not in throttle.read_text()
    for host in attested.hosts.hosts.values():
        listed = host.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'"]).stdout
        assert "iperf3" not in listed
        assert "--filename" not in listed


def test_limits_can_be_put_on_after_attestation(attested: Attesting) -> None:
    attested.hosts.limit()
    facts = attested.hosts.facts()
    assert "tbf rate 100Mbit" in facts["limits gateway-1"]
    assert {"3000", "10000"} <= set(facts["limits gateway-1"].replace(";", "").split())
    assert str(BANDWIDTH) in facts["limits store-1"]
    attested.hosts.unlimit()
    assert "tbf" not in attested.hosts.facts()["limits gateway-1"]


@pytest.mark.test_all
def test_a_disk_that_is_slower_in_another_deployment_is_warned_about(
    attested: Attesting, tmp_path: Path
) -> None:
    first = attested.as_kept("swift")
    made = hardware(BANDWIDTH // 2)
    with attesting(tmp_path, made, ["client-1", "store-1"], {"store-1": ROOT}) as other:
        second = other.as_kept("rgw-beast")
    warned = warnings([*first, *second])
    (slower,) = [text for text in warned if text.startswith("disk wb0 write of store-1 gave")]
    assert "under rgw-beast" in slower.split(" and ")[0]
    assert "under swift" in slower.split(" and ")[1]


def test_a_comparison_attests_the_hosts_of_each_layout_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "trial.yaml").write_text(trial("[swift]", "{read: 100}", "1s"))
    words = f"--suite {tmp_path}/trial.yaml --layouts null:delay_ms=5,null:delay_ms=6"
    shown = shown_by(f"--attest --no-charts {words}", tmp_path / "runs")
    check_listeners(shown, {"gateway-1": {"iperf3"}})
    hosts = {(one.layout, one.host) for one in shown.run.attested()}
    assert hosts == {*product(("null-delay-ms-5", "null-delay-ms-6"), ("client-1", "gateway-1"))}
    assert left_over() == []
