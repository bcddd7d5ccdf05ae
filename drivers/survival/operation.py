"""What a load did to objects: one operation on each line of a file of the run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.record import Record
from weighbridge.results.run.durability import Way
from weighbridge.results.run.reading import write_atomically

Bucket = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{2,62}$")]
"""A bucket or container that every API takes, and no URL has to quote."""
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]
Version = Annotated[int, Field(ge=1, lt=2**32)]
"""Which operation on its object it is, from 1 on."""
LONGEST_ERROR: Final = 300


class Operation(Record):
    """A write or a deletion of an object. Times are of CLOCK_MONOTONIC, in seconds."""

    kind: Literal["write", "delete"]
    api: ObjectApi
    container: Bucket
    name: ObjectName
    size_bytes: Annotated[int, Field(ge=1)]
    """Of a deletion: the size of what was there."""
    way: Way = "plain"
    version: Version
    sent_s: float
    """Just before its first request was sent."""
    answered_s: float | None
    """When its last answer was complete; None: there was none."""
    acknowledged: bool
    """Whether the store said that it is done, and what it said of it is right."""
    error: Annotated[str, Field(max_length=LONGEST_ERROR)] = ""
    """Why not, in words."""

    @property
    def object_name(self) -> str:
        """Unique over all APIs and containers."""
        return object_name(self.api, self.container, self.name)


def object_name(api: str, container: str, name: str) -> str:
    """An object's name over all APIs and containers, which its bodies are made of."""
    return f"{api}/{container}/{name}"


def record_operations(path: Path, operations: Iterable[Operation]) -> None:
    """Write the operations of a load to a file of a run folder, in one. Raises StoreError."""
    lines = (one.model_dump_json(exclude_defaults=True) + "\n" for one in operations)
    write_atomically(path, "".join(lines))
