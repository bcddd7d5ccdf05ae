"""Locust's sockets, sealed: nobody gets a word through to a master but stations that were handed its key.

Locust's master takes whoever connects for one of its workers, and anything that comes for a message. Here ZeroMQ lets nobody in
who does not know the master's public key, and encrypts all that is said (CurveZMQ, ZeroMQ RFC 26). That key is never sent over a
network: stations are told it by their stdin. It is new for each master.
"""

from __future__ import annotations

import zmq.green as zmq
from locust.rpc.zmqrpc import BaseSocket, Client, Server


class SealedServer(Server):
    """A master's socket, at a free port of an address. `key` is what stations must have. Raises ZMQError."""

    def __init__(self, host: str) -> None:
        # Locust's own would listen before it is sealed.
        BaseSocket.__init__(self, zmq.ROUTER, self.ipv4_only(host, 0))  # type: ignore[no-untyped-call]
        public, secret = zmq.curve_keypair()
        self.key = public.decode("ascii")
        self.socket.curve_secretkey = secret
        self.socket.curve_publickey = public
        self.socket.curve_server = True
        try:
            self.port = self.socket.bind_to_random_port(f"tcp://{host}")
        except BaseException:
            self.close(linger=0)  # type: ignore[no-untyped-call]
            raise


class SealedClient(Client):
    """A station's socket: to the master that has this key, and to no other."""

    def __init__(self, host: str, port: int, identity: str, key: str) -> None:
        BaseSocket.__init__(self, zmq.DEALER, self.ipv4_only(host, port))  # type: ignore[no-untyped-call]
        self.socket.setsockopt(zmq.IDENTITY, identity.encode())
        public, secret = zmq.curve_keypair()
        self.socket.curve_secretkey = secret
        self.socket.curve_publickey = public
        self.socket.curve_serverkey = key.encode("ascii")
        self.socket.connect(f"tcp://{host}:{port}")
