"""Swift: large objects, static and dynamic."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Final

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.s3_objects import one_range
from weighbridge.gateways.capabilities.session import accepted, how_it_differs, preparing
from weighbridge.gateways.capabilities.swift_session import SwiftSession

_SEGMENT_BYTES: Final = 1000


@capability("swift", "large objects", "SLO", asks="PUT ?multipart-manifest=put, GET")
def slo(store: SwiftSession) -> Answer:
    """The object is its segments, one after the other."""
    key, segments, status = _slo(store)
    store.expect(key, b"".join(segments), status)
    return works(status=status)


@capability("swift", "large objects", "SLO by range", asks="GET with Range over both segments")
def slo_range(store: SwiftSession) -> Answer:
    """206 with bytes of both."""
    key, segments, _ = _slo(store)
    return _range(store, key, b"".join(segments))


@capability(
    "swift", "large objects", "A wrong segment ETag is refused", asks="the same with a wrong etag"
)
def slo_wrong_etag(store: SwiftSession) -> Answer:
    """400, and there is no object."""
    _slo(store)
    names, segments = _segments(store)
    rows = _rows(store, names, segments)
    rows[1]["etag"] = hashlib.md5(b"other", usedforsecurity=False).hexdigest()
    key = store.new()
    answer = store.send("PUT", key, "multipart-manifest=put", json.dumps(rows).encode())
    store.refused(answer, key, None, "a wrong segment ETag")
    return works(status=answer.status)


@capability("swift", "large objects", "SLO manifest", asks="GET ?multipart-manifest=get")
def slo_manifest(store: SwiftSession) -> Answer:
    """The manifest names both segments."""
    key, segments, _ = _slo(store)
    answer = accepted(store.send("GET", key, "multipart-manifest=get"))
    if answer.body == b"".join(segments):
        raise Wrong("ignored: the object came", status=answer.status)
    if answer.body.count(b'"name"') != len(segments):
        text = answer.body[:40].decode(errors="replace")
        raise Wrong(f"it does not name the segments: {text!r}", status=answer.status)
    return works(status=answer.status)


@capability("swift", "large objects", "SLO by part number", asks="GET ?part-number=2")
def slo_part_number(store: SwiftSession) -> Answer:
    """The bytes of one segment."""
    key, segments, _ = _slo(store)
    answer = accepted(store.send("GET", key, "part-number=2"))
    if answer.body == b"".join(segments):
        raise Wrong("ignored: the complete object came", status=answer.status)
    if answer.body != segments[1]:
        raise Wrong(how_it_differs(answer.body, segments[1]), status=answer.status)
    return works(status=answer.status)


@capability(
    "swift", "large objects", "Delete an SLO's segments", asks="DELETE ?multipart-manifest=delete"
)
def slo_delete(store: SwiftSession) -> Answer:
    """The object and its segments are gone."""
    names, segments = _segments(store)
    key, _ = _manifest(store, names, segments)
    answer = accepted(store.send("DELETE", key, "multipart-manifest=delete"))
    left = [name for name in (key, *names) if store.read(name) is not None]
    if left:
        raise Wrong(f"{len(left)} of {len(names) + 1} objects are left", status=answer.status)
    return works(status=answer.status)


@capability("swift", "large objects", "DLO", asks="PUT with X-Object-Manifest, GET")
def dlo(store: SwiftSession) -> Answer:
    """The object is all that has its prefix."""
    key, whole, status = _dlo(store)
    store.expect(key, whole, status)
    return works(status=status)


@capability("swift", "large objects", "DLO by range", asks="GET with Range over both segments")
def dlo_range(store: SwiftSession) -> Answer:
    """206 with bytes of both."""
    key, whole, _ = _dlo(store)
    return _range(store, key, whole)


def _segments(store: SwiftSession) -> tuple[list[str], list[bytes]]:
    segments = [os.urandom(_SEGMENT_BYTES), os.urandom(_SEGMENT_BYTES)]
    return [store.put(segment) for segment in segments], segments


def _rows(store: SwiftSession, names: list[str], segments: list[bytes]) -> list[dict[str, object]]:
    return [
        {
            "path": f"/{store.bucket}/{name}",
            "etag": hashlib.md5(segment, usedforsecurity=False).hexdigest(),
            "size_bytes": len(segment),
        }
        for name, segment in zip(names, segments, strict=True)
    ]


def _manifest(store: SwiftSession, names: list[str], segments: list[bytes]) -> tuple[str, int]:
    key = store.new()
    rows = json.dumps(_rows(store, names, segments)).encode()
    answer = accepted(store.send("PUT", key, "multipart-manifest=put", rows))
    if store.read(key) == rows:
        raise Wrong("ignored: the manifest was stored as the object", status=answer.status)
    return key, answer.status


def _slo(store: SwiftSession) -> tuple[str, list[bytes], int]:
    names, segments = _segments(store)
    key, status = _manifest(store, names, segments)
    return key, segments, status


def _dlo(store: SwiftSession) -> tuple[str, bytes, int]:
    """A dynamic large object. Its segments' names are those of runs, with a prefix of their own."""
    prefix, segments = f"written-{store.new()}-", (os.urandom(1000), os.urandom(1000))
    with preparing():
        for number, segment in enumerate(segments):
            accepted(store.send("PUT", f"{prefix}{number}", "", segment))
    key = store.new()
    manifest = {"X-Object-Manifest": f"{store.bucket}/{prefix}"}
    answer = accepted(store.send("PUT", key, headers=manifest))
    whole = b"".join(segments)
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty", status=answer.status)
    return key, whole, answer.status


def _range(store: SwiftSession, key: str, whole: bytes) -> Answer:
    answer = accepted(store.send("GET", key, headers={"Range": "bytes=900-1099"}))
    return one_range(answer, whole, slice(900, 1100), f"bytes 900-1099/{len(whole)}")
