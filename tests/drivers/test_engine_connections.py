"""How long the engine keeps connections, counted by the server that it connects to."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.drivers.conftest import SEED, Served, always, shape, until
from tls_proxy import authority
from weighbridge.drivers.engine import _native

Make = Callable[..., Any]
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
