"""An S3 server whose bucket always lists the same objects, whatever was deleted."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.drivers.conftest import serving

NAMES = tuple(f"object-{number}" for number in range(5))
LIST = "".join(f"<Contents><Key>{name}</Key></Contents>" for name in NAMES)
BODY = f"<ListBucketResult>{LIST}</ListBucketResult>"


def _answer(connection: socket.socket, head: bytes) -> bool:
    method, path, _ = head.split(b" ", 2)
    answer = f"200 OK\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"
    if method == b"DELETE" and path.count(b"/") > 1:
        answer = "204 No Content\r\n\r\n"
    elif method == b"DELETE":
        answer = "409 Conflict\r\nContent-Length: 0\r\n\r\n"
    connection.sendall(f"HTTP/1.1 {answer}".encode())
    return True


@contextmanager
def lying_store() -> Iterator[str]:
    """Its URL."""
    with serving(_answer) as served:
        yield served.url
