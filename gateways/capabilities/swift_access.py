"""Swift: signed URLs, forms, and access without a token."""

from __future__ import annotations

import hmac
import os
import time
from functools import partial
from typing import Final

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.forms import form
from weighbridge.gateways.capabilities.session import accepted
from weighbridge.gateways.capabilities.swift_session import SwiftSession

_VALID_S: Final = 600


@capability("swift", "access", "A request without a token is refused", asks="GET without a token")
def anonymous_refused(store: SwiftSession) -> Answer:
    """401 or 403."""
    key = store.put(b"private")
    answer = store.deliver("GET", store.path_of(key))
    if answer.status < 400:
        raise Wrong(f"{len(answer.body)} bytes of a private object came", status=answer.status)
    if answer.status not in (401, 403, 404):
        accepted(answer)
    return works(status=answer.status)


@capability("swift", "access", "Anonymous read", asks="X-Container-Read: .r:*, GET without a token")
def anonymous_read(store: SwiftSession) -> Answer:
    """Everybody reads objects of the container."""
    bucket = store.new_bucket({"X-Container-Read": ".r:*"})
    key = store.put(b"public", bucket=bucket)
    answer = store.deliver("GET", store.path_of(key, bucket))
    if answer.status >= 400 or answer.body != b"public":
        raise Wrong("accepted, but GET without a token is refused", status=answer.status)
    return works(status=answer.status)


def _tempurl(store: SwiftSession, algorithm: str) -> Answer:
    body = os.urandom(1000)
    answer = accepted(store.deliver("GET", _signed(store, "GET", store.put(body), algorithm)))
    if answer.body != body:
        raise Wrong("other bytes came than were written", status=answer.status)
    return works(status=answer.status)


TEMPORARY_URLS: Final = tuple(
    capability(
        "swift",
        "access",
        f"Temp URL, {name.upper()}",
        asks=f"GET with temp_url_sig by {name.upper()}",
        key=f"tempurl-{name}",
    )(partial(_tempurl, algorithm=name))
    for name in ("sha1", "sha256", "sha512")
)


@capability("swift", "access", "Temp URL for PUT", asks="PUT with temp_url_sig by SHA1")
def tempurl_put(store: SwiftSession) -> Answer:
    """Anyone with the URL writes the object."""
    key, body = store.new(), os.urandom(1000)
    answer = accepted(store.deliver("PUT", _signed(store, "PUT", key, "sha1"), body))
    store.expect(key, body, answer.status)
    return works(status=answer.status)


@capability(
    "swift",
    "access",
    "POST form",
    asks="a form signed with the temp URL's key, by SHA1; it ends radosgw 18.2",
    dangerous=True,
)
def formpost(store: SwiftSession) -> Answer:
    """A browser uploads a file."""
    key = store.signing_key
    body, path, until = os.urandom(1000), store.path_of(""), int(time.time()) + _VALID_S
    prefix = f"written-{store.new()}-"
    path = f"{path.rstrip('/')}/{prefix}"
    text = f"{path}\n\n{10**6}\n1\n{until}"
    fields = {
        "redirect": "",
        "max_file_size": str(10**6),
        "max_file_count": "1",
        "expires": str(until),
        "signature": hmac.new(key.encode(), text.encode(), "sha1").hexdigest(),
    }
    data, kind = form(fields, body, "file1")
    answer = accepted(store.deliver("POST", path, data, {"Content-Type": kind}))
    store.expect(f"{prefix}object-1", body, answer.status)
    return works(status=answer.status)


def _signed(store: SwiftSession, method: str, name: str, algorithm: str) -> str:
    """The path of an object with a signature that makes a token needless."""
    key, path, until = store.signing_key, store.path_of(name), int(time.time()) + _VALID_S
    text = f"{method}\n{until}\n{path}".encode()
    signature = hmac.new(key.encode(), text, algorithm).hexdigest()
    return f"{path}?temp_url_sig={signature}&temp_url_expires={until}"
