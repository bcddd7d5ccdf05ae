"""What a memcached counts of itself, as a program on its host.

`tell_memcached.py ADDRESS PORT` prints a line of JSON at once and then one every second until its
stdin ends: numbers by their names in memcached's `stats`. A second in which it does not answer has
no line; stderr says why.
"""

from __future__ import annotations

import socket
import sys

from weighbridge.gateways.each_second import tell

NAMES = frozenset(
    {
        *("curr_connections", "curr_items", "bytes", "evictions", "bytes_read", "bytes_written"),
        *("cmd_get", "cmd_set", "get_hits", "get_misses", "get_expired"),
    }
)
ANSWER_WITHIN_S = 5.0


def counters(address: str, port: int) -> dict[str, int]:
    """The counters by name. Raises OSError or ValueError."""
    told: dict[str, int] = {}
    with (
        socket.create_connection((address, port), timeout=ANSWER_WITHIN_S) as wire,
        wire.makefile("rwb") as talk,
    ):
        talk.write(b"stats\r\n")
        talk.flush()
        for line in talk:
            words = line.decode().split()
            if words == ["END"]:
                return told
            if words[:1] != ["STAT"] or len(words) < 2 or (words[1] in NAMES and len(words) != 3):
                raise ValueError(f"memcached answered {line!r}")
            if words[1] in NAMES:
                told[words[1]] = int(words[2])
    raise ValueError("memcached closed the connection in the middle of its answer")


def main() -> None:
    """Tell until stdin ends."""
    address, port = sys.argv[1], int(sys.argv[2])
    tell(lambda: counters(address, port), f"{address}:{port}")


if __name__ == "__main__":
    main()
