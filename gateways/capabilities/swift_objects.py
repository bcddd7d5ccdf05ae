"""Swift: objects, ranges, conditions, copies and metadata."""

from __future__ import annotations

import json
import os
import time
from http import HTTPStatus
from typing import Final

from weighbridge.gateways.capabilities.capability import (
    Answer,
    Unknown,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.s3_conditions import (
    NEW,
    OLD,
    OTHER_ETAG,
    conditions,
    etag,
)
from weighbridge.gateways.capabilities.s3_objects import ranges
from weighbridge.gateways.capabilities.session import accepted
from weighbridge.gateways.capabilities.swift_session import SwiftSession

SIZE_BYTES: Final = 1000
_GONE_WITHIN_S: Final = 15.0


@capability("swift", "objects", "PUT and GET", asks="PUT with its MD5 as ETag, GET")
def put(store: SwiftSession) -> Answer:
    """The object is what was sent, and so is its ETag."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    right = etag(body).strip('"')
    answer = store.stored(store.send("PUT", key, "", body, {"ETag": right}), key, body)
    if answer.headers.get("etag", "").strip('"') != right:
        raise Wrong("its ETag is not the MD5 of what was sent", status=answer.status)
    return works(status=answer.status)


@capability("swift", "objects", "A wrong ETag is refused", asks="PUT with another MD5 as ETag")
def wrong_etag(store: SwiftSession) -> Answer:
    """422."""
    key = store.new()
    answer = store.send("PUT", key, "", b"body", {"ETag": OTHER_ETAG.strip('"')})
    store.refused(answer, key, None, "a wrong ETag")
    return works(status=answer.status)


@capability("swift", "objects", "Chunked PUT", asks="PUT with Transfer-Encoding: chunked")
def chunked_put(store: SwiftSession) -> Answer:
    """HTTP's own way of a body of unknown length."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    framed = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    answer = store.send("PUT", key, "", framed, {"Transfer-Encoding": "chunked"})
    return works(status=store.stored(answer, key, body).status)


@capability("swift", "objects", "POST metadata", asks="POST with X-Object-Meta-*, HEAD")
def post_metadata(store: SwiftSession) -> Answer:
    """New metadata replaces the old, and the object stays."""
    key = store.put(OLD, {"X-Object-Meta-Old": "1"})
    answer = accepted(store.send("POST", key, headers={"X-Object-Meta-Colour": "red"}))
    headers = accepted(store.send("HEAD", key)).headers
    if headers.get("x-object-meta-colour") != "red" or "x-object-meta-old" in headers:
        raise Wrong("accepted, but other metadata is read", status=answer.status)
    store.expect(key, OLD, answer.status)
    return works(status=answer.status)


@capability("swift", "objects", "Metadata of a container", asks="POST X-Container-Meta-*, HEAD")
def container_metadata(store: SwiftSession) -> Answer:
    """It is read back; what the container had before does not count."""
    colour = store.new()
    answer = accepted(store.send("POST", "", headers={"X-Container-Meta-Colour": colour}))
    found = accepted(store.send("HEAD", "")).headers.get("x-container-meta-colour")
    if found != colour:
        raise Wrong(f"accepted, but HEAD says {found}", status=answer.status)
    return works(status=answer.status)


@capability("swift", "objects", "COPY", asks="COPY with Destination, GET")
def copy(store: SwiftSession) -> Answer:
    """The copy has the content and the metadata of the source."""
    key, target = store.put(OLD, {"X-Object-Meta-Colour": "red"}), store.new()
    answer = accepted(store.send("COPY", key, headers={"Destination": f"{store.bucket}/{target}"}))
    return _copied(store, target, answer.status)


@capability("swift", "objects", "PUT with X-Copy-From", asks="PUT with X-Copy-From, GET")
def copy_from(store: SwiftSession) -> Answer:
    """As COPY."""
    key, target = store.put(OLD, {"X-Object-Meta-Colour": "red"}), store.new()
    source = {"X-Copy-From": f"/{store.bucket}/{key}"}
    answer = accepted(store.send("PUT", target, headers=source))
    return _copied(store, target, answer.status)


@capability("swift", "objects", "X-Delete-After", asks="PUT with X-Delete-After: 1, GET until 404")
def delete_after(store: SwiftSession) -> Answer:
    """The object is gone after a second, and HEAD says when."""
    lasting = store.put(OLD, {"X-Delete-After": "86400"})
    if "x-delete-at" not in accepted(store.send("HEAD", lasting)).headers:
        raise Wrong("accepted, but HEAD says no X-Delete-At", status=200)
    key = store.put(OLD, {"X-Delete-After": "1"})
    deadline = time.monotonic() + _GONE_WITHIN_S
    while store.read(key) is not None:
        if time.monotonic() > deadline:
            raise Wrong(f"it can be read after {_GONE_WITHIN_S:.0f} s", status=200)
        time.sleep(0.2)
    return works(status=200)


RANGES: Final = ranges("swift")
CONDITIONS: Final = conditions("swift")


@capability(
    "swift", "conditions", 'Replace only: If-Match: "etag"', asks='PUT with If-Match: "etag"'
)
def put_if_match(store: SwiftSession) -> Answer:
    """An object with another ETag is left: 412."""
    key = store.put(OLD)
    answer = store.send("PUT", key, "", NEW, {"If-Match": OTHER_ETAG})
    store.refused(answer, key, OLD, "a wrong ETag")
    right = accepted(store.send("PUT", key, "", NEW, {"If-Match": etag(OLD)}))
    store.expect(key, NEW, right.status)
    return works(status=answer.status)


@capability("swift", "account", "/info", asks="GET /info")
def info(store: SwiftSession) -> Answer:
    """A JSON object that names what the store can do; RGW has it at /swift/info."""
    own = store.path_of("", "x").partition("/v1")[0]
    tried = [store.deliver("GET", path) for path in dict.fromkeys((f"{own}/info", "/info"))]
    answer = next((one for one in tried if one.status == HTTPStatus.OK), tried[0])
    accepted(answer)
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise Unknown(f"its answer is not JSON: {error}", status=answer.status) from None
    if not isinstance(found, dict) or not found:
        raise Wrong("it names nothing", status=answer.status)
    return works(", ".join(sorted(map(str, found))), status=answer.status)


def _copied(store: SwiftSession, target: str, status: int) -> Answer:
    store.expect(target, OLD, status)
    if store.send("HEAD", target).headers.get("x-object-meta-colour") != "red":
        raise Wrong("the copy lacks the metadata", status=status)
    return works(status=status)
