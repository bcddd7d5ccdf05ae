"""What capabilities ask with: objects that are written, read back and compared, over either API.

Each request has a connection of its own. S3's are signed by boto3, or here where boto3 cannot.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from weighbridge.common import credential, plain_xml
from weighbridge.common.endpoint import Endpoint
from weighbridge.common.exchange import HttpAnswer, Wire, WrongAnswer, ask, exchanging, log_in
from weighbridge.gateways.capabilities.capability import Refused, Unknown, Wrong

REFUSES_FROM: Final = 400
SIZE_BYTES: Final = 1000
"""Of most objects."""
_NOT_IMPLEMENTED: Final = (501, 505)
SILENCE_S: Final = 20.0
"""How long a store may be silent within a request."""
LISTED_WITHIN_S: Final = 20.0
"""How long a listing of Swift may lack names that were written."""
_PAUSE_S: Final = 0.2
NONE: Final[Mapping[str, str]] = MappingProxyType({})

# Names have the forms by which `weighbridge clean` recognises what a killed run left
# (`gateways.existing.clear`).

MOST_BUCKETS: Final = 60
"""Buckets of one program that asks; a run may need several programs."""
FOLDERS: Final = tuple("abcdefghijklm")
EACH: Final = 100
"""1,300 objects: RGW ends pages short of 1,000 with some 830 to 920 names."""
NAMES: Final = tuple(
    sorted(f"written-{folder}-{number}" for folder in FOLDERS for number in range(EACH))
)
"""With `-` as the delimiter, thirteen folders below `written-`."""
_PARALLEL: Final = 8


def buckets_of(prefix: str, program: int) -> tuple[str, ...]:
    """All buckets that a program of a run may make; `prefix` is `wb-` and eight hex digits."""
    first = program * MOST_BUCKETS
    numbers = range(first, first + MOST_BUCKETS)
    return tuple(f"{prefix}-capability-{number}" for number in numbers)


class S3Signer(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """S3's URLs, and signatures that say of the body what they are told."""

    def __init__(self, endpoint: Mapping[str, Any]) -> None:
        keys = Credentials(endpoint["user"], endpoint["key"], endpoint.get("token"))
        super().__init__(keys, "s3", endpoint["region"])
        self._place = urlsplit(endpoint["url"])
        self._virtual = endpoint.get("addressing") == "virtual"

    def payload(self, request: AWSRequest) -> str:
        stated: str | None = request.context.get("payload")
        return stated or hashlib.sha256(request.body or b"").hexdigest()

    def url_of(self, bucket: str) -> str:
        """The URL of a bucket."""
        place, path = self._place, self._place.path.rstrip("/")
        if self._virtual:
            return f"{place.scheme}://{bucket}.{place.netloc}{path}"
        return f"{place.scheme}://{place.netloc}{path}/{bucket}"


class SwiftToken:
    """The storage URL and the token of the Swift API, whose buckets are containers."""

    def __init__(self, endpoint: Mapping[str, Any], private: list[str]) -> None:
        self._endpoint = endpoint
        self._private = private

    @functools.cached_property
    def access(self) -> tuple[str, str]:
        """Storage URL and token. Raises Unknown."""
        if self._endpoint.get("token"):
            return self._endpoint["url"].rstrip("/"), self._endpoint["token"]
        with ExitStack() as stack:

            def wire(place: Any, host: str = "") -> Wire:
                opened = wire_to(self._endpoint, place.scheme, host + place.netloc)
                return stack.enter_context(closing(opened))

            try:
                storage, token, _ = log_in(self._endpoint, wire)
            except WrongAnswer as wrong:
                raise _not_asked(f"{wrong.operation}: {wrong.what}", wrong) from None
        self._private.append(token)
        return storage.geturl().rstrip("/"), token

    def add_auth(self, request: AWSRequest) -> None:
        """Say in a request who asks."""
        request.headers["X-Auth-Token"] = self.access[1]

    def url_of(self, bucket: str) -> str:
        """The URL of a container; without a name that of the account."""
        return f"{self.access[0]}/{bucket}".rstrip("/")


class Session:
    """One endpoint over its API, and the buckets made in it.

    `own`: all of it ends with its deployment. `private`: gets what nobody is shown. `status`: of
    the answer that decides what is asked; `ask`, `boto` and the judges set it.
    """

    def __init__(
        self, endpoint: Endpoint, buckets: Iterator[str], private: list[str], *, own: bool
    ) -> None:
        self.api = endpoint.api
        self.own = own
        self.endpoint: Mapping[str, Any] = endpoint.model_dump(mode="json")
        self.private = private
        private += endpoint.secrets
        self.status: int | None = None
        self._buckets = buckets
        self._objects = itertools.count(1)
        self.signer: Any
        if self.api == "s3":
            self.signer = S3Signer(self.endpoint)
        else:
            self.signer = SwiftToken(self.endpoint, self.private)

    def url_of(self, key: str, bucket: str | None = None) -> str:
        """The URL of an object, or without a key of the bucket."""
        place = str(self.signer.url_of(self.bucket if bucket is None else bucket))
        return f"{place}/{quote(key, safe='~/')}" if key else place

    def send(
        self,
        method: str,
        key: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] = NONE,
        *,
        bucket: str | None = None,
        payload: str | None = None,
        signed: bool = True,
        framed: Callable[[AWSRequest, bytes], bytes] = lambda _, body: body,
    ) -> HttpAnswer:
        """Ask for an object, or without a key the bucket, or with `bucket` "" Swift's account.

        `payload`: what S3's signature says of the body (None: its hash). `framed`: how the body is
        sent with the signed request. Raises OSError or HTTPException without an answer.
        """
        url = self.url_of(key, bucket) + (f"?{query}" if query else "")
        request = AWSRequest(method, url, data=body, headers=dict(headers))
        request.context["payload"] = payload
        if signed:
            self.signer.add_auth(request)
        return self.deliver(method, url, framed(request, body), dict(request.headers.items()))

    def deliver(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = NONE
    ) -> HttpAnswer:
        """Send a request as it is. Raises OSError or HTTPException without an answer."""
        place = urlsplit(url)
        path = (place.path or "/") + (f"?{place.query}" if place.query else "")
        with closing(wire_to(self.endpoint, place.scheme, place.netloc)) as wire:
            return wire(method, path, body, headers)

    def decide(self, answer: HttpAnswer) -> HttpAnswer:
        """The answer that decides, if its status is 2xx. Raises Refused or Unknown."""
        self.status = answer.status
        return accepted(answer)

    def ask(self, method: str, key: str, *words: Any, **more: Any) -> HttpAnswer:
        """Send what decides. Raises Refused or Unknown."""
        return self.decide(self.send(method, key, *words, **more))

    @functools.cached_property
    def _client(self) -> Any:
        return self.client()

    @functools.cached_property
    def _boto3(self) -> Any:
        import boto3  # noqa: PLC0415 - half a second that not every capability needs

        return boto3.Session(botocore_session=credential.plain_session())

    def client(self, **config: Any) -> Any:
        """A boto3 client that tries once; `config`: other keywords of `botocore.config.Config`."""
        given = {
            "connect_timeout": SILENCE_S,
            "read_timeout": SILENCE_S,
            "retries": {"total_max_attempts": 1},
            "proxies": {},
            "s3": {"addressing_style": self.endpoint["addressing"]},
            **config,
        }
        return self._boto3.client(
            "s3",
            endpoint_url=self.endpoint["url"],
            region_name=self.endpoint["region"],
            aws_access_key_id=self.endpoint["user"],
            aws_secret_access_key=self.endpoint["key"],
            aws_session_token=self.endpoint.get("token"),
            verify=self.endpoint.get("ca_file"),
            config=Config(**given),
        )

    def at(self, key: str) -> dict[str, str]:
        """An object's place, as boto3 wants it."""
        return {"Bucket": self.bucket, "Key": key}

    def boto(
        self, operation: str, key: str = "", *, bucket: str = "", **parameters: Any
    ) -> dict[str, Any]:
        """An operation of boto3 on a bucket or an object. Raises Refused or Unknown."""
        parameters["Bucket"] = bucket or self.bucket
        if key:
            parameters["Key"] = key
        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**parameters)
        except ClientError as error:
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
            said = error.response.get("Error", {})
            code, text = str(said.get("Code") or ""), str(said.get("Message") or "")
            if status < REFUSES_FROM:
                raise Unknown(f"{said.get('Code')} in an answer of status {status}") from None
            raise refusal(status, code, text) from None
        self.status = self.status or 200
        return answer

    def boto_back(self, operation: str, key: str = "", **parameters: Any) -> dict[str, Any]:
        """An operation that reads what was taken just before. Raises Wrong if it is refused."""
        try:
            return self.boto(operation, key, **parameters)
        except Refused as refused:
            raise Wrong(f"accepted, but {operation} is refused", status=refused.status) from None

    def denied(self, otherwise: str, operation: Callable[[], object]) -> str:
        """The code with which an operation of boto3 is refused. Raises Wrong, Unknown."""
        try:
            operation()
        except Refused as refused:
            self.status = refused.status
            return refused.code
        raise Wrong(otherwise, status=200)

    def set_bucket(self, bucket: str, setting: str, **parameters: Any) -> dict[str, Any]:
        """Set what is then read back. Raises Refused, Wrong if that is refused, or Unknown."""
        self.boto(f"put_bucket_{setting}", bucket=bucket, **parameters)
        return self.boto_back(f"get_bucket_{setting}", bucket=bucket)

    def new_bucket(self, headers: Mapping[str, str] = NONE) -> str:
        """Make a bucket. Raises Refused or Unknown."""
        name = next(self._buckets, None)
        if name is None:
            raise Unknown(f"not asked: more than {MOST_BUCKETS} buckets would be needed")
        location = plain_xml.bucket_body(self.api, self.endpoint["region"])
        accepted(self.send("PUT", "", "", location, headers, bucket=name))
        return name

    def fresh_bucket(self) -> str:
        """Make a bucket that a capability needs first. Raises Unknown."""
        with preparing():
            return self.new_bucket()

    @functools.cached_property
    def bucket(self) -> str:
        """The bucket that all share which need none of their own. Raises Unknown."""
        return self.fresh_bucket()

    @functools.cached_property
    def full_bucket(self) -> str:
        """A bucket with an empty object of each of NAMES. Swift's listing then has all of them, or
        lacks some for LISTED_WITHIN_S: a container may hear late of what was taken. Raises Unknown.
        """
        bucket = self.fresh_bucket()
        shares = [NAMES[number::_PARALLEL] for number in range(_PARALLEL)]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(functools.partial(self._fill, bucket), shares))
        deadline = time.monotonic() + LISTED_WITHIN_S
        count = "" if self.api == "swift" else str(len(NAMES))
        while count != str(len(NAMES)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            count = self.send("HEAD", "", bucket=bucket).headers.get("x-container-object-count", "")
        return bucket

    def _fill(self, bucket: str, names: Sequence[str]) -> None:
        try:
            with exchanging(self.endpoint, bucket) as exchange:
                for name in names:
                    ask(exchange, "PUT", "PUT", f"/{bucket}/{name}", (200, 201))
        except WrongAnswer as wrong:
            raise _not_asked("the objects to list were not accepted", wrong) from None

    @functools.cached_property
    def signing_key(self) -> str:
        """A key that signs Swift's URLs of the shared container, and of the account where that is
        the session's own (RGW knows no container's keys). Raises Refused or Unknown.
        """
        key = secrets.token_hex(16)
        accepted(self.send("POST", "", headers={"X-Container-Meta-Temp-URL-Key": key}))
        if self.own:
            account = {"X-Account-Meta-Temp-URL-Key": key}
            accepted(self.send("POST", "", headers=account, bucket=""))
        return key

    def new(self) -> str:
        """The name of a new object."""
        return f"object-{next(self._objects)}"

    def put(
        self, body: bytes, headers: Mapping[str, str] = NONE, *, bucket: str | None = None
    ) -> str:
        """Store an object that a capability needs; returns its name. Raises Unknown if refused."""
        key = self.new()
        with preparing():
            accepted(self.send("PUT", key, "", body, headers, bucket=bucket))
        return key

    def write(
        self, body: bytes, headers: Mapping[str, str] = NONE, *, payload: str | None = None
    ) -> tuple[str, HttpAnswer]:
        """PUT a new object, and read it back; its name and the answer. Raises Refused, Wrong or
        Unknown.
        """
        key = self.new()
        answer = self.send("PUT", key, "", body, headers, payload=payload)
        self.stored(answer, key, body)
        return key, answer

    def read(self, key: str, *, bucket: str | None = None) -> bytes | None:
        """An object's content; None if there is no such object. Raises Unknown."""
        answer = self.send("GET", key, bucket=bucket)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        with preparing():
            return accepted(answer).body

    # Judges: each raises Wrong where reading back shows something else, or Unknown.

    def expect(self, key: str, body: bytes, *, bucket: str | None = None) -> None:
        """An object has this content."""
        answer = self.send("GET", key, bucket=bucket)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise Wrong("accepted, but there is no such object")
        if answer.status >= REFUSES_FROM:
            error = fault(answer)
            if isinstance(error, Unknown):
                raise error
            raise Wrong(f"accepted, but GET of it is refused with {answer.status}")
        if answer.body != body:
            raise Wrong(f"accepted, but {how_it_differs(answer.body, body)}")

    def stored(self, answer: HttpAnswer, key: str, body: bytes) -> None:
        """A PUT was taken and is read back. Raises Refused, too."""
        self.taken(answer, key)
        self.expect(key, body)

    def taken(self, answer: HttpAnswer, key: str) -> None:
        """A PUT was taken. Raises Refused, too."""
        self.status = answer.status
        if answer.status >= REFUSES_FROM and self.read(key) is not None:
            raise Wrong("refused, but stored")
        accepted(answer)

    def refused(self, answer: HttpAnswer, key: str, before: bytes | None, what: str) -> None:
        """`what` is refused and leaves the object as it was (None: not there). Raises Refused if
        the store lacks all of this.
        """
        self.status = answer.status
        if answer.status < REFUSES_FROM:
            changed = self.read(key) != before
            how = ", and stored" if before is None else ", and the object changed"
            raise Wrong(f"{what}: accepted{how if changed else ''}")
        error = fault(answer)
        if isinstance(error, Unknown) or answer.status == HTTPStatus.NOT_IMPLEMENTED:
            raise error
        if self.read(key) != before:
            raise Wrong(f"{what}: refused, but the object changed")

    def gone(self, *keys: str) -> None:
        """None of these objects can be read any more."""
        left = sum(self.read(key) is not None for key in keys)
        if left:
            what = "the object" if len(keys) == 1 else f"{left} of {len(keys)} objects"
            raise Wrong(f"{what} can still be read")

    def part(self, answer: HttpAnswer, whole: bytes, part: bytes) -> None:
        """This part of an object came. Raises Refused, too."""
        if self.decide(answer).body == whole:
            raise Wrong("ignored: the complete object came")
        if answer.body != part:
            raise Wrong(how_it_differs(answer.body, part))

    def has(self, answer: HttpAnswer, headers: Mapping[str, str]) -> None:
        """The answer has these headers."""
        self.status = answer.status
        for name, value in headers.items():
            if answer.headers.get(name) != value:
                raise Wrong(f"{name}: {answer.headers.get(name)}, not {value}")


def wire_to(endpoint: Mapping[str, Any], scheme: str, netloc: str) -> Wire:
    """A connection to a host of an endpoint."""
    return Wire(scheme, netloc, endpoint.get("ca_file"), SILENCE_S)


def _not_asked(why: str, wrong: WrongAnswer) -> Unknown:
    return Unknown(f"not asked: {why}", status=wrong.answer.status if wrong.answer else None)


@contextmanager
def preparing() -> Iterator[None]:
    """Turn a refusal of what a capability needs first into Unknown: it was not asked."""
    try:
        yield
    except (Refused, Wrong) as error:
        said = f"{error.status} {error.code} {error.text}"
        raise Unknown(f"not asked: a request that it needs first failed: {said}") from error


def accepted(answer: HttpAnswer) -> HttpAnswer:
    """The answer if its status is 2xx. Raises Refused or Unknown."""
    if answer.status >= REFUSES_FROM:
        raise fault(answer)
    if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
        raise Unknown("redirected", status=answer.status)
    return answer


def refusal(status: int, code: str = "", text: str = "") -> Refused | Unknown:
    """The exception for an error status: Refused, or Unknown where the server failed."""
    failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NOT_IMPLEMENTED
    return (Unknown if failed else Refused)(text, status=status, code=code)


def fault(answer: HttpAnswer) -> Refused | Unknown:
    """The exception for an answer with an error status, with S3's own code where it has one."""
    code, text = "", ""
    with suppress(ValueError):
        root = plain_xml.parse(answer.body)
        code = root.findtext("{*}Code") or ""
        text = root.findtext("{*}Message") or ""
    return refusal(answer.status, code, text or answer.body[:200].decode(errors="replace"))


def how_it_differs(content: bytes, body: bytes) -> str:
    """In words what was read in place of `body`."""
    if len(content) != len(body):
        return f"{len(content)} bytes were read instead of {len(body)}"
    return "the bytes read are not those that were sent"


# Checksums as they are sent: MD5, and those that S3 knows (base64 of the big-endian value).

ALGORITHMS: Final = ("crc32", "crc32c", "crc64nvme", "sha1", "sha256")
# Bit-reflected polynomials: RFC 3720 (Castagnoli) and the NVM command set specification 1.0.
_REFLECTED: Final = {"crc32c": (0x82F63B78, 4), "crc64nvme": (0x9A6C9329AC4BC9B5, 8)}


def md5_of(body: bytes) -> str:
    """In hexadecimal: the ETag of a plain object."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def checksum(algorithm: str, body: bytes) -> str:
    """The checksum of a body by one of ALGORITHMS, or another of hashlib, in base64."""
    if algorithm == "crc32":
        raw = zlib.crc32(body).to_bytes(4, "big")
    elif algorithm in _REFLECTED:
        polynomial, width = _REFLECTED[algorithm]
        value = ones = (1 << 8 * width) - 1
        for byte in body:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ polynomial if value & 1 else value >> 1
        raw = (value ^ ones).to_bytes(width, "big")
    else:
        raw = hashlib.new(algorithm, body, usedforsecurity=False).digest()
    return base64.b64encode(raw).decode()
