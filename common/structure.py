"""What a gateway consists of, as far as figures of its layers depend on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt, model_validator

from weighbridge.common.document import did_you_mean
from weighbridge.common.quantities import Count
from weighbridge.common.record import Record

StoreLayer = Literal["osd", "rados", "object-server", "gateway", "rbd", "cephfs"]
"""What can be measured below or beside a gateway. `gateway`: one daemon without its front."""

Layer = Literal["disk", "network", StoreLayer]
"""Everything below a gateway, and beside it on the same store.

Disk, network and osd (`ceph tell osd.N bench`) are measured once per deployment; at the others
steps are replayed.
"""

LAYERS: Final[tuple[Layer, ...]] = get_args(Layer)

Level = Literal[Layer, "front"]
"""A level of a staircase: a layer, or the front that clients talk to."""


Answers = Literal["disk", "data on disk", "page cache", "memory"]
"""What a store has on disk when it acknowledges a write."""
ANSWERS: Final[Mapping[Answers, str]] = {
    "disk": "acknowledges when on disk",
    "data on disk": "acknowledges before the name is on disk",
    "page cache": "acknowledges from the page cache",
    "memory": "acknowledges from memory",
}
"""The same in words."""


class Fragments(Record):
    """Erasure coding in `data` fragments and `parity` more, any of which replace as many lost."""

    data: PositiveInt
    parity: PositiveInt

    @property
    def count(self) -> int:
        return self.data + self.parity

    @property
    def times(self) -> float:
        """Bytes on disks per byte of a large object."""
        return self.count / self.data

    def __str__(self) -> str:
        return f"{self.data}+{self.parity}"


class Redundancy(Record):
    """How often a store keeps objects: in copies, or in fragments."""

    replicas: PositiveInt
    """Copies of each object; 1 with `fragments`."""
    fragments: Fragments | None = None
    """How objects are erasure coded; None: they are copied."""

    @property
    def times_kept(self) -> float:
        """Bytes on disks per byte of a large object, without journals."""
        return self.replicas if self.fragments is None else self.fragments.times

    @property
    def redundancy(self) -> str:
        """Its number of replicas, or fragments such as `2+1`."""
        return str(self.replicas if self.fragments is None else self.fragments)

    @property
    def redundancy_words(self) -> str:
        """Such as `3 replicas` or `1.5 (erasure coding 2+1)`."""
        if self.fragments is None:
            return f"{self.replicas} replicas"
        return f"{self.fragments.times:.3g} (erasure coding {self.fragments})"


class Structure(Redundancy):
    """The ways of an object through a gateway, by host names.

    It is kept in a run's plan: fields that another version of the suite wrote there are ignored.
    """

    model_config = ConfigDict(extra="ignore")

    entrances: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that clients talk to: the front's, or those of the gateway's daemons."""
    gateways: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of the gateway's daemons."""
    daemons: PositiveInt = 1
    """How many of them there are, over all hosts."""
    front: str | None = None
    """What is in front of them, such as `HAProxy`."""
    stores: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that store objects."""
    disks: dict[str, tuple[NonNegativeInt, ...]]
    """By host, the numbers of the disks that store objects; empty where memory does."""
    journals: dict[str, tuple[NonNegativeInt, ...]] = Field(default_factory=dict)
    """By host, separate disks to which everything is written first."""
    writes: Literal[1, 2] = 1
    """How often each byte is written to its disk: twice if its journal is on it."""
    layer: StoreLayer | None = None
    """The layer of the store itself, where it can be measured without the gateway."""
    answers: Answers | None = None
    """What is on disk when a write is acknowledged; None: not declared."""
    copied_by: Literal["gateway", "store"]
    """Who sends the replicas: the gateway all, or the store that got the first one the others."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host on these ways once, from clients on."""
        return tuple(dict.fromkeys((*self.entrances, *self.gateways, *self.stores)))

    @property
    def times_received(self) -> float:
        """How often its stores receive each byte that is written, from gateways and each other."""
        if self.fragments is None or self.copied_by == "gateway":
            return self.times_kept
        # The store that gets an object keeps one fragment of it, and sends the others on.
        return 1 + (self.fragments.count - 1) / self.fragments.data


Role = Literal["gateway-daemon", "storage-daemon", "storage-host", "storage-disk"]
"""What any layout has: a radosgw or Swift proxy; an OSD or object server; a host of the latter; a
disk that keeps objects.
"""
ROLES: Final[tuple[Role, ...]] = get_args(Role)


@dataclass(frozen=True)
class Part:
    """A service of a gateway before it runs."""

    host: str
    service: str
    role: Literal["gateway-daemon", "storage-daemon"] | None = None
    """None: something else."""
    lone: str = ""
    """Why nothing is left to measure without it, such as `the only mon`; empty: there are others.
    """
    disks: tuple[str, ...] = ()
    """Those of its host that it keeps data on: `/dev/wb0`."""


@dataclass(frozen=True)
class Target:
    """What a fault happens to: a service of a host, a disk of it, or the host with all services."""

    host: str
    service: str | None = None
    disk: str | None = None
    """`/dev/wb0`."""

    def __str__(self) -> str:
        part = self.service or (self.disk or "").removeprefix("/dev/")
        return f"{self.host}/{part}" if part else self.host


def targets(parts: Sequence[Part], what: str) -> tuple[Target, ...]:
    """The parts that `what` means, a role or one. Raises ValueError if nothing of it may die."""
    if what == "storage-host":
        hosts = dict.fromkeys(one.host for one in parts if one.role == "storage-daemon")
        found = [Target(host) for host in hosts]
    elif what == "storage-disk":
        storing = [one for one in parts if one.role == "storage-daemon"]
        found = [Target(one.host, disk=disk) for one in storing for disk in one.disks]
    elif what in ROLES:
        found = [Target(one.host, one.service) for one in parts if one.role == what]
    else:
        found = [_named(parts, what)]
    found = list(dict.fromkeys(found))
    if not found:
        raise ValueError(f"it has no {what}")
    fit = [one for one in found if not _lone(parts, one)]
    if not fit:
        raise ValueError(f"{found[0]} may not die: {_lone(parts, found[0])}")
    return tuple(fit)


def _named(parts: Sequence[Part], what: str) -> Target:
    host, _, service = what.partition("/")
    hosts = list(dict.fromkeys(one.host for one in parts))
    if host not in hosts:
        raise ValueError(f"it has no service on {host!r}{did_you_mean(host, [*hosts, *ROLES])}")
    disks = {
        disk.removeprefix("/dev/"): disk for one in parts if one.host == host for disk in one.disks
    }
    if service in disks:
        return Target(host, disk=disks[service])
    services = [one.service for one in parts if one.host == host]
    if service and service not in services:
        known = [*services, *disks]
        raise ValueError(f"{host} has no {service!r}{did_you_mean(service, known)}")
    return Target(host, service or None)


def parts_of(parts: Sequence[Part], target: Target) -> tuple[Part, ...]:
    """Those that a target is, or that keep data on it."""
    return tuple(
        one
        for one in parts
        if one.host == target.host
        and target.service in {None, one.service}
        and (target.disk is None or target.disk in one.disks)
    )


def _lone(parts: Sequence[Part], target: Target) -> str:
    mine = parts_of(parts, target)
    lone = [one.lone for one in mine if one.lone]
    if lone:
        return f"{lone[0]} is there" if target.service is None else f"it is {lone[0]}"
    served = {one.host for one in parts if one.role == "gateway-daemon"}
    if target.service is None and target.disk is None and served <= {target.host}:
        return "all its gateway daemons are there"
    return ""


Scope = Literal["nothing", "reload", "restart", "buckets", "cluster"]
"""From the least to the most disruptive.

`nothing`: running daemons apply it. `reload`: a front reloads its configuration while it serves
(Apache's graceful restart). `restart`: daemons whose configuration changed are stopped and started
(radosgw, Apache, HAProxy, Swift's servers). `buckets`: also, buckets and objects are created again,
since only new ones have it. `cluster`: all of the deployment is.
"""

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the least to the most disruptive."""


def widest(scopes: Iterable[Scope]) -> Scope:
    """The most disruptive of these scopes; `nothing` if there are none."""
    return max(scopes, key=SCOPES.index, default="nothing")


def differing(before: Record, after: Record) -> tuple[str, ...]:
    """Dotted keys of settings that differ, including those that only one of the two has."""
    one, other = dict(_flat(before.model_dump(), "")), dict(_flat(after.model_dump(), ""))
    return tuple(
        key
        for key in {**one, **other}
        if key not in one or key not in other or one[key] != other[key]
    )


def _flat(value: object, key: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


# A daemon's probe declares its counters; they are recorded with the counts, so that a run can be
# read where the daemon is unknown.


class CounterFigure(Record):
    """One figure computed from the counters of all daemons of a kind over a window.

    `sum`: the sum of a gauge's means. `rate`: the sum of the counters' growth per second.
    `latency`: growth of `NAME_sum_s` per `NAME_count`, in ms. `hits`: growth of the first counter
    as a percentage of both.
    """

    words: str
    """The text, with `{}` for the value: `{} requests queued`."""
    reckon: Literal["sum", "rate", "latency", "hits"]
    counters: tuple[str, ...]


class DaemonCounters(Record):
    """Which counters of a kind of daemon are shown.

    Gauges describe its queue (empty: it reports none): `waiting` minus `working` requests are
    queued; `busy` and `idle` count workers.
    """

    daemon: str
    """Its kind: the part of its probes' names before the first dot."""
    figures: tuple[CounterFigure, ...] = ()
    waiting: str = ""
    working: str = ""
    busy: str = ""
    idle: str = ""


class CutDisk(Record):
    """A disk at a cut: what it had been given since the load began, and what the cut took."""

    name: str
    """Host and device, such as `store-1/dev/wb0`; `store-1/` is the host's own root."""
    writes: Count
    flushes: Count
    unflushed_blocks: Count
    """Blocks of 4 KiB that were written and not flushed at the cut."""
    kept_blocks: Count
    """Of these, those that the disk had written by itself, by chance."""

    @model_validator(mode="after")
    def _kept_some(self) -> Self:
        if self.kept_blocks > self.unflushed_blocks:
            raise ValueError("more blocks were kept than were unflushed")
        return self


PathThere = Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/+-]{1,200}$")]


class CephPool(Record):
    """An existing pool for `rados bench`, from a host that has Ceph's programs. Only objects of the
    run are made there, in a namespace of its own, and deleted; nothing else is changed.
    """

    host: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    """One of the hardware's `observed` hosts; it has `rados` and the user's keyring."""
    pool: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_.:+-]{0,99}$")]
    """The pool, which exists and has no quota."""
    user: Annotated[str, Field(pattern=r"^client\.[A-Za-z0-9_.-]{1,90}$")] = "client.admin"
    """Ceph's user; needs `mon 'allow r'` and `osd 'allow rw pool=POOL'`."""
    conf: PathThere | None = None
    """The cluster's ceph.conf on that host; None: /etc/ceph/ceph.conf."""
    keyring: PathThere | None = None
    """The user's keyring on that host, which the login of ssh can read; None: where Ceph looks,
    such as /etc/ceph/ceph.client.admin.keyring.
    """

    @property
    def client(self) -> tuple[str, ...]:
        """Options by which Ceph's programs are this client."""
        words = ["--name", self.user]
        words += ["--conf", self.conf] if self.conf is not None else []
        words += ["--keyring", self.keyring] if self.keyring is not None else []
        return tuple(words)
