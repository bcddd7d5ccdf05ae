"""What is set for a bucket or container: versions, locks, lifecycle, tags, quota; encryption."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from weighbridge.gateways.capabilities.capability import (
    Answer,
    Refused,
    Unknown,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.digests import checksum
from weighbridge.gateways.capabilities.session import S3Session, SwiftSession, accepted, preparing

_RETAINED: Final = timedelta(seconds=60)
_SSE: Final = "x-amz-server-side-encryption"
_FIRST: Final = b"the first content"
_SECOND: Final = b"the second content!"

_buckets = partial(capability, "s3", "buckets")
_encryption = partial(capability, "s3", "encryption")
_swift = partial(capability, "swift", "versions")


@_buckets("Versions", "put_bucket_versioning, PUT twice, GET ?versionId")
def _versions(store: S3Session) -> Answer:
    bucket = _versioned(store)
    first = _put(store, bucket, b"first")
    second = _put(store, bucket, b"second")
    if not first or not second or first == second:
        raise Wrong(f"versioning is set, but PUT says version {first}, {second}", status=200)
    old = accepted(store.send("GET", "object-1", f"versionId={first}", bucket=bucket))
    if old.body != b"first" or store.read("object-1", bucket=bucket) != b"second":
        raise Wrong("the old version cannot be read", status=old.status)
    return works(status=200)


@_buckets("Delete markers", "versioned DELETE, list_object_versions")
def _delete_marker(store: S3Session) -> Answer:
    bucket = _versioned(store)
    version = _put(store, bucket, b"first")
    accepted(store.send("DELETE", "object-1", bucket=bucket))
    if store.read("object-1", bucket=bucket) is not None:
        raise Wrong("the deleted object can still be read", status=200)
    page = store.ask("list_object_versions", Bucket=bucket)
    if [row.get("VersionId") for row in page.get("Versions", ())] != [version]:
        raise Wrong("the version is not listed", status=200)
    if len(page.get("DeleteMarkers", ())) != 1:
        raise Wrong("the delete marker is not listed", status=200)
    return works(status=200)


@_buckets("Object lock: retention", "a bucket with lock, put_object_retention")
def _retention(store: S3Session) -> Answer:
    at = _lockable(store)
    kept = {"Mode": "GOVERNANCE", "RetainUntilDate": datetime.now(UTC) + _RETAINED}
    store.ask("put_object_retention", **at, Retention=kept)
    return _locked(store, at)


@_buckets("Object lock: legal hold", "a bucket with lock, put_object_legal_hold")
def _legal_hold(store: S3Session) -> Answer:
    at = _lockable(store)
    store.ask("put_object_legal_hold", **at, LegalHold={"Status": "ON"})
    try:
        return _locked(store, at)
    finally:
        store.ask("put_object_legal_hold", **at, LegalHold={"Status": "OFF"})


@_buckets("Lifecycle", "put and get_bucket_lifecycle_configuration")
def _lifecycle(store: S3Session) -> Answer:
    """The rule is read back; that it is carried out takes days, and is not asked."""
    rule = {
        "ID": "wb",
        "Status": "Enabled",
        "Filter": {"Prefix": "object-"},
        "Expiration": {"Days": 3},
    }
    config = {"LifecycleConfiguration": {"Rules": [rule]}}
    kept = store.set_bucket(store.fresh_bucket(), "lifecycle_configuration", **config)
    if [row.get("Expiration", {}).get("Days") for row in kept["Rules"]] != [3]:
        raise Wrong("accepted, but other rules are read back", status=200)
    return works(status=200)


@_buckets("Tags of a bucket", "put_bucket_tagging, get_bucket_tagging")
def _bucket_tags(store: S3Session) -> Answer:
    tags = [{"Key": "colour", "Value": "red"}]
    kept = store.set_bucket(store.fresh_bucket(), "tagging", Tagging={"TagSet": tags})
    if kept["TagSet"] != tags:
        raise Wrong(f"accepted, but {kept['TagSet']} is read back", status=200)
    return works(status=200)


@_encryption("Bucket encryption", "put and get_bucket_encryption")
def _bucket_encryption(store: S3Session) -> Answer:
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    bucket = store.fresh_bucket()
    store.set_bucket(bucket, "encryption", ServerSideEncryptionConfiguration=rules)
    key = store.new()
    answer = accepted(store.send("PUT", key, "", b"body", bucket=bucket))
    return _encrypted(store, key, bucket, answer.status)


@_encryption("SSE-S3", "PUT with x-amz-server-side-encryption: AES256, HEAD")
def _sse_s3(store: S3Session) -> Answer:
    key, answer = store.write(b"body", {_SSE: "AES256"})
    return _encrypted(store, key, store.bucket, answer.status)


@_encryption("SSE-C", "PUT with a key, GET with it, without and with another")
def _sse_c(store: S3Session) -> Answer:
    body, key, secret = os.urandom(1000), store.new(), os.urandom(32)
    answer = store.send("PUT", key, body=body, headers=_key(secret))
    if answer.status >= 400 and store.read(key) is not None:
        raise Wrong("refused, but stored", status=answer.status)
    accepted(answer)
    if store.send("GET", key).body == body:
        raise Wrong("stored unencrypted: it is readable without the key", status=answer.status)
    if store.send("GET", key, headers=_key(os.urandom(32))).body == body:
        raise Wrong("it is readable with another key", status=answer.status)
    if accepted(store.send("GET", key, headers=_key(secret))).body != body:
        raise Wrong("other bytes are read than were sent", status=answer.status)
    return works(status=answer.status)


def _key(secret: bytes) -> dict[str, str]:
    return {
        f"{_SSE}-customer-algorithm": "AES256",
        f"{_SSE}-customer-key": base64.b64encode(secret).decode(),
        f"{_SSE}-customer-key-MD5": checksum("md5", secret),
    }


def _encrypted(store: S3Session, key: str, bucket: str, status: int) -> Answer:
    head = accepted(store.send("HEAD", key, bucket=bucket))
    encryption = head.headers.get(_SSE)
    if encryption != "AES256":
        what = f"accepted, but HEAD says of encryption: {encryption or 'nothing'}"
        raise Wrong(what, status=status)
    return works("as HEAD says; what is on disk is not looked at", status=status)


def _versioned(store: S3Session) -> str:
    with preparing():
        bucket = store.new_bucket(versions=True)
    kept = store.set_bucket(bucket, "versioning", VersioningConfiguration={"Status": "Enabled"})
    if kept.get("Status") != "Enabled":
        raise Wrong("accepted, but versioning is not enabled", status=200)
    return bucket


def _put(store: S3Session, bucket: str, body: bytes) -> str:
    answer = accepted(store.send("PUT", "object-1", "", body, bucket=bucket))
    return answer.headers.get("x-amz-version-id", "")


def _lockable(store: S3Session) -> dict[str, Any]:
    bucket = store.new_bucket(versions=True, ObjectLockEnabledForBucket=True)
    version = _put(store, bucket, b"locked")
    if not version:
        raise Wrong("a bucket with lock was made, but its objects have no versions", status=200)
    return {"Bucket": bucket, "Key": "object-1", "VersionId": version}


def _locked(store: S3Session, at: dict[str, Any]) -> Answer:
    try:
        store.ask("delete_object", **at)
    except Refused as refused:
        if store.ask("get_object", **at)["Body"].read() != b"locked":
            raise Unknown("the locked version cannot be read") from None
        return works(status=refused.status)
    raise Wrong("the locked version was deleted", status=200)


@_swift("X-Versions-Location", "a container with it, PUT twice")
def _versions_location(store: SwiftSession) -> Answer:
    """The old content moves to the container of versions, and DELETE brings it back."""
    _, bucket = _archiving(store, "X-Versions-Location")
    status = accepted(store.send("DELETE", "object-1", bucket=bucket)).status
    store.expect("object-1", _FIRST, status, bucket=bucket)
    accepted(store.send("DELETE", "object-1", bucket=bucket))
    return works(status=status)


@_swift("X-History-Location", "a container with it, PUT twice")
def _history_location(store: SwiftSession) -> Answer:
    archive, _ = _archiving(store, "X-History-Location")
    page = accepted(store.send("GET", "", bucket=archive))
    if not page.body.strip():
        raise Wrong("ignored: the old content is gone", status=200)
    return works(status=page.status)


@_swift("X-Versions-Enabled", "a container with it, GET ?versions")
def _versions_enabled(store: SwiftSession) -> Answer:
    bucket = store.new_bucket({"X-Versions-Enabled": "true"})
    _write_twice(store, bucket)
    page = accepted(store.send("GET", "", "versions&format=json", bucket=bucket))
    if page.body.count(b'"version_id"') < 2:
        raise Wrong("ignored: two versions are not listed", status=page.status)
    return works(status=page.status)


@_swift("Symlink", "PUT with X-Symlink-Target, GET")
def _symlink(store: SwiftSession) -> Answer:
    target, key = store.put(_FIRST), store.new()
    link = {"X-Symlink-Target": f"{store.bucket}/{target}"}
    answer = accepted(store.send("PUT", key, headers=link))
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty", status=answer.status)
    return store.expect(key, _FIRST, answer.status)


@_swift("Quota of a container", "X-Container-Meta-Quota-Bytes, PUT")
def _quota(store: SwiftSession) -> Answer:
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


def _archiving(store: SwiftSession, header: str) -> tuple[str, str]:
    archive = store.fresh_bucket()
    bucket = store.new_bucket({header: archive})
    _write_twice(store, bucket)
    return archive, bucket


def _write_twice(store: SwiftSession, bucket: str) -> None:
    for body in (_FIRST, _SECOND):
        accepted(store.send("PUT", "object-1", "", body, bucket=bucket))
    store.expect("object-1", _SECOND, 201, bucket=bucket)
