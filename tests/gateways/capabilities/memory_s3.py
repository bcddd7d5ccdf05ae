"""A store in memory that does all that S3 clients ask of it here, and verifies what it is told."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from http_stub import Request, Response
from tests.gateways.capabilities.memory_objects import (
    MODIFIED,
    NUMBERS,
    Bucket,
    Stored,
    false_condition,
    listing,
    ranged,
)
from weighbridge.gateways.capabilities.digests import ALGORITHMS, checksum

USER, KEY = "weigher", "a-planted-secret"
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
            locked = "x-amz-bucket-object-lock-enabled" in request.headers
            self.buckets[name] = Bucket(locked=locked)
            if locked:
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
