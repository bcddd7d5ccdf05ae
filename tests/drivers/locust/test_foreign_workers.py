"""Strangers that talk to the port of Locust's master, whose steps depend on its own worker
processes alone.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
import zmq
from locust import __version__
from locust.rpc import Message

from tests.drivers.locust.local_driver import (
    Kept,
    Null,
    by_operation,
    check_consistent,
    setup_for,
    workload,
)
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import Prepare, Step

pytestmark = pytest.mark.long  # starts Locust in every test

READY = Message("client_ready", __version__, "stranger_1").serialize()
PING = Message("weighbridge-here", {"number": 1}, "stranger_1").serialize()
ANSWER = Message(
    "weighbridge-answer", {"id": 1, "answer": "{}", "error": "it was me"}, "stranger_1"
).serialize()
TORN = (READY[:-3], b"\xc1", b"", b"\x00" * 1000, Message("client_ready", {"a": 1}, 7).serialize())
SKEW = "windows of the worker processes are "


def port_of(running: DriverProcess) -> int:
    connections = psutil.Process(running.process.pid).net_connections("tcp")
    (port,) = {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}
    return int(port)


@contextmanager
def stranger(port: int, messages: tuple[bytes, ...], *, guesses: bool) -> Iterator[None]:
    """One that connects as Locust's workers do, or with a guessed key, and sends `messages`."""
    context = zmq.Context()
    connection: Any = context.socket(zmq.DEALER)
    connection.setsockopt(zmq.IDENTITY, b"stranger_1")
    if guesses:
        connection.curve_publickey, connection.curve_secretkey = zmq.curve_keypair()
        connection.curve_serverkey = zmq.curve_keypair()[0]
    connection.connect(f"tcp://127.0.0.1:{port}")
    try:
        for message in messages:
            connection.send(message)
        yield
    finally:
        connection.close(linger=0)
        context.term()


def test_messages_from_strangers_do_not_affect_a_step(
    null: Callable[..., Null], kept: Kept
) -> None:
    reads = workload({"read": 1}, runtime=1.0, warmup=0.2)
    with kept() as running:
        running.setup(setup_for(null(delay_ms=5.0).target("s3"), processes=2))
        port = port_of(running)
        running.prepare(Prepare(workload=reads))
        sent = (READY, PING, ANSWER, *TORN)
        with stranger(port, sent, guesses=False), stranger(port, sent, guesses=True):
            with socket.create_connection(("127.0.0.1", port), timeout=5.0) as raw:
                raw.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(range(256)) * 100)
            for workers in (5, 1):
                measurement = running.step(Step(workload=reads, workers=workers)).measurement
                check_consistent(measurement)
                assert by_operation(measurement)["read"].count > 0
                # A busy machine closes one process's window later than another's, and says so.
                assert not [note for note in measurement.notes if not note.startswith(SKEW)]


def test_the_masters_key_is_on_no_command_line_and_in_no_environment(
    null: Callable[..., Null], kept: Kept
) -> None:
    with kept() as running:
        running.setup(setup_for(null().target("s3"), processes=2))
        children = psutil.Process(running.process.pid).children()
        words = [word for one in children for word in (*one.cmdline(), *one.environ().values())]
    assert len(children) == 2
    # A CurveZMQ key is forty characters of Z85; no other word here is, except for paths.
    assert not [
        word for word in words if len(word) == 40 and "/" not in word and not word.isalnum()
    ]
