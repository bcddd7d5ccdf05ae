"""What a gateway consists of, as far as figures of its layers depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt

from weighbridge.common.layers import StoreLayer
from weighbridge.common.record import Record

Answers = Literal["disk", "data on disk", "page cache", "memory"]
"""What a store has on disk when it acknowledges a write."""
ANSWERS: Final[Mapping[Answers, str]] = {
    "disk": "acknowledges when on disk",
    "data on disk": "acknowledges before the name is on disk",
    "page cache": "acknowledges from the page cache",
    "memory": "acknowledges from memory",
}
"""The same in words."""


class Fragments(Record):
    """Erasure coding: each piece of an object as `data` fragments, and `parity` more, any of which
    replace as many lost ones.
    """

    data: PositiveInt
    parity: PositiveInt

    @property
    def count(self) -> int:
        """How many fragments a piece of an object has."""
        return self.data + self.parity

    @property
    def times(self) -> float:
        """Bytes on disks per byte of a large object."""
        return self.count / self.data

    def __str__(self) -> str:
        return f"{self.data}+{self.parity}"


class Redundancy(Record):
    """How often a store keeps objects: in copies, or in fragments."""

    replicas: PositiveInt
    """Copies of each object; 1 with `fragments`."""
    fragments: Fragments | None = None
    """How objects are erasure coded; None: they are copied."""

    @property
    def times_kept(self) -> float:
        """Bytes on disks per byte of a large object, without journals."""
        return self.replicas if self.fragments is None else self.fragments.times

    @property
    def redundancy(self) -> str:
        """Its number of replicas, or fragments such as `2+1`."""
        return str(self.replicas if self.fragments is None else self.fragments)

    @property
    def redundancy_words(self) -> str:
        """Such as `3 replicas` or `1.5 (erasure coding 2+1)`."""
        if self.fragments is None:
            return f"{self.replicas} replicas"
        return f"{self.fragments.times:.3g} (erasure coding {self.fragments})"


class Structure(Redundancy):
    """The ways of an object through a gateway, by host names.

    It is kept in a run's plan: fields that another version of the suite wrote there are ignored.
    """

    model_config = ConfigDict(extra="ignore")

    entrances: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that clients talk to: the front's, or those of the gateway's daemons."""
    gateways: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of the gateway's daemons."""
    daemons: PositiveInt = 1
    """How many of them there are, over all hosts."""
    front: str | None = None
    """What is in front of them, such as `HAProxy`."""
    stores: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that store objects."""
    disks: dict[str, tuple[NonNegativeInt, ...]]
    """By host, the numbers of the disks that store objects; empty where memory does."""
    journals: dict[str, tuple[NonNegativeInt, ...]] = Field(default_factory=dict)
    """By host, separate disks to which everything is written first."""
    writes: Literal[1, 2] = 1
    """How often each byte is written to its disk: twice if its journal is on it."""
    layer: StoreLayer | None = None
    """The layer of the store itself, where it can be measured without the gateway."""
    answers: Answers | None = None
    """What is on disk when a write is acknowledged; None: not declared."""
    copied_by: Literal["gateway", "store"]
    """Who sends the replicas: the gateway all, or the store that got the first one the others."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host on these ways once, from clients on."""
        return tuple(dict.fromkeys((*self.entrances, *self.gateways, *self.stores)))

    @property
    def times_received(self) -> float:
        """How often its stores receive each byte that is written, from gateways and each other."""
        if self.fragments is None or self.copied_by == "gateway":
            return self.times_kept
        # The store that gets an object keeps one fragment of it, and sends the others on.
        return 1 + (self.fragments.count - 1) / self.fragments.data
