from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from weighbridge.common.document import WRITTEN, did_you_mean
from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.common.quantities import Bytes, Seconds, parse_bytes, parse_share, show_bytes
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.common.structure import LAYERS, Layer
from weighbridge.suites.factors import (
    ENCRYPTION_WORDS,
    LONGEST_NAME,
    PLAIN,
    SDK_DEFAULT,
    SIGNING,
    UNSIGNED,
    Factor,
    signing_label,
    signing_words,
)
from weighbridge.suites.operations import PLAIN_OPERATIONS, TRAITS
from weighbridge.suites.workload import (
    MOST_BYTES,
    CachePolicy,
    Every,
    Name,
    Objects,
    SizeHistogram,
    Uniform,
    Workload,
    cache_words,
    connection_words,
    every,
    excess,
)

MAX_FILL: Final = 0.85
"""Fuller OSDs make Ceph warn (mon_osd_nearfull_ratio) and soon refuse moved data (backfillfull)."""


def _fill(value: object) -> object:
    found = parse_share(value)
    return parse_bytes(found) if isinstance(found, str) else found


class Age(Record):
    """Objects written before anything is measured, which stay until the deployment is torn down.

    The seed alone decides which objects there are, their sizes and which are deleted: two stores
    with the same `fill` in bytes, or the same disks, get the same objects.
    """

    fill: Annotated[float | int, BeforeValidator(_fill)]
    """`5%` of the disks' capacity over replicas; or bytes, such as `2GB`, if that is unknown."""
    size: Bytes | Uniform | SizeHistogram = 64_000
    """Bytes of each object, as in a workload."""
    containers: Annotated[int, Field(ge=1, le=100_000)] = 4
    """Buckets or containers that they are spread over."""
    churn: Annotated[int, Field(ge=0, le=1000)] = 3
    """Rounds: each deletes a share of the objects and writes as many new ones."""
    share: Annotated[float, BeforeValidator(parse_share), Field(gt=0, lt=1)] = 0.2
    """Share of the objects that a round replaces: `20%`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """None: the suite's."""

    @model_validator(mode="after")
    def _fits(self) -> Age:
        if self.objects(1).mean_bytes <= 0:
            raise ValueError("objects of size 0 fill nothing")
        if isinstance(self.fill, int):
            if self.fill < 1:
                raise ValueError(f"fill {self.fill} must be above 0")
            if self.fill > MOST_BYTES:
                raise ValueError(f"fill: at most {show_bytes(MOST_BYTES)} of objects are written")
            too_much = self.excess(self.count(None))
            if too_much:
                raise ValueError(f"fill: {too_much}")
        elif not 0 < self.fill * self.swell <= MAX_FILL:
            # Deleted objects are freed later (RGW's garbage collection, Swift's tombstones), so
            # everything ever written must fit.
            raise ValueError(
                f"fill: {self.fill:.0%} and {self.churn} rounds of {self.share:.0%} of it come to "
                f"{self.fill * self.swell:.0%} of the disks, which must be above 0 and at most "
                f"{MAX_FILL:.0%}"
            )
        return self

    @property
    def swell(self) -> float:
        """Everything ever written, as a multiple of what exists at one time."""
        return 1 + self.churn * self.share

    def count(self, room_bytes: float | None) -> int:
        """How many objects exist at one time. Raises ValueError if needed room is unknown."""
        if isinstance(self.fill, int):
            wanted_bytes: float = self.fill
        elif room_bytes is None:
            raise ValueError("a share of disks of unknown size")
        else:
            wanted_bytes = self.fill * room_bytes
        return max(1, round(wanted_bytes / self.objects(1).mean_bytes))

    def excess(self, count: int) -> str:
        """Why `count` objects with their churn are too many to be written; empty if not."""
        ever = count + self.churn * self.turnover(count)
        return excess(self.containers * -(-ever // self.containers), self.objects(1).mean_bytes)

    def turnover(self, count: int) -> int:
        """How many of `count` objects each round replaces."""
        return round(self.share * count)

    def objects(self, count: int) -> Objects:
        """Containers with room for `count` objects."""
        return Objects(
            size=self.size, containers=self.containers, per_container=-(-count // self.containers)
        )

    def workload(self, count: int) -> Workload:
        """The workload that draws its objects, `count` at one time, each with its own number."""
        ever = count + self.churn * self.turnover(count)
        return Workload(
            name="age",
            objects=self.objects(ever),
            operations={"write": 1},
            workers=(1,),
            runtime=1.0,
        )


LARGEST_BYTES: Final = 64 * 2**20


class Durability(Record):
    """A deployment of its own for each layout: all hosts but the clients lose power under load.

    The load runs once and gives all cuts. Rates of such a deployment are not measured: its disks
    are files of a program that remembers every write.
    """

    cuts: Annotated[int, Field(ge=1, le=1000)] = 20
    """Moments of one load at which power is cut. The more, the rarer a loss they find."""
    sizes: Annotated[tuple[Bytes, ...], Field(min_length=1, max_length=8)] = (4096, 2**20)
    """Bytes of objects, in turn."""
    api: tuple[ObjectApi, ...] | None = None
    """APIs that objects are written over, at once; None: all that a layout has."""
    multipart: bool = True
    """Also write objects in parts: of 5 MiB over S3, as static large objects over Swift."""
    workers: Annotated[int, Field(ge=1, le=256)] = 8
    """Workers of the load."""
    load: Annotated[Seconds, Field(ge=1, le=3600)] = 30.0
    """How long the load runs, over which the cuts are spread."""
    overwrites: Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=0.5)] = 0.1
    """Share of operations that overwrite an object."""
    deletes: Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=0.5)] = 0.1
    """Share of operations that delete an object."""
    keep: Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=1)] = 0.5
    """Chance that a block is kept that the store had not flushed: disks write in any order. Every
    second cut keeps none.
    """
    control: bool = True
    """Also run the store on disks that ignore flushes, which must lose objects. Otherwise cuts
    without a loss prove nothing.
    """
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """None: the suite's."""

    @field_validator("sizes")
    @classmethod
    def _writable(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(sizes)) < len(sizes):
            raise ValueError("a size is named twice")
        if not all(64 <= size <= LARGEST_BYTES for size in sizes):
            raise ValueError("objects need 64 B to 64 MiB: each says which version it is")
        return sizes


def variants(workload: Workload) -> tuple[Workload, ...]:
    """A workload for each share of deletes. Raises ValueError if a name gets too long."""
    listed = workload.listed
    if listed is None or not isinstance(listed.deleted, tuple):
        return (workload,)
    found = []
    for number, share in enumerate(listed.shares):
        name = f"{workload.name}-{100 * share:.0f}-deleted" if number else workload.name
        if len(name) > LONGEST_NAME:
            raise ValueError(
                f"listed: {name} is longer than {LONGEST_NAME} characters; choose a shorter name "
                "for the workload"
            )
        of = workload.name if number else listed.of
        own = listed.model_copy(update={"deleted": share, "of": of})
        found.append(workload.model_copy(update={"name": name, "listed": own}))
    return tuple(found)


def continues(workload: Workload) -> bool:
    """Whether it deletes objects of another workload, and so cannot be prepared before its end."""
    return workload.listed is not None and workload.listed.of is not None


def whole(workload: Workload) -> Workload:
    """The workload whose buckets have its objects, before anything was deleted."""
    listed = workload.listed
    if listed is None:
        return workload
    before = listed.model_copy(update={"deleted": 0.0, "of": None})
    return workload.model_copy(update={"name": listed.of or workload.name, "listed": before})


def remaining(workload: Workload) -> Workload:
    """The same with as many objects as its steps find. Which ones, only `deleted_indexes` knows."""
    listed, objects = workload.listed, workload.objects
    if listed is None:
        return workload
    left = objects.per_container - listed.gone(objects.per_container)
    return whole(workload).model_copy(
        update={"objects": objects.model_copy(update={"per_container": left})}
    )


def deleted_indexes(workload: Workload, seed: int) -> tuple[int, ...]:
    """Indexes deleted from each container, drawn at random: those of a smaller share first."""
    listed, count = workload.listed, workload.objects.per_container
    if listed is None or not listed.gone(count):
        return ()
    drawn = sorted(
        range(count), key=lambda index: hashlib.sha256(f"deleted {seed} {index}".encode()).digest()
    )
    return tuple(drawn[: listed.gone(count)])


def check_order(workloads: Sequence[Workload]) -> None:
    """Raise ValueError unless those that use another's objects follow it, fewer deletes first."""
    last: dict[str, Workload] = {}
    for one in workloads:
        if one.listed is None:
            continue
        name, of = f"{one.name}: listed", one.listed.of
        if of is not None:
            earlier = last.get(of)
            if earlier is None or earlier.listed is None:
                raise ValueError(f"{name}: no workload {of!r} before it that is only listed")
            if earlier.objects != one.objects:
                raise ValueError(f"{name}: the objects of {of} are others")
            if one.listed.shares[0] <= earlier.listed.shares[0]:
                raise ValueError(f"{name}: it deletes no more than a workload before it")
        last[of or one.name] = one


Api = Literal[ObjectApi, "rados", "object-server", "rbd", "cephfs"]
"""How requests are made: an API of gateways, of what is below them, or beside them."""

DriverName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
"""The name of an installed load generator (entry point group `weighbridge.drivers`)."""
DRIVER_NAMES: Registry[object] = Registry("weighbridge.drivers", "driver")
"""Used for names only: no driver is imported here."""
DEFAULT_DRIVER: DriverName = "locust"

HOST_LAYERS: tuple[Layer, ...] = ("disk", "network", "osd")


class Bounds(Record):
    """When a step is valid, and by how much two must differ for it to matter."""

    error_share: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Share of operations that may fail (0.1 %: design rule 20)."""
    throughput_ratio: Annotated[float, Field(ge=1)] = 1.05
    """Closer throughputs do not differ in practice, however certain it is (design rule 16)."""
    p90_ratio: Annotated[float, Field(ge=1)] = 1.10
    """The same for 90th percentiles."""
    p99_ratio: Annotated[float, Field(ge=1)] = 1.10
    """The same for 99th percentiles."""
    max_ratio: Annotated[float, Field(ge=1)] = 1.25
    """The same for maxima: one request decides them."""
    first_byte_ratio: Annotated[float, Field(ge=1)] = 1.10
    """The same for times to first byte."""


class Further(Record):
    """Blocks after those of `repeats`: the run ends once every cell is clear."""

    blocks: Annotated[int, Field(ge=1, le=100)]
    """At most so many."""
    within: Annotated[Seconds, Field(gt=0)]
    """No block starts that would end later than this after the run's start, report included."""


class RadosBenchOptions(Record):
    """How `rados bench` runs: concurrent instances, each with a pool, share a step's workers."""

    instances: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes of `rados bench` at once, each with a pool of its own, or all in one that a layout
    names.
    """
    pg_num: Annotated[int, Field(ge=1, le=32768)] = 32
    """Placement groups of all pools that are made for it together."""

    @model_validator(mode="after")
    def _powers(self) -> RadosBenchOptions:
        if self.pg_num & (self.pg_num - 1):
            raise ValueError(f"pg_num {self.pg_num} is not a power of two")
        return self


ENGINE_ONLY: Final = (
    ("listed", None, "SDK users do not know what was deleted"),
    ("connections", "keep-alive", "SDKs manage their own"),
    ("compressible", None, "only the engine makes such content"),
    ("encryption", PLAIN, "only the engine asks for it"),
    ("fault", None, "only the engine measures how long its workers wait"),
    ("versions", None, "only the engine knows them"),
)
"""Keys of workloads and their usual values; and why SDK users can have no others."""


class Suite(Record):
    """What is replayed against every gateway of a run."""

    name: Name
    """What runs and reports call it: lower case letters, digits and hyphens."""
    about: str
    """One sentence, shown in reports."""
    api: Annotated[tuple[Api, ...], Field(min_length=1)] = ("swift",)
    """`swift`, `s3`, or both: each layout is measured over each that is named."""
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1, max_length=100)]
    layouts: tuple[str, ...] = ("rgw-beast", "swift")
    """Names of the layouts compared if the command names none."""
    driver: str = DEFAULT_DRIVER
    """The load generator for gateways: the name of a driver, or two with a comma between, which
    replay each step one after the other.
    """
    users: Literal["engine", "sdk"] = "engine"
    """What makes requests: the native engine, or boto3 / python-swiftclient."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Locust worker processes per client host."""
    timeout: Annotated[Seconds, Field(ge=1, le=3600)] = 60.0
    """After how long a request is given up, in seconds; histograms resolve latencies up to 1 h."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each step is measured, each time on a fresh deployment; a claim needs 5."""
    cache: CachePolicy = "before-step"
    """Which caches are dropped, on every host and at every level: `before-step`, `kernel`
    (only the kernels'), `every 60s`, or `none`. Steps that only write or delete keep them, unless
    their workload has a `cache` of its own: stores would measure how they fill again.
    """
    settle: Annotated[Seconds, Field(ge=0, le=3600)] = 10.0
    """How long a warm-up of Locust's may take beyond the workload's `warmup`, until the disks'
    reads per operation no longer fall. It takes 1.5 s at least, unless `warmup` is 0. 0: `warmup`.
    """
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014
    """Requests are drawn from it: the same for every gateway, repeat by repeat."""
    order: Literal["ascending", "descending", "shuffle"] = "ascending"
    """The order of a workload's worker counts; `shuffle`: one per block for all its layouts, also
    of workloads, of which those that an A/A control measures lead.
    """
    order_seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of the order of layouts and of what is shuffled; None: drawn per run and recorded."""
    cleanup: Literal["after-step", "with-deployment"] = "after-step"
    """When written objects are deleted: after the step or workload that wrote them, or with the
    deployment at the end of a visit. Then all workloads of a visit are prepared before its first
    step.
    """
    control: bool | tuple[Name, ...] = False
    """Whether the first layout is measured twice per block, as two layouts (an A/A control): any
    difference between them is noise. Names of workloads: for these and all before them, since
    what comes before a step changes it; name the first ones to save time.
    """
    further: Further | None = None
    """Further blocks after `repeats` while a difference is not clear; None: none."""
    bounds: Bounds = Bounds()
    layers: tuple[Layer, ...] = ()
    """Layers below and beside the gateways to measure in the same deployments, where present."""
    rados: RadosBenchOptions = RadosBenchOptions()
    age: Age | None = None
    """How each store is filled and churned before it is measured; None: stores are fresh."""
    durability: Durability | None = None
    """Power cuts of each layout after all steps, on a deployment of its own; None: none."""

    @property
    def drivers(self) -> tuple[DriverName, ...]:
        return _named(self.driver)

    @property
    def sizes_bytes(self) -> tuple[int, ...]:
        """Sorted distinct sizes of objects that are read or written; means of drawn sizes."""
        found = {
            round(one.objects.mean_bytes)
            for one in self.workloads
            if any(TRAITS[name].moves_bodies for name in one.operations)
        }
        return tuple(sorted(found))

    def cache_of(self, workload: Workload) -> CachePolicy:
        """Which caches are dropped for the steps of a workload."""
        if workload.cache is not None:
            return workload.cache
        reads = not all(TRAITS[one].makes or TRAITS[one].deletes for one in workload.operations)
        return self.cache if reads or isinstance(self.cache, Every) else "none"

    def settle_of(self, workload: Workload) -> float:
        """How long its warm-up may wait; not where that uses up objects, or a backlog grows."""
        waits = workload.warmup and not workload.deletes and workload.overload is None
        return self.settle if waits else 0.0

    @property
    def cache_words(self) -> str:
        """Which caches are dropped, and when, by workload where they differ."""
        return _by_workload({one.name: cache_words(self.cache_of(one)) for one in self.workloads})

    @property
    def connection_words(self) -> str:
        """How long workers keep their connections, by workload where they differ."""
        return _by_workload({one.name: connection_words(one.connections) for one in self.workloads})

    def signing_label(self, workload: Workload) -> str:
        """A short name of how a workload's requests are signed."""
        if self.users == "sdk" and workload.signed == UNSIGNED:
            return "sdk-without-checksums"
        return signing_label(workload.signed)

    @property
    def signing_words(self) -> str:
        """How S3 requests are signed, by workload where they differ; empty without S3."""
        if "s3" not in self.api:
            return ""
        return _by_workload(
            {one.name: signing_words(one.signed, self.users) for one in self.workloads}
        )

    @property
    def encryption_words(self) -> str:
        """How S3 objects are encrypted, by workload where they differ; empty if none are."""
        if all(one.encrypted == PLAIN for one in self.workloads):
            return ""
        return _by_workload({one.name: ENCRYPTION_WORDS[one.encrypted] for one in self.workloads})

    def factor_label(self, factor: Factor, workload: Workload) -> str:
        """A short name of a workload's way of a factor."""
        if factor == SIGNING:
            return self.signing_label(workload)
        return factor.label(getattr(workload, factor.key))

    def changed(
        self,
        *,
        repeats: int | None = None,
        driver: str | None = None,
        layers: Sequence[str] | None = None,
    ) -> Suite:
        """The suite with a command line's changes; None keeps. Raises UsageError."""
        wanted = {"repeats": repeats, "driver": driver, "layers": layers}
        given = {name: value for name, value in wanted.items() if value is not None}
        unknown = [name for name in layers or () if name not in LAYERS]
        if unknown:
            hints = ", ".join(f"no layer {name!r}{did_you_mean(name, LAYERS)}" for name in unknown)
            raise UsageError(hints, advice=f"Layers are {', '.join(LAYERS)}.")
        if why := _unknown_drivers(driver or DEFAULT_DRIVER):
            raise UsageError(why, advice=f"Drivers are {', '.join(DRIVER_NAMES)}.")
        return Suite.model_validate({**self.model_dump(), **given}) if given else self

    @field_validator("cache", mode="before")
    @classmethod
    def _every(cls, value: object) -> object:
        return every(value)

    @field_validator("workloads")
    @classmethod
    def _each_way(cls, value: tuple[Workload, ...]) -> tuple[Workload, ...]:
        return tuple(
            one for workload in value for part in workload.variants() for one in variants(part)
        )

    @field_validator("driver")
    @classmethod
    def _installed(cls, value: str, info: ValidationInfo) -> str:
        # To read a run, its driver need not be installed.
        if info.context == WRITTEN and (why := _unknown_drivers(value)):
            raise ValueError(why)
        return value

    @field_validator("layouts", "api", "layers")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("the same name twice")
        return value

    @model_validator(mode="after")
    def _distinct(self) -> Suite:
        names = [workload.name for workload in self.workloads]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two workloads are named {', '.join(twice)}")
        if isinstance(self.control, tuple):
            if not self.control:
                raise ValueError("control: no workload; set false or leave it out")
            unknown = [name for name in self.control if name not in names]
            if unknown:
                raise ValueError(f"control: no workload {unknown[0]!r}")
        check_order(self.workloads)
        engine = self.users == "engine"
        own = [
            one.name
            for one in self.workloads
            if one.signed != UNSIGNED and (one.signed == SDK_DEFAULT) == engine
        ]
        if own:
            why = f"{SDK_DEFAULT} is for `users: sdk`"
            if not engine:
                why = f"SDKs sign in their own way; set {SDK_DEFAULT}, or set `users: engine`"
            raise ValueError(f"signing of {', '.join(own)}: {why}")
        only_engine = sorted(
            {name for one in self.workloads for name in one.operations} - PLAIN_OPERATIONS
        )
        if only_engine and not engine:
            what = f"SDK users do not send {', '.join(only_engine)}"
            raise ValueError(f"{what}: set `users: engine`, or leave them out")
        for key, usual, why in ENGINE_ONLY:
            named = [
                one.name
                for one in self.workloads
                if getattr(one.objects if key == "compressible" else one, key) != usual
            ]
            if named and not engine:
                what = f"{key} of {', '.join(named)}: {why}"
                raise ValueError(f"{what}; set `users: engine`, or leave `{key}` out")
        faulted = [one for one in self.workloads if one.fault is not None]
        if any(isinstance(one.cache or self.cache, Every) for one in faulted):
            raise ValueError(
                f"fault of {', '.join(one.name for one in faulted)}: hosts that are gone have no "
                "caches to drop: set `cache: before-step`, or none"
            )
        return self


def _by_workload(words: dict[str, str]) -> str:
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return "; ".join(f"{name}: {text}" for name, text in words.items())


def _named(drivers: str) -> tuple[DriverName, ...]:
    return tuple(name.strip() for name in drivers.split(","))


def _unknown_drivers(drivers: str) -> str:
    """Why a suite cannot be replayed by these drivers; empty if it can."""
    names, known = _named(drivers), list(DRIVER_NAMES)
    if len(set(names)) != len(names) or len(names) > 2:
        return "name one driver, or two with a comma between"
    return ", ".join(
        f"no driver {name!r}{did_you_mean(name, known)}" for name in names if name not in known
    )
