"""What python-swiftclient, on the client host, gets done beyond plain objects; the endpoint is JSON
on stdin.

Prints one JSON object of what it saw; nothing of the suite is imported.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import json
import os
import sys
import tarfile
import time
import urllib.request
from typing import Any

import swiftclient

import sdk


def main() -> None:
    client = sdk.swift(json.load(sys.stdin))
    container = f"pipeline-{os.urandom(4).hex()}"
    client.put_container(container)
    found = {
        **large_object(client, container),
        **dynamic_large_object(client, container),
        **archive(client, container),
        **bulk_delete(client, container),
        **temporary_url(client, container),
        **quota(client),
    }
    json.dump(found, sys.stdout)


def large_object(client: swiftclient.Connection, container: str) -> dict[str, Any]:
    """Two segments and their manifest, as `swift upload --use-slo` sends them."""
    parts = [os.urandom(1 << 20), os.urandom(12345)]
    manifest = []
    for number, part in enumerate(parts):
        etag = client.put_object(container, f"segment-{number}", part)
        manifest.append(
            {"path": f"/{container}/segment-{number}", "etag": etag, "size_bytes": len(part)}
        )
    client.put_object(
        container, "large", json.dumps(manifest), query_string="multipart-manifest=put"
    )
    headers, body = client.get_object(container, "large")
    return {
        "large_is_whole": body == b"".join(parts),
        "large_is_said": headers.get("x-static-large-object"),
        "large_is_manifest": body == json.dumps(manifest).encode(),
    }


def dynamic_large_object(client: swiftclient.Connection, container: str) -> dict[str, Any]:
    client.put_object(
        container, "dynamic", b"", headers={"X-Object-Manifest": f"{container}/segment-"}
    )
    return {"dynamic_bytes": len(client.get_object(container, "dynamic")[1])}


def archive(client: swiftclient.Connection, container: str) -> dict[str, Any]:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for number in range(3):
            info = tarfile.TarInfo(f"unpacked-{number}")
            info.size = 4
            tar.addfile(info, io.BytesIO(b"tape"))
    answered: dict[str, Any] = {}
    client.put_object(
        container, "", packed.getvalue(), query_string="extract-archive=tar", response_dict=answered
    )
    return {
        "unpacked": len(client.get_container(container, prefix="unpacked-")[1]),
        "unpacked_status": answered["status"],
    }


def bulk_delete(client: swiftclient.Connection, container: str) -> dict[str, Any]:
    names = [f"bulk-{number}" for number in range(3)]
    for name in names:
        client.put_object(container, name, b"x")
    answered: dict[str, Any] = {}
    text = "".join(f"{container}/{name}\n" for name in names)
    client.post_account({"Content-Type": "text/plain"}, answered, "bulk-delete", text)
    return {
        "left": len(client.get_container(container, prefix="bulk-")[1]),
        "bulk_status": answered["status"],
    }


def temporary_url(client: swiftclient.Connection, container: str) -> dict[str, Any]:
    client.post_account({"X-Account-Meta-Temp-URL-Key": "fish"})
    client.put_object(container, "shared", b"for all")
    storage_url, _ = client.get_auth()
    host, _, account = storage_url.partition("/v1/")
    path, expires = f"/v1/{account}/{container}/shared", int(time.time()) + 600
    signature = hmac.new(b"fish", f"GET\n{expires}\n{path}".encode(), hashlib.sha256).hexdigest()
    try:
        with urllib.request.urlopen(
            f"{host}{path}?temp_url_sig={signature}&temp_url_expires={expires}"
        ) as answer:
            return {"shared": answer.read().decode()}
    except urllib.error.HTTPError as error:
        return {"shared": error.code}


def quota(client: swiftclient.Connection) -> dict[str, Any]:
    container = f"quota-{os.urandom(4).hex()}"
    client.put_container(container, headers={"X-Container-Meta-Quota-Bytes": "10"})
    try:
        client.put_object(container, "more", b"more than ten bytes")
    except swiftclient.ClientException as error:
        return {"quota": error.http_status}
    return {"quota": 201}


if __name__ == "__main__":
    main()
