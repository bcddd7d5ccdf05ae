"""Hardware: the hosts of a run with their limits, from one file; layouts only name them."""

from __future__ import annotations

import ipaddress
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from weighbridge.common.quantities import BitsPerS, Bytes, Seconds
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.gateways.config_text import option_value
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.topologies.hosts import Hosts
from weighbridge.topologies.quota import DEFAULT_PERIOD_S, LEAST_CPUS
from weighbridge.topologies.sysctls import STUDY_2014

HostName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]

Sysctl = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[A-Za-z0-9_/-]+)+$")]


def _device(text: str) -> str:
    if not re.fullmatch(r"/dev/[A-Za-z0-9_./:@+=,-]+", text) or ".." in text.split("/"):
        raise ValueError(
            f"{text!r} is not a device: write its path, such as /dev/disk/by-id/nvme-..."
        )
    return text


def _known_kind(name: str) -> str:
    return HOSTS.known(name)


DeviceId = Annotated[str, AfterValidator(_device)]


class Disk(Record):
    """A disk of a host.

    Bandwidths are bytes a second, the same for reading and writing; None: not limited.
    """

    size: Annotated[Bytes, Field(ge=300 * 2**20)] | None = None
    """Of a lab host's disk, at least 300 MiB: mkfs.xfs makes nothing smaller.

    A real one is as large as it is.
    """
    id: DeviceId | None = None
    """Of a real host's disk, such as /dev/disk/by-id/nvme-...: a name that stays its own when disks
    come up in another order.
    """
    wipe: bool = False
    """Whether all that is on a real disk may be lost. Otherwise one that holds anything is refused.
    """
    bandwidth: Annotated[Bytes, Field(gt=0)] | None = None
    iops: Annotated[int, Field(gt=0, le=10**9)] | None = None


class Reach(Record):
    """How one real host is reached; what is not said is as `SshAccess` says of all."""

    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")] | None = None
    """Name or address; None: the host's `address`."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    user: str | None = None


class SshAccess(Record):
    """How real hosts are reached, and where they keep what is put there.

    Paths with `~` are of the user who runs the command.
    """

    user: str = "root"
    """Who is not root is to have sudo without a password."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    key: str | None = None
    """File of the private key; None: ssh-agent's keys, else those that ssh itself would try. Its
    passphrase, where it has one, is in $WEIGHBRIDGE_SSH_PASSPHRASE."""
    known_hosts: str = "~/.ssh/known_hosts"
    """Where the hosts' own keys are: one that is not there, or is another, is not talked to."""
    folder: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")] = "/opt/weighbridge"
    """Below it is all that deployments put on a host, but what they are told to change by `sysctl`
    and `network`.
    """
    python: str = "python3"
    """Its Python, 3.9 or later; on clients 3.11 or later."""


class HostSpec(Record):
    """Limits of one host. None: not limited."""

    cpus: Annotated[float, Field(ge=LEAST_CPUS, le=1024)] | None = None
    """A quota of CPU time, in periods of the hardware's `cpu_period`."""
    memory: Annotated[Bytes, Field(ge=64 * 2**20)] | None = None
    nic: BitsPerS | None = None
    """Rate of its NIC: in a lab it is limited to that; of a real host it says what the NIC can do,
    and limits nothing.
    """
    disks: Annotated[tuple[Disk, ...], Field(max_length=100)] = ()
    address: Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")] | None = None
    """Of a real host: its address on the network between the hosts, where all that is started
    listens.
    """
    ssh: Reach | None = None
    """Of a real host: where its sshd answers and who logs in, as far as that differs from the
    hardware's `ssh`.
    """


class Network(Record):
    """The network between the hosts."""

    mtu: Annotated[int, Field(ge=576, le=65535)] = 1500
    """Of real hosts it is looked at, and one that has another is refused, unless it is to be `set`.
    """
    set: bool = False
    """Whether real hosts' NICs are given this MTU while a deployment stands, and their own again
    afterwards.
    """


class Hardware(Record):
    """All hosts of a run.

    `client` hosts make the load; the others are there to be placed upon by layouts.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    about: str = ""
    kind: Annotated[str, AfterValidator(_known_kind)]
    """lab: containers with limits. ssh: real hosts. fake: pretended, for tests. existing: this
    machine alone, as the client of what already runs."""
    ssh: SshAccess | None = None
    """How real hosts are reached."""
    profile: Literal["study-2014"] | None = None
    """Kernel settings that real hosts are given while a deployment stands, and their own again
    afterwards: the study's.
    """
    sysctl: dict[Sysctl, Annotated[str, AfterValidator(option_value)]] = Field(default_factory=dict)
    """The same, one by one."""
    network: Network = Network()
    cpu_period: Annotated[Seconds, Field(ge=0.001, le=1)] = DEFAULT_PERIOD_S
    """Period of the hosts' CPU quotas: a host that has used up its own waits for the rest of it. A
    quota of less than 1 ms is none that a kernel takes: a host of so little CPU has a longer
    period."""
    clients: Annotated[tuple[HostName, ...], Field(min_length=1)] = ("client-1",)
    hosts: Annotated[dict[HostName, HostSpec], Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _known(self) -> Hardware:
        faults = [*self._strangers(), *self._unfit(), *self._twice()]
        if faults:
            raise ValidationError.from_exception_data(
                "Hardware", [_told(where, what) for where, what in faults]
            )
        return self

    @property
    def of(self) -> HostKind:
        """What kind of hosts they are."""
        return HOSTS[self.kind]

    @property
    def sites(self) -> Mapping[str, HostSite]:
        """Where the hosts would be, by name."""
        return self.of.sites(self)

    @property
    def access(self) -> SshAccess:
        """How real hosts are reached, where the file says nothing of it too."""
        return self.ssh or SshAccess()

    @property
    def settings(self) -> dict[str, str]:
        """All kernel settings that real hosts are given."""
        return {**(STUDY_2014 if self.profile == "study-2014" else {}), **self.sysctl}

    def _strangers(self) -> Iterator[Misfit]:
        for index, name in enumerate(self.clients):
            if name not in self.hosts:
                yield (
                    ("clients", index),
                    f"client {name!r} is not one of the hosts: {', '.join(self.hosts)}",
                )

    def _unfit(self) -> Iterator[Misfit]:
        """What is said of hosts that are of another kind."""
        real = self.of.by_ssh
        for key in () if real else ("ssh", "profile", "sysctl"):
            if getattr(self, key):
                yield (key,), "is of real hosts (kind: ssh)"
        if not real and self.network.set:
            yield ("network", "set"), "is of real hosts (kind: ssh)"
        for name, spec in self.hosts.items():
            if self.of.of_what_runs and (len(self.hosts) > 1 or spec != HostSpec()):
                yield (
                    ("hosts", name),
                    (
                        f"hardware of kind {self.kind} is this machine as it is: one host without "
                        f"limits, not {name!r}"
                    ),
                )
            if real and spec.address is None:
                yield (
                    ("hosts", name),
                    (
                        f"host {name!r} needs an address: that of its NIC on the network between the "
                        "hosts"
                    ),
                )
            for key in ("address", "ssh"):
                if not real and getattr(spec, key) is not None:
                    yield ("hosts", name, key), "is of real hosts (kind: ssh)"
            for index, disk in enumerate(spec.disks):
                where = ("hosts", name, "disks", index)
                if real and disk.id is None:
                    yield (
                        where,
                        "a real host's disk is named by its id, such as /dev/disk/by-id/nvme-...",
                    )
                if real and disk.size is not None:
                    yield (*where, "size"), "a real host's disk has the size that it has"
                if not real and disk.size is None:
                    yield where, "a disk needs a size"
                if not real and disk.id is not None:
                    yield (*where, "id"), "is of real hosts (kind: ssh)"
                if not real and disk.wipe:
                    yield (*where, "wipe"), "is of real hosts (kind: ssh)"

    def _twice(self) -> Iterator[Misfit]:
        """What two have that can be of one alone."""
        first: dict[str, str] = {}
        for name, spec in self.hosts.items():
            if spec.address is not None:
                try:
                    address = str(ipaddress.ip_address(spec.address))
                except ValueError:
                    yield (
                        ("hosts", name, "address"),
                        (
                            f"{spec.address!r} is not an address; a name of the host is `ssh: {{host: "
                            "NAME}`"
                        ),
                    )
                    continue
                if address in first:
                    yield (
                        ("hosts", name, "address"),
                        f"{first[address]!r} and {name!r} have the same address {address}",
                    )
                first.setdefault(address, name)
            ids = [disk.id for disk in spec.disks]
            for index, one in enumerate(ids):
                if one is not None and one in ids[:index]:
                    yield ("hosts", name, "disks", index, "id"), f"{name!r} has {one} twice"


Misfit = tuple[tuple[str | int, ...], str]
"""Where something is in the file, and what is wrong with it."""


def _told(where: tuple[str | int, ...], what: str) -> InitErrorDetails:
    # Braces are filled in by pydantic where it is given a mapping: what is said may have some.
    return InitErrorDetails(
        type=PydanticCustomError("misfit", "{what}", {"what": what}), loc=where, input=None
    )


@dataclass(frozen=True)
class HostSite:
    """Name, address and disks that a host of this hardware gets when it is up."""

    name: str
    address: str
    disks: tuple[str, ...]


@dataclass(frozen=True)
class HostsRequest:
    """The hosts that a deployment wants of a hardware file."""

    hardware: Hardware
    names: Sequence[str]
    image: RootImage
    """What all but the clients run on; one without packages is this machine's own root."""
    images: Path
    """Where images are kept."""
    state: Path
    """For what must not survive a reboot."""
    tools: bool
    """With the programs that hosts are attested with."""


class HostKind(ABC):
    """A kind of hosts: where they are, and how those of a deployment come up.

    Flags say what sets it apart, never its name.
    """

    contained: ClassVar[bool] = False
    """Its hosts are containers of this machine, which share its CPUs and are on a network of their
    own.
    """
    by_ssh: ClassVar[bool] = False
    """Its hosts are real ones, reached as `SshAccess` says."""
    of_what_runs: ClassVar[bool] = False
    """Its only host is the client of gateways that already run."""
    refuses: ClassVar[str] = ""
    """Why its hosts cannot be measured alone, as the end of a sentence about them; empty: they can,
    and are attested.
    """
    passing: ClassVar[str] = ""
    """Why nothing is left of a deployment when its command ends, as such an end; empty: it can be
    left up.
    """

    @property
    def measurable(self) -> bool:
        """Whether what its hosts can do is measured: others have nothing that is theirs alone."""
        return not self.refuses

    @abstractmethod
    def sites(self, hardware: Hardware) -> Mapping[str, HostSite]:
        """Where the hosts would be, by name, for showing configuration files of a layout that is
        not up.
        """

    @abstractmethod
    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        """What brings up the hosts of a deployment, given its label and a folder of its own.

        Images are built before this returns: that is no part of the time that hosts take. Both
        raise UsageError, MissingMeans, CommandFailed or TargetError.
        """


HOSTS: Registry[HostKind] = Registry(
    "weighbridge.hosts",
    "kind of host",
    own={
        "lab": "weighbridge.topologies.lab.kind:LAB",
        "ssh": "weighbridge.topologies.ssh.kind:SSH",
        "fake": "weighbridge.topologies.fake:FAKE",
        "existing": "weighbridge.topologies.this_machine:THIS_MACHINE",
    },
)
"""Every kind of host by the name hardware files use."""
