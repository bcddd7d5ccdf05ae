"""Hardware: the hosts of a run with their limits, from one file; layouts only name them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from ground.quantities import BitsPerS, Bytes
from ground.record import Record

HostName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]


Kind = Literal["lab", "ssh", "fake", "existing"]
Sysctl = Annotated[str, Field(pattern=r"^[a-z0-9_]+(\.[A-Za-z0-9_/-]+)+$")]


class Disk(Record):
    """A disk of a host. Bandwidths are bytes a second, the same for reading and writing; None: not limited."""

    size: Annotated[Bytes, Field(ge=300 * 2**20)] | None = None
    """Of a lab host's disk, at least 300 MiB: mkfs.xfs makes nothing smaller. A real one is as large as it is."""
    id: Annotated[str, Field(pattern=r"^/dev/[A-Za-z0-9_./:@+=,-]+$")] | None = None
    """Of a real host's disk, such as /dev/disk/by-id/nvme-...: a name that stays its own when disks come up in another order."""
    wipe: bool = False
    """Whether all that is on a real disk may be lost. Otherwise one that holds anything is refused."""
    bandwidth: Annotated[Bytes, Field(gt=0)] | None = None
    iops: Annotated[int, Field(gt=0)] | None = None


class Reach(Record):
    """How one real host is reached; what is not said is as `Access` says of all."""

    host: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$")] | None = None
    """Name or address; None: the host's `address`."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    user: str | None = None


class Access(Record):
    """How real hosts are reached, and where they keep what is put there. Paths with `~` are of the user who runs the command."""

    user: str = "root"
    """Who is not root is to have sudo without a password."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    key: str | None = None
    """File of the private key; None: ssh-agent's keys, else those that ssh itself would try. Its passphrase, where it has one, is
    in $WEIGHBRIDGE_SSH_PASSPHRASE."""
    known_hosts: str = "~/.ssh/known_hosts"
    """Where the hosts' own keys are: one that is not there, or is another, is not talked to."""
    folder: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._/-]+$")] = "/opt/weighbridge"
    """Below it is all that deployments put on a host, but what they are told to change by `sysctl` and `network`."""
    python: str = "python3"
    """Its Python, 3.9 or later; on clients 3.11 or later."""


class HostSpec(Record):
    """Limits of one host. None: not limited."""

    cpus: Annotated[float, Field(gt=0, le=1024)] | None = None
    memory: Annotated[Bytes, Field(ge=64 * 2**20)] | None = None
    nic: BitsPerS | None = None
    """Rate of its NIC: in a lab it is limited to that; of a real host it says what the NIC can do, and limits nothing."""
    disks: tuple[Disk, ...] = ()
    address: Annotated[str, Field(pattern=r"^[0-9A-Fa-f.:]+$")] | None = None
    """Of a real host: its address on the network between the hosts, where all that is started listens."""
    ssh: Reach | None = None
    """Of a real host: where its sshd answers and who logs in, as far as that differs from the hardware's `ssh`."""


class Network(Record):
    """The network between the hosts."""

    mtu: Annotated[int, Field(ge=576, le=65535)] = 1500
    """Of real hosts it is looked at, and one that has another is refused, unless it is to be `set`."""
    set: bool = False
    """Whether real hosts' NICs are given this MTU while a deployment stands, and their own again afterwards."""


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
"""What the study of 2014 set on all its nodes. Its tcp_tw_recycle is gone from Linux since 4.12; its MTU was 9000 (`network`)."""


class Hardware(Record):
    """All hosts of a run. `client` hosts make the load; the others are there to be placed upon by layouts."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    about: str = ""
    kind: Kind
    """lab: containers with limits. ssh: real hosts. fake: pretended, for tests. existing: this machine alone, as the client of
    what already runs."""
    ssh: Access | None = None
    """How real hosts are reached."""
    profile: Literal["study-2014"] | None = None
    """Kernel settings that real hosts are given while a deployment stands, and their own again afterwards: the study's."""
    sysctl: dict[Sysctl, Annotated[str, Field(pattern=r"^[^\n]*$")]] = Field(default_factory=dict)
    """The same, one by one."""
    network: Network = Network()
    clients: Annotated[tuple[HostName, ...], Field(min_length=1)] = ("client-1",)
    hosts: Annotated[dict[HostName, HostSpec], Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _known(self) -> Hardware:
        for name in self.clients:
            if name not in self.hosts:
                raise ValueError(f"client {name!r} is not one of the hosts: {', '.join(self.hosts)}")
        self._fits_kind()
        if self.kind == "existing":
            for name, spec in self.hosts.items():
                if len(self.hosts) > 1 or spec != HostSpec():
                    raise ValueError(f"hardware of kind existing is this machine as it is: one host without limits, not {name!r}")
        return self

    @property
    def access(self) -> Access:
        """How real hosts are reached, where the file says nothing of it too."""
        return self.ssh or Access()

    @property
    def settings(self) -> dict[str, str]:
        """All kernel settings that real hosts are given."""
        return {**(STUDY_2014 if self.profile == "study-2014" else {}), **self.sysctl}

    def _fits_kind(self) -> None:
        """Raise ValueError for what is said of hosts that are of another kind."""
        real = self.kind == "ssh"
        for name, spec in self.hosts.items():
            if real and spec.address is None:
                raise ValueError(f"host {name!r} needs an address: that of its NIC on the network between the hosts")
            if not real and (spec.address is not None or spec.ssh is not None):
                raise ValueError(f"host {name!r}: address and ssh are of real hosts (kind: ssh)")
            for disk in spec.disks:
                if real and (disk.id is None or disk.size is not None):
                    raise ValueError(f"host {name!r}: a real host's disk is named by its id, and has the size that it has")
                if not real and (disk.size is None or disk.id is not None or disk.wipe):
                    raise ValueError(f"host {name!r}: a disk needs a size; id and wipe are of real hosts (kind: ssh)")
        if not real and (self.ssh or self.profile or self.sysctl or self.network.set):
            raise ValueError("ssh, profile, sysctl and network.set are of real hosts (kind: ssh)")
        addresses = [spec.address for spec in self.hosts.values() if spec.address is not None]
        for address in addresses:
            if addresses.count(address) > 1:
                raise ValueError(f"two hosts have the address {address}")
