"""Both sides of joining in one process, for tests."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq

from weighbridge.common.errors import WeighbridgeError
from weighbridge.drivers.joining.joined_client import Membership, Place
from weighbridge.drivers.joining.listening import JoinPort
from weighbridge.drivers.joining.messages import FROM_RUN, FromRun, Greeting
from weighbridge.drivers.joining.settings import JoinSettings
from weighbridge.drivers.joining.token import Token

TOKEN = Token("t" * 64)
OTHER = Token("o" * 64)
WORKER = ("tests.drivers.joining.stub_worker",)


def free_port() -> int:
    """A port that is free, as the next one is, and which no connection gets as its own."""
    (first, _) = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    while True:
        port = random.randrange(10000, int(first) - 1)
        try:
            for number in (port, port + 1):
                socket.create_server(("127.0.0.1", number)).close()
        except OSError:
            continue
        return port


class RunSide:
    """A run's port, and what it said."""

    def __init__(self, clients: int = 1, wait_s: float = 10.0) -> None:
        self.said: list[str] = []
        self.settings = JoinSettings(
            clients=clients,
            address="127.0.0.1",
            port=free_port(),
            wait_s=wait_s,
            token_file=Path("token"),
        )
        self.port = JoinPort(self.settings, TOKEN, ["client-1"], self.said.append)

    def has_said(self, words: str) -> bool:
        return any(words in one for one in self.said)


@contextmanager
def run_side(clients: int = 1, wait_s: float = 10.0) -> Iterator[RunSide]:
    side = RunSide(clients, wait_s)
    with side.port:
        yield side


class ClientSide:
    """A client in a thread; `error` is how it ended."""

    def __init__(
        self, side: RunSide, name: str = "guest", token: Token = TOKEN, **greets: Any
    ) -> None:
        self.said: list[str] = []
        self.error: WeighbridgeError | None = None
        greeting = Greeting.from_here(name, 2.0).model_copy(update=greets)
        self._membership = Membership(
            Place("127.0.0.1", side.settings.port), token, greeting, WORKER, self.said.append
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def ended(self, patience_s: float = 10.0) -> str:
        """How it ended, in words."""
        self._thread.join(patience_s)
        assert not self._thread.is_alive()
        return "" if self.error is None else str(self.error)

    def _run(self) -> None:
        try:
            self._membership.run(8.0)
        except WeighbridgeError as error:
            self.error = error


class BareClient:
    """One that has the token, and sends what it is told to."""

    def __init__(self, side: RunSide) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._dealer = self._context.socket(zmq.DEALER)
        self._dealer.curve_publickey, self._dealer.curve_secretkey = zmq.curve_keypair()
        self._dealer.curve_serverkey = TOKEN.keys.public
        self._cuts: zmq.Socket[bytes] = self._dealer.get_monitor_socket(zmq.Event.DISCONNECTED)
        self._dealer.connect(f"tcp://{side.settings.place}")

    def send(self, data: bytes) -> None:
        self._dealer.send(data)

    def received(self) -> FromRun:
        assert self._dealer.poll(5000)
        return FROM_RUN.validate_json(self._dealer.recv())

    def is_cut(self) -> bool:
        """Whether its connection ends within seconds."""
        return bool(self._cuts.poll(5000))

    def close(self) -> None:
        self._dealer.disable_monitor()
        self._cuts.close(linger=0)
        self._dealer.close(linger=0)
        self._context.term()


def within(limit_s: float, met: Callable[[], bool], every_s: float = 0.01) -> bool:
    """Whether a condition, looked at once in a while, is met in time."""
    deadline_s = time.monotonic() + limit_s
    while not met():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(every_s)
    return True
