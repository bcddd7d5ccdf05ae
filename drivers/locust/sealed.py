"""Locust's messages, sealed: nobody gets a word through to a master but stations that were handed
its key.

Locust's master takes whoever connects for one of its workers, and anything that comes for a
message. Here ZeroMQ lets nobody in who does not know the master's public key, and encrypts all that
is said (CurveZMQ, ZeroMQ RFC 26). That key is never sent over a network: stations are told it by
their stdin. It is new for each master.

What of Locust is changed for it is changed for the whole process, which is a driver's own or a
station's own.
"""

from __future__ import annotations

import math
from typing import Any, Final

import zmq.green as zmq
from locust import runners
from locust.rpc.zmqrpc import BaseSocket

_PLAIN: Final = BaseSocket.__init__


def seal_master() -> str:
    """Have all sockets that Locust makes from now on be those of a master.

    Returns the key that stations must have.
    """
    public, secret = zmq.curve_keypair()
    _seal(curve_secretkey=secret, curve_publickey=public, curve_server=True)
    return str(public.decode("ascii"))


def seal_station(key: str) -> None:
    """Have all sockets that Locust makes from now on be those of a station of the master that has
    this key, and of no other.
    """
    public, secret = zmq.curve_keypair()
    _seal(curve_secretkey=secret, curve_publickey=public, curve_serverkey=key.encode("ascii"))


def _seal(**options: Any) -> None:
    def sealed(self: BaseSocket, *given: Any) -> None:
        _PLAIN(self, *given)  # type: ignore[no-untyped-call]
        for name, value in options.items():
            setattr(self.socket, name, value)

    BaseSocket.__init__ = sealed  # type: ignore[method-assign]
    # Three late heartbeats would make a master give a worker up, and stop the test with the last; a
    # process on a share of a CPU may well be held up for that long, and clocks may be set. Whether
    # one has died is asked of the process itself.
    runners.HEARTBEAT_LIVENESS = 2**31
    runners.MASTER_HEARTBEAT_TIMEOUT = math.inf  # type: ignore[assignment]
