"""Placement, settings and releases of the `swift` gateway."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gateways.gateway import Image
from ground.quantities import Bytes, Seconds
from ground.record import Record

Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Server = Literal["proxy", "account", "container", "object"]
SERVERS: tuple[Literal["account", "container", "object"], ...] = ("account", "container", "object")
"""The servers of a storage host."""


class Place(Record):
    """Which host is a proxy and which ones store. memcached sits with the proxy; each storage host is a zone of its own."""

    proxy: Annotated[tuple[str, ...], Field(min_length=1, max_length=1)]
    storage: Annotated[tuple[str, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _once(self) -> Place:
        if len(set(self.storage)) != len(self.storage):
            raise ValueError("storage names the same host twice")
        shared = set(self.proxy) & set(self.storage)
        if shared:
            raise ValueError(f"{', '.join(sorted(shared))} is both proxy and storage")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once."""
        return (*self.proxy, *self.storage)


class Errors(Record):
    """When the proxy stops asking a storage node that fails, and for how long."""

    limit: Count = 10
    interval: Seconds = 60.0


class ProxySettings(Record):
    """The proxy server."""

    port: Port = 8080
    workers: Count = 1
    node_timeout: Annotated[Seconds, Field(gt=0)] = 10.0
    conn_timeout: Annotated[Seconds, Field(gt=0)] = 0.5
    recoverable_node_timeout: Annotated[Seconds, Field(gt=0)] = 10.0
    error_suppression: Errors = Errors()
    memcache_connections: Count = 2
    """Connections to memcached, a worker."""
    memcached_memory: Annotated[Bytes, Field(ge=64 * 2**20)] = 256 * 2**20


class StorageSettings(Record):
    """Account and container servers."""

    workers: Count = 1
    node_timeout: Annotated[Seconds, Field(gt=0)] = 3.0


class ObjectSettings(StorageSettings):
    """The object server."""

    keep_cache_private: bool = False
    """False, Swift's own default, drops an object from the page cache after each read that was authenticated."""
    keep_cache_size: Bytes = 5 * 2**20
    """Objects above this size are never kept in the page cache."""
    etag_validate_pct: Annotated[int, Field(ge=0, le=100)] = 100
    """Share of reads whose MD5 is checked by the object server."""
    disk_chunk_size: Annotated[Bytes, Field(ge=4096)] = 65536
    network_chunk_size: Annotated[Bytes, Field(ge=4096)] = 65536
    mb_per_sync: Annotated[int, Field(ge=0)] = 512


class Settings(Record):
    """All that decides results, each with its default in sight."""

    s3api: bool = False
    """Answer the S3 API as well, by the middleware s3api (and slo, which its multipart uploads need)."""
    replicas: Count = 3
    part_power: Annotated[int, Field(ge=1, le=32)] = 10
    """Partitions of each ring: two to the power of this."""
    proxy: ProxySettings = ProxySettings()
    account: StorageSettings = StorageSettings()
    container: StorageSettings = StorageSettings()
    object: ObjectSettings = ObjectSettings()
    disks: Count | None = None
    """Disks used on each storage host, from the first on; None: all it has."""
    background: bool = False
    """Run replicators, auditors, updaters and the account reaper."""
    log_requests: bool = False
    """A log line for each request at the storage servers; the proxy's pipeline has no access log."""
    log_level: Literal["DEBUG", "INFO", "NOTICE", "WARNING", "ERROR"] = "INFO"
    options: dict[Server, dict[str, dict[str, str | int | float | bool]]] = Field(default_factory=dict)
    """More options by server and section, such as `{object: {"app:object-server": {splice: true}}}`.

    Swift takes unknown ones in silence, and cannot be asked."""

    @property
    def pipeline(self) -> tuple[str, ...]:
        """The proxy's pipeline as it is configured. Swift adds what it cannot do without: what runs is in the facts."""
        middle = ("s3api", "tempauth", "slo") if self.s3api else ("tempauth",)
        return ("healthcheck", "cache", *middle, "proxy-server")


_PACKAGES = ("swift-proxy", "swift-account", "swift-container", "swift-object", "memcached", "rsync", "xfsprogs", "haproxy")
_TOOLS = ("iproute2", "procps", "tini", "python3")

# Debian 11 is past its time: its mirrors have the release itself, and no longer its updates.
_BULLSEYE = ('--setup-hook=sed -i -e /security/d -e /-updates/d "$1/etc/apt/sources.list"',)
# What sid has changes every day; a mirror's copy may be older than its own date of expiry.
_SID = ('--aptopt=Acquire::Check-Valid-Until "false"',)


def _image(name: str, suite: str, options: tuple[str, ...] = ()) -> Image:
    return Image(name=name, suite=suite, packages=(*_PACKAGES, *_TOOLS), options=options)


RELEASES: dict[str, Image] = {
    "swift-2.26": _image("swift-2.26", "bullseye", _BULLSEYE),
    "swift-2.30": _image("swift-2.30", "bookworm"),
    "swift-2.35": _image("swift-2.35", "trixie"),
    "swift-2.38": _image("swift-2.38", "sid", _SID),
}
"""Root image by the name layouts use for a release."""
