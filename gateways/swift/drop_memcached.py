"""Empties memcached but for tempauth's token, as a program on the proxy host.

stdin is JSON `{"address": ..., "port": n, "keep": [[prefix, user], ...]}`, users as tempauth names them; stdout is JSON
`{"deleted": n, "kept": n}`. flush_all would take the token as well, and every client's next request would fail with 401.
"""

from __future__ import annotations

import hashlib
import io
import json
import socket
import sys
from urllib.parse import unquote


def stored(key: str) -> str:
    """The key under which Swift's memcache client stores `key`: its MD5."""
    return hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()


def read(wire: io.BufferedRWPair, key: str) -> bytes | None:
    """The value stored under a key of memcached's; None when there is none."""
    wire.write(f"get {key}\r\n".encode())
    wire.flush()
    head = wire.readline().split()
    if head[0] == b"END":
        return None
    value = wire.read(int(head[3]))
    wire.readline()
    if wire.readline() != b"END\r\n":
        raise ValueError(f"memcached answered more than one value for {key}")
    return value


def keys(wire: io.BufferedRWPair) -> list[str]:
    """Every key that memcached holds."""
    wire.write(b"lru_crawler metadump all\r\n")
    wire.flush()
    found = []
    while (line := wire.readline()) != b"END\r\n":
        if not line.startswith(b"key="):
            raise ValueError(f"memcached refused to list its keys: {line.decode(errors='replace').strip()}")
        found.append(unquote(line.split()[0][4:].decode()))
    return found


def delete(wire: io.BufferedRWPair, key: str) -> bool:
    """Whether the key was there and is not any more."""
    wire.write(f"delete {key}\r\n".encode())
    wire.flush()
    return wire.readline() == b"DELETED\r\n"


def main() -> None:
    """Do it and say what was done."""
    order = json.load(sys.stdin)
    with socket.create_connection((order["address"], order["port"]), timeout=30) as connection, connection.makefile("rwb") as wire:
        keep = set()
        for prefix, user in order["keep"]:
            name = stored(f"{prefix}/user/{user}")
            token = read(wire, name)
            if token is not None:
                keep |= {name, stored(f"{prefix}/token/{json.loads(token)}")}
        found = keys(wire)
        deleted = sum(delete(wire, key) for key in found if key not in keep)
    json.dump({"deleted": deleted, "kept": len(keep & set(found))}, sys.stdout)


if __name__ == "__main__":
    main()
