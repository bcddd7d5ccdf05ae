"""What stores keep of an object on their disks, by Ceph's and Swift's own files and commands."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployed_layouts import LAB_CPU, deployed, on_client, unlimited
from weighbridge.common.document import Fault
from weighbridge.common.host import Host
from weighbridge.conductor.step_runner import memory_of
from weighbridge.environment import place
from weighbridge.gateways.apache.front import CONF
from weighbridge.gateways.fragments import fragments
from weighbridge.gateways.gateway import Rendered
from weighbridge.gateways.rgw.plan import CONF as CEPH_CONF
from weighbridge.topologies.deployment import hosts_request
from weighbridge.topologies.loader import (
    Planned,
    changed_layout,
    load_layout,
    parse,
    shipped_layouts,
)

pytestmark = pytest.mark.system

MIB = 2**20
PUT = """
import json, os, sys, sdk
order = json.load(sys.stdin)
s3 = sdk.s3(order)
s3.create_bucket(Bucket="kept")
for number in range(order["objects"]):
    body = os.urandom(4 << 20)
    if order["text"]:
        body = b"".join(os.urandom(1024) + bytes(3072) for _ in range(1024))
    s3.put_object(Bucket="kept", Key=f"{order['text']}-{number}", Body=body)
    assert s3.get_object(Bucket="kept", Key=f"{order['text']}-{number}")["Body"].read() == body
print("null")
"""
SWIFT_PUT = """
import json, os, sys, sdk
order = json.load(sys.stdin)
client = sdk.swift(order, retries=5)
client.put_container("kept")
for number in range(order["objects"]):
    body = os.urandom(4 << 20)
    client.put_object("kept", f"random-{number}", contents=body)
    assert client.get_object("kept", f"random-{number}")[1] == body
print(json.dumps(client.head_container("kept")["x-storage-policy"]))
"""


def grown(deployment: Any, before: Any) -> int:
    after = deployment.running_gateway.kept_bytes()
    return int(after.data_bytes - before.data_bytes)


def test_a_coded_pool_keeps_one_and_a_half_bytes_a_byte_and_compressed_ones_less(
    tmp_path: Path,
) -> None:
    def change(text: str) -> str:
        return text.replace("    index_shards", "    compression: zlib\n    index_shards")

    with deployed("rgw-beast-ec", tmp_path, change, change_hardware=unlimited) as deployment:
        gateway, host = deployment.running_gateway, deployment.hosts["gateway-1"]

        def ceph(*words: str) -> Any:
            return json.loads(host.run(["ceph", *words, "--format", "json"]).stdout)

        (pool,) = [
            one
            for one in ceph("osd", "pool", "ls", "detail")
            if one["pool_name"] == "default.rgw.buckets.data"
        ]
        profile = ceph("osd", "erasure-code-profile", "get", pool["erasure_code_profile"])
        assert (profile["k"], profile["m"], profile["crush-failure-domain"]) == ("2", "1", "host")
        assert pool["size"] == 3
        assert "2 data and 1 parity fragments" in gateway.facts["replicas"]
        assert gateway.facts["compression"].startswith("zlib")

        before = gateway.kept_bytes()
        on_client(deployment, "s3", "-c", PUT, objects=4, text="")
        random = grown(deployment, before)
        assert random / (16 * MIB) == pytest.approx(1.5, rel=0.02)
        before = gateway.kept_bytes()
        on_client(deployment, "s3", "-c", PUT, objects=4, text="text")
        # Three quarters are zeros, the rest is random.
        assert grown(deployment, before) / (16 * MIB) == pytest.approx(1.5 / 4, rel=0.15)

        bucket = json.loads(
            host.run(["radosgw-admin", "bucket", "stats", "--bucket", "kept"]).stdout
        )["usage"]["rgw.main"]
        assert bucket["size"] == 32 * MIB
        assert bucket["size_utilized"] == pytest.approx(20 * MIB, rel=0.1)

        found = memory_of(gateway.daemons(), "rgw", 0, "w")
        assert {one.role for one in found} == {"mon", "mgr", "osd", "radosgw"}
        osd = next(one for one in found if one.daemon == "osd.0")
        status = deployment.hosts[osd.host].run(
            ["sh", "-c", "grep VmRSS /proc/$(pgrep -f '^ceph-osd .*-i 0')/status"]
        )
        resident = int(re.findall(r"\d+", status.stdout)[0]) * 1024
        assert osd.resident_bytes == pytest.approx(resident, rel=0.1)


@pytest.mark.test_all
def test_coded_objects_of_swift_are_fragment_archives_on_each_host(tmp_path: Path) -> None:
    with deployed("swift-ec", tmp_path, change_hardware=unlimited) as deployment:
        gateway = deployment.running_gateway
        before = gateway.kept_bytes()
        policy = on_client(deployment, "swift", "-c", SWIFT_PUT, objects=4)
        assert policy == "ec-2-1"
        assert grown(deployment, before) / (16 * MIB) == pytest.approx(1.5, rel=0.05)
        assert "3 of 3 fragments" in gateway.facts["acknowledgement"]
        archives = []
        for name in ("store-1", "store-2", "store-3"):
            files = deployment.hosts[name].run(
                ["find", "/srv/node", "-path", "*/objects-1/*", "-size", "+1M", "-name", "*.data"]
            )
            archives += files.stdout.split()
            assert len(files.stdout.split()) == 4
        numbers = [re.search(r"#(\d)#d\.data$", path) for path in archives]
        assert sorted(one.group(1) for one in numbers if one) == sorted("012" * 4)
        roles = {one.role: one for one in memory_of(gateway.daemons(), "swift", 0, "w")}
        assert {"proxy-server", "object-server", "memcached"} <= set(roles)
        assert roles["object-server"].processes > 1
        assert all(one.resident_bytes for one in roles.values())


# Pieces of configuration that are pasted at the end of a file, read by the programs of each
# release that read it.

OTHER_RELEASE = [pytest.mark.releases, pytest.mark.test_all]


def planned(layout: str, release: str) -> Planned:
    return load_layout(shipped_layouts()[layout], LAB_CPU, parse(f"{layout}@{release}"))


@pytest.fixture(
    params=["ceph-18", *(pytest.param(one, marks=OTHER_RELEASE) for one in ("ceph-14", "ceph-16"))]
)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def host(release: str, tmp_path: Path) -> Iterator[Host]:
    gateway = planned("rgw-apache-proxy", release).gateway
    request = hosts_request(gateway, LAB_CPU, place(), ["gateway-1"], tools=False)
    start_hosts = LAB_CPU.of.prepared(request, print)
    with start_hosts(f"fragments-{secrets.token_hex(3)}", tmp_path / "hosts") as hosts:
        yield hosts.hosts["gateway-1"]


def of(files: tuple[Rendered, ...], path: str) -> str:
    return next(one.text for one in files if one.path == path)


def test_what_is_pasted_at_the_end_is_what_the_programs_read(release: str, host: Host) -> None:
    base = planned("rgw-apache-proxy", release)
    changes = {
        "radosgw.threads": 48,
        "options.client.rgw_list_buckets_max_chunk": 77,
        "apache.mpm.max_request_workers": 3840,
    }
    changes |= {"apache.mpm.max_spare_threads": 3840}
    changed = changed_layout(base, LAB_CPU, changes, Fault("test", 1, 1, "", ""))
    before = base.gateway.render(LAB_CPU.sites)
    pieces = {
        one.name: one.text
        for one in fragments(before, changed.gateway.render(LAB_CPU.sites), ["+12 %", "a\\"])
    }
    host.put(CEPH_CONF, of(before, CEPH_CONF) + pieces["ceph.conf"])
    for name, value in {
        "rgw_thread_pool_size": "48",
        "rgw_list_buckets_max_chunk": "77",
        "rgw_gc_max_concurrent_io": "10",
    }.items():
        shown = host.run(
            ["ceph-conf", "-n", "client.rgw.gateway-1", "--show-config-value", name]
        ).stdout
        assert shown.strip() == value
    host.put(CONF, of(before, CONF) + pieces["apache.conf"])
    host.run(["apache2", "-f", CONF, "-t"])
    # Of directives that stand twice the later one holds: a wrong one at the end is what Apache
    # complains of.
    shown = host.run(
        ["sh", "-c", f"echo MaxRequestWorkers 1 >> {CONF}; apache2 -f {CONF} -t 2>&1"]
    ).stdout
    assert "MaxRequestWorkers" in shown
