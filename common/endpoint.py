"""One API of a gateway: its URLs and its credentials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import AwareDatetime, Field, SecretStr, field_serializer, model_validator

from weighbridge.common.credential import KeySource, Keystone
from weighbridge.common.record import Record

# Addresses and names of hosts in URLs and before ports, where IPv6 needs brackets (RFC 3986).


def bracketed(host: str) -> str:
    """A host as it is written before a port."""
    return f"[{host}]" if ":" in host else host


def host_port(host: str, port: int) -> str:
    """`10.0.0.1:80`, or `[fd00::1]:80`."""
    return f"{bracketed(host)}:{port}"


ObjectApi = Literal["swift", "s3"]
"""The APIs by which clients talk to an object store."""

USUAL_PORTS: Final[Mapping[str, int]] = MappingProxyType({"http": 80, "https": 443})
"""By scheme."""


def base_url(address: str, port: int, *, tls: bool = False) -> str:
    """A service's URL without its scheme's default port: some clients sign a Host header so."""
    scheme = "https" if tls else "http"
    place = bracketed(address) if port == USUAL_PORTS[scheme] else host_port(address, port)
    return f"{scheme}://{place}"


Spread = Literal["per-worker", "round-robin"]
"""How workers choose among several endpoints: `per-worker`: each keeps to one, and they take them
in turn; `round-robin`: each takes one after the other.
"""
MOST_ENDPOINTS: Final = 64


class Endpoints(Record):
    """How clients spread over several endpoints of one API, without a front before them."""

    spread: Spread = "per-worker"
    """`per-worker`: each worker keeps to one endpoint, and they take them in turn; `round-robin`:
    each worker takes one after the other.
    """
    drop_dead: bool = False
    """Leave out an endpoint for the rest of a step after three failed connections in a row; its
    workers go on with the others, and the step says so.
    """


class Endpoint(Record):
    """One API of a running gateway, as gateways give it to drivers.

    S3: `url` is the endpoint, keys sign (SigV4). Swift: `url` is the v1 auth URL, with `keystone`
    that of Keystone's API v3, or with `token` the storage URL.
    """

    api: ObjectApi
    url: Annotated[str, Field(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    """S3: http://host:port. Swift: http://host:port/auth/v1.0 or /v3, or the storage URL."""
    user: str = ""
    """S3 access key, or Swift's X-Auth-User."""
    key: SecretStr = SecretStr("")
    """S3 secret key, or Swift's X-Auth-Key."""
    region: str = "us-east-1"
    addressing: Literal["path", "virtual"] = "path"
    """S3: the bucket in the path, or in the host name (`bucket.host` must resolve)."""
    token: SecretStr | None = None
    """S3: the session token of the keys.

    Swift: a token obtained elsewhere, used instead of user and key; it cannot be renewed.
    """
    key_source: KeySource | None = None
    """S3: where keys are got again before these end."""
    keys_end_at: AwareDatetime | None = None
    """S3: when the keys end, if that is known."""
    keystone: Keystone | None = None
    """Swift: who asks Keystone for a token, with `key` as the password; None: auth v1."""
    storage_url: str | None = None
    """Swift: the storage URL to use; None: the one that auth answers."""
    ca_file: str | None = None
    """PEM file on the client of the CA that signed https; None: the system's CAs."""
    others: Annotated[
        tuple[Annotated[str, Field(pattern=r"^https?://[^/\s]+$")], ...],
        Field(max_length=MOST_ENDPOINTS - 1),
    ] = ()
    """Scheme, host and port of further endpoints of the same service, which know the same keys."""
    addresses: Literal["first", "all"] = "first"
    """Whether requests go to the first address of the URL's name, or to all that it has."""
    spreading: Endpoints = Endpoints()
    """How requests spread over several endpoints."""

    @model_validator(mode="after")
    def _opened(self) -> Endpoint:
        if not (self.user or self.token):
            raise ValueError("a user or a token is required")
        if self.others and self.keystone is not None and self.storage_url is None:
            raise ValueError("several endpoints of Keystone's need their storage URL")
        if self.others:
            refuse_unlike(self.bases)
        if self.addresses == "all" and (self.others or self.addressing == "virtual"):
            raise ValueError("`addresses: all` is for one name, with buckets in the path")
        return self

    @property
    def bases(self) -> tuple[str, ...]:
        """Scheme, host and port of every endpoint, in order."""
        return (base_of(self.storage_url or self.url), *self.others)

    @property
    def spread_words(self) -> str:
        """Which endpoints requests go to, and how, in words; empty for a single one."""
        if not self.others and self.addresses == "first":
            return ""
        which = ", ".join(self.bases)
        if self.addresses == "all":
            which = f"every address of {which}"
        dead = "; those that are dead are left out" * self.spreading.drop_dead
        return f"{which}; {self.spreading.spread}{dead}"

    def each(self) -> tuple[Endpoint, ...]:
        """Every endpoint by itself: Swift's with its own auth, or its part of a storage URL."""
        name = "url" if self.storage_url is None else "storage_url"
        moved = self.storage_url or self.url
        path = moved.removeprefix(base_of(moved))
        return tuple(
            self.model_copy(update={name: base + path, "others": ()}) for base in self.bases
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its credentials, for redaction."""
        return tuple(
            secret.get_secret_value() for secret in (self.key, self.token) if secret is not None
        )

    @field_serializer("key", "token", when_used="json")
    def _open(self, secret: SecretStr | None) -> str | None:
        return None if secret is None else secret.get_secret_value()


def base_of(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def refuse_unlike(urls: Sequence[str]) -> None:
    """Raise ValueError when two of several endpoints are the same, or only some use TLS."""
    parts = [urlsplit(url) for url in urls]
    places = {(one.hostname, one.port or USUAL_PORTS.get(one.scheme)) for one in parts}
    if len(places) != len(parts):
        raise ValueError("an endpoint is listed twice")
    if len({one.scheme for one in parts}) > 1:
        raise ValueError("some endpoints use TLS and others do not: their results differ")


def singles(endpoints: Iterable[Endpoint]) -> tuple[Endpoint, ...]:
    """Every single endpoint of these."""
    return tuple(one for endpoint in endpoints for one in endpoint.each())


SignedWay = Literal["signed chunks", "trailers", "anonymous requests"]
"""What not every store takes. Unsigned payloads, signed ones and checksums in headers are taken by
all.
"""


class Signing(Record):
    """What a request's signature says of its body, and where it is."""

    payload: Literal["unsigned", "signed", "chunks", "trailer"] = "unsigned"
    """`unsigned`: nothing; `signed`: its SHA-256; `chunks`: it is sent in chunks of 64 KiB, each
    with a signature; `trailer`: in chunks of 1 MiB without one, and the checksum comes last.
    """
    checksum: Literal["crc32", "crc64nvme"] | None = None
    """The body's checksum: a header, and of a body in chunks a trailer."""
    auth: Literal["header", "query", "none"] = "header"
    """Where the signature is: in a header, in the query (a presigned URL), or nowhere: requests
    are anonymous.
    """

    @model_validator(mode="after")
    def _fits(self) -> Signing:
        if self.payload == "trailer" and self.checksum is None:
            raise ValueError("a trailer is a checksum: say which, `checksum: crc64nvme`")
        if self.auth != "header" and (self.payload != "unsigned" or self.checksum is not None):
            raise ValueError(
                f"with `auth: {self.auth}` the payload is unsigned, and has no checksum"
            )
        return self

    @property
    def label(self) -> str:
        """A short name, which is also part of a workload's."""
        if self.auth != "header":
            return "presigned" if self.auth == "query" else "anonymous"
        return "-".join([self.payload, *([self.checksum] if self.checksum else [])])

    @property
    def words(self) -> str:
        """What is sent, in words."""
        if self.auth != "header":
            return (
                "presigned URLs, unsigned payload"
                if self.auth == "query"
                else "anonymous: nothing is signed"
            )
        payload = {
            "unsigned": "unsigned payload",
            "signed": "signed payload (its SHA-256)",
            "chunks": "signed chunks of 64 KiB",
            "trailer": "unsigned chunks of 1 MiB",
        }[self.payload]
        if self.checksum is None:
            return payload
        place = "a trailer" if self.payload in ("chunks", "trailer") else "a header"
        return f"{payload}, {self.checksum.upper()} in {place}"

    @property
    def needs(self) -> tuple[SignedWay, ...]:
        """What of it not every store takes, of writes: objects are prepared in the same way."""
        if self.auth == "none":
            return ("anonymous requests",)
        chunks: tuple[SignedWay, ...] = ("signed chunks",) if self.payload == "chunks" else ()
        in_trailer = self.checksum is not None and self.payload in ("chunks", "trailer")
        return (*chunks, "trailers") if in_trailer else chunks


Encrypted = Literal["sse-c", "sse-s3"]
"""`sse-c`: with the client's key, which each request brings; `sse-s3`: with a key of the store's,
which only writes ask for.
"""

Encryption = Literal["none", Encrypted]

S3Way = SignedWay | Encrypted
"""What of S3 requests not every store does."""
