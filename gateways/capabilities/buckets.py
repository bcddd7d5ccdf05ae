"""S3: what is set for a bucket (versions, locks, lifecycle, tags), and encryption."""

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
from weighbridge.gateways.capabilities.session import REFUSES_FROM, S3Session, accepted, preparing

_RETAINED: Final = timedelta(seconds=60)
_SSE: Final = "x-amz-server-side-encryption"

_buckets = partial(capability, "s3", "buckets")
_encryption = partial(capability, "s3", "encryption")


@_buckets("Versions", "put_bucket_versioning, PUT twice, GET ?versionId")
def versions(store: S3Session) -> Answer:
    """Both versions can be read."""
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
def delete_marker(store: S3Session) -> Answer:
    """A deleted object is hidden, its version is kept, and both are listed."""
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
def retention(store: S3Session) -> Answer:
    """A version cannot be deleted before its time."""
    at = _lockable(store)
    kept = {"Mode": "GOVERNANCE", "RetainUntilDate": datetime.now(UTC) + _RETAINED}
    store.ask("put_object_retention", **at, Retention=kept)
    return _locked(store, at)


@_buckets("Object lock: legal hold", "a bucket with lock, put_object_legal_hold")
def legal_hold(store: S3Session) -> Answer:
    """A version cannot be deleted until the hold is lifted."""
    at = _lockable(store)
    store.ask("put_object_legal_hold", **at, LegalHold={"Status": "ON"})
    try:
        return _locked(store, at)
    finally:
        store.ask("put_object_legal_hold", **at, LegalHold={"Status": "OFF"})


@_buckets("Lifecycle", "put and get_bucket_lifecycle_configuration")
def lifecycle(store: S3Session) -> Answer:
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
def bucket_tags(store: S3Session) -> Answer:
    """They are read back."""
    tags = [{"Key": "colour", "Value": "red"}]
    kept = store.set_bucket(store.fresh_bucket(), "tagging", Tagging={"TagSet": tags})
    if kept["TagSet"] != tags:
        raise Wrong(f"accepted, but {kept['TagSet']} is read back", status=200)
    return works(status=200)


@_encryption("Bucket encryption", "put and get_bucket_encryption")
def bucket_encryption(store: S3Session) -> Answer:
    """The rule is read back, and objects say that they are encrypted."""
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    bucket = store.fresh_bucket()
    store.set_bucket(bucket, "encryption", ServerSideEncryptionConfiguration=rules)
    key = store.new()
    answer = accepted(store.send("PUT", key, "", b"body", bucket=bucket))
    return _encrypted(store, key, bucket, answer.status)


@_encryption("SSE-S3", "PUT with x-amz-server-side-encryption: AES256, HEAD")
def sse_s3(store: S3Session) -> Answer:
    """The object says that it is encrypted."""
    key, answer = store.write(b"body", {_SSE: "AES256"})
    return _encrypted(store, key, store.bucket, answer.status)


@_encryption("SSE-C", "PUT with a key, GET with it, without and with another")
def sse_c(store: S3Session) -> Answer:
    """The object can be read with its key alone."""
    body, key, secret = os.urandom(1000), store.new(), os.urandom(32)
    answer = store.send("PUT", key, body=body, headers=_key(secret))
    if answer.status >= REFUSES_FROM and store.read(key) is not None:
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
    """Where a version is that can be locked. Raises Refused, Wrong or Unknown."""
    bucket = store.new_bucket(versions=True, ObjectLockEnabledForBucket=True)
    version = _put(store, bucket, b"locked")
    if not version:
        raise Wrong("a bucket with lock was made, but its objects have no versions", status=200)
    return {"Bucket": bucket, "Key": "object-1", "VersionId": version}


def _locked(store: S3Session, at: dict[str, Any]) -> Answer:
    """Try to delete a version that is locked. Raises Wrong or Unknown."""
    try:
        store.ask("delete_object", **at)
    except Refused as refused:
        if store.ask("get_object", **at)["Body"].read() != b"locked":
            raise Unknown("the locked version cannot be read") from None
        return works(status=refused.status)
    raise Wrong("the locked version was deleted", status=200)
