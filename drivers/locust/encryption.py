"""Locust's messages, encrypted and authenticated, so that only worker processes that were given the
master's key can talk to it.

Locust's master takes any connection for one of its workers, and accepts any message. Here ZeroMQ
admits only those that know the master's public key, and encrypts all messages (CurveZMQ, ZeroMQ
RFC 26). That key is never sent over a network: worker processes get it by their stdin. Each master
has a new one.

Locust is patched for the entire process, which is a driver's own or a worker process's own.
"""

from __future__ import annotations

import math
from typing import Any, Final

import zmq.green as zmq
from locust import runners
from locust.rpc.zmqrpc import BaseSocket

HANDSHAKE_MS: Final = 5000
_PLAIN: Final = BaseSocket.__init__


def encrypt_master() -> str:
    """Make all sockets that Locust opens from now on those of a master; returns its key."""
    public, secret = zmq.curve_keypair()
    # Connections that say nothing are not kept: a port on the hosts' network is open to anybody.
    _encrypt(
        curve_secretkey=secret,
        curve_publickey=public,
        curve_server=True,
        handshake_ivl=HANDSHAKE_MS,
    )
    return str(public.decode("ascii"))


def encrypt_worker(key: str) -> None:
    """Make all sockets that Locust opens from now on those of a worker of the key's master."""
    public, secret = zmq.curve_keypair()
    _encrypt(curve_secretkey=secret, curve_publickey=public, curve_serverkey=key.encode("ascii"))


def _encrypt(**options: Any) -> None:
    def encrypted(self: BaseSocket, *given: Any) -> None:
        _PLAIN(self, *given)  # type: ignore[no-untyped-call]
        for name, value in options.items():
            setattr(self.socket, name, value)

    BaseSocket.__init__ = encrypted  # type: ignore[method-assign]
    # A master gives a worker up after three late heartbeats, and ends the test with the last one. A
    # process on a fraction of a CPU may be held up for so long, and clocks may be set; so processes
    # are checked directly instead.
    runners.HEARTBEAT_LIVENESS = 2**31
    runners.MASTER_HEARTBEAT_TIMEOUT = math.inf  # type: ignore[assignment]
