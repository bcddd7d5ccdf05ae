"""Placement and settings of the `swift` gateway, and its planned deployment."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.common.structure import Fragments, Redundancy
from weighbridge.gateways import config_text
from weighbridge.gateways.front import (
    Behind,
    Front,
    FrontedPlacement,
    FrontedSettings,
    HostNames,
    front_by_size,
    front_of,
    tls_host,
    with_fronts,
)
from weighbridge.gateways.options import Option, OptionRecord, Size, sized
from weighbridge.gateways.sizing import Role, Sized, Sizes, bits

Count = Annotated[int, Field(ge=1)]
Chunk = Annotated[Bytes, Field(ge=4096)]
Wait = Annotated[Seconds, Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
Server = Literal["proxy", "account", "container", "object"]
SERVERS: tuple[Literal["account", "container", "object"], ...] = ("account", "container", "object")
"""The servers of a storage host."""
_FIXED: Final = Option(scope="cluster")
"""What rings, disks and the set of daemons depend on, and what clients know."""


@with_fronts("swift")
class SwiftPlacement(FrontedPlacement):
    """Which service runs on which host. memcached runs with each proxy.

    A front, if any, is before all proxies; without one, clients use the only proxy.
    """

    proxy: HostNames
    """Hosts of proxy servers and memcached."""
    storage: HostNames
    """Hosts of account, container and object servers, each a zone of its own."""

    @model_validator(mode="after")
    def _once(self) -> SwiftPlacement:
        shared = set(self.proxy) & set(self.storage)
        if shared:
            raise ValueError(f"{', '.join(sorted(shared))} is both proxy and storage")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        front = () if self.front is None else (self.front,)
        return tuple(dict.fromkeys((*self.proxy, *self.storage, *front)))


class Errors(Record):
    """When and for how long the proxy suppresses a failing storage node."""

    limit: Annotated[Count, Option("app", "error_suppression_limit")] = 10
    """Errors after which a node is avoided."""
    interval: Annotated[Seconds, Option("app", "error_suppression_interval")] = 60.0
    """For how long."""


class ProxySettings(OptionRecord):
    """The proxy servers. Defaults are Swift's own."""

    daemons: Annotated[Count, _FIXED] = 1
    """Proxy servers on each host; more than one in total need a front, or `endpoints`."""
    port: Annotated[Port, _FIXED] = 8080
    """Port of the first one of a host; the others use the next ones."""
    tls: Annotated[bool, _FIXED] = False
    """The proxy itself speaks TLS, with a certificate of the deployment's own CA: Swift calls that
    for testing only. Behind a front set the front's `tls`.
    """
    workers: Annotated[Count, Option("DEFAULT", size=Size(shared=True))] = 1
    """Worker processes of each. Unless given, the proxies of a host share its CPUs, one for each;
    Swift would count the machine's, whatever the host's limit.
    """
    node_timeout: Annotated[Wait, Option("app")] = 10.0
    """Timeout for an answer or a chunk from a storage server."""
    conn_timeout: Annotated[Wait, Option("app")] = 0.5
    """Timeout for a connection to a storage server."""
    recoverable_node_timeout: Annotated[Wait, Option("app")] = 10.0
    """node_timeout for reads, which another replica can answer."""
    post_quorum_timeout: Annotated[Seconds, Field(ge=0), Option("app")] = 0.5
    """How long to wait for the last replica of a write after the quorum."""
    client_chunk_size: Annotated[Chunk, Option("app")] = 65536
    """Bytes read from a client at once."""
    object_chunk_size: Annotated[Chunk, Option("app")] = 65536
    """Bytes read from an object server at once."""
    error_suppression: Errors = Errors()
    """When a failing storage server is left out."""
    memcache_connections: Annotated[Count, Option("cache", "memcache_max_connections")] = 2
    """Connections of each worker to each memcached."""
    memcached_memory: Annotated[Bytes, Field(ge=64 * 2**20), _FIXED] = 256 * 2**20
    """Memory of each memcached; every proxy host has one."""

    @model_validator(mode="after")
    def _ports(self) -> ProxySettings:
        # Checked before one object is created for each: a number of twenty digits must fail
        # quickly.
        if self.port + self.daemons - 1 > 65535:
            raise ValueError(
                f"{self.daemons} daemons from port {self.port} on need ports above 65535"
            )
        return self


class StorageSettings(OptionRecord):
    """Account and container servers."""

    workers: Annotated[Count, Option("DEFAULT", size=Size())] = 1
    """Worker processes; unless given, one for each CPU of a storage host, as Swift's own `auto`."""
    node_timeout: Annotated[Wait, Option("app")] = 3.0
    """Timeout for an answer from another storage server."""


class ObjectSettings(StorageSettings):
    """The object server."""

    servers_per_port: Annotated[int, Field(ge=0), Option("DEFAULT", scope="cluster")] = 0
    """0: all disks share one port and its workers. More: a port for each disk, each with this many
    processes and no workers.
    """
    tpool_threads: Annotated[
        Count | None,
        Option("DEFAULT", "eventlet_tpool_num_threads", spell=lambda count: count or "auto"),
    ] = None
    """Threads for disk I/O of each process; None: Swift's own, 20, or 1 with servers_per_port."""
    keep_cache_private: Annotated[bool, Option("app")] = False
    """False, Swift's own default, drops an object from the page cache after authenticated reads."""
    keep_cache_size: Annotated[Bytes, Option("app")] = 5 * 2**20
    """Larger objects are never kept in the page cache."""
    etag_validate_pct: Annotated[int, Field(ge=0, le=100), Option("app")] = 100
    """Share of reads whose MD5 the object server checks. Releases 2.26 and 2.30 check all."""
    disk_chunk_size: Annotated[Chunk, Option("DEFAULT")] = 65536
    """Bytes read from a disk at once."""
    network_chunk_size: Annotated[Chunk, Option("DEFAULT")] = 65536
    """Bytes read from the network at once."""
    mb_per_sync: Annotated[int, Field(ge=0), Option("app")] = 512
    """MiB of an object after which it is synced while it is written; it is always synced at its
    end.
    """


class EcSettings(OptionRecord):
    """Erasure coding of objects: `k` fragments with data, `m` more to replace lost ones."""

    k: Annotated[int, Field(ge=1, le=32), Option("policy", "ec_num_data_fragments")]
    """Fragments with data."""
    m: Annotated[int, Field(ge=1, le=16), Option("policy", "ec_num_parity_fragments")]
    """Fragments with parity."""
    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$"), Option("policy", "ec_type")] = (
        "liberasurecode_rs_vand"
    )
    """The code of PyECLib; the release must have its library."""
    segment_size: Annotated[
        Bytes, Field(ge=4096, le=2**30), Option("policy", "ec_object_segment_size")
    ] = 2**20
    """Bytes of an object that are coded at once."""
    failure_domain: Literal["host", "disk"] = "host"
    """What no two fragments of an object share."""

    @property
    def fragments(self) -> Fragments:
        return Fragments(data=self.k, parity=self.m)


@with_fronts("swift")
class SwiftSettings(FrontedSettings):
    """All settings that decide results, with explicit defaults."""

    pipeline: Literal["standard", "study-2014"] = "standard"
    """Middleware of the proxies: the release's sample pipeline, or the 2014 study's bare one.

    The bare one treats manifests of large objects, bulk requests and archives as plain requests:
    they are answered, but not carried out."""
    formpost: bool = False
    """Take objects from forms that browsers post: formpost, which Swift's sample pipeline lacks,
    after tempurl; only in the standard pipeline.
    """
    versions: bool = False
    """Containers may keep versions (`allow_object_versioning` of versioned_writes), over S3 too."""
    s3api: Annotated[bool, _FIXED] = False
    """Serve the S3 API too, by the middleware s3api (and slo, which its multipart uploads need)."""
    replicas: Annotated[Count, _FIXED] = 3
    """Copies of each object, account and container, each on another host; with `ec`, only of
    accounts and containers.
    """
    ec: Annotated[EcSettings | None, _FIXED] = None
    """Erasure coding of objects, such as `{k: 2, m: 1}`, by the storage policy of every new
    container; None: copies.
    """
    part_power: Annotated[int, Field(ge=1, le=32), _FIXED] = 10
    """Partitions of each ring, as a power of two; unless given, at least 100 for each disk, and
    this at least.
    """
    proxy: ProxySettings = ProxySettings()
    account: StorageSettings = StorageSettings()
    container: StorageSettings = StorageSettings()
    object: ObjectSettings = ObjectSettings()
    disks: Annotated[Count | None, _FIXED] = None
    """Disks used on each storage host, from the first on; None: all."""
    background: Annotated[bool, _FIXED] = False
    """Run replicators, auditors, updaters and the account reaper."""
    background_interval: Annotated[
        Annotated[Seconds, Field(ge=1)] | None, Option("daemon", "interval")
    ] = None
    """Time between their rounds; None: Swift's own, from 30 s (replicators) to 1 h (reaper)."""
    log_requests: bool = False
    """Log each request at proxies and storage servers; the study's pipeline has no access log."""
    log_level: Literal["DEBUG", "INFO", "NOTICE", "WARNING", "ERROR"] = "INFO"
    """Of all servers."""
    options: dict[Server, dict[config_text.Section, dict[config_text.Key, config_text.Value]]] = (
        Field(default_factory=dict)
    )
    """Further options by server and section, such as `{object: {"app:object-server": {splice:
    true}}}`.

    Swift ignores unknown ones silently: they are checked against its samples and the options that
    its code reads."""

    @property
    def kept(self) -> Redundancy:
        if self.ec is None:
            return Redundancy(replicas=self.replicas)
        return Redundancy(replicas=1, fragments=self.ec.fragments)


def front_before(place: SwiftPlacement, settings: SwiftSettings) -> Front | None:
    """The front, if any; its health check is answered by one of the first filters of the pipeline,
    without other servers.
    """
    return front_of(place, settings, Behind(health_path="/healthcheck"))


def host_of_tls(place: SwiftPlacement, settings: SwiftSettings) -> str | None:
    """The host whose server speaks TLS to clients; None: they use plain HTTP."""
    return tls_host(place, settings, place.proxy[0] if settings.proxy.tls else None)


# Settings of Swift that follow the size of its hosts, by the rule of `gateways.sizing`.
#
# Its caches follow by themselves: they are the kernel's page cache.


_LEAST_PART_POWER: Final = 10
_MOST_PART_POWER: Final = 32


def by_size(place: SwiftPlacement, settings: SwiftSettings, sizes: Sizes) -> tuple[Sized, ...]:
    """All of them, with those of the front."""
    stores = Role(place.storage, sizes)
    found = list(sized(ProxySettings, "proxy.", Role(place.proxy, sizes), settings.proxy.daemons))
    for server in SERVERS:
        if server != "object" or not settings.object.servers_per_port:
            found += sized(StorageSettings, f"{server}.", stores)
    used = [sizes[name].disks for name in place.storage if name in sizes]
    disks = sum(min(count, settings.disks or count) for count in used)
    if disks:
        found.append(bits("part_power", disks, least=_LEAST_PART_POWER, most=_MOST_PART_POWER))
    return (*found, *front_by_size(place, sizes))
