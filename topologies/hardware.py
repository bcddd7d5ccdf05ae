"""Hardware: the hosts of a run with their limits, from one file; layouts only name them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ground.quantities import BitsPerS, Bytes
from ground.record import Record

HostName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]


class Disk(Record):
    """A disk of a host. Bandwidths are bytes a second, the same for reading and writing; None: not limited."""

    size: Annotated[Bytes, Field(ge=300 * 2**20)]
    """At least 300 MiB: mkfs.xfs makes nothing smaller."""
    bandwidth: Annotated[Bytes, Field(gt=0)] | None = None
    iops: Annotated[int, Field(gt=0)] | None = None


class HostSpec(Record):
    """Limits of one host. None: not limited."""

    cpus: Annotated[float, Field(gt=0, le=1024)] | None = None
    memory: Annotated[Bytes, Field(ge=64 * 2**20)] | None = None
    nic: BitsPerS | None = None
    disks: tuple[Disk, ...] = ()


class Network(Record):
    """The network between the hosts."""

    mtu: Annotated[int, Field(ge=576, le=65535)] = 1500


class Hardware(Record):
    """All hosts of a run. `client` hosts make the load; the others are there to be placed upon by layouts."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    about: str = ""
    kind: Literal["lab", "fake", "existing"]
    """lab: containers with limits. fake: pretended, for tests. existing: this machine alone, as the client of what already runs."""
    network: Network = Network()
    clients: Annotated[tuple[HostName, ...], Field(min_length=1)] = ("client-1",)
    hosts: Annotated[dict[HostName, HostSpec], Field(min_length=1, max_length=200)]

    @model_validator(mode="after")
    def _known(self) -> Hardware:
        for name in self.clients:
            if name not in self.hosts:
                raise ValueError(f"client {name!r} is not one of the hosts: {', '.join(self.hosts)}")
        if self.kind == "existing":
            for name, spec in self.hosts.items():
                if len(self.hosts) > 1 or spec != HostSpec():
                    raise ValueError(f"hardware of kind existing is this machine as it is: one host without limits, not {name!r}")
        return self
