"""Signed URLs, forms, and access without credentials, over both APIs; grants and CORS of S3."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Answer, Unknown, Wrong, capability, works
from weighbridge.gateways.capabilities.checksums import flipped
from weighbridge.gateways.capabilities.session import (
    REFUSES_FROM,
    S3Session,
    StoreSession,
    SwiftSession,
    accepted,
)

SIZE_BYTES: Final = 1000
_VALID_S: Final = 600
_ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"
_ORIGIN: Final = "http://wb.example"

_s3 = partial(capability, "s3", "access")
_swift = partial(capability, "swift", "access")


def _presigned(version: str, store: S3Session, method: str, key: str) -> str:
    # A checksum would be part of what is signed, and the user of the URL does not know it.
    client = store.boto_with(
        signature_version=version, request_checksum_calculation="when_required"
    )
    at, operation = {"Bucket": store.bucket, "Key": key}, f"{method.lower()}_object"
    return str(client.generate_presigned_url(operation, Params=at, ExpiresIn=_VALID_S))


def _temporary(algorithm: str, store: SwiftSession, method: str, key: str) -> str:
    url, until = store.url_of(key), int(time.time()) + _VALID_S
    signature = _signature(store, algorithm, method, str(until), urlsplit(url).path)
    return f"{url}?temp_url_sig={signature}&temp_url_expires={until}"


def _signature(store: SwiftSession, algorithm: str, *lines: str) -> str:
    return hmac.new(store.signing_key.encode(), "\n".join(lines).encode(), algorithm).hexdigest()


def _anyone_reads(url_of: Callable[[Any, str, str], str], store: StoreSession) -> Answer:
    body = os.urandom(SIZE_BYTES)
    answer = accepted(store.deliver("GET", url_of(store, "GET", store.put(body))))
    if answer.body != body:
        raise Wrong("other bytes came than were written", status=answer.status)
    return works(status=answer.status)


def _anyone_writes(url_of: Callable[[Any, str, str], str], store: StoreSession) -> Answer:
    body, key = os.urandom(SIZE_BYTES), store.new()
    answer = accepted(store.deliver("PUT", url_of(store, "PUT", key), body))
    return store.expect(key, body, answer.status)


_V2, _V4 = partial(_presigned, "s3"), partial(_presigned, "s3v4")
_SIGNED_URL: Final = "of a URL of generate_presigned_url"
PRESIGNED_URLS: Final = tuple(
    _s3(title, asks, key=key)(probe)
    for key, title, asks, probe in (
        ("presigned-get", "Presigned GET (V4)", f"GET {_SIGNED_URL}", partial(_anyone_reads, _V4)),
        ("presigned-get-v2", "Presigned GET (V2)", "the same with signature_version s3",
         partial(_anyone_reads, _V2)),
        ("presigned-put", "Presigned PUT (V4)", f"PUT {_SIGNED_URL}", partial(_anyone_writes, _V4)),
    )
)  # fmt: skip


@_s3("A wrong signature is refused", "PUT with a changed signature")
def _wrong_signature(store: S3Session) -> Answer:
    key = store.new()
    answer = store.deliver("PUT", flipped(_V4(store, "PUT", key)), b"body")
    return store.refused(answer, key, None, "a changed signature")


@_s3("POST form", "a form of generate_presigned_post")
def _post_form(store: S3Session) -> Answer:
    body, key = os.urandom(SIZE_BYTES), store.new()
    post = store.boto_with(signature_version="s3v4").generate_presigned_post(store.bucket, key)
    return _posted(store, post["url"], post["fields"], "file", key, body)


@_s3("Anonymous GET is refused", "GET of a private object, unsigned")
def _anonymous_refused(store: S3Session) -> Answer:
    answer = _private(store)
    if answer.status >= 500:
        raise Unknown("the server failed", status=answer.status)
    return works(status=answer.status)


@_s3("Anonymous GET by ACL", "PUT with public-read, GET unsigned")
def _anonymous_read(store: S3Session) -> Answer:
    body, key = os.urandom(SIZE_BYTES), store.new()
    store.ask("put_object", Bucket=store.bucket, Key=key, Body=body, ACL="public-read")
    return _public(store, key, body, store.bucket)


@_s3("ACL of an object", "put_object_acl public-read, get_object_acl")
def _object_acl(store: S3Session) -> Answer:
    at = {"Bucket": store.bucket, "Key": store.put(b"body")}
    store.ask("put_object_acl", **at, ACL="public-read")
    for grant in store.ask_back("get_object_acl", **at).get("Grants", ()):
        if grant.get("Grantee", {}).get("URI") == _ALL_USERS and grant.get("Permission") == "READ":
            return works(status=200)
    raise Wrong("accepted, but the grant is not read back", status=200)


@_s3("Bucket policy", "put_bucket_policy, get, anonymous GET")
def _bucket_policy(store: S3Session) -> Answer:
    bucket = store.fresh_bucket()
    allow: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{bucket}/*"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    kept = json.loads(store.set_bucket(bucket, "policy", Policy=policy)["Policy"])
    if "s3:GetObject" not in json.dumps(kept):
        raise Wrong("accepted, but another policy is read back", status=200)
    return _public(store, store.put(b"body", bucket=bucket), b"body", bucket)


@_s3("CORS", "put_bucket_cors, get_bucket_cors, OPTIONS")
def _cors(store: S3Session) -> Answer:
    """A browser is told that it may."""
    bucket = store.fresh_bucket()
    key = store.put(b"body", bucket=bucket)
    rules = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": [_ORIGIN]}]}
    kept = store.set_bucket(bucket, "cors", CORSConfiguration=rules)["CORSRules"]
    if [row.get("AllowedOrigins") for row in kept] != [[_ORIGIN]]:
        raise Wrong("accepted, but other rules are read back", status=200)
    browser = {"Origin": _ORIGIN, "Access-Control-Request-Method": "GET"}
    answer = store.send("OPTIONS", key, headers=browser, bucket=bucket, signed=False)
    allowed = answer.headers.get("access-control-allow-origin")
    if answer.status >= REFUSES_FROM or allowed not in (_ORIGIN, "*"):
        raise Wrong(f"kept, but OPTIONS allows the origin {allowed}", status=answer.status)
    return works(status=answer.status)


@_swift("A request without a token is refused", "GET without a token")
def _swift_anonymous_refused(store: SwiftSession) -> Answer:
    answer = _private(store)
    if answer.status not in (401, 403, 404):
        accepted(answer)
    return works(status=answer.status)


@_swift("Anonymous read", "X-Container-Read: .r:*, GET without a token")
def _swift_anonymous_read(store: SwiftSession) -> Answer:
    bucket = store.new_bucket({"X-Container-Read": ".r:*"})
    return _public(store, store.put(b"public", bucket=bucket), b"public", bucket)


TEMPORARY_URLS: Final = (
    *(
        _swift(
            f"Temp URL, {name.upper()}",
            f"GET with temp_url_sig by {name.upper()}",
            key=f"tempurl-{name}",
        )(partial(_anyone_reads, partial(_temporary, name)))
        for name in ("sha1", "sha256", "sha512")
    ),
    _swift("Temp URL for PUT", "PUT with temp_url_sig by SHA1", key="tempurl-put")(
        partial(_anyone_writes, partial(_temporary, "sha1"))
    ),
)


@_swift(
    "POST form",
    "a form signed with the temp URL's key, by SHA1; it ends radosgw 18.2",
    dangerous=True,
)
def _formpost(store: SwiftSession) -> Answer:
    prefix = f"written-{store.new()}-"
    url, body = store.url_of(prefix), os.urandom(SIZE_BYTES)
    fields = {
        "redirect": "",
        "max_file_size": str(10**6),
        "max_file_count": "1",
        "expires": str(int(time.time()) + _VALID_S),
    }
    signature = _signature(store, "sha1", urlsplit(url).path, *fields.values())
    form = {**fields, "signature": signature}
    return _posted(store, url, form, "file1", f"{prefix}object-1", body)


def _private(store: StoreSession) -> HttpAnswer:
    answer = store.send("GET", store.put(b"private"), signed=False)
    if answer.status < REFUSES_FROM:
        raise Wrong(f"{len(answer.body)} bytes of a private object came", status=answer.status)
    return answer


def _public(store: StoreSession, key: str, body: bytes, bucket: str) -> Answer:
    answer = store.send("GET", key, bucket=bucket, signed=False)
    if answer.status >= REFUSES_FROM or answer.body != body:
        raise Wrong("accepted, but GET without credentials is refused", status=answer.status)
    return works(status=answer.status)


def _posted(
    store: StoreSession, url: str, fields: Mapping[str, str], file_field: str, key: str, body: bytes
) -> Answer:
    """Post a form with a file as browsers do (RFC 7578), the file last as S3 and Swift ask for."""
    boundary = f"wb-{secrets.token_hex(8)}"
    form = ""
    for name, value in fields.items():
        form += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
    form += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{file_field}"; '
        'filename="object-1"\r\nContent-Type: application/octet-stream\r\n\r\n'
    )
    sent = form.encode() + body + f"\r\n--{boundary}--\r\n".encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    answer = accepted(store.deliver("POST", url, sent, kind))
    return store.expect(key, body, answer.status)
