"""Several endpoints in the Locust driver: where it logs in, what the engine gets, what is said."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from tcp_relay import relayed
from tests.drivers.conftest import closed_port
from tests.drivers.locust.local_driver import (
    Api,
    Kept,
    Null,
    by_operation,
    check_consistent,
    setup_for,
    workload,
)
from weighbridge.common.endpoint import Endpoint, Endpoints
from weighbridge.common.errors import DriverError
from weighbridge.drivers.locust.account import Account, addresses_of
from weighbridge.drivers.locust.step import endpoint_notes, merged
from weighbridge.drivers.locust.worker_group import Window, engine_config
from weighbridge.drivers.protocol import Cleanup, Prepare, Step
from weighbridge.results.record.histogram import Histogram
from weighbridge.results.record.measurement import EndpointTally


def at(target: Endpoint, *others: str, **more: Any) -> Endpoint:
    return Endpoint.model_validate({**target.model_dump(), "others": others, **more})


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Let every name have these addresses."""
    found = [
        (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 80))
        for one in addresses
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


def test_addresses_of_a_name_are_each_given_once_in_an_order_that_is_the_same_everywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "10.0.0.10", "fd00::2", "10.0.0.9", "10.0.0.10")
    assert addresses_of("store.example", 80) == ("10.0.0.9", "10.0.0.10", "fd00::2")
    resolving(monkeypatch, *(f"10.0.0.{n}" for n in range(65)))
    with pytest.raises(DriverError, match="65 addresses; at most 64"):
        addresses_of("store.example", 80)


def test_a_name_without_addresses_is_an_error() -> None:
    with pytest.raises(DriverError, match=r"no\.such\.name\.invalid"):
        addresses_of("no.such.name.invalid", 80)


def test_the_engine_gets_every_address_of_a_name_with_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "10.0.0.2", "fd00::2")
    target = Endpoint(api="s3", url="http://store.example:8000", user="u", addresses="all")
    setup = setup_for(target)
    config = json.loads(
        engine_config(setup, Account(target, 1.0), workload({"read": 1}), threads=1)
    )
    assert config["endpoints"] == [
        {"name": name, "host": "store.example", "port": 8000, "address": address}
        for name, address in (("10.0.0.2:8000", "10.0.0.2"), ("[fd00::2]:8000", "fd00::2"))
    ]
    resolving(monkeypatch, "10.0.0.2")
    assert Account(target, 1.0).places() == ()


def test_a_login_goes_to_the_first_endpoint_that_answers(null: Callable[..., Null]) -> None:
    served = null()
    dead = f"http://127.0.0.1:{closed_port()}"
    for api, path in (("s3", ""), ("swift", "/auth/v1.0")):
        target = at(served.target(api), served.url, url=dead + path)  # type: ignore[arg-type]
        account = Account(target, 5.0)
        account.authenticate()
        assert f"{account.host}:{account.port}" == served.url.removeprefix("http://")
        assert [one.name for one in account.places()] == [
            url.removeprefix("http://") for url in (dead, served.url)
        ]
        assert bool(account.token) == (api == "swift")


def test_a_login_fails_with_the_reason_of_the_first_when_no_endpoint_answers() -> None:
    ports = [closed_port() for _ in range(2)]
    target = Endpoint(
        api="s3",
        url=f"http://127.0.0.1:{ports[0]}",
        user="u",
        others=(f"http://127.0.0.1:{ports[1]}",),
    )
    with pytest.raises(DriverError, match=f"{ports[0]}: cannot be reached"):
        Account(target, 1.0).authenticate()


def test_a_storage_url_elsewhere_is_refused_since_other_endpoints_would_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import http.client  # noqa: PLC0415 - only for this answer

    from weighbridge.drivers.locust.account import AccountAnswer  # noqa: PLC0415

    headers = http.client.HTTPMessage()
    headers["X-Storage-Url"], headers["X-Auth-Token"] = "http://front/v1/AUTH_a", "t"
    target = Endpoint(
        api="swift", url="http://a/auth", user="u", key=SecretStr("k"), others=("http://b",)
    )
    account = Account(target, 1.0)
    monkeypatch.setattr(account, "_request", lambda *_: AccountAnswer(200, headers, b""))
    with pytest.raises(DriverError, match="its storage URL is at front:80"):
        account.authenticate()


def tally(name: str, latencies_us: list[int], errors: dict[str, int], **more: Any) -> EndpointTally:
    return EndpointTally(
        name=name,
        count=len(latencies_us),
        errors=errors,
        latency=Histogram.of(latencies_us).encode() if latencies_us else None,
        **more,
    )


def window(*endpoints: EndpointTally, connections: int | None = None) -> Window:
    return Window(
        tallies=(), seconds=(), window_s=1.0, endpoints=endpoints, connections=connections
    )


def test_counts_of_an_endpoint_are_added_over_processes() -> None:
    one = window(tally("a:1", [1000, 2000], {}), tally("b:1", [], {"connect": 3}), connections=2)
    other = window(tally("a:1", [3000], {"reset": 1}), tally("b:1", [], {}, left_out=True))
    both = merged([one, other])
    first, second = both.endpoints
    assert (first.name, first.count, first.errors) == ("a:1", 3, {"reset": 1})
    assert Histogram.decode(first.latency or "").count == 3
    assert (second.count, second.errors, second.left_out) == (0, {"connect": 3}, True)
    assert both.connections is None
    assert merged([one, one]).connections == 4


def test_an_endpoint_where_requests_failed_or_that_was_left_out_is_named() -> None:
    fine = tally("a:1", [1000], {})
    bad = tally("b:1", [1000], {"reset": 1, "connect": 2})
    gone = tally("c:1", [], {"connect": 3}, left_out=True)
    silent = tally("d:1", [], {}, left_out=True)
    notes = endpoint_notes((fine, bad, gone, silent))
    assert notes[0] == "endpoint b:1: 3 of 4 requests to it failed (2 connect, 1 reset)"
    assert notes[1].startswith("endpoint c:1 was left out after failed connections in a row")
    assert notes[1].endswith("3 of 3 requests to it failed (3 connect)")
    assert notes[2].endswith("it got no request in the window")
    assert len(notes) == 3


@pytest.mark.long  # starts Locust
@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_step_over_several_endpoints_says_what_each_served(
    api: Api, processes: int, null: Callable[..., Null], kept: Kept
) -> None:
    served = null()
    first, dead = int(served.url.rpartition(":")[2]), closed_port()
    mix = workload({"read": 4, "write": 1}, runtime=1.0, connections={"reconnect_every": 10})
    with relayed(first) as second, kept() as running:
        target = at(
            served.target(api),
            f"http://127.0.0.1:{second}",
            f"http://127.0.0.1:{dead}",
            spreading=Endpoints(spread="round-robin", drop_dead=True),
        )
        ready = running.setup(setup_for(target, processes=processes))
        assert "TCP_NODELAY 1" in ready.versions["sockets"]
        running.prepare(Prepare(workload=mix))
        measurement = running.step(Step(workload=mix, workers=4)).measurement
        check_consistent(measurement)
        running.cleanup(Cleanup(workload=mix, what="all"))
    assert served.names(api) == []
    ended = sum(one.count for one in by_operation(measurement).values())
    found = {one.name: one for one in measurement.endpoints}
    assert set(found) == {f"127.0.0.1:{port}" for port in (first, second, dead)}
    assert sum(one.count for one in found.values()) == ended
    assert found[f"127.0.0.1:{dead}"].left_out
    assert found[f"127.0.0.1:{dead}"].count == 0
    assert measurement.imbalance is not None
    assert 1.5 <= measurement.imbalance < 1.65
    assert any(f"endpoint 127.0.0.1:{dead} was left out" in note for note in measurement.notes)
    assert measurement.connections is not None
    assert abs(measurement.connections - ended / 10) < 0.3 * ended / 10 + 12
