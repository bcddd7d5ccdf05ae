"""A large object through boto3 or python-swiftclient, as a program on the client host: streamed up,
streamed back, removed.

stdin is JSON, an endpoint with `size` in bytes; prints the MD5 of what was sent and of what came
back, and lengths. S3 takes it in parts of 16 MiB, Swift in one PUT.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

import sdk

BLOCK = 1 << 20
PART = 16 << 20
NAME = "large"


class Body:
    """`size` bytes that are nowhere in memory as a whole: no two blocks are alike, and none
    compresses. Sums what was read.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self._block = os.urandom(BLOCK)
        self._count = 0
        self._rest = b""
        self.sum = hashlib.md5(usedforsecurity=False)

    def read(self, size: int = -1) -> bytes:
        if not self._rest:
            self._count += 1
            self._rest = (self._count.to_bytes(8, "big") + self._block[8:])[: self._left]
            self._left -= len(self._rest)
            self.sum.update(self._rest)
        taken, self._rest = (
            (self._rest, b"") if size < 0 else (self._rest[:size], self._rest[size:])
        )
        return taken


def sum_of(pieces: Iterable[bytes]) -> tuple[str, int]:
    found, length = hashlib.md5(usedforsecurity=False), 0
    for piece in pieces:
        found.update(piece)
        length += len(piece)
    return found.hexdigest(), length


def s3(endpoint: dict[str, Any]) -> dict[str, Any]:
    client = sdk.s3(endpoint, s3={"addressing_style": "path", "payload_signing_enabled": False})
    bucket = f"large-{os.urandom(4).hex()}"
    client.create_bucket(Bucket=bucket)
    upload = client.create_multipart_upload(Bucket=bucket, Key=NAME)["UploadId"]
    body, parts = Body(endpoint["size"]), []
    for number in range(1, -(-endpoint["size"] // PART) + 1):
        part = b"".join(body.read() for _ in range(PART // BLOCK))
        done = client.upload_part(
            Bucket=bucket, Key=NAME, UploadId=upload, PartNumber=number, Body=part
        )
        parts.append({"PartNumber": number, "ETag": done["ETag"]})
    client.complete_multipart_upload(
        Bucket=bucket, Key=NAME, UploadId=upload, MultipartUpload={"Parts": parts}
    )
    length = client.head_object(Bucket=bucket, Key=NAME)["ContentLength"]
    read, got = sum_of(client.get_object(Bucket=bucket, Key=NAME)["Body"].iter_chunks(BLOCK))
    client.delete_object(Bucket=bucket, Key=NAME)
    client.delete_bucket(Bucket=bucket)
    return {"sent": body.sum.hexdigest(), "read": read, "length": length, "got": got}


def swift(endpoint: dict[str, Any]) -> dict[str, Any]:
    client = sdk.swift(endpoint)
    container = f"large-{os.urandom(4).hex()}"
    client.put_container(container)
    body = Body(endpoint["size"])
    etag = client.put_object(
        container, NAME, body, content_length=endpoint["size"], chunk_size=BLOCK
    )
    length = int(client.head_object(container, NAME)["content-length"])
    read, got = sum_of(client.get_object(container, NAME, resp_chunk_size=BLOCK)[1])
    client.delete_object(container, NAME)
    client.delete_container(container)
    sent = body.sum.hexdigest()
    return {"sent": sent, "read": read, "length": length, "got": got, "same_etag": etag == sent}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"s3": s3, "swift": swift}[asked["api"]](asked), sys.stdout)
