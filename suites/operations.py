"""The operations of workloads: what each is called, what it sends over each API, and its options.

`docs/what-is-sent.md` shows the bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from weighbridge.common.quantities import Bytes
from weighbridge.common.record import Record

Operation = Literal[
    "read",
    "write",
    "delete",
    "list",
    "head",
    "read-range",
    "read-if-none-match",
    "read-if-match",
    "copy",
    "delete-many",
    "write-multipart",
    "list-all",
    "write-if-none-match",
    "rewrite-if-none-match",
    "update-metadata",
    "tag",
    "read-part",
    "overwrite",
    "read-version",
    "list-versions",
    "write-part",
    "list-page",
    "versions-page",
]
"""What is done to objects. Results of `write-multipart`, `list-all` and `list-versions` have a
second row, for each of their requests that is a part or a page: `write-part`, `list-page` and
`versions-page` are in no suite.
"""


@dataclass(frozen=True)
class OperationTraits:
    """What is known of an operation.

    `sent` is by API; `{...}` in it are the options of the workload, in words. An API that is not in
    it has no such requests.
    """

    noun: str
    """Several of its requests, in a sentence."""
    sent: Mapping[str, str]
    moves_bodies: bool = False
    """Whether bytes of objects are transferred: it then has a bandwidth."""
    picks: bool = False
    """Whether it needs prepared objects that stay."""
    makes: bool = False
    """Whether each makes a new object."""
    deletes: bool = False
    alters: bool = False
    """Whether it changes an object that exists, or makes a part of one."""
    one_signing: bool = False
    """Whether it is signed in a header, with an unsigned payload, and in no other way."""
    part_of: Operation | None = None
    """The operation whose requests it counts."""

    @property
    def answers_bodies(self) -> bool:
        """Whether bytes of objects are read, and nothing is changed."""
        return self.moves_bodies and self.picks and not self.writes

    @property
    def writes(self) -> bool:
        """Whether its acknowledgement promises that something was kept, or deleted."""
        return self.makes or self.deletes or self.alters


def _both(sent: str) -> dict[str, str]:
    return {"s3": sent, "swift": sent}


TRAITS: Final[dict[Operation, OperationTraits]] = {
    "read": OperationTraits("reads", _both("GET"), moves_bodies=True, picks=True),
    "write": OperationTraits("writes", _both("PUT"), moves_bodies=True, makes=True),
    "delete": OperationTraits("deletes", _both("DELETE"), deletes=True),
    "list": OperationTraits(
        "listings", {"s3": "GET ?list-type=2&max-keys=1000", "swift": "GET ?limit=1000"}
    ),
    "head": OperationTraits("HEAD requests", _both("HEAD"), picks=True),
    "read-range": OperationTraits(
        "range reads", _both("GET, Range: {range}"), moves_bodies=True, picks=True
    ),
    "read-if-none-match": OperationTraits(
        "reads if changed", _both("GET, If-None-Match: the object’s MD5"), picks=True
    ),
    "read-if-match": OperationTraits(
        "reads if unchanged",
        _both("GET, If-Match: the object’s MD5"),
        moves_bodies=True,
        picks=True,
    ),
    "copy": OperationTraits(
        "copies",
        {"s3": "PUT, x-amz-copy-source", "swift": "PUT, X-Copy-From"},
        picks=True,
        makes=True,
        one_signing=True,
    ),
    "delete-many": OperationTraits(
        "deletes of many",
        {"s3": "POST ?delete of {many}", "swift": "POST ?bulk-delete of {many}"},
        deletes=True,
        one_signing=True,
    ),
    "write-multipart": OperationTraits(
        "writes in parts",
        {
            "s3": "POST ?uploads, PUT ?partNumber of {part} {order}, POST ?uploadId",
            "swift": "PUT of segments of {part} {order}, PUT ?multipart-manifest=put",
        },
        moves_bodies=True,
        makes=True,
        one_signing=True,
    ),
    "list-all": OperationTraits(
        "complete listings",
        {
            "s3": "GET ?list-type=2&{page}, and with each continuation-token",
            "swift": "GET ?{page}, and with each marker until a page is empty",
        },
    ),
    "write-if-none-match": OperationTraits(
        "writes if new", _both("PUT, If-None-Match: *"), moves_bodies=True, makes=True
    ),
    "rewrite-if-none-match": OperationTraits(
        "refused writes",
        _both("PUT of an object that exists, If-None-Match: *, until 412"),
        picks=True,
    ),
    "update-metadata": OperationTraits(
        "updates of metadata",
        {
            "s3": "PUT, x-amz-copy-source: itself, x-amz-metadata-directive: REPLACE",
            "swift": "POST, X-Object-Meta-Weighbridge",
        },
        picks=True,
        alters=True,
        one_signing=True,
    ),
    "tag": OperationTraits(
        "taggings", {"s3": "PUT ?tagging"}, picks=True, alters=True, one_signing=True
    ),
    "read-part": OperationTraits(
        "reads of a part",
        {"s3": "GET ?partNumber of {part}", "swift": "GET ?part-number of {part}"},
        moves_bodies=True,
        picks=True,
        one_signing=True,
    ),
    "overwrite": OperationTraits(
        "overwrites",
        _both("PUT of an object that exists"),
        moves_bodies=True,
        picks=True,
        alters=True,
    ),
    "read-version": OperationTraits(
        "reads of versions",
        {"s3": "GET ?versionId, any version", "swift": "GET ?version-id, any version"},
        moves_bodies=True,
        picks=True,
    ),
    "list-versions": OperationTraits(
        "listings of versions",
        {
            "s3": "GET ?versions&{page}, and with each key-marker and version-id-marker",
            "swift": "GET ?versions&{page}, and with each marker and version_marker until a page "
            "is empty",
        },
    ),
    "write-part": OperationTraits(
        "parts",
        {"s3": "PUT ?partNumber of {part}", "swift": "PUT of a segment of {part}"},
        moves_bodies=True,
        alters=True,
        part_of="write-multipart",
    ),
    "list-page": OperationTraits(
        "pages", {"s3": "GET ?list-type=2&{page}", "swift": "GET ?{page}"}, part_of="list-all"
    ),
    "versions-page": OperationTraits(
        "pages of versions", _both("GET ?versions&{page}"), part_of="list-versions"
    ),
}

PARTS: Final[tuple[Operation, ...]] = tuple(name for name, one in TRAITS.items() if one.part_of)
"""Those that count requests of others, and are in no workload."""
OPERATIONS: Final[tuple[Operation, ...]] = tuple(
    one for one in get_args(Operation) if one not in PARTS
)
"""Those that a workload can have."""
PLAIN_OPERATIONS: Final[frozenset[Operation]] = frozenset(
    ("read", "write", "delete", "list", "head")
)
"""Those that drivers other than the engine may know."""

SMALLEST_PART_BYTES: Final = 5 * 2**20
"""Of S3: of all parts but the last."""
LARGEST_PUT_BYTES: Final = 5 * 10**9
"""Of S3: of one PUT, copy or part."""
MOST_PARTS: Final = 1000
"""Of Swift's manifests, unless a cluster is configured for more."""


class RangeOptions(Record):
    """Which part of an object `read-range` reads: `{bytes: 64KiB, at: random}`.

    An object is taken as parts of this length, the last of which may be shorter. `random` reads any
    of them, `start` the first, and a worker of `sequential` one after the other, then those of the
    next object that it picks.
    """

    bytes: Annotated[Bytes, Field(ge=1)]
    """Length of the part: `64KiB`."""
    at: Literal["random", "start", "sequential"] = "random"
    """Which part: any, the first, or one after the other."""


class MultipartOptions(Record):
    """The parts of `write-multipart`, and of what `read-part` reads: `{part: 8MiB, at_once: 4}`."""

    part: Annotated[Bytes, Field(ge=SMALLEST_PART_BYTES, le=LARGEST_PUT_BYTES)]
    """Length of a part, in bytes."""
    at_once: Annotated[int, Field(ge=1, le=64)] = 1
    """How many a worker sends at the same time, each over a connection of its own."""

    @property
    def order(self) -> str:
        """How many are sent at the same time, in words."""
        return "one after the other" if self.at_once == 1 else f"{self.at_once} at once"


class ListingOptions(Record):
    """What `list-all` lists: `{page: 1000, prefix: object-00, delimiter: "-"}`; `list-versions` has
    no delimiter.
    """

    page: Annotated[int, Field(ge=1, le=1000)] = 1000
    """Names requested of a page."""
    prefix: Annotated[str, Field(max_length=200)] = ""
    """What names begin with; prepared objects are `object-0000000000` and so on."""
    delimiter: Annotated[str, Field(max_length=10)] = ""
    """Names that are equal up to this text, after the prefix, are listed as one."""


def parts_of(operations: Mapping[Operation, float]) -> tuple[Operation, ...]:
    """The operations with rows in results: those of a workload, each followed by its parts."""
    return tuple(
        row
        for one in operations
        for row in (one, *(part for part in PARTS if TRAITS[part].part_of == one))
    )
