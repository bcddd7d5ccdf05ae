"""A workload: what is done to which objects.

The same record goes to every driver and every gateway.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from weighbridge.common.quantities import Bytes, Seconds, parse_share, show_bytes
from weighbridge.common.record import Record

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
"""Lower case letters, digits and hyphens, so that it can be part of a bucket's name (S3's rules for
buckets).
"""

Operation = Literal["read", "write", "delete", "list", "head"]
OPERATIONS: tuple[Operation, ...] = ("read", "write", "delete", "list", "head")


MOST_OBJECTS: Final = 100_000_000
"""Of a workload: at 200 a second they take six days to be written, before the first step."""
MOST_BYTES: Final = 2**50
"""Of a workload's objects: at 100 MB/s they take four months to be written."""

VERIFIED_SHARE: Final = 0.01
"""Share of reads that are compared with what was written unless a suite says otherwise: enough to
see a store that gives other bytes, and of no weight in what a read costs
(benchmarks/driver_cost.py)."""


def excess(count: int, mean_bytes: float) -> str:
    """Why so many objects are more than are ever written; empty where they are not."""
    if count > MOST_OBJECTS:
        return f"these are {count:,} objects; at most {MOST_OBJECTS:,} are written"
    if count * mean_bytes > MOST_BYTES:
        return (
            f"these are {show_bytes(count * mean_bytes)} of objects; at most "
            f"{show_bytes(MOST_BYTES)} are written"
        )
    return ""


def _verify(value: object) -> object:
    """`1%` as 0.01; yes and no, which suites could say before there were shares, as 1 and 0."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int) and value != 0:
        raise ValueError(f"{value} may be a share or a percentage: write {value}% or 100%")
    return parse_share(value)


class Uniform(Record):
    """Object sizes drawn evenly from a range, both ends included."""

    uniform: tuple[Bytes, Bytes]

    @model_validator(mode="after")
    def _ordered(self) -> Uniform:
        if self.uniform[0] > self.uniform[1]:
            raise ValueError(
                f"the smallest size {self.uniform[0]} is above the largest {self.uniform[1]}"
            )
        return self

    @property
    def mean_bytes(self) -> float:
        """Expected size of an object, in bytes."""
        return (self.uniform[0] + self.uniform[1]) / 2

    @property
    def largest_bytes(self) -> int:
        """Size of the largest object there can be, in bytes."""
        return self.uniform[1]


class SizeBar(Record):
    """One bar of a histogram of sizes: sizes drawn evenly from `size` (one size, or a range), as
    often as `weight` says.
    """

    size: Bytes | tuple[Bytes, Bytes]
    weight: Annotated[float, Field(gt=0)]

    @property
    def bounds(self) -> tuple[int, int]:
        """Smallest and largest size of the bar, in bytes."""
        return self.size if isinstance(self.size, tuple) else (self.size, self.size)

    @model_validator(mode="after")
    def _ordered(self) -> SizeBar:
        if self.bounds[0] > self.bounds[1]:
            raise ValueError(
                f"the smallest size {self.bounds[0]} is above the largest {self.bounds[1]}"
            )
        return self


class SizeHistogram(Record):
    """Object sizes drawn from weighted bars."""

    histogram: Annotated[tuple[SizeBar, ...], Field(min_length=1)]

    @property
    def mean_bytes(self) -> float:
        """Expected size of an object, in bytes."""
        total = sum(bar.weight for bar in self.histogram)
        return sum(bar.weight * sum(bar.bounds) / 2 for bar in self.histogram) / total

    @property
    def largest_bytes(self) -> int:
        """Size of the largest object there can be, in bytes."""
        return max(bar.bounds[1] for bar in self.histogram)


class Objects(Record):
    """The objects a workload works on:

    `containers` x `per_container` objects, written before a step that needs them.
    """

    size: Bytes | Uniform | SizeHistogram
    containers: Annotated[int, Field(ge=1, le=MOST_OBJECTS)] = 1
    per_container: Annotated[int, Field(ge=1, le=MOST_OBJECTS)] = 100

    @property
    def mean_bytes(self) -> float:
        """Expected size of an object, in bytes."""
        return float(self.size) if isinstance(self.size, int) else self.size.mean_bytes

    @property
    def largest_bytes(self) -> int:
        """Size of the largest object there can be, in bytes."""
        return self.size if isinstance(self.size, int) else self.size.largest_bytes

    @property
    def count(self) -> int:
        """How many objects there are."""
        return self.containers * self.per_container

    @model_validator(mode="after")
    def _bounded(self) -> Objects:
        too_much = excess(self.count, self.mean_bytes)
        if too_much:
            raise ValueError(too_much)
        return self


class Zipf(Record):
    """Objects picked by Zipf's law: the k-th most popular in proportion to 1 / k^zipf."""

    zipf: Annotated[float, Field(gt=0, le=5)]


class Workload(Record):
    """Operation mix, sizes, objects, access pattern and runtime; `workers` are the steps it is
    replayed at.
    """

    name: Name
    objects: Objects
    operations: Annotated[dict[Operation, Annotated[float, Field(gt=0)]], Field(min_length=1)]
    """Weights of the operations; only their proportions matter."""
    pick: Literal["uniform", "sequential"] | Zipf = "uniform"
    workers: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65536)], ...], Field(min_length=1, max_length=100)
    ]
    runtime: Seconds
    """Length of the measured window, in seconds."""
    warmup: Seconds = 5.0
    """What is run before the window and not counted, in seconds."""
    rate_per_s: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """Operations a second over all workers; latency then counts from the intended start.

    None: a closed loop.
    """
    verify: Annotated[float, BeforeValidator(_verify), Field(ge=0, le=1)] = VERIFIED_SHARE
    """Share of reads, drawn by the seed, of which every byte is compared with what was written:
    `1%`; `yes` is all, `0` none.

    Lengths, and what other answers must have, are always checked. Drivers that are tools of others
    compare nothing; of them more than the default is refused.
    """

    @model_validator(mode="after")
    def _sensible(self) -> Workload:
        if self.runtime <= 0:
            raise ValueError("runtime must be above 0s")
        if len(set(self.workers)) != len(self.workers):
            raise ValueError("workers names the same count twice: use repeats")
        return self

    @property
    def needs_objects(self) -> bool:
        """Whether objects must be there before a step: all but pure writes need some."""
        return set(self.operations) != {"write"}
