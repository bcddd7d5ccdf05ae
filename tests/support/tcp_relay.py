"""Another port of loopback for a server there: a second endpoint of the same store."""

from __future__ import annotations

import select
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def relayed(port: int, seen: Callable[[bytes], None] = lambda _: None) -> Iterator[int]:
    """A port whose connections are handed on to `port`, byte by byte; `seen` is shown what clients
    send.
    """

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as far:
                other = {self.request: far, far: self.request}
                while True:
                    for one in select.select(list(other), [], [])[0]:
                        data = one.recv(65536)
                        if not data:
                            return
                        if one is self.request:
                            seen(data)
                        other[one].sendall(data)

    class Relay(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Relay(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join(5)
