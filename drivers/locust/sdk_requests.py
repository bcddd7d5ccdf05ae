"""One request of an SDK user: made as the native engine makes it, and its answer checked."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Callable
from typing import cast

from weighbridge.drivers.engine._native import content, object_name, written_name
from weighbridge.drivers.locust.account import Account
from weighbridge.drivers.locust.client import (
    CHUNK_BYTES,
    LIST_MOST,
    Body,
    Client,
    S3Client,
    SwiftClient,
    transport_error_class,
)
from weighbridge.drivers.protocol import Setup
from weighbridge.suites import Operation, Workload
from weighbridge.suites.signing import SDK_DEFAULT

IN_MEMORY_BYTES = 8 * 2**20
"""Bodies up to this size are held in memory, larger ones are read as files."""


MOST_CONNECTIONS = 4096
"""That workers keep: more workers make a new one for each request."""


class BadResponse(Exception):
    """A response that is not what was requested; `error_class` is its class."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


def clients(
    setup: Setup, account: Account, workload: Workload, workers: int
) -> Callable[[], Client]:
    """What gives each of so many workers its client."""
    if setup.target.api == "s3":
        as_shipped = workload.signed == SDK_DEFAULT
        connections = min(max(1, workers), MOST_CONNECTIONS)
        shared = S3Client(setup, account, connections, checksums=as_shipped)
        return lambda: shared
    return lambda: SwiftClient(setup, account)


def class_of(client: Client, error: Exception) -> str:
    """The class of what a request raised."""
    if isinstance(error, BadResponse):
        return error.error_class
    return client.classify(error) or transport_error_class(error)


class SdkRequests:
    """Makes the requests of a workload's workers. `written` is what they wrote, or may have."""

    def __init__(self, setup: Setup, workload: Workload) -> None:
        self._setup = setup
        self._workload = workload
        self.written: dict[tuple[str, str], None] = {}
        # All objects of a size have the same body, so a few bodies are enough for a step.
        self._body = functools.lru_cache(maxsize=4)(lambda size: content(setup.seed, size, 0, size))
        objects = workload.objects
        # Prepared objects exist, unless the workload deletes them.
        deletes = "delete" in workload.operations and not {"read", "head"} & set(
            workload.operations
        )
        self._least_listed = 0 if deletes else min(objects.per_container, LIST_MOST)
        self._md5 = functools.lru_cache(maxsize=1)(functools.partial(_md5, setup.seed))
        if "write" in workload.operations and isinstance(objects.size, int):
            self._md5(objects.size)

    def make(
        self,
        client: Client,
        worker: tuple[int, int, int],
        request: tuple[str, int, int, int],
        *,
        verify: bool,
    ) -> tuple[int, float | None]:
        """Make a request of a Picker for a worker (of how many, repeat, index).

        Returns the bytes moved, and when the first of a read arrived (perf_counter). Raises what
        the SDK raises, and BadResponse.
        """
        operation, container, number, size = cast("tuple[Operation, int, int, int]", request)
        bucket = f"{self._setup.bucket_prefix}-{self._workload.name}-{container}"
        # A delete of one of the worker's own objects has the number -1 - number.
        own = operation == "write" or number < 0
        name = (
            written_name(*worker, number if number >= 0 else -1 - number)
            if own
            else object_name(number)
        )
        if operation == "read":
            return self._read(client, bucket, name, size, verify=verify)
        if operation == "write":
            # Noted first: the object may exist even if the answer is lost.
            self.written[bucket, name] = None
            in_memory = size <= IN_MEMORY_BYTES
            body = self._body(size) if in_memory else Body(self._setup.seed, size)
            etag = client.write(bucket, name, body, size)
            self._check_etag(etag, f"PUT {bucket}/{name}", size)
            return size, None
        if operation == "delete":
            client.delete(bucket, name)
            self.written.pop((bucket, name), None)
        elif operation == "list":
            self._check_listing(client.list(bucket), bucket)
        elif (seen := client.head(bucket, name)) != size:
            text = f"HEAD {bucket}/{name}: {seen} bytes instead of {size}"
            raise BadResponse("wrong-length", text)
        return 0, None

    def _check_etag(self, etag: str, what: str, size: int) -> None:
        """Check an ETag that is an MD5.

        Only of fixed sizes: hashing each drawn size would cost too much.
        """
        if not etag:
            text = f"{what}: no ETag: the answer was cut off, or is not of this API"
            raise BadResponse("protocol", text)
        etag = etag.strip('"').lower()
        is_md5 = len(etag) == 32 and set(etag) <= set("0123456789abcdef")
        if is_md5 and isinstance(self._workload.objects.size, int) and etag != self._md5(size):
            text = f"{what}: the ETag {etag} is not the MD5 of what was written"
            raise BadResponse("wrong-etag", text)

    def _check_listing(self, keys: int, bucket: str) -> None:
        if not self._least_listed <= keys <= LIST_MOST:
            wanted = f"{self._least_listed} exist, and {LIST_MOST} were requested"
            raise BadResponse("bad-list", f"GET {bucket}: {keys} keys where at least {wanted}")

    def _read(
        self, client: Client, bucket: str, name: str, size: int, *, verify: bool
    ) -> tuple[int, float]:
        """The number of bytes read, and when the first of them arrived."""
        seen = 0
        first_byte_s = None
        for piece in client.read(bucket, name):
            if first_byte_s is None:
                first_byte_s = time.perf_counter()
            if verify and piece != content(self._setup.seed, size, seen, len(piece)):
                text = f"GET {bucket}/{name}: other bytes than were written, from {seen} on"
                raise BadResponse("wrong-content", text)
            seen += len(piece)
        if seen != size:
            error_class = "short-body" if seen < size else "wrong-content"
            text = f"GET {bucket}/{name}: {seen} bytes instead of {size}"
            raise BadResponse(error_class, text)
        return seen, first_byte_s or time.perf_counter()


def _md5(seed: int, size: int) -> str:
    """MD5 of the content of an object of `size` bytes, in hexadecimal."""
    made = hashlib.md5(usedforsecurity=False)
    for at in range(0, size, CHUNK_BYTES):
        made.update(content(seed, size, at, CHUNK_BYTES))
    return made.hexdigest()
