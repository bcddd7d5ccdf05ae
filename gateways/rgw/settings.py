"""Placement and settings of the `rgw` gateway."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from weighbridge.common.document import did_you_mean
from weighbridge.common.quantities import Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.gateways import config_text
from weighbridge.gateways.front import FrontedPlacement, FrontedSettings, with_fronts
from weighbridge.gateways.rgw.releases import Frontend

Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
PgNum = Annotated[int, Field(ge=1, le=32768)]
Section = Literal["global", "mon", "mgr", "osd", "client"]
Chunk = Annotated[Bytes, Field(ge=2**16, le=2**30)]

LEAST_OSD_MEMORY_BYTES = 896 * 2**20
"""Below this, `osd_memory_target` is refused by every release from 14 on."""

_FRONTEND_WORDS: dict[Frontend, tuple[str, ...]] = {
    "beast": ("max_connection_backlog", "max_header_size", "request_timeout_ms"),
    "civetweb": (
        "enable_keep_alive",
        "keep_alive_timeout_ms",
        "max_request_size",
        "request_timeout_ms",
    ),
}
"""What `rgw_frontends` may say beside what these settings write themselves (Ceph's documentation of
HTTP frontends).
"""

_WORD = re.compile(r"[^\s,]+")

_NOISY = (
    "ms",
    "rgw",
    "objecter",
    "rados",
    "osd",
    "bluestore",
    "bluefs",
    "bdev",
    "rocksdb",
    "filestore",
    "journal",
    "monc",
    "auth",
)


@with_fronts("rgw")
class RgwPlacement(FrontedPlacement):
    """Which daemon sits on which host.

    The mgr sits with the mon; a front, of which there is one or none, before all radosgw.
    """

    mon: str
    osd: Annotated[tuple[str, ...], Field(min_length=1)]
    radosgw: Annotated[tuple[str, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _sensible(self) -> RgwPlacement:
        if len(set(self.osd)) != len(self.osd):
            raise ValueError(
                "osd names the same host twice: every disk of a host has an OSD already"
            )
        if len(set(self.radosgw)) != len(self.radosgw):
            raise ValueError(
                "radosgw names the same host twice: several on one host are `settings: {radosgw: "
                "{daemons: 2}}`"
            )
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once."""
        front = () if self.front is None else (self.front,)
        return tuple(dict.fromkeys((self.mon, *self.osd, *self.radosgw, *front)))


class Gc(Record):
    """RGW's garbage collection, which deletes the data of deleted objects later."""

    enabled: bool = True
    """Let radosgw collect by itself, every `processor_period`."""
    min_wait: Seconds = 7200.0
    """How long after its deletion an object's data stays."""
    processor_period: Seconds = 3600.0
    """Time from one round of it to the next."""
    max_concurrent_io: Count = 10
    """Deletions it has under way at once."""


class RadosgwSettings(Record):
    """The radosgw daemons.

    Defaults are those that Ceph has had from 14 on, but for `tcp_nodelay` and `dynamic_resharding`.
    """

    daemons: Count = 1
    """How many on each of their hosts; more than one in all need a front."""
    frontend: Frontend = "beast"
    """Its web server: beast, or civetweb up to release 16."""
    port: Port = 8000
    """Port of the first daemon of a host; the others have the next ones."""
    tcp_nodelay: bool = True
    """False is Ceph's own default: answers of less than a packet then wait about 40 ms for the
    client's delayed acknowledgement.
    """
    threads: Count = 512
    """`rgw_thread_pool_size`; with civetweb also its `num_threads`, one a connection."""
    max_concurrent_requests: Count = 1024
    """Requests beyond this are answered with 503 at once."""
    frontend_options: dict[str, Annotated[int | str, AfterValidator(config_text.option_value)]] = (
        Field(default_factory=dict)
    )
    """More words of `rgw_frontends`, such as `{request_timeout_ms: 0}`.

    Only known ones: beast takes others in silence.
    """
    print_continue: bool = True
    """Answer `Expect: 100-continue`; the studies with Apache's FastCGI of 2014 had it off."""
    max_chunk_size: Chunk = 4 * 2**20
    """Most bytes in one RADOS operation; what is no larger is one RADOS object, its head."""
    stripe_size: Chunk = 4 * 2**20
    """Bytes of each further RADOS object of a large one."""
    put_min_window: Bytes = 16 * 2**20
    """Bytes of one PUT that may be on their way to OSDs at once, at first."""
    put_max_window: Bytes = 64 * 2**20
    """Bytes of one PUT that may be on their way to OSDs at once, at most."""
    get_window: Bytes = 16 * 2**20
    """Bytes that one GET reads ahead from OSDs."""
    get_max_request: Bytes = 4 * 2**20
    """Most bytes that a GET asks of an OSD at once."""
    index_shards: Count = 11
    """Shards of the index of each bucket."""
    dynamic_resharding: bool = False
    """True lets an index be resharded in the middle of a step, which blocks writes."""
    lifecycle: bool = False
    """Run the threads that expire objects by rules."""
    ops_log: bool = False
    """Keep a record of each request."""
    gc: Gc = Gc()

    @model_validator(mode="after")
    def _fitting(self) -> RadosgwSettings:
        if self.port + self.daemons - 1 > 65535:
            raise ValueError(
                f"{self.daemons} daemons from port {self.port} on: there is no port above 65535"
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
    """FileStore, which keeps objects as files and writes everything to a journal first; releases up
    to 16 have it.
    """

    filesystem: Literal["xfs", "btrfs", "ext4"] = "xfs"
    """What is made on each disk. On ext4, object names of more than about 200 bytes are refused."""
    journal: Literal["shared", "own"] = "shared"
    """`own`: the last disk of each host holds the journals of its OSDs; `shared`: each disk has its
    OSD's.
    """
    journal_size: Annotated[Bytes, Field(ge=64 * 2**20)] = 1024 * 2**20
    """Size of each OSD's journal."""


class MemstoreSettings(Record):
    """MemStore, which keeps objects in the OSDs' memory and nowhere else: what a cluster does
    without disks.
    """

    per_host: Count = 1
    """OSDs on each OSD host."""
    size: Annotated[Bytes, Field(ge=64 * 2**20)] = 1024 * 2**20
    """What each OSD says it holds; an OSD whose host has less is killed when it fills."""


class OsdSettings(Record):
    """The OSDs: one a disk, but for memstore."""

    objectstore: Literal["bluestore", "filestore", "memstore"] = "bluestore"
    """How OSDs keep objects: on the raw disk, as files, or in memory."""
    filestore: FilestoreSettings = FilestoreSettings()
    memstore: MemstoreSettings = MemstoreSettings()
    disks: Count | None = None
    """Disks used on each OSD host, from the first on, that of journals included; None: all it has.
    """
    memory_target: Annotated[Bytes, Field(ge=LEAST_OSD_MEMORY_BYTES)] = LEAST_OSD_MEMORY_BYTES
    """What an OSD sizes its caches to stay within; must fit the host's memory limit together with
    what else sits there.
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
                "disks: 1, but with `journal: own` the last disk is for journals and another one "
                "for an OSD"
            )
        return self

    @property
    def own_journal(self) -> bool:
        """Whether one disk of each OSD host is for journals alone."""
        return self.objectstore == "filestore" and self.filestore.journal == "own"

    @property
    def least_disks(self) -> int:
        """Disks that each OSD host must have."""
        if self.objectstore == "memstore":
            return 0
        return self.disks or (2 if self.own_journal else 1)

    @property
    def least_memory_bytes(self) -> int:
        """Memory that the OSDs of a host are told they may take, as far as it is known without the
        number of its disks.
        """
        if self.objectstore == "memstore":
            return self.memstore.per_host * self.memstore.size
        return (self.least_disks - self.own_journal) * self.memory_target


class PoolSettings(Record):
    """RADOS pools. Their placement groups are fixed: the autoscaler and the balancer are off.

    The defaults are what three OSDs want by the rule that Ceph's own autoscaler follows
    (`mon_target_pg_per_osd`, 100): 64 + 16 + 5 * 4 = 100 placement groups of three copies are 100
    on each OSD. Most of them are the data pool's, where the load is.
    """

    replicas: Count = 3
    """Copies of everything."""
    min_size: Count = 2
    """Copies that must be there for a pool to serve at all."""
    failure_domain: Literal["host", "osd"] = "host"
    """What no two copies share."""
    data_pg_num: PgNum = 64
    """Placement groups of the pool of objects' data: a power of two."""
    index_pg_num: PgNum = 16
    """Placement groups of the pool of bucket indexes."""
    other_pg_num: PgNum = 4
    """Placement groups of each of RGW's other pools."""

    @model_validator(mode="after")
    def _sensible(self) -> PoolSettings:
        if self.min_size > self.replicas:
            raise ValueError(f"min_size {self.min_size} is above replicas {self.replicas}")
        for name in ("data_pg_num", "index_pg_num", "other_pg_num"):
            count: int = getattr(self, name)
            if count & (count - 1):
                raise ValueError(f"{name} {count} is not a power of two")
        return self


@with_fronts("rgw")
class RgwSettings(FrontedSettings):
    """All that decides results, each with its default in sight."""

    radosgw: RadosgwSettings = RadosgwSettings()
    osd: OsdSettings = OsdSettings()
    pools: PoolSettings = PoolSettings()
    log: Literal["quiet", "default"] = "quiet"
    """`quiet`: debug levels 0/0, so that neither gateway writes a line for a request; `default`:

    Ceph's own.
    """
    options: dict[
        Section, dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], config_text.Value]
    ] = Field(default_factory=dict)
    """More options of ceph.conf by section; one that the release does not know is an error."""

    @property
    def debug(self) -> dict[str, str]:
        """Debug levels, by option."""
        return {f"debug_{part}": "0/0" for part in _NOISY} if self.log == "quiet" else {}
