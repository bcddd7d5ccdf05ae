"""Settings of the `rgw` gateway."""

from __future__ import annotations

import re
from functools import partial
from ipaddress import ip_network
from string import ascii_lowercase
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from weighbridge.common.document import did_you_mean
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways import config_text
from weighbridge.gateways.front import (
    FrontedPlacement,
    FrontedSettings,
    HostNames,
    front_by_size,
    with_fronts,
)
from weighbridge.gateways.options import Option, OptionRecord, Size, sized
from weighbridge.gateways.rgw.pools import Count, PoolSettings
from weighbridge.gateways.rgw.releases import Frontend
from weighbridge.gateways.sizing import Role, Sized, Sizes

_client: Final = partial(Option, "client")
FIXED: Final = Option(scope="cluster")
"""Of a zone, which radosgw reads when it starts, or of a cluster."""
Port = Annotated[int, Field(ge=1, le=65535)]
Section = Literal["global", "mon", "mgr", "osd", "client"]
Compression = Literal["none", "zlib", "snappy", "lz4", "zstd"]
Chunk = Annotated[Bytes, Field(ge=2**16, le=2**30)]

LEAST_OSD_MEMORY_BYTES = 896 * 2**20
"""The least `osd_memory_target` that every release from 14 on accepts."""

_FRONTEND_WORDS: dict[Frontend, tuple[str, ...]] = {
    "beast": ("max_connection_backlog", "max_header_size", "request_timeout_ms"),
    "civetweb": (
        "enable_keep_alive",
        "keep_alive_timeout_ms",
        "max_request_size",
        "request_timeout_ms",
    ),
}
"""Further words of `rgw_frontends` (Ceph's documentation of HTTP frontends)."""

_WORD = re.compile(r"[^\s,]+")

_NOISY = (
    *("ms", "rgw", "objecter", "rados", "osd", "bluestore", "bluefs", "bdev", "rocksdb"),
    *("filestore", "journal", "monc", "auth"),
)


class Gc(OptionRecord):
    """RGW's garbage collection, which deletes the data of deleted objects later."""

    enabled: Annotated[bool, _client("rgw_enable_gc_threads", shown=False)] = True
    """Whether radosgw collects by itself, every `processor_period`."""
    min_wait: Annotated[Seconds, _client("rgw_gc_obj_min_wait", spell=round)] = 7200.0
    """How long the data of a deleted object is kept."""
    processor_period: Annotated[
        Seconds, _client("rgw_gc_processor_period", shown=False, spell=round)
    ] = 3600.0
    """Time between two rounds of collection."""
    max_concurrent_io: Annotated[Count, _client("rgw_gc_max_concurrent_io", shown=False)] = 10
    """Concurrent deletions."""


class RadosgwSettings(OptionRecord):
    """The radosgw daemons, with Ceph's defaults since 14 except `tcp_nodelay` and resharding."""

    daemons: Annotated[Count, FIXED] = 1
    """Number on each host; more than one in total need a front, or `endpoints`."""
    frontend: Frontend = "beast"
    """The web server: beast, or civetweb up to release 16."""
    port: Annotated[Port, FIXED] = 8000
    """Port of the first daemon of a host; the others use the next ones."""
    tls: Annotated[bool, FIXED] = False
    """beast speaks TLS, and nothing else, on `port`, with a certificate of the deployment's own CA.
    Behind a front set the front's `tls`.
    """
    tcp_nodelay: bool = True
    """False is Ceph's own default: answers smaller than a packet then wait about 40 ms for the
    client's delayed acknowledgement.
    """
    threads: Annotated[Count, _client("rgw_thread_pool_size", size=Size(32, 512, shared=True))] = (
        512
    )
    """With civetweb also its `num_threads`, one per connection. Unless given, the daemons of a host
    share 32 per CPU, and this at least: Ceph's default, which suits 16 CPUs.
    """
    max_concurrent_requests: Annotated[
        Count, _client("rgw_max_concurrent_requests", size=Size(64, 1024, of="per daemon"))
    ] = 1024
    """Further requests are answered with 503 at once. Unless given, each daemon takes 64 per CPU of
    its host, and this at least.
    """
    frontend_options: dict[str, Annotated[int | str, AfterValidator(config_text.option_value)]] = (
        Field(default_factory=dict)
    )
    """Further words of `rgw_frontends`, such as `{request_timeout_ms: 0}`. Unknown ones are
    refused: beast would ignore them silently.
    """
    print_continue: Annotated[bool, _client("rgw_print_continue")] = True
    """Answer `Expect: 100-continue`; the 2014 studies with Apache's FastCGI had it off."""
    max_chunk_size: Annotated[Chunk, _client("rgw_max_chunk_size", "buckets")] = 4 * 2**20
    """Most bytes of a RADOS operation; an object up to this size is one RADOS object, its head."""
    stripe_size: Annotated[Chunk, _client("rgw_obj_stripe_size", "buckets")] = 4 * 2**20
    """Bytes of each further RADOS object of a large object."""
    # Both windows and the size of a GET's requests are read for each request: rgw_rados.cc,
    # Object::Read::iterate; rgw_sal_rados.cc, get_atomic_writer.
    put_min_window: Annotated[Bytes, _client("rgw_put_obj_min_window_size", each_time=True)] = (
        16 * 2**20
    )
    """Bytes of one PUT in flight to OSDs, initially."""
    put_max_window: Annotated[Bytes, _client("rgw_put_obj_max_window_size", shown=False)] = (
        64 * 2**20
    )
    """Bytes of one PUT in flight to OSDs, at most."""
    get_window: Annotated[Bytes, _client("rgw_get_obj_window_size", each_time=True)] = 16 * 2**20
    """Bytes that one GET reads ahead from OSDs."""
    get_max_request: Annotated[
        Bytes, _client("rgw_get_obj_max_req_size", shown=False, each_time=True)
    ] = 4 * 2**20
    """Most bytes of one read request of a GET to an OSD."""
    compression: Annotated[Compression, FIXED] = "none"
    """The algorithm by which the zone's placement compresses objects before they are written. Say
    in the workloads how well their content compresses (`objects: {compressible: 50%}`).
    """
    index_shards: Annotated[Count, _client("rgw_override_bucket_index_max_shards", "buckets")] = 11
    """Shards of each bucket's index."""
    dynamic_resharding: Annotated[bool, _client("rgw_dynamic_resharding")] = False
    """True allows resharding of an index during a step, which blocks writes."""
    lifecycle: Annotated[bool, _client("rgw_enable_lc_threads")] = False
    """Run the threads that expire objects by lifecycle rules."""
    ops_log: Annotated[bool, _client("rgw_enable_ops_log")] = False
    """Record each request in the ops log."""
    gc: Gc = Gc()

    @model_validator(mode="after")
    def _fitting(self) -> RadosgwSettings:
        if self.port + self.daemons - 1 > 65535:
            raise ValueError(
                f"{self.daemons} daemons from port {self.port} on need ports above 65535"
            )
        if self.tls and self.frontend != "beast":
            raise ValueError(
                f"tls: this suite does not configure TLS of {self.frontend}: use beast or a front"
            )
        if self.put_min_window > self.put_max_window:
            raise ValueError(
                f"put_min_window {self.put_min_window} is above put_max_window "
                f"{self.put_max_window}"
            )
        known = _FRONTEND_WORDS[self.frontend]
        for name, value in self.frontend_options.items():
            if name not in known:
                raise ValueError(
                    f"frontend_options: {self.frontend} has no {name!r}{did_you_mean(name, known)}"
                )
            if not _WORD.fullmatch(str(value)):
                raise ValueError(f"frontend_options: {name}: {value!r} is not one word")
        return self


class FilestoreSettings(Record):
    """FileStore (up to release 16), which stores objects as files after writing to a journal."""

    filesystem: Literal["xfs", "btrfs", "ext4"] = "xfs"
    """File system of each disk. On ext4, object names of more than about 200 bytes are refused."""
    journal: Literal["shared", "own"] = "shared"
    """`own`: the last disk of each host, which may be a faster one, has all journals, even if
    `disks` leaves ones before it unused; `shared`: each disk has its OSD's.
    """
    journal_size: Annotated[Bytes, Field(ge=64 * 2**20)] = 1024 * 2**20
    """Size of each OSD's journal."""
    raid0: bool = False
    """One OSD a host, over all of its disks: BTRFS stripes data and metadata itself. For the other
    file systems name an array as a real host's disk.
    """

    @model_validator(mode="after")
    def _stripes(self) -> FilestoreSettings:
        if self.raid0 and self.filesystem != "btrfs":
            raise ValueError(
                f"raid0: {self.filesystem} cannot stripe over disks by itself, only btrfs can; on "
                "real hosts name an array as the only disk"
            )
        return self


class MemstoreSettings(Record):
    """MemStore, which stores objects only in the OSDs' memory: a cluster without disks."""

    per_host: Count = 1
    """OSDs on each OSD host."""
    size: Annotated[Bytes, Field(ge=64 * 2**20)] = 1024 * 2**20
    """Size that each OSD reports; with less memory in its host, the OSD is killed when it fills."""


class OsdSettings(OptionRecord):
    """The OSDs: one for each disk, except with memstore."""

    objectstore: Annotated[
        Literal["bluestore", "filestore", "memstore"], Option("osd", "osd_objectstore")
    ] = "bluestore"
    """Where OSDs store objects: on the raw disk, as files, or in memory."""
    filestore: FilestoreSettings = FilestoreSettings()
    memstore: MemstoreSettings = MemstoreSettings()
    disks: Count | None = None
    """Disks used on each OSD host, from the first on, including journals; None: all."""
    memory_target: Annotated[
        Bytes, Field(ge=LEAST_OSD_MEMORY_BYTES), Option("osd", "osd_memory_target")
    ] = LEAST_OSD_MEMORY_BYTES
    """Memory that an OSD sizes its caches for; all daemons of a host must fit its memory limit.
    Unless given, the OSDs of a host share 60 % of its memory, each with this at least.
    """
    cluster_network: Annotated[
        Annotated[str, AfterValidator(lambda text: str(ip_network(text)))] | None,
        Option("osd", shown=False),
    ] = None
    """The network of their copies and heartbeats, such as 10.2.0.0/24, in which each OSD host needs
    an address; None: as all else, that of the hosts' `address`.
    """
    scrub: bool = False
    """Let OSDs compare replicas by Ceph's schedule."""

    @model_validator(mode="after")
    def _meant(self) -> OsdSettings:
        for name in ("filestore", "memstore"):
            if name in self.model_fields_set and self.objectstore != name:
                raise ValueError(f"{name}: given, but objectstore is {self.objectstore}")
        if self.objectstore == "memstore" and self.disks is not None:
            raise ValueError("disks: given, but memstore uses none")
        if self.own_journal and self.disks == 1:
            raise ValueError(
                "disks: 1, but `journal: own` needs another disk: the last one is for journals"
            )
        return self

    @property
    def own_journal(self) -> bool:
        """Whether one disk of each OSD host is for journals only."""
        return self.objectstore == "filestore" and self.filestore.journal == "own"

    def split(self, disks: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Numbers of a host's disks for OSDs, and of the one for their journals, of `disks`."""
        used = min(disks, self.disks or disks)
        if self.own_journal:
            return tuple(range(used - 1)), (disks - 1,)
        return tuple(range(used)), ()

    def osds(self, disks: int) -> int:
        """How many OSDs a host with so many disks has."""
        if self.objectstore == "memstore":
            return self.memstore.per_host
        count = len(self.split(disks)[0])
        return min(1, count) if self.striped else count

    @property
    def least_disks(self) -> int:
        if self.objectstore == "memstore":
            return 0
        return self.disks or (2 if self.own_journal else 1)

    @property
    def striped(self) -> bool:
        return self.objectstore == "filestore" and self.filestore.raid0

    @property
    def least_memory_bytes(self) -> int:
        """The configured memory of a host's OSDs, for the least number of disks."""
        if self.objectstore == "memstore":
            return self.memstore.per_host * self.memstore.size
        if self.striped:
            return self.memory_target
        return (self.least_disks - self.own_journal) * self.memory_target


@with_fronts("rgw")
class RgwSettings(FrontedSettings):
    """All settings that decide results, with explicit defaults."""

    radosgw: RadosgwSettings = RadosgwSettings()
    osd: Annotated[OsdSettings, FIXED] = OsdSettings()
    pools: Annotated[PoolSettings, FIXED] = PoolSettings()
    log: Annotated[Literal["quiet", "default"], FIXED] = "quiet"
    """`quiet`: debug levels 0/0, so that neither gateway logs requests; `default`: Ceph's own."""
    options: dict[
        Section, dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], config_text.Value]
    ] = Field(default_factory=dict)
    """Further options of ceph.conf by section; one that the release does not know is an error."""

    @property
    def debug(self) -> dict[str, str]:
        """Debug levels, by option."""
        return {f"debug_{part}": "0/0" for part in _NOISY} if self.log == "quiet" else {}


MON_IDS = ascii_lowercase
"""Names of mons, and of the mgr beside each, in order."""


@with_fronts("rgw")
class RgwPlacement(FrontedPlacement):
    """Which daemon runs on which host.

    A front, if any, is before all radosgw.
    """

    mon: Annotated[
        HostNames,
        BeforeValidator(lambda value: (value,) if isinstance(value, str) else value),
        Field(max_length=len(MON_IDS)),
    ]
    """One host or several, each with a mon and a mgr. More than half of the mons must be up: use an
    odd number, since one more tolerates no more failures.
    """
    osd: HostNames
    """The hosts with OSDs, one for each disk."""
    radosgw: HostNames
    """The hosts of the gateway's daemons."""

    @property
    def advice(self) -> tuple[str, ...]:
        """What is allowed, and seldom meant."""
        if len(self.mon) % 2:
            return ()
        return (f"{len(self.mon)} mons tolerate no more failures than one fewer would",)

    @property
    def hosts(self) -> tuple[str, ...]:
        front = () if self.front is None else (self.front,)
        return tuple(dict.fromkeys((*self.mon, *self.osd, *self.radosgw, *front)))


def by_size(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> tuple[Sized, ...]:
    """The settings that follow the size of hosts, with those of the front."""
    disks = {name: sizes[name].disks if name in sizes else 0 for name in place.osd}
    osds = {name: settings.osd.osds(count) for name, count in disks.items()}
    hosts = Role(place.radosgw, sizes)
    found = [*sized(RadosgwSettings, "radosgw.", hosts, settings.radosgw.daemons)]
    if settings.osd.objectstore != "memstore":  # whose objects are in memory, without a cache
        least = LEAST_OSD_MEMORY_BYTES
        cache = Role(place.osd, sizes).cache("osd.memory_target", osds, least_bytes=least)
        found += [] if cache is None else [cache]
    found += settings.pools.by_size(sum(osds.values()))
    return (*found, *front_by_size(place, sizes))
