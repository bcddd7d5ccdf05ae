"""Power cuts under load: what a store has acknowledged, and has no more afterwards."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, Field, field_validator

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.quantities import Bytes, Seconds, parse_share
from weighbridge.common.record import Record

LARGEST_BYTES: Final = 64 * 2**20


class Durability(Record):
    """A deployment of its own for each layout: all hosts but the clients lose power under load.

    The load runs once and gives all cuts. Rates of such a deployment are not measured: its disks
    are files of a program that remembers every write.
    """

    cuts: Annotated[int, Field(ge=1, le=1000)] = 20
    """Moments of one load at which power is cut. The more, the rarer a loss they find."""
    sizes: Annotated[tuple[Bytes, ...], Field(min_length=1, max_length=8)] = (4096, 2**20)
    """Bytes of objects, in turn."""
    api: tuple[ObjectApi, ...] | None = None
    """APIs that objects are written over, at once; None: all that a layout has."""
    multipart: bool = True
    """Also write objects in parts: of 5 MiB over S3, as static large objects over Swift."""
    workers: Annotated[int, Field(ge=1, le=256)] = 8
    """Workers of the load."""
    load: Annotated[Seconds, Field(ge=1, le=3600)] = 30.0
    """How long the load runs, over which the cuts are spread."""
    overwrites: Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=0.5)] = 0.1
    """Share of operations that overwrite an object."""
    deletes: Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=0.5)] = 0.1
    """Share of operations that delete an object."""
    keep: Annotated[float, BeforeValidator(parse_share), Field(ge=0, le=1)] = 0.5
    """Chance that a block is kept that the store had not flushed: disks write in any order. Every
    second cut keeps none.
    """
    control: bool = True
    """Also run the store on disks that ignore flushes, which must lose objects. Otherwise cuts
    without a loss prove nothing.
    """
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """None: the suite's."""

    @field_validator("sizes")
    @classmethod
    def _writable(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(sizes)) < len(sizes):
            raise ValueError("a size is named twice")
        if not all(64 <= size <= LARGEST_BYTES for size in sizes):
            raise ValueError("objects need 64 B to 64 MiB: each says which version it is")
        return sizes
