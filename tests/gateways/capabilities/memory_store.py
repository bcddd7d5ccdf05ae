"""A store in memory that does all that S3 and Swift clients ask of it here, and verifies what it is
told; both APIs are behind one server.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import itertools
import json
import re
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from pydantic import SecretStr

from http_stub import Request, Response, Server
from weighbridge.common.endpoint import Endpoint
from weighbridge.gateways.capabilities.asking import CAPABILITIES, Asker, AskingOrder
from weighbridge.gateways.capabilities.capability import Answer
from weighbridge.gateways.capabilities.session import ALGORITHMS, buckets_of, checksum

MODIFIED = "Wed, 25 Nov 2026 12:00:00 GMT"


@dataclass
class Stored:
    """One version of an object."""

    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    parts: Sequence[bytes] = ()
    version: str = "null"
    deleted: bool = False
    sub: dict[str, bytes] = field(default_factory=dict)
    """Tags, retention ... as they were sent."""
    secret: str = ""

    @property
    def etag(self) -> str:
        digest = hashlib.md5(self.body).hexdigest()
        return f"{digest}-{len(self.parts)}" if self.parts else digest


@dataclass
class Bucket:
    objects: dict[str, list[Stored]] = field(default_factory=dict)
    sub: dict[str, bytes] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    def now(self, key: str) -> Stored | None:
        """The current version; None if there is none, or it is deleted."""
        versions = self.objects.get(key)
        return versions[-1] if versions and not versions[-1].deleted else None

    def names(self) -> list[str]:
        return sorted(key for key in list(self.objects) if self.now(key))


NUMBERS = itertools.count(1)


def false_condition(headers: Mapping[str, str], found: Stored | None) -> int:
    """412 or 304 if a condition of the request is false, else 0."""
    etag = f'"{found.etag}"' if found else ""
    if "if-match" in headers and headers["if-match"] not in (etag, "*" if found else ""):
        return 412
    if found and headers.get("if-none-match") in (etag, "*"):
        return 412 if headers["if-none-match"] == "*" else 304
    modified = parsedate_to_datetime(MODIFIED)
    for name, late in (("if-unmodified-since", True), ("if-modified-since", False)):
        if name in headers and (modified > parsedate_to_datetime(headers[name])) is late:
            return 412 if late else 304
    return 0


def ranged(request: Request, body: bytes, headers: Mapping[str, str]) -> Response:
    asked = request.headers.get("range", "").removeprefix("bytes=")
    if not asked:
        return Response(200, body, headers)
    spans = []
    for one in asked.split(","):
        first, _, last = one.partition("-")
        begin = int(first) if first else len(body) - int(last)
        until = min(int(last) + 1 if first and last else len(body), len(body))
        spans.append((begin, until))
    if all(begin >= len(body) for begin, _ in spans):
        return Response(416)
    if len(spans) == 1:
        begin, until = spans[0]
        said = {"Content-Range": f"bytes {begin}-{until - 1}/{len(body)}"}
        return Response(206, body[begin:until], {**headers, **said})
    pieces = [b"--b\r\n\r\n" + body[begin:until] + b"\r\n" for begin, until in spans]
    kind = {"Content-Type": "multipart/byteranges; boundary=b"}
    return Response(206, b"".join(pieces) + b"--b--", {**headers, **kind})


def listing(
    names: Sequence[str], prefix: str, delimiter: str, after: str, most: int
) -> tuple[list[str], list[str], bool]:
    rows: dict[str, bool] = {}
    for name in names:
        if name.startswith(prefix):
            rest = name[len(prefix) :]
            inside = bool(delimiter) and delimiter in rest
            folder = prefix + rest.partition(delimiter or "/")[0] + delimiter
            rows[folder if inside else name] = inside
    left = [row for row in rows if row > after]
    page = left[:most]
    return (
        [row for row in page if not rows[row]],
        [row for row in page if rows[row]],
        len(left) > most,
    )


# S3.

KEY = "a-planted-secret"
S3_USER = "weigher"
SSE = "x-amz-server-side-encryption"
CUSTOMER = f"{SSE}-customer-key"
KEPT = ("x-amz-meta-", "content-type", "cache-control", "x-amz-checksum-", SSE)
EVERYBODY = (
    '<AccessControlPolicy xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><Owner><ID>u</ID>'
    '</Owner><AccessControlList><Grant><Grantee xsi:type="Group"><URI>'
    "http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee><Permission>READ</Permission>"
    "</Grant></AccessControlList></AccessControlPolicy>"
)


class Denied(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


class MemoryS3:
    def __init__(self) -> None:
        self.buckets: dict[str, Bucket] = {}
        self.uploads: dict[str, tuple[str, dict[int, bytes], Mapping[str, str]]] = {}

    def respond(self, request: Request) -> Response:
        try:
            bucket, key = request.parts
            self._let_in(request)
            if key:
                return self._object(request, self._bucket(bucket), key)
            return self._in_bucket(request, bucket)
        except Denied as denied:
            text = f"<Error><Code>{denied.code}</Code><Message>no</Message></Error>"
            return Response(denied.status, text.encode())

    def _bucket(self, name: str) -> Bucket:
        if name not in self.buckets:
            raise Denied(404, "NoSuchBucket")
        return self.buckets[name]

    def _let_in(self, request: Request) -> None:
        if request.method in ("OPTIONS", "POST") and "authorization" not in request.headers:
            return  # a form has its own signature
        if "X-Amz-Signature" in request.query:
            if request.query["X-Amz-Signature"] != query_signature(request):
                raise Denied(403, "SignatureDoesNotMatch")
        elif "Signature" not in request.query and "authorization" not in request.headers:
            bucket, key = request.parts
            found = self.buckets.get(bucket, Bucket()).now(key)
            public = found is not None and found.sub.get("acl") == b"public-read"
            if not public and "policy" not in self.buckets.get(bucket, Bucket()).sub:
                raise Denied(403, "AccessDenied")

    def _in_bucket(self, request: Request, name: str) -> Response:
        query, method = request.query, request.method
        if not name:
            rows = "".join(f"<Bucket><Name>{one}</Name></Bucket>" for one in self.buckets)
            return _xml("ListAllMyBucketsResult", f"<Buckets>{rows}</Buckets>")
        if method == "PUT" and not query:
            self.buckets[name] = Bucket()
            if "x-amz-bucket-object-lock-enabled" in request.headers:
                self.buckets[name].sub["versioning"] = _VERSIONED
            return Response(200)
        bucket = self._bucket(name)
        if method == "DELETE":
            if any(bucket.objects.values()):
                raise Denied(409, "BucketNotEmpty")
            del self.buckets[name]
            return Response(204)
        if method == "POST":
            answers = self._delete_many if "delete" in query else self._form
            return answers(request, bucket)
        if method == "GET" and "versions" in query:
            return _versions(query, bucket)
        if method == "GET" and "uploads" in query:
            rows = "".join(
                f"<Upload><Key>{key}</Key><UploadId>{upload}</UploadId></Upload>"
                for upload, (key, _, _) in self.uploads.items()
            )
            return _xml("ListMultipartUploadsResult", rows)
        if method == "GET" and (not query or query.keys() & _LISTS):
            return _list(query, bucket)
        (sub,) = query
        if method == "PUT":
            bucket.sub[sub] = request.body
            return Response(200)
        if sub not in bucket.sub:
            raise Denied(404, "NoSuchConfiguration")
        return Response(200, bucket.sub[sub])

    def _object(self, request: Request, bucket: Bucket, key: str) -> Response:
        query = {n: value for n, value in request.query.items() if not n.startswith("X-Amz-")}
        if "uploadId" in query or "uploads" in query:
            return self._upload(request, bucket, key, query)
        found = self._version(bucket, key, query.get("versionId"))
        if request.method == "OPTIONS":
            return Response(200, headers={"Access-Control-Allow-Origin": request.headers["origin"]})
        for sub in ("tagging", "acl", "retention", "legal-hold"):
            if sub in query:
                return _sub(request, found, sub)
        if request.method == "PUT":
            return self._put(request, bucket, key)
        if found is None and request.method != "DELETE":
            raise Denied(404, "NoSuchKey")
        status = false_condition(request.headers, found)
        if status:
            raise Denied(status, "PreconditionFailed")
        if request.method == "DELETE":
            return _delete(bucket, key, query.get("versionId"), request.headers)
        assert found is not None
        return _get(request, found, query)

    def _version(self, bucket: Bucket, key: str, version: str | None) -> Stored | None:
        if version is None:
            return bucket.now(key)
        versions = bucket.objects.get(key, [])
        return next((one for one in versions if one.version == version), None)

    def _put(self, request: Request, bucket: Bucket, key: str) -> Response:
        headers = request.headers
        if false_condition(headers, bucket.now(key)) == 412:
            raise Denied(412, "PreconditionFailed")
        if "x-amz-copy-source" in headers:
            source = self._source(headers["x-amz-copy-source"])
            new = headers.get("x-amz-metadata-directive") == "REPLACE"
            copy = Stored(source.body, _kept(headers) if new else dict(source.headers))
            _store(bucket, key, copy)
            return _xml("CopyObjectResult", f'<ETag>"{copy.etag}"</ETag>')
        body = verified(request)
        made = Stored(body, _kept(headers), secret=headers.get(CUSTOMER, ""))
        made.headers |= {f"x-amz-checksum-{n}": v for n, v in trailer(request).items()}
        if "encryption" in bucket.sub:
            made.headers[SSE] = "AES256"
        made.sub["acl"] = headers.get("x-amz-acl", "").encode()
        _store(bucket, key, made)
        return Response(200, headers=_headers(made))

    def _source(self, named: str) -> Stored:
        bucket, _, key = unquote(named).lstrip("/").partition("/")
        found = self._bucket(bucket).now(key)
        if found is None:
            raise Denied(404, "NoSuchKey")
        return found

    def _upload(
        self, request: Request, bucket: Bucket, key: str, query: Mapping[str, str]
    ) -> Response:
        if "uploads" in query:
            upload = f"upload-{next(NUMBERS)}"
            self.uploads[upload] = (key, {}, request.headers)
            return _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        upload = query["uploadId"]
        if upload not in self.uploads:
            raise Denied(404, "NoSuchUpload")
        _, parts, headers = self.uploads[upload]
        if request.method == "DELETE":
            del self.uploads[upload]
            return Response(204)
        if request.method == "GET":
            rows = "".join(
                f"<Part><PartNumber>{n}</PartNumber><Size>{len(part)}</Size></Part>"
                for n, part in parts.items()
            )
            return _xml("ListPartsResult", rows)
        if request.method == "POST":
            ordered = [parts[n] for n in sorted(parts)]
            if any(len(part) < 5 * 2**20 for part in ordered[:-1]):
                raise Denied(400, "EntityTooSmall")
            made = Stored(b"".join(ordered), parts=ordered)
            if headers.get("x-amz-checksum-algorithm") == "CRC32":
                made.headers["x-amz-checksum-crc32"] = checksum("crc32", made.body)
            _store(bucket, key, made)
            del self.uploads[upload]
            return _xml("CompleteMultipartUploadResult", f'<ETag>"{made.etag}"</ETag>')
        number = int(query["partNumber"])
        if "x-amz-copy-source" in request.headers:
            begin, until = request.headers["x-amz-copy-source-range"][6:].split("-")
            source = self._source(request.headers["x-amz-copy-source"])
            parts[number] = source.body[int(begin) : int(until) + 1]
            return _xml("CopyPartResult", '<ETag>"part"</ETag>')
        parts[number] = verified(request)
        return Response(200, headers={"ETag": '"part"'})

    def _delete_many(self, request: Request, bucket: Bucket) -> Response:
        verified(request)
        keys = [
            one.text or "" for one in ET.fromstring(request.body).iter() if one.tag.endswith("Key")
        ]
        if len(keys) > 1000:
            raise Denied(400, "MalformedXML")
        for key in keys:
            bucket.objects.pop(key, None)
        return _xml("DeleteResult", "")

    def _form(self, request: Request, bucket: Bucket) -> Response:
        fields = request.form
        _, date, region, *_ = fields["x-amz-credential"].decode().split("/")
        right = sign(date, region, fields["policy"].decode())
        if right != fields["x-amz-signature"].decode():
            raise Denied(403, "SignatureDoesNotMatch")
        _store(bucket, fields["key"].decode(), Stored(fields["file"]))
        return Response(204)


_VERSIONED = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
_LISTS = {"list-type", "prefix", "marker", "max-keys", "delimiter", "encoding-type"}


def _get(request: Request, found: Stored, query: Mapping[str, str]) -> Response:
    if found.secret != request.headers.get(CUSTOMER, ""):
        raise Denied(400 if not request.headers.get(CUSTOMER) else 403, "InvalidRequest")
    if "attributes" in query:
        size = f"<ObjectSize>{len(found.body)}</ObjectSize>"
        return _xml("GetObjectAttributesResponse", size)
    if "partNumber" in query:
        part = found.parts[int(query["partNumber"]) - 1]
        return Response(206, part, {"Content-Range": f"bytes 0-1/{len(found.body)}"})
    headers = _headers(found)
    if "response-content-type" in query:
        headers["Content-Type"] = query["response-content-type"]
    return ranged(request, found.body, headers)


def _sub(request: Request, found: Stored | None, sub: str) -> Response:
    if found is None:
        raise Denied(404, "NoSuchKey")
    if request.method == "PUT":
        found.sub[sub] = request.headers.get("x-amz-acl", "").encode() or request.body
        return Response(200)
    if request.method == "DELETE":
        found.sub[sub] = b"<Tagging><TagSet></TagSet></Tagging>"
        return Response(204)
    body = found.sub.get(sub, b"")
    return Response(200, EVERYBODY.encode() if body == b"public-read" else body)


def _delete(bucket: Bucket, key: str, version: str | None, headers: Mapping[str, str]) -> Response:
    versions = bucket.objects.get(key, [])
    if version is None:
        if "versioning" in bucket.sub:
            marker = Stored(b"", version=f"v{next(NUMBERS)}", deleted=True)
            bucket.objects.setdefault(key, []).append(marker)
        else:
            bucket.objects.pop(key, None)
        return Response(204)
    one = next((one for one in versions if one.version == version), None)
    if one is not None:
        held = b"ON" in one.sub.get("legal-hold", b"")
        kept = "retention" in one.sub and "x-amz-bypass-governance-retention" not in headers
        if held or kept:
            raise Denied(403, "AccessDenied")
        versions.remove(one)
    return Response(204)


def _store(bucket: Bucket, key: str, made: Stored) -> None:
    if "versioning" in bucket.sub:
        made.version = f"v{next(NUMBERS)}"
        bucket.objects.setdefault(key, []).append(made)
    else:
        bucket.objects[key] = [made]


def _headers(found: Stored) -> dict[str, str]:
    version = {} if found.version == "null" else {"x-amz-version-id": found.version}
    return {"ETag": f'"{found.etag}"', "Last-Modified": MODIFIED, **found.headers, **version}


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    kept = (name for name in headers if name.startswith(KEPT) and "-customer-key" not in name)
    return {name: headers[name] for name in kept}


def _xml(name: str, inside: str) -> Response:
    return Response(200, f"<{name}>{inside}</{name}>".encode())


def _list(query: Mapping[str, str], bucket: Bucket) -> Response:
    second = query.get("list-type") == "2"
    after = query.get("marker", "")
    if second:
        after = query.get("continuation-token") or query.get("start-after", "")
    most = min(1000, int(query.get("max-keys", 1000)))
    names, folders, more = listing(
        bucket.names(), query.get("prefix", ""), query.get("delimiter", ""), after, most
    )
    rows = "".join(f"<Contents><Key>{escape(name)}</Key></Contents>" for name in names)
    for folder in folders:
        rows += f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
    last = max([*names, *folders], default="")
    tag = "NextContinuationToken" if second else "NextMarker"
    rows += f"<{tag}>{last}</{tag}>" if more else ""
    return _xml("ListBucketResult", f"{rows}<IsTruncated>{str(more).lower()}</IsTruncated>")


def _versions(query: Mapping[str, str], bucket: Bucket) -> Response:
    kept = [(key, each) for key in sorted(bucket.objects) for each in bucket.objects[key][::-1]]
    places = [(key, stored.version) for key, stored in kept]
    after = (query.get("key-marker", ""), query.get("version-id-marker", ""))
    first = places.index(after) + 1 if after[0] else 0
    last = first + min(1000, int(query.get("max-keys", 1000)))
    rows = ""
    for key, stored in kept[first:last]:
        tag = "DeleteMarker" if stored.deleted else "Version"
        rows += f"<{tag}><Key>{key}</Key><VersionId>{stored.version}</VersionId></{tag}>"
    more = str(last < len(kept)).lower()
    return _xml("ListVersionsResult", f"{rows}<IsTruncated>{more}</IsTruncated>")


def sign(date: str, region: str, text: str) -> str:
    key = f"AWS4{KEY}".encode()
    for word in (date, region, "s3", "aws4_request"):
        key = hmac.digest(key, word.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def query_signature(request: Request) -> str:
    """The right signature of a presigned URL (SigV4, query parameters)."""
    url = urlsplit(request.target)
    given = dict(parse_qsl(url.query, keep_blank_values=True))
    pairs = sorted(
        (quote(name, safe="~"), quote(value, safe="~"))
        for name, value in given.items()
        if name != "X-Amz-Signature"
    )
    signed = given["X-Amz-SignedHeaders"].split(";")
    canonical = "\n".join(
        (
            *(request.method, url.path, "&".join(f"{name}={value}" for name, value in pairs)),
            *(f"{name}:{request.headers.get(name, '')}" for name in signed),
            *("", ";".join(signed), "UNSIGNED-PAYLOAD"),
        )
    )
    date, region = given["X-Amz-Credential"].split("/")[1:3]
    stamp, scope = given["X-Amz-Date"], f"{date}/{region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return sign(date, region, f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}")


def verified(request: Request) -> bytes:
    """The body of a PUT, if all that is said of it is right."""
    headers, body = request.headers, request.body
    said = headers.get("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
    if said.startswith("STREAMING-"):
        body = unframed(request)
    elif said != "UNSIGNED-PAYLOAD" and said != hashlib.sha256(body).hexdigest():
        raise Denied(400, "XAmzContentSHA256Mismatch")
    right = base64.b64encode(hashlib.md5(body).digest()).decode()
    if headers.get("content-md5", right) != right:
        raise Denied(400, "BadDigest")
    sums = {n: headers.get(f"x-amz-checksum-{n}") for n in ALGORITHMS} | trailer(request)
    if any(value is not None and value != checksum(n, body) for n, value in sums.items()):
        raise Denied(400, "BadDigest")
    return body


def trailer(request: Request) -> dict[str, str | None]:
    if "x-amz-trailer" not in request.headers:
        return {}
    found = re.findall(rb"x-amz-checksum-(\w+):([^\r]+)\r\n", request.body)
    return {name.decode(): value.decode() for name, value in found[-1:]}


def unframed(request: Request) -> bytes:
    """The body of aws-chunked, whose signatures are verified."""
    headers, rest, found = request.headers, request.body, b""
    signed = "UNSIGNED" not in headers["x-amz-content-sha256"]
    before = headers["authorization"].rpartition("Signature=")[2]
    stamp = headers["x-amz-date"]
    nothing = hashlib.sha256(b"").hexdigest()
    while True:
        head, _, rest = rest.partition(b"\r\n")
        size, _, extension = head.decode().partition(";")
        chunk, rest = rest[: int(size, 16)], rest[int(size, 16) :]
        if signed:
            scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
            digest = hashlib.sha256(chunk).hexdigest()
            text = f"AWS4-HMAC-SHA256-PAYLOAD\n{stamp}\n{scope}\n{before}\n{nothing}\n{digest}"
            before = sign(stamp[:8], "us-east-1", text)
            if extension != f"chunk-signature={before}":
                raise Denied(403, "SignatureDoesNotMatch")
        if not chunk:
            return found
        found += chunk
        rest = rest.removeprefix(b"\r\n")


# Swift.

SWIFT_USER, TOKEN = "weigh:er", "AUTH_tk_planted"
ACCOUNT = "/v1/AUTH_u"


class MemorySwift:
    def __init__(self) -> None:
        self.buckets: dict[str, Bucket] = {}

    def respond(self, request: Request) -> Response:
        if request.path == "/auth/v1.0":
            host = request.headers["host"]
            url = f"http://{host}{ACCOUNT}"
            return Response(200, headers={"X-Storage-Url": url, "X-Auth-Token": TOKEN})
        if request.path == "/info":
            return Response(200, json.dumps({"swift": {}, "slo": {}}).encode())
        name, _, key = request.path.removeprefix(ACCOUNT).lstrip("/").partition("/")
        bucket = self.buckets.get(name)
        if not self._let_in(request, bucket):
            return Response(401)
        if not name:
            return self._account(request)
        if request.method == "PUT" and not key and not request.query:
            self.buckets[name] = Bucket(
                headers=_given(request, "x-container-", "x-versions", "x-h")
            )
            return Response(201)
        if bucket is None:
            return Response(404)
        if request.method == "DELETE" and not key:
            if any(bucket.objects.values()):
                return Response(409)
            del self.buckets[name]
            return Response(204)
        if request.headers.get("content-type", "").startswith("multipart/form-data"):
            return _form(request, bucket, key)
        return self._object(request, bucket, key) if key else _container(request, bucket)

    def _let_in(self, request: Request, bucket: Bucket | None) -> bool:
        if request.headers.get("x-auth-token") == TOKEN or request.method == "POST":
            return True
        if bucket is None:
            return False
        given = request.query.get("temp_url_sig")
        if given:
            algorithm = {40: "sha1", 64: "sha256", 128: "sha512"}[len(given)]
            text = f"{request.method}\n{request.query['temp_url_expires']}\n{request.path}"
            return _signature(bucket, text, algorithm) == given
        return bucket.headers.get("x-container-read") == ".r:*"

    def _account(self, request: Request) -> Response:
        if "bulk-delete" in request.query:
            for line in request.body.decode().splitlines():
                name, _, key = line.partition("/")
                self.buckets[name].objects.pop(key, None)
        return Response(200, b"{}")

    def _find(self, path: str) -> Stored | None:
        name, _, key = path.lstrip("/").partition("/")
        found = self.buckets[name].now(key) if name in self.buckets else None
        if found is None or time.time() > float(found.sub.get("until", b"inf")):
            return None
        if "link" in found.sub:
            return self._find(found.sub["link"].decode())
        if "dlo" in found.sub:
            name, _, prefix = found.sub["dlo"].decode().partition("/")
            inside = self.buckets[name]
            keys = [one for one in inside.names() if one.startswith(prefix)]
            return Stored(b"".join(inside.objects[one][-1].body for one in keys))
        return found

    def _object(self, request: Request, bucket: Bucket, key: str) -> Response:
        path, query, headers = request.path.removeprefix(ACCOUNT), request.query, request.headers
        found = self._find(path)
        if request.method == "PUT" and "x-copy-from" not in headers:
            return self._put(request, bucket, key, found)
        if request.method in ("COPY", "PUT"):
            source = found if request.method == "COPY" else self._find(headers["x-copy-from"])
            target = headers.get("destination", path)
            if source is None:
                return Response(404)
            name, _, new = target.lstrip("/").partition("/")
            self.buckets[name].objects[new] = [Stored(source.body, dict(source.headers))]
            return Response(201)
        if found is None:
            return Response(404)
        if request.method == "POST":
            found.headers = _given(request, "x-object-meta-")
            return Response(202)
        if request.method == "DELETE":
            return self._delete(request, bucket, key, found)
        status = false_condition(headers, found)
        if status:
            return Response(status)
        if query.get("multipart-manifest") == "get":
            return Response(200, found.sub["slo"])
        if "part-number" in query:
            return Response(206, found.parts[int(query["part-number"]) - 1])
        return ranged(
            request, found.body, {"ETag": found.etag, "Last-Modified": MODIFIED, **found.headers}
        )

    def _put(self, request: Request, bucket: Bucket, key: str, before: Stored | None) -> Response:
        headers, body = request.headers, request.body
        if false_condition(headers, before) == 412:
            return Response(412)
        made = Stored(body, _given(request, "x-object-meta-"))
        if headers.get("etag", made.etag) != made.etag:
            return Response(422)
        if len(body) > int(bucket.headers.get("x-container-meta-quota-bytes", 10**9)):
            return Response(413)
        if request.query.get("multipart-manifest") == "put":
            rows = json.loads(body)
            parts = [self._find(row["path"]) for row in rows]
            if [part and part.etag for part in parts] != [row["etag"] for row in rows]:
                return Response(400)
            bodies = [part.body for part in parts if part is not None]
            made = Stored(b"".join(bodies), parts=bodies)
            made.sub["slo"] = json.dumps([{"name": row["path"]} for row in rows]).encode()
        if "x-delete-after" in headers:
            until = time.time() + int(headers["x-delete-after"])
            made.sub["until"] = str(until).encode()
            made.headers["x-delete-at"] = str(int(until))
        for name, sub in (("x-symlink-target", "link"), ("x-object-manifest", "dlo")):
            if name in headers:
                made.sub[sub] = headers[name].encode()
        made.version = f"v{next(NUMBERS)}"
        old = ("x-versions-location", "x-history-location")
        archive = next(filter(None, map(bucket.headers.get, old)), "")
        if archive and before is not None:
            self.buckets[archive].objects[f"{key}/{before.version}"] = [before]
        kept = bucket.objects.get(key, []) if "x-versions-enabled" in bucket.headers else []
        bucket.objects[key] = [*kept, made]
        return Response(201, headers={"ETag": made.etag})

    def _delete(self, request: Request, bucket: Bucket, key: str, found: Stored) -> Response:
        if request.query.get("multipart-manifest") == "delete":
            for row in json.loads(found.sub["slo"]):
                name, _, segment = row["name"].lstrip("/").partition("/")
                del self.buckets[name].objects[segment]
        del bucket.objects[key]
        archive = self.buckets.get(bucket.headers.get("x-versions-location", ""))
        if archive and archive.objects:
            name = max(archive.objects)
            bucket.objects[key] = archive.objects.pop(name)
        return Response(204)


def _container(request: Request, bucket: Bucket) -> Response:
    query = request.query
    if request.method == "POST":
        bucket.headers |= _given(request, "x-container-")
        return Response(204)
    if request.method == "HEAD":
        count = {"X-Container-Object-Count": str(len(bucket.names()))}
        return Response(204, headers={**bucket.headers, **count})
    if "extract-archive" in query:
        with tarfile.open(fileobj=io.BytesIO(request.body)) as archive:
            for member in archive:
                file = archive.extractfile(member)
                assert file is not None
                bucket.objects[member.name] = [Stored(file.read())]
        return Response(201)
    if "versions" in query:
        rows = [
            {"name": key, "version_id": one.version}
            for key, versions in bucket.objects.items()
            for one in versions
        ]
        return Response(200, json.dumps(rows).encode())
    end = query.get("end_marker") or "~"
    names = [name for name in bucket.names() if name < end]
    if query.get("reverse") == "true":
        rows = [{"name": name} for name in names[::-1][: int(query["limit"])]]
        return Response(200, json.dumps(rows).encode())
    found, folders, _ = listing(
        names,
        query.get("prefix", ""),
        query.get("delimiter", ""),
        query.get("marker", ""),
        int(query.get("limit", 10_000)),
    )
    rows = [*({"name": name} for name in found), *({"subdir": name} for name in folders)]
    if "format" not in query:
        return Response(200, "".join(f"{name}\n" for name in found).encode())
    return Response(200, json.dumps(rows).encode())


def _form(request: Request, bucket: Bucket, prefix: str) -> Response:
    fields = request.form
    names = ("redirect", "max_file_size", "max_file_count", "expires")
    text = "\n".join((request.path, *(fields[name].decode() for name in names)))
    if fields["signature"].decode() != _signature(bucket, text, "sha1"):
        return Response(401)
    bucket.objects[f"{prefix}object-1"] = [Stored(fields["file1"])]
    return Response(201)


def _signature(bucket: Bucket, text: str, algorithm: str) -> str:
    key = bucket.headers["x-container-meta-temp-url-key"]
    return hmac.new(key.encode(), text.encode(), algorithm).hexdigest()


def _given(request: Request, *names: str) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.startswith(names)}


# Both.

PREFIX = "wb-0123abcd"


class MemoryStore:
    """What is left in it shows in `s3.buckets` and `swift.buckets`."""

    def __init__(self) -> None:
        self.s3, self.swift = MemoryS3(), MemorySwift()
        self.server = Server(self.respond)

    def respond(self, request: Request) -> Response:
        swift = request.path.startswith(("/auth/", "/v1/", "/info"))
        return self.swift.respond(request) if swift else self.s3.respond(request)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        url = self.server.url
        key = SecretStr(KEY)
        return (
            Endpoint(api="s3", url=url, user=S3_USER, key=key),
            Endpoint(api="swift", url=f"{url}/auth/v1.0", user=SWIFT_USER, key=key),
        )

    def asker(self, deadline_s: float = 60) -> Asker:
        names = buckets_of(PREFIX, 0)
        return Asker(
            AskingOrder(endpoints=self.endpoints, buckets=names, own=True, deadline_s=deadline_s)
        )


@contextmanager
def memory_store() -> Iterator[MemoryStore]:
    store = MemoryStore()
    with store.server.serving():
        yield store


def ask(store: MemoryStore, *keys: str) -> dict[str, Answer]:
    asker = store.asker()
    return {key: asker.ask(CAPABILITIES[key]).answer for key in keys}
