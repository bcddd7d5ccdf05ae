"""Run on a client host: the engine writes and reads objects with a customer's key (SSE-C), and
boto3 reads them with it, without it and with another. An order on stdin, what was seen on stdout,
as JSON.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from typing import Any

from botocore.exceptions import ClientError

import sdk
from signing_witness import OBJECTS, ONCE, SEED, SIZE, Relay, address, ended, engine
from weighbridge.drivers.engine import _native

KEY = hashlib.sha256(f"weighbridge sse-c {SEED}".encode()).digest()
PART = 5 << 20
LARGE = 2 * PART + 12_345


def asked(key: bytes) -> dict[str, Any]:
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key}


def refused(client: Any, key: bytes | None, name: str, bucket: str) -> str:
    """The code by which a read is refused; empty if it is not."""
    try:
        client.get_object(Bucket=bucket, Key=name, **(asked(key) if key else {}))
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def main() -> None:
    order = json.load(sys.stdin)
    relay, client = Relay(*address(order)), sdk.s3(order, retries=ONCE)
    seen: dict[str, Any] = {"errors": {}, "same": 0}
    bucket = "wb-sse-w-0"
    client.create_bucket(Bucket=bucket)
    made = engine(order, relay.port, {}, "wb-sse", encryption="sse-c")
    made.prepare(0, OBJECTS, 1, 2)
    seen["written"] = ended(made)
    names = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
    seen["names"] = names
    for name in names:
        body = client.get_object(Bucket=bucket, Key=name, **asked(KEY))["Body"].read()
        seen["same"] += body == _native.content(SEED, SIZE, 0, SIZE)
    seen["without"] = refused(client, None, names[0], bucket)
    seen["with another"] = refused(client, hashlib.sha256(b"another").digest(), names[0], bucket)
    parts = {"size": LARGE, "containers": 1, "per_container": 1}
    works: list[dict[str, Any]] = [
        {"operations": {"read": 1.0}, "verify": 1.0},
        {"operations": {"read-range": 1.0}, "range": {"bytes": 5000, "at": "random"}},
        {"operations": {"head": 1.0}},
        {"operations": {"write": 1.0}},
        {"operations": {"write-multipart": 1.0}, "objects": parts, "multipart": {"part": PART}},
    ]
    for number, work in enumerate(works):
        made = engine(order, relay.port, {}, "wb-sse", encryption="sse-c", **work)
        made.add_worker(0, 1, number)
        while not made.started() or sum(made_so_far(made)) < 3:
            time.sleep(0.01)
        made.stop(5.0)
        progress = json.loads(made.progress())
        seen["errors"][next(iter(work["operations"]))] = progress["errors"]
    large = [
        one["Key"]
        for one in client.list_objects_v2(Bucket=bucket)["Contents"]
        if one["Size"] == LARGE
    ]
    body = client.get_object(Bucket=bucket, Key=large[0], **asked(KEY))["Body"].read()
    seen["large same"] = body == _native.content(SEED, LARGE, 0, LARGE)
    seen["large without"] = refused(client, None, large[0], bucket)
    seen["sse-s3"] = with_its_own_key(order, relay.port, client)
    json.dump(seen, sys.stdout)


def with_its_own_key(order: dict[str, Any], port: int, client: Any) -> dict[str, Any]:
    bucket = "wb-sse3-w-0"
    client.create_bucket(Bucket=bucket)
    made = engine(order, port, {}, "wb-sse3", encryption="sse-s3")
    made.prepare(0, OBJECTS, 1, 2)
    written = ended(made)
    first = client.get_object(Bucket=bucket, Key=_native.object_name(0))
    same = first["Body"].read() == _native.content(SEED, SIZE, 0, SIZE)
    return {"written": written, "same": same, "said": first.get("ServerSideEncryption")}


def made_so_far(made: Any) -> tuple[int, int]:
    progress = json.loads(made.progress())
    return progress["done"], progress["failed"]


if __name__ == "__main__":
    main()
