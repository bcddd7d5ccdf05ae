"""Names of the buckets and objects that capabilities make.

They have the forms by which `weighbridge clean` recognises what a killed run left
(`gateways.existing.leftover_buckets`).
"""

from __future__ import annotations

from typing import Final

from weighbridge.gateways.capabilities.capability import Unknown

MOST_BUCKETS: Final = 60
"""Buckets of one program that asks; a run may need several programs."""


def buckets_of(prefix: str, programs: int) -> tuple[str, ...]:
    """All buckets that so many programs may make; `prefix` is `wb-` and eight hex digits."""
    return tuple(f"{prefix}-capability-{number}" for number in range(programs * MOST_BUCKETS))


class Names:
    """Names that are each given once. `program`: which program of the run this is, from 0."""

    def __init__(self, prefix: str, program: int) -> None:
        self._buckets = iter(buckets_of(prefix, program + 1)[program * MOST_BUCKETS :])
        self._objects = 0

    def bucket(self) -> str:
        """The name of a new bucket. Raises Unknown when all are used."""
        found = next(self._buckets, None)
        if found is None:
            raise Unknown(f"not asked: more than {MOST_BUCKETS} buckets would be needed")
        return found

    def object(self) -> str:
        """The name of a new object."""
        self._objects += 1
        return f"object-{self._objects}"
