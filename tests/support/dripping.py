"""A server that never ends an answer: it sends a byte from time to time, or nothing at all."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def dripping(begin: bytes = b"HTTP/1.1 200 OK\r\nX: ", *, silent: bool = False) -> Iterator[int]:
    """The port of a server on loopback that answers `begin`, then a byte each 20 ms."""
    ended = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def drip(client: socket.socket) -> None:
        with client, suppress(OSError):
            while not silent and not ended.is_set():
                client.sendall(b"x" if client in begun else begin)
                begun.add(client)
                ended.wait(0.02)
            ended.wait()

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threads.append(threading.Thread(target=drip, args=(client,), daemon=True))
                threads[-1].start()

    begun: set[socket.socket] = set()
    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in (accepting, *threads):
            one.join()
