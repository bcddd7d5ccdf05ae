"""Placement and settings of the `garage` gateway."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record

MIB = 2**20


class GaragePlacement(Record):
    """Which node runs on which host."""

    gateway: str
    """The host of the node that clients use. It keeps no objects, unless `storage` names it too."""
    storage: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of nodes that keep objects, each a zone of its own."""

    @model_validator(mode="after")
    def _once(self) -> GaragePlacement:
        if len(set(self.storage)) != len(self.storage):
            raise ValueError("storage names the same host twice")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once, that of clients first."""
        return tuple(dict.fromkeys((self.gateway, *self.storage)))


class GarageSettings(Record):
    """All settings that decide results, with explicit defaults."""

    replication_factor: Annotated[int, Field(ge=1, le=7)] = 3
    """Copies of each object, each on another host."""
    consistency_mode: Literal["consistent", "degraded", "dangerous"] = "consistent"
    """`consistent`: a write waits for most of the copies, and a read asks as many as it takes to
    see it; `degraded`: reads ask one; `dangerous`: writes wait for one, too.
    """
    data_fsync: bool = True
    """Sync each block of an object, and its folder, before the answer. Garage's own default syncs
    nothing.
    """
    metadata_fsync: bool = True
    """Have LMDB, which keeps names, and objects of less than 3 KiB, sync its transactions. Garage's
    own default syncs nothing.
    """
    block_size: Annotated[Bytes, Field(ge=MIB // 16, le=64 * MIB)] = MIB
    """Larger objects are cut into blocks of this size, a file each."""
    compression_level: Literal["none"] | Annotated[int, Field(ge=1, le=19)] = "none"
    """The level of zstd by which blocks are compressed (Garage: 1)."""
