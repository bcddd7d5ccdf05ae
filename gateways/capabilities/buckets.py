"""What is set for a bucket or container, and who gets in: versions, locks, rules, encryption; URLs
and forms that are signed, grants, and access without credentials.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from botocore.exceptions import BotoCoreError

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Refused, Unknown, Wrong, capability
from weighbridge.gateways.capabilities.objects import flipped
from weighbridge.gateways.capabilities.session import (
    REFUSES_FROM,
    SIZE_BYTES,
    Session,
    accepted,
    checksum,
)

_RETAINED: Final = timedelta(seconds=60)
_SSE: Final = "x-amz-server-side-encryption"
_FIRST: Final = b"the first content"
_SECOND: Final = b"the second content!"
_VALID_S: Final = 600
_ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"
_ORIGIN: Final = "http://wb.example"

_buckets = partial(capability, "s3", "buckets")
_encryption = partial(capability, "s3", "encryption")
_versions_of = partial(capability, "swift", "versions")
_s3_access = partial(capability, "s3", "access")
_swift_access = partial(capability, "swift", "access")


@_buckets("Versions", "put_bucket_versioning, PUT twice, GET ?versionId")
def _versions(store: Session) -> None:
    bucket = _versioned(store)
    first = _put(store, bucket, b"first")
    second = _put(store, bucket, b"second")
    if not first or not second or first == second:
        raise Wrong(f"versioning is set, but PUT says version {first}, {second}")
    old = accepted(store.send("GET", "object-1", f"versionId={first}", bucket=bucket))
    if old.body != b"first" or store.read("object-1", bucket=bucket) != b"second":
        raise Wrong("the old version cannot be read")


@_buckets("Delete markers", "versioned DELETE, list_object_versions")
def _delete_marker(store: Session) -> None:
    bucket = _versioned(store)
    version = _put(store, bucket, b"first")
    accepted(store.send("DELETE", "object-1", bucket=bucket))
    if store.read("object-1", bucket=bucket) is not None:
        raise Wrong("the deleted object can still be read")
    page = store.boto("list_object_versions", bucket=bucket)
    if [row.get("VersionId") for row in page.get("Versions", ())] != [version]:
        raise Wrong("the version is not listed")
    if len(page.get("DeleteMarkers", ())) != 1:
        raise Wrong("the delete marker is not listed")


@_buckets("Object lock: retention", "a bucket with lock, put_object_retention")
def _retention(store: Session) -> None:
    at = _lockable(store)
    kept = {"Mode": "GOVERNANCE", "RetainUntilDate": datetime.now(UTC) + _RETAINED}
    store.boto("put_object_retention", **at, Retention=kept)
    try:
        _locked(store, at)
    finally:
        with suppress(Refused, Unknown, BotoCoreError):  # the bucket's end says what is left
            store.boto("delete_object", **at, BypassGovernanceRetention=True)


@_buckets("Object lock: legal hold", "a bucket with lock, put_object_legal_hold")
def _legal_hold(store: Session) -> None:
    at = _lockable(store)
    store.boto("put_object_legal_hold", **at, LegalHold={"Status": "ON"})
    try:
        _locked(store, at)
    finally:
        store.boto("put_object_legal_hold", **at, LegalHold={"Status": "OFF"})


@_buckets("Lifecycle", "put and get_bucket_lifecycle_configuration")
def _lifecycle(store: Session) -> None:
    """The rule is read back; that it is carried out takes days, and is not asked."""
    rule = {"ID": "wb", "Status": "Enabled", "Filter": {"Prefix": "object-"}}
    rules = {"Rules": [{**rule, "Expiration": {"Days": 3}}]}
    bucket = store.fresh_bucket()
    kept = store.set_bucket(bucket, "lifecycle_configuration", LifecycleConfiguration=rules)
    if [row.get("Expiration", {}).get("Days") for row in kept["Rules"]] != [3]:
        raise Wrong("accepted, but other rules are read back")


@_buckets("Tags of a bucket", "put_bucket_tagging, get_bucket_tagging")
def _bucket_tags(store: Session) -> None:
    tags = [{"Key": "colour", "Value": "red"}]
    kept = store.set_bucket(store.fresh_bucket(), "tagging", Tagging={"TagSet": tags})
    if kept["TagSet"] != tags:
        raise Wrong(f"accepted, but {kept['TagSet']} is read back")


@_encryption("Bucket encryption", "put and get_bucket_encryption")
def _bucket_encryption(store: Session) -> str:
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}
    bucket = store.fresh_bucket()
    store.set_bucket(bucket, "encryption", ServerSideEncryptionConfiguration=rules)
    key = store.new()
    store.ask("PUT", key, "", b"body", bucket=bucket)
    return _encrypted(store, key, bucket)


@_encryption("SSE-S3", "PUT with x-amz-server-side-encryption: AES256, HEAD")
def _sse_s3(store: Session) -> str:
    key, _ = store.write(b"body", {_SSE: "AES256"})
    return _encrypted(store, key, store.bucket)


@_encryption("SSE-C", "PUT with a key, GET with it, without and with another")
def _sse_c(store: Session) -> None:
    body, key, secret = os.urandom(SIZE_BYTES), store.new(), os.urandom(32)
    answer = store.send("PUT", key, body=body, headers=_key(secret))
    store.taken(answer, key)
    if store.send("GET", key).body == body:
        raise Wrong("stored unencrypted: it is readable without the key")
    if store.send("GET", key, headers=_key(os.urandom(32))).body == body:
        raise Wrong("it is readable with another key")
    if accepted(store.send("GET", key, headers=_key(secret))).body != body:
        raise Wrong("other bytes are read than were sent")


def _key(secret: bytes) -> dict[str, str]:
    return {
        f"{_SSE}-customer-algorithm": "AES256",
        f"{_SSE}-customer-key": b64encode(secret).decode(),
        f"{_SSE}-customer-key-MD5": checksum("md5", secret),
    }


def _encrypted(store: Session, key: str, bucket: str) -> str:
    encryption = accepted(store.send("HEAD", key, bucket=bucket)).headers.get(_SSE)
    if encryption != "AES256":
        raise Wrong(f"accepted, but HEAD says of encryption: {encryption or 'nothing'}")
    return "as HEAD says; what is on disk is not looked at"


def _versioned(store: Session) -> str:
    bucket = store.fresh_bucket()
    kept = store.set_bucket(bucket, "versioning", VersioningConfiguration={"Status": "Enabled"})
    if kept.get("Status") != "Enabled":
        raise Wrong("accepted, but versioning is not enabled")
    return bucket


def _put(store: Session, bucket: str, body: bytes) -> str:
    answer = accepted(store.send("PUT", "object-1", "", body, bucket=bucket))
    return answer.headers.get("x-amz-version-id", "")


def _lockable(store: Session) -> dict[str, Any]:
    bucket = store.new_bucket({"x-amz-bucket-object-lock-enabled": "true"})
    version = _put(store, bucket, b"locked")
    if not version:
        raise Wrong("a bucket with lock was made, but its objects have no versions", status=200)
    return {"bucket": bucket, "key": "object-1", "VersionId": version}


def _locked(store: Session, at: Mapping[str, Any]) -> None:
    store.denied("the locked version was deleted", partial(store.boto, "delete_object", **at))
    version = f"versionId={at['VersionId']}"
    if accepted(store.send("GET", at["key"], version, bucket=at["bucket"])).body != b"locked":
        raise Unknown("the locked version cannot be read")


@_versions_of("X-Versions-Location", "a container with it, PUT twice")
def _versions_location(store: Session) -> None:
    """The old content moves to the container of versions, and DELETE brings it back."""
    bucket = store.new_bucket({"X-Versions-Location": store.fresh_bucket()})
    _write_twice(store, bucket)
    store.ask("DELETE", "object-1", bucket=bucket)
    store.expect("object-1", _FIRST, bucket=bucket)
    accepted(store.send("DELETE", "object-1", bucket=bucket))


@_versions_of("X-History-Location", "a container with it, PUT twice")
def _history_location(store: Session) -> None:
    archive = store.fresh_bucket()
    _write_twice(store, store.new_bucket({"X-History-Location": archive}))
    if not store.ask("GET", "", bucket=archive).body.strip():
        raise Wrong("ignored: the old content is gone", status=200)


@_versions_of("X-Versions-Enabled", "a container with it, GET ?versions")
def _versions_enabled(store: Session) -> None:
    bucket = store.new_bucket({"X-Versions-Enabled": "true"})
    _write_twice(store, bucket)
    page = store.ask("GET", "", "versions&format=json", bucket=bucket)
    if page.body.count(b'"version_id"') < 2:
        raise Wrong("ignored: two versions are not listed")


@_versions_of("Symlink", "PUT with X-Symlink-Target, GET")
def _symlink(store: Session) -> None:
    target, key = store.put(_FIRST), store.new()
    store.ask("PUT", key, headers={"X-Symlink-Target": f"{store.bucket}/{target}"})
    if store.read(key) == b"":
        raise Wrong("ignored: the object is empty")
    store.expect(key, _FIRST)


@_versions_of("Quota of a container", "X-Container-Meta-Quota-Bytes, PUT")
def _quota(store: Session) -> None:
    """413 for more than the quota; a container may hear late of what it holds."""
    bucket = store.new_bucket({"X-Container-Meta-Quota-Bytes": "10"})
    answer = store.send("PUT", "object-1", "", _FIRST, bucket=bucket)
    store.status = answer.status
    if answer.status < REFUSES_FROM:
        raise Wrong("17 bytes are accepted where 10 are allowed")
    if answer.status not in (403, 413):
        accepted(answer)
    if store.read("object-1", bucket=bucket) is not None:
        raise Wrong("refused, but stored")


def _write_twice(store: Session, bucket: str) -> None:
    for body in (_FIRST, _SECOND):
        store.ask("PUT", "object-1", "", body, bucket=bucket)
    store.expect("object-1", _SECOND, bucket=bucket)


# URLs and forms are used as somebody without credentials uses them.


def _presigned(version: str, store: Session, method: str, key: str) -> str:
    # A checksum would be part of what is signed, and the user of the URL does not know it.
    client = store.client(signature_version=version, request_checksum_calculation="when_required")
    operation = f"{method.lower()}_object"
    url = client.generate_presigned_url(operation, Params=store.at(key), ExpiresIn=_VALID_S)
    return str(url)


def _temporary(algorithm: str, store: Session, method: str, key: str) -> str:
    url, until = store.url_of(key), int(time.time()) + _VALID_S
    signature = _signature(store, algorithm, method, str(until), urlsplit(url).path)
    return f"{url}?temp_url_sig={signature}&temp_url_expires={until}"


def _signature(store: Session, algorithm: str, *lines: str) -> str:
    return hmac.new(store.signing_key.encode(), "\n".join(lines).encode(), algorithm).hexdigest()


def _anyone_reads(url_of: Callable[[Session, str, str], str], store: Session) -> None:
    body = os.urandom(SIZE_BYTES)
    if store.decide(store.deliver("GET", url_of(store, "GET", store.put(body)))).body != body:
        raise Wrong("other bytes came than were written")


def _anyone_writes(url_of: Callable[[Session, str, str], str], store: Session) -> None:
    body, key = os.urandom(SIZE_BYTES), store.new()
    store.decide(store.deliver("PUT", url_of(store, "PUT", key), body))
    store.expect(key, body)


_V2, _V4 = partial(_presigned, "s3"), partial(_presigned, "s3v4")
_SIGNED_URL: Final = "of a URL of generate_presigned_url"
PRESIGNED_URLS: Final = tuple(
    _s3_access(title, asks, key=key)(probe)
    for key, title, asks, probe in (
        ("presigned-get", "Presigned GET (V4)", f"GET {_SIGNED_URL}", partial(_anyone_reads, _V4)),
        ("presigned-get-v2", "Presigned GET (V2)", "the same with signature_version s3",
         partial(_anyone_reads, _V2)),
        ("presigned-put", "Presigned PUT (V4)", f"PUT {_SIGNED_URL}", partial(_anyone_writes, _V4)),
    )
)  # fmt: skip


@_s3_access("A wrong signature is refused", "PUT with a changed signature")
def _wrong_signature(store: Session) -> None:
    key = store.new()
    answer = store.deliver("PUT", flipped(_V4(store, "PUT", key)), b"body")
    store.refused(answer, key, None, "a changed signature")


@_s3_access("POST form", "a form of generate_presigned_post")
def _post_form(store: Session) -> None:
    key = store.new()
    post = store.client(signature_version="s3v4").generate_presigned_post(store.bucket, key)
    _posted(store, post["url"], post["fields"], "file", key)


@_s3_access("Anonymous GET is refused", "GET of a private object, unsigned")
def _anonymous_refused(store: Session) -> None:
    if _private(store).status >= 500:
        raise Unknown("the server failed", status=store.status)


@_s3_access("Anonymous GET by ACL", "PUT with public-read, GET unsigned")
def _anonymous_read(store: Session) -> None:
    key = store.new()
    store.boto("put_object", key, Body=b"public", ACL="public-read")
    _public(store, key, b"public", store.bucket)


@_s3_access("ACL of an object", "put_object_acl public-read, get_object_acl")
def _object_acl(store: Session) -> None:
    key = store.put(b"body")
    store.boto("put_object_acl", key, ACL="public-read")
    for grant in store.boto_back("get_object_acl", key).get("Grants", ()):
        if grant.get("Grantee", {}).get("URI") == _ALL_USERS and grant.get("Permission") == "READ":
            return
    raise Wrong("accepted, but the grant is not read back")


@_s3_access("Bucket policy", "put_bucket_policy, get, anonymous GET")
def _bucket_policy(store: Session) -> None:
    bucket = store.fresh_bucket()
    allow: dict[str, Any] = {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject"]}
    allow["Resource"] = [f"arn:aws:s3:::{bucket}/*"]
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    kept = json.loads(store.set_bucket(bucket, "policy", Policy=policy)["Policy"])
    if "s3:GetObject" not in json.dumps(kept):
        raise Wrong("accepted, but another policy is read back")
    _public(store, store.put(b"body", bucket=bucket), b"body", bucket)


@_s3_access("CORS", "put_bucket_cors, get_bucket_cors, OPTIONS")
def _cors(store: Session) -> None:
    """A browser is told that it may."""
    bucket = store.fresh_bucket()
    key = store.put(b"body", bucket=bucket)
    rules = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": [_ORIGIN]}]}
    kept = store.set_bucket(bucket, "cors", CORSConfiguration=rules)["CORSRules"]
    if [row.get("AllowedOrigins") for row in kept] != [[_ORIGIN]]:
        raise Wrong("accepted, but other rules are read back")
    browser = {"Origin": _ORIGIN, "Access-Control-Request-Method": "GET"}
    answer = store.send("OPTIONS", key, headers=browser, bucket=bucket, signed=False)
    store.status = answer.status
    allowed = answer.headers.get("access-control-allow-origin")
    if answer.status >= REFUSES_FROM or allowed not in (_ORIGIN, "*"):
        raise Wrong(f"kept, but OPTIONS allows the origin {allowed}")


@_swift_access("A request without a token is refused", "GET without a token")
def _swift_anonymous_refused(store: Session) -> None:
    answer = _private(store)
    if answer.status not in (401, 403, 404):
        accepted(answer)


@_swift_access("Anonymous read", "X-Container-Read: .r:*, GET without a token")
def _swift_anonymous_read(store: Session) -> None:
    bucket = store.new_bucket({"X-Container-Read": ".r:*"})
    _public(store, store.put(b"public", bucket=bucket), b"public", bucket)


TEMPORARY_URLS: Final = (
    *(
        _swift_access(
            f"Temp URL, {name}", f"GET with temp_url_sig by {name}", key=f"tempurl-{key}"
        )(partial(_anyone_reads, partial(_temporary, key)))
        for key, name in (("sha1", "SHA1"), ("sha256", "SHA256"), ("sha512", "SHA512"))
    ),
    _swift_access("Temp URL for PUT", "PUT with temp_url_sig by SHA1", key="tempurl-put")(
        partial(_anyone_writes, partial(_temporary, "sha1"))
    ),
)


@_swift_access(
    "POST form",
    "a form signed with the temp URL's key, by SHA1; it ends radosgw 18.2",
    dangerous=True,
)
def _formpost(store: Session) -> None:
    prefix = f"written-{store.new()}-"
    until = str(int(time.time()) + _VALID_S)
    form = {"redirect": "", "max_file_size": "1000000", "max_file_count": "1", "expires": until}
    url = store.url_of(prefix)
    form["signature"] = _signature(store, "sha1", urlsplit(url).path, *form.values())
    _posted(store, url, form, "file1", f"{prefix}object-1")


def _private(store: Session) -> HttpAnswer:
    answer = store.send("GET", store.put(b"private"), signed=False)
    store.status = answer.status
    if answer.status < REFUSES_FROM:
        raise Wrong(f"{len(answer.body)} bytes of a private object came")
    return answer


def _public(store: Session, key: str, body: bytes, bucket: str) -> None:
    answer = store.send("GET", key, bucket=bucket, signed=False)
    store.status = answer.status
    if answer.status >= REFUSES_FROM or answer.body != body:
        raise Wrong("accepted, but GET without credentials is refused")


def _posted(store: Session, url: str, fields: Mapping[str, str], file_field: str, key: str) -> None:
    """Post a form with a file as browsers do (RFC 7578), the file last as S3 and Swift ask for."""
    body, boundary = os.urandom(SIZE_BYTES), f"wb-{secrets.token_hex(8)}"
    form = ""
    for name, value in fields.items():
        form += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
    form += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{file_field}"; '
        'filename="object-1"\r\nContent-Type: application/octet-stream\r\n\r\n'
    )
    sent = form.encode() + body + f"\r\n--{boundary}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    store.decide(store.deliver("POST", url, sent, kind))
    store.expect(key, body)
