"""Where the engine's requests go when there are several endpoints."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from weighbridge.common.endpoint import MOST_ENDPOINTS
from weighbridge.common.errors import DriverError


@dataclass(frozen=True)
class EnginePlace:
    """One of several endpoints, as the engine gets it: the name is for results, `address` is where
    connections go, if not to the first address of `host`.
    """

    name: str
    host: str
    port: int
    address: str | None = None


def addresses_of(host: str, port: int) -> tuple[str, ...]:
    """All addresses of a name, each once, in the order of their digits, which is the same in every
    process. Raises DriverError when it has none, or more than may be used.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except OSError as error:
        raise DriverError(f"{host}: {getattr(error, 'strerror', None) or error}") from error
    addresses = {ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found}
    if len(addresses) > MOST_ENDPOINTS:
        raise DriverError(
            f"{host} has {len(addresses)} addresses; at most {MOST_ENDPOINTS} are used"
        )
    return tuple(str(one) for one in sorted(addresses, key=lambda one: (one.version, int(one))))
