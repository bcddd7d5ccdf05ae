"""Settings of the `rgw` gateway."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
from weighbridge.gateways.rgw.pools import Count, PoolSettings
from weighbridge.gateways.rgw.releases import Frontend
from weighbridge.gateways.sizing import Role, Sized, Sizes

Port = Annotated[int, Field(ge=1, le=65535)]
PgNum = Annotated[int, Field(ge=1, le=32768)]
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


class Gc(Record):
    """RGW's garbage collection, which deletes the data of deleted objects later."""

    enabled: bool = True
    """Whether radosgw collects by itself, every `processor_period`."""
    min_wait: Seconds = 7200.0
    """How long the data of a deleted object is kept."""
    processor_period: Seconds = 3600.0
    """Time between two rounds of collection."""
    max_concurrent_io: Count = 10
    """Concurrent deletions."""


class RadosgwSettings(Record):
    """The radosgw daemons, with Ceph's defaults since 14 except `tcp_nodelay` and resharding."""

    daemons: Count = 1
    """Number on each host; more than one in total need a front, or `endpoints`."""
    frontend: Frontend = "beast"
    """The web server: beast, or civetweb up to release 16."""
    port: Port = 8000
    """Port of the first daemon of a host; the others use the next ones."""
    tls: bool = False
    """beast speaks TLS, and nothing else, on `port`, with a certificate of the deployment's own CA.
    Behind a front set the front's `tls`.
    """
    tcp_nodelay: bool = True
    """False is Ceph's own default: answers smaller than a packet then wait about 40 ms for the
    client's delayed acknowledgement.
    """
    threads: Count = 512
    """`rgw_thread_pool_size`; with civetweb also its `num_threads`, one per connection. Unless
    given, the daemons of a host share 32 per CPU, and this at least.
    """
    max_concurrent_requests: Count = 1024
    """Further requests are answered with 503 at once. Unless given, each daemon takes 64 per CPU of
    its host, and this at least.
    """
    frontend_options: dict[str, Annotated[int | str, AfterValidator(config_text.option_value)]] = (
        Field(default_factory=dict)
    )
    """Further words of `rgw_frontends`, such as `{request_timeout_ms: 0}`. Unknown ones are
    refused: beast would ignore them silently.
    """
    print_continue: bool = True
    """Answer `Expect: 100-continue`; the 2014 studies with Apache's FastCGI had it off."""
    max_chunk_size: Chunk = 4 * 2**20
    """Most bytes of a RADOS operation; an object up to this size is one RADOS object, its head."""
    stripe_size: Chunk = 4 * 2**20
    """Bytes of each further RADOS object of a large object."""
    put_min_window: Bytes = 16 * 2**20
    """Bytes of one PUT in flight to OSDs, initially."""
    put_max_window: Bytes = 64 * 2**20
    """Bytes of one PUT in flight to OSDs, at most."""
    get_window: Bytes = 16 * 2**20
    """Bytes that one GET reads ahead from OSDs."""
    get_max_request: Bytes = 4 * 2**20
    """Most bytes of one read request of a GET to an OSD."""
    compression: Compression = "none"
    """The algorithm by which the zone's placement compresses objects before they are written. Say
    in the workloads how well their content compresses (`objects: {compressible: 50%}`).
    """
    index_shards: Count = 11
    """Shards of each bucket's index."""
    dynamic_resharding: bool = False
    """True allows resharding of an index during a step, which blocks writes."""
    lifecycle: bool = False
    """Run the threads that expire objects by lifecycle rules."""
    ops_log: bool = False
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


class OsdSettings(Record):
    """The OSDs: one for each disk, except with memstore."""

    objectstore: Literal["bluestore", "filestore", "memstore"] = "bluestore"
    """Where OSDs store objects: on the raw disk, as files, or in memory."""
    filestore: FilestoreSettings = FilestoreSettings()
    memstore: MemstoreSettings = MemstoreSettings()
    disks: Count | None = None
    """Disks used on each OSD host, from the first on, including journals; None: all."""
    memory_target: Annotated[Bytes, Field(ge=LEAST_OSD_MEMORY_BYTES)] = LEAST_OSD_MEMORY_BYTES
    """Memory that an OSD sizes its caches for; all daemons of a host must fit its memory limit.
    Unless given, the OSDs of a host share 60 % of its memory, each with this at least.
    """
    cluster_network: Annotated[str, AfterValidator(lambda text: str(ip_network(text)))] | None = (
        None
    )
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
    osd: OsdSettings = OsdSettings()
    pools: PoolSettings = PoolSettings()
    log: Literal["quiet", "default"] = "quiet"
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


_THREADS_PER_CPU: Final = 32
_LEAST_THREADS: Final = 512
"""Ceph's default of `rgw_thread_pool_size`, which suits 16 CPUs by 32 each."""


def by_size(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> tuple[Sized, ...]:
    """All of them, with those of the front."""
    return (
        *_radosgw(place, settings, sizes),
        *_memory(place, settings, sizes),
        *settings.pools.by_size(sum(_osds(place, settings, sizes).values())),
        *front_by_size(place, sizes),
    )


def _radosgw(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> Iterator[Sized]:
    hosts, own = Role(place.radosgw, sizes), settings.radosgw
    yield hosts.waiting(
        "radosgw.threads",
        per_cpu=_THREADS_PER_CPU,
        least=_LEAST_THREADS,
        shared_by=own.daemons,
    )
    yield hosts.waiting(
        "radosgw.max_concurrent_requests",
        per_cpu=2 * _THREADS_PER_CPU,
        least=2 * _LEAST_THREADS,
        of="per daemon",
    )


def _memory(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> Iterator[Sized]:
    if settings.osd.objectstore == "memstore":
        return  # its objects are in memory, and it has no cache
    found = Role(place.osd, sizes).cache(
        "osd.memory_target", _osds(place, settings, sizes), least_bytes=LEAST_OSD_MEMORY_BYTES
    )
    if found is not None:
        yield found


def _osds(place: RgwPlacement, settings: RgwSettings, sizes: Sizes) -> dict[str, int]:
    disks = {name: sizes[name].disks if name in sizes else 0 for name in place.osd}
    return {name: settings.osd.osds(count) for name, count in disks.items()}
