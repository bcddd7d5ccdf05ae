"""Listings: how many names they have, which, and where they end."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.conftest import SEED, Reply, Served, always, shape, until
from tests.drivers.good_answers import (
    TOKEN,
    answer,
    names,
    of_api,
    page,
    workload_of,
    xml,
)
from tests.drivers.test_engine_results import failing
from tls_proxy import authority
from weighbridge.drivers.engine import _native

Make = Callable[..., Any]
STRANGE = [f"zzz-of-somebody-else-{index}" for index in range(5)]


def sent_page(api: str, keys: list[str], token: str = "") -> bytes:
    if api == "s3":
        return answer("200 OK", page(keys, token))
    return answer("200 OK", "\n".join(keys).encode(), "Content-Type: text/plain")


def paged(page_of: int, total: int) -> Reply:
    """A container of Swift with so many objects, in pages of so many."""

    def answered(connection: socket.socket, head: bytes) -> bool:
        first = int(head.split(b"marker=object-")[1][:10]) + 1 if b"marker=" in head else 0
        connection.sendall(sent_page("swift", names(first, max(0, min(page_of, total - first)))))
        return True

    return answered


@pytest.mark.parametrize("api", ["s3", "swift"])
@pytest.mark.parametrize(
    ("at", "keys", "why"),
    [
        (0, [*names(2, 1) * 3, *names(3, 2)], "not after the one before it"),
        (0, names(0, 5)[::-1], "not after the one before it"),
        (0, STRANGE, "without the prefix"),
        (1, [*names(4, 1), *names(6, 4)], "listed before"),
    ],
    ids=["duplicates", "backwards", "strange", "repeated from the last page"],
)
def test_a_page_of_as_many_but_other_names_is_a_bad_listing(
    scripted: Make, bench: Make, api: str, at: int, keys: list[str], why: str
) -> None:
    engines: list[Any] = []

    def kept(*given: Any, **more: Any) -> Any:
        engines.append(bench(*given, **more))
        return engines[-1]

    spoilt = sent_page(api, keys, "" if at else TOKEN)
    tally, errors = failing(scripted, kept, "list-all", api, at, lambda _: spoilt)
    assert set(errors) == {"bad-list"}
    assert (tally["count"], tally["latency"]) == (0, None)
    assert why in engines[0].progress["last_error"]


@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_name_that_is_listed_twelve_times_is_a_bad_listing(
    scripted: Make, bench: Make, api: str
) -> None:
    spoilt = sent_page(api, names(0, 1) * 12)
    _, errors = failing(scripted, bench, "list", api, 0, lambda _: spoilt)
    assert set(errors) == {"bad-list"}


@pytest.mark.parametrize(
    "keys", [names(0, 1) * 3, [*names(0, 2), *names(3, 1)], STRANGE[:3]], ids=repr
)
def test_a_deletion_of_as_many_but_other_keys_is_a_bad_result(
    scripted: Make, bench: Make, keys: list[str]
) -> None:
    inside = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
    spoilt = answer("200 OK", xml("DeleteResult", inside))
    _, errors = failing(scripted, bench, "delete-many", "s3", 0, lambda _: spoilt)
    assert set(errors) == {"bad-result"}


def test_a_listing_whose_pages_never_hold_a_name_ends(scripted: Make, bench: Make) -> None:
    turns = iter(range(10_000))

    def endless(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(answer("200 OK", page([], f"t{next(turns)}")))
        return True

    engine = bench(scripted(endless), workload_of("list-all"))
    engine.alone("failed", 2)
    assert set(engine.progress["errors"]) == {"bad-list"}
    assert "pages without a name" in engine.progress["last_error"]


@pytest.mark.parametrize(("given", "wrong"), [({}, False), ({"listed": {"deleted": 0.0}}, True)])
def test_objects_that_are_only_listed_are_as_many_as_are_left(
    scripted: Make, bench: Make, given: dict[str, Any], *, wrong: bool
) -> None:
    workload = workload_of("list-all", **given)
    engine = bench(scripted(paged(5, 11)), workload, **of_api("swift"))
    engine.alone("failed" if wrong else "done", 2)
    if wrong:
        assert engine.progress["last_error"].endswith("11 keys or more where only 10 exist")


def test_short_pages_do_not_end_a_listing(scripted: Make, bench: Make) -> None:
    """Pages of Ceph's Swift API are shorter than asked for: only an empty one is the last."""
    engine = bench(scripted(paged(1, 10)), workload_of("list-all"), **of_api("swift"))
    by = engine.alone("done", 2, leaves=True)["by"]
    assert engine.progress["errors"] == {}
    listings, pages = by["list-all"]["count"], by["list-page"]["count"]
    assert 11 * listings <= pages < 11 * (listings + 1)


def test_a_worker_that_is_to_end_does_not_list_the_pages_that_are_left(
    scripted: Make, bench: Make
) -> None:
    """A complete listing may take minutes, and is outstanding at the end of most windows."""
    workload = workload_of("list-all", per_container=10_000_000)
    engine = bench(scripted(paged(1, 10_000_000)), workload, **of_api("swift"))
    by = engine.alone("bytes", 1000)["by"]
    assert engine.engine.stop(5.0) == 0
    assert (by["list-all"]["count"], by["list-all"]["errors"]) == (0, {})
    assert by["list-all"]["outstanding_us"] > 0
    assert by["list-page"]["count"] > 0


ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + _native.content(SEED, 1000, 0, 1000)
CLOSE = b"\r\nConnection: close\r\n"

KEPT = [("keep-alive", None), ("per-request", 1), ({"reconnect_every": 5}, 5)]


def polite(connection: socket.socket, head: bytes) -> bool:
    """Answer, and close the connection when the request asks for it."""
    connection.sendall(ANSWER)
    return CLOSE not in head


stubborn = always(ANSWER)


def replayed(served: Served, make: Make, kept: Any, **config: Any) -> int:
    """Replay reads by one worker, and let it end; how many there were."""
    engine = make(served, shape(connections=kept, verify=True), **config)
    engine.start(1)
    until(lambda: engine.progress["done"] >= 23, "reads")
    engine.engine.stop(5.0)
    assert engine.progress["errors"] == {}
    return int(engine.progress["done"])


@pytest.mark.parametrize(("kept", "most"), KEPT)
@pytest.mark.parametrize("answer", [polite, stubborn])
@pytest.mark.parametrize("api", ["s3", "swift"])
def test_a_connection_serves_as_many_requests_as_the_workload_says(
    scripted: Make, bench: Make, api: str, answer: Any, kept: Any, most: int | None
) -> None:
    served = scripted(answer)
    done = replayed(served, bench, kept, api=api)
    assert served.accepted == (1 if most is None else math.ceil(done / most))
    closing = [CLOSE in head for head in served.asked]
    assert closing == [most is not None and (at + 1) % most == 0 for at in range(done)]


@pytest.mark.parametrize(("kept", "most"), KEPT)
def test_so_does_a_connection_over_tls(
    scripted: Make, bench: Make, tmp_path: Path, kept: Any, most: int | None
) -> None:
    ca, certificate = authority(tmp_path, ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served = scripted(polite, context)
    done = replayed(served, bench, kept, tls=True, ca_file=str(ca))
    assert served.accepted == (1 if most is None else math.ceil(done / most))


@pytest.mark.parametrize(("kept", "most"), KEPT)
def test_connections_made_inside_the_window_are_counted(
    null: Make, bench: Make, kept: Any, most: int | None
) -> None:
    served = null()
    engine = bench(served, shape(connections=kept, operations={"write": 1.0}))
    engine.start(4)
    snapshot = engine.window(lambda since: since["done"] + since["failed"] >= 400)
    ended = sum(one["count"] + sum(one["errors"].values()) for one in snapshot["tallies"])
    # At its edges the window cuts through the requests of each of the four workers.
    wanted = 0 if most is None else ended / most
    assert abs(snapshot["connections"] - wanted) <= (0 if most is None else 4)


def test_a_server_that_closes_is_connected_to_again_and_that_is_counted(
    scripted: Make, bench: Make
) -> None:
    closing = ANSWER.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n", 1)
    engine = bench(scripted(always(closing, keep=False)))
    engine.start(1)
    snapshot = engine.window(lambda since: since["done"] >= 20)
    assert abs(snapshot["connections"] - snapshot["by"]["read"]["count"]) <= 1


@pytest.mark.parametrize("kept", ["sometimes", {"reconnect_every": 0}, 5, None])
def test_connections_that_do_not_exist_are_refused(bench: Make, kept: Any) -> None:
    with pytest.raises(ValueError, match="engine config"):
        bench(Served(1), shape(connections=kept))


def test_options_of_sockets_are_as_the_kernel_returns_them() -> None:
    with socket.socket() as plain:
        usual = {
            "SO_SNDBUF": plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
            "SO_RCVBUF": plain.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            "SO_KEEPALIVE": 0,
        }
    found = dict(_native.socket_options())
    assert (
        found.pop("TCP_CONGESTION")
        in Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    )
    assert found == {"TCP_NODELAY": "1", **{name: str(value) for name, value in usual.items()}}
