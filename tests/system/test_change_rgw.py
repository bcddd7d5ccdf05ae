"""Changing what runs: radosgw alone, Apache by a graceful restart or by its start, HAProxy; and
back after what kills them.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deployed_layouts import deployed, deploys
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.common.structure import Scope
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import Planned, checked_again

pytestmark = pytest.mark.system

CLIENT = """
import http.client, json, sys
order = json.load(sys.stdin)
answers = []
for method, url, headers, body in order:
    host, _, path = url.removeprefix("http://").partition("/")
    wire = http.client.HTTPConnection(host, timeout=30)
    wire.request(method, "/" + path, body=body, headers=headers)
    answer = wire.getresponse()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    answers.append([answer.status, headers, answer.read().decode()])
    wire.close()
json.dump(answers, sys.stdout)
"""
CALLS = 40


def ask(deployment: Deployment, *order: tuple[str, str, dict[str, str], str]) -> list[Any]:
    """Status, headers and body of each request, each over a connection of its own, from the client
    host.
    """
    done = deployment.client.run(
        [sys.executable, "-c", CLIENT], stdin=json.dumps(order), timeout_s=120
    )
    answers: list[Any] = json.loads(done.stdout)
    return answers


def other(deployment: Deployment, base: Planned, **groups: dict[str, Any]) -> Planned:
    settings = dict(base.layout.settings)
    for group, changes in groups.items():
        settings[group] = {**settings.get(group, {}), **changes}
    return checked_again(
        base.layout.model_copy(update={"settings": settings}), deployment.hardware, "test"
    )


def change(
    deployment: Deployment, base: Planned, scope: Scope, **groups: dict[str, Any]
) -> tuple[str, ...]:
    done = deployment.change(other(deployment, base, **groups), scope, print)
    deployment.check()
    return done


def pids(deployment: Deployment, host: str, program: str) -> list[str]:
    """By command line: a radosgw of 18 names its first thread otherwise."""
    line = f"pgrep -f '^([^ ]*/)?{program}( |$)' || true"
    return deployment.hosts[host].run(["sh", "-c", line]).stdout.split()


def base_of(deployment: Deployment) -> Planned:
    return checked_again(deployment.layout, deployment.hardware, "test")


def test_apache_takes_what_it_can_while_it_serves_and_is_restarted_for_the_rest(
    tmp_path: Path,
) -> None:
    # With one process to begin with, as many are there after any graceful restart.
    text = "start_servers: 20, server_limit: 32"
    with deployed(
        "rgw-apache-fastcgi",
        tmp_path,
        lambda layout: layout.replace(text, "start_servers: 1, server_limit: 32"),
        once=True,
    ) as apache:
        base, mpm = base_of(apache), base_of(apache).layout.settings["apache"]["mpm"]
        gateway, parent = (
            pids(apache, "gateway-1", "radosgw"),
            pids(apache, "gateway-1", "apache2")[0],
        )
        (done,) = change(
            apache, base, "reload", apache={"mpm": {**mpm, "max_request_workers": 256}}
        )
        assert done.startswith("Apache restarted gracefully, generation 0 to 1: ")
        assert "MaxRequestWorkers 256" in apache.running_gateway.facts["apache mpm"]
        assert pids(apache, "gateway-1", "apache2")[0] == parent
        with pytest.raises(UsageError, match="server_limit: this needs at least `restart`"):
            change(apache, base, "reload", apache={"mpm": {**mpm, "server_limit": 64}})
        change(apache, base, "restart", apache={"mpm": {**mpm, "server_limit": 64}})
        assert parent not in pids(apache, "gateway-1", "apache2")
        assert pids(apache, "gateway-1", "radosgw") == gateway
        change(
            apache,
            base,
            "restart",
            apache={"mpm": {**mpm, "server_limit": 64}},
            radosgw={"threads": 64},
        )
        assert pids(apache, "gateway-1", "radosgw") != gateway


@pytest.mark.test_all
def test_no_request_meets_haproxy_without_its_backends_after_a_change(tmp_path: Path) -> None:
    with deployed("rgw-haproxy", tmp_path, once=True) as haproxy:
        base, health = (
            base_of(haproxy),
            haproxy.endpoints[0].url.replace("/auth/v1.0", "/swift/healthcheck"),
        )
        changes: list[dict[str, Any]] = [
            {"haproxy": {"balance": "leastconn", "maxconn": 100}},
            {"haproxy": {"balance": "leastconn", "maxconn": 100}, "radosgw": {"threads": 64}},
        ]
        for wanted in changes:
            change(haproxy, base, "restart", **wanted)
            assert {
                status for status, _, _ in ask(haproxy, *[("GET", health, {}, "")] * CALLS)
            } == {200}
        assert haproxy.running_gateway.facts["haproxy balance"].startswith("leastconn over ")
        assert "at most 100 connections" in haproxy.running_gateway.facts["haproxy"]
        with pytest.raises(ServiceFailed, match=r"(?s)haproxy: died.*unknown keyword 'nosuch'"):
            change(haproxy, base, "restart", haproxy={"options": {"backend": ["nosuch thing"]}})
        change(haproxy, base, "restart")
        assert haproxy.running_gateway.facts["haproxy balance"].startswith("roundrobin over ")


beast = deploys("rgw-beast", once=True)
"""It runs until the module ends, and only one can: the tests of other layouts come before
those of this one.
"""


def test_a_setting_of_radosgw_restarts_it_alone_and_objects_tokens_and_keys_stay(
    beast: Deployment,
) -> None:
    base = base_of(beast)
    swift = next(one for one in beast.endpoints if one.api == "swift")
    auth = {"X-Auth-User": swift.user, "X-Auth-Key": swift.key.get_secret_value()}
    ((_, headers, _),) = ask(beast, ("GET", swift.url, auth, ""))
    token, bucket = {"X-Auth-Token": headers["x-auth-token"]}, f"{headers['x-storage-url']}/kept"
    made = ask(beast, ("PUT", bucket, token, ""), ("PUT", f"{bucket}/object", token, "of before"))
    assert [status for status, _, _ in made] == [201, 201]
    gateway, osds = pids(beast, "gateway-1", "radosgw"), pids(beast, "store-1", "ceph-osd")
    for threads in (32, 512):
        assert change(beast, base, "restart", radosgw={"threads": threads}) == (
            "restarted radosgw on gateway-1",
        )
        assert beast.running_gateway.facts["rgw: rgw_thread_pool_size"] == str(threads)
        assert pids(beast, "gateway-1", "radosgw") != gateway
        gateway = pids(beast, "gateway-1", "radosgw")
        (read,) = ask(beast, ("GET", f"{bucket}/object", token, ""))
        assert [read[0], read[2]] == [200, "of before"]
    assert pids(beast, "store-1", "ceph-osd") == osds


def test_a_running_radosgw_takes_what_it_can_and_says_what_it_cannot(beast: Deployment) -> None:
    base = base_of(beast)
    gateway = pids(beast, "gateway-1", "radosgw")
    wanted = {
        "options": {"client": {"rgw_get_obj_window_size": 2**25, "objecter_inflight_ops": 2048}}
    }
    with pytest.raises(UsageError, match="change of objecter_inflight_ops may require a restart"):
        change(beast, base, "nothing", **wanted)
    with pytest.raises(UsageError, match="cannot change rgw_frontends while it is running"):
        change(beast, base, "nothing", radosgw={"tcp_nodelay": False})
    change(beast, base, "nothing", radosgw={"get_window": "32MiB", "max_concurrent_requests": 77})
    assert beast.running_gateway.facts["rgw: rgw_get_obj_window_size"] == "33554432 (32 MiB)"
    assert beast.running_gateway.facts["rgw: rgw_max_concurrent_requests"] == "77"
    change(beast, base, "nothing")
    assert beast.running_gateway.facts["rgw: rgw_max_concurrent_requests"] == "1024"
    assert pids(beast, "gateway-1", "radosgw") == gateway


@pytest.mark.test_all
def test_a_setting_that_kills_radosgw_is_reported_with_its_log_and_can_be_reverted(
    beast: Deployment,
) -> None:
    base = base_of(beast)
    with pytest.raises(ServiceFailed, match=r"(?s)radosgw: died.*failed to parse port=99999"):
        change(beast, base, "restart", options={"client": {"rgw_frontends": "beast port=99999"}})
    with pytest.raises(ServiceFailed, match="radosgw: died"):
        beast.check()
    assert change(beast, base, "nothing") == ("restarted radosgw on gateway-1",)
    assert change(beast, base, "restart") == ("nothing: it already runs with these settings",)
