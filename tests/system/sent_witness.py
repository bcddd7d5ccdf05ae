"""What boto3 or python-swiftclient sees of what the engine did, as a program on the client host.

stdin is JSON, an endpoint; prints for each operation of the engine over its API its errors, and
whether the SDK found what it must have left.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
from weighbridge.drivers.engine._native import content, object_name, written_name
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import Client, S3Client, SwiftClient
from weighbridge.drivers.locust.worker_group import NativeWorkerGroup
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import TRAITS, Workload

SEED = 7
SMALL, LARGE = 64 << 10, (12 << 20) + 5
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
    "overwrite": {"pick": "sequential"},
}
OBJECTS = 20


def one(setup: Setup, account: Account, sdk: Client, operation: str) -> dict[str, Any]:
    size = LARGE if operation == "write-multipart" else SMALL
    workload = Workload.model_validate(
        {
            "name": operation,
            "objects": {"size": size, "per_container": OBJECTS},
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
        group.prepare(0, OBJECTS, 4)
        wait(lambda: not group.progress().running)
    prepared = group.progress()
    group.open_window()
    group.add_worker(0, 1, 0)
    most = 2 if workload.deletes else 3
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
    if operation == "overwrite":
        bodies = [b"".join(sdk.read(bucket, object_name(at))) for at in range(2)]
        seen["same"] = bodies == [content(SEED, size, 0, size)] * 2
    if operation in ("copy", "write-multipart", "write-if-none-match") and not progress.failed:
        names = [written_name(1, 0, 0, index) for index in range(2)]
        same = [b"".join(sdk.read(bucket, name)) == content(SEED, size, 0, size) for name in names]
        seen["same"] = all(same) and [sdk.head(bucket, name) for name in names] == [size, size]
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


def wait(condition: Any) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit("nothing happened within 60 s")
        time.sleep(0.02)


def main() -> None:
    order = json.load(sys.stdin)
    setup = Setup(target=order, bucket_prefix=f"sent-{os.urandom(3).hex()}", seed=SEED)
    account = Account(setup.target, 30)
    account.authenticate()
    sdk: Client
    sdk = S3Client(setup, account, 1) if setup.target.api == "s3" else SwiftClient(setup, account)
    served = [name for name, traits in TRAITS.items() if setup.target.api in traits.sent]
    names = [name for name in WORKLOADS if name in served]
    json.dump({name: one(setup, account, sdk, name) for name in names}, sys.stdout)


if __name__ == "__main__":
    main()
