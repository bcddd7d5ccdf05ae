"""Kinds of driver: all that is to be known of one before it is opened, and how it is.

Found by name in one registry.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import click

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.host import Host
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.drivers.driver import Driver
from weighbridge.drivers.order import Ring, Setup
from weighbridge.drivers.process import DriverProcess
from weighbridge.results.record.driver_traits import DriverTraits
from weighbridge.results.record.step import Pass
from weighbridge.suites import Api, DriverName, Layer, Suite, Workload

PATHS: Final = "PYTHONPATH"

SetupKind = TypeVar("SetupKind", bound=Setup)
Own = TypeVar("Own", bound=Record)


@dataclass(frozen=True)
class Opened:
    """A driver that is set up, with the versions of what makes the load."""

    driver: Driver
    versions: Mapping[str, str]


@dataclass(frozen=True)
class ClusterSite:
    """The Ceph cluster of a deployment.

    `host` has an administrator's keys and Ceph's programs, `mon` is where the mon is.
    """

    host: Host
    mon: Host
    replicas: int
    cpus: float | None
    """What `host` may use; None: there is no limit."""


@dataclass(frozen=True)
class LoadSite:
    """What a driver is told of the deployment that it is opened for, and what it is to do there.

    Names of all that it makes there begin with `prefix`; what it says to people goes to `log`.
    """

    layout: str
    clients: tuple[Host, ...]
    """Hosts that make the load."""
    suite: Suite
    way: Pass
    prefix: str
    log: Path
    settings: Record | None = None
    """As `DriverKind.settings` made them; None: the driver has none."""
    target: Endpoint | None = None
    """Where requests go; None at layers that are asked by tools."""
    ring: Ring | None = None
    """Where Swift's object servers are, when they are asked past any proxy."""
    cluster: ClusterSite | None = None
    """At layers of Ceph."""

    def setup(self, kind: type[SetupKind], **own: object) -> SetupKind:
        """The first order to a driver that is a process; `own` are the fields that its kind of
        Setup has besides.
        """
        common = {
            "target": self.target,
            "ring": self.ring,
            "bucket_prefix": self.prefix,
            "seed": self.suite.seed,
        }
        return kind.model_validate({**common, "request_timeout_s": self.suite.timeout, **own})

    def settings_as(self, kind: type[Own]) -> Own | None:
        """The driver's own settings."""
        return self.settings if isinstance(self.settings, kind) else None

    def process(
        self, module: str, *arguments: str, look: Callable[[], None] = lambda: None
    ) -> DriverProcess:
        """Start a driver that is a module of Python, on the first of the clients. Leaving it as a
        context manager ends it.

        `look` as DriverProcess has it.
        """
        command = self.clients[0].module(module, *arguments)
        env = dict(command.env)
        if PATHS in env and PATHS in os.environ:
            # Where the host has this machine's files, it has the drivers that were found here.
            env[PATHS] = os.pathsep.join((env[PATHS], os.environ[PATHS]))
        return DriverProcess(
            self.clients[0].spawn(command.argv, stderr=self.log, env=env), self.log, look=look
        )


class DriverKind(ABC):
    """One kind of driver.

    `weighbridge.drivers` is the entry point group that one is found in, by its name in `traits`.
    """

    traits: ClassVar[DriverTraits]
    apis: ClassVar[tuple[Api, ...]] = ()
    """APIs of gateways that a suite may have it load."""
    layers: ClassVar[tuple[Layer, ...]] = ()
    """Layers below and beside gateways that it loads wherever a suite asks for them."""
    rank: ClassVar[int] = 0
    """Of several that load a layer the one with the lower rank goes first, and then by name."""
    mark: ClassVar[str] = "x"
    """What the prefix of its buckets ends with, a letter at most: two drivers that find one
    another's objects cannot take turns.
    """
    first_bucket: ClassVar[int] = 0
    """Its buckets are `{prefix}-{workload}-{index}`, counted from here."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages whose versions here are facts of the machine."""
    runs_tools: ClassVar[bool] = False
    """Whether it wants the tools on its host that hosts are attested with."""
    options: ClassVar[tuple[click.Option, ...]] = ()
    """Its own options of the commands that run something."""

    def settings(self, given: Mapping[str, object], hidden: Collection[str]) -> Record | None:
        """Its own settings, by its options as they were `given`. Raises UsageError before anything
        is started.

        `hidden` are folders of this machine in place of which client hosts have their own.
        """
        return None

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        """What of a workload it cannot do over an API, in words; asked before anything starts, so
        that no run ends over it.
        """
        return ()

    @abstractmethod
    def opened(self, site: LoadSite) -> AbstractContextManager[Opened]:
        """The driver, set up, and ended on every path.

        Raises DriverError when it cannot be, or did not end well.
        """


KINDS: Final[Registry[DriverKind]] = Registry("weighbridge.drivers", "driver", kind=DriverKind)
"""All kinds of driver that are installed."""


def loading(layer: Layer | Api) -> tuple[DriverName, ...]:
    """The drivers that load a layer, in the order in which they do."""
    known = {name: kind for name, kind in KINDS.items() if layer in kind.layers}
    return tuple(sorted(known, key=lambda name: (known[name].rank, name)))
