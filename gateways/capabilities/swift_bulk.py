"""Swift: many objects in one request, versions, links and quotas."""

from __future__ import annotations

import io
import tarfile
from typing import Final

from weighbridge.gateways.capabilities.capability import Answer, Wrong, capability, works
from weighbridge.gateways.capabilities.session import accepted, preparing
from weighbridge.gateways.capabilities.swift_session import SwiftSession

_FIRST: Final = b"the first content"
_SECOND: Final = b"the second content!"


@capability("swift", "bulk", "Bulk delete", asks="POST ?bulk-delete to the account")
def bulk_delete(store: SwiftSession) -> Answer:
    """The objects are gone. Without `bulk` in its pipeline Swift answers 2xx and does nothing."""
    names = [store.put(_FIRST), store.put(_SECOND)]
    body = "".join(f"{store.bucket}/{name}\n" for name in names).encode()
    kind = {"Content-Type": "text/plain", "Accept": "application/json"}
    answer = accepted(store.account("POST", "bulk-delete", body, kind))
    left = [name for name in names if store.read(name) is not None]
    if left:
        raise Wrong(f"{len(left)} of {len(names)} objects are left", status=answer.status)
    return works(status=answer.status)


@capability("swift", "bulk", "Archive of objects", asks="PUT ?extract-archive=tar, GET")
def extract_archive(store: SwiftSession) -> Answer:
    """Its members are objects."""
    names, made = [store.new(), store.new()], io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(_FIRST)
            archive.addfile(member, io.BytesIO(_FIRST))
    answer = accepted(store.send("PUT", "", "extract-archive=tar", made.getvalue()))
    found = [name for name in names if store.read(name) == _FIRST]
    if len(found) < len(names):
        raise Wrong(f"{len(found)} of {len(names)} members are objects", status=answer.status)
    return works(status=answer.status)


@capability("swift", "versions", "X-Versions-Location", asks="a container with it, PUT twice")
def versions_location(store: SwiftSession) -> Answer:
    """The old content moves to the container of versions, and DELETE brings it back."""
    with preparing():
        archive = store.new_bucket()
    bucket = store.new_bucket({"X-Versions-Location": archive})
    _write_twice(store, bucket)
    status = accepted(store.send("DELETE", "object-1", bucket=bucket)).status
    store.expect("object-1", _FIRST, status, bucket=bucket)
    accepted(store.send("DELETE", "object-1", bucket=bucket))
    return works(status=status)


@capability("swift", "versions", "X-History-Location", asks="a container with it, PUT twice")
def history_location(store: SwiftSession) -> Answer:
    """The old content moves to the container of versions."""
    with preparing():
        archive = store.new_bucket()
    bucket = store.new_bucket({"X-History-Location": archive})
    _write_twice(store, bucket)
    page = accepted(store.send("GET", "", bucket=archive))
    if not page.body.strip():
        raise Wrong("ignored: the old content is gone", status=200)
    return works(status=page.status)


@capability("swift", "versions", "X-Versions-Enabled", asks="a container with it, GET ?versions")
def versions_enabled(store: SwiftSession) -> Answer:
    """Both versions are listed."""
    bucket = store.new_bucket({"X-Versions-Enabled": "true"})
    _write_twice(store, bucket)
    page = accepted(store.send("GET", "", "versions&format=json", bucket=bucket))
    if page.body.count(b'"version_id"') < 2:
        raise Wrong("ignored: two versions are not listed", status=page.status)
    return works(status=page.status)


@capability("swift", "versions", "Symlink", asks="PUT with X-Symlink-Target, GET")
def symlink(store: SwiftSession) -> Answer:
    """A GET of the link brings the object."""
    target, key = store.put(_FIRST), store.new()
    link = {"X-Symlink-Target": f"{store.bucket}/{target}"}
    answer = accepted(store.send("PUT", key, headers=link))
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty", status=answer.status)
    store.expect(key, _FIRST, answer.status)
    return works(status=answer.status)


@capability("swift", "versions", "Quota of a container", asks="X-Container-Meta-Quota-Bytes, PUT")
def quota(store: SwiftSession) -> Answer:
    """413 for more than the quota; a container may hear late of what it holds."""
    bucket = store.new_bucket({"X-Container-Meta-Quota-Bytes": "10"})
    answer = store.send("PUT", "object-1", "", _FIRST, bucket=bucket)
    if answer.status < 400:
        raise Wrong("17 bytes are accepted where 10 are allowed", status=answer.status)
    if answer.status not in (403, 413):
        accepted(answer)
    if store.read("object-1", bucket=bucket) is not None:
        raise Wrong("refused, but stored", status=answer.status)
    return works(status=answer.status)


def _write_twice(store: SwiftSession, bucket: str) -> None:
    for body in (_FIRST, _SECOND):
        accepted(store.send("PUT", "object-1", "", body, bucket=bucket))
    store.expect("object-1", _SECOND, 201, bucket=bucket)
