"""Independent witnesses, run on the client host: boto3 or python-swiftclient against an endpoint
given as JSON on stdin.

Prints one JSON object of what they saw; nothing of the suite is imported.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import sdk

ODD_NAMES = [
    "plain",
    "with space",
    "a/b//c/",
    ".hidden",
    "100%+&=?#;:@,",
    "ünïcødé-名前-🐟",
    "'quotes\"",
    "x" * 900,
]


def s3(endpoint: dict[str, str]) -> dict[str, Any]:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - one of the two libraries a call

    client = sdk.s3(endpoint)
    bucket = f"witness-{os.urandom(4).hex()}"
    client.create_bucket(Bucket=bucket)
    bodies = {name: os.urandom(1000 + index) for index, name in enumerate(ODD_NAMES)}
    for name, body in bodies.items():
        client.put_object(Bucket=bucket, Key=name, Body=body)
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": 3}
    )
    seen: dict[str, Any] = {
        "same": [
            name
            for name, body in bodies.items()
            if client.get_object(Bucket=bucket, Key=name)["Body"].read() == body
        ],
        "listed": [item["Key"] for page in pages for item in page["Contents"]],
        "range": client.get_object(Bucket=bucket, Key="plain", Range="bytes=10-19")["Body"].read()
        == bodies["plain"][10:20],
        "length": client.head_object(Bucket=bucket, Key="plain")["ContentLength"],
    }
    parts = [os.urandom(5 << 20), os.urandom(1234)]
    upload = client.create_multipart_upload(Bucket=bucket, Key="multipart")["UploadId"]
    etags = [
        client.upload_part(
            Bucket=bucket, Key="multipart", UploadId=upload, PartNumber=number, Body=part
        )["ETag"]
        for number, part in enumerate(parts, 1)
    ]
    done = {"Parts": [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(etags, 1)]}
    client.complete_multipart_upload(
        Bucket=bucket, Key="multipart", UploadId=upload, MultipartUpload=done
    )
    seen["multipart"] = client.get_object(Bucket=bucket, Key="multipart")[
        "Body"
    ].read() == b"".join(parts)
    for name in [*ODD_NAMES, "multipart"]:
        client.delete_object(Bucket=bucket, Key=name)
    try:
        client.get_object(Bucket=bucket, Key="plain")
    except ClientError as error:
        seen["gone"] = error.response["Error"]["Code"]
    client.delete_bucket(Bucket=bucket)
    return seen


def swift(endpoint: dict[str, str]) -> dict[str, Any]:
    import swiftclient  # noqa: PLC0415

    client = sdk.swift(endpoint)
    container = f"witness-{os.urandom(4).hex()}"
    client.put_container(container)
    bodies = {name: os.urandom(1000 + index) for index, name in enumerate(ODD_NAMES)}
    for name, body in bodies.items():
        client.put_object(container, name, body)
    _, first = client.get_container(container, limit=3)
    _, rest = client.get_container(container, marker=first[-1]["name"])
    seen: dict[str, Any] = {
        "same": [
            name for name, body in bodies.items() if client.get_object(container, name)[1] == body
        ],
        "listed": [item["name"] for item in (*first, *rest)],
        "range": client.get_object(container, "plain", headers={"Range": "bytes=10-19"})[1]
        == bodies["plain"][10:20],
        "length": int(client.head_object(container, "plain")["content-length"]),
    }
    for name in ODD_NAMES:
        client.delete_object(container, name)
    try:
        client.get_object(container, "plain")
    except swiftclient.ClientException as error:
        seen["gone"] = error.http_status
    client.delete_container(container)
    return seen


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"s3": s3, "swift": swift}[asked["api"]](asked), sys.stdout)
