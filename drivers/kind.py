"""Kinds of driver by name: what is known of one before it is opened, and how to open it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, TypeVar

import click

from weighbridge.common.endpoint import Endpoint
from weighbridge.common.host import Host, ProgramHost
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.common.structure import CephPool
from weighbridge.drivers.process import DriverProcess
from weighbridge.drivers.protocol import Driver, Ring, Setup
from weighbridge.results.run.step import DriverTraits, Pass
from weighbridge.suites import (
    PLAIN,
    UNSIGNED,
    VERSIONS,
    Api,
    DriverName,
    Layer,
    Suite,
    Workload,
    signing_label,
)

PATHS: Final = "PYTHONPATH"

SetupKind = TypeVar("SetupKind", bound=Setup)
Own = TypeVar("Own")


@dataclass(frozen=True)
class OpenedDriver:
    """A driver that is set up, with the versions of the programs that make the load."""

    driver: Driver
    versions: Mapping[str, str]


@dataclass(frozen=True)
class ClusterSite:
    """A deployment's Ceph cluster. `host` has the admin's keyring and programs, `mon` the mon."""

    host: Host
    mon: Host
    replicas: int
    cpus: float | None
    """CPUs that `host` may use; None: no limit."""


@dataclass(frozen=True)
class PoolSite:
    """A pool of a Ceph cluster that already ran, and the `host` for `rados bench`."""

    host: ProgramHost
    pool: CephPool
    cpus: float | None
    """CPUs of `host`; None: unknown."""


@dataclass(frozen=True)
class LoadSite:
    """A driver's deployment and work; names begin with `prefix`, and `log` gets its stderr."""

    layout: str
    clients: tuple[Host, ...]
    """Hosts that generate load."""
    suite: Suite
    load_pass: Pass
    prefix: str
    log: Path
    settings: object | None = None
    """As `DriverKind.settings` made them; None: the driver has none."""
    target: Endpoint | None = None
    """Where requests go; None at layers that tools measure."""
    ring: Ring | None = None
    """Where Swift's object servers are, when they are measured without a proxy."""
    cluster: ClusterSite | None = None
    """At Ceph's layers, of a cluster that this suite started."""
    pool: PoolSite | None = None
    """At layer `rados` of a cluster that already ran."""

    def setup(self, kind: type[SetupKind], **own: object) -> SetupKind:
        """The first command to a driver process; `own` are the fields that `kind` adds to Setup."""
        common = {
            "target": self.target,
            "ring": self.ring,
            "bucket_prefix": self.prefix,
            "seed": self.suite.seed,
        }
        return kind.model_validate({**common, "request_timeout_s": self.suite.timeout, **own})

    def settings_as(self, kind: type[Own]) -> Own | None:
        return self.settings if isinstance(self.settings, kind) else None

    def process(
        self, module: str, *arguments: str, look: Callable[[], None] = lambda: None
    ) -> DriverProcess:
        """Start a module as a driver on the first client, and end it. `look`: see DriverProcess."""
        command = self.clients[0].module(module, *arguments)
        targets = () if self.target is None else (self.target,)
        env = {**self.clients[0].variables(targets), **command.env}
        if PATHS in env and PATHS in os.environ:
            # A host that has this machine's files also has the drivers that were found here.
            env[PATHS] = os.pathsep.join((env[PATHS], os.environ[PATHS]))
        return DriverProcess(
            self.clients[0].spawn(command.argv, stderr=self.log, env=env), self.log, look=look
        )


class DriverKind(ABC):
    """One kind of driver, found by its name in `traits` in the group `weighbridge.drivers`."""

    traits: ClassVar[DriverTraits]
    apis: ClassVar[tuple[Api, ...]] = ()
    """APIs of gateways that it can load."""
    layers: ClassVar[tuple[Layer, ...]] = ()
    """Layers below and beside gateways that it loads when a suite asks for them."""
    rank: ClassVar[int] = 0
    """Of several drivers that load a layer, lower ranks go first, and then by name."""
    mark: ClassVar[str] = "x"
    """Last part of its buckets' prefix, one letter at most: two drivers that find one another's
    objects cannot take turns.
    """
    first_bucket: ClassVar[int] = 0
    """Its buckets are `{prefix}-{workload}-{index}`, with indexes from this one on."""
    packages: ClassVar[tuple[str, ...]] = ()
    """Packages whose installed versions are recorded with the machine."""
    runs_tools: ClassVar[bool] = False
    """Whether its host needs the tools that hosts are attested with."""
    takes_ca_file: ClassVar[bool] = True
    """Whether it verifies https by a given CA: one that no machine trusts by itself."""
    spreads: ClassVar[bool] = False
    """Whether its workers can use several endpoints of a gateway."""
    signs: ClassVar[bool] = False
    """Whether its S3 requests are signed as a workload's `signing` says, and ask for its
    `encryption`.
    """
    keeps_versions: ClassVar[bool] = False
    """Whether it has buckets keep versions, and knows those of objects (`versions`)."""
    counts_stalls: ClassVar[bool] = False
    """Whether it counts how long its workers wait, as steps with a `fault` need."""
    settles: ClassVar[bool] = False
    """Whether its windows wait for Open."""
    sized_at_start: ClassVar[bool] = False
    """Whether its programs size themselves by the CPUs that they find when they start, as Java:
    limits are then not lifted meanwhile.
    """
    options: ClassVar[tuple[click.Option, ...]] = ()
    """Options it adds to the verbs that run something."""

    def settings(self, given: Mapping[str, object], hidden: Collection[str]) -> Record | None:
        """Its own settings, from the values `given` for its options.

        `hidden` are folders of this machine that client hosts have their own versions of. Raises
        UsageError before anything is started.
        """
        return None

    def unfit(self, workload: Workload, api: Api) -> tuple[str, ...]:
        """What it cannot do of a workload over an API, in words; asked before anything starts."""
        return ()

    @abstractmethod
    def opened(self, site: LoadSite) -> AbstractContextManager[OpenedDriver]:
        """The driver, set up and ended on every path. Raises DriverError when either fails."""


KINDS: Final[Registry[DriverKind]] = Registry("weighbridge.drivers", "driver", kind=DriverKind)
"""All installed kinds of driver."""


def unfit(driver: DriverName, workload: Workload, api: Api) -> tuple[str, ...]:
    """What a driver cannot do of a workload, in words. Raises UsageError if not installed."""
    kind = KINDS.get_or_refuse(driver)
    faults = [*kind.unfit(workload, api)]
    for key, label, only, own in _asked_of_s3(workload):
        leave = f"leave `{key}` ({label}) out"
        if api != "s3":
            faults.append(f"only S3 requests {only}: over {api} {leave}")
        elif not kind.signs:
            faults.append(f"{kind.traits.label} {own}: {leave}")
    if workload.versions and not kind.keeps_versions:
        faults.append(f"{kind.traits.label} does not support versions: leave `{VERSIONS}` out")
    if workload.fault is not None and not kind.counts_stalls:
        faults.append(
            f"{kind.traits.label} does not count how long clients wait: leave `fault` out"
        )
    return tuple(faults)


def _asked_of_s3(workload: Workload) -> Iterator[tuple[str, str, str, str]]:
    """What a workload asks of S3 requests that not all drivers do: its key, its way, what requests
    do, and what those drivers do instead.
    """
    if workload.signed != UNSIGNED:
        yield "signing", signing_label(workload.signed), "are signed", "signs in its own way"
    if workload.encrypted != PLAIN:
        yield "encryption", workload.encrypted, "ask for encryption", "asks for no encryption"


def loading(layer: Layer | Api) -> tuple[DriverName, ...]:
    """The drivers that load a layer, in the order of their turns."""
    known = {name: kind for name, kind in KINDS.items() if layer in kind.layers}
    return tuple(sorted(known, key=lambda name: (known[name].rank, name)))
