"""Swift: large objects, many objects in one request, versions, links and quotas."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.digests import md5_of
from weighbridge.gateways.capabilities.objects import one_range
from weighbridge.gateways.capabilities.session import (
    REFUSES_FROM,
    SwiftSession,
    accepted,
    expect_part,
    preparing,
)

_SEGMENT_BYTES: Final = 1000
_FIRST: Final = b"the first content"
_SECOND: Final = b"the second content!"

_large = partial(capability, "swift", "large objects")
_bulk = partial(capability, "swift", "bulk")
_versions = partial(capability, "swift", "versions")


class LargeObject(NamedTuple):
    """A large object that was accepted with `status`; its segments are objects, too."""

    key: str
    segments: dict[str, bytes]
    status: int

    @property
    def whole(self) -> bytes:
        """Its content."""
        return b"".join(self.segments.values())


def _segments(store: SwiftSession) -> dict[str, bytes]:
    segments = (os.urandom(_SEGMENT_BYTES), os.urandom(_SEGMENT_BYTES))
    return {store.put(segment): segment for segment in segments}


def _manifest(store: SwiftSession, segments: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"path": f"/{store.bucket}/{name}", "etag": md5_of(segment), "size_bytes": len(segment)}
        for name, segment in segments.items()
    ]


def _slo(store: SwiftSession) -> LargeObject:
    """A static large object. Raises Refused, Wrong or Unknown."""
    segments = _segments(store)
    key, manifest = store.new(), json.dumps(_manifest(store, segments)).encode()
    answer = accepted(store.send("PUT", key, "multipart-manifest=put", manifest))
    if store.read(key) == manifest:
        raise Wrong("ignored: the manifest was stored as the object", status=answer.status)
    return LargeObject(key, segments, answer.status)


def _dlo(store: SwiftSession) -> LargeObject:
    """A dynamic large object. Its segments' names are those of runs, with a prefix of their own.
    Raises Refused, Wrong or Unknown.
    """
    prefix = f"written-{store.new()}-"
    segments = {f"{prefix}{number}": os.urandom(_SEGMENT_BYTES) for number in range(2)}
    with preparing():
        for name, segment in segments.items():
            accepted(store.send("PUT", name, "", segment))
    key, manifest = store.new(), {"X-Object-Manifest": f"{store.bucket}/{prefix}"}
    answer = accepted(store.send("PUT", key, headers=manifest))
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty", status=answer.status)
    return LargeObject(key, segments, answer.status)


def _whole(write: Callable[[SwiftSession], LargeObject], store: SwiftSession) -> Answer:
    large = write(store)
    return store.expect(large.key, large.whole, large.status)


def _range(write: Callable[[SwiftSession], LargeObject], store: SwiftSession) -> Answer:
    large = write(store)
    answer = store.send("GET", large.key, headers={"Range": "bytes=900-1099"})
    return one_range(answer, large.whole, first=900, end=1100)


_OVER_BOTH: Final = "GET with Range over both segments"
SLO: Final = (
    _large("SLO", "PUT ?multipart-manifest=put, GET", key="slo")(partial(_whole, _slo)),
    _large("SLO by range", _OVER_BOTH, key="slo-range")(partial(_range, _slo)),
)


@_large("A wrong segment ETag is refused", "the same with a wrong etag")
def slo_wrong_etag(store: SwiftSession) -> Answer:
    """400, and there is no object."""
    _slo(store)
    rows = _manifest(store, _segments(store))
    rows[1]["etag"] = md5_of(b"other")
    key = store.new()
    answer = store.send("PUT", key, "multipart-manifest=put", json.dumps(rows).encode())
    return store.refused(answer, key, None, "a wrong segment ETag")


@_large("SLO manifest", "GET ?multipart-manifest=get")
def slo_manifest(store: SwiftSession) -> Answer:
    """The manifest names both segments."""
    large = _slo(store)
    answer = accepted(store.send("GET", large.key, "multipart-manifest=get"))
    if answer.body == large.whole:
        raise Wrong("ignored: the object came", status=answer.status)
    if answer.body.count(b'"name"') != len(large.segments):
        text = answer.body[:40].decode(errors="replace")
        raise Wrong(f"it does not name the segments: {text!r}", status=answer.status)
    return works(status=answer.status)


@_large("SLO by part number", "GET ?part-number=2")
def slo_part_number(store: SwiftSession) -> Answer:
    """The bytes of one segment."""
    large = _slo(store)
    answer = store.send("GET", large.key, "part-number=2")
    expect_part(answer, large.whole, large.whole[_SEGMENT_BYTES:])
    return works(status=answer.status)


@_large("Delete an SLO's segments", "DELETE ?multipart-manifest=delete")
def slo_delete(store: SwiftSession) -> Answer:
    """The object and its segments are gone."""
    large = _slo(store)
    answer = accepted(store.send("DELETE", large.key, "multipart-manifest=delete"))
    return store.gone((large.key, *large.segments), answer.status)


DLO: Final = (
    _large("DLO", "PUT with X-Object-Manifest, GET", key="dlo")(partial(_whole, _dlo)),
    _large("DLO by range", _OVER_BOTH, key="dlo-range")(partial(_range, _dlo)),
)


@_bulk("Bulk delete", "POST ?bulk-delete to the account")
def bulk_delete(store: SwiftSession) -> Answer:
    """The objects are gone. Without `bulk` in its pipeline Swift answers 2xx and does nothing."""
    names = [store.put(_FIRST), store.put(_SECOND)]
    body = "".join(f"{store.bucket}/{name}\n" for name in names).encode()
    kind = {"Content-Type": "text/plain", "Accept": "application/json"}
    answer = accepted(store.account("POST", "bulk-delete", body, kind))
    return store.gone(names, answer.status)


@_bulk("Archive of objects", "PUT ?extract-archive=tar, GET")
def extract_archive(store: SwiftSession) -> Answer:
    """Its members are objects."""
    names, tar = [store.new(), store.new()], io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(_FIRST)
            archive.addfile(member, io.BytesIO(_FIRST))
    answer = accepted(store.send("PUT", "", "extract-archive=tar", tar.getvalue()))
    there = sum(store.read(name) == _FIRST for name in names)
    if there < len(names):
        raise Wrong(f"{there} of {len(names)} members are objects", status=answer.status)
    return works(status=answer.status)


@_versions("X-Versions-Location", "a container with it, PUT twice")
def versions_location(store: SwiftSession) -> Answer:
    """The old content moves to the container of versions, and DELETE brings it back."""
    _, bucket = _archiving(store, "X-Versions-Location")
    status = accepted(store.send("DELETE", "object-1", bucket=bucket)).status
    store.expect("object-1", _FIRST, status, bucket=bucket)
    accepted(store.send("DELETE", "object-1", bucket=bucket))
    return works(status=status)


@_versions("X-History-Location", "a container with it, PUT twice")
def history_location(store: SwiftSession) -> Answer:
    """The old content moves to the container of versions."""
    archive, _ = _archiving(store, "X-History-Location")
    page = accepted(store.send("GET", "", bucket=archive))
    if not page.body.strip():
        raise Wrong("ignored: the old content is gone", status=200)
    return works(status=page.status)


@_versions("X-Versions-Enabled", "a container with it, GET ?versions")
def versions_enabled(store: SwiftSession) -> Answer:
    """Both versions are listed."""
    bucket = store.new_bucket({"X-Versions-Enabled": "true"})
    _write_twice(store, bucket)
    page = accepted(store.send("GET", "", "versions&format=json", bucket=bucket))
    if page.body.count(b'"version_id"') < 2:
        raise Wrong("ignored: two versions are not listed", status=page.status)
    return works(status=page.status)


@_versions("Symlink", "PUT with X-Symlink-Target, GET")
def symlink(store: SwiftSession) -> Answer:
    """A GET of the link brings the object."""
    target, key = store.put(_FIRST), store.new()
    link = {"X-Symlink-Target": f"{store.bucket}/{target}"}
    answer = accepted(store.send("PUT", key, headers=link))
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty", status=answer.status)
    return store.expect(key, _FIRST, answer.status)


@_versions("Quota of a container", "X-Container-Meta-Quota-Bytes, PUT")
def quota(store: SwiftSession) -> Answer:
    """413 for more than the quota; a container may hear late of what it holds."""
    bucket = store.new_bucket({"X-Container-Meta-Quota-Bytes": "10"})
    answer = store.send("PUT", "object-1", "", _FIRST, bucket=bucket)
    if answer.status < REFUSES_FROM:
        raise Wrong("17 bytes are accepted where 10 are allowed", status=answer.status)
    if answer.status not in (403, 413):
        accepted(answer)
    if store.read("object-1", bucket=bucket) is not None:
        raise Wrong("refused, but stored", status=answer.status)
    return works(status=answer.status)


def _archiving(store: SwiftSession, header: str) -> tuple[str, str]:
    """The container of versions, and one whose old content moves there, written twice."""
    archive = store.fresh_bucket()
    bucket = store.new_bucket({header: archive})
    _write_twice(store, bucket)
    return archive, bucket


def _write_twice(store: SwiftSession, bucket: str) -> None:
    for body in (_FIRST, _SECOND):
        accepted(store.send("PUT", "object-1", "", body, bucket=bucket))
    store.expect("object-1", _SECOND, 201, bucket=bucket)
