"""A study's own parameters at a scale: what layouts get, what hosts must have, what nothing gives.

Each names its place in the study, so that a reader can check it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt, model_validator

from weighbridge.common.quantities import BitsPerS
from weighbridge.common.record import Record
from weighbridge.suites.suite import RadosBenchOptions
from weighbridge.suites.workload import Name

HostRole = Literal["clients", "gateways", "stores", "all"]


class Parameter(Record):
    """A published parameter, and what of a layout or suite has its value."""

    says: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    """Its place in the study: a section, and a number or words to find it by."""
    variants: tuple[Name, ...] = ()
    """The variants that it is of; none: all."""
    set: Annotated[str, Field(pattern=r"^(:[a-z].*)?$")] = ""
    """Changes to their layouts, as the end of a reference: `:pools.data_pg_num=4096`."""
    rados: RadosBenchOptions | None = None
    """Options of `rados bench`, in place of the variant's own."""
    suite: str = ""
    """What of the scale's suite has its value, in words."""

    @property
    def here(self) -> str:
        """What has its value here."""
        words = [self.set.removeprefix(":").replace(":", ", "), self.suite]
        if self.rados is not None:
            given = self.rados.model_dump(exclude_unset=True)
            words.append(", ".join(f"rados bench: {key} {value}" for key, value in given.items()))
        return "; ".join(filter(None, words))

    @model_validator(mode="after")
    def _has_a_place(self) -> Parameter:
        if not (self.set or self.rados or self.suite):
            raise ValueError("needs at least one of set, rados and suite: what has its value?")
        return self


class HostNeed(Record):
    """Something that the study's hosts had, and that hardware must declare to replay it."""

    id: Name
    """For the command line, to accept that hosts lack it: `--despite disks`."""
    says: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    of: HostRole = "stores"
    hosts: PositiveInt | None = None
    """At least so many hosts of this role."""
    disks: PositiveInt | None = None
    """At least so many disks on each."""
    nic: BitsPerS | None = None
    """At least this rate of each NIC, as the hardware file describes it."""
    journal: bool = False
    """The last disk of each is another kind than the first, in a lab by its model."""
    mtu: PositiveInt | None = None
    """Of the network between all hosts."""
    profile: str | None = None
    """Kernel settings of all hosts, by the name of a profile."""

    @model_validator(mode="after")
    def _asks(self) -> HostNeed:
        asked = (self.hosts, self.disks, self.nic, self.mtu, self.profile)
        if not self.journal and all(one is None for one in asked):
            raise ValueError(
                f"{self.id} asks for nothing: hosts, disks, nic, journal, mtu, profile"
            )
        return self


class Lack(Record):
    """Something of the study that nothing here can give, and why."""

    says: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]


class Beside(Record):
    """A pass by one of the study's own tools, on images or files in the same cluster."""

    driver: Name
    """`dd`, `bonnie` or any other driver of this API."""
    api: Literal["rbd", "cephfs"]
    workloads: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Names of workloads among the scale's `tools`."""
    variants: tuple[Name, ...] = ()
    """The variants that it is measured with; none: all that have the layer."""
