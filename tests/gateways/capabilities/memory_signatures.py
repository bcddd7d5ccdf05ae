"""What S3 requests say of themselves, verified: signatures, checksums and chunks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from urllib.parse import parse_qsl, quote, urlsplit

from http_stub import Request
from weighbridge.gateways.capabilities.digests import ALGORITHMS, checksum

USER, KEY = "weigher", "a-planted-secret"


class Denied(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


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
