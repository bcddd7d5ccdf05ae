"""What a gateway that already runs tells of itself to anybody: its server's name, its certificate.
One request, no credentials.

As a program (`python -m weighbridge.gateways.existing.look`, on the client host): reads
`{"endpoints": [...]}` from stdin, prints one JSON line for each: `{"status": n, "server": text,
"tls": text}`, or `{"silent": why}`.
"""

from __future__ import annotations

import http.client
import json
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from weighbridge.gateways.exchange import Wire, in_words

NAMES = 4
"""Names of a certificate that are told at most."""


def look(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """What an endpoint answers to a GET of its URL by nobody."""
    place = urlsplit(endpoint["url"])
    # A certificate of virtual hosts may be for those alone.
    before = "wb-check." if endpoint["addressing"] == "virtual" else ""
    try:
        wire = Wire(place.scheme, before + place.netloc, endpoint["ca_file"])
        try:
            wire.connect()
            tls = _tls(wire)
            answer = wire("GET", place.path or "/", b"", {})
        finally:
            wire.close()
    except (OSError, http.client.HTTPException) as error:
        return {"silent": f"{before}{place.hostname}: {in_words(error)}"}
    return {"status": answer.status, "server": answer.headers.get("server", ""), "tls": tls}


def _tls(wire: Wire) -> str:
    socket = wire.secured()
    if socket is None:
        return ""
    certificate: Mapping[str, Any] = socket.getpeercert() or {}
    names = [value for _, value in certificate.get("subjectAltName", ())]
    more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    cipher = socket.cipher()
    subject, issuer = _name(certificate.get("subject", ())), _name(certificate.get("issuer", ()))
    return (
        f"{socket.version()}, {cipher[0] if cipher else 'no cipher'}; certificate {subject} for "
        f"{', '.join(names[:NAMES])}{more}, "
        f"signed by {issuer}, until {certificate.get('notAfter')}"
    )


def _name(parts: Any) -> str:
    words = {key: value for part in parts for key, value in part}
    return str(words.get("commonName") or words.get("organizationName") or "(without a name)")


def main() -> int:
    """Read the order from stdin, tell of each endpoint; exit status."""
    for endpoint in json.load(sys.stdin)["endpoints"]:
        sys.stdout.write(json.dumps(look(endpoint)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
