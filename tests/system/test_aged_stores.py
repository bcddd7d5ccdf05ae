"""A real RGW behind HAProxy: its store aged, and one of its daemons asked past the front."""

from pathlib import Path

import pytest

from behind_front import past
from deployed_layouts import deploys, on_client, unlimited
from suite_command import trial_suite
from weighbridge.common.errors import TargetError
from weighbridge.conductor import aging
from weighbridge.suites import Age
from weighbridge.topologies.deployment import Deployment

pytestmark = pytest.mark.system

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
