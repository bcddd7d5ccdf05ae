"""The Gateway seam: what a kind of gateway needs, how it comes up on hosts, and what stands
then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import Field, SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.layers import StoreLayer
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.common.scope import Scope
from weighbridge.common.structure import Structure
from weighbridge.gateways.file_grammar import FileGrammar
from weighbridge.gateways.probe import Probe

Say = Callable[[str], None]
"""Told what is being done, one short line each."""

Tier = Literal["gateway", "storage", "shared"]
"""What a host's CPU is spent on: answering clients, keeping data, or both on one host."""


class Site(Protocol):
    """Where a host is, as far as configuration files want to know it: a Host, or one that is yet to
    be.
    """

    @property
    def name(self) -> str:
        """Its name in the hardware file."""

    @property
    def address(self) -> str:
        """Its address on the deployment's network."""

    @property
    def disks(self) -> tuple[str, ...]:
        """Device paths of its disks."""


class RootImage(Record):
    """A root image that hosts of a release run on: a Debian suite and packages; `options` go to
    mmdebstrap as they are.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    suite: str
    packages: tuple[str, ...]
    options: tuple[str, ...] = ()
    told_by: tuple[str, ...] = ()
    """Packages whose version tells of which release a real host is: Debian's names, then others'.
    The release is what follows the first dash of `name`; empty: there is none to see."""


class HostNeed(Record):
    """What a gateway asks of one host of the hardware file. `roles` are for messages."""

    roles: tuple[str, ...]
    disks: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0
    """What its daemons are told they may take: a host with less would end them in the middle of a
    step.
    """
    tier: Tier = "gateway"


class Rendered(Record):
    """A configuration file as it was written to a host, secrets replaced by `***`."""

    host: str
    path: str
    text: str


@dataclass(frozen=True)
class CephBelow:
    """The Ceph cluster below a gateway, as its own benches want it. `host` has ceph.conf, the keys
    of an administrator and Ceph's programs, and no daemon of the store; `mon` is where the mon is.
    """

    host: Host
    mon: Host
    osds: Mapping[int, str]
    """Host by number of OSD."""
    replicas: int
    failure_domain: Literal["host", "osd"]


@dataclass(frozen=True)
class ObjectServer:
    """One disk of one of Swift's object servers, as the ring has it."""

    host: str
    address: str
    port: int
    device: str


@dataclass(frozen=True)
class SwiftBelow:
    """The object servers below a Swift proxy.

    `ring` is the number of a disk for each replica (row) of each partition.
    """

    servers: tuple[ObjectServer, ...]
    ring: tuple[tuple[int, ...], ...]
    part_power: int
    hash_prefix: SecretStr
    hash_suffix: SecretStr
    replicas: int
    account: str
    """The account that clients of the gateway use."""


@dataclass(frozen=True)
class Below:
    """What a gateway stands on, so far as it can be measured without it.

    `gateway`: one of its daemons, behind its front.
    """

    gateway: tuple[Endpoint, ...] = ()
    ceph: CephBelow | None = None
    swift: SwiftBelow | None = None


@dataclass(frozen=True)
class Room:
    """What the disks of a store hold and have left, in bytes of theirs: each byte of an object
    takes one for each replica.
    """

    bytes: int
    free_bytes: int
    replicas: int


class Standing(ABC):
    """A gateway that stands: verified, idle, ready to be weighed."""

    endpoints: tuple[Endpoint, ...]
    facts: Mapping[str, str]
    """What decides results, in words: versions, replicas, acknowledgement rule, pipeline as it
    runs, tcp_nodelay ...
    """
    rendered: tuple[Rendered, ...]
    profile_remark: str = ""
    """What has to be known of a profile of its daemons."""
    uneven: tuple[str, ...] = ()
    """Why its storage hosts do not share the reads as they should, a sentence each; what is read
    from it is provisional then.
    """

    @abstractmethod
    def settle(self) -> tuple[str, ...]:
        """Bring deferred work of the last step to its end (RGW's garbage collection ...); returns
        in words what was done.
        """

    @abstractmethod
    def drop_caches(self) -> tuple[str, ...]:
        """Drop every cache of the gateway itself (OSD, RGW, memcached ...), not the kernel's;
        returns in words what was dropped.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise ServiceFailed when a service of the gateway has died."""

    def check_room(self) -> None:  # noqa: B027 - most have nothing to tell: they answer what they cannot keep with an error
        """Raise ServiceFailed when it answers nothing any more for want of room.

        Asked only where requests were not answered.
        """

    def clear(self, buckets: Sequence[str]) -> tuple[str, ...]:
        """Delete these buckets with all that is in them, where the gateway outlives its deployment;
        returns in words what was.

        A bucket that is not there is fine. Raises TargetError that names each bucket that is left,
        or may be. Gateways that are taken away with their deployment have nothing to clear.
        """
        return ()

    def below(self) -> Below:
        """What it stands on, for the layers that its kind of gateway names."""
        return Below()

    def room(self) -> Room | None:
        """What its disks hold and have left; None where nobody can tell."""
        return None

    def probes(self) -> tuple[Probe, ...]:
        """Programs on its hosts that tell every second what its daemons count of themselves; none
        where it has nothing to tell.
        """
        return ()

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        """Raise UsageError where `change` would refuse this, and touch nothing: running daemons are
        asked what they take.
        """
        return  # where nobody asks, `change` itself tells

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        """Have what stands run as `gateway` says: the same kind, release and placement, with other
        settings.

        `scope` is the least that is started anew, `nothing`, `reload` or `restart` (of `buckets`
        this is the daemons' part, and buckets are the caller's); daemons whose configuration stays
        the same are left alone. Returns in words what was done. When it returns, the daemons
        answer, run with the settings as they say themselves, and `facts`, `rendered` and `probes`
        are theirs.

        Raises UsageError when it cannot be done in this scope; ServiceFailed, CommandFailed or
        VerificationFailed when something does not come up with these settings: it can then be
        changed back, or on.
        """
        raise UsageError(
            f"nothing of this gateway can be changed while it stands, as {scope} would"
        )


class Gateway(ABC):
    """One kind of gateway with its release, placement and settings, before it stands."""

    kind: ClassVar[str]
    already_runs: ClassVar[bool] = False
    """Whether it runs without this suite: nothing is stood up or taken away, and its credentials
    are the user's own.
    """
    releases: ClassVar[Mapping[str, RootImage]]
    """Root image by name of release."""
    Placement: ClassVar[type[Record]]
    """Which service sits on which host: the `place` of a layout."""
    Settings: ClassVar[type[Record]]
    """The `settings` of a layout, every default explicit."""
    grammars: ClassVar[tuple[FileGrammar, ...]] = ()
    """How its configuration files are read."""
    release: str
    """Name of the release, one of `releases`."""
    cluster: Record | None = None
    """All that a deployment of it is, as the layout plans it, where it can be changed while it
    runs; its class tells the kind.
    """

    @abstractmethod
    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """`place` and `settings` are records of this class's own Placement and Settings."""

    @abstractmethod
    def needs(self) -> Mapping[str, HostNeed]:
        """What is asked of each host that the placement names."""

    @abstractmethod
    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """Every configuration file that `bring_up` would write to hosts at these places, with `***`
        for secrets; starts nothing.
        """

    @abstractmethod
    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Have the gateway's own programs check what `render` gives, on hosts that run nothing yet;
        no daemon is started.

        Raises UsageError with every option that they do not know, each with the closest ones that
        they do.
        """

    @abstractmethod
    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> Standing:
        """Stand the gateway up and verify PUT, GET, HEAD, DELETE over each of its APIs from
        `client`.

        Raises ServiceFailed, CommandFailed or VerificationFailed; what was started is ended by
        deleting the hosts.
        """

    @abstractmethod
    def apis(self) -> tuple[ObjectApi, ...]:
        """The APIs it will answer."""

    @classmethod
    def scope(cls, key: str) -> Scope:
        """The least that must be started anew for a setting to count, by its dotted key below
        `settings`, as far as its kind knows; `cluster` is always enough. What a release's daemons
        take while they run (`nothing`) they are asked when it is done.
        """
        return "cluster"

    def layers(self) -> tuple[StoreLayer, ...]:
        """Layers below and beside it that can be measured when it stands."""
        return ()

    def structure(self, disks: Mapping[str, int]) -> Structure | None:
        """What it is made of, on hosts with so many disks; None where nobody here knows."""
        return None


STORES: Registry[type[Gateway]] = Registry(
    "weighbridge.stores",
    "gateway",
    own={
        "rgw": "weighbridge.gateways.rgw.rgw:Rgw",
        "swift": "weighbridge.gateways.swift.swift:Swift",
        "existing": "weighbridge.gateways.existing.existing:Existing",
        "null": "weighbridge.gateways.null.null:Null",
    },
)
"""Every kind of gateway by the name layouts use."""
