"""Placement and settings of the `seaweedfs` gateway."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record

MIB = 2**20


class SeaweedfsPlacement(Record):
    """Which server runs on which host; any may share one."""

    master: str
    """The host of the master, which knows where volumes are."""
    volume: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hosts of volume servers, which keep what is in objects."""
    filer: str
    """The host of the filer, which keeps the names of objects; it has a volume server too, on whose
    first disk it keeps them.
    """
    s3: str
    """The host of the S3 gateway."""

    @model_validator(mode="after")
    def _fit(self) -> SeaweedfsPlacement:
        if len(set(self.volume)) != len(self.volume):
            raise ValueError("volume names the same host twice")
        for role, name in (("master", self.master), ("filer", self.filer)):
            if name not in self.volume:
                raise ValueError(
                    f"{role} is on {name}, which has no volume server: it keeps its data on a disk "
                    f"of one ({', '.join(self.volume)})"
                )
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host once."""
        return tuple(dict.fromkeys((self.s3, *self.volume)))


class SeaweedfsSettings(Record):
    """All settings that decide results, with explicit defaults."""

    replicas: Annotated[int, Field(ge=1, le=3)] = 3
    """Copies of each object, each on another host; all are written before the answer."""
    fsync: bool = True
    """Sync each copy of an object's data before the answer (`fs.configure -fsync`). SeaweedFS's own
    default syncs nothing. Names are never synced: the filer's database has no such option.
    """
    volume_size: Annotated[Bytes, Field(ge=MIB, le=30000 * MIB)] = 128 * MIB
    """Objects are appended to files of this size, several at once for each bucket (SeaweedFS: 30
    GB).
    """
    chunk_size: Annotated[Bytes, Field(ge=MIB)] = 4 * MIB
    """Larger objects are cut into pieces of this size."""
