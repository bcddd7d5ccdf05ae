"""A workload: what is done to which objects, the same for every driver and gateway."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from weighbridge.common.encryption import Encryption
from weighbridge.common.quantities import Bytes, Seconds, parse_share, show_bytes
from weighbridge.common.record import Record
from weighbridge.suites.cache_policy import CachePolicy, every
from weighbridge.suites.connections import Connections
from weighbridge.suites.encryption import PLAIN, SeveralEncryptions, unfit_encryption
from weighbridge.suites.factors import FACTORS, each_way
from weighbridge.suites.fault import Fault, unfit_fault
from weighbridge.suites.listed import Listed
from weighbridge.suites.operations import (
    PARTS,
    TRAITS,
    ListingOptions,
    MultipartOptions,
    Operation,
    RangeOptions,
    sent_words,
)
from weighbridge.suites.overload import Overload
from weighbridge.suites.parts import unfit_parts
from weighbridge.suites.signing import UNSIGNED, SeveralSignings, WorkloadSigning
from weighbridge.suites.versions import Versions, unfit_versions

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
"""Lower case letters, digits and hyphens: part of bucket names (S3's rules for buckets)."""

MOST_OBJECTS: Final = 100_000_000
"""Of a workload: at 200 per second, writing them takes six days before the first step."""
MOST_BYTES: Final = 2**50
"""Of a workload's objects: at 100 MB/s, writing them takes four months."""

REPEATED_AFTER_BYTES: Final = 262_139
"""After so many bytes, content repeats itself that is not said to be `compressible`."""

MOST_COMPRESSIBLE: Final = 0.99
"""Share of an object's bytes: what is left shows that it was kept."""

VERIFIED_SHARE: Final = 0.01
"""Default share of reads that are compared with what was written: enough to find a store that
returns other bytes, at no noticeable cost (benchmarks/driver_cost.py).
"""


def excess(count: int, mean_bytes: float) -> str:
    """Why these objects are too many to be written; empty if they are not."""
    if count > MOST_OBJECTS:
        return f"these are {count:,} objects; at most {MOST_OBJECTS:,} are written"
    if count * mean_bytes > MOST_BYTES:
        return (
            f"these are {show_bytes(count * mean_bytes)} of objects; at most "
            f"{show_bytes(MOST_BYTES)} are written"
        )
    return ""


def _verify(value: object) -> object:
    """`1%` as 0.01; yes and no as 1 and 0."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int) and value != 0:
        raise ValueError(f"{value} may be a share or a percentage: write {value}% or 100%")
    return parse_share(value)


def _check_order(smallest_bytes: int, largest_bytes: int) -> None:
    if smallest_bytes > largest_bytes:
        raise ValueError(f"the smallest size {smallest_bytes} is above the largest {largest_bytes}")


class Uniform(Record):
    """Object sizes drawn uniformly from a range, both ends included."""

    uniform: tuple[Bytes, Bytes]

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        _check_order(*self.uniform)
        return self

    @property
    def mean_bytes(self) -> float:
        """Expected size of an object, in bytes."""
        return (self.uniform[0] + self.uniform[1]) / 2

    @property
    def largest_bytes(self) -> int:
        """Size of the largest possible object, in bytes."""
        return self.uniform[1]


class SizeBar(Record):
    """One bar of a histogram: sizes drawn uniformly from one size or a range, with a weight."""

    size: Bytes | tuple[Bytes, Bytes]
    weight: Annotated[float, Field(gt=0)]

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest size of the bar, in bytes."""
        return self.size if isinstance(self.size, tuple) else (self.size, self.size)

    @model_validator(mode="after")
    def _ordered(self) -> SizeBar:
        _check_order(*self.bounds)
        return self


class SizeHistogram(Record):
    """Object sizes drawn from weighted bars."""

    histogram: Annotated[tuple[SizeBar, ...], Field(min_length=1)]

    @property
    def mean_bytes(self) -> float:
        """Expected size of an object, in bytes."""
        total = sum(bar.weight for bar in self.histogram)
        return sum(bar.weight * sum(bar.bounds) / 2 for bar in self.histogram) / total

    @property
    def largest_bytes(self) -> int:
        """Size of the largest possible object, in bytes."""
        return max(bar.bounds[1] for bar in self.histogram)


class Objects(Record):
    """`containers` x `per_container` objects, written before a step that needs them."""

    size: Bytes | Uniform | SizeHistogram
    """Bytes of each object: `64KB`; `{uniform: [4KB, 1MB]}`; or a weighted histogram."""
    containers: Annotated[int, Field(ge=1, le=MOST_OBJECTS)] = 1
    """Buckets or containers that objects are spread over."""
    per_container: Annotated[int, Field(ge=1, le=MOST_OBJECTS)] = 100
    """Objects prepared in each before the first step, if the operations need any."""
    compressible: (
        Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=MOST_COMPRESSIBLE)] | None
    ) = None
    """Share of their bytes that any algorithm compresses to almost nothing, evenly over an object:
    `50%`; the others are random. None: all are random, but repeated after 262,139 bytes, which an
    algorithm with a large window (zstd) finds.
    """

    @property
    def mean_bytes(self) -> float:
        """Expected size of an object, in bytes."""
        return float(self.size) if isinstance(self.size, int) else self.size.mean_bytes

    @property
    def largest_bytes(self) -> int:
        """Size of the largest possible object, in bytes."""
        return self.size if isinstance(self.size, int) else self.size.largest_bytes

    @property
    def size_bounds(self) -> tuple[int, int]:
        """Sizes of the smallest and of the largest possible object, in bytes."""
        if isinstance(self.size, int):
            return self.size, self.size
        if isinstance(self.size, Uniform):
            return self.size.uniform
        bounds = [bar.bounds for bar in self.size.histogram]
        return min(low for low, _ in bounds), max(high for _, high in bounds)

    @property
    def has_fixed_sizes(self) -> bool:
        """Whether no size is drawn from a range."""
        if isinstance(self.size, SizeHistogram):
            return all(low == high for low, high in (bar.bounds for bar in self.size.histogram))
        return self.size_bounds[0] == self.size_bounds[1]

    @property
    def count(self) -> int:
        """How many objects there are."""
        return self.containers * self.per_container

    @model_validator(mode="after")
    def _bounded(self) -> Objects:
        too_much = excess(self.count, self.mean_bytes)
        if too_much:
            raise ValueError(too_much)
        return self


class Zipf(Record):
    """Objects picked by Zipf's law: the k-th most popular with a weight of 1 / k^zipf."""

    zipf: Annotated[float, Field(gt=0, le=5)]


class Workload(Record):
    """Operation mix, objects, access pattern and runtime; each count of `workers` is a step."""

    name: Name
    """Part of bucket names: lower case letters, digits and hyphens, such as `small-read`."""
    objects: Objects
    operations: Annotated[dict[Operation, Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """Weights of the operations; only their proportions matter."""
    pick: Literal["uniform", "sequential"] | Zipf = "uniform"
    """The next object: evenly at random, in turn, or `{zipf: 1.1}`, a few most often."""
    workers: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65536)], ...], Field(min_length=1, max_length=100)
    ]
    """Worker counts, a step for each: `[1, 4, 16]`. A worker has one request outstanding."""
    runtime: Seconds
    """Length of the measured window, in seconds."""
    warmup: Seconds = 5.0
    """Time before the window that is not counted, in seconds."""
    rate_per_s: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """Operations per second of all workers, counted from intended starts; None: a closed loop."""
    overload: Overload | None = None
    """The rate may be beyond capacity: `{within: 1s}`; needs `rate_per_s` and one worker count.

    Each worker is a connection with one request outstanding. With as many workers as the rate times
    the suite's `timeout`, no request waits in the client, as with independent clients. None: a rate
    that was not reached, and failures, make a step invalid.
    """
    fault: Fault | None = None
    """What dies while load runs, and comes back: `{at: 30s, kill: storage-host, back: 90s}`; see
    `Fault`. Such a step shows what the fault costs, and its rate is not compared with others. None:
    nothing dies.
    """
    verify: Annotated[float, BeforeValidator(_verify), Field(ge=0, le=1)] = VERIFIED_SHARE
    """Share of reads, drawn by the seed, of which every byte is compared with what was written:
    `1%`; `yes` is all, `0` none.

    The length and format of responses are always checked. Drivers that are other projects' tools
    compare nothing: a share above the default is refused for them.
    """
    cache: CachePolicy | None = None
    """Which caches are dropped for this workload, such as `none` to compare reads from caches with
    the same reads from disks; None: as the suite says.
    """

    connections: Connections = "keep-alive"
    """How long a worker keeps its connection: `keep-alive`, `per-request` or `{reconnect_every:
    100}`. A request's latency includes making the connection that it needs, and its TLS handshake.
    For users of the engine; other drivers accept only `keep-alive`.
    """
    signing: WorkloadSigning | SeveralSignings = UNSIGNED
    """How S3 requests are signed: `{payload: trailer, checksum: crc64nvme}`; see `Signing`. A list
    makes a workload of each, named after it (`small-write-signed`).
    """
    encryption: Encryption | SeveralEncryptions = PLAIN
    """How S3 objects are encrypted: `sse-c`, by keys of requests; `sse-s3`, by the store's; `none`:
    as the store does by default. A list makes a workload of each (`write-sse-c`).
    """

    range: RangeOptions | None = None
    """For `read-range`, what it reads: `{bytes: 64KiB, at: random}`, or `start`, `sequential`."""
    multipart: MultipartOptions | None = None
    """For `write-multipart`, its parts: `{part: 8MiB, at_once: 4}`, by default one after the other;
    for `read-part`, those in which the objects were uploaded that it reads.
    """
    listing: ListingOptions | None = None
    """Of `list-all` and `list-versions`: `{page: 1000, prefix: object-00}`; None: pages of 1000."""
    listed: Listed | None = None
    """Its objects are only listed: `{deleted: [0%, 25%]}`."""
    delete_many: Annotated[int, Field(ge=1, le=1000)] = 100
    """For `delete-many`, how many objects of a container one request deletes."""

    versions: Versions | None = None
    """How many versions each object has, in buckets that keep them: `3`; None: they keep none."""

    @field_validator("cache", mode="before")
    @classmethod
    def _every(cls, value: object) -> object:
        return every(value)

    @model_validator(mode="after")
    def _has_options(self) -> Workload:
        asked, sizes = set(self.operations), self.objects.size_bounds
        if parts := [one for one in PARTS if one in asked]:
            names = ", ".join(f"{one} is counted beside {TRAITS[one].part_of}" for one in parts)
            raise ValueError(f"operations: {names}: leave it out")
        for operations, key, given in (
            (("read-range",), "range", self.range),
            (("write-multipart", "read-part"), "multipart", self.multipart),
            (("list-all", "list-versions"), "listing", self.listing),
        ):
            users = [one for one in operations if one in asked]
            if given is not None and not users:
                names = " and ".join(operations)
                raise ValueError(f"`{key}` is for {names}, which this workload does not have")
            if given is None and users and key != "listing":
                example = "{bytes: 64KiB, at: random}" if key == "range" else "{part: 8MiB}"
                raise ValueError(f"{users[0]} needs `{key}: {example}`")
        several = self.signing if isinstance(self.signing, tuple) else (self.signing,)
        fixed = sorted(one for one in asked if TRAITS[one].one_signing)
        if fixed and any(one != UNSIGNED for one in several):
            raise ValueError(
                f"signing: {', '.join(fixed)} is signed in a header, with an unsigned payload, and "
                "in no other way: leave `signing` out, or use another workload for it"
            )
        if why := unfit_encryption(self.encryption, self.signing, asked):
            raise ValueError(why)
        if {"read-range", "write-multipart"} & asked and not sizes[0]:
            raise ValueError("read-range and write-multipart need objects of at least 1 byte")
        if why := unfit_parts(asked, sizes, self.multipart):
            raise ValueError(why)
        beside = [one for one in self.operations if TRAITS[one].picks or one == "delete"]
        if "delete-many" in asked and beside:
            raise ValueError(
                f"delete-many deletes the objects that {', '.join(beside)} would need: make two "
                "workloads of them"
            )
        if self.listed is not None:
            self.listed.check(asked, self.objects.per_container, self.listing)
        if why := unfit_versions(self.versions, asked, self.listed, self.listing, self.objects):
            raise ValueError(why)
        known = {"read-if-none-match", "read-if-match"} & asked
        if known and not self.objects.has_fixed_sizes:
            raise ValueError(
                f"{', '.join(sorted(known))}: the MD5 is known only for objects of fixed sizes"
            )
        return self

    @model_validator(mode="after")
    def _sensible(self) -> Workload:
        if self.runtime <= 0:
            raise ValueError("runtime must be above 0s")
        if len(set(self.workers)) != len(self.workers):
            raise ValueError("workers names the same count twice: use repeats")
        if self.overload is not None and (self.rate_per_s is None or len(self.workers) > 1):
            raise ValueError(
                "overload needs `rate_per_s`, and one worker count: the number of connections"
            )
        overload, only_deletes = self.overload is not None, self.only_deletes
        if self.fault is not None and (
            why := unfit_fault(
                self.fault, self.runtime, overload=overload, only_deletes=only_deletes
            )
        ):
            raise ValueError(why)
        return self

    @property
    def signed(self) -> WorkloadSigning:
        """How its requests are signed; of several ways the first."""
        return self.signing[0] if isinstance(self.signing, tuple) else self.signing

    @property
    def encrypted(self) -> Encryption:
        """How its objects are encrypted; of several ways the first."""
        return self.encryption[0] if isinstance(self.encryption, tuple) else self.encryption

    def variants(self) -> tuple[Workload, ...]:
        """A workload for each way to sign and to encrypt that it lists; itself if it lists none."""
        ways = {one.key: getattr(self, one.key) for one in FACTORS}
        if not any(isinstance(one, tuple) for one in ways.values()):
            return (self,)
        return tuple(map(Workload.model_validate, each_way({**self.model_dump(), **ways})))

    @property
    def needs_objects(self) -> bool:
        """Whether objects must exist before a step, as for all but pure writes."""
        return any(TRAITS[one].picks or not TRAITS[one].makes for one in self.operations)

    @property
    def deletes(self) -> bool:
        """Whether objects are deleted in its steps, which must be there again before the next."""
        return any(TRAITS[one].deletes for one in self.operations)

    @property
    def only_deletes(self) -> bool:
        """Whether nothing else is done: its steps end when no objects are left."""
        return all(TRAITS[one].deletes for one in self.operations)

    def request_bytes(self, operation: Operation) -> float:
        """Bytes of an object that a request of the operation is about: their expected mean."""
        mean_bytes = self.objects.mean_bytes
        if operation == "read-range" and self.range is not None:
            return min(mean_bytes, float(self.range.bytes))
        if operation in ("write-part", "read-part") and self.multipart is not None:
            return min(mean_bytes, float(self.multipart.part))
        return mean_bytes

    def sent(self, operation: Operation, api: str) -> str:
        """What the engine sends for an operation over an API: `GET, Range: 64 KiB, any part`."""
        return sent_words(
            operation,
            api,
            part_range=self.range,
            multipart=self.multipart,
            listing=self.listing,
            delete_many=self.delete_many,
        )
