"""Changing a Swift that runs behind HAProxy: what is restarted and what is not, what clients see
of it, and failing.
"""

from collections.abc import Callable, Iterator

import pytest

from deployed_layouts import LAB_CPU, deploys, endpoint, logged_in, planned, shipped, unlimited
from weighbridge.common.document import Fault
from weighbridge.common.errors import ServiceFailed, UsageError
from weighbridge.topologies.deployment import Deployment
from weighbridge.topologies.loader import Planned, changed_layout

pytestmark = pytest.mark.system

ACCOUNT = "http://10.80.0.11/v1/AUTH_weigh"
OBJECT = f"{ACCOUNT}/kept/object"
STORES = ("store-1", "store-2", "store-3")
CONFS = {
    **{
        f"{host} {server}": (host, f"/etc/swift/{server}-server.conf")
        for host in STORES
        for server in ("account", "container", "object")
    },
    **{
        f"proxy {index}": ("gateway-1", f"/etc/swift/proxy-server-{index}.conf") for index in (0, 1)
    },
    "haproxy": ("gateway-1", "/etc/haproxy/haproxy.cfg"),
    "memcached": ("gateway-1", "^memcached"),
}
"""Host and what is to be found among a process's arguments, by name."""

Change = Callable[..., tuple[str, ...]]


swift = deploys("swift-haproxy", change_hardware=unlimited)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    return planned(shipped("swift-haproxy"), tmp_path_factory.mktemp("baseline"))


@pytest.fixture
def change(swift: Deployment, baseline: Planned) -> Iterator[Change]:
    """Changes settings of the deployment, by dotted keys; at the end it is changed back."""

    def to(scope: str = "restart", /, **changes: object) -> tuple[str, ...]:
        keys = {key.replace("__", "."): value for key, value in changes.items()}
        wanted = changed_layout(baseline, LAB_CPU, keys, Fault("test", 1, 1, "", ""))
        return swift.change(wanted, scope, print)  # type: ignore[arg-type]  # one of the scopes

    yield to
    swift.change(baseline, "restart", print)
    swift.check()


@pytest.fixture(scope="module")
def token(swift: Deployment) -> str:
    _, found = logged_in(swift)
    for url, body in ((f"{ACCOUNT}/kept", ""), (OBJECT, "written before")):
        curl(swift, "-f", "-X", "PUT", "-d", body, "-H", f"X-Auth-Token: {found}", url)
    return found


def key_of(swift: Deployment) -> str:
    return endpoint(swift, "swift").key.get_secret_value()


def curl(swift: Deployment, *words: str) -> str:
    return swift.client.run(["curl", "-s", *words]).stdout


def read(swift: Deployment, token: str, times: int = 1) -> list[str]:
    return [curl(swift, "-f", "-H", f"X-Auth-Token: {token}", OBJECT) for _ in range(times)]


def pids(swift: Deployment) -> dict[str, frozenset[str]]:
    return {
        name: frozenset(swift.hosts[host].run(["pgrep", "-f", pattern]).stdout.split())
        for name, (host, pattern) in CONFS.items()
    }


def restarted(before: dict[str, frozenset[str]], after: dict[str, frozenset[str]]) -> set[str]:
    """What runs in none of its processes of before; what runs in some of them is an error."""
    changed = {name for name in before if before[name] != after[name]}
    assert not any(before[name] & after[name] for name in changed)
    return changed


@pytest.mark.test_all
def test_a_setting_of_object_servers_restarts_them_alone(
    swift: Deployment, token: str, change: Change
) -> None:
    before = pids(swift)
    assert change(object__keep_cache_private=False) == (
        "restarted object-server on store-1, store-2, store-3",
    )
    assert restarted(before, pids(swift)) == {f"{store} object" for store in STORES}
    assert read(swift, token) == ["written before"]
    assert swift.facts()["keep_cache_private"].startswith("false: ")
    texts = {(one.host, one.path): one.text for one in swift.running_gateway.rendered}
    assert "keep_cache_private = false" in texts["store-2", "/etc/swift/object-server.conf"]
    assert key_of(swift) not in str(texts)
    shown = swift.hosts["store-2"].run(["cat", "/etc/swift/object-server.conf"]).stdout
    assert shown == texts["store-2", "/etc/swift/object-server.conf"]


def test_a_setting_of_proxies_restarts_them_alone_and_haproxy_sends_to_both_at_once(
    swift: Deployment, token: str, change: Change
) -> None:
    before = pids(swift)
    assert change(proxy__node_timeout="30s") == (
        "restarted proxy-server-0 on gateway-1",
        "restarted proxy-server-1 on gateway-1",
    )
    assert read(swift, token, 8) == ["written before"] * 8
    assert restarted(before, pids(swift)) == {"proxy 0", "proxy 1"}


def test_a_setting_of_haproxy_restarts_it_alone_and_no_request_is_turned_away(
    swift: Deployment, token: str, change: Change
) -> None:
    before = pids(swift)
    assert change(haproxy__balance="leastconn") == ("restarted haproxy on gateway-1",)
    assert read(swift, token, 8) == ["written before"] * 8
    assert restarted(before, pids(swift)) == {"haproxy"}
    assert swift.facts()["haproxy balance"].startswith("leastconn over")


def test_what_is_as_wanted_is_left_alone(swift: Deployment, baseline: Planned) -> None:
    before = pids(swift)
    assert swift.change(baseline, "restart", print) == (
        "nothing: it already runs with these settings",
    )
    assert pids(swift) == before


def test_a_value_that_a_server_dies_of_is_an_error_with_its_log_and_is_taken_back(
    swift: Deployment, token: str, baseline: Planned
) -> None:
    key = "options.object.app:object-server.mb_per_sync"
    broken = changed_layout(baseline, LAB_CPU, {key: "many"}, Fault("test", 1, 1, "", ""))
    before = pids(swift)
    with pytest.raises(
        ServiceFailed,
        match=r"object-server: died\n(.*\n)*.*invalid literal for int\(\) with base 10: 'many'",
    ):
        swift.change(broken, "restart", print)
    assert swift.layout.name == "swift-haproxy"
    done = swift.change(baseline, "restart", print)
    assert done == ("restarted object-server on store-1, store-2, store-3",)
    swift.check()
    assert read(swift, token) == ["written before"]
    assert restarted(before, pids(swift)) == {f"{store} object" for store in STORES}


@pytest.mark.parametrize(
    ("scope", "changes", "said"),
    [
        ("restart", {"replicas": 2}, "replicas cannot be changed while it is running"),
        (
            "restart",
            {"proxy__memcached_memory": "512MiB"},
            "proxy.memcached_memory cannot be changed while it is running",
        ),
        ("nothing", {"object__workers": 2}, "object.workers: this needs at least `restart`"),
    ],
)
def test_what_cannot_be_done_while_it_runs_is_refused_and_nothing_is_touched(
    swift: Deployment, change: Change, scope: str, changes: dict[str, object], said: str
) -> None:
    before = pids(swift)
    with pytest.raises(UsageError, match=said):
        change(scope, **changes)
    assert pids(swift) == before
