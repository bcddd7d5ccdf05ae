"""Versions of objects: how many a workload's have, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Annotated, Final, Protocol

from pydantic import Field

from weighbridge.suites.operations import ListingOptions, Operation

VERSIONS: Final = "versions"
"""The key of a workload, and what stores are said to lack that keep none."""
MOST_VERSIONS: Final = 100
LEAST_BYTES: Final = 16
"""Versions of smaller objects need not differ."""
LEAST_COMPRESSIBLE_BYTES: Final = 2048
"""The same of objects of which a share is zeros, in blocks of 1 KiB."""
MOST_READ: Final = 100_000
"""Versions that are read one by one: their IDs are listed before each step."""

Versions = Annotated[int, Field(strict=True, ge=1, le=MOST_VERSIONS)]

_NEED: Final[frozenset[Operation]] = frozenset({"read-version", "list-versions"})
_NONE: Final[frozenset[Operation]] = frozenset({"write-multipart", "read-part"})


class _Objects(Protocol):
    """Of `suites.workload.Objects`."""

    @property
    def compressible(self) -> float | None: ...
    @property
    def count(self) -> int: ...
    @property
    def size_bounds(self) -> tuple[int, int]: ...


def unfit_versions(
    versions: int | None,
    asked: AbstractSet[Operation],
    listed: object | None,
    listing: ListingOptions | None,
    objects: _Objects,
) -> str:
    """Why a workload cannot be; empty if it can."""
    if versions is None:
        if missing := sorted(_NEED & asked):
            return f"{', '.join(missing)} needs `versions: 3`, the number that each object has"
        return ""
    if listed is not None:
        return "versions: objects that are only listed have none: leave `listed` out"
    if parts := sorted(_NONE & asked):
        return (
            "versions: uploads in parts leave segments that are not versions: "
            f"leave {', '.join(parts)} out"
        )
    least = LEAST_BYTES if objects.compressible is None else LEAST_COMPRESSIBLE_BYTES
    if objects.size_bounds[0] < least:
        return f"versions: objects need at least {least} bytes, so that their versions differ"
    if "list-versions" in asked and listing is not None and listing.delimiter:
        return "listing: list-versions has no `delimiter`"
    if "read-version" in asked and objects.count * versions > MOST_READ:
        return (
            f"read-version: these are {objects.count * versions:,} versions, whose IDs are listed "
            f"before each step: at most {MOST_READ:,}"
        )
    return ""
