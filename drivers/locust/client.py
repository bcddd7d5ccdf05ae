"""Clients of SDK users: boto3 for S3, python-swiftclient for Swift.

Retries are off: an attempt more would hide an error.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, Protocol, cast

from weighbridge.drivers.engine._native import content
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.order import Setup

CHUNK_BYTES = 256 * 1024
LIST_MOST = 1000
"""Names a list asks for: one page."""


class Body(io.RawIOBase):
    """The content of an object as a file, for objects too large to be held in memory by every
    worker.
    """

    def __init__(self, seed: int, size: int) -> None:
        super().__init__()
        self._seed, self._size, self._at = seed, size, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is: SDKs seek to learn its length, and read it twice to hash and to send it."""
        return True

    def tell(self) -> int:
        """Where it stands, in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Stand elsewhere; as of any file."""
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from where it stands."""
        data = content(
            self._seed, self._size, self._at, min(len(buffer), max(0, self._size - self._at))
        )
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class Client(Protocol):
    """The five operations by way of one SDK. They raise what the SDK raises."""

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        """The object in pieces."""

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> str:
        """Write an object; returns the ETag that the answer names, which both APIs promise.

        Empty: the head of the answer broke off. Python's HTTP takes what came of it for all of it,
        and SDKs go by the status.
        """

    def delete(self, bucket: str, name: str) -> None:
        """Delete an object."""

    def list(self, bucket: str) -> int:
        """List a page of a bucket; how many keys it has."""

    def head(self, bucket: str, name: str) -> int:
        """Size of an object, in bytes."""

    def classify(self, error: Exception) -> str | None:
        """The class of an error of this SDK that answers are known by (`http-503`); None for one of
        the way there.
        """


class S3Client:
    """boto3. One client, as its makers advise, with a connection for each worker."""

    def __init__(self, setup: Setup, account: Account, connections: int) -> None:
        import boto3  # noqa: PLC0415 - costs half a second of CPU: only who uses it pays
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import ClientError  # noqa: PLC0415

        target = setup.target
        self._error: type[Any] = ClientError
        self._client: Any = boto3.client(
            "s3",
            endpoint_url=account.url,
            aws_access_key_id=target.user,
            aws_secret_access_key=target.key.get_secret_value(),
            aws_session_token=account.token or None,
            region_name=target.region,
            verify=target.ca_file,
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=setup.request_timeout_s,
                read_timeout=setup.request_timeout_s,
                max_pool_connections=connections,
                s3={"addressing_style": target.addressing},
                # The checksums that newer SDKs add by themselves are unknown to the older gateways
                # weighed here.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
                # A proxy of the environment would be weighed along.
                proxies={},
            ),
        )

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        """See Client."""
        body = self._client.get_object(Bucket=bucket, Key=name)["Body"]
        try:
            yield from iter(lambda: body.read(CHUNK_BYTES), b"")
        finally:
            body.close()

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> str:
        """See Client."""
        return str(
            self._client.put_object(Bucket=bucket, Key=name, Body=body, ContentLength=size).get(
                "ETag", ""
            )
        )

    def delete(self, bucket: str, name: str) -> None:
        """See Client."""
        self._client.delete_object(Bucket=bucket, Key=name)

    def list(self, bucket: str) -> int:
        """See Client."""
        return len(
            self._client.list_objects_v2(Bucket=bucket, MaxKeys=LIST_MOST).get("Contents", ())
        )

    def head(self, bucket: str, name: str) -> int:
        """See Client."""
        return int(self._client.head_object(Bucket=bucket, Key=name)["ContentLength"])

    def classify(self, error: Exception) -> str | None:
        """See Client."""
        if not isinstance(error, self._error):
            return None
        response = cast("dict[str, dict[str, Any]]", getattr(error, "response", {}))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return f"http-{status}" if status else "protocol"


class SwiftClient:
    """python-swiftclient.

    A connection of its own for each worker: it has one request outstanding.
    """

    def __init__(self, setup: Setup, account: Account) -> None:
        from swiftclient.client import Connection  # noqa: PLC0415 - only who uses it pays for it
        from swiftclient.exceptions import ClientException  # noqa: PLC0415

        self._error: type[Any] = ClientException
        self._account = account
        self._connection: Any = Connection(
            preauthurl=account.url,
            preauthtoken=account.token,
            retries=0,
            timeout=setup.request_timeout_s,
            cacert=setup.target.ca_file,
        )

    def _ready(self) -> Any:
        # It forgets where its storage is after a 401, and could not get it again without the
        # credentials.
        self._connection.url, self._connection.token = self._account.url, self._account.token
        return self._connection

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        """See Client."""
        _, body = self._ready().get_object(bucket, name, resp_chunk_size=CHUNK_BYTES)
        try:
            yield from body
        finally:
            body.close()

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> str:
        """See Client."""
        return str(self._ready().put_object(bucket, name, body, content_length=size) or "")

    def delete(self, bucket: str, name: str) -> None:
        """See Client."""
        self._ready().delete_object(bucket, name)

    def list(self, bucket: str) -> int:
        """See Client."""
        return len(self._ready().get_container(bucket, limit=LIST_MOST)[1])

    def head(self, bucket: str, name: str) -> int:
        """See Client."""
        return int(self._ready().head_object(bucket, name)["content-length"])

    def classify(self, error: Exception) -> str | None:
        """See Client."""
        if not isinstance(error, self._error):
            return None
        status = getattr(error, "http_status", None)
        return f"http-{status}" if status else "protocol"
