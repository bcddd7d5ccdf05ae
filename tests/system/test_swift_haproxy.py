"""Swift with two proxies behind HAProxy: what boto3, python-swiftclient and curl see of it, and
what it says of itself.
"""

import pytest

from daemon_counters import counters
from deployed_layouts import (
    check_large_object,
    check_witness,
    deploys,
    endpoint,
    logged_in,
    status_of,
    unlimited,
    witness,
)
from weighbridge.common.errors import ServiceFailed
from weighbridge.common.host import Service
from weighbridge.gateways import daemon
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.ports import await_ports
from weighbridge.topologies.deployment import Deployment
from witness import ODD_NAMES

pytestmark = pytest.mark.system

PROXIES = ("gateway-1-8080", "gateway-1-8081")
SERVICES = {"EVENTLET_NO_GREENDNS": "yes"}


def with_s3(layout: str) -> str:
    own = "    options: {backend: [default-server fall 5]}\n"
    return layout.replace("settings:\n", "settings:\n  s3api: true\n").replace(
        "    http_reuse: safe\n", f"    http_reuse: safe\n{own}"
    )


swift = deploys("swift-haproxy", with_s3, change_hardware=unlimited, once=True)


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_an_independent_client_reads_what_it_wrote_through_haproxy(
    swift: Deployment, api: str
) -> None:
    check_witness(swift, api)


def test_a_large_object_comes_back_as_it_was_sent(swift: Deployment) -> None:
    check_large_object(swift, "swift")


def test_clients_are_sent_to_the_front(swift: Deployment) -> None:
    own = endpoint(swift, "swift")
    assert own.url == "http://10.80.0.11/auth/v1.0"
    assert logged_in(swift)[0] == "http://10.80.0.11/v1/AUTH_weigh"


def test_both_proxies_answer_and_know_one_anothers_tokens(swift: Deployment) -> None:
    before = counters(swift, "haproxy.gateway-1")
    url, token = logged_in(swift)
    answers = {status_of(swift, url, f"X-Auth-Token: {token}") for _ in range(8)}
    after = counters(swift, "haproxy.gateway-1")
    assert answers <= {"200", "204"}
    gained = [after[f"{name}.hrsp_2xx"] - before[f"{name}.hrsp_2xx"] for name in PROXIES]
    # roundrobin: nine requests, five and four; health checks are not among them.
    assert sorted(gained) == [4, 5]
    assert after["frontend.hrsp_2xx"] - before["frontend.hrsp_2xx"] == 9


def test_memcached_a_storage_host_and_haproxy_report_what_they_count(swift: Deployment) -> None:
    names = [probe.name for probe in swift.running_gateway.probes()]
    assert names == ["memcached.gateway-1", "swift.store-1", "haproxy.gateway-1"]
    before = counters(swift, "memcached.gateway-1")
    witness(swift, "swift")
    after = counters(swift, "memcached.gateway-1")
    assert after["get_hits"] > before["get_hits"]
    swift.running_gateway.settle()  # what a busy machine put off
    store = counters(swift, "swift.store-1")
    assert store["tcp_inuse"] > 0
    assert store["async_folders"] == 0
    assert counters(swift, "haproxy.gateway-1")["gateway-1-8080.up"] == 1


def test_what_haproxy_says_of_itself_is_in_the_facts(swift: Deployment) -> None:
    facts = swift.facts()
    assert facts["haproxy"].startswith("HAProxy 3.0.")
    assert facts["haproxy balance"] == "roundrobin over gateway-1-8080, gateway-1-8081"
    assert (
        facts["haproxy health check"]
        == "GET /healthcheck every 2 s: gateway-1-8080 UP, gateway-1-8081 UP; out after 5 failed, "
        "in after 2"
    )
    assert facts["daemons"].startswith("2 proxies and memcached on gateway-1")


def test_one_proxy_goes_on_when_the_other_dies_and_the_death_is_noticed(swift: Deployment) -> None:
    host = swift.hosts["gateway-1"]
    host.stop("proxy-server-0")
    try:
        with pytest.raises(ServiceFailed, match="gateway-1: proxy-server-0: died"):
            swift.running_gateway.check()
        assert witness(swift, "swift")["same"] == ODD_NAMES
        now = counters(swift, "haproxy.gateway-1")
        assert (now["frontend.hrsp_5xx"], now["gateway-1-8081.up"]) == (0, 1)
    finally:
        argv = ("swift-proxy-server", "/etc/swift/proxy-server-0.conf")
        proxy = Daemon(host, Service("proxy-server-0", argv, SERVICES), 8080, ("swift.log",))
        daemon.start([proxy])
        await_ports(swift.client, [proxy], print)
    swift.running_gateway.check()
