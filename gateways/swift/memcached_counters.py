"""Counters of a memcached, as a program on its host.

`memcached_counters.py ADDRESS PORT` prints a line of JSON at once and then one every second until
its stdin closes: numbers by their names in memcached's `stats`. A second in which it does not
answer has no line; stderr gives the reason.
"""

from __future__ import annotations

import socket
import sys

from weighbridge.gateways.counter_loop import print_every_second

NAMES = frozenset(
    {
        *("curr_connections", "curr_items", "bytes", "evictions", "bytes_read", "bytes_written"),
        *("cmd_get", "cmd_set", "get_hits", "get_misses", "get_expired"),
    }
)
ANSWER_WITHIN_S = 5.0


def counters(address: str, port: int) -> dict[str, int]:
    """The counters by name. Raises OSError or ValueError."""
    values: dict[str, int] = {}
    with (
        socket.create_connection((address, port), timeout=ANSWER_WITHIN_S) as wire,
        wire.makefile("rwb") as talk,
    ):
        talk.write(b"stats\r\n")
        talk.flush()
        for line in talk:
            words = line.decode().split()
            if words == ["END"]:
                return values
            if words[:1] != ["STAT"] or len(words) < 2 or (words[1] in NAMES and len(words) != 3):
                raise ValueError(f"memcached answered {line!r}")
            if words[1] in NAMES:
                values[words[1]] = int(words[2])
    raise ValueError("memcached closed the connection in the middle of its answer")


def main() -> None:
    """Print counters until stdin closes."""
    address, port = sys.argv[1], int(sys.argv[2])
    print_every_second(lambda: counters(address, port), f"{address}:{port}")


if __name__ == "__main__":
    main()
