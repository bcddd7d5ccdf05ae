"""What a running gateway shows to anyone in one request: its server name and its certificate.

As a program (`python -m weighbridge.gateways.existing.look`, on the client host): reads
`{"endpoints": [...]}` from stdin, prints one JSON line for each: `{"status": n, "server": text,
"tls": text, "addresses": [...]}`, or `{"silent": reason}`. Addresses are those of a name, at most
64.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from weighbridge.common import plain_xml
from weighbridge.common.bounded_http import in_words
from weighbridge.common.errors import UsageError
from weighbridge.common.exchange import HttpAnswer, Wire

MOST_ADDRESSES = 64
NAMES = 4
"""At most so many names of a certificate are shown."""

_P521 = bytes.fromhex("06052b81040023")
"""The name of the curve in a certificate (RFC 5480, section 2.1.1.1)."""
_OTHER_KEY = "which the engine's TLS does not take: use P-256, P-384 or RSA"
_WANTS_TLS = re.compile(rb"HTTPS (port|server)|SSL-enabled server port", re.IGNORECASE)
"""What nginx, Go's servers and Apache answer to plain HTTP on such a port."""


def look(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of an endpoint to a GET of its URL without credentials."""
    place = urlsplit(endpoint["url"])
    # A certificate for virtual hosts may be valid for these only.
    before = "wb-check." if endpoint["addressing"] == "virtual" else ""
    host = before + (place.hostname or "")
    try:
        wire = Wire(place.scheme, before + place.netloc, endpoint["ca_file"])
        try:
            wire.connect()
            secured = wire.secured()
            if secured and _P521 in (secured.getpeercert(binary_form=True) or b""):
                return {"silent": f"{host}: its certificate has a key of P-521, {_OTHER_KEY}"}
            tls = _tls(secured)
            answer = wire("GET", place.path or "/", b"", {})
            resolved = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        finally:
            wire.close()
    except UsageError as error:
        return {"silent": str(error)}
    except (OSError, http.client.HTTPException) as error:
        return {"silent": f"{host}: {in_words(error)}"}
    addresses = {str(address[0]) for *_, address in resolved} - {host}
    if answer.status == http.client.BAD_REQUEST and _WANTS_TLS.search(answer.body):
        return {"silent": f"{place.hostname}: this port speaks TLS; use https://"}
    return {
        "status": answer.status,
        "limits": _limits(answer),
        "server": answer.headers.get("server", ""),
        "tls": tls,
        "addresses": sorted(addresses)[:MOST_ADDRESSES],
    }


def _limits(answer: HttpAnswer) -> str:
    said = plain_xml.error_words(answer.body)
    limits = "SlowDown" in said or "retry-after" in answer.headers
    return f"it limits requests now: {said or 'try again later'}" if limits else ""


def _tls(secured: ssl.SSLSocket | None) -> str:
    if secured is None:
        return ""
    certificate: Mapping[str, Any] = secured.getpeercert() or {}
    names = [value for _, value in certificate.get("subjectAltName", ())]
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    cipher = secured.cipher()
    subject, issuer = _name(certificate.get("subject", ())), _name(certificate.get("issuer", ()))
    return (
        f"{secured.version()}, {cipher[0] if cipher else 'no cipher'}; certificate {subject} for "
        f"{', '.join(names[:NAMES])}{more}, "
        f"signed by {issuer}, until {certificate.get('notAfter')}"
    )


def _name(parts: Any) -> str:
    words = {key: value for part in parts for key, value in part}
    return str(words.get("commonName") or words.get("organizationName") or "(without a name)")


def main() -> int:
    """Read the order from stdin, print a line for each endpoint; exit status."""
    for endpoint in json.load(sys.stdin)["endpoints"]:
        sys.stdout.write(json.dumps(look(endpoint)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
