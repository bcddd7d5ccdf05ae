"""What capabilities ask with: objects that are written, read back and compared, over either API.

Each request has a connection of its own. S3's are signed by boto3, or here where boto3 cannot.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from weighbridge.common import credential, plain_xml
from weighbridge.common.exchange import HttpAnswer, Wire, WrongAnswer, ask, exchanging, log_in
from weighbridge.gateways.capabilities.capability import Answer, Refused, Unknown, Wrong, works

REFUSES_FROM: Final = 400
_FAILS: Final = range(500, 1000)
_NOT_IMPLEMENTED: Final = (501, 505)
SILENCE_S: Final = 20.0
"""How long a store may be silent within a request."""
LISTED_WITHIN_S: Final = 20.0
"""How long a listing of Swift may lack names that were written."""
_PAUSE_S: Final = 0.2
_NEEDS_NO_LOCATION: Final = "us-east-1"
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


def buckets_of(prefix: str, programs: int) -> tuple[str, ...]:
    """All buckets that so many programs may make; `prefix` is `wb-` and eight hex digits."""
    return tuple(f"{prefix}-capability-{number}" for number in range(programs * MOST_BUCKETS))


class Names:
    """Names that are each given once. `program`: which program of the run this is, from 0."""

    def __init__(self, prefix: str, program: int) -> None:
        self._buckets = iter(buckets_of(prefix, program + 1)[program * MOST_BUCKETS :])
        self._objects = itertools.count(1)

    def bucket(self) -> str:
        """The name of a new bucket. Raises Unknown when all are used."""
        name = next(self._buckets, None)
        if name is None:
            raise Unknown(f"not asked: more than {MOST_BUCKETS} buckets would be needed")
        return name

    def object(self) -> str:
        return f"object-{next(self._objects)}"


def _not_asked(why: str, wrong: WrongAnswer) -> Unknown:
    return Unknown(f"not asked: {why}", status=wrong.answer.status if wrong.answer else None)


class StoreSession(ABC):
    """One endpoint, and the buckets made in it; `own`: all of it ends with its deployment."""

    def __init__(self, endpoint: Mapping[str, Any], names: Names, *, own: bool) -> None:
        self.own = own
        self.names = names
        self.endpoint = endpoint

    @abstractmethod
    def new_bucket(self) -> str:
        """Make a bucket. Raises Refused or Unknown."""

    @abstractmethod
    def url_of(self, key: str, bucket: str | None = None) -> str:
        """The URL of an object, or without a key of the bucket."""

    @abstractmethod
    def sign(self, request: AWSRequest) -> None:
        """Say in a request who asks."""

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
    ) -> HttpAnswer:
        """Ask for an object, or without a key the bucket. `payload`: what S3's signature says of
        the body (None: its hash). Raises OSError or HTTPException without an answer.
        """
        url = self.url_of(key, bucket) + (f"?{query}" if query else "")
        request = AWSRequest(method, url, data=body, headers=dict(headers))
        request.context["payload"] = payload
        if signed:
            self.sign(request)
        return self.deliver(method, url, body, dict(request.headers.items()))

    def deliver(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] = NONE
    ) -> HttpAnswer:
        """Send a request as it is. Raises OSError or HTTPException without an answer."""
        place = urlsplit(url)
        path = place.path + (f"?{place.query}" if place.query else "")
        with closing(self.wire(place.scheme, place.netloc)) as wire:
            return wire(method, path or "/", body, headers)

    def wire(self, scheme: str, netloc: str) -> Wire:
        return Wire(scheme, netloc, self.endpoint.get("ca_file"), SILENCE_S)

    @functools.cached_property
    def bucket(self) -> str:
        """The bucket that all share which need none of their own. Raises Unknown."""
        return self.fresh_bucket()

    @functools.cached_property
    def full_bucket(self) -> str:
        """A bucket with an empty object of each of NAMES. Raises Unknown."""
        bucket = self.fresh_bucket()
        shares = [NAMES[number::_PARALLEL] for number in range(_PARALLEL)]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            list(pool.map(functools.partial(self._fill, bucket), shares))
        return bucket

    def _fill(self, bucket: str, names: Sequence[str]) -> None:
        try:
            with exchanging(self.endpoint, bucket) as exchange:
                for name in names:
                    ask(exchange, "PUT", "PUT", f"/{bucket}/{name}", (200, 201))
        except WrongAnswer as wrong:
            raise _not_asked("the objects to list were not accepted", wrong) from None

    def fresh_bucket(self) -> str:
        """Make a bucket that a capability needs first. Raises Unknown."""
        with preparing():
            return self.new_bucket()

    def new(self) -> str:
        return self.names.object()

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
        return key, self.stored(answer, key, body)

    def read(self, key: str, *, bucket: str | None = None) -> bytes | None:
        """An object's content; None if there is no such object. Raises Unknown."""
        answer = self.send("GET", key, bucket=bucket)
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        with preparing():
            return accepted(answer).body

    def expect(self, key: str, body: bytes, status: int, *, bucket: str | None = None) -> Answer:
        """Works if an object has this content. Raises Wrong or Unknown."""
        answer = self.send("GET", key, bucket=bucket)
        if answer.status == HTTPStatus.NOT_FOUND:
            raise Wrong("accepted, but there is no such object", status=status)
        if answer.status >= REFUSES_FROM:
            error = fault(answer)
            if isinstance(error, Unknown):
                raise error
            raise Wrong(f"accepted, but GET of it is refused with {answer.status}", status=status)
        if answer.body != body:
            raise Wrong(f"accepted, but {how_it_differs(answer.body, body)}", status=status)
        return works(status=status)

    def stored(self, answer: HttpAnswer, key: str, body: bytes) -> HttpAnswer:
        """The answer to a PUT that was taken and is read back. Raises Refused, Wrong or Unknown."""
        if answer.status >= REFUSES_FROM and self.read(key) is not None:
            raise Wrong("refused, but stored", status=answer.status)
        self.expect(key, body, accepted(answer).status)
        return answer

    def refused(self, answer: HttpAnswer, key: str, before: bytes | None, what: str) -> Answer:
        """Works if `what` is refused and leaves the object as it was (None: not there).

        Raises Wrong if it does not, Refused if the store lacks all of this, Unknown.
        """
        if answer.status < REFUSES_FROM:
            changed = self.read(key) != before
            how = ", and stored" if before is None else ", and the object changed"
            raise Wrong(f"{what}: accepted{how if changed else ''}", status=answer.status)
        error = fault(answer)
        if isinstance(error, Unknown) or answer.status == HTTPStatus.NOT_IMPLEMENTED:
            raise error
        if self.read(key) != before:
            raise Wrong(f"{what}: refused, but the object changed", status=answer.status)
        return works(status=answer.status)

    def gone(self, keys: Sequence[str], status: int) -> Answer:
        """Works if none of these objects can be read any more. Raises Wrong or Unknown."""
        left = sum(self.read(key) is not None for key in keys)
        if left:
            what = "the object" if len(keys) == 1 else f"{left} of {len(keys)} objects"
            raise Wrong(f"{what} can still be read", status=status)
        return works(status=status)

    def clean(self) -> tuple[str, ...]:
        """Delete what is more than objects in buckets; returns in words what could not be."""
        return ()


class PayloadSigner(S3SigV4Auth):  # type: ignore[misc]  # botocore has no types
    """A signer that says of the body what it is told (`X-Amz-Content-SHA256`)."""

    def payload(self, request: AWSRequest) -> str:
        """The hash of the body, or another word in its place."""
        stated: str | None = request.context.get("payload")
        return stated or hashlib.sha256(request.body or b"").hexdigest()


class S3Session(StoreSession):
    """One S3 endpoint."""

    def __init__(self, endpoint: Mapping[str, Any], names: Names, *, own: bool) -> None:
        super().__init__(endpoint, names, own=own)
        self.region: str = endpoint["region"]
        self._virtual = endpoint.get("addressing") == "virtual"
        self.signer = PayloadSigner(
            Credentials(endpoint["user"], endpoint["key"], endpoint.get("token")), "s3", self.region
        )
        self._versioned: list[str] = []

    @functools.cached_property
    def boto(self) -> Any:
        """A boto3 client that tries once."""
        return self.boto_with()

    def boto_with(self, **config: Any) -> Any:
        """A boto3 client with other keywords of `botocore.config.Config`."""
        import boto3  # noqa: PLC0415 - half a second that not every capability needs
        from botocore.config import Config  # noqa: PLC0415

        given = {
            "connect_timeout": SILENCE_S,
            "read_timeout": SILENCE_S,
            "retries": {"total_max_attempts": 1},
            "proxies": {},
            "s3": {"addressing_style": "virtual" if self._virtual else "path"},
            **config,
        }
        return boto3.Session(botocore_session=credential.plain_session()).client(
            "s3",
            endpoint_url=self.endpoint["url"],
            region_name=self.region,
            aws_access_key_id=self.endpoint["user"],
            aws_secret_access_key=self.endpoint["key"],
            aws_session_token=self.endpoint.get("token"),
            verify=self.endpoint.get("ca_file"),
            config=Config(**given),
        )

    def ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation of boto3. Raises Refused or Unknown."""
        try:
            answer: dict[str, Any] = getattr(self.boto, operation)(**parameters)
        except ClientError as error:
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
            said = error.response.get("Error", {})
            code, text = str(said.get("Code") or ""), str(said.get("Message") or "")
            if status < REFUSES_FROM:
                raise Unknown(f"{said.get('Code')} in an answer of status {status}") from None
            raise refusal(status, code, text) from None
        return answer

    def ask_back(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """An operation that reads what was taken just before. Raises Wrong if it is refused."""
        try:
            return self.ask(operation, **parameters)
        except Refused as refused:
            raise Wrong(f"accepted, but {operation} is refused", status=refused.status) from None

    def set_bucket(self, bucket: str, setting: str, **parameters: Any) -> dict[str, Any]:
        """Set what is then read back. Raises Refused, Wrong if that is refused, or Unknown."""
        self.ask(f"put_bucket_{setting}", Bucket=bucket, **parameters)
        return self.ask_back(f"get_bucket_{setting}", Bucket=bucket)

    def new_bucket(self, *, versions: bool = False, **parameters: Any) -> str:
        name = self.names.bucket()
        if self.region != _NEEDS_NO_LOCATION:
            parameters["CreateBucketConfiguration"] = {"LocationConstraint": self.region}
        if versions:
            self._versioned.append(name)
        self.ask("create_bucket", Bucket=name, **parameters)
        return name

    def url_of(self, key: str, bucket: str | None = None) -> str:
        place = urlsplit(self.endpoint["url"])
        bucket = bucket or self.bucket
        before, inside = (f"{bucket}.", "") if self._virtual else ("", f"/{bucket}")
        path = f"{place.path.rstrip('/')}{inside}/{quote(key, safe='~/')}"
        return f"{place.scheme}://{before}{place.netloc}{path}"

    def sign(self, request: AWSRequest) -> None:
        self.signer.add_auth(request)

    def clean(self) -> tuple[str, ...]:
        left = []
        for bucket in self._versioned:
            try:
                self._delete_versions(bucket)
            except (Refused, Unknown) as error:
                left.append(f"{bucket}: {error.status} {error.code}")
            except Exception as error:  # noqa: BLE001 - a store's answer may break any parser
                left.append(f"{bucket}: {type(error).__name__}")
        self._versioned.clear()
        return tuple(left)

    def _delete_versions(self, bucket: str) -> None:
        try:
            page = self.ask("list_object_versions", Bucket=bucket)
        except Refused as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED):
                return  # nothing was made
            raise
        for row in (*page.get("Versions", ()), *page.get("DeleteMarkers", ())):
            version = {"Bucket": bucket, "Key": row["Key"], "VersionId": row["VersionId"]}
            try:
                self.ask("delete_object", **version)
            except Refused:
                self.ask("delete_object", **version, BypassGovernanceRetention=True)


class SwiftSession(StoreSession):
    """One endpoint with the Swift API. Its buckets are Swift's containers."""

    @functools.cached_property
    def access(self) -> tuple[str, str]:
        """Storage URL and token. Raises Unknown."""
        if self.endpoint.get("token"):
            return self.endpoint["url"].rstrip("/"), self.endpoint["token"]
        with ExitStack() as stack:

            def wire(place: Any, host: str = "") -> Wire:
                return stack.enter_context(closing(self.wire(place.scheme, host + place.netloc)))

            try:
                storage, token, _ = log_in(self.endpoint, wire)
            except WrongAnswer as wrong:
                raise _not_asked(f"{wrong.operation}: {wrong.what}", wrong) from None
        return storage.geturl().rstrip("/"), token

    @functools.cached_property
    def full_bucket(self) -> str:
        """As of all sessions, once its listing has all names, or lacks some for LISTED_WITHIN_S: a
        container may hear late of what was taken.
        """
        name = super().full_bucket
        deadline = time.monotonic() + LISTED_WITHIN_S
        count = ""
        while count != str(len(NAMES)) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            count = self.send("HEAD", "", bucket=name).headers.get("x-container-object-count", "")
        return name

    @functools.cached_property
    def signing_key(self) -> str:
        """A key that signs URLs of the shared container, and of the account where that is the
        session's own (RGW knows no container's keys). Raises Refused or Unknown.
        """
        key = secrets.token_hex(16)
        accepted(self.send("POST", "", headers={"X-Container-Meta-Temp-URL-Key": key}))
        if self.own:
            accepted(self.account("POST", headers={"X-Account-Meta-Temp-URL-Key": key}))
        return key

    def new_bucket(self, headers: Mapping[str, str] = NONE) -> str:
        name = self.names.bucket()
        accepted(self.send("PUT", "", bucket=name, headers=headers))
        return name

    def url_of(self, key: str, bucket: str | None = None) -> str:
        inside = f"/{quote(key, safe='~/')}" if key else ""
        return f"{self.access[0]}/{bucket or self.bucket}{inside}"

    def sign(self, request: AWSRequest) -> None:
        request.headers["X-Auth-Token"] = self.access[1]

    def account(
        self, method: str, query: str = "", body: bytes = b"", headers: Mapping[str, str] = NONE
    ) -> HttpAnswer:
        """One request with the token to the account itself."""
        storage, token = self.access
        url = storage + (f"?{query}" if query else "")
        return self.deliver(method, url, body, {"X-Auth-Token": token, **headers})


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
    failed = status in _FAILS and status not in _NOT_IMPLEMENTED
    return (Unknown if failed else Refused)(text, status=status, code=code)


def fault(answer: HttpAnswer) -> Refused | Unknown:
    """The exception for an answer with an error status, with S3's own code where it has one."""
    code, text = "", ""
    with suppress(ValueError):
        root = plain_xml.parse(answer.body)
        code = root.findtext("{*}Code") or ""
        text = root.findtext("{*}Message") or ""
    return refusal(answer.status, code, text or answer.body[:200].decode(errors="replace"))


def expect_part(answer: HttpAnswer, whole: bytes, part: bytes) -> None:
    """Raise Wrong unless this part of an object came; Refused or Unknown."""
    if accepted(answer).body == whole:
        raise Wrong("ignored: the complete object came", status=answer.status)
    if answer.body != part:
        raise Wrong(how_it_differs(answer.body, part), status=answer.status)


def how_it_differs(content: bytes, body: bytes) -> str:
    """In words what was read in place of `body`."""
    if len(content) != len(body):
        return f"{len(content)} bytes were read instead of {len(body)}"
    return "the bytes read are not those that were sent"
