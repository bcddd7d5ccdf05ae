"""Wait until servers answer requests, as a program on the client host.

A port is open as soon as a server listens: its workers, which load their configuration themselves,
are ready seconds later. A proxy would meanwhile count failed requests as errors of the server.

stdin is JSON `{"servers": [[address, port, CA file or ""], ...], "deadline_s": s}`: a server with a
CA file speaks TLS. stdout is JSON, the indexes of servers that had not answered by the deadline.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import sys
import time
from collections.abc import Sequence

PATH = "/healthcheck"
"""Answered by a filter in each server's pipeline; without that filter the server answers 404."""

_ANSWER_WITHIN_S = 5.0
_PAUSE_S = 0.05


def answers(address: str, port: int, authority: str) -> bool:
    """Whether a request is answered, and not with 5xx."""
    connection = http.client.HTTPConnection(address, port, timeout=_ANSWER_WITHIN_S)
    if authority:
        tls = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(
            address, port, timeout=_ANSWER_WITHIN_S, context=tls
        )
    with contextlib.closing(connection):
        try:
            connection.request("GET", PATH)
            return connection.getresponse().status < http.client.INTERNAL_SERVER_ERROR
        except (OSError, http.client.HTTPException):
            return False


def silent(servers: Sequence[tuple[str, int, str]], deadline_s: float) -> list[int]:
    """Ask each until it answers; returns the indexes of those that have not by the deadline."""
    deadline = time.monotonic() + deadline_s
    waiting = dict(enumerate(servers))
    while True:
        waiting = {number: place for number, place in waiting.items() if not answers(*place)}
        if not waiting or time.monotonic() > deadline:
            return list(waiting)
        time.sleep(_PAUSE_S)


def main() -> None:
    """Read the order from stdin, wait, and print the silent servers."""
    order = json.load(sys.stdin)
    json.dump(
        silent(
            [(str(where), int(port), str(ca)) for where, port, ca in order["servers"]],
            float(order["deadline_s"]),
        ),
        sys.stdout,
    )


if __name__ == "__main__":
    main()
