"""What a gateway consists of, as far as figures of its layers depend on it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt

from weighbridge.common.layers import StoreLayer
from weighbridge.common.record import Record


class Structure(Record):
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
    replicas: PositiveInt
    layer: StoreLayer | None = None
    """The layer of the store itself, where it can be measured without the gateway."""
    copied_by: Literal["gateway", "store"]
    """Who sends the replicas: the gateway all, or the store that got the first one the others."""
