"""Targets and engines for tests of the native engine, on loopback; each ends with its test."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from null_process import null_process
from tests.drivers.rados.conftest import cluster, machine
from weighbridge.drivers.engine import _native

__all__ = ["cluster", "machine"]

SEED = 5
Reply = Callable[[socket.socket, bytes], bool]
"""What a server does with a connection and the head of a request; True keeps the connection."""

HELD: list[socket.socket] = []
"""Bound and not listening: connections to them are refused, and nobody else gets their ports."""


def closed_port() -> int:
    HELD.append(held := socket.socket())
    held.bind(("127.0.0.1", 0))
    return int(held.getsockname()[1])


def always(sent: bytes, *, keep: bool = True) -> Reply:
    def answer(connection: socket.socket, head: bytes) -> bool:
        connection.sendall(sent)
        return keep

    return answer


def until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait for a condition; fails the test when it is not met in time."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"{what}: not within {timeout_s} s"
        time.sleep(0.002)


class Served:
    """A server on loopback; if it keeps them, `asked` has the heads of requests, `bodies` their
    bodies, and `accepted` counts connections.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[bytes] = []
        self.bodies: list[bytes] = []
        self.accepted = 0


@contextmanager
def serving_null(**config: float | str | None) -> Iterator[Served]:
    with null_process(**{"seed": SEED, **config}) as (process, url):
        yield Served(int(url.rsplit(":", 1)[1]))
    assert process.returncode == 0


@contextmanager
def serving(
    answer: Reply, context: ssl.SSLContext | None = None, place: tuple[str, int] = ("127.0.0.1", 0)
) -> Iterator[Served]:
    with socket.create_server(place) as listener, ExitStack() as connections:
        served = Served(listener.getsockname()[1])
        threads: list[threading.Thread] = []

        def one(connection: socket.socket) -> None:
            with suppress(OSError), connection:
                stream = connection.makefile("rb")
                while line := stream.readline():
                    head = line
                    while (line := stream.readline()) not in (b"\r\n", b""):
                        head += line
                    lengths = [
                        int(row.split(b":")[1])
                        for row in head.splitlines()
                        if row.lower().startswith(b"content-length:")
                    ]
                    served.bodies.append(stream.read(sum(lengths)))
                    served.asked.append(head)
                    if not answer(connection, head):
                        return

        def accept() -> None:
            # Ends when the listener is shut down.
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    if context is not None:
                        try:
                            connection = context.wrap_socket(connection, server_side=True)
                        except OSError:  # a client that does not trust this server hangs up
                            connection.close()
                            continue
                    served.accepted += 1
                    connections.callback(connection.close)
                    connections.callback(_shut, connection)
                    threads.append(threading.Thread(target=one, args=(connection,), daemon=True))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield served
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            acceptor.join(5)
            connections.close()
            for thread in threads:
                thread.join(5)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Bench:
    """An engine with methods for what many tests do."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.engine = _native.Engine(json.dumps(config))
        workload = config["workload"]
        if "read-version" in workload["operations"]:
            objects, each = workload["objects"], workload["versions"]
            count = objects["containers"] * objects["per_container"] * each
            self.engine.know_versions([f"v{at % each}-{at}" for at in range(count)])

    @property
    def progress(self) -> dict[str, Any]:
        progress: dict[str, Any] = json.loads(self.engine.progress())
        return progress

    def finish(self) -> dict[str, Any]:
        until(lambda: self.progress["running"] == 0, "workers end")
        return self.progress

    def prepare(self, count: int | None = None) -> dict[str, Any]:
        objects = self.config["workload"]["objects"]
        self.engine.prepare(0, count or objects["containers"] * objects["per_container"], 1, 3)
        return self.finish()

    def start(self, workers: int, repeat: int = 0) -> None:
        for index in range(workers):
            self.engine.add_worker(index, workers, repeat)
        until(lambda: self.engine.started() == workers, "workers finish their first request")

    def window(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Open the window, close it when the `progress` since then is enough; the snapshot."""
        self.engine.open_window()
        before = self.progress

        def since() -> dict[str, Any]:
            now = self.progress
            return {key: now[key] - before[key] for key in ("done", "failed")}

        until(lambda: enough(since()), "requests in the window")
        self.engine.close_window()
        return self.snapshot()

    def alone(self, ended: str, count: int, *, leaves: bool = False) -> dict[str, Any]:
        """The snapshot of one worker until so many requests are `done` or `failed`; if it `leaves`,
        all that it began are in the window.
        """
        self.engine.open_window()
        self.engine.add_worker(0, 1, 0)
        until(lambda: self.progress[ended] >= count, f"requests that {ended}")
        if leaves:
            self.engine.remove_worker(0)
            self.finish()
        self.engine.close_window()
        return self.snapshot()

    def snapshot(self) -> dict[str, Any]:
        snapshot: dict[str, Any] = json.loads(self.engine.snapshot())
        snapshot["by"] = {tally["operation"]: tally for tally in snapshot["tallies"]}
        return snapshot


@pytest.fixture
def null() -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:
        yield lambda **config: stack.enter_context(serving_null(**config))


@pytest.fixture
def scripted() -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:
        yield lambda answer, *more: stack.enter_context(serving(answer, *more))


def shape(**keys: Any) -> dict[str, Any]:
    """A small workload; `size`, `containers`, `per_container` are of its objects, other arguments
    replace its keys.
    """
    objects = {"size": 1000, "containers": 2, "per_container": 10}
    objects |= {key: keys.pop(key) for key in tuple(objects) if key in keys}
    workload = {
        "name": "w",
        "objects": objects,
        "operations": {"read": 1.0},
        "pick": "uniform",
        "workers": [1],
    }
    return workload | {"runtime": 1.0, "warmup": 0.0, "rate_per_s": None, "verify": False} | keys


def config_of(port: int, workload: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """An engine's configuration for a server on loopback."""
    config = {
        "api": "s3",
        "host": "127.0.0.1",
        "port": port,
        "tls": False,
        "ca_file": None,
        "base_path": "",
        "access_key": "AK",
        "secret_key": "SK",
        "region": "us-east-1",
        "token": "",
        "bucket_prefix": "wb",
        "request_timeout_s": 10.0,
        "threads": 1,
        "verify": False,
        "seed": SEED,
        "workload": workload,
    }
    return config | keys


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    benches: list[Bench] = []

    def make(served: Served, workload: dict[str, Any] | None = None, **keys: Any) -> Bench:
        benches.append(Bench(config_of(served.port, workload or shape(), **keys)))
        return benches[-1]

    yield make
    for one in benches:
        one.engine.stop(0.0)
