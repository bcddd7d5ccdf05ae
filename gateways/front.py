"""The Front seam: a program between clients and the daemons of a gateway, such as HAProxy or
Apache; and how a layout names one.

A layout places a front by its name in the registry (`place: {haproxy: balancer-1}`) and sets it by
the same name (`settings: {haproxy: {...}}`). A store's records take every front that may be before
it: `with_fronts` gives them a field for each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import Field, create_model, model_validator

from weighbridge.common.errors import UsageError
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.common.scope import Scope
from weighbridge.gateways.daemon import Daemon
from weighbridge.gateways.file_grammar import FileGrammar
from weighbridge.gateways.probe import Probe


@dataclass(frozen=True)
class Backend:
    """One daemon behind a front: a radosgw or a Swift proxy."""

    name: str
    address: str
    port: int


@dataclass(frozen=True)
class Behind:
    """What a front is told of the daemons behind it."""

    health_path: str = "/"
    """What they answer with 200 while they live."""
    fastcgi: bool = False
    """Whether they speak FastCGI themselves, where the front `wants_fastcgi`."""


class FrontSettings(Record):
    """What every front has among its settings."""

    port: Annotated[int, Field(ge=1, le=65535)] = 80
    """Where clients find it."""


class Front(ABC):
    """A front as its settings say it; the host it sits on is given to each method."""

    label: ClassVar[str]
    """What people call it."""
    Settings: ClassVar[type[FrontSettings]]
    """Its part of a layout's `settings`, every default explicit."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Debian packages that hosts of a gateway need for it."""
    stores: ClassVar[tuple[str, ...]] = ()
    """Kinds of gateway that it may be before; empty: any."""
    grammars: ClassVar[tuple[FileGrammar, ...]] = ()
    """How its configuration files are read."""
    port: int
    """Where clients find it."""

    @abstractmethod
    def __init__(self, settings: Any, behind: Behind) -> None:
        """`settings` is a record of its own Settings."""

    @property
    def wants_fastcgi(self) -> bool:
        """Whether it speaks FastCGI to daemons that do."""
        return False

    def further_ports(self) -> tuple[tuple[int, str], ...]:
        """Ports of its host that it takes besides, and what by, for messages."""
        return ()

    @abstractmethod
    def files(self, address: str, backends: Sequence[Backend]) -> Mapping[str, str]:
        """Its configuration files by path, for a front that listens on `address`.

        Nothing in them is secret.
        """

    @abstractmethod
    def check(self, host: Host) -> None:
        """Have its own program check the files, which are on the host.

        Raises UsageError in its words, with "did you mean".
        """

    @abstractmethod
    def daemons(self, host: Host) -> tuple[Daemon, ...]:
        """What is to be started, in an order in which it may be, when the backends answer.

        The last one has the front's port.
        """

    @abstractmethod
    def facts(self, host: Host) -> dict[str, str]:
        """What decides results, in words: version, settings as they run.

        Which path is weighed is named here.
        """

    @abstractmethod
    def probes(self, host: Host) -> tuple[Probe, ...]:
        """What it counts of itself, every second."""

    @abstractmethod
    def await_backends(self, host: Host) -> None:
        """Return when a front that runs sends requests to all of its backends, which answer. Raises
        ServiceFailed.

        For after it or they were started anew while clients know its address: a request may come at
        once then.
        """

    @classmethod
    def scope(cls, key: str) -> Scope:
        """What a setting needs to count, by its dotted key below the front's own settings; its port
        is what clients know.
        """
        return "cluster" if key == "port" else "restart"

    def reloads(self, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
        """Whether going from the one to the other files, by path, needs no more than a reload."""
        return False

    def reload(self, host: Host) -> str:
        """Have it read its files again while it serves, and nothing of before left over; returns in
        words what was seen.

        Empty when it took the files, but is not as it would be had it been started with them, such
        as with fewer processes: it must then be started anew, since what is weighed would not be
        the setting.

        Raises UsageError when it is none that can, CommandFailed or ServiceFailed when it did not
        take the files.
        """
        raise UsageError(f"{type(self).__name__} reads its files only when it starts")


FRONTS: Registry[type[Front]] = Registry(
    "weighbridge.fronts",
    "front",
    own={
        "haproxy": "weighbridge.gateways.haproxy.haproxy:Haproxy",
        "apache": "weighbridge.gateways.apache.apache:Apache",
    },
)
"""Every front by the name layouts use."""


def fronts_before(store: str) -> Mapping[str, type[Front]]:
    """Those that may be before a kind of gateway, by name."""
    return {
        name: front for name, front in FRONTS.items() if not front.stores or store in front.stores
    }


def packages_before(store: str) -> tuple[str, ...]:
    """What the hosts of a kind of gateway need for its fronts."""
    return tuple(package for front in fronts_before(store).values() for package in front.packages)


class FrontedPlacement(Record):
    """The `place` of a layout that may name a host for one of the fronts.

    Made whole by `with_fronts`.
    """

    fronts: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _one_front(self) -> FrontedPlacement:
        placed = [name for name in self.fronts if getattr(self, name) is not None]
        if len(placed) > 1:
            raise ValueError(
                f"{' and '.join(placed)} are both placed: one of them is the front that clients "
                "find"
            )
        return self

    @property
    def front_name(self) -> str | None:
        """Which front there is, by its name in the registry."""
        return next((name for name in self.fronts if getattr(self, name) is not None), None)

    @property
    def front(self) -> str | None:
        """The host of the front, where there is one."""
        host: str | None = None if self.front_name is None else getattr(self, self.front_name)
        return host


class FrontedSettings(Record):
    """The `settings` of a layout that may have a front. Made whole by `with_fronts`."""

    fronts: ClassVar[tuple[str, ...]] = ()

    def of_front(self, name: str) -> FrontSettings:
        """Those of one front."""
        found: FrontSettings = getattr(self, name)
        return found


Fronted = TypeVar("Fronted", bound=FrontedPlacement | FrontedSettings)


def with_fronts(store: str) -> Callable[[type[Fronted]], type[Fronted]]:
    """Decorates the placement or the settings of a kind of gateway: the record has a field for each
    front before it as well.
    """

    def made(record: type[Fronted]) -> type[Fronted]:
        fields: dict[str, Any] = {}
        for name, front in fronts_before(store).items():
            if name in record.model_fields:
                raise UsageError(
                    f"the front {name!r} is called as something of the gateway {store!r} is: "
                    "rename it"
                )
            fields[name] = (
                (str | None, None)
                if issubclass(record, FrontedPlacement)
                else (front.Settings, front.Settings())
            )
        whole = create_model(
            record.__name__,
            __base__=record,
            __module__=record.__module__,
            __doc__=record.__doc__,
            **fields,
        )
        whole.fronts = tuple(fields)
        return whole

    return made


def front_of(place: FrontedPlacement, settings: FrontedSettings, behind: Behind) -> Front | None:
    """The front of a layout, where it has one."""
    name = place.front_name
    return None if name is None else FRONTS[name](settings.of_front(name), behind)


def refuse_unfit(
    place: FrontedPlacement, settings: FrontedSettings, daemons: int, what: str
) -> None:
    """Raise ValueError where several daemons, `what` in the plural, have no front before them, or a
    front that is set no host.
    """
    if daemons > 1 and place.front is None:
        raise ValueError(
            f"{daemons} {what} need a front, {' or '.join(place.fronts)}: clients know one address"
        )
    for name in settings.fronts:
        if name in settings.model_fields_set and name != place.front_name:
            raise ValueError(f"settings of {name} are given, but place names no host for it")


def refuse_shared_ports(
    place: FrontedPlacement, front: Front | None, wanted: Iterable[tuple[str, int, str]]
) -> None:
    """Raise ValueError where two want the same port of a host; `wanted` are host, port and who,
    those of the front come last.
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
