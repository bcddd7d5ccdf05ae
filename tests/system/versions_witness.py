"""What boto3 or python-swiftclient sees of a workload's versions, as a program on the client host.

stdin is JSON, an endpoint; prints what the engine counted and what the SDK found: after the
versions were prepared, after a step that made more, after what it left was deleted, and at the end.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from sent_witness import SEED, connected, wait
from weighbridge.common.errors import DriverError
from weighbridge.drivers.engine._native import content, object_name
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import Client, S3Client, SwiftClient
from weighbridge.drivers.locust.prepared_objects import PreparedObjects, VersionedBuckets
from weighbridge.drivers.locust.worker_group import NativeWorkerGroup
from weighbridge.drivers.protocol import Prepare, Setup
from weighbridge.gateways.existing.clear import Sweep
from weighbridge.suites import Workload

SIZE, OBJECTS, VERSIONS = 5000, 6, 3
MIXES = {
    "reading": {"read-version": 3, "list-versions": 1, "read": 1},
    "writing": {"overwrite": 3, "write": 1, "delete": 1, "read": 2, "list-versions": 1},
    "deleting": {"delete": 1},
}
EACH = 40
"""Operations of a step."""


def workload(name: str) -> Workload:
    lists = "list-versions" in MIXES[name]
    return Workload.model_validate(
        {
            "name": name,
            "objects": {"size": SIZE, "per_container": OBJECTS},
            "operations": MIXES[name],
            "workers": [1],
            "runtime": "1s",
            "verify": "100%",
            "versions": VERSIONS,
            "listing": {"page": 4} if lists else None,
        }
    )


def one(setup: Setup, account: Account, sdk: Client, name: str) -> dict[str, Any]:
    asked, made = workload(name), PreparedObjects(setup)
    bucket = f"{setup.bucket_prefix}-{name}-0"
    try:
        prepared = made.prepare(Prepare(workload=asked), ignored)
    except DriverError as error:
        # What it made before it failed.
        account.delete_bucket(bucket)
        return {"refused": error.message}
    seen: dict[str, Any] = {"objects": prepared.objects, "prepared": found(sdk, bucket)}
    group = NativeWorkerGroup(setup, account, asked, 1)
    if "read-version" in asked.operations:
        group.know_versions(VersionedBuckets(setup, account, asked).ids())
    group.open_window()
    group.add_worker(0, 1, 0)
    most = OBJECTS if asked.only_deletes else EACH
    wait(lambda: group.progress().done >= most or bool(group.progress().failed))
    group.close_window()
    group.stop(30)
    seen["errors"], seen["last"] = group.progress().errors, group.progress().last_error
    seen["rows"] = {tally.operation: tally.count for tally in group.snapshot().tallies}
    seen["after"] = found(sdk, bucket)
    if name == "deleting":
        # As of a run that was killed: `clean` finds it by its name, and deletes all of it.
        sweep = Sweep([setup.target.model_dump(mode="json")])
        left = sweep.content(bucket, dict(sweep.named())[bucket])
        assert left is not None
        seen["left"] = [left.objects, list(left.strange)]
        seen["cleaned"] = sweep.delete(bucket)
    else:
        seen["strays"] = made.delete_strays(asked, ignored)
        seen["again"] = found(sdk, bucket)
        seen["deleted"] = made.delete_all(asked, 4, ignored)
    seen["buckets"] = [each for each in buckets(sdk) if each.startswith(setup.bucket_prefix)]
    return seen


def found(sdk: Client, bucket: str) -> dict[str, Any]:
    """What the SDK finds in a bucket: its versions and delete markers, and which of the prepared
    versions each of the first two objects has, oldest first, by their bytes.
    """
    listed = list_s3(sdk, bucket) if isinstance(sdk, S3Client) else list_swift(sdk, bucket)
    known = [
        hashlib.md5(content(SEED, SIZE, 0, SIZE, version=number)).digest()
        for number in range(VERSIONS)
    ]
    numbers = []
    for name in map(object_name, range(2)):
        ids = [version for one, version, marker in listed if one == name and not marker]
        sums = [hashlib.md5(read(sdk, bucket, name, version)).digest() for version in ids[::-1]]
        numbers.append([known.index(one) if one in known else -1 for one in sums])
    return {
        "versions": sum(1 for _, _, marker in listed if not marker),
        "markers": sum(1 for _, _, marker in listed if marker),
        "numbers": numbers,
    }


def list_s3(sdk: S3Client, bucket: str) -> list[tuple[str, str, bool]]:
    """Name, ID, and whether it is a marker, of each name the newest first."""
    pages = sdk._client.get_paginator("list_object_versions").paginate(Bucket=bucket)
    return [
        (one["Key"], one["VersionId"], kind == "DeleteMarkers")
        for page in pages
        for kind in ("Versions", "DeleteMarkers")
        for one in page.get(kind, [])
    ]


def list_swift(sdk: Client, bucket: str) -> list[tuple[str, str, bool]]:
    assert isinstance(sdk, SwiftClient)
    listed = sdk._connection.get_container(bucket, query_string="versions=true", limit=10_000)[1]
    return [
        (one["name"], one["version_id"], "swift_versions_deleted" in one["content_type"])
        for one in listed
    ]


def read(sdk: Client, bucket: str, name: str, version: str) -> bytes:
    if isinstance(sdk, S3Client):
        answer = sdk._client.get_object(Bucket=bucket, Key=name, VersionId=version)
        return bytes(answer["Body"].read())
    assert isinstance(sdk, SwiftClient)
    return bytes(sdk._connection.get_object(bucket, name, query_string=f"version-id={version}")[1])


def buckets(sdk: Client) -> list[str]:
    if isinstance(sdk, S3Client):
        return [one["Name"] for one in sdk._client.list_buckets()["Buckets"]]
    assert isinstance(sdk, SwiftClient)
    return [one["name"] for one in sdk._connection.get_account(full_listing=True)[1]]


def ignored(_progress: object) -> None:
    pass


def main() -> None:
    setup, account, sdk = connected("wb")
    json.dump({name: one(setup, account, sdk, name) for name in MIXES}, sys.stdout)


if __name__ == "__main__":
    main()
