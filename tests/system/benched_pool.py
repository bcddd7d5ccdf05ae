"""An existing pool of a deployed Ceph that is benched, and swept of what a killed bench left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from suite_command import trial_suite
from weighbridge.common.structure import CephPool
from weighbridge.drivers.protocol import Cleanup, Prepare, Step
from weighbridge.drivers.rados import GivenPool, RadosBench, leftovers, look
from weighbridge.drivers.rados.cluster import RadosBenchCommand
from weighbridge.suites import RadosBenchOptions, Workload
from weighbridge.topologies.deployment import Deployment

NAMESPACE = "wb-0123abcd"
POOL = CephPool(host="gateway-1", pool="bench")


def workload(operation: str) -> Workload:
    suite = trial_suite(
        *("[s3]", f"{{{operation}: 1}}", "2s"),
        name=operation,
        size="64KiB",
        per_container=20,
        workers=4,
    )
    return suite.workloads[0]


def check_benched_pool(deployment: Deployment, folder: Path) -> None:
    """Bench a pool by the programs of the deployment's release, and ask those what is left."""
    host = deployment.hosts["gateway-1"]
    for words in (
        ("ceph", "osd", "pool", "create", "bench", "8", "8"),
        ("ceph", "osd", "pool", "application", "enable", "bench", "rados"),
        ("rados", "--pool", "bench", "create", "benchmark_data_precious"),
    ):
        host.run(words)
    log = folder / "pool.log"
    assert look(host, POOL, log=log).apart == ""
    given = GivenPool(host, POOL, namespace=NAMESPACE, log=log)
    options = RadosBenchOptions(instances=2)
    with RadosBench(given, prefix=NAMESPACE, log=log, settings=options) as bench:
        for operation in ("read", "write"):
            bench.prepare(Prepare(workload=workload(operation)))
            made = bench.step(Step(workload=workload(operation), workers=4)).measurement
            assert made.tallies[0].count > 4
        bench.cleanup(Cleanup(workload=workload("write"), what="all"))
        # What was prepared to be read, and the metadata of two runs.
        assert len(given.names()) == 20 + 2
        # One that is ended has no metadata.
        killed = RadosBenchCommand(
            place=given.place,
            mode="write",
            seconds=60,
            workers=4,
            object_bytes=65536,
            run=f"{NAMESPACE}-killed",
        )
        given.commands.run([killed.argv()], lambda seconds, _: seconds > 3, within_s=60)
        (left,) = leftovers(given)
        assert (left.namespace, left.strange) == (NAMESPACE, ())
        assert left.objects > 20 + 2
        assert datetime.now(UTC) - left.newest < timedelta(minutes=5)
        assert given.sweep() == left.objects
    listed = host.run(["rados", "--pool", "bench", "ls", "--all"]).stdout
    assert listed.split() == ["benchmark_data_precious"]
