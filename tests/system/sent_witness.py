"""What boto3 or python-swiftclient sees of what the engine did, as a program on the client host.

stdin is JSON, an endpoint; prints for each operation of the engine over its API its errors, and
whether the SDK found what it must have left.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

from weighbridge.drivers.engine._native import content, object_name, written_name
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import Client, S3Client, SwiftClient
from weighbridge.drivers.locust.worker_group import NativeWorkerGroup
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import TRAITS, Workload

SEED = 7
SMALL, LARGE, PART = 64 << 10, (12 << 20) + 5, 5 << 20
WORKLOADS: dict[str, dict[str, Any]] = {
    "read-range": {"range": {"bytes": 10_000, "at": "random"}},
    "read-if-none-match": {},
    "read-if-match": {},
    "copy": {},
    "list-all": {"listing": {"page": 7, "prefix": "object-"}},
    "delete-many": {"delete_many": 10},
    "write-multipart": {"multipart": {"part": 5 << 20, "at_once": 2}},
    "write-if-none-match": {},
    "rewrite-if-none-match": {},
    "update-metadata": {"pick": "sequential"},
    "tag": {"pick": "sequential"},
    "read-part": {"multipart": {"part": PART}},
    "presigned": {
        "operations": {"write": 2, "read": 1, "read-range": 1, "head": 1, "delete": 1},
        "range": {"bytes": 10_000, "at": "random"},
        "signing": {"auth": "query"},
    },
    "overwrite": {"pick": "sequential"},
}
MAKING = ("copy", "write-multipart", "write-if-none-match")
OBJECTS = 20


def one(setup: Setup, account: Account, sdk: Client, operation: str) -> dict[str, Any]:
    size = LARGE if "multipart" in WORKLOADS[operation] else SMALL
    objects = 3 if operation == "read-part" else OBJECTS
    workload = Workload.model_validate(
        {
            "name": operation,
            "objects": {"size": size, "per_container": objects},
            "operations": {operation: 1},
            "workers": [1],
            "runtime": "1s",
            "verify": "100%",
            **WORKLOADS[operation],
        }
    )
    bucket = f"{setup.bucket_prefix}-{operation}-0"
    account.make_bucket(bucket)
    group = NativeWorkerGroup(setup, account, workload, 1)
    if workload.needs_objects:
        group.prepare(0, objects, 4)
        wait(lambda: not group.progress().running)
    prepared = group.progress()
    group.open_window()
    group.add_worker(0, 1, 0)
    # Of the mix, until two objects were written that are still there.
    most = 40 if operation == "presigned" else 2 if workload.deletes else 3
    wait(lambda: group.progress().done >= prepared.done + most or bool(group.progress().failed))
    group.close_window()
    group.stop(30)
    progress = group.progress()
    seen: dict[str, Any] = {"errors": progress.errors, "last": progress.last_error}
    seen["rows"] = {tally.operation: tally.count for tally in group.snapshot().tallies}
    if operation in ("update-metadata", "tag") and not progress.failed:
        notes = [noted(sdk, bucket, object_name(index), operation) for index in range(2)]
        bodies = [b"".join(sdk.read(bucket, object_name(at))) for at in range(2)]
        seen["noted"] = notes
        seen["same"] = bodies == [content(SEED, size, 0, size)] * 2
    if operation == "read-part":
        name = object_name(0)
        seen["same"] = b"".join(sdk.read(bucket, name)) == content(SEED, size, 0, size)
        second = second_part(sdk, bucket, name, asks=not progress.failed)
        seen["second"] = second == content(SEED, size, PART, PART)
        seen["in_parts"] = in_parts(sdk, bucket, name)
        group.delete_prepared(2)
        wait(lambda: not group.progress().running)
        seen["after"] = list(account.objects(bucket))
    if operation == "presigned" and not progress.failed:
        left = [name for name in account.objects(bucket) if name.startswith("written-")]
        bodies = [b"".join(sdk.read(bucket, name)) for name in left]
        seen["same"] = len(left) > 0 and set(bodies) == {content(SEED, size, 0, size)}
    if operation in MAKING and not progress.failed:
        seen["same"] = reads_back(sdk, bucket, size)
    if operation == "overwrite":
        bodies = [b"".join(sdk.read(bucket, object_name(at))) for at in range(2)]
        seen["same"] = bodies == [content(SEED, size, 0, size)] * 2
    if operation == "delete-many":
        seen["left"] = sdk.list(bucket)
    group.delete_written(4)
    wait(lambda: not group.progress().running)
    if operation == "write-multipart":
        # Deleted with their parts, over Swift too.
        seen["after"] = list(account.objects(bucket))
    for name in [*account.objects(bucket), *(object_name(at) for at in range(OBJECTS))]:
        account.delete_object(bucket, name)
    wait(lambda: account.delete_bucket(bucket))
    return seen


def reads_back(sdk: Client, bucket: str, size: int) -> bool | str | None:
    """Whether the SDK reads what the worker wrote first, or the class of error that it gets."""
    names = [written_name(1, 0, 0, index) for index in range(2)]
    try:
        same = [b"".join(sdk.read(bucket, name)) == content(SEED, size, 0, size) for name in names]
    except Exception as error:  # noqa: BLE001 - each SDK has its own
        return sdk.classify(error) or repr(error)
    return all(same) and [sdk.head(bucket, name) for name in names] == [size, size]


def noted(sdk: Client, bucket: str, name: str, operation: str) -> str:
    """The value that the engine noted last of an object, as the SDK reads it."""
    if isinstance(sdk, SwiftClient):
        found = sdk._connection.head_object(bucket, name)
        return str(found.get("x-object-meta-weighbridge"))
    client = sdk._client  # type: ignore[attr-defined]
    if operation == "update-metadata":
        return str(client.head_object(Bucket=bucket, Key=name)["Metadata"].get("weighbridge"))
    tags = client.get_object_tagging(Bucket=bucket, Key=name)["TagSet"]
    return str({one["Key"]: one["Value"] for one in tags}.get("weighbridge"))


def second_part(sdk: Client, bucket: str, name: str, *, asks: bool) -> bytes:
    """The second part of an object as the SDK gets it, by its number or else by its bytes."""
    if isinstance(sdk, SwiftClient):
        query = "part-number=2" if asks else None
        body = sdk._connection.get_object(bucket, name, query_string=query)[1]
    else:
        asked = {"PartNumber": 2} if asks else {}
        client = sdk._client  # type: ignore[attr-defined]
        body = client.get_object(Bucket=bucket, Key=name, **asked)["Body"].read()
    return bytes(body) if asks else bytes(body[PART : 2 * PART])


def in_parts(sdk: Client, bucket: str, name: str) -> bool:
    """Whether the SDK sees an object of three parts, or a large object of Swift's."""
    if isinstance(sdk, SwiftClient):
        found = sdk._connection.head_object(bucket, name)
        return str(found.get("x-static-large-object")).lower() == "true"
    client = sdk._client  # type: ignore[attr-defined]
    return str(client.head_object(Bucket=bucket, Key=name)["ETag"]).endswith('-3"')


def wait(condition: Any) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit("nothing happened within 60 s")
        time.sleep(0.02)


def connected(prefix: str) -> tuple[Setup, Account, Client]:
    order = json.load(sys.stdin)
    setup = Setup(target=order, bucket_prefix=f"{prefix}-{os.urandom(4).hex()}", seed=SEED)
    account = Account(setup.target, 30)
    account.authenticate()
    sdk: Client
    sdk = S3Client(setup, account, 1) if setup.target.api == "s3" else SwiftClient(setup, account)
    return setup, account, sdk


def main() -> None:
    setup, account, sdk = connected("sent")
    served = {str(name) for name, traits in TRAITS.items() if setup.target.api in traits.sent}
    served |= {"presigned"} if setup.target.api == "s3" else set()
    names = [name for name in WORKLOADS if name in served]
    json.dump({name: one(setup, account, sdk, name) for name in names}, sys.stdout)


if __name__ == "__main__":
    main()
