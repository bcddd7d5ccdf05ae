"""Empty every memcached except for tempauth's token, as a program on a proxy host.

stdin is JSON `{"servers": [[address, port], ...], "prefix": ..., "user": ...}`, prefix and user as
tempauth names them; stdout is JSON `{"dropped": n, "kept": n}`. Proxies choose which memcached
holds an entry: every one is searched. Without the token every client's next request would fail with
401.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import socket
import sys
from typing import NamedTuple


class MemcachedEntry(NamedTuple):
    """An entry: its key in memcached, flags, seconds to live (-1: unlimited) and value."""

    key: str
    flags: int
    left_s: int
    value: bytes


def stored(key: str) -> str:
    """The key under which Swift's memcache client stores `key`: its MD5."""
    return hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()


def read(wire: io.BufferedRWPair, key: str) -> MemcachedEntry | None:
    """The entry of a key; None without one."""
    wire.write(f"mg {key} f t v\r\n".encode())
    wire.flush()
    head = wire.readline().decode().split()
    if head[0] == "EN":
        return None
    if head[0] != "VA":
        raise ValueError(f"memcached answered {' '.join(head)} for {key}")
    value = wire.read(int(head[1]))
    wire.readline()
    fields = {word[0]: int(word[1:]) for word in head[2:]}
    return MemcachedEntry(key, fields["f"], fields["t"], value)


def count(wire: io.BufferedRWPair) -> int:
    """The number of entries."""
    wire.write(b"stats\r\n")
    wire.flush()
    found = {}
    while (line := wire.readline().decode().split())[0] != "END":
        found[line[1]] = line[2]
    return int(found["curr_items"])


def flush(wire: io.BufferedRWPair, keep: list[MemcachedEntry]) -> None:
    """Drop everything and restore some entries, in one message that no other can split."""
    message = b"flush_all\r\n"
    for entry in keep:
        left_s = max(entry.left_s, 0)
        message += (
            f"set {entry.key} {entry.flags} {left_s} {len(entry.value)}\r\n".encode()
            + entry.value
            + b"\r\n"
        )
    wire.write(message)
    wire.flush()
    answers = [wire.readline() for _ in range(1 + len(keep))]
    if answers != [b"OK\r\n", *[b"STORED\r\n"] * len(keep)]:
        raise ValueError(f"memcached answered {answers}")


def main() -> None:
    """Read the order from stdin, empty the servers, print the counts."""
    order = json.load(sys.stdin)
    dropped = kept = 0
    with contextlib.ExitStack() as stack:
        held: list[tuple[io.BufferedRWPair, MemcachedEntry | None]] = []
        for address, port in order["servers"]:
            connection = stack.enter_context(socket.create_connection((address, port), timeout=30))
            wire = stack.enter_context(connection.makefile("rwb"))
            held.append((wire, read(wire, stored(f"{order['prefix']}/user/{order['user']}"))))
        tokens = [
            stored(f"{order['prefix']}/token/{json.loads(user.value)}")
            for _, user in held
            if user is not None
        ]
        for wire, user in held:
            keep = [
                entry
                for entry in (user, *(read(wire, token) for token in tokens))
                if entry is not None
            ]
            dropped += count(wire) - len(keep)
            kept += len(keep)
            flush(wire, keep)
    json.dump({"dropped": dropped, "kept": kept}, sys.stdout)


if __name__ == "__main__":
    main()
