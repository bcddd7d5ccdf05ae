"""Hardware: the hosts of a run with their limits, from one file; layouts only name them."""

from __future__ import annotations

import ipaddress
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from weighbridge.common.quantities import BitsPerS, Bytes, CpuList, Seconds, cpu_numbers
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.gateways.config_text import option_value
from weighbridge.gateways.gateway import RootImage, Say
from weighbridge.gateways.sizing import HostSize
from weighbridge.topologies.disk_models import AnyDiskModel
from weighbridge.topologies.hosts import Hosts

# CPU quotas: microseconds of CPU time in each period (Documentation/scheduler/sched-bwc.rst).


LEAST_QUOTA_US: Final = 1_000
"""The kernel's least quota and period (`min_cfs_quota_period`, kernel/sched/core.c)."""
LONGEST_PERIOD_US: Final = 1_000_000
"""The kernel's longest period (`max_cfs_quota_period`)."""
LEAST_CPUS: Final = LEAST_QUOTA_US / LONGEST_PERIOD_US
DEFAULT_PERIOD_S: Final = 0.01
"""A host that has used up its quota waits for the rest of the period, so at most this long.

With the kernel's and runc's default of 0.1 s a gateway's p90 shows that wait (measured by
`benchmarks/cpu_period.py`, table in docs/cpu-limits.md). Much less gains nothing: the kernel checks
quotas at its ticks, 4 ms apart at 250 Hz.
"""
SLICE: Final = Path("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")
"""How much a CPU takes at once of the quota that its cgroup's CPUs share; of the whole machine."""


@dataclass(frozen=True)
class Quota:
    """`quota_us` of CPU time in each `period_us`."""

    quota_us: int
    period_us: int


def quota_of(cpus: float, period_s: float) -> Quota:
    """The quota of `cpus` CPUs; its period is longer where the kernel would refuse the quota."""
    period_us = round(period_s * 1e6)
    if cpus * period_us < LEAST_QUOTA_US:
        period_us = min(LONGEST_PERIOD_US, math.ceil(LEAST_QUOTA_US / cpus))
    return Quota(quota_us=max(LEAST_QUOTA_US, round(cpus * period_us)), period_us=period_us)


def slice_words(path: Path = SLICE) -> str:
    """The slice of this machine's kernel, such as `5000 us`."""
    try:
        return f"{int(path.read_text())} us"
    except (OSError, ValueError):
        return "not reported by this kernel"


def _device(text: str) -> str:
    if not re.fullmatch(r"/dev/[A-Za-z0-9_./:@+=,-]+", text) or ".." in text.split("/"):
        raise ValueError(
            f"{text!r} is not a device: write its path, such as /dev/disk/by-id/nvme-..."
        )
    return text


DeviceId = Annotated[str, AfterValidator(_device)]


_JUMP_HOST = r"([a-z_][a-z0-9_.-]*@)?(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9][A-Za-z0-9._-]*)(:\d{1,5})?"
JumpHost = Annotated[str, Field(pattern=f"^{_JUMP_HOST}$")]


class Reach(Record):
    """How to reach one real host, where it differs from the hardware's `SshAccess`."""

    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")] | None = None
    """Name or address; None: the host's `address`."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Port of its sshd."""
    user: str | None = None
    """Whom to log in as."""
    jump: JumpHost | None = None
    """The host through which it is reached: `[USER@]HOST[:PORT]`."""


class SshAccess(Record):
    """How to reach real hosts, and where to put files there; `~` is of the command's user."""

    user: str = "root"
    """Needs sudo without a password unless it is root."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    """Port of sshd."""
    key: str | None = None
    """File of the private key; None: ssh-agent's keys, else the files that ssh itself tries. Its
    passphrase, if it has one, is in $WEIGHBRIDGE_SSH_PASSPHRASE.
    """
    jump: JumpHost | None = None
    """The host through which all others are reached: `[USER@]HOST[:PORT]`; None: directly."""
    known_hosts: str = "~/.ssh/known_hosts"
    """The known host keys; a host with no key or another key there is refused."""
    folder: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")] = "/opt/weighbridge"
    """Holds all that deployments put on a host, except changes by `sysctl` and `network`."""
    python: str = "python3"
    """Python 3.9 or later; on clients 3.11 or later."""


class Observed(Record):
    """A host of a cluster that already runs. Its counters are read by a program that ssh's session
    runs; nothing is written, installed or changed there, and no root is needed. A layout may name
    it for `rados bench` (`ceph`).
    """

    ssh: Reach
    """How to log in, at least `{host: NAME}`; the rest is as the hardware's `ssh` says."""
    tier: Literal["gateway", "storage", "shared"] = "storage"
    """What it does: answers clients, keeps data, or both."""
    nic: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,15}$")] | None = None
    """Its network device, such as eth0; None: its traffic is not known."""
    disks: Annotated[tuple[DeviceId, ...], Field(max_length=100)] = ()
    """Devices of its disks with data, such as /dev/nvme0n1."""


class MachineSize(Record):
    """What a real host has."""

    cpus: Annotated[int, Field(ge=1, le=10**5)]
    """Those that Linux counts: two a core with SMT."""
    memory: Annotated[Bytes, Field(ge=64 * 2**20)]


# Kernel settings: those that are published with a result, and those of a study.
RECORDED: Final = (
    "kernel.osrelease",
    "net.core.somaxconn",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_tw_reuse",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.swappiness",
)
"""Settings that must be published with a result for a fair comparison."""

STUDY_2014: Final[dict[str, str]] = {
    "net.ipv4.tcp_timestamps": "0",
    "net.ipv4.tcp_sack": "0",
    "net.ipv4.tcp_low_latency": "1",
    "net.core.netdev_max_backlog": "250000",
    "net.core.rmem_max": "16777216",
    "net.core.wmem_max": "16777216",
    "net.core.rmem_default": "16777216",
    "net.core.wmem_default": "16777216",
    "net.core.optmem_max": "16777216",
    "net.ipv4.tcp_rmem": "4096 87380 16777216",
    "net.ipv4.tcp_wmem": "4096 65536 16777216",
    "net.ipv4.tcp_tw_reuse": "1",
}
"""What the study of 2014 set on all its nodes.

Linux has no tcp_tw_recycle since 4.12; the study's MTU of 9000 is set by `network`.
"""


HostName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]

Sysctl = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[A-Za-z0-9_/-]+)+$")]


def _known_kind(name: str) -> str:
    return HOSTS.known(name)


class Disk(Record):
    """A disk of a host. Bandwidths are bytes a second each way; None: not limited."""

    size: Annotated[Bytes, Field(ge=300 * 2**20)] | None = None
    """For the lab; mkfs.xfs accepts no less. A real disk has its own size."""
    id: DeviceId | None = None
    """For a real host: a name that other disks do not change, such as /dev/disk/by-id/nvme-..."""
    wipe: bool = False
    """Whether a real disk may be erased. Otherwise one that holds anything is refused."""
    bandwidth: Annotated[Bytes, Field(gt=0)] | None = None
    """Bytes a second, each way: `200MB`."""
    iops: Annotated[int, Field(gt=0, le=10**9)] | None = None
    """Requests a second, each way."""
    model: AnyDiskModel | None = None
    """A model of how long the lab's disk takes, instead of limits; see `disk_models`. None: as long
    as this machine's own disk.
    """


class Nic(Record):
    """The NIC of a host; `10Gbit` in a file is short for `{rate: 10Gbit}`."""

    rate: BitsPerS | None = None
    """Its rate each way: a limit in the lab; a real host's is only described."""
    delay: Annotated[Seconds, Field(le=10)] = 0.0
    """The delay of what it sends, in the lab; a round trip has the delays of both ends."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        return {"rate": value} if isinstance(value, (str, int)) else value

    @model_validator(mode="after")
    def _says_something(self) -> Nic:
        if self.rate is None and not self.delay:
            raise ValueError("needs a rate, a delay, or both")
        return self


class HostSpec(Record):
    """Limits of one host. None: not limited."""

    cpus: Annotated[float, Field(ge=LEAST_CPUS, le=1024)] | None = None
    """A quota of CPU time, in periods of the hardware's `cpu_period`."""
    cpuset: CpuList | None = None
    """For the lab: its own CPUs, such as `2-3,5`: from its start it runs only on them. No other
    host may have them; hosts without a list run on all CPUs.
    """
    memory: Annotated[Bytes, Field(ge=64 * 2**20)] | None = None
    """Limit of all its processes and their page cache: `2560MiB`."""
    nic: Nic | None = None
    disks: Annotated[tuple[Disk, ...], Field(max_length=100)] = ()
    address: Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")] | None = None
    """For a real host: its address on the network between hosts, where services listen."""
    ssh: Reach | None = None
    """For a real host: how to log in, where that differs from the hardware's `ssh`."""
    machine: MachineSize | None = None
    """For a real host: its CPUs and memory, from which settings follow. None: it is asked before
    anything is started.
    """

    @property
    def own_cpus(self) -> tuple[int, ...]:
        return () if self.cpuset is None else cpu_numbers(self.cpuset)

    @property
    def most_cpus(self) -> float | None:
        """How much CPU it has: its quota, else the CPUs of its own. None: not limited."""
        return self.cpus if self.cpuset is None or self.cpus is not None else len(self.own_cpus)

    @property
    def size(self) -> HostSize:
        """What it has for services: its limits, or all of its machine."""
        cpus, memory = self.most_cpus, self.memory
        if self.machine is not None:
            cpus = min(cpus or self.machine.cpus, self.machine.cpus)
            memory = min(memory or self.machine.memory, self.machine.memory)
        return HostSize(cpus=cpus, memory_bytes=memory, disks=len(self.disks))


class Network(Record):
    """The network between the hosts."""

    mtu: Annotated[int, Field(ge=576, le=65535)] = 1500
    """Real hosts with another MTU are refused, unless `set` changes it."""
    set: bool = False
    """Whether real hosts' NICs get this MTU while a deployment runs, and their own afterwards."""


class Hardware(Record):
    """All hosts of a run. `clients` make the load; layouts place services on the others."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    """What runs and reports call it."""
    about: str = ""
    """One sentence, shown in reports."""
    kind: Annotated[str, AfterValidator(_known_kind)]
    """lab: containers with limits. ssh: real hosts. fake: processes, for tests. existing: this
    machine, as the client of a gateway that already runs.
    """
    ssh: SshAccess | None = None
    """How real hosts are reached."""
    profile: Literal["study-2014"] | None = None
    """Kernel settings of a study, which real hosts get while a deployment runs."""
    sysctl: dict[Sysctl, Annotated[str, AfterValidator(option_value)]] = Field(default_factory=dict)
    """Kernel settings one by one, also while a deployment runs."""
    network: Network = Network()
    cpu_period: Annotated[Seconds, Field(ge=0.001, le=1)] = DEFAULT_PERIOD_S
    """Period of the hosts' CPU quotas: a host that has used up its quota waits for the rest of it.
    Hosts with so little CPU that the quota would be below the kernel's least of 1 ms get a longer
    period.
    """
    clients: Annotated[tuple[HostName, ...], Field(min_length=1)] = ("client-1",)
    """Hosts that make the load, together."""
    hosts: Annotated[dict[HostName, HostSpec], Field(min_length=1, max_length=200)]
    observed: Annotated[dict[HostName, Observed], Field(max_length=200)] = Field(
        default_factory=dict
    )
    """Of kind `existing`: hosts of the gateway's cluster whose counters are read during steps."""

    @model_validator(mode="after")
    def _consistent(self) -> Hardware:
        faults = [
            *self._client_faults(),
            *self._kind_faults(),
            *self._cpu_faults(),
            *self._duplicate_faults(),
        ]
        if faults:
            raise ValidationError.from_exception_data(
                "Hardware", [_details(path, message) for path, message in faults]
            )
        return self

    @property
    def of(self) -> HostKind:
        return HOSTS[self.kind]

    @property
    def sites(self) -> Mapping[str, HostSite]:
        """Addresses and disks that the hosts would have, to render layouts that do not run."""
        sites = {}
        for index, (name, spec) in enumerate(self.hosts.items()):
            # Disks of hosts that are made have names by their order.
            disks = tuple(disk.id or f"/dev/wb{number}" for number, disk in enumerate(spec.disks))
            sites[name] = HostSite(name, self.of.address(index, spec), disks)
        return sites

    @property
    def sizes(self) -> Mapping[str, HostSize]:
        return {name: spec.size for name, spec in self.hosts.items()}

    @property
    def access(self) -> SshAccess:
        """How to reach real hosts, also if the file does not say."""
        return self.ssh or SshAccess()

    @property
    def settings(self) -> dict[str, str]:
        return {**(STUDY_2014 if self.profile == "study-2014" else {}), **self.sysctl}

    def _client_faults(self) -> Iterator[FileFault]:
        for index, name in enumerate(self.clients):
            if name not in self.hosts:
                yield (
                    ("clients", index),
                    f"client {name!r} is not one of the hosts: {', '.join(self.hosts)}",
                )

    def _kind_faults(self) -> Iterator[FileFault]:
        real = self.of.by_ssh
        only_real = "is only for real hosts (kind: ssh)"
        alien = [] if real else ["profile", "sysctl", *([] if self.observed else ["ssh"])]
        yield from (((key,), only_real) for key in alien if getattr(self, key))
        for name in self.observed:
            if not self.of.for_running_gateways:
                yield ("observed", name), "is only for gateways that already run (kind: existing)"
            if name in self.hosts:
                yield ("observed", name), f"{name!r} is one of the hosts: choose another name"
        if not real and self.network.set:
            yield ("network", "set"), only_real
        for name, spec in self.hosts.items():
            if self.of.for_running_gateways and (len(self.hosts) > 1 or spec != HostSpec()):
                message = f"hardware of kind {self.kind} is this machine: one host without limits"
                yield ("hosts", name), f"{message}, not {name!r}"
            if real and spec.address is None:
                message = f"host {name!r} needs the address of its NIC on the network between hosts"
                yield ("hosts", name), message
            for key in ("address", "ssh", "machine"):
                if not real and getattr(spec, key) is not None:
                    yield ("hosts", name, key), only_real
            if not self.of.contained and spec.nic is not None and spec.nic.delay:
                yield ("hosts", name, "nic", "delay"), "is only for hosts of kind lab"
            for index, disk in enumerate(spec.disks):
                where = ("hosts", name, "disks", index)
                if real and disk.id is None:
                    yield where, "a real disk needs its id, such as /dev/disk/by-id/nvme-..."
                if real and disk.size is not None:
                    yield (*where, "size"), "a real disk has its own size"
                if not real and disk.size is None:
                    yield where, "a disk needs a size"
                if not real and disk.id is not None:
                    yield (*where, "id"), only_real
                if not real and disk.wipe:
                    yield (*where, "wipe"), only_real
                if disk.model is not None:
                    yield from self._model_faults(disk, where)

    def _model_faults(self, disk: Disk, where: tuple[str | int, ...]) -> Iterator[FileFault]:
        if not self.of.contained:
            yield (*where, "model"), "is only for lab hosts: other disks take their own time"
        for key in ("bandwidth", "iops"):
            if getattr(disk, key) is not None:
                yield (*where, key), "a disk with a model is limited by its figures: leave this out"

    def _cpu_faults(self) -> Iterator[FileFault]:
        first: dict[int, str] = {}
        for name, spec in self.hosts.items():
            where = ("hosts", name, "cpuset")
            if spec.cpuset is not None and not self.of.contained:
                yield where, "is only for hosts of kind lab"
            if spec.cpuset is not None and (spec.cpus or 0) > len(spec.own_cpus):
                yield (
                    ("hosts", name, "cpus"),
                    f"{spec.cpus:g} CPUs do not fit into its own CPUs, {spec.cpuset}",
                )
            shared = [cpu for cpu in spec.own_cpus if cpu in first]
            if shared:
                message = f"{first[shared[0]]!r} and {name!r} both have CPU {shared[0]}"
                yield where, f"{message}: each CPU can belong to only one host"
            first |= dict.fromkeys(spec.own_cpus, name)

    def _duplicate_faults(self) -> Iterator[FileFault]:
        first: dict[str, str] = {}
        for name, spec in self.hosts.items():
            if spec.address is not None:
                where = ("hosts", name, "address")
                try:
                    address = str(ipaddress.ip_address(spec.address))
                except ValueError:
                    message = f"{spec.address!r} is not an address; a host's name is written as"
                    yield where, f"{message} `ssh: {{host: NAME}}`"
                    continue
                if address in first:
                    yield where, f"{first[address]!r} and {name!r} have the same address {address}"
                first.setdefault(address, name)
            ids = [disk.id for disk in spec.disks]
            for index, one in enumerate(ids):
                if one is not None and one in ids[:index]:
                    yield ("hosts", name, "disks", index, "id"), f"{name!r} has {one} twice"


FileFault = tuple[tuple[str | int, ...], str]
"""A place in the file, and what is wrong with it."""


def _details(path: tuple[str | int, ...], message: str) -> InitErrorDetails:
    # The message is passed as a value: pydantic would fill in braces of a template.
    return InitErrorDetails(
        type=PydanticCustomError("misfit", "{what}", {"what": message}), loc=path, input=None
    )


@dataclass(frozen=True)
class HostSite:
    """Name, address and disks that a host of this hardware has when it runs."""

    name: str
    address: str
    disks: tuple[str, ...]


@dataclass(frozen=True)
class HostsRequest:
    """The hosts that a deployment needs of a hardware file."""

    hardware: Hardware
    names: Sequence[str]
    image: RootImage
    """The root of all hosts but the clients; without packages it is this machine's own root."""
    images: Path
    """The folder of images."""
    state: Path
    """A folder that does not survive a reboot."""
    tools: bool
    """Whether to install the measuring tools."""
    cuts: bool = False
    """Whether their power will be cut at one instant (`Hosts.power_cuts`)."""


class HostKind(ABC):
    """A kind of hosts: where they are, and how to start those of a deployment.

    Other code asks these flags, never the name of the kind.
    """

    contained: ClassVar[bool] = False
    """Its hosts are containers that share this machine's CPUs and have a network of their own."""
    cuts_power: ClassVar[bool] = False
    """Whether the power of its hosts can be cut."""
    by_ssh: ClassVar[bool] = False
    """Its hosts are real and reached as `SshAccess` says."""
    for_running_gateways: ClassVar[bool] = False
    """Its only host is the client of gateways that already run."""
    refuses: ClassVar[str] = ""
    """Why its hosts cannot be measured alone, as the end of a sentence; empty: they can."""
    passing: ClassVar[str] = ""
    """Why a deployment cannot outlive its command, as the end of a sentence; empty: it can."""

    @property
    def measurable(self) -> bool:
        """Whether its hosts are measured: only those with resources of their own are."""
        return not self.refuses

    @abstractmethod
    def address(self, index: int, spec: HostSpec) -> str:
        """The address that a host would have, the `index`-th of its hardware."""

    def sized(self, hardware: Hardware) -> Hardware:
        """The hardware with sizes that only its hosts know, asked of them. Raises TargetError."""
        return hardware

    def build(self, asked: Sequence[HostsRequest], say: Say) -> None:  # noqa: B027 - most kinds have no images
        """Build in turn what `prepared` would build of these requests. Raises as `prepared`."""

    @abstractmethod
    def prepared(self, asked: HostsRequest, say: Say) -> Callable[[str, Path], Hosts]:
        """Build images, and return what starts a deployment's hosts, given its label and folder.

        Building is not part of the time that hosts take to start. Both raise UsageError,
        MissingPrerequisite, CommandFailed or TargetError.
        """


HOSTS: Registry[HostKind] = Registry(
    "weighbridge.hosts",
    "kind of host",
    own={
        "lab": "weighbridge.topologies.lab.kind:LAB",
        "ssh": "weighbridge.topologies.ssh.kind:SSH",
        "fake": "weighbridge.topologies.fake:FAKE",
        "existing": "weighbridge.topologies.fake:THIS_MACHINE",
    },
)
"""Kinds of hosts by their names in hardware files."""
