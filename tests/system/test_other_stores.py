"""Real stores that are neither Ceph nor Swift on lab hosts: SeaweedFS, out of PyPI's package; and
Garage, where its program was built before, which takes twenty minutes:

    pytest -q tests/system/test_other_stores.py -m by_hand
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from behind_front import past
from deployed_layouts import deployed, deploys, left_over, on_client, unlimited
from suite_command import trial_suite
from weighbridge.common.errors import CommandFailed, ServiceFailed, TargetError
from weighbridge.conductor import aging
from weighbridge.environment import place
from weighbridge.gateways.stores import Garage
from weighbridge.suites import Age
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.images import path_of

pytestmark = pytest.mark.system

KEEP = """
import json, os, sys
import boto3

asked = json.load(sys.stdin)
keys = {"aws_access_key_id": asked["user"], "aws_secret_access_key": asked["key"]}
s3 = boto3.client("s3", endpoint_url=asked["url"], region_name=asked["region"], **keys)
body = os.urandom(9 << 20)
s3.create_bucket(Bucket="kept")
s3.put_object(Bucket="kept", Key="a/b c", Body=body)
print(json.dumps(s3.get_object(Bucket="kept", Key="a/b c")["Body"].read() == body))
"""


BLOCKS = "find /srv/disk0/data -type f -size +1000k -printf '%f\\n' | sort"


def test_seaweedfs_syncs_three_copies_of_what_it_acknowledges(tmp_path: Path) -> None:
    with deployed("seaweedfs", tmp_path, change_hardware=unlimited) as deployment:
        assert on_client(deployment, "s3", "-c", KEEP)
        host = deployment.hosts["store-1"]
        shell = ["weed", "shell", f"-master={host.address}:9333"]
        said = host.run(shell, stdin="fs.configure\n").stdout
        (rule,) = json.loads(said[said.index("{") : said.rindex("}") + 1])["locations"]
        assert (rule["locationPrefix"], rule["fsync"]) == ("/buckets/", True)
        volumes = [
            deployment.hosts[name].run(["sh", "-c", "ls /srv/disk0/volume/kept_*.dat"]).stdout
            for name in ("store-1", "store-2", "store-3")
        ]
        assert volumes[0]
        assert volumes[1:] == volumes[:1] * 2  # each volume is on every host


@pytest.mark.by_hand
@pytest.mark.test_all
def test_garage_keeps_three_copies_of_each_block_and_its_nodes_know_that_they_are_to_sync(
    tmp_path: Path,
) -> None:
    (image,) = Garage.releases.values()
    if not path_of(image.programs[0], place().images).is_file():
        pytest.skip("its program was not built here: weighbridge up garage")
    with deployed("garage", tmp_path, change_hardware=unlimited) as deployment:
        assert on_client(deployment, "s3", "-c", KEEP)
        blocks = [
            deployment.hosts[name].run(["sh", "-c", BLOCKS]).stdout.split()
            for name in ("store-1", "store-2", "store-3")
        ]
        assert len(blocks[0]) == 9
        assert blocks[1:] == blocks[:1] * 2
        host = deployment.hosts["store-2"]
        config = host.run(["cat", "/etc/garage.toml"]).stdout
        assert "data_fsync = true\n" in config
        status = host.run(["garage", "-c", "/etc/garage.toml", "status"]).stdout
        assert status.count("10.") >= 4, json.dumps(status)


# Real gateways that cannot come up, and one with its background daemons: each a deployment of its
# own.

IMPOSSIBLE = [
    # radosgw ends by itself; the daemon's own words are shown
    (
        "rgw-beast",
        "{client: {rgw_frontends: beast endpoint=nowhere}}",
        ServiceFailed,
        r"(?s)radosgw: died.*\| .*nowhere",
    ),
    # Ceph takes an unknown option in silence, and the running daemon is asked for it
    (
        "rgw-beast",
        "{osd: {osd_op_num_shard: 3}}",
        ServiceFailed,
        "does not know the option 'osd_op_num_shard'",
    ),
    # a command fails before any daemon runs
    (
        "rgw-beast",
        "{osd: {osd_data: /nowhere}}",
        CommandFailed,
        "(?s)store-.*ceph-osd --mkfs.*/nowhere",
    ),
    # an OSD has the port already, which it chose by itself, and answers on it
    ("rgw-on-osd", "{}", ServiceFailed, r"(?s)store-1: radosgw: died.*\| .*(in use|bind)"),
    (
        "swift",
        '{object: {DEFAULT: {bind_port: "none"}}}',
        ServiceFailed,
        r"(?s)object-server: died.*\| bind_port wasn't properly set",
    ),
    (
        "swift",
        '{proxy: {"pipeline:main": {pipeline: healthcheck nonsense proxy-server}}}',
        ServiceFailed,
        "(?s)proxy-server: died.*nonsense",
    ),
]
MADE = (0, 1, 4)
"""Those that `make test` tries: one that dies of each gateway, and an option that is not known."""


@pytest.mark.parametrize(
    ("layout", "options", "error", "message"),
    [
        one if number in MADE else pytest.param(*one, marks=pytest.mark.test_all)
        for number, one in enumerate(IMPOSSIBLE)
    ],
)
def test_what_cannot_come_up_says_why_and_leaves_nothing(
    tmp_path: Path, layout: str, options: str, error: type[Exception], message: str
) -> None:
    def change(text: str) -> str:
        if layout == "rgw-on-osd":
            text = text.replace("radosgw: [gateway-1]", "radosgw: [store-1]").replace(
                "frontend: beast", "port: 6800"
            )
        return f"{text}  options: {options}\n"

    with (
        pytest.raises(error, match=message),
        deployed("swift" if layout == "swift" else "rgw-beast", tmp_path, change, once=True),
    ):
        pass
    assert left_over() == []


def test_background_daemons_run_when_the_layout_says_so(tmp_path: Path) -> None:
    with deployed(
        "swift",
        tmp_path,
        lambda text: text.replace("background: false", "background: true"),
        once=True,
    ) as deployment:
        deployment.running_gateway.check()
        running = deployment.hosts["store-1"].run(["ps", "axo", "args"]).stdout
        assert all(
            f"swift-{name} " in running
            for name in ("object-replicator", "container-updater", "account-reaper")
        )
        assert deployment.facts()["background: repair of replicas"].startswith("replicators run")


SUITE = trial_suite(
    *("[s3]", "{read: 1}", "1s"),
    size=1,
    workers=1,
    suite="""age:
  fill: 0.05%
  size: {uniform: [4KiB, 256KiB]}
  containers: 2
  churn: 2
  share: 25%
""",
)

LISTED = """
import json, sys, sdk
s3 = sdk.s3(json.load(sys.stdin))
found = {}
for bucket in s3.list_buckets()["Buckets"]:
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
        found |= {f"{bucket['Name']}/{one['Key']}": one["Size"] for one in page.get("Contents", [])}
print(json.dumps(found))
"""


rgw = deploys("rgw-haproxy", change_hardware=unlimited, once=True)


def listed(deployment: Deployment, prefix: str) -> dict[str, int]:
    """Sizes by name of what boto3 sees in the buckets of a prefix, without the prefix."""
    found: dict[str, int] = on_client(deployment, "s3", "-c", LISTED)
    return {
        name.removeprefix(prefix): size for name, size in found.items() if name.startswith(prefix)
    }


def test_a_store_is_filled_and_churned_as_asked_and_twice_the_same(
    rgw: Deployment, tmp_path: Path
) -> None:
    assert listed(rgw, "") == {}
    room = rgw.running_gateway.disk_space()
    assert room is not None
    order = aging.order_of(SUITE, room)
    stores = []
    for prefix in ("wb-01", "wb-02"):
        log = tmp_path / "driver.log"
        aged = aging.age(rgw, SUITE, order, prefix=prefix, log=log, on_progress=lambda _: None)
        there = listed(rgw, f"{prefix}a-")
        assert (len(there), sum(there.values())) == (aged.objects, aged.bytes)
        assert aged.filled_bytes * room.kept.times_kept == pytest.approx(
            0.0005 * room.bytes, rel=0.2
        )
        # 0.05 % of the disks is some hundred objects: a quarter of them went, twice, and new ones
        # have higher numbers.
        each = order.age.turnover(order.objects)
        assert [(one.deleted, one.written) for one in aged.rounds] == [(each, each)] * 2
        fresh = {f"age-{number % 2}/object-{number // 2:010}" for number in range(order.objects)}
        assert 0 < len(fresh - there.keys()) <= 2 * each
        last = range(order.objects + each, order.objects + 2 * each)
        assert {f"age-{number % 2}/object-{number // 2:010}" for number in last} <= there.keys()
        stores.append((there, aged.fingerprint))
    assert stores[0] == stores[1]
    rgw.running_gateway.settle()
    rgw.check()


def test_a_fill_beyond_what_is_free_is_refused(rgw: Deployment) -> None:
    room = rgw.running_gateway.disk_space()
    assert room is not None
    assert 0 < room.free_bytes < room.bytes
    much = SUITE.model_copy(update={"age": Age(fill=int(room.free_bytes // room.kept.times_kept))})
    with pytest.raises(TargetError, match="in 1 replica;"):
        aging.order_of(much, room)


def test_one_radosgw_is_asked_past_its_front(rgw: Deployment, tmp_path: Path) -> None:
    gained = past(rgw, SUITE, tmp_path)
    assert gained[None] > 20
    assert gained["gateway"] == 0
