"""RADOS, RBD, CephFS and the OSDs themselves, measured beside the gateway of one real cluster."""

import re
from pathlib import Path

import pytest

from deployed_layouts import deploys, unlimited, witness
from weighbridge.conductor.conductor import ask_osds
from weighbridge.conductor.opening import opened
from weighbridge.drivers.protocol import Cleanup, DriverFailure, Prepare, Step
from weighbridge.results.run.histogram import Histogram
from weighbridge.results.run.step import Measurement, Pass, traits_of
from weighbridge.suites import Api, Suite
from weighbridge.topologies.deployment import Deployment
from witness import ODD_NAMES

pytestmark = pytest.mark.system

SIZE = 64_000
OBJECTS = {"size": "64kB", "per_container": 50}
SHORT = {"objects": OBJECTS, "workers": [4], "runtime": "3s", "warmup": "1s"}
SUITE = Suite.model_validate(
    {
        "name": "layers",
        "about": "What a gateway is built on",
        "layers": ["osd", "rados", "rbd", "cephfs"],
        "rados": {"instances": 2, "pg_num": 16},
        "workloads": [
            {"name": "put", "operations": {"write": 1}, **SHORT},
            {"name": "get", "operations": {"read": 1}, **SHORT},
            {"name": "scan", "operations": {"read": 1}, "pick": "sequential", **SHORT},
        ],
    }
)


ceph = deploys("rgw-beast", change_hardware=unlimited, tools=True)


def in_cluster(ceph: Deployment) -> dict[str, str]:
    """What is in the cluster and on the hosts that a bench may leave something on, by Ceph's and
    the kernel's own lists.
    """
    gateway, mon = ceph.hosts["gateway-1"], ceph.hosts["store-1"]
    asked = {
        "pools": (gateway, "ceph osd pool ls"),
        "keys": (gateway, "ceph auth ls 2>/dev/null | grep -v '^[[:space:]]' | sort"),
        "file systems": (gateway, "ceph fs ls"),
        # Slow operations of a busy machine are a warning until they have ended.
        "health": (
            gateway,
            (
                "timeout 120 sh -c 'until ceph health | grep -q ^HEALTH_OK; do sleep 1; done'; "
                "ceph health"
            ),
        ),
        "mounts": (gateway, "grep fuse /proc/mounts || true"),
        "programs": (
            gateway,
            (
                "ps -e -o comm= | grep -E '^(rados|rbd|fio|ceph|python3|stdbuf)' | "
                "grep -v ceph$ || "
                "true"
            ),
        ),
        "metadata servers": (mon, "ps -e -o comm= | grep ceph-mds || true"),
    }
    return {
        name: host.run(["sh", "-c", text], timeout_s=240).stdout
        for name, (host, text) in asked.items()
    }


def measured(ceph: Deployment, folder: Path, api: Api, driver: str) -> list[Measurement]:
    """What each workload gave by a driver, which leaves the cluster as it was."""
    one = Pass.model_validate(
        {"api": api, "driver": driver, "layer": api, "workloads": SUITE.workloads}
    )
    before = in_cluster(ceph)
    found = []
    with opened(ceph, SUITE, one, prefix="wb-test", log=folder / "log") as ready:
        assert re.search(r"ceph version 18\.2", " ".join(ready.versions.values()))
        for workload in one.workloads:
            ready.driver.prepare(Prepare(workload=workload))
            answer = ready.driver.step(Step(workload=workload, workers=4))
            assert answer.kept
            ready.driver.cleanup(Cleanup(workload=workload))
            found.append(answer.measurement)
        for workload in one.workloads:
            ready.driver.cleanup(Cleanup(workload=workload, what="all"))
    assert in_cluster(ceph) == before
    return found


@pytest.mark.parametrize(
    ("api", "driver", "named"),
    [
        ("rados", "rados", "rados-bench"),
        pytest.param("rbd", "rados", "rbd-bench", marks=pytest.mark.test_all),
        pytest.param("rbd", "fio", "fio-rbd", marks=pytest.mark.test_all),
        pytest.param("cephfs", "fio", "fio", marks=pytest.mark.test_all),
    ],
)
def test_a_layer_is_written_and_read_and_left_as_it_was(
    ceph: Deployment, tmp_path: Path, api: Api, driver: str, named: str
) -> None:
    assert traits_of(named).beside_gateway
    put, get, scan = measured(ceph, tmp_path, api, driver)
    for one in (put, get, scan):
        (tally,) = one.tallies
        assert (one.api, one.driver, one.workers) == (api, named, 4)
        assert tally.count >= (50 if one is scan else 4)
        assert tally.bytes == tally.count * SIZE
        assert tally.operation == ("write" if one is put else "read")
        if tally.latency is not None:
            assert Histogram.decode(tally.latency).count == tally.count
    assert all(
        (one.tallies[0].latency is not None) == (driver == "fio") for one in (put, get, scan)
    )
    if api == "rados":
        assert scan.tallies[0].count == 50
        assert any("ran out" in note for note in scan.notes)


def test_every_osd_reports_what_it_writes_by_itself(ceph: Deployment) -> None:
    figures = ask_osds(ceph, SUITE, repeat=0)
    assert sorted((one.host, one.what) for one in figures) == [
        (f"store-{n + 1}", f"osd.{n} write of 64 kB") for n in range(3)
    ]
    assert all(one.request_bytes == SIZE and one.unit == "B/s" for one in figures)


@pytest.mark.test_all
def test_a_bench_that_is_killed_fails_its_step_and_the_gateway_goes_on(
    ceph: Deployment, tmp_path: Path
) -> None:
    before = in_cluster(ceph)
    workload = SUITE.workloads[0].model_copy(update={"runtime": 60.0, "warmup": 0.0})
    one = Pass(api="rados", driver="rados", layer="rados", workloads=(workload,))
    kill = (
        "kill -KILL $(ps -e -o pid=,comm= | awk '$2 == \"rados\" {print $1; exit}') "
        "2>/dev/null || true"
    )

    def heard(_: object) -> None:
        ceph.hosts["gateway-1"].run(["sh", "-c", kill])

    with opened(ceph, SUITE, one, prefix="wb-test", log=tmp_path / "log") as ready:
        ready.driver.prepare(Prepare(workload=workload))
        with pytest.raises(DriverFailure, match=r"of 2 rados was ended by signal 9"):
            ready.driver.step(Step(workload=workload, workers=4), heard)
    assert in_cluster(ceph) == before
    assert witness(ceph, "s3")["same"] == ODD_NAMES
