"""The parts of a URL that requests need."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from weighbridge.common.errors import DriverError


@dataclass(frozen=True)
class UrlParts:
    """Host, port, TLS and path of a URL."""

    host: str
    port: int
    tls: bool
    path: str

    @classmethod
    def of(cls, url: str) -> UrlParts:
        """The parts of an http or https URL. Raises DriverError without a host or a valid port."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            raise DriverError(f"{url}: the port is not valid") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DriverError(f"{url}: not an http or https URL")
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))
