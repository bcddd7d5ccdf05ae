"""Pieces of configuration that are pasted at the end of a file, read by the programs of each
release that read it.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployed_layouts import LAB_CPU
from weighbridge.common.document import Fault
from weighbridge.common.host import Host
from weighbridge.environment import place
from weighbridge.gateways.apache.front import CONF
from weighbridge.gateways.fragments import fragments
from weighbridge.gateways.gateway import Rendered
from weighbridge.gateways.rgw.config import CONF as CEPH_CONF
from weighbridge.topologies.deployment import hosts_request
from weighbridge.topologies.loader import (
    Planned,
    changed_layout,
    load_layout,
    parse,
    shipped_layouts,
)

pytestmark = pytest.mark.system

OTHER_RELEASE = [pytest.mark.releases, pytest.mark.test_all]


def planned(layout: str, release: str) -> Planned:
    return load_layout(shipped_layouts()[layout], LAB_CPU, parse(f"{layout}@{release}"))


@pytest.fixture(
    params=["ceph-16", *(pytest.param(one, marks=OTHER_RELEASE) for one in ("ceph-14", "ceph-18"))]
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
