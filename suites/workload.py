"""A workload: what is done to which objects, the same for every driver and gateway."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Annotated, Final, Literal, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from weighbridge.common.endpoint import Encryption
from weighbridge.common.quantities import Bytes, Seconds, parse_seconds, parse_share, show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import ROLES, Role
from weighbridge.suites.factors import (
    FACTORS,
    PLAIN,
    UNSIGNED,
    SeveralEncryptions,
    SeveralSignings,
    WorkloadSigning,
    each_way,
    unfit_encryption,
)
from weighbridge.suites.operations import (
    MOST_PARTS,
    PARTS,
    TRAITS,
    ListingOptions,
    MultipartOptions,
    Operation,
    RangeOptions,
)


class ReconnectEvery(Record):
    """A connection is closed after so many requests, and a new one made for the next."""

    reconnect_every: Annotated[int, Field(ge=2, le=1_000_000)]


Connections = Literal["keep-alive", "per-request"] | ReconnectEvery
"""`keep-alive`: a worker keeps its connection as long as the server does; `per-request`: a
connection for each request; `{reconnect_every: 100}`: one for every 100 requests.
"""


def connection_words(connections: Connections) -> str:
    """How long connections are kept, in words."""
    if isinstance(connections, ReconnectEvery):
        return f"a new one after every {connections.reconnect_every:,} requests of a worker"
    return "kept by each worker" if connections == "keep-alive" else "a new one for every request"


LISTINGS: Final[frozenset[Operation]] = frozenset({"list", "list-all"})
"""What may be asked of objects that are only listed."""
MOST_DELETED: Final = 0.9

Share = Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=MOST_DELETED)]


class Listed(Record):
    """Objects that are only listed: `{deleted: [0%, 25%]}`."""

    deleted: Share | Annotated[tuple[Share, ...], Field(min_length=1)] = 0.0
    """Share of the objects of each container, drawn by the seed, that is deleted before its steps.
    An ascending list makes a workload of each share, all on the same objects, one after the other.
    """
    of: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")] | None = None
    """The workload whose objects these are: of a list the first. None: they are its own."""

    @model_validator(mode="after")
    def _whole_percent(self) -> Listed:
        shares = self.shares
        if any(abs(100 * one - round(100 * one)) > 1e-9 for one in shares):
            raise ValueError("deleted: shares are in whole per cent, such as 25%")
        if list(shares) != sorted(set(shares)):
            raise ValueError("deleted: deleted objects do not come back: list ascending shares")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """All shares that are deleted, ascending."""
        return self.deleted if isinstance(self.deleted, tuple) else (self.deleted,)

    def gone(self, per_container: int) -> int:
        """How many objects of each container are deleted before its steps."""
        return round(self.shares[0] * per_container)

    def check(
        self,
        operations: Iterable[Operation],
        per_container: int,
        listing: ListingOptions | None,
    ) -> None:
        if others := sorted(set(operations) - LISTINGS):
            raise ValueError(
                f"listed: {', '.join(others)} would miss objects: only {' and '.join(LISTINGS)} "
                "can be used on objects that are only listed"
            )
        if per_container - round(self.shares[-1] * per_container) < 1:
            raise ValueError("listed: no object of a container would be left")
        counts = [round(share * per_container) for share in self.shares]
        if len(set(counts)) < len(counts) or any(
            share and not count for share, count in zip(self.shares, counts, strict=True)
        ):
            raise ValueError(
                f"listed: shares of {per_container} objects are {', '.join(map(str, counts))}: "
                "each must delete more than the previous one"
            )
        if self.shares[-1] and listing is not None and (listing.prefix or listing.delimiter):
            raise ValueError(
                "listed: which names of a prefix are left after deletes is not counted: leave "
                "`prefix` and `delimiter` out, or `deleted`"
            )


# Objects in parts: those that `write-multipart` writes, and those that `read-part` reads.


_WHOLE_ONLY: Final[frozenset[Operation]] = frozenset(
    ("copy", "read-if-match", "read-if-none-match", "update-metadata")
)
"""The ETag of an object in parts is not the MD5 of it, and a copy, such as one onto itself, may
have other parts.
"""


def unfit_parts(
    asked: AbstractSet[Operation], sizes: tuple[int, int], multipart: MultipartOptions | None
) -> str:
    """Why objects of these sizes cannot be in such parts; `asked`: the operations."""
    if multipart is None:
        return ""
    if -(-sizes[1] // multipart.part) > MOST_PARTS:
        return (
            f"an object of {show_bytes(sizes[1])} would have more than {MOST_PARTS} parts, "
            "which Swift's manifests cannot have: use larger parts"
        )
    others = sorted(one for one in asked - {"write-multipart"} if TRAITS[one].makes)
    if "write-multipart" in asked and others:
        return (
            f"write-multipart beside {', '.join(others)}: how an object is deleted depends on "
            "how it was written; make two workloads of them"
        )
    if "read-part" not in asked:
        return ""
    if multipart.at_once > 1 and "write-multipart" not in asked:
        return "at_once is for write-multipart, which this workload does not have: leave it out"
    if sizes[0] <= multipart.part:
        return (
            f"read-part: an object of {show_bytes(sizes[0])} is one part, so a store that "
            "ignores the number would send the same: use larger objects, or smaller parts"
        )
    if whole := sorted(_WHOLE_ONLY & asked):
        return (
            f"read-part beside {', '.join(whole)}: those need objects that were uploaded at once; "
            "make two workloads of them"
        )
    return ""


# Versions of objects: how many a workload's have, and what can be asked of them.


VERSIONS: Final = "versions"
"""The key of a workload, and what stores are said to lack that keep none."""
MOST_VERSIONS: Final = 100
LEAST_BYTES: Final = 16
"""Versions of smaller objects need not differ."""
LEAST_COMPRESSIBLE_BYTES: Final = 2048
"""The same of objects of which a share is zeros, in blocks of 1 KiB."""
MOST_READ: Final = 100_000
"""Versions that are read one by one: their IDs are listed before each step."""

Versions = Annotated[int, Field(strict=True, ge=1, le=MOST_VERSIONS)]

_NEED: Final[frozenset[Operation]] = frozenset({"read-version", "list-versions"})
_NONE: Final[frozenset[Operation]] = frozenset({"write-multipart", "read-part"})


FaultWay = Literal["kill", "silence", "unplug", "fail"]
"""`kill`: processes end at once (SIGKILL), and their kernel closes their sockets and refuses new
connections. `silence`: a host's power is cut; nobody hears of it but by waiting. `unplug`: its link
is down, and its daemons go on. `fail`: all I/O to a disk is an error.
"""
BEFORE_S: Final = 5.0
"""The least time before the fault, from which the rate before it is taken."""
AFTER_S: Final = 5.0
"""The least time from the last change to the end of the window."""
DISK: Final[Role] = "storage-disk"
"""The only role that `fail` takes, and no other way takes it."""

What = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?$")]


class Fault(Record):
    """A daemon, a host, a link or a disk fails while load runs, and may come back.

    Times count from the start of the window. Exactly one of `kill`, `silence`, `unplug` and `fail`
    says what: a role, which each layout resolves, or a host, or of `kill` a service of a host
    (`store-3/osd.2`), or of `fail` a disk (`store-3/wb0`).
    """

    at: Annotated[Seconds, Field(ge=BEFORE_S)]
    """When, from the start of the window: `30s`."""
    kill: What | None = None
    """What dies at once (SIGKILL): a role such as `storage-host`, a host, or `store-3/osd.2`."""
    silence: What | None = None
    """The host whose power is cut: its peers notice only by waiting."""
    unplug: What | None = None
    """The host whose link goes down, while its daemons go on."""
    fail: What | None = None
    """The disk of which all I/O becomes an error: `storage-disk`, or `store-3/wb0`."""
    back: Seconds | None = None
    """None: not within the window; it is started again before the next step."""

    @model_validator(mode="after")
    def _sensible(self) -> Fault:
        if sum(one is not None for one in self._ways.values()) != 1:
            raise ValueError(
                f"set one of {', '.join(self._ways)}: {', '.join(ROLES)}, a host, or for kill also "
                "HOST/SERVICE, for fail HOST/DISK"
            )
        disk = self.what == DISK or (self.way == "fail" and "/" in self.what)
        if disk != (self.way == "fail"):
            raise ValueError(
                f"{self.way}: {self.what}: `fail` is for disks, and disks only fail: name {DISK}, "
                "or a disk of a host, such as store-3/wb0"
            )
        if self.way in {"silence", "unplug"} and (
            "/" in self.what or self.what.endswith("-daemon")
        ):
            raise ValueError(
                f"{self.way}: {self.what} is a daemon, and its host would answer for it: name "
                "storage-host or a host, or use `kill`"
            )
        if self.back is not None and self.back < self.at + 1:
            raise ValueError(f"back: {self.back:g}s is not after the fault at {self.at:g}s")
        return self

    @property
    def _ways(self) -> dict[FaultWay, str | None]:
        return {way: getattr(self, way) for way in get_args(FaultWay)}

    @property
    def way(self) -> FaultWay:
        return next(way for way, what in self._ways.items() if what is not None)

    @property
    def what(self) -> str:
        return next(what for what in self._ways.values() if what is not None)

    @property
    def words(self) -> str:
        """`kill storage-host at 30 s, back at 90 s`."""
        back = "not back" if self.back is None else f"back at {self.back:g} s"
        return f"{self.way} {self.what} at {self.at:g} s, {back}"

    @property
    def last_s(self) -> float:
        """When it changes something for the last time, in seconds."""
        return self.at if self.back is None else self.back


class Overload(Record):
    """Requests come at a rate that may be beyond capacity: those that fail, are late or could not
    be sent are part of the result and make no step invalid.
    """

    within: Annotated[Seconds, Field(gt=0)] | None = None
    """Goodput counts requests that succeeded within this time from their intended start; None: all
    that succeeded.
    """


class Every(Record):
    """Caches dropped periodically while a step runs; the 2014 study did so every minute."""

    every: Annotated[Seconds, Field(ge=1)]
    kernel: bool = False
    """Whether only kernels drop theirs, as in that study, and daemons keep what they cache."""


def every(value: object) -> object:
    """Every's fields for `kernel every 60s`; all else unchanged. Raises ValueError about times."""
    if isinstance(value, str) and value.startswith(("every ", "kernel every ")):
        kernel, _, time = value.partition("every ")
        return {"every": parse_seconds(time.strip()), "kernel": bool(kernel)}
    return value


CachePolicy = Literal["none", "before-step", "kernel"] | Every
"""Which caches are dropped, and when: never; before steps those of daemons and kernels, or
`kernel`: only those of kernels; or Every so often while a step runs.
"""


def kernel_alone(cache: CachePolicy) -> bool:
    """Whether daemons keep what they cache while kernels drop theirs."""
    return cache.kernel if isinstance(cache, Every) else cache == "kernel"


def cache_words(cache: CachePolicy) -> str:
    """The policy in words, such as `dropped before every step`."""
    if isinstance(cache, Every):
        whose = ", only of kernels" if cache.kernel else ""
        return f"dropped every {cache.every:g} s while a step runs{whose}"
    return {
        "none": "never dropped",
        "before-step": "dropped before every step, of kernels and daemons: reads are cold",
        "kernel": "dropped before every step, only of kernels",
    }[cache]


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
        return (self.uniform[0] + self.uniform[1]) / 2

    @property
    def largest_bytes(self) -> int:
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
        total = sum(bar.weight for bar in self.histogram)
        return sum(bar.weight * sum(bar.bounds) / 2 for bar in self.histogram) / total

    @property
    def largest_bytes(self) -> int:
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
        return float(self.size) if isinstance(self.size, int) else self.size.mean_bytes

    @property
    def largest_bytes(self) -> int:
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
    """Least time before the window, which is not counted, in seconds; see the suite's `settle`."""
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
        if why := self._unfit_versions(asked):
            raise ValueError(why)
        known = {"read-if-none-match", "read-if-match"} & asked
        if known and not self.objects.has_fixed_sizes:
            raise ValueError(
                f"{', '.join(sorted(known))}: the MD5 is known only for objects of fixed sizes"
            )
        return self

    def _unfit_versions(self, asked: AbstractSet[Operation]) -> str:
        """Why a workload cannot be; empty if it can."""
        if self.versions is None:
            if missing := sorted(_NEED & asked):
                return f"{', '.join(missing)} needs `versions: 3`, the number that each object has"
            return ""
        if self.listed is not None:
            return "versions: objects that are only listed have none: leave `listed` out"
        if parts := sorted(_NONE & asked):
            return (
                "versions: uploads in parts leave segments that are not versions: "
                f"leave {', '.join(parts)} out"
            )
        least = LEAST_BYTES if self.objects.compressible is None else LEAST_COMPRESSIBLE_BYTES
        if self.objects.size_bounds[0] < least:
            return f"versions: objects need at least {least} bytes, so that their versions differ"
        if "list-versions" in asked and self.listing is not None and self.listing.delimiter:
            return "listing: list-versions has no `delimiter`"
        if "read-version" in asked and self.objects.count * self.versions > MOST_READ:
            return (
                f"read-version: these are {self.objects.count * self.versions:,} versions, whose "
                f"IDs are listed before each step: at most {MOST_READ:,}"
            )
        return ""

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
        if self.fault is not None and self.fault.last_s + AFTER_S > self.runtime:
            raise ValueError(
                f"fault: {self.fault.words}, but the window ends at {self.runtime:g} s: it must "
                f"last at least {AFTER_S:g} s longer to show the effect"
            )
        if self.fault is not None and self.overload is not None:
            raise ValueError(
                "fault: cannot be combined with `overload`: failures would have two causes"
            )
        if self.fault is not None and self.only_deletes:
            raise ValueError("fault: a workload that only deletes ends when no objects are left")
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
        """What the engine sends for an operation over an API: `GET, Range: 64 KiB, any part`; empty
        for other APIs.
        """
        at = {
            "random": "any part",
            "start": "the first part",
            "sequential": "one part after another",
        }
        pages = self.listing or ListingOptions()
        page = [f"{'max-keys' if api == 's3' else 'limit'}={pages.page}"]
        page += [f"prefix={pages.prefix}"] if pages.prefix else []
        page += [f"delimiter={pages.delimiter}"] if pages.delimiter else []
        part = self.range
        return (
            TRAITS[operation]
            .sent.get(api, "")
            .format(
                range=f"{show_bytes(part.bytes)}, {at[part.at]}" if part else "",
                part=show_bytes(self.multipart.part) if self.multipart else "",
                order=self.multipart.order if self.multipart else "",
                page="&".join(page),
                many=f"{self.delete_many} objects",
            )
        )
