"""A name server on 127.0.0.1:53 for which every name has the address 127.0.0.1.

Prints a line when it listens; ends with its stdin.
"""

from __future__ import annotations

import select
import socket
import struct
import sys

ADDRESS_RECORD = 1


def answer(question: bytes) -> bytes:
    """The answer to one question (RFC 1035, 4.1): an address for type A, an empty list for
    others.
    """
    end = question.index(b"\0", 12) + 5
    kind = struct.unpack("!H", question[end - 4 : end - 2])[0]
    found = (
        b"\xc0\x0c" + struct.pack("!HHIH", ADDRESS_RECORD, 1, 1, 4) + socket.inet_aton("127.0.0.1")
    )
    known = kind == ADDRESS_RECORD
    return (
        question[:2]
        + struct.pack("!HHHHH", 0x8580, 1, known, 0, 0)
        + question[12:end]
        + (found if known else b"")
    )


def main() -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    print("listening", flush=True)  # noqa: T201 - a program for tests
    while sys.stdin not in (ready := select.select([server, sys.stdin], [], [])[0]):
        if server in ready:
            question, peer = server.recvfrom(4096)
            server.sendto(answer(question), peer)


if __name__ == "__main__":
    main()
