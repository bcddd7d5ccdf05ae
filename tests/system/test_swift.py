"""A real OpenStack Swift on lab hosts: what boto3 and python-swiftclient see of it."""

import re
import sys
from pathlib import Path

import pytest

from daemon_counters import counters
from deployed_layouts import (
    check_large_object,
    check_versions,
    check_witness,
    deploys,
    endpoint,
    logged_in,
    status_of,
    unlimited,
    what_was_sent,
)
from listed_names import check_listed_names
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Service
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.ports import await_ports
from weighbridge.gateways.swift.releases import RELEASES
from weighbridge.topologies.deployment import Deployment

pytestmark = pytest.mark.system


def steps(deployment: Deployment, program: str) -> str:
    """What a line of Python with a python-swiftclient connection `client` prints on the client
    host.
    """
    own = endpoint(deployment, "swift")
    head = (
        f"import sys, swiftclient; client = swiftclient.Connection({own.url!r}, {own.user!r}, "
        "sys.stdin.read(), retries=0); "
    )
    return deployment.client.run(
        [sys.executable, "-c", head + program], stdin=own.key.get_secret_value()
    ).stdout


def with_all(layout: str) -> str:
    return layout.replace("  s3api: true\n", "  s3api: true\n  formpost: true\n  versions: true\n")


swift = deploys("swift-s3api", with_all, change_hardware=unlimited)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_independent_client_reads_what_it_wrote_under_odd_names_too(
    swift: Deployment, api: str
) -> None:
    check_witness(swift, api)


@pytest.mark.parametrize("api", ["swift", pytest.param("s3", marks=pytest.mark.test_all)])
def test_an_sdk_finds_what_each_operation_of_the_engine_left(swift: Deployment, api: str) -> None:
    release = RELEASES[swift.layout.release]
    lacked = release.s3_lacks_operations if api == "s3" else release.lacks_operations
    what_was_sent(swift, api, lacked)


@pytest.mark.test_all
@pytest.mark.parametrize("api", ["swift", pytest.param("s3", marks=pytest.mark.test_all)])
def test_an_sdk_finds_the_versions_that_a_workload_prepares_makes_and_deletes(
    swift: Deployment, api: str
) -> None:
    check_versions(swift, api)


@pytest.mark.parametrize(
    ("api", "size"),
    [
        ("s3", 64 << 20),
        ("swift", 64 << 20),
        pytest.param("swift", 1 << 30, marks=pytest.mark.test_all),
    ],
)
def test_a_large_object_comes_back_as_it_was_sent(swift: Deployment, api: str, size: int) -> None:
    check_large_object(swift, api, size)


def test_sdks_list_all_objects_and_after_deletes_the_others(
    swift: Deployment, tmp_path: Path
) -> None:
    check_listed_names(swift, tmp_path)


def test_memcached_is_emptied_and_a_clients_token_stays_good(swift: Deployment) -> None:
    url, token = logged_in(swift)
    dropped, kept = swift.running_gateway.drop_caches()
    assert dropped.startswith("memcached: ")
    assert kept.startswith("not dropped: 2 entries")
    assert status_of(swift, url, f"X-Auth-Token: {token}") in {"200", "204"}


def test_container_updates_that_were_put_off_are_sent_when_it_settles(swift: Deployment) -> None:
    swift.running_gateway.settle()  # what a busy machine put off before
    assert swift.running_gateway.settle() == ("no container updates were deferred (async_pending)",)
    host = swift.hosts["store-1"]
    argv = ("swift-container-server", "/etc/swift/container-server.conf")
    container = Daemon(
        host,
        Service("container-server", argv, {"EVENTLET_NO_GREENDNS": "yes"}),
        6201,
        ("swift.log",),
    )
    steps(swift, 'client.put_container("late")')
    host.stop("container-server")
    try:
        steps(swift, '[client.put_object("late", f"o{n}", b"x") for n in range(8)]')
    finally:
        daemon.start([container])
        await_ports(swift.client, [container], print)
    (told,) = swift.running_gateway.settle()
    sent = re.fullmatch(r"(\d+) deferred container updates \(async_pending\) sent, 0 left", told)
    assert sent is not None, told
    assert int(sent[1]) >= 8
    assert steps(swift, 'print(len(client.get_container("late")[1]))').strip() == "8"
    steps(
        swift,
        '[client.delete_object("late", f"o{n}") for n in range(8)]; '
        'client.delete_container("late")',
    )


def test_the_pipeline_in_the_facts_is_the_one_that_runs(swift: Deployment) -> None:
    pipeline = swift.facts()["pipeline"].split()
    assert pipeline[:3] == ["catch_errors", "gatekeeper", "healthcheck"]
    assert pipeline.index("s3api") < pipeline.index("tempauth") < pipeline.index("proxy-server")
    assert "python3-swift 2.35" in swift.facts()["packages"]


def test_memcached_and_each_storage_host_are_asked_for_their_counters(swift: Deployment) -> None:
    names = [probe.name for probe in swift.running_gateway.probes()]
    assert names == ["memcached.gateway-1", "swift.store-1", "swift.store-2", "swift.store-3"]
    assert all(counters(swift, name) for name in names)


def test_no_secret_is_in_the_rendered_configuration(swift: Deployment) -> None:
    texts = [one.text for one in swift.running_gateway.rendered]
    assert not [
        one for one in swift.endpoints for text in texts if one.key.get_secret_value() in text
    ]
    assert any("swift_hash_path_suffix = ***" in text for text in texts)
    assert any("user_weigh_bench = *** .admin" in text for text in texts)


def test_a_server_that_ends_is_noticed(swift: Deployment) -> None:
    host = swift.hosts["gateway-1"]
    host.stop("memcached")
    try:
        with pytest.raises(ServiceFailed, match="gateway-1: memcached: died"):
            swift.running_gateway.check()
    finally:
        host.start(
            [
                Service(
                    "memcached", ("memcached", "-u", "memcache", "-l", host.address, "-p", "11211")
                )
            ]
        )
    swift.running_gateway.check()
