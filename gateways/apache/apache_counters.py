"""Counters of Apache and of the FastCGI responder behind it, as a program on their host.

Arguments: Apache's address and port, the CA file if it speaks TLS ("" if not), the name of the
virtual host for its status, where there is one the responder's address and port, and perhaps
`once`. Prints a line of JSON at once and then every second until stdin closes: an object of
numbers by name. A second in which one of them does not answer has no line; stderr gives the reason.
With `once` it prints the fields of server-status as one object.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import sys

from weighbridge.gateways.counter_loop import print_every_second

ANSWER_WITHIN_S = 5.0

NUMBERS = {
    "BusyWorkers": "workers_busy",
    "IdleWorkers": "workers_idle",
    "Processes": "processes",
    "Stopping": "processes_stopping",
    "Total Accesses": "requests",
    "Total kBytes": "sent_kib",
    "Total Duration": "request_ms_sum",
}
"""The printed fields of server-status. The last three need ExtendedStatus."""
STATES = {
    "_": "workers_waiting",
    "S": "workers_starting",
    "R": "workers_reading",
    "W": "workers_sending",
    "K": "workers_keepalive",
    "C": "workers_closing",
    "G": "workers_finishing",
}
"""Letters of the scoreboard."""


def status(address: str, port: int, authority: str, name: str) -> dict[str, str]:
    """The fields of server-status. Raises OSError, HTTPException or ValueError."""
    connection = http.client.HTTPConnection(address, port, timeout=ANSWER_WITHIN_S)
    if authority:
        tls = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(
            address, port, timeout=ANSWER_WITHIN_S, context=tls
        )
    with contextlib.closing(connection):
        connection.request(
            "GET", "/server-status?auto", headers={"Host": name, "Connection": "close"}
        )
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    if answer.status != http.client.OK:
        raise ValueError(f"server-status returned {answer.status}")
    return dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)


def counters(status: dict[str, str]) -> dict[str, float]:
    """The numbers in the fields of server-status."""
    values = {key: float(status[name]) for name, key in NUMBERS.items() if name in status}
    board = status.get("Scoreboard", "")
    return values | {name: float(board.count(letter)) for letter, name in STATES.items()}


def responder(address: str, port: int) -> dict[str, float]:
    """The responder's counters. Raises OSError or ValueError."""
    with (
        socket.create_connection((address, port), timeout=ANSWER_WITHIN_S) as wire,
        wire.makefile("r") as lines,
    ):
        line = lines.readline()
    try:
        return {"responder_" + name: float(value) for name, value in json.loads(line).items()}
    except (AttributeError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(
            f"the responder returned no object of numbers ({error!r}): {line[:200]!r}"
        ) from None


def main() -> None:
    """Print counters until stdin closes, or the status once."""
    address, port, authority, name = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    if sys.argv[-1] == "once":
        sys.stdout.write(json.dumps(status(address, port, authority, name)) + "\n")
        return

    def look() -> dict[str, float]:
        values = counters(status(address, port, authority, name))
        if len(sys.argv) > 6:
            values.update(responder(sys.argv[5], int(sys.argv[6])))
        return values

    print_every_second(
        look, f"Apache at {address}:{port}", (OSError, http.client.HTTPException, ValueError)
    )


if __name__ == "__main__":
    main()
