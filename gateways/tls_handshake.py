"""What a real handshake with a gateway negotiates: version, cipher, and whether sessions resume.

As a program (`python -m weighbridge.gateways.tls_handshake`, on the client host): reads
`{"address": text, "port": n, "ca_file": path}` from stdin, connects twice, the second time with the
session of the first, and prints a JSON line: `{"version": text, "cipher": text, "resumed": bool}`.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from weighbridge.common.endpoint import Endpoint
    from weighbridge.common.host import Host

_TIMEOUT_S = 20.0


def negotiated(client: Host, endpoints: Sequence[Endpoint]) -> str:
    """What one server's endpoints negotiate with `client`. Raises CommandFailed if TLS fails."""
    place = urlsplit(endpoints[0].url)
    if place.scheme != "https":
        return "none: clients use plain HTTP"
    order = {
        "address": place.hostname,
        "port": place.port or http.client.HTTPS_PORT,
        "ca_file": endpoints[0].ca_file,
    }
    command = client.module("weighbridge.gateways.tls_handshake")
    done = client.run(
        command.argv, stdin=json.dumps(order), env=command.env, timeout_s=3 * _TIMEOUT_S
    )
    seen = json.loads(done.stdout)
    return (
        f"{seen['version']}, {seen['cipher']}; sessions are {'' if seen['resumed'] else 'not '}"
        f"resumed (by handshakes from {client.name}, which verify its ECDSA P-256 certificate with "
        "the CA of this deployment)"
    )


def shake(address: str, port: int, ca_file: str) -> dict[str, Any]:
    """Connect twice, and say what was negotiated. Raises OSError."""
    context = ssl.create_default_context(cafile=ca_file)
    name = f"[{address}]" if ":" in address else address  # imports nothing: see its tests
    request = f"HEAD / HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n".encode()
    session: ssl.SSLSession | None = None
    seen: dict[str, Any] = {}
    for _ in range(2):
        with (
            socket.create_connection((address, port), timeout=_TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname=address, session=session) as secured,
        ):
            # With TLS 1.3 a session comes after the handshake: with the answer at the latest.
            secured.sendall(request)
            secured.recv(65536)
            cipher = secured.cipher()
            seen = {
                "version": secured.version(),
                "cipher": cipher[0] if cipher else None,
                "resumed": bool(secured.session_reused),
            }
            session = secured.session
    return seen


def main() -> int:
    """Read the order from stdin, print one line; exit status."""
    sys.stdout.write(json.dumps(shake(**json.load(sys.stdin))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
