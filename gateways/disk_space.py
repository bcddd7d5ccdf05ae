"""What a store has and takes of its disks."""

from __future__ import annotations

from dataclasses import dataclass

from weighbridge.common.structure import Redundancy


@dataclass(frozen=True)
class DiskSpace:
    """Total and free bytes of a store's disks, all copies and fragments counted."""

    bytes: int
    free_bytes: int
    kept: Redundancy
    """How often objects are kept on them."""


@dataclass(frozen=True)
class KeptBytes:
    """What a store takes of its disks now, all copies and fragments counted."""

    data_bytes: int
    """What objects take."""
    beside_bytes: int | None
    """What databases and metadata take; None: `data_bytes` has them, or they are unknown."""
    how: str
    """Where both were read, in words."""
