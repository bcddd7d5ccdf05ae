"""S3: what is set for a bucket (versions, locks, lifecycle, tags), and encryption."""

from __future__ import annotations

import base64
import hashlib
import os
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from weighbridge.gateways.capabilities.capability import (
    Answer,
    Refused,
    Unknown,
    Wrong,
    capability,
    works,
)
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import accepted, preparing

_RETAINED: Final = timedelta(seconds=60)


@capability("s3", "buckets", "Versions", asks="put_bucket_versioning, PUT twice, GET ?versionId")
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


@capability("s3", "buckets", "Delete markers", asks="versioned DELETE, list_object_versions")
def delete_marker(store: S3Session) -> Answer:
    """A deleted object is hidden, its version is kept, and both are listed."""
    bucket = _versioned(store)
    version = _put(store, bucket, b"first")
    accepted(store.send("DELETE", "object-1", bucket=bucket))
    if store.read("object-1", bucket=bucket) is not None:
        raise Wrong("the deleted object can still be read", status=200)
    page = store.ask("list_object_versions", Bucket=bucket)
    if [one.get("VersionId") for one in page.get("Versions", ())] != [version]:
        raise Wrong("the version is not listed", status=200)
    if len(page.get("DeleteMarkers", ())) != 1:
        raise Wrong("the delete marker is not listed", status=200)
    return works(status=200)


@capability(
    "s3", "buckets", "Object lock: retention", asks="a bucket with lock, put_object_retention"
)
def retention(store: S3Session) -> Answer:
    """A version cannot be deleted before its time."""
    until = datetime.now(UTC) + _RETAINED

    def lock(at: dict[str, Any]) -> None:
        kept = {"Mode": "GOVERNANCE", "RetainUntilDate": until}
        store.ask("put_object_retention", **at, Retention=kept)

    return _locked(store, lock)


@capability(
    "s3", "buckets", "Object lock: legal hold", asks="a bucket with lock, put_object_legal_hold"
)
def legal_hold(store: S3Session) -> Answer:
    """A version cannot be deleted until the hold is lifted."""
    held: list[dict[str, Any]] = []

    def hold(at: dict[str, Any]) -> None:
        store.ask("put_object_legal_hold", **at, LegalHold={"Status": "ON"})
        held.append(at)

    try:
        return _locked(store, hold)
    finally:
        for at in held:
            store.ask("put_object_legal_hold", **at, LegalHold={"Status": "OFF"})


@capability("s3", "buckets", "Lifecycle", asks="put and get_bucket_lifecycle_configuration")
def lifecycle(store: S3Session) -> Answer:
    """The rule is read back; that it is carried out takes days, and is not asked."""
    rule = {
        "ID": "wb",
        "Status": "Enabled",
        "Filter": {"Prefix": "object-"},
        "Expiration": {"Days": 3},
    }
    bucket = _fresh(store)
    store.ask(
        "put_bucket_lifecycle_configuration",
        Bucket=bucket,
        LifecycleConfiguration={"Rules": [rule]},
    )
    rules = store.ask_back("get_bucket_lifecycle_configuration", Bucket=bucket)["Rules"]
    if [one.get("Expiration", {}).get("Days") for one in rules] != [3]:
        raise Wrong("accepted, but other rules are read back", status=200)
    return works(status=200)


@capability("s3", "buckets", "Tags of a bucket", asks="put_bucket_tagging, get_bucket_tagging")
def bucket_tags(store: S3Session) -> Answer:
    """They are read back."""
    tags = [{"Key": "colour", "Value": "red"}]
    bucket = _fresh(store)
    store.ask("put_bucket_tagging", Bucket=bucket, Tagging={"TagSet": tags})
    found = store.ask_back("get_bucket_tagging", Bucket=bucket)["TagSet"]
    if found != tags:
        raise Wrong(f"accepted, but {found} is read back", status=200)
    return works(status=200)


@capability("s3", "encryption", "Bucket encryption", asks="put and get_bucket_encryption")
def bucket_encryption(store: S3Session) -> Answer:
    """The rule is read back, and objects say that they are encrypted."""
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    bucket = _fresh(store)
    store.ask(
        "put_bucket_encryption",
        Bucket=bucket,
        ServerSideEncryptionConfiguration={"Rules": [rule]},
    )
    store.ask_back("get_bucket_encryption", Bucket=bucket)
    key = store.new()
    answer = accepted(store.send("PUT", key, "", b"body", bucket=bucket))
    return _encrypted(store, key, bucket, answer.status)


@capability(
    "s3", "encryption", "SSE-S3", asks="PUT with x-amz-server-side-encryption: AES256, HEAD"
)
def sse_s3(store: S3Session) -> Answer:
    """The object says that it is encrypted."""
    key, answer = store.write(b"body", {"x-amz-server-side-encryption": "AES256"})
    return _encrypted(store, key, store.bucket, answer.status)


@capability(
    "s3", "encryption", "SSE-C", asks="PUT with a key, GET with it, without and with another"
)
def sse_c(store: S3Session) -> Answer:
    """The object can be read with its key alone."""
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
    before = "x-amz-server-side-encryption-customer-"
    digest = hashlib.md5(secret, usedforsecurity=False).digest()
    return {
        f"{before}algorithm": "AES256",
        f"{before}key": base64.b64encode(secret).decode(),
        f"{before}key-MD5": base64.b64encode(digest).decode(),
    }


def _encrypted(store: S3Session, key: str, bucket: str, status: int) -> Answer:
    head = accepted(store.send("HEAD", key, bucket=bucket))
    found = head.headers.get("x-amz-server-side-encryption")
    if found != "AES256":
        raise Wrong(f"accepted, but HEAD says of encryption: {found or 'nothing'}", status=status)
    return works("as HEAD says; what is on disk is not looked at", status=status)


def _fresh(store: S3Session) -> str:
    with preparing():
        return store.new_bucket()


def _versioned(store: S3Session) -> str:
    with preparing():
        bucket = store.new_bucket(versions=True)
    enabled = {"Status": "Enabled"}
    store.ask("put_bucket_versioning", Bucket=bucket, VersioningConfiguration=enabled)
    if store.ask_back("get_bucket_versioning", Bucket=bucket).get("Status") != "Enabled":
        raise Wrong("accepted, but versioning is not enabled", status=200)
    return bucket


def _put(store: S3Session, bucket: str, body: bytes) -> str:
    answer = accepted(store.send("PUT", "object-1", "", body, bucket=bucket))
    return answer.headers.get("x-amz-version-id", "")


def _locked(store: S3Session, lock: Any) -> Answer:
    """Lock a version by `lock`, and try to delete it. Raises Refused, Wrong or Unknown."""
    bucket = store.new_bucket(versions=True, ObjectLockEnabledForBucket=True)
    version = _put(store, bucket, b"locked")
    if not version:
        raise Wrong("a bucket with lock was made, but its objects have no versions", status=200)
    at = {"Bucket": bucket, "Key": "object-1", "VersionId": version}
    lock(at)
    try:
        store.ask("delete_object", **at)
    except Refused as refused:
        if store.ask("get_object", **at)["Body"].read() != b"locked":
            raise Unknown("the locked version cannot be read") from None
        return works(status=refused.status)
    raise Wrong("the locked version was deleted", status=200)
