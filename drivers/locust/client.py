"""boto3 and python-swiftclient for SDK users, without retries, which would hide errors."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator
from typing import Any, Protocol, cast

from weighbridge.common import credential
from weighbridge.drivers.engine._native import content
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.protocol import Setup

CHUNK_BYTES = 256 * 1024
LIST_MOST = 1000
"""Names that a list asks for: one page."""


class Body(io.RawIOBase):
    """An object's content as a file, for objects too large for every worker to hold in memory."""

    def __init__(self, seed: int, size: int) -> None:
        super().__init__()
        self._seed, self._size, self._at = seed, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        """True: SDKs seek to find the length, and read twice, to hash and to send."""
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = max(0, offset + (0, self._at, self._size)[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        length = min(len(buffer), max(0, self._size - self._at))
        buffer[:length] = content(self._seed, self._size, self._at, length)
        self._at += length
        return length


class Client(Protocol):
    """The five operations with one SDK. They raise what the SDK raises."""

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        """The object's content in pieces."""

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> str:
        """Write an object; returns the answer's ETag, which both APIs promise.

        "" means that the answer's headers were cut off: Python's HTTP client takes what came for
        all of it, and SDKs look at the status only.
        """

    def delete(self, bucket: str, name: str) -> None:
        """Delete an object."""

    def list(self, bucket: str) -> int:
        """List one page of a bucket; returns the number of keys."""

    def head(self, bucket: str, name: str) -> int:
        """Size of an object, in bytes."""

    def classify(self, error: Exception) -> str | None:
        """The class of an error answer as this SDK raises it (`http-503`), or None."""


class S3Client:
    """boto3: one client, as its documentation advises, with a connection for each worker."""

    def __init__(
        self, setup: Setup, account: Account, connections: int, *, checksums: bool = False
    ) -> None:
        """`checksums`: with those that it sends and verifies by default."""
        import boto3  # noqa: PLC0415 - costs half a second of CPU: imported only where it is used
        from botocore.config import Config  # noqa: PLC0415
        from botocore.exceptions import ClientError  # noqa: PLC0415

        target = setup.target
        wanted = "when_supported" if checksums else "when_required"
        self._error: type[Any] = ClientError
        session = credential.plain_session()
        session.get_component("credential_provider").insert_before("env", _provider_of(account))
        self._client: Any = boto3.Session(botocore_session=session).client(
            "s3",
            endpoint_url=account.url,
            region_name=target.region,
            verify=target.ca_file,
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=setup.request_timeout_s,
                read_timeout=setup.request_timeout_s,
                max_pool_connections=connections,
                s3={"addressing_style": target.addressing},
                # Older gateways do not know the checksums that newer SDKs add by default. Said in
                # both cases: the environment and configuration files can say otherwise.
                request_checksum_calculation=wanted,
                response_checksum_validation=wanted,
                # A proxy from the environment would be measured too.
                proxies={},
            ),
        )

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        body = self._client.get_object(Bucket=bucket, Key=name)["Body"]
        try:
            yield from iter(lambda: body.read(CHUNK_BYTES), b"")
        finally:
            body.close()

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> str:
        answer = self._client.put_object(Bucket=bucket, Key=name, Body=body, ContentLength=size)
        etag = str(answer.get("ETag", ""))
        # By a key of a KMS it is no MD5, though it looks like one.
        own = answer.get("ServerSideEncryption", "AES256") == "AES256"
        return etag if own or not etag else "encrypted"

    def delete(self, bucket: str, name: str) -> None:
        self._client.delete_object(Bucket=bucket, Key=name)

    def list(self, bucket: str) -> int:
        page = self._client.list_objects_v2(Bucket=bucket, MaxKeys=LIST_MOST)
        return len(page.get("Contents", ()))

    def head(self, bucket: str, name: str) -> int:
        return int(self._client.head_object(Bucket=bucket, Key=name)["ContentLength"])

    def classify(self, error: Exception) -> str | None:
        if not isinstance(error, self._error):
            return None
        response = cast("dict[str, dict[str, Any]]", getattr(error, "response", {}))
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return f"http-{status}" if status else "protocol"


def _provider_of(account: Account) -> Any:
    """Botocore's source of keys: it is asked for each request, so that renewed ones are used."""
    from botocore.credentials import (  # noqa: PLC0415 - as boto3 itself
        CredentialProvider,
        Credentials,
        ReadOnlyCredentials,
    )

    class AccountKeys(Credentials):  # type: ignore[misc] # botocore has no types
        def get_frozen_credentials(self) -> Any:
            access, secret, token = account.keys
            return ReadOnlyCredentials(access, secret, token or None)

    class AccountProvider(CredentialProvider):  # type: ignore[misc]
        METHOD = "weighbridge"
        CANONICAL_NAME = METHOD

        def load(self) -> Any:
            return AccountKeys(*account.keys)

    return AccountProvider()


class SwiftClient:
    """python-swiftclient: a connection for each worker, which has one request outstanding."""

    def __init__(self, setup: Setup, account: Account) -> None:
        from swiftclient.client import Connection  # noqa: PLC0415 - imported only where it is used
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
        # After a 401 it forgets the storage URL, and cannot get it again without credentials.
        self._connection.url, self._connection.token = self._account.url, self._account.token
        return self._connection

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        _, body = self._ready().get_object(bucket, name, resp_chunk_size=CHUNK_BYTES)
        try:
            yield from body
        finally:
            body.close()

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> str:
        return str(self._ready().put_object(bucket, name, body, content_length=size) or "")

    def delete(self, bucket: str, name: str) -> None:
        self._ready().delete_object(bucket, name)

    def list(self, bucket: str) -> int:
        return len(self._ready().get_container(bucket, limit=LIST_MOST)[1])

    def head(self, bucket: str, name: str) -> int:
        return int(self._ready().head_object(bucket, name)["content-length"])

    def classify(self, error: Exception) -> str | None:
        if not isinstance(error, self._error):
            return None
        status = getattr(error, "http_status", None)
        return f"http-{status}" if status else "protocol"


def transport_error_class(error: BaseException) -> str:
    """The class of an error without an answer, by the chain of causes that SDKs wrap it in."""
    names: set[str] = set()
    queue: list[object] = [error]
    seen: list[object] = []
    while queue:
        one = queue.pop()
        if not isinstance(one, BaseException) or any(one is other for other in seen):
            continue
        seen.append(one)
        names.update(kind.__name__ for kind in type(one).__mro__)
        queue += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]
    connect = {
        "ConnectionRefusedError",
        "NewConnectionError",
        "ConnectTimeoutError",
        "ConnectTimeout",
        "EndpointConnectionError",
    }
    if names & {*connect, socket.gaierror.__name__}:
        return "connect"
    if names & {"TimeoutError", "ReadTimeoutError", "ReadTimeout", "Timeout"}:
        return "timeout"
    if names & {"IncompleteRead", "IncompleteReadError"}:
        return "short-body"
    if "BadStatusLine" in names and "RemoteDisconnected" not in names:
        # Something was answered that is not HTTP; boto3 calls that a closed connection.
        return "protocol"
    if names & {
        "ConnectionResetError",
        "BrokenPipeError",
        "ConnectionAbortedError",
        "RemoteDisconnected",
        "ConnectionClosedError",
    }:
        return "reset"
    return "protocol"
