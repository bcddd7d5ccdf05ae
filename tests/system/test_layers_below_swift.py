"""Swift's object servers asked directly, beside Swift's own ring and its own client; and one proxy
behind its front.
"""

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from behind_front import driving, measured, past
from deployed_layouts import deploys, endpoint, unlimited
from small_lab import read
from suite_command import trial_suite
from weighbridge.conductor.opening import object_servers
from weighbridge.drivers.engine._native import content, ring_place
from weighbridge.drivers.protocol import Cleanup, Prepare
from weighbridge.results.run.step import Pass
from weighbridge.suites import Suite
from weighbridge.topologies.deployment import Deployment

pytestmark = pytest.mark.system

SEED = 2014
SIZE = 20_000


def suite(operations: str, verify: str, name: str = "small") -> Suite:
    return trial_suite(
        *("[swift]", operations, "1s"),
        name=name,
        size=SIZE,
        containers=2,
        workers=3,
        verify=verify,
        suite=f"seed: {SEED}",
    )


SUITE = suite("{read: 3, head: 1}", "true")

RING = """
import json, sys
from swift.common.ring import Ring
ring = Ring("/etc/swift", ring_name="object")
found = {}
for path in json.load(sys.stdin):
    partition, nodes = ring.get_nodes(*path[1:].split("/", 2))
    found[path] = [partition, [[node["ip"], node["port"], node["device"]] for node in nodes]]
print(json.dumps(found))
"""
"""Swift's own answer to where objects are."""

CLIENT = """
import base64, json, sys
from swift.common import direct_client
order = json.load(sys.stdin)
where = (order["node"], order["partition"], *order["path"][1:].split("/", 2))
if "body" in order:
    body = base64.b64decode(order["body"])
    direct_client.direct_put_object(
        *where, body, content_length=len(body), content_type="application/octet-stream"
    )
headers, body = direct_client.direct_get_object(*where)
print(json.dumps({"length": headers["Content-Length"], "body": base64.b64encode(body).decode()}))
"""
"""Swift's own client of object servers, on the proxy's host."""


swift = deploys("swift-haproxy", change_hardware=unlimited)


def places(deployment: Deployment, path: str) -> tuple[int, list[dict[str, Any]]]:
    _, ring = object_servers(deployment)
    partition, numbers = ring_place(ring.model_dump_json(), path)
    return partition, [ring.disks[number].model_dump() for number in numbers]


def by_swift(deployment: Deployment, program: str, order: object) -> Any:
    return json.loads(
        deployment.hosts["gateway-1"]
        .run(["python3", "-c", program], stdin=json.dumps(order))
        .stdout
    )


def test_the_engine_and_swifts_own_ring_name_the_same_partitions_and_disks(
    swift: Deployment,
) -> None:
    paths = [f"/AUTH_weigh/wb-0123-{number % 7}/object-{number:010}" for number in range(200)]
    for path, (partition, nodes) in by_swift(swift, RING, paths).items():
        found, disks = places(swift, path)
        assert found == partition
        assert sorted(list(disk.values()) for disk in disks) == sorted(nodes), path


def test_what_went_through_the_proxy_is_found_by_the_computed_path_on_every_replica(
    swift: Deployment,
) -> None:
    own = endpoint(swift, "swift")
    login = ["-A", own.url, "-U", own.user, "-K", own.key.get_secret_value()]
    words = [
        sys.executable,
        "-m",
        "swiftclient.shell",
        *login,
        "upload",
        "--object-name",
        "hosts",
        "through",
        "/etc/hostname",
    ]
    swift.client.run(words)
    partition, disks = places(swift, "/AUTH_weigh/through/hosts")
    assert len(disks) == 3
    wanted = swift.client.run(["cat", "/etc/hostname"]).stdout
    for disk in disks:
        url = f"http://{disk['address']}:{disk['port']}/{disk['device']}/{partition}/AUTH_weigh/through/hosts"
        # A write is answered when two of three have it.
        retry = ("--retry", "30", "--retry-delay", "1", "--retry-all-errors")
        assert swift.client.run(["curl", "-sf", *retry, url]).stdout == wanted


def test_the_engine_and_swifts_own_client_read_what_the_other_wrote(
    swift: Deployment, tmp_path: Path
) -> None:
    workload = SUITE.workloads[0]
    body = content(SEED, SIZE, 0, SIZE)
    path = "/AUTH_weigh/wb-0123o-small-1/object-0000000003"
    partition, disks = places(swift, path)
    orders = [
        {"node": {**disk, "ip": disk["address"]}, "partition": partition, "path": path}
        for disk in disks
    ]
    with driving(
        swift,
        SUITE,
        tmp_path,
        Pass(api="object-server", layer="object-server", workloads=(workload,)),
    ) as driver:
        driver.prepare(Prepare(workload=workload))
        for order in orders:
            seen = by_swift(swift, CLIENT, order)
            assert (int(seen["length"]), base64.b64decode(seen["body"])) == (SIZE, body)
        assert not any(tally.errors for tally in measured(driver, workload).tallies)
        # The same bytes from Swift's own client are good; one other byte on all disks is seen by
        # the engine.
        for order in orders:
            by_swift(swift, CLIENT, {**order, "body": base64.b64encode(body).decode()})
        assert not any(tally.errors for tally in measured(driver, workload).tallies)
        for order in orders:
            by_swift(
                swift,
                CLIENT,
                {**order, "body": base64.b64encode(body[:-1] + bytes([body[-1] ^ 1])).decode()},
            )
        errors = {name for tally in measured(driver, workload).tallies for name in tally.errors}
        assert errors == {"wrong-content"}
        cleaned = driver.cleanup(Cleanup(workload=workload, what="all"))
        assert (cleaned.deleted, cleaned.failed) == (10, 0)
    url = f"http://{disks[0]['address']}:{disks[0]['port']}/{disks[0]['device']}/{partition}{path}"
    assert (
        swift.client.run(["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url]).stdout
        == "404"
    )


def test_writes_make_no_containers_and_are_deleted_where_they_are(
    swift: Deployment, tmp_path: Path
) -> None:
    swift.running_gateway.settle()  # what a busy machine put off before
    (workload,) = suite("{write: 3, delete: 1}", "false", "mixed").workloads
    with driving(
        swift,
        SUITE,
        tmp_path,
        Pass(api="object-server", layer="object-server", workloads=(workload,)),
    ) as driver:
        driver.prepare(Prepare(workload=workload))
        tallies = {tally.operation: tally for tally in measured(driver, workload).tallies}
        assert tallies["write"].count > 0
        assert not any(tally.errors for tally in tallies.values())
        assert driver.cleanup(Cleanup(workload=workload, what="written")).failed == 0
        assert driver.cleanup(Cleanup(workload=workload, what="all")).failed == 0
    find = ["sh", "-c", "find /srv/node -name '*.data' -size +19k"]
    left = [host.run(find).stdout for name, host in swift.hosts.items() if "store" in name]
    assert left == ["", "", ""]
    assert "no container updates were deferred (async_pending)" in swift.running_gateway.settle()


def test_what_the_paths_are_hashed_with_is_in_no_log_and_no_command(
    swift: Deployment, tmp_path: Path
) -> None:
    _, ring = object_servers(swift)
    secrets = [one.get_secret_value().encode() for one in (ring.hash_prefix, ring.hash_suffix)]
    with driving(swift, SUITE, tmp_path, Pass(api="object-server", workloads=())):
        lines = [read(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
    lines.append((tmp_path / "driver.log").read_bytes())
    assert not [line for line in lines for secret in secrets if secret in line]


def test_one_proxy_is_asked_past_its_front(swift: Deployment, tmp_path: Path) -> None:
    gained = past(swift, SUITE, tmp_path)
    assert gained[None] > 20
    assert gained["gateway"] == 0
