"""Clients of boto3 and of python-swiftclient, for programs on client hosts, which get an endpoint
as JSON. Nothing of the suite is imported.
"""

from __future__ import annotations

from typing import Any


def s3(endpoint: dict[str, Any], **config: Any) -> Any:
    import boto3  # noqa: PLC0415 - one of the two libraries a call
    from botocore.config import Config  # noqa: PLC0415

    usual: dict[str, Any] = {
        "s3": {"addressing_style": "path"},
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
    }
    return boto3.client(
        "s3",
        endpoint_url=endpoint["url"],
        aws_access_key_id=endpoint["user"],
        aws_secret_access_key=endpoint["key"],
        region_name=endpoint["region"],
        verify=endpoint.get("ca_file"),
        config=Config(**(usual | config)),
    )


def swift(endpoint: dict[str, Any], retries: int = 0) -> Any:
    import swiftclient  # noqa: PLC0415

    return swiftclient.Connection(
        *(endpoint["url"], endpoint["user"], endpoint["key"]),
        retries=retries,
        cacert=endpoint.get("ca_file"),
    )
