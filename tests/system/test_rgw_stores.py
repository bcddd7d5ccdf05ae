"""Object stores of Ceph that are not BlueStore, each started once, and the other releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deployed_layouts import check, deployed, shipped, witness
from small_lab import health, within
from suite_command import trial_suite
from weighbridge.common.errors import UsageError
from weighbridge.common.structure import CephPool
from weighbridge.drivers.protocol import Cleanup, Prepare, Step
from weighbridge.drivers.rados import GivenPool, RadosBench, leftovers, look
from weighbridge.drivers.rados.cluster import RadosBenchCommand
from weighbridge.suites import RadosBenchOptions, Workload
from weighbridge.topologies.deployment import Deployment
from witness import ODD_NAMES

pytestmark = pytest.mark.system


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


TWO_DISKS = (
    "{size: 20GiB, bandwidth: 200MB}",
    "{size: 20GiB, bandwidth: 200MB}, {size: 2GiB, bandwidth: 200MB}",
)


def stores(options: str) -> Callable[[str], str]:
    return lambda text: text.replace("    objectstore: bluestore\n", options)


def test_filestore_keeps_objects_as_files_and_its_journal_on_the_disk_that_is_for_it(
    tmp_path: Path,
) -> None:
    options = (  # which ceph-18 has no longer
        "    objectstore: filestore\n    filestore: {filesystem: xfs, journal: own, "
        "journal_size: 512MiB}\n"
    )
    with deployed(
        "rgw-beast",
        tmp_path,
        lambda text: stores(options)(text).replace("release: ceph-18", "release: ceph-16"),
        change_hardware=lambda text: text.replace(*TWO_DISKS),
        once=True,
    ) as deployment:
        assert witness(deployment, "s3")["same"] == ODD_NAMES
        facts = deployment.facts()
        assert facts["object store"] == "FileStore on xfs, journals on a disk of their own (XFS)"
        assert "in its journal" in facts["acknowledgement"]
        assert facts["osd: osd_journal_size"] == "512"
        host = deployment.hosts["store-1"]
        mounts = [
            line.split()[:3]
            for line in host.run(["cat", "/proc/mounts"]).stdout.splitlines()
            if "/ceph/" in line
        ]
        assert mounts == [
            ["/dev/wb1", "/var/lib/ceph/journal", "xfs"],
            ["/dev/wb0", "/var/lib/ceph/osd/0", "xfs"],
        ]
        assert int(host.run(["stat", "-c", "%s", "/var/lib/ceph/journal/0"]).stdout) == 512 << 20
        assert host.run(["cat", "/var/lib/ceph/osd/0/type"]).stdout == "filestore\n"
        assert any("kernel's caches" in line for line in deployment.running_gateway.drop_caches())


@pytest.mark.test_all
def test_memstore_needs_no_disk_and_runs_several_osds_a_host(tmp_path: Path) -> None:
    options = "    objectstore: memstore\n    memstore: {per_host: 2, size: 1GiB}\n"
    diskless = lambda text: text.replace(", disks: [{size: 20GiB, bandwidth: 200MB}]", "")  # noqa: E731
    with deployed(
        "rgw-beast", tmp_path, stores(options), change_hardware=diskless, once=True
    ) as deployment:
        assert witness(deployment, "swift")["same"] == ODD_NAMES
        tree = json.loads(
            deployment.hosts["store-1"].run(["ceph", "osd", "df", "-f", "json"]).stdout
        )
        assert [one["kb"] for one in tree["nodes"]] == [1 << 20] * 2
        assert deployment.facts()["osd: osd_objectstore"] == "memstore"
        assert any("only in memory" in line for line in deployment.running_gateway.drop_caches())


@pytest.mark.releases
@pytest.mark.test_all
@pytest.mark.parametrize(
    ("release", "version", "frontend"),
    [("ceph-14", "14.2.", "civetweb"), ("ceph-16", "16.2.", "civetweb")],
)
def test_older_releases_serve_both_apis_with_three_mons(
    tmp_path: Path, release: str, version: str, frontend: str
) -> None:
    def change(text: str) -> str:
        assert text.count("  mon: store-1 ") == 1
        return (
            text.replace("release: ceph-18", f"release: {release}")
            .replace("frontend: beast", f"frontend: {frontend}")
            .replace("  mon: store-1 ", "  mon: [store-1, store-2, store-3] ")
        )

    with deployed("rgw-haproxy", tmp_path, change, once=True) as deployment:
        facts = deployment.facts()
        assert version in facts["radosgw"]
        assert facts["rgw: rgw_frontends"].startswith(frontend)
        assert " on store-1, store-2, store-3, " in facts["daemons"]
        said = deployment.hosts["store-3"].run(["ceph", "quorum_status"]).stdout
        assert json.loads(said)["quorum_names"] == ["a", "b", "c"]
        for api in ("s3", "swift"):
            assert witness(deployment, api)["same"] == ODD_NAMES
        # Slow operations of a busy machine are a warning until they have ended.
        assert within(120, lambda: health(deployment.hosts["store-1"]).startswith("HEALTH_OK"))
        check_benched_pool(deployment, tmp_path)


def test_ceph_and_the_front_say_all_that_is_wrong_with_options_before_any_daemon_runs(
    tmp_path: Path,
) -> None:
    options = (
        "{osd: {osd_op_num_shard: 3, osd_memory_target: 100M}, client: "
        "{rgw_thread_pool_size: many, rgw_nonsense_of_ours: 1}}"
    )
    text = shipped("rgw-haproxy").replace("roundrobin", "roundrobbin")
    with pytest.raises(UsageError) as error:
        check(f"{text}  options: {options}\n", tmp_path)
    said = str(error.value)
    assert (
        "ceph-18 has no option 'osd_op_num_shard' in [osd] (did you mean 'osd_op_num_shards'?)"
        in said
    )
    assert "no option 'rgw_nonsense_of_ours' in [client]" in said
    assert "'osd_memory_target' to '100M'" in said
    assert "below minimum 939524096" in said
    assert "'rgw_thread_pool_size' to 'many'" in said
    assert "balance" in said


def test_what_ships_passes_the_check_of_its_own_programs(tmp_path: Path) -> None:
    for name in ("rgw-civetweb", "rgw-haproxy"):
        check(shipped(name), tmp_path)
