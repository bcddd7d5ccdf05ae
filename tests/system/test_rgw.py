"""A real Ceph RGW on lab hosts: what boto3 and python-swiftclient see of it."""

import json
from pathlib import Path

import pytest

from deployed_layouts import (
    check_large_object,
    check_versions,
    check_witness,
    deploys,
    on_client,
    unlimited,
    versions_seen,
    what_was_sent,
    witness,
)
from listed_names import check_listed_names
from small_lab import health, within
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Service
from weighbridge.gateways.rgw.releases import RELEASES, SWIFT_LACKS
from weighbridge.topologies.deployment import Deployment
from witness import ODD_NAMES

pytestmark = pytest.mark.system

BULK = """
import json, os, sys, sdk
s3 = sdk.s3(json.load(sys.stdin))
s3.create_bucket(Bucket="bulk")
for _ in range(2):
    s3.put_object(Bucket="bulk", Key="big", Body=os.urandom(12 << 20))
s3.delete_object(Bucket="bulk", Key="big")
s3.delete_bucket(Bucket="bulk")
print("null")
"""


rgw = deploys("rgw-beast", change_hardware=unlimited)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_independent_client_reads_what_it_wrote_under_odd_names_too(
    rgw: Deployment, api: str
) -> None:
    check_witness(rgw, api)


@pytest.mark.parametrize("api", ["s3", pytest.param("swift", marks=pytest.mark.test_all)])
def test_an_sdk_finds_what_each_operation_of_the_engine_left(rgw: Deployment, api: str) -> None:
    over_s3 = RELEASES[rgw.layout.release].s3_lacks_operations
    what_was_sent(rgw, api, SWIFT_LACKS if api == "swift" else over_s3)


def test_an_sdk_finds_the_versions_that_a_workload_prepares_makes_and_deletes(
    rgw: Deployment,
) -> None:
    check_versions(rgw, "s3")
    # As SWIFT_LACKS says: it answers 2xx, and keeps none.
    refused = [one["refused"] for one in versions_seen(rgw, "swift").values()]
    assert all("keeps no versions" in one for one in refused)
    assert len(refused) == 3


@pytest.mark.parametrize(
    ("api", "size"),
    [
        ("s3", 64 << 20),
        ("swift", 64 << 20),
        pytest.param("s3", 1 << 30, marks=pytest.mark.test_all),
    ],
)
def test_a_large_object_comes_back_as_it_was_sent(rgw: Deployment, api: str, size: int) -> None:
    check_large_object(rgw, api, size)


def test_sdks_list_all_objects_and_after_deletes_the_others(
    rgw: Deployment, tmp_path: Path
) -> None:
    check_listed_names(rgw, tmp_path)


def test_settling_ends_the_garbage_collection_that_deletions_left(rgw: Deployment) -> None:
    on_client(rgw, "s3", "-c", BULK)
    waiting = rgw.hosts["gateway-1"].run(["radosgw-admin", "gc", "list", "--include-all"]).stdout
    assert len(json.loads(waiting)) > 0
    assert rgw.running_gateway.settle() == ("RGW garbage collection completed, 0 entries left",)


def test_caches_are_dropped_in_each_daemon_and_objects_stay(rgw: Deployment) -> None:
    words = rgw.running_gateway.drop_caches()
    assert any("3 OSDs" in line for line in words)
    assert any("RocksDB" in line and line.startswith("not dropped") for line in words)
    assert witness(rgw, "swift")["same"] == ODD_NAMES


def test_facts_are_what_the_daemons_say(rgw: Deployment) -> None:
    facts = rgw.facts()
    assert "18.2" in facts["radosgw"]
    assert facts["rgw: rgw_frontends"] == "beast endpoint=gateway-1:8000 tcp_nodelay=1"
    assert facts["osd: bdev_aio_poll_ms"] == "250"
    assert facts["osd: osd_max_scrubs"] == "0"
    # Intervals that would slow the start are the defaults again.
    mgr = ["ceph", "--admin-daemon", "/run/ceph/mgr.a.asok", "config", "get"]
    for name, seconds in (("mgr_stats_period", "5"), ("mgr_tick_period", "2")):
        found = json.loads(rgw.hosts["store-1"].run([*mgr, name]).stdout)
        assert found == {name: seconds}
    assert facts["replicas"].startswith("3,")


def test_the_cluster_is_clean_and_stays_as_it_was_laid_out(rgw: Deployment) -> None:
    pools = json.loads(
        rgw.hosts["store-1"].run(["ceph", "osd", "pool", "ls", "detail", "-f", "json"]).stdout
    )
    data = next(one for one in pools if one["pool_name"] == "default.rgw.buckets.data")
    assert (data["size"], data["min_size"], data["pg_num"], data["pg_autoscale_mode"]) == (
        3,
        2,
        64,
        "off",
    )
    listed = rgw.hosts["store-1"].run(["ceph", "mgr", "dump", "-f", "json"]).stdout
    assert json.loads(listed)["available_modules"] == []
    # Slow operations of a busy machine are a warning until they have ended.
    assert within(120, lambda: health(rgw.hosts["store-1"]).startswith("HEALTH_OK"))


def test_no_secret_is_in_the_rendered_configuration(rgw: Deployment) -> None:
    texts = [one.text for one in rgw.running_gateway.rendered]
    keyring = rgw.hosts["store-1"].run(["cat", "/etc/ceph/keyring"]).stdout
    keys = [
        line.removeprefix("key = ") for line in keyring.splitlines() if line.startswith("key = ")
    ]
    assert len(keys) == 7
    secrets = [*keys, *(one.key.get_secret_value() for one in rgw.endpoints)]
    assert not [secret for secret in secrets for text in texts if secret in text]
    assert any("key = ***" in text for text in texts)


def test_a_daemon_that_ends_is_noticed(rgw: Deployment) -> None:
    host = rgw.hosts["store-1"]
    host.stop("mgr")
    try:
        with pytest.raises(ServiceFailed, match="store-1: mgr: died"):
            rgw.running_gateway.check()
    finally:
        host.start([Service("mgr", ("ceph-mgr", "-f", "-i", "a"))])
    rgw.running_gateway.check()
