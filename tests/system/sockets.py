"""Sockets that are open for whoever comes, as the kernel lists them for a network namespace."""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TABLES = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
"""Files of /proc/PID/net, and the state of what listens (tcp) or takes from anybody (udp);
`include/net/tcp_states.h`.
"""


@dataclass(frozen=True)
class Socket:
    """One that is open: its protocol, its address, its port, and the inode that processes hold it
    by.
    """

    protocol: str
    address: str
    port: int
    inode: int

    @property
    def loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback

    def __str__(self) -> str:
        return f"{self.protocol} {self.address}:{self.port}"


def open_sockets(pid: int | str) -> Iterator[Socket]:
    """All that are open in the network namespace of a process."""
    for table, state in _TABLES.items():
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state:
                address, port = fields[1].split(":")
                yield Socket(table, _address(address), int(port, 16), int(fields[9]))


def held(pid: int | str) -> set[int]:
    found = set()
    with suppress(OSError):  # it ended while it was looked at
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                match = re.fullmatch(r"socket:\[(\d+)]", str(descriptor.readlink()))
                found |= {int(match[1])} if match else set()
    return found


def _address(text: str) -> str:
    """An address as the kernel writes it: words of four bytes, each in the order of this
    machine.
    """
    words = [int(text[place : place + 8], 16) for place in range(0, len(text), 8)]
    raw = b"".join(struct.pack("=I", word) for word in words)
    found = ipaddress.ip_address(raw)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found)
