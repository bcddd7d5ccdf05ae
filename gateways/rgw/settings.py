"""Placement, settings and releases of the `rgw` gateway."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gateways.gateway import Image
from ground.quantities import Bytes, Seconds
from ground.record import Record

Count = Annotated[int, Field(ge=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
PgNum = Annotated[int, Field(ge=1, le=32768)]
Section = Literal["global", "mon", "mgr", "osd", "client"]

LEAST_OSD_MEMORY_BYTES = 896 * 2**20
"""Below this, `osd_memory_target` is refused by every release from 14 on."""

_NOISY = ("ms", "rgw", "objecter", "rados", "osd", "bluestore", "bluefs", "bdev", "rocksdb", "filestore", "journal", "monc", "auth")


class Place(Record):
    """Which daemon sits on which host. The mgr sits with the mon."""

    mon: str
    osd: Annotated[tuple[str, ...], Field(min_length=1)]
    radosgw: Annotated[tuple[str, ...], Field(min_length=1, max_length=1)]

    @model_validator(mode="after")
    def _once(self) -> Place:
        if len(set(self.osd)) != len(self.osd):
            raise ValueError("osd names the same host twice: every disk of a host has an OSD already")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once."""
        return tuple(dict.fromkeys((self.mon, *self.osd, *self.radosgw)))


class Gc(Record):
    """RGW's garbage collection, which deletes the data of deleted objects later."""

    enabled: bool = True
    min_wait: Seconds = 7200.0
    """How long after its deletion an object's data stays."""
    processor_period: Seconds = 3600.0
    max_concurrent_io: Count = 10


class RadosgwSettings(Record):
    """The radosgw daemon."""

    frontend: Literal["beast", "civetweb"] = "beast"
    port: Port = 8000
    tcp_nodelay: bool = True
    """False is Ceph's own default: answers of a few KiB then wait about 40 ms for the client's delayed acknowledgement."""
    threads: Count = 512
    """`rgw_thread_pool_size`; with civetweb also its `num_threads`, one a connection."""
    max_concurrent_requests: Count = 1024
    index_shards: Count = 11
    """Shards of the index of each bucket."""
    dynamic_resharding: bool = False
    """True lets an index be resharded in the middle of a step, which blocks writes."""
    lifecycle: bool = False
    ops_log: bool = False
    gc: Gc = Gc()


class OsdSettings(Record):
    """The OSDs: one a disk."""

    objectstore: Literal["bluestore"] = "bluestore"
    disks: Count | None = None
    """Disks used on each OSD host, from the first on; None: all it has."""
    memory_target: Annotated[Bytes, Field(ge=LEAST_OSD_MEMORY_BYTES)] = LEAST_OSD_MEMORY_BYTES
    """What an OSD sizes its caches to stay within; must fit the host's memory limit together with what else sits there."""
    scrub: bool = False


class PoolSettings(Record):
    """RADOS pools. Their placement groups are fixed: the autoscaler and the balancer are off."""

    replicas: Count = 3
    min_size: Count = 2
    """Copies that must be there for a pool to serve at all."""
    failure_domain: Literal["host", "osd"] = "host"
    data_pg_num: PgNum = 32
    index_pg_num: PgNum = 8
    other_pg_num: PgNum = 8
    """Of each of RGW's other pools."""

    @model_validator(mode="after")
    def _sensible(self) -> PoolSettings:
        if self.min_size > self.replicas:
            raise ValueError(f"min_size {self.min_size} is above replicas {self.replicas}")
        for name in ("data_pg_num", "index_pg_num", "other_pg_num"):
            count: int = getattr(self, name)
            if count & (count - 1):
                raise ValueError(f"{name} {count} is not a power of two")
        return self


class Settings(Record):
    """All that decides results, each with its default in sight."""

    radosgw: RadosgwSettings = RadosgwSettings()
    osd: OsdSettings = OsdSettings()
    pools: PoolSettings = PoolSettings()
    log: Literal["quiet", "default"] = "quiet"
    """`quiet`: debug levels 0/0, so that neither gateway writes a line for a request; `default`: Ceph's own."""
    options: dict[Section, dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], str | int | float | bool]] = Field(
        default_factory=dict
    )
    """More options of ceph.conf by section; one that the running daemon does not know is an error."""

    @property
    def debug(self) -> dict[str, str]:
        """Debug levels, by option."""
        return {f"debug_{part}": "0/0" for part in _NOISY} if self.log == "quiet" else {}


class Release(Record):
    """What differs from release to release of Ceph."""

    image: Image
    key_type: Literal[1, 2]
    """Kind of cephx key: 1 is AES-128, 2 (wanted from 20 on) is AES-256."""
    frontends: tuple[Literal["beast", "civetweb"], ...]
    mute: tuple[str, ...] = ()
    """Health checks that say nothing about a store in this release."""


_PACKAGES = ("ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph-common", "python3-rados", "iproute2", "procps", "tini", "python3")

RELEASES: dict[str, Release] = {
    "ceph-16": Release(
        image=Image(name="ceph-16", suite="bookworm", packages=_PACKAGES),
        key_type=1,
        frontends=("beast", "civetweb"),
    ),
}
"""Releases of Ceph by the name layouts use."""
