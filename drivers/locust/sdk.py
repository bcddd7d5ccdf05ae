"""SDK users: boto3 for S3, python-swiftclient for Swift, as a Python application would use them, in greenlets.

They make the very sequence of requests that the native engine makes. Retries are off: an attempt more would hide an error.
"""

from __future__ import annotations

import functools
import io
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, cast

import gevent

from drivers.engine._native import Picker, content, object_name, written_name
from drivers.locust.account import Account
from drivers.locust.crew import Pulse, Window
from drivers.locust.recorder import Recorder
from drivers.order import Setup
from suites import Operation, Workload

CHUNK_BYTES = 256 * 1024
WHOLE_BYTES = 8 * 2**20
"""Bodies up to this size are bytes in memory, larger ones are files."""
LIST_MOST = 1000
"""Names a list asks for: one page."""


class Wrong(Exception):
    """An answer that is not what was asked for; `error_class` is its class."""

    def __init__(self, error_class: str, message: str) -> None:
        super().__init__(message)
        self.error_class = error_class


class Body(io.RawIOBase):
    """The content of an object as a file, for objects too large to be held in memory by every worker."""

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
        data = content(self._seed, self._size, self._at, min(len(buffer), max(0, self._size - self._at)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class Client(Protocol):
    """The five operations by way of one SDK. They raise what the SDK raises."""

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        """The object in pieces."""

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> None:
        """Write an object."""

    def delete(self, bucket: str, name: str) -> None:
        """Delete an object."""

    def list(self, bucket: str) -> None:
        """List a page of a bucket."""

    def head(self, bucket: str, name: str) -> int:
        """Size of an object, in bytes."""

    def classify(self, error: Exception) -> str | None:
        """The class of an error of this SDK that answers are known by (`http-503`); None for one of the way there."""


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
            region_name=target.region,
            verify=target.ca_file,
            config=Config(
                retries={"total_max_attempts": 1},
                connect_timeout=setup.request_timeout_s,
                read_timeout=setup.request_timeout_s,
                max_pool_connections=connections,
                s3={"addressing_style": "path"},
                # The checksums that newer SDKs add by themselves are unknown to the older gateways weighed here.
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

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> None:
        """See Client."""
        self._client.put_object(Bucket=bucket, Key=name, Body=body, ContentLength=size)

    def delete(self, bucket: str, name: str) -> None:
        """See Client."""
        self._client.delete_object(Bucket=bucket, Key=name)

    def list(self, bucket: str) -> None:
        """See Client."""
        self._client.list_objects_v2(Bucket=bucket, MaxKeys=LIST_MOST)

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
    """python-swiftclient. A connection of its own for each worker: it has one request outstanding."""

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
        # It forgets where its storage is after a 401, and could not get it again without the credentials.
        self._connection.url, self._connection.token = self._account.url, self._account.token
        return self._connection

    def read(self, bucket: str, name: str) -> Iterator[bytes]:
        """See Client."""
        _, body = self._ready().get_object(bucket, name, resp_chunk_size=CHUNK_BYTES)
        try:
            yield from body
        finally:
            body.close()

    def write(self, bucket: str, name: str, body: bytes | Body, size: int) -> None:
        """See Client."""
        self._ready().put_object(bucket, name, body, content_length=size)

    def delete(self, bucket: str, name: str) -> None:
        """See Client."""
        self._ready().delete_object(bucket, name)

    def list(self, bucket: str) -> None:
        """See Client."""
        self._ready().get_container(bucket, limit=LIST_MOST)

    def head(self, bucket: str, name: str) -> int:
        """See Client."""
        return int(self._ready().head_object(bucket, name)["content-length"])

    def classify(self, error: Exception) -> str | None:
        """See Client."""
        if not isinstance(error, self._error):
            return None
        status = getattr(error, "http_status", None)
        return f"http-{status}" if status else "protocol"


class SdkCrew:
    """A crew whose workers are greenlets that call an SDK."""

    def __init__(self, setup: Setup, account: Account, workload: Workload, workers: int) -> None:
        self._setup = setup
        self._workload = workload
        self._workload_json = workload.model_dump_json()
        if setup.target.api == "s3":
            shared = S3Client(setup, account, max(1, workers))
            self._client: Callable[[], Client] = lambda: shared
        else:
            self._client = lambda: SwiftClient(setup, account)
        # A body is the same for all objects of a size, so a few of them do for a whole step.
        self._body = functools.lru_cache(maxsize=4)(lambda size: content(setup.seed, size, 0, size))
        self._greenlets: dict[int, gevent.Greenlet] = {}
        self._leaving: set[int] = set()
        self._in_hand: set[int] = set()
        self._started: set[int] = set()
        self._exhausted = 0
        self._errors: dict[str, int] = {}
        self._last_error: str | None = None
        self._done = self._failed = self._bytes = 0
        self._written: dict[tuple[str, str], None] = {}
        self._recorder: Recorder | None = None
        self._opened_s = self._closed_s = 0.0
        self._open = False

    def add_worker(self, index: int, of: int, repeat: int) -> None:
        """See Crew."""
        self._greenlets[index] = gevent.spawn(self._work, index, of, repeat)

    def remove_worker(self, index: int) -> None:
        """See Crew."""
        self._leaving.add(index)

    def open_window(self) -> None:
        """See Crew."""
        self._recorder, self._open, self._opened_s = Recorder(), True, time.perf_counter()

    def close_window(self) -> None:
        """See Crew."""
        if self._open:
            self._open, self._closed_s = False, time.perf_counter()

    def stop(self, timeout_s: float) -> int:
        """See Crew."""
        self._leaving.update(self._greenlets)
        gevent.joinall(list(self._greenlets.values()), timeout=timeout_s)
        cut = len(self._in_hand)
        gevent.killall(list(self._greenlets.values()), block=True)
        return cut

    def pulse(self) -> Pulse:
        """See Crew."""
        running = sum(not greenlet.dead for greenlet in self._greenlets.values())
        return Pulse(
            started=len(self._started),
            running=running,
            exhausted=self._exhausted,
            done=self._done,
            failed=self._failed,
            bytes=self._bytes,
            errors=dict(self._errors),
            last_error=self._last_error,
        )

    def snapshot(self) -> Window:
        """See Crew."""
        if self._recorder is None:
            return Window(tallies=(), seconds=(), window_s=0.0)
        end_s = time.perf_counter() if self._open else self._closed_s
        return Window(tallies=self._recorder.tallies(), seconds=self._recorder.seconds(), window_s=end_s - self._opened_s)

    def delete_written(self, parallel: int) -> None:
        """See Crew."""
        left = list(self._written)
        for number in range(min(parallel, len(left))):
            self._greenlets[-1 - number] = gevent.spawn(self._delete_share, left[number::parallel])

    def _delete_share(self, share: list[tuple[str, str]]) -> None:
        client = self._client()
        for bucket, name in share:
            try:
                client.delete(bucket, name)
            except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by its class
                if self._class_of(client, error) != "http-404":
                    self._fail(client, error)
                    continue
            self._done += 1
            self._written.pop((bucket, name), None)

    def _work(self, index: int, of: int, repeat: int) -> None:
        client = self._client()
        picker = Picker(self._workload_json, self._setup.seed, of, repeat, index)
        rate = self._workload.rate_per_s
        pace_s = of / rate if rate else 0.0
        due_s = time.perf_counter() + pace_s * index / of
        while index not in self._leaving:
            try:
                request = picker.next()
            except StopIteration:
                self._exhausted += 1
                self._started.add(index)
                return
            start_s = time.perf_counter()
            if rate:
                # An open clock: what is late counts from when it was meant to begin.
                gevent.sleep(max(0.0, due_s - start_s))
                start_s, due_s = due_s, due_s + pace_s
            self._in_hand.add(index)
            self._one(client, start_s, (of, repeat, index), request)
            self._in_hand.discard(index)
            self._started.add(index)
            # Greenlets give way only when they wait: without this one that is never kept waiting would keep all others waiting.
            gevent.sleep(0)

    def _one(self, client: Client, start_s: float, whose: tuple[int, int, int], request: tuple[str, int, int, int]) -> None:
        operation, container, number, size = cast("tuple[Operation, int, int, int]", request)
        bucket = f"{self._setup.bucket_prefix}-{self._workload.name}-{container}"
        # A delete of what the worker itself wrote has its number as -1 - number.
        own = operation == "write" or number < 0
        name = written_name(*whose, number if number >= 0 else -1 - number) if own else object_name(number)
        moved_bytes, first_byte_s = 0, None
        try:
            if operation == "read":
                moved_bytes, first_byte_s = self._read(client, bucket, name, size)
            elif operation == "write":
                # Noted before: one whose answer is lost may be there all the same.
                self._written[bucket, name] = None
                client.write(bucket, name, self._body(size) if size <= WHOLE_BYTES else Body(self._setup.seed, size), size)
                moved_bytes = size
            elif operation == "delete":
                client.delete(bucket, name)
                self._written.pop((bucket, name), None)
            elif operation == "list":
                client.list(bucket)
            elif (seen := client.head(bucket, name)) != size:
                raise Wrong("wrong-content", f"HEAD {bucket}/{name}: {seen} bytes instead of {size}")  # noqa: TRY301
        except Exception as error:  # noqa: BLE001 - SDKs raise all kinds; each is counted by its class
            end_s = time.perf_counter()
            error_class = self._fail(client, error)
            if self._recorder is not None and self._open:
                self._recorder.failure(operation, end_s - self._opened_s, error_class)
            # A dead target answers at once, and so often that nothing else would run.
            gevent.sleep(0.01)
            return
        end_s = time.perf_counter()
        self._done += 1
        self._bytes += moved_bytes
        if self._recorder is not None and self._open:
            first_us = None if first_byte_s is None else round((first_byte_s - start_s) * 1e6)
            self._recorder.success(operation, end_s - self._opened_s, round((end_s - start_s) * 1e6), moved_bytes, first_us)

    def _read(self, client: Client, bucket: str, name: str, size: int) -> tuple[int, float]:
        """Bytes read, and when the first of them came."""
        seen = 0
        first_byte_s = None
        for piece in client.read(bucket, name):
            if first_byte_s is None:
                first_byte_s = time.perf_counter()
            if self._workload.verify and piece != content(self._setup.seed, size, seen, len(piece)):
                raise Wrong("wrong-content", f"GET {bucket}/{name}: other bytes than were written, from {seen} on")
            seen += len(piece)
        if seen < size:
            raise Wrong("short-body", f"GET {bucket}/{name}: {seen} bytes instead of {size}")
        if seen > size:
            raise Wrong("wrong-content", f"GET {bucket}/{name}: {seen} bytes instead of {size}")
        return seen, first_byte_s or time.perf_counter()

    def _fail(self, client: Client, error: Exception) -> str:
        error_class = self._class_of(client, error)
        self._failed += 1
        self._errors[error_class] = self._errors.get(error_class, 0) + 1
        self._last_error = f"{type(error).__name__}: {str(error)[:200]}"
        return error_class

    @staticmethod
    def _class_of(client: Client, error: Exception) -> str:
        return error.error_class if isinstance(error, Wrong) else client.classify(error) or way_class(error)


def way_class(error: BaseException) -> str:
    """The class of an error on the way to the target or back, by the causes it carries: SDKs wrap them many times over."""
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
    connect = {"ConnectionRefusedError", "NewConnectionError", "ConnectTimeoutError", "ConnectTimeout", "EndpointConnectionError"}
    if names & {*connect, socket.gaierror.__name__}:
        return "connect"
    if names & {"TimeoutError", "ReadTimeoutError", "ReadTimeout", "Timeout"}:
        return "timeout"
    if names & {"IncompleteRead", "IncompleteReadError"}:
        return "short-body"
    if names & {"ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "RemoteDisconnected", "ConnectionClosedError"}:
        return "reset"
    return "protocol"
