"""What a gateway is made of, so far as figures of its layers hang on it: where it keeps objects,
how often, and who sends them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, NonNegativeInt, PositiveInt

from weighbridge.common.layers import StoreLayer
from weighbridge.common.record import Record


class Structure(Record):
    """The ways that an object takes through a gateway, by the names of its hosts. It is kept in the
    plan of a run: fields that another version of this suite wrote there are passed over.
    """

    model_config = ConfigDict(extra="ignore")

    entrances: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that clients talk to: the front's, or those of the gateway's daemons."""
    gateways: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of the gateway's daemons."""
    daemons: PositiveInt = 1
    """How many share the work, over all hosts."""
    front: str | None = None
    """What stands before them, such as `HAProxy`."""
    stores: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts that keep objects."""
    disks: dict[str, tuple[NonNegativeInt, ...]]
    """By host, the numbers of the disks that objects are kept on; empty where they are kept in
    memory.
    """
    journals: dict[str, tuple[NonNegativeInt, ...]] = Field(default_factory=dict)
    """By host, disks of their own that everything is written to before."""
    writes: Literal[1, 2] = 1
    """How often each byte goes to its disk: twice where its journal is on it."""
    replicas: PositiveInt
    layer: StoreLayer | None = None
    """The layer that is the store itself, where it can be measured without the gateway."""
    copied_by: Literal["gateway", "store"]
    """Who sends the replicas: the gateway each of them, or the store that got the first one all the
    others.
    """
