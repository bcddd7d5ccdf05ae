"""The account at the target: its token, buckets and stray objects, by HTTP, outside of windows.

S3 requests are signed by AWS Signature Version 4. Swift's carry a token of auth v1 or of Keystone,
or a given one.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlsplit

from weighbridge.common import bounded_http, credential, plain_xml
from weighbridge.common.bounded_http import storage_url_of, trusting
from weighbridge.common.credential import KeySource, redacted
from weighbridge.common.endpoint import MOST_ENDPOINTS, Endpoint, bracketed, host_port
from weighbridge.common.errors import DriverError
from weighbridge.common.listing import Entry, Listed, listing
from weighbridge.drivers.engine._native import shake_hands, signed_headers
from weighbridge.drivers.protocol import Ring, Setup

TAKES: Final = "it takes TLS 1.2, 1.3, RSA, P-256, P-384, Ed25519, ECDHE with AES-GCM or ChaCha20"


class NotServing(DriverError):
    """A target did not answer in time, or its answer to a request to be let in is a 5xx."""


@dataclass(frozen=True)
class AccountAnswer:
    """An HTTP answer with its complete body."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What the request carried, which an answer may repeat."""

    def __str__(self) -> str:
        text = redacted(self.body[:4096].decode(errors="replace"), self.secrets)  # before words cut
        return f"HTTP {self.status}: {plain_xml.error_words(text.encode())}"


@dataclass(frozen=True)
class UrlParts:
    """Host, port, TLS and path of a URL."""

    host: str
    port: int
    tls: bool
    path: str

    @classmethod
    def of(cls, url: str) -> UrlParts:
        """The parts of an http or https URL. Raises DriverError without a host or a valid port."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise DriverError(f"{url}: its host or port is not valid") from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DriverError(f"{url}: not an http or https URL")
        tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if tls else 80), tls, parts.path.rstrip("/"))


@dataclass(frozen=True)
class AccountRequest:
    """What is sent where."""

    place: UrlParts
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    def answer(
        self,
        within_s: float,
        context: ssl.SSLContext | None,
        secrets: tuple[str, ...],
        most_bytes: int,
    ) -> AccountAnswer:
        """Its complete answer, of at most so many bytes. `context`: None for plain HTTP.

        Raises DriverError, NotServing after `within_s`.
        """
        place, method = self.place, self.method
        connection: http.client.HTTPConnection = (
            http.client.HTTPSConnection(place.host, place.port, context=context)
            if place.tls
            else http.client.HTTPConnection(place.host, place.port)
        )
        where = f"{host_port(place.host, place.port)}: {method} {self.path.partition('?')[0]}"
        try:
            # The Host header must be as it was signed; servers want a length for every PUT, even 0,
            # and s3api waits for the body of a DELETE of a version that has none.
            length = {"Content-Length": str(len(self.body))} if method in ("PUT", "DELETE") else {}
            fields = {"Host": host_header(place), **length, **self.headers}
            answer, data = bounded_http.exchanged(
                connection, within_s, method, self.path, self.body or None, fields, most_bytes
            )
            return AccountAnswer(answer.status, answer.headers, data, secrets)
        except (OSError, http.client.HTTPException) as error:
            raise _failure(where, error) from error
        except ValueError:
            # http.client's message repeats the field that cannot be sent: maybe a key or a token.
            what = "its path or one of its headers contains what HTTP cannot carry"
            raise DriverError(
                f"{host_port(place.host, place.port)}: {method} was not sent: {what}"
            ) from None
        finally:
            connection.close()


def reach(place: UrlParts, within_s: float) -> None:
    """Connect, and send nothing. Raises DriverError."""
    connection = http.client.HTTPConnection(place.host, place.port)
    try:
        bounded_http.connect(connection, within_s)
    except OSError as error:
        where = f"{host_port(place.host, place.port)}: cannot be reached"
        raise _failure(where, error) from error
    finally:
        connection.close()


def host_header(place: UrlParts) -> str:
    """The Host header of requests to a place, with its port unless that is the scheme's own."""
    usual = place.port == (443 if place.tls else 80)
    return bracketed(place.host) if usual else host_port(place.host, place.port)


def _failure(what: str, error: Exception) -> DriverError:
    fault = NotServing if isinstance(error, TimeoutError) else DriverError
    return fault(f"{what}: {bounded_http.in_words(error)}")


def signature(
    keys: tuple[str, str, str],
    region: str,
    host: str,
    method: str,
    path: str,
    query: str,
    unix_s: int,
) -> dict[str, str]:
    """Headers that sign an S3 request by AWS Signature Version 4, by the engine's own signer: the
    payload is UNSIGNED-PAYLOAD.

    `query` is percent-encoded, its keys sorted. No header contains the secret key.
    """
    lines = signed_headers(keys, region, host, method, path or "/", query, unix_s)
    return {
        name: value.strip()
        for name, _, value in (line.partition(":") for line in lines.split("\r\n"))
        if name
    }


Request = Callable[[UrlParts, str, str, dict[str, str], bytes], AccountAnswer]
"""Place, method, path, headers and body of a request."""


def by_v1(target: Endpoint, request: Request) -> credential.Granted:
    """A token of auth v1; it does not say how long it lasts. Raises DriverError."""
    place = UrlParts.of(target.url)
    headers = {"X-Auth-User": target.user, "X-Auth-Key": target.key.get_secret_value()}
    answer = request(place, "GET", place.path or "/", headers, b"")
    if answer.status not in (200, 204):
        fault = NotServing if answer.status >= 500 else DriverError
        raise fault(f"{target.url}: no token for user {target.user!r}: {answer}")
    storage_url, token = answer.headers.get("X-Storage-Url"), answer.headers.get("X-Auth-Token")
    if not storage_url or not token:
        raise DriverError(f"{target.url}: the answer has no X-Storage-Url or no X-Auth-Token")
    try:
        return credential.Granted(storage_url_of(storage_url), token, math.inf)
    except ValueError as error:
        raise DriverError(f"{target.url}: its X-Storage-Url cannot be used: {error}") from None


def by_keystone(target: Endpoint, request: Request) -> credential.Granted:
    """A token of Keystone's. Raises DriverError."""
    assert target.keystone is not None  # noqa: S101 - only then is it asked
    place = UrlParts.of(target.url)

    def send(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> AccountAnswer:
        length = {"Content-Length": str(len(body))}
        return request(place, method, path, {**headers, **length}, body)

    try:
        return credential.log_in(target.keystone, target.key.get_secret_value(), place.path, send)
    except credential.KeystoneRefuses as refusal:
        status = refusal.answer.status
        fault = NotServing if status >= 500 else DriverError
        raise fault(f"{target.url}: {refusal.what} (status {status})") from None


def keys_again(source: KeySource, known: Sequence[str]) -> tuple[tuple[str, str, str], float]:
    """A profile's access key, secret, token, and their seconds of life. Raises DriverError."""
    try:
        keys = credential.load(source, known)
    except credential.KeysUnavailable as error:
        raise DriverError(f"s3: {error}") from None
    left_s = keys.left_s
    return (keys.access, keys.secret, keys.token), math.inf if left_s is None else left_s


@dataclass(frozen=True)
class EnginePlace:
    """One of several endpoints, as the engine gets it: the name is for results, `address` is where
    connections go, if not to the first address of `host`.
    """

    name: str
    host: str
    port: int
    address: str | None = None


def addresses_of(host: str, port: int) -> tuple[str, ...]:
    """All addresses of a name, each once, in the order of their digits, which is the same in every
    process. Raises DriverError when it has none, or more than may be used.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except OSError as error:
        raise _failure(host, error) from error
    addresses = {ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found}
    if len(addresses) > MOST_ENDPOINTS:
        raise DriverError(
            f"{host} has {len(addresses)} addresses; at most {MOST_ENDPOINTS} are used"
        )
    return tuple(str(one) for one in sorted(addresses, key=lambda one: (one.version, int(one))))


log = logging.getLogger(__name__)

Fields = Mapping[str, str] | None
_OF_ALL: Final = (
    *("GetObject", "PutObject", "DeleteObject", "ListBucket"),
    *("GetObjectVersion", "ListBucketVersions"),
)
"""What anonymous requests may do."""
AUTH_S: Final = 40.0
"""Longest time for a login at all endpoints together: a driver that is silent for 60 s is given up.
"""
REACH_S: Final = 20.0
"""That for a connection to one of S3's endpoints: a profile may take time for keys as well."""
LARGEST_ANSWER_BYTES = plain_xml.LARGEST_BYTES
"""Longer answers are cut off."""


class Account:
    """One user's account at one target.

    With several endpoints, what is not measured goes to the first that answers.

    Every method raises DriverError when the target cannot be reached or refuses.
    """

    def __init__(self, target: Endpoint, timeout_s: float) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._place = UrlParts.of(target.url)
        self._context = trusting(target.ca_file) if target.url.startswith("https:") else None
        token = "" if target.token is None else target.token.get_secret_value()
        self.keys = (target.user, target.key.get_secret_value(), token)
        """S3's keys and their session token, "" if there is none; of Swift only the third is sent:
        the token.
        """
        self.secrets = target.secrets
        """Keys, and all tokens so far, none of which a text may repeat."""
        self.life_s, self._granted_s = math.inf, time.monotonic()
        """How long a token is valid when it is new, infinite if nobody says, and when it was."""
        if target.key_source is not None and target.keys_end_at is not None:
            self.life_s = (target.keys_end_at - datetime.now(UTC)).total_seconds()

    @property
    def token(self) -> str:
        """Swift's token, or the session token of S3's keys; "" if there is none."""
        return self.keys[2]

    @property
    def expires(self) -> bool:
        return time.monotonic() - self._granted_s >= credential.RENEW_AT * self.life_s

    @property
    def left_s(self) -> float:
        """How long they are still valid; infinite if nobody says, at most 0 once refused."""
        return self.life_s - (time.monotonic() - self._granted_s)

    @property
    def host(self) -> str:
        """The host that requests go to: of S3's endpoint, or of Swift's storage URL."""
        return self._place.host

    @property
    def port(self) -> int:
        return self._place.port

    @property
    def tls(self) -> bool:
        return self._place.tls

    @property
    def base_path(self) -> str:
        """What precedes the bucket in a path: nothing for S3, /v1/AUTH_account for Swift."""
        return self._place.path

    @property
    def url(self) -> str:
        """S3's endpoint, or Swift's storage URL."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{host_port(self.host, self.port)}{self.base_path}"

    @property
    def renewable(self) -> bool:
        """Whether `authenticate` gets a new token or new keys."""
        if self._target.api == "s3":
            return self._target.key_source is not None
        return self._target.token is None

    def places(self) -> tuple[EnginePlace, ...]:
        """Each of several endpoints; empty for a single one."""
        if self._target.addresses == "all":
            host, port = self.host, self.port
            found = addresses_of(host, port)
            return tuple(
                EnginePlace(host_port(one, port), host, port, one)
                for one in found
                if len(found) > 1
            )
        parts = [UrlParts.of(base) for base in self._target.bases if self._target.others]
        return tuple(
            EnginePlace(host_port(one.host, one.port), one.host, one.port) for one in parts
        )

    def authenticate(self) -> None:
        """Swift: get the storage URL and a new token. S3: check that the port is open, and get new
        keys. Of several endpoints the first that answers is used. Raises DriverError.
        """
        self._reach()
        self._log_in()

    def renew(self) -> str:
        """As `authenticate`, but without a new token or new keys those in hand are kept as long as
        they are good; returns why there are no new ones, "" if there are. Raises DriverError.
        """
        self._reach()
        try:
            self._log_in()
        except DriverError as error:
            if not self._is_good():
                raise
            log.warning("no new token or keys, the old ones are used on: %s", error)
            return error.message
        return ""

    def refused(self) -> None:
        """The token is good no longer, whatever its age."""
        self._granted_s = -math.inf if math.isfinite(self.life_s) else self._granted_s

    def shake_hands(self) -> None:
        """Raise DriverError when the engine refuses TLS here: Python may take a certificate that it
        does not.
        """
        if not self.tls:
            return
        # A certificate for virtual hosts may be valid for these only.
        host = f"wb-check.{self.host}" if self._target.addressing == "virtual" else self.host
        what = host
        try:
            addresses = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM)
            what = f"{host_port(host, self.port)}: the engine refuses its TLS"
            address = host_port(str(addresses[0][4][0]), self.port)
            shake_hands(address, host, self._target.ca_file, min(self._timeout_s, REACH_S))
        except OSError as error:
            if "handshake" in str(error).lower():
                what += f" ({TAKES})"
            raise _failure(what, error) from error

    def _is_good(self) -> bool:
        if not self.renewable or not (self.token or self._target.api == "s3"):
            return False
        if math.isfinite(self.life_s):
            return self.left_s > 0
        try:
            # Auth v1 does not say how long a token lasts.
            return self._target.api == "swift" and self._ask("HEAD", "").status in (200, 204)
        except DriverError:
            return False

    def _reach(self) -> None:
        if self._target.api == "s3":
            self._first(self._reach_at, REACH_S)

    def _log_in(self) -> None:
        if self._target.api == "swift":
            self._first(self._log_in_at, AUTH_S)
        elif self._target.key_source is not None:
            self._take(*keys_again(self._target.key_source, self.secrets), time.monotonic())

    def _first(self, reach: Callable[[Endpoint, float], None], most_s: float) -> None:
        """Reach one endpoint, each until a moment that leaves the others some time."""
        faults: list[DriverError] = []
        until_s = time.monotonic() + min(self._timeout_s, most_s)
        each = self._target.each()
        for number, alone in enumerate(each):
            now_s = time.monotonic()
            try:
                reach(alone, now_s + (until_s - now_s) / (len(each) - number))
            except DriverError as error:
                faults.append(error)
            else:
                return
        raise faults[0]

    def _reach_at(self, target: Endpoint, until_s: float) -> None:
        place = UrlParts.of(target.url)
        reach(place, until_s - time.monotonic())
        self._place = place

    def _log_in_at(self, target: Endpoint, until_s: float) -> None:
        def request(
            place: UrlParts, method: str, path: str, headers: dict[str, str], body: bytes
        ) -> AccountAnswer:
            return self._request(place, method, path, headers, body, until_s)

        if target.token is not None:
            self._place = UrlParts.of(target.url)
            self._check_given_token(until_s)
            return
        log_in = by_v1 if target.keystone is None else by_keystone
        # It cannot be older than that, however late the answer comes.
        asked_s = time.monotonic()
        granted = log_in(target, request)
        storage = UrlParts.of(target.storage_url or granted.storage_url)
        asked = UrlParts.of(target.url)
        # Requests go to the endpoints as they are listed: with several, nothing else is meant.
        is_elsewhere = replace(storage, path="") != replace(asked, path="")
        if self._target.others and target.storage_url is None and is_elsewhere:
            raise DriverError(
                f"{target.url}: its storage URL is at {host_port(storage.host, storage.port)}",
                advice="With several endpoints, give the storage URL of each.",
            )
        self._take((*self.keys[:2], granted.token), granted.life_s, asked_s)
        self._place = storage

    def _take(self, keys: tuple[str, str, str], life_s: float, granted_s: float) -> None:
        self.keys, self.life_s, self._granted_s = keys, life_s, granted_s
        self.secrets = tuple(dict.fromkeys((*self.secrets, *keys[1:])))

    def check_serves(self) -> None:
        """Log in, and ask for something. Raises NotServing or another DriverError."""
        if self._target.api == "s3":
            self.renew()
            answer = self._request(self._place, "GET", self.base_path + "/", {})
        elif self._target.keystone is not None:
            self.renew()
            answer = self._ask("HEAD", "")
        else:
            self.authenticate()
            return
        if answer.status >= 500:
            raise NotServing(f"{self.url}: {answer}")

    def _check_given_token(self, until_s: float) -> None:
        answer = self._ask("HEAD", "", until_s=until_s)
        if answer.status >= 500:
            raise NotServing(f"{self.url}: HEAD with the given token: {answer}")
        if answer.status not in (200, 204):
            raise DriverError(
                f"{self.url}: HEAD with the given token: {answer}",
                advice="It has expired, or is for another account. A given token cannot be "
                "renewed: give a new one.",
            )

    def make_bucket(self, name: str) -> None:
        body = plain_xml.bucket_body(self._target.api, self._target.region)
        answer = self.ask("PUT", f"/{name}", body=body)
        if (
            answer.status not in (200, 201, 202, 204)
            and b"BucketAlreadyOwnedByYou" not in answer.body
        ):
            raise DriverError(f"{self.url}: bucket {name} cannot be created: {answer}")

    def let_all(self, name: str) -> None:
        """Let anonymous requests read, write, delete and list a bucket's objects (S3)."""
        arn = f"arn:aws:s3:::{name}"
        rule = {
            "Effect": "Allow",
            "Principal": {"AWS": ["*"]},
            "Action": [f"s3:{one}" for one in _OF_ALL],
            "Resource": [arn, f"{arn}/*"],
        }
        body = json.dumps({"Version": "2012-10-17", "Statement": [rule]}).encode()
        answer = self.ask("PUT", f"/{name}", query="policy=", body=body)
        if answer.status not in (200, 204):
            raise DriverError(
                f"{self.url}: bucket {name} cannot be opened to anonymous requests: {answer}"
            )

    def delete_bucket(self, name: str) -> bool:
        """Delete a bucket, if it exists. False when it is not empty."""
        answer = self.ask("DELETE", f"/{name}")
        if answer.status == 409:
            return False
        if answer.status not in (200, 202, 204, 404):
            raise DriverError(f"{self.url}: bucket {name} cannot be deleted: {answer}")
        return True

    def objects(self, bucket: str) -> Iterator[str]:
        """Names of all objects of a bucket, by pages of a thousand; none when it does not exist."""
        for entry in self.listed(bucket, "objects"):
            yield entry.name

    def listed(self, bucket: str, listed: Listed) -> Iterator[Entry]:
        """All objects of a bucket, or their versions, of each name the newest first; none when it
        does not exist.
        """

        def get(query: str) -> bytes:
            answer = self.ask("GET", f"/{bucket}", query=query)
            if answer.status in (204, 404):
                return b""
            if answer.status != 200:
                raise DriverError(f"{self.url}: {listed} of {bucket} cannot be listed: {answer}")
            return answer.body

        try:
            yield from listing(self._target.api, listed, get)
        except ValueError as error:
            what = f"the list of {listed} of {bucket} cannot be read: {error}"
            raise DriverError(f"{self.url}: {what}") from error

    def delete_object(self, bucket: str, name: str) -> None:
        answer = self.ask("DELETE", f"/{bucket}/{quote(name)}")
        if answer.status not in (200, 202, 204, 404):
            raise DriverError(f"{self.url}: {bucket}/{name} cannot be deleted: {answer}")

    def ask(
        self, method: str, path: str, *, query: str = "", body: bytes = b"", fields: Fields = None
    ) -> AccountAnswer:
        """The answer to a request for a bucket or an object; it brings no key of a customer's.

        A refused token that can be renewed is, once.
        """
        answer = self._ask(method, path, query, body, fields)
        if answer.status != 401 or not self.renewable:
            return answer
        self.authenticate()
        return self._ask(method, path, query, body, fields)

    def _ask(
        self,
        method: str,
        path: str,
        query: str = "",
        body: bytes = b"",
        fields: Fields = None,
        until_s: float = math.inf,
    ) -> AccountAnswer:
        place = self._place
        if self._target.addressing == "virtual":
            bucket, _, rest = path.removeprefix("/").partition("/")
            place, path = replace(place, host=f"{bucket}.{place.host}"), f"/{rest}"
        path = place.path + path
        if self._target.api == "swift":
            headers = {"X-Auth-Token": self.token}
        else:
            host = host_header(place)
            now_s = int(time.time())
            headers = signature(self.keys, self._target.region, host, method, path, query, now_s)
        path += f"?{query}" if query else ""
        return self._request(place, method, path, {**headers, **(fields or {})}, body, until_s)

    def _request(
        self,
        place: UrlParts,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes = b"",
        until_s: float = math.inf,
    ) -> AccountAnswer:
        if place.tls and self._context is None:
            self._context = trusting(self._target.ca_file)
        within_s = min(self._timeout_s, until_s - time.monotonic())
        request = AccountRequest(place, method, path or "/", headers, body)
        return request.answer(within_s, self._context, self.secrets, LARGEST_ANSWER_BYTES)


class ObjectServers(Account):
    """A ring's object servers in place of an account: without tokens, listings and containers."""

    def __init__(self, setup: Setup, ring: Ring) -> None:
        super().__init__(setup.target, setup.request_timeout_s)
        self._servers = tuple(dict.fromkeys((disk.address, disk.port) for disk in ring.disks))

    def places(self) -> tuple[EnginePlace, ...]:
        """None: the ring says which servers there are."""
        return ()

    def _reach(self) -> None:
        until_s = time.monotonic() + min(self._timeout_s, REACH_S)
        for address, port in self._servers:
            reach(UrlParts(address, port, tls=False, path=""), until_s - time.monotonic())

    def _log_in(self) -> None:
        """Do nothing."""

    def make_bucket(self, name: str) -> None:
        """Do nothing."""

    def delete_bucket(self, name: str) -> bool:
        return True

    def objects(self, bucket: str) -> Iterator[str]:
        """None: there are no listings."""
        return iter(())

    def delete_object(self, bucket: str, name: str) -> None:
        """Raise DriverError: only the engine knows where an object is."""
        raise DriverError(f"{bucket}/{name}: only the engine deletes from object servers")


def account_at(setup: Setup) -> Account:
    """The account that is loaded."""
    if setup.ring is None:
        return Account(setup.target, setup.request_timeout_s)
    return ObjectServers(setup, setup.ring)
