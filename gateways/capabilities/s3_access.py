"""S3: signed URLs, forms, and access without credentials."""

from __future__ import annotations

import json
import os
from typing import Any, Final
from urllib.parse import urlsplit

from weighbridge.common.exchange import HttpAnswer
from weighbridge.gateways.capabilities.capability import Answer, Unknown, Wrong, capability, works
from weighbridge.gateways.capabilities.forms import form
from weighbridge.gateways.capabilities.s3_session import S3Session
from weighbridge.gateways.capabilities.session import accepted, preparing

SIZE_BYTES: Final = 1000
_ALL_USERS: Final = "http://acs.amazonaws.com/groups/global/AllUsers"
_ORIGIN: Final = "http://wb.example"


@capability("s3", "access", "Presigned GET (V4)", asks="GET of a URL of generate_presigned_url")
def presigned_get(store: S3Session) -> Answer:
    """Anyone with the URL reads the object."""
    return _presigned_get(store, "s3v4")


@capability("s3", "access", "Presigned GET (V2)", asks="the same with signature_version s3")
def presigned_get_v2(store: S3Session) -> Answer:
    """As old clients sign."""
    return _presigned_get(store, "s3")


@capability("s3", "access", "Presigned PUT (V4)", asks="PUT of a URL of generate_presigned_url")
def presigned_put(store: S3Session) -> Answer:
    """Anyone with the URL writes the object."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    answer = accepted(_visit(store, "PUT", _url(store, "s3v4", "put_object", key), body))
    store.expect(key, body, answer.status)
    return works(status=answer.status)


@capability("s3", "access", "A wrong signature is refused", asks="PUT with a changed signature")
def wrong_signature(store: S3Session) -> Answer:
    """403, and nothing is stored."""
    key = store.new()
    url = _url(store, "s3v4", "put_object", key)
    changed = f"{url[:-1]}{'0' if url[-1] != '0' else '1'}"
    answer = _visit(store, "PUT", changed, b"body")
    store.refused(answer, key, None, "a changed signature")
    return works(status=answer.status)


@capability("s3", "access", "POST form", asks="a form of generate_presigned_post")
def post_form(store: S3Session) -> Answer:
    """A browser uploads a file."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    made = store.boto_with(signature_version="s3v4").generate_presigned_post(store.bucket, key)
    data, kind = form(made["fields"], body, "file")
    answer = accepted(_visit(store, "POST", made["url"], data, kind))
    store.expect(key, body, answer.status)
    return works(status=answer.status)


@capability("s3", "access", "Anonymous GET is refused", asks="GET of a private object, unsigned")
def anonymous_refused(store: S3Session) -> Answer:
    """401 or 403."""
    key = store.put(b"private")
    answer = store.send("GET", key, signed=False)
    if answer.status < 400:
        raise Wrong(f"{len(answer.body)} bytes of a private object came", status=answer.status)
    if answer.status >= 500:
        raise Unknown("the server failed", status=answer.status)
    return works(status=answer.status)


@capability("s3", "access", "Anonymous GET by ACL", asks="PUT with public-read, GET unsigned")
def anonymous_read(store: S3Session) -> Answer:
    """Everybody reads the object."""
    body, key = os.urandom(SIZE_BYTES), store.new()
    store.ask("put_object", Bucket=store.bucket, Key=key, Body=body, ACL="public-read")
    return _read_by_anyone(store, key, body, store.bucket)


@capability("s3", "access", "ACL of an object", asks="put_object_acl public-read, get_object_acl")
def object_acl(store: S3Session) -> Answer:
    """The grant to everybody is read back."""
    at = {"Bucket": store.bucket, "Key": store.put(b"body")}
    store.ask("put_object_acl", **at, ACL="public-read")
    grants = store.ask_back("get_object_acl", **at).get("Grants", ())
    if (_ALL_USERS, "READ") not in [
        (one.get("Grantee", {}).get("URI"), one.get("Permission")) for one in grants
    ]:
        raise Wrong("accepted, but the grant is not read back", status=200)
    return works(status=200)


@capability("s3", "access", "Bucket policy", asks="put_bucket_policy, get, anonymous GET")
def bucket_policy(store: S3Session) -> Answer:
    """A policy that lets everybody read is kept and obeyed."""
    with preparing():
        bucket = store.new_bucket()
    allow: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": "*",
        "Action": ["s3:GetObject"],
        "Resource": [f"arn:aws:s3:::{bucket}/*"],
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
    store.ask("put_bucket_policy", Bucket=bucket, Policy=policy)
    found = json.loads(store.ask_back("get_bucket_policy", Bucket=bucket)["Policy"])
    if "s3:GetObject" not in json.dumps(found):
        raise Wrong("accepted, but another policy is read back", status=200)
    return _read_by_anyone(store, store.put(b"body", bucket=bucket), b"body", bucket)


@capability("s3", "access", "CORS", asks="put_bucket_cors, get_bucket_cors, OPTIONS")
def cors(store: S3Session) -> Answer:
    """A browser is told that it may."""
    with preparing():
        bucket = store.new_bucket()
        key = store.put(b"body", bucket=bucket)
    rule = {"AllowedMethods": ["GET"], "AllowedOrigins": [_ORIGIN]}
    store.ask("put_bucket_cors", Bucket=bucket, CORSConfiguration={"CORSRules": [rule]})
    rules = store.ask_back("get_bucket_cors", Bucket=bucket)["CORSRules"]
    if [one.get("AllowedOrigins") for one in rules] != [[_ORIGIN]]:
        raise Wrong("accepted, but other rules are read back", status=200)
    asked = {"Origin": _ORIGIN, "Access-Control-Request-Method": "GET"}
    answer = store.send("OPTIONS", key, headers=asked, bucket=bucket, signed=False)
    allowed = answer.headers.get("access-control-allow-origin")
    if answer.status >= 400 or allowed not in (_ORIGIN, "*"):
        raise Wrong(f"kept, but OPTIONS allows the origin {allowed}", status=answer.status)
    return works(status=answer.status)


def _presigned_get(store: S3Session, version: str) -> Answer:
    body = os.urandom(SIZE_BYTES)
    answer = accepted(_visit(store, "GET", _url(store, version, "get_object", store.put(body))))
    if answer.body != body:
        raise Wrong("other bytes came than were written", status=answer.status)
    return works(status=answer.status)


def _url(store: S3Session, version: str, operation: str, key: str) -> str:
    # A checksum would be part of what is signed, and the user of the URL does not know it.
    client = store.boto_with(
        signature_version=version, request_checksum_calculation="when_required"
    )
    at = {"Bucket": store.bucket, "Key": key}
    return str(client.generate_presigned_url(operation, Params=at, ExpiresIn=600))


def _visit(
    store: S3Session, method: str, url: str, body: bytes = b"", kind: str = ""
) -> HttpAnswer:
    parts = urlsplit(url)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return store.deliver(method, url, path or "/", body, {"Content-Type": kind} if kind else {})


def _read_by_anyone(store: S3Session, key: str, body: bytes, bucket: str) -> Answer:
    answer = store.send("GET", key, bucket=bucket, signed=False)
    if answer.status >= 400 or answer.body != body:
        raise Wrong("accepted, but GET without credentials is refused", status=answer.status)
    return works(status=answer.status)
