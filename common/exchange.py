"""HTTP requests to one bucket of a gateway, over either API.

Used by the small programs that run on client hosts (`gateways.verify` and others): they start fast
and share no code with the drivers, which they check. Uses the standard library, and botocore for
signatures. An endpoint is here what `Endpoint.model_dump_json` gives.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from weighbridge.common import bounded_http, plain_xml
from weighbridge.common.bounded_http import parts_of, storage_url_of
from weighbridge.common.tool_output import shortened

if TYPE_CHECKING:
    from weighbridge.common.credential import Answered, Keys

TIMEOUT_S = 60.0
UNAUTHORIZED: Final = 401
_VERSIONS: Final = (200, 300)
IS_KEYSTONE: Final = (
    "this is Keystone, which lists its versions, and no URL of auth v1; end the URL with /v3, and "
    "set $OS_USERNAME, $OS_PASSWORD and $OS_PROJECT_NAME"
)
LARGEST_ANSWER_BYTES = 64 * 1024 * 1024
"""The rest of a longer answer is not read: expected are lists, and objects of a MiB."""


@dataclass(frozen=True)
class HttpAnswer:
    """An HTTP answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WrongAnswer(Exception):
    """An operation did not do what its API promises. `answer` is None when there was none. `what`
    may quote a target, which may send megabytes; who shows it shortens it once secrets are removed.
    """

    def __init__(self, operation: str, what: str, answer: HttpAnswer | None) -> None:
        what = shortened(what, plain_xml.LONGEST_ERROR_BYTES)
        super().__init__(what)
        self.operation = operation
        self.what = what
        self.answer = answer

    def report(self, api: str, url: str) -> str:
        """The failure with its API, URL and status, for messages."""
        status = "" if self.answer is None else f" (status {self.answer.status})"
        return f"{api} {self.operation} at {url}: {self.what}{status}"


Exchange = Callable[[str, str, bytes, Mapping[str, str]], HttpAnswer]
"""Method, path, body, extra headers -> answer. Raises OSError or HTTPException."""


class Wire:
    """One persistent connection.

    `ca_file`: the CA certificate of an https server; None: the machine's own. `timeout_s`: how
    long a connection and each complete answer may take.
    """

    def __init__(
        self, scheme: str, netloc: str, ca_file: str | None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._timeout_s = timeout_s
        self._connection = (
            http.client.HTTPSConnection(
                netloc, timeout=timeout_s, context=bounded_http.trusting(ca_file)
            )
            if scheme == "https"
            else http.client.HTTPConnection(netloc, timeout=timeout_s)
        )

    def connect(self) -> None:
        """Connect now, not with the first request. Raises OSError."""
        bounded_http.connect(self._connection, self._timeout_s)

    def __call__(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpAnswer:
        response, found = bounded_http.exchanged(
            self._connection, self._timeout_s, method, path, body, headers, LARGEST_ANSWER_BYTES
        )
        names = {name.lower(): value for name, value in response.getheaders()}
        return HttpAnswer(response.status, names, found)

    def secured(self) -> ssl.SSLSocket | None:
        """The connection's TLS socket, where it has one."""
        return self._connection.sock if isinstance(self._connection.sock, ssl.SSLSocket) else None

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def exchanging(endpoint: Mapping[str, Any], bucket: str) -> Iterator[Exchange]:
    """Connections to an endpoint, authenticated; paths are `/bucket...`. Raises WrongAnswer."""
    given, elsewhere = urlsplit(endpoint["url"]), ""

    def wire(place: SplitResult, host: str = "") -> Wire:
        nonlocal elsewhere
        same = (place.scheme, place.netloc) == (given.scheme, given.netloc)
        elsewhere = "" if same else f"{_origin(endpoint)} {place.geturl()}: "
        opened = Wire(place.scheme, host + place.netloc, endpoint.get("ca_file"))
        stack.callback(opened.close)
        with answered("connect"):
            opened.connect()
        return opened

    with contextlib.ExitStack() as stack:
        try:
            is_swift = endpoint["api"] == "swift"
            yield _swift(endpoint, wire) if is_swift else _s3(endpoint, wire, bucket)
        except WrongAnswer as wrong:
            raise WrongAnswer(wrong.operation, elsewhere + wrong.what, wrong.answer) from wrong


def _origin(endpoint: Mapping[str, Any]) -> str:
    if endpoint.get("storage_url"):
        return "`storage_url` is"
    asks = endpoint.get("keystone")
    of = f"Keystone's catalogue ($OS_INTERFACE {asks['interface'] or 'public'})" if asks else "auth"
    return f"{of} has the storage URL"


def _s3(endpoint: Mapping[str, Any], wire: Callable[..., Wire], bucket: str) -> Exchange:
    from botocore.auth import S3SigV4Auth  # noqa: PLC0415 - a quarter of a second of imports that Swift alone does not need
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415
    from botocore.credentials import Credentials  # noqa: PLC0415

    keys = Credentials(endpoint["user"], endpoint["key"], endpoint.get("token"))
    signer = S3SigV4Auth(keys, "s3", endpoint["region"])
    renewed = _renewed(endpoint) if endpoint.get("key_source") else None
    place = urlsplit(endpoint["url"])
    before = f"{bucket}." if endpoint.get("addressing") == "virtual" else ""
    base = f"{place.scheme}://{before}{place.netloc}"
    send = wire(place, before)

    def exchange(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        if before:
            path = path.removeprefix(f"/{bucket}")
            path = path if path.startswith("/") else f"/{path}"
        path = place.path.rstrip("/") + path
        request = AWSRequest(method, base + path, data=body, headers=dict(headers))
        # The body's digest is part of the signature, so that the gateway checks the body as well.
        request.context["payload_signing_enabled"] = True
        if renewed is not None:
            new = renewed()
            signer.credentials = Credentials(new.access, new.secret, new.token or None)
        signer.add_auth(request)
        return send(method, path, body, dict(request.headers.items()))

    return exchange


def _renewed(endpoint: Mapping[str, Any]) -> Callable[[], Keys]:
    from weighbridge.common import credential  # noqa: PLC0415 - most do without all this

    end_at = endpoint["keys_end_at"]
    first = credential.Keys(
        endpoint["user"],
        endpoint["key"],
        endpoint["token"] or "",
        datetime.fromisoformat(end_at) if end_at else None,
    )
    source = credential.KeySource.model_validate(endpoint["key_source"])
    keys = credential.RenewedKeys(source, first)

    def now() -> Keys:
        try:
            return keys.now()
        except credential.KeysUnavailable as error:
            raise WrongAnswer("keys", str(error), None) from None

    return now


def _swift(endpoint: Mapping[str, Any], wire: Callable[..., Wire]) -> Exchange:
    given = endpoint.get("token")
    if given:
        storage, token = urlsplit(endpoint["url"]), given
        send = wire(storage)
    else:
        storage, token, send = log_in(endpoint, wire)
    base = storage.path.rstrip("/")

    def exchange(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        nonlocal token
        answer = send(method, base + path, body, {**headers, "X-Auth-Token": token})
        if answer.status != UNAUTHORIZED or given:
            return answer
        # The token has expired: what deletes many objects may take longer than one lasts.
        _, token, _ = log_in(endpoint, wire)
        return send(method, base + path, body, {**headers, "X-Auth-Token": token})

    return exchange


def log_in(endpoint: Mapping[str, Any], wire: Callable[..., Wire]) -> tuple[SplitResult, str, Wire]:
    """Storage URL, token and connection from v1 auth or from Keystone. Raises WrongAnswer."""
    place = urlsplit(endpoint["url"])
    send = wire(place)
    if endpoint.get("keystone"):
        storage_url, token = _keystone(endpoint, place, wire)
    else:
        storage_url, token = _auth_v1(endpoint, place, send)
    storage = urlsplit(endpoint.get("storage_url") or storage_url)
    if place.scheme == "https" and storage.scheme != "https":
        what = (
            f"the storage URL is {storage.geturl()}: tokens and objects would cross the network "
            "unencrypted"
        )
        raise WrongAnswer("auth", f"{what}; set `storage_url` to one that uses https", None)
    same = (storage.scheme, storage.netloc) == (place.scheme, place.netloc)
    return storage, token, send if same else wire(storage)


def _auth_v1(endpoint: Mapping[str, Any], place: SplitResult, send: Wire) -> tuple[str, str]:
    path = place.path + (f"?{place.query}" if place.query else "")
    keys = {"X-Auth-User": endpoint["user"], "X-Auth-Key": endpoint["key"]}
    with answered("auth"):
        answer = send("GET", path or "/", b"", keys)
    if answer.status in _VERSIONS and b'"versions"' in answer.body:
        raise WrongAnswer("auth", IS_KEYSTONE, None)
    expect("auth", (200, 204), answer)
    if "x-storage-url" not in answer.headers or "x-auth-token" not in answer.headers:
        raise WrongAnswer("auth", "no X-Storage-Url or no X-Auth-Token in the answer", answer)
    try:
        url = storage_url_of(answer.headers["x-storage-url"])
    except ValueError as error:
        raise WrongAnswer("auth", f"its X-Storage-Url cannot be used: {error}", answer) from None
    token = answer.headers["x-auth-token"]
    if not token or not token.isprintable() or not token.isascii():
        what = "its X-Auth-Token is empty, or has characters that no header can carry"
        raise WrongAnswer("auth", what, None)
    return url, token


def _keystone(
    endpoint: Mapping[str, Any], place: SplitResult, wire: Callable[..., Wire]
) -> tuple[str, str]:
    from weighbridge.common import credential  # noqa: PLC0415 - records that auth v1 does without

    asks = credential.Keystone.model_validate(endpoint["keystone"])

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> HttpAnswer:
        # A connection for each: uWSGI closes those of Keystone after an answer without saying so.
        return wire(place)(method, path, body, headers)

    with answered("auth"):
        try:
            granted = credential.log_in(asks, endpoint["key"], place.path, send)
        except credential.KeystoneRefuses as refusal:
            what = _redirected(refusal.answer) or refusal.what
            raise WrongAnswer("auth", what, HttpAnswer(refusal.answer.status, {}, b"")) from None
    return granted.storage_url, granted.token


@contextlib.contextmanager
def answered(operation: str) -> Iterator[None]:
    """Turn an exception of a request into a WrongAnswer."""
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise WrongAnswer(operation, bounded_http.in_words(error), None) from error
    except ValueError:
        # http.client's message repeats the invalid field, which may be a key or a token.
        what = "not sent: its URL or a field of the request has characters that HTTP does not allow"
        raise WrongAnswer(operation, what, None) from None


def ask(
    exchange: Exchange,
    operation: str,
    method: str,
    path: str,
    wanted: Sequence[int],
    body: bytes = b"",
    headers: Mapping[str, str] = MappingProxyType({}),
) -> HttpAnswer:
    """Send a request; returns its answer if the status is one of `wanted`. Raises WrongAnswer."""
    with answered(operation):
        answer = exchange(method, path, body, headers)
    return expect(operation, wanted, answer)


def expect(operation: str, wanted: Sequence[int], answer: HttpAnswer) -> HttpAnswer:
    """The answer if its status is `wanted`. Raises WrongAnswer otherwise."""
    if answer.status in (407, 511) or (answer.status < 300 and _PAGE.match(answer.body)):
        what = "a page of something in between, such as a proxy or a network that wants a login"
        raise WrongAnswer(operation, f"{what}, is no answer of a store: check the URL", answer)
    if answer.status not in wanted:
        what = skew(answer) or _redirected(answer)
        what = what or f"{' or '.join(map(str, wanted))} was expected"
        raise WrongAnswer(operation, what, answer)
    return answer


_PAGE: Final = re.compile(rb"\s*<(!doctype )?html", re.IGNORECASE)
_REGION: Final = re.compile(r"[a-z0-9-]{1,60}")
_REDIRECTS: Final = (301, 302, 303, 307, 308)


def _redirected(answer: Answered) -> str:
    """Where a refusal sends elsewhere: the region or the host, and what to do; else ""."""
    region = answer.headers.get("x-amz-bucket-region", "")
    if _REGION.fullmatch(region):
        return f"this belongs to the region {region}: give that one, and the URL that serves it"
    with contextlib.suppress(KeyError, ValueError):
        place = parts_of(answer.headers["location"])
        if answer.status in _REDIRECTS:
            return f"it redirects to {place.scheme}://{place.netloc}: give that URL"
    return ""


_FORBIDDEN: Final = 403
_SKEW: Final = timedelta(minutes=5)
"""S3 refuses what was signed 15 minutes before or after; other stores allow 5."""


def skew(answer: HttpAnswer) -> str:
    """How far this machine's clock is off, where a refusal is or may be for that; else ""."""
    if answer.status != _FORBIDDEN:
        return ""
    off = timedelta()
    with contextlib.suppress(KeyError, ValueError, TypeError):  # TypeError: without a zone
        off = datetime.now(UTC) - parsedate_to_datetime(answer.headers["date"])
    told = b"RequestTimeTooSkewed" in answer.body[: plain_xml.LONGEST_ERROR_BYTES]
    how = "off from"
    if abs(off) >= _SKEW:
        how = f"{str(abs(off)).partition('.')[0]} {'ahead of' if off > timedelta() else 'behind'}"
    elif not told:
        return ""
    return (
        f"refused{' since' if told else ', and'} this machine's clock is {how} the store's; S3's "
        "requests are signed with the time: set the clock that is wrong (timedatectl)"
    )
