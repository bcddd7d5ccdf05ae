"""Placement and settings of the `swift` gateway, and what a deployment of it is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways import config_text
from weighbridge.gateways.front import (
    Behind,
    Front,
    FrontedPlacement,
    FrontedSettings,
    front_of,
    with_fronts,
)

Count = Annotated[int, Field(ge=1)]
Chunk = Annotated[Bytes, Field(ge=4096)]
Wait = Annotated[Seconds, Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
Server = Literal["proxy", "account", "container", "object"]
SERVERS: tuple[Literal["account", "container", "object"], ...] = ("account", "container", "object")
"""The servers of a storage host."""
_HEALTH_PATH = "/healthcheck"
"""Answered by one of the first filters of the pipeline, without asking anybody."""


@with_fronts("swift")
class SwiftPlacement(FrontedPlacement):
    """Which host does what. memcached sits with each proxy; a front, where there is one, before all
    proxies. Without one clients find the only proxy.
    """

    proxy: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of proxy servers and of memcached."""
    storage: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of account, container and object servers, each a zone of its own."""

    @model_validator(mode="after")
    def _once(self) -> SwiftPlacement:
        if len(set(self.storage)) != len(self.storage):
            raise ValueError("storage names the same host twice")
        if len(set(self.proxy)) != len(self.proxy):
            raise ValueError(
                "proxy names the same host twice: several on one host are `settings: {proxy: "
                "{daemons: 2}}`"
            )
        shared = set(self.proxy) & set(self.storage)
        if shared:
            raise ValueError(f"{', '.join(sorted(shared))} is both proxy and storage")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once."""
        front = () if self.front is None else (self.front,)
        return tuple(dict.fromkeys((*self.proxy, *self.storage, *front)))


class Errors(Record):
    """When the proxy stops asking a storage node that fails, and for how long."""

    limit: Count = 10
    interval: Seconds = 60.0


class ProxySettings(Record):
    """The proxy servers.

    Defaults are Swift's own, but for `workers` (there: one a CPU of the machine).
    """

    daemons: Count = 1
    """Proxy servers on each of their hosts; more than one in all need a front."""
    port: Port = 8080
    """Port of the first one of a host; the others have the next ones."""
    workers: Count = 1
    """Processes of each that answer."""
    node_timeout: Wait = 10.0
    """How long a storage server may take for an answer or a chunk, before it counts as failed."""
    conn_timeout: Wait = 0.5
    """How long a connection to a storage server may take."""
    recoverable_node_timeout: Wait = 10.0
    """As node_timeout, for reads, which another replica can answer."""
    post_quorum_timeout: Annotated[Seconds, Field(ge=0)] = 0.5
    """How long the last replica of a write is waited for when there is a quorum."""
    client_chunk_size: Chunk = 65536
    """What is read from a client at once."""
    object_chunk_size: Chunk = 65536
    """What is read from an object server at once."""
    error_suppression: Errors = Errors()
    """When a storage server that fails is left out."""
    memcache_connections: Count = 2
    """Connections to each memcached, a worker."""
    memcached_memory: Annotated[Bytes, Field(ge=64 * 2**20)] = 256 * 2**20
    """Memory of each memcached, of which there is one on every proxy host."""

    @model_validator(mode="after")
    def _ports(self) -> ProxySettings:
        # Here, before anything is made of each of them: a number of twenty digits is refused like
        # any other.
        if self.port + self.daemons - 1 > 65535:
            raise ValueError(
                f"{self.daemons} daemons from port {self.port} on: there is no port above 65535"
            )
        return self


class StorageSettings(Record):
    """Account and container servers."""

    workers: Count = 1
    """Processes that answer."""
    node_timeout: Wait = 3.0
    """How long another storage server may take for an answer."""


class ObjectSettings(StorageSettings):
    """The object server."""

    servers_per_port: Annotated[int, Field(ge=0)] = 0
    """0: all disks behind one port and its workers.

    More: a port for each disk, each with this many processes and no workers.
    """
    tpool_threads: Count | None = None
    """Threads for disk I/O of each process; None: Swift's own, 20, or 1 with servers_per_port."""
    keep_cache_private: bool = False
    """False, Swift's own default, drops an object from the page cache after each read that was
    authenticated.
    """
    keep_cache_size: Bytes = 5 * 2**20
    """Objects above this size are never kept in the page cache."""
    etag_validate_pct: Annotated[int, Field(ge=0, le=100)] = 100
    """Share of reads whose MD5 is checked by the object server.

    Releases 2.26 and 2.30 check them all.
    """
    disk_chunk_size: Chunk = 65536
    """What is read from a disk at once."""
    network_chunk_size: Chunk = 65536
    """What is read from the network at once."""
    mb_per_sync: Annotated[int, Field(ge=0)] = 512
    """MiB of an object after which it is synced while it is being written; at its end it always is.
    """


@with_fronts("swift")
class SwiftSettings(FrontedSettings):
    """All that decides results, each with its default in sight."""

    pipeline: Literal["standard", "study-2014"] = "standard"
    """Middleware of the proxies: all of the release's sample file, or the bare pipeline of the 2014
    study.

    The bare one takes manifests of large objects, bulk requests and archives for plain requests:
    answered, and not done."""
    s3api: bool = False
    """Answer the S3 API as well, by the middleware s3api (and slo, which its multipart uploads
    need).
    """
    replicas: Count = 3
    """Copies of each object, account and container, each on a host of its own."""
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
    background_interval: Annotated[Seconds, Field(ge=1)] | None = None
    """Time from one round of each of them to the next; None:

    Swift's own, from 30 s (replicators) to an hour (reaper).
    """
    log_requests: bool = False
    """A log line for each request at the proxies and at the storage servers; the study's pipeline
    has no access log.
    """
    log_level: Literal["DEBUG", "INFO", "NOTICE", "WARNING", "ERROR"] = "INFO"
    options: dict[Server, dict[config_text.Section, dict[config_text.Key, config_text.Value]]] = (
        Field(default_factory=dict)
    )
    """More options by server and section, such as `{object: {"app:object-server": {splice:
    true}}}`.

    Swift takes unknown ones in silence: they are checked against the samples that it ships and the
    options its code reads."""


class SwiftCluster(Record):
    """Proxies, storage hosts and perhaps a front, as a layout plans them."""

    release: str
    place: SwiftPlacement
    settings: SwiftSettings

    def front(self) -> Front | None:
        """The front as the layout says it."""
        return front_of(self.place, self.settings, Behind(health_path=_HEALTH_PATH))
