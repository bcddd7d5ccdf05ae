"""Objects in parts: those that `write-multipart` writes, and those that `read-part` reads."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from weighbridge.common.quantities import show_bytes
from weighbridge.suites.operations import MOST_PARTS, TRAITS, MultipartOptions, Operation

_WHOLE_ONLY: Final[frozenset[Operation]] = frozenset(
    ("copy", "read-if-match", "read-if-none-match", "update-metadata")
)
"""The ETag of an object in parts is not the MD5 of it, and a copy, such as one onto itself, may
have other parts.
"""


def unfit_parts(
    asked: AbstractSet[Operation], sizes: tuple[int, int], multipart: MultipartOptions | None
) -> str:
    """Why objects of these smallest and largest sizes cannot be in such parts; empty if they can.

    `asked`: the workload's operations.
    """
    if multipart is None:
        return ""
    if -(-sizes[1] // multipart.part) > MOST_PARTS:
        return (
            f"an object of {show_bytes(sizes[1])} would have more than {MOST_PARTS} parts, "
            "which Swift's manifests cannot have: use larger parts"
        )
    others = sorted(one for one in asked - {"write-multipart"} if TRAITS[one].makes)
    if "write-multipart" in asked and others:
        return (
            f"write-multipart beside {', '.join(others)}: how an object is deleted depends on "
            "how it was written; make two workloads of them"
        )
    if "read-part" not in asked:
        return ""
    if multipart.at_once > 1 and "write-multipart" not in asked:
        return "at_once is for write-multipart, which this workload does not have: leave it out"
    if sizes[0] <= multipart.part:
        return (
            f"read-part: an object of {show_bytes(sizes[0])} is one part, so a store that "
            "ignores the number would send the same: use larger objects, or smaller parts"
        )
    if whole := sorted(_WHOLE_ONLY & asked):
        return (
            f"read-part beside {', '.join(whole)}: those need objects that were uploaded at once; "
            "make two workloads of them"
        )
    return ""
