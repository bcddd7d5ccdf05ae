"""The Front interface: a program between clients and a gateway's daemons, such as HAProxy or
Apache.

A layout places a front by its name in the registry (`place: {haproxy: balancer-1}`) and configures
it by the same name (`settings: {haproxy: {...}}`). `with_fronts` adds a field for each possible
front to a store's records.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, create_model, model_validator

from weighbridge.common.endpoint import USUAL_PORTS, Endpoints, base_url
from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.common.structure import DaemonCounters, Part, Scope
from weighbridge.gateways import program
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.gateway import RootImage, Site
from weighbridge.gateways.options import Option, OptionRecord, scope_of, sized
from weighbridge.gateways.probe import FileGrammar, Probe
from weighbridge.gateways.sizing import Role, Sized, Sizes

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Backend:
    """One daemon behind a front: a radosgw or a Swift proxy."""

    name: str
    address: str
    port: int


@dataclass(frozen=True)
class Behind:
    """What a front needs to know about the daemons behind it."""

    health_path: str = "/"
    """A path that they answer with 200 while they are alive."""
    fastcgi: bool = False
    """Whether they speak FastCGI themselves, where the front `wants_fastcgi`."""


def _usual_port(settings: dict[str, Any]) -> int:
    return USUAL_PORTS["https" if settings.get("tls") else "http"]


class FrontSettings(OptionRecord):
    """The settings of every front."""

    tls: Annotated[bool, Option(scope="cluster")] = False
    """Clients speak TLS to it, with a certificate of the deployment's own CA; it ends here."""
    port: Annotated[int, Option(scope="cluster")] = Field(
        default_factory=_usual_port, ge=1, le=65535
    )
    """The port that clients use; with `tls` 443 unless given."""


class Front(ABC):
    """A front with its settings; its host is passed to each method."""

    label: ClassVar[str]
    """Its name for users."""
    Settings: ClassVar[type[FrontSettings]]
    """Its part of a layout's `settings`, with every default explicit."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Debian packages that hosts of a gateway need for it."""
    stores: ClassVar[tuple[str, ...]] = ()
    """Kinds of gateway that it can serve; empty: any."""
    grammars: ClassVar[tuple[FileGrammar, ...]] = ()
    """The grammars of its configuration files."""
    speaks_tls: ClassVar[bool] = False
    """Whether its files follow `tls`; certificate and key are then at certificates.SERVER_FILE."""
    service: ClassVar[str]
    """The name of its service, and of its probe."""
    program: ClassVar[str]
    """The program that prints its counters every second, as a module."""
    counters: ClassVar[DaemonCounters]
    """Which of them are shown."""
    port: int
    """The port that clients use."""

    @abstractmethod
    def __init__(self, settings: Any, behind: Behind) -> None:
        """`settings` is a record of this class's Settings."""

    @property
    def wants_fastcgi(self) -> bool:
        """Whether it speaks FastCGI to daemons that do."""
        return False

    @classmethod
    def by_size(cls, host: Role) -> tuple[Sized, ...]:
        """Its settings that follow the size of its host, by the rule of `gateways.sizing`."""
        return tuple(sized(cls.Settings, "", host))

    def further_ports(self) -> tuple[tuple[int, str], ...]:
        """Further ports that it uses on its host, each with the user's name, for messages."""
        return ()

    @abstractmethod
    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        """Its configuration files by path, when it listens on `address`; without secrets."""

    @abstractmethod
    def check(self, host: Host) -> None:
        """Have its program check its files there. Raises UsageError with its words and a hint."""

    @abstractmethod
    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        """Its daemons, to be started in order when the backends answer; the last has its port."""

    @abstractmethod
    def facts(self, host: Host) -> dict[str, str]:
        """What decides results, in words: version, running settings, the path of a request."""

    def tolerance(self) -> dict[str, str]:
        """The settings that decide when it sends no more requests to a dead backend, in words."""
        return {}

    def place_of_counters(self, host: Host) -> tuple[str, ...]:
        """Arguments by which `program` finds the front on its host."""
        raise NotImplementedError

    def ask(self, host: Host, *words: str, timeout_s: float = 60) -> str:
        """What `program` answers there to these words. Raises CommandFailed."""
        argv = (*program.ship(host, self.program), *self.place_of_counters(host), *words)
        return host.run(argv, timeout_s=timeout_s).stdout

    def probes(self, host: Host) -> tuple[Probe, ...]:
        """The programs that print its counters every second."""
        argv = (*program.ship(host, self.program), *self.place_of_counters(host))
        return (Probe(host, f"{self.service}.{host.name}", argv, counters=self.counters),)

    @abstractmethod
    def await_backends(self, host: Host) -> None:
        """Wait until the running front sends requests to all of its backends, which answer.

        For use after a restart while clients know its address: a request may come immediately.
        Raises ServiceFailed.
        """

    @classmethod
    def scope(cls, key: str) -> Scope:
        """The least restart for a front's setting, by dotted key; its URL cannot change."""
        return scope_of(cls.Settings, key)

    def reloads(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Whether a reload is enough to go from the files `before` to `after`, by path."""
        return False

    def reload(self, host: Host) -> str:
        """Have it read its files again while it serves; returns in words what was seen.

        Empty when it took the files but differs from one started with them, such as in its number
        of processes: it must then be restarted, since another setting would be measured.

        Raises UsageError when it cannot reload, CommandFailed or ServiceFailed when it did not take
        the files.
        """
        raise UsageError(f"{type(self).__name__} reads its files only when it starts")


@functools.cache
def template(path: Path) -> Template:
    """The template of a configuration file, for values that were checked to be lines."""
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 - only layouts with a front

    environment = Environment(
        autoescape=False,  # noqa: S701 - it is no page
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(path.read_text(encoding="utf-8"))


FRONTS: Registry[type[Front]] = Registry(
    "weighbridge.fronts",
    "front",
    own={
        "haproxy": "weighbridge.gateways.haproxy.front:Haproxy",
        "apache": "weighbridge.gateways.apache.front:Apache",
    },
)
"""Every front by the name that layouts use."""


def fronts_before(store: str) -> Mapping[str, type[Front]]:
    """The fronts that can serve a kind of gateway, by name."""
    return {
        name: front for name, front in FRONTS.items() if not front.stores or store in front.stores
    }


_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "rgw": (
        *("ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph-common", "python3-rados"),
        # CephFS is no gateway, but a layer that Ceph studies measured beside RADOS.
        *("ceph-mds", "ceph-fuse"),
        *("iproute2", "procps", "tini", "python3", "btrfs-progs", "e2fsprogs"),
    ),
    "swift": (
        *("swift-proxy", "swift-account", "swift-container", "swift-object", "memcached", "rsync"),
        *("xfsprogs", "iproute2", "procps", "tini", "python3"),
    ),
}
_VERSIONS: Final = {"rgw": ("ceph-common",), "swift": ("python3-swift",)}
_SHARED: Final = ("bookworm", "trixie")
_OF_SUITES: Final[Mapping[str, Mapping[str, Any]]] = {
    # Its security and update archives name files that no longer exist.
    "bullseye": {
        "options": ('--setup-hook=sed -i -e /security/d -e /-updates/d "$1/etc/apt/sources.list"',)
    },
    # It changes daily, and its list is signed for two weeks: a mirror's may be older.
    "sid": {"options": ('--aptopt=Acquire::Check-Valid-Until "false"',)},
    "jammy": {"distribution": "Ubuntu"},
    "noble": {"distribution": "Ubuntu"},
}


def store_image(store: str, name: str, suite: str) -> RootImage:
    """The image of a release of a store that Debian packages: its packages and its fronts'. In the
    suites that comparisons use, all such stores have one root, so that their hosts are equal.
    """
    packages = {
        name: (*own, *(one for front in fronts_before(name).values() for one in front.packages))
        for name, own in _PACKAGES.items()
    }
    own = packages.pop(store)
    beside = tuple(chain.from_iterable(packages.values())) if suite in _SHARED else ()
    return RootImage(
        name=name,
        suite=suite,
        packages=own,
        beside=beside,
        version_packages=_VERSIONS[store],
        **_OF_SUITES.get(suite, {}),
    )


def _refuse_twice(names: tuple[str, ...], field: ValidationInfo) -> tuple[str, ...]:
    if len(set(names)) == len(names):
        return names
    several = field.field_name in ("proxy", "radosgw")
    hint = f": for several on one host use `settings: {{{field.field_name}: {{daemons: 2}}}}`"
    raise ValueError(f"{field.field_name} names the same host twice{hint * several}")


HostNames = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_refuse_twice)]
"""A field of a placement: one host or more, each once."""


class FrontedPlacement(Record):
    """The `place` of a layout, which may name a host for one front (fields by `with_fronts`)."""

    fronts: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _one_front(self) -> FrontedPlacement:
        placed = [name for name in self.fronts if getattr(self, name) is not None]
        if len(placed) > 1:
            raise ValueError(f"{' and '.join(placed)} are both placed: a layout has only one front")
        return self

    @property
    def front_name(self) -> str | None:
        """The front's name in the registry; None without one."""
        return next((name for name in self.fronts if getattr(self, name) is not None), None)

    @property
    def front(self) -> str | None:
        """The front's host; None without one."""
        host: str | None = None if self.front_name is None else getattr(self, self.front_name)
        return host


class FrontedSettings(Record):
    """The `settings` of a layout that may have a front. `with_fronts` adds the fields."""

    endpoints: Annotated[Endpoints | None, Option(scope="cluster")] = None
    """How clients spread over several daemons without a front; None: they use one address."""
    fronts: ClassVar[tuple[str, ...]] = ()

    def of_front(self, name: str) -> FrontSettings:
        found: FrontSettings = getattr(self, name)
        return found


Fronted = TypeVar("Fronted", bound=FrontedPlacement | FrontedSettings)


def with_fronts(store: str) -> Callable[[type[Fronted]], type[Fronted]]:
    """Decorator for a gateway's placement or settings: adds a field for each front."""

    def made(record: type[Fronted]) -> type[Fronted]:
        fields: dict[str, Any] = {}
        for name, front in fronts_before(store).items():
            if name in record.model_fields:
                raise UsageError(
                    f"the front {name!r} has the name of a field of gateway {store!r}: rename it"
                )
            fields[name] = (
                (str | None, None)
                if issubclass(record, FrontedPlacement)
                else (front.Settings, front.Settings())
            )
        extended = create_model(
            record.__name__,
            __base__=record,
            __module__=record.__module__,
            __doc__=record.__doc__,
            **fields,
        )
        extended.fronts = tuple(fields)
        return extended

    return made


def front_of(place: FrontedPlacement, settings: FrontedSettings, behind: Behind) -> Front | None:
    """The front of a layout; None without one."""
    name = place.front_name
    return None if name is None else FRONTS[name](settings.of_front(name), behind)


def front_url(
    place: FrontedPlacement, settings: FrontedSettings, sites: Mapping[str, Site]
) -> str | None:
    """The URL of the front for clients; None without one."""
    if place.front is None or place.front_name is None:
        return None
    own = settings.of_front(place.front_name)
    return base_url(sites[place.front].address, own.port, tls=own.tls)


def front_by_size(place: FrontedPlacement, sizes: Sizes) -> tuple[Sized, ...]:
    """The settings of the front that follow the size of its host; none without one."""
    if place.front is None or place.front_name is None:
        return ()
    found = FRONTS[place.front_name].by_size(Role([place.front], sizes))
    return tuple(one.below(place.front_name) for one in found)


def front_parts(place: FrontedPlacement) -> tuple[Part, ...]:
    """The front among the services of a layout; none without one."""
    if place.front is None or place.front_name is None:
        return ()
    return (Part(place.front, place.front_name, lone=f"the only {place.front_name}"),)


def tls_host(
    place: FrontedPlacement, settings: FrontedSettings, unfronted: str | None
) -> str | None:
    """The host that speaks TLS to clients, the front's or `unfronted`; None: plain HTTP."""
    if place.front_name is None:
        return unfronted
    return place.front if settings.of_front(place.front_name).tls else None


def refuse_unfit(
    place: FrontedPlacement,
    settings: FrontedSettings,
    daemons: int,
    what: str,
    *,
    tls: bool = False,
) -> None:
    """Raise ValueError for several daemons (`what`) without a front and no `endpoints`, settings
    without what they are for, or TLS where it cannot be; `tls`: of the daemons themselves.
    """
    if daemons > 1 and place.front is None and settings.endpoints is None:
        raise ValueError(
            f"{daemons} {what} need a front, {' or '.join(place.fronts)}: clients use one address; "
            "or let them use all, by `settings: {endpoints: {spread: per-worker}}`"
        )
    if settings.endpoints is not None and (daemons == 1 or place.front is not None):
        only = "there is one" if place.front is None else "clients use its front"
        raise ValueError(f"endpoints: for several {what} without a front, but {only}")
    if settings.endpoints is not None and tls:
        raise ValueError(
            f"tls of several {what}: one certificate is made, for the first; use `tls` of a front"
        )
    for name in settings.fronts:
        if name in settings.model_fields_set and name != place.front_name:
            raise ValueError(f"settings of {name} are given, but place names no host for it")
    front = place.front_name
    if front is None:
        return
    if tls:
        raise ValueError(
            f"tls of {what}: clients talk to {front}, which passes requests on as plain HTTP; set "
            f"`tls` of {front} instead"
        )
    if settings.of_front(front).tls and not FRONTS[front].speaks_tls:
        raise ValueError(f"tls: this suite does not configure TLS of {front}: leave it out")


def refuse_shared_ports(
    place: FrontedPlacement, front: Front | None, wanted: Iterable[tuple[str, int, str]]
) -> None:
    """Raise ValueError when two services want the same port of a host.

    `wanted` are host, port and service; those of the front come last.
    """
    taken: dict[tuple[str, int], str] = {}
    own: list[tuple[str, int, str]] = []
    if front is not None and place.front is not None and place.front_name is not None:
        own = [
            (place.front, port, who)
            for port, who in ((front.port, place.front_name), *front.further_ports())
        ]
    for host, port, who in (*wanted, *own):
        if (host, port) in taken:
            raise ValueError(f"{host}: port {port} of {who} is taken by {taken[host, port]}")
        taken[host, port] = who
