"""Ageing of a store before it is measured: filled to a share of its disks, then churned."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from weighbridge.common.quantities import Bytes, parse_bytes, parse_share, show_bytes
from weighbridge.common.record import Record
from weighbridge.suites.workload import (
    MOST_BYTES,
    Objects,
    SizeHistogram,
    Uniform,
    Workload,
    excess,
)

MAX_FILL: Final = 0.85
"""Fuller OSDs make Ceph warn (mon_osd_nearfull_ratio) and soon refuse moved data (backfillfull)."""


def _fill(value: object) -> object:
    """`5%` as 0.05, `2GB` as bytes."""
    found = parse_share(value)
    return parse_bytes(found) if isinstance(found, str) else found


class Age(Record):
    """Objects written before anything is measured, which stay until the deployment is torn down.

    The seed alone decides which objects there are, their sizes and which are deleted: two stores
    with the same `fill` in bytes, or the same disks, get the same objects.
    """

    fill: Annotated[float | int, BeforeValidator(_fill)]
    """`5%` of the disks' capacity over replicas; or bytes, such as `2GB`, if that is unknown."""
    size: Bytes | Uniform | SizeHistogram = 64_000
    """Bytes of each object, as in a workload."""
    containers: Annotated[int, Field(ge=1, le=100_000)] = 4
    """Buckets or containers that they are spread over."""
    churn: Annotated[int, Field(ge=0, le=1000)] = 3
    """Rounds: each deletes a share of the objects and writes as many new ones."""
    share: Annotated[float, BeforeValidator(parse_share), Field(gt=0, lt=1)] = 0.2
    """Share of the objects that a round replaces: `20%`."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """None: the suite's."""

    @model_validator(mode="after")
    def _fits(self) -> Age:
        if self.objects(1).mean_bytes <= 0:
            raise ValueError("objects of size 0 fill nothing")
        if isinstance(self.fill, int):
            if self.fill < 1:
                raise ValueError(f"fill {self.fill} must be above 0")
            if self.fill > MOST_BYTES:
                raise ValueError(f"fill: at most {show_bytes(MOST_BYTES)} of objects are written")
            too_much = self.excess(self.count(None))
            if too_much:
                raise ValueError(f"fill: {too_much}")
        elif not 0 < self.fill * self.swell <= MAX_FILL:
            # Deleted objects are freed later (RGW's garbage collection, Swift's tombstones), so
            # everything ever written must fit.
            raise ValueError(
                f"fill: {self.fill:.0%} and {self.churn} rounds of {self.share:.0%} of it come to "
                f"{self.fill * self.swell:.0%} of the disks, which must be above 0 and at most "
                f"{MAX_FILL:.0%}"
            )
        return self

    @property
    def swell(self) -> float:
        """Everything ever written, as a multiple of what exists at one time."""
        return 1 + self.churn * self.share

    def count(self, room_bytes: float | None) -> int:
        """How many objects exist at one time, in a store with room for so many bytes of objects.

        Raises ValueError if the room is needed and unknown.
        """
        if isinstance(self.fill, int):
            wanted_bytes: float = self.fill
        elif room_bytes is None:
            raise ValueError("a share of disks of unknown size")
        else:
            wanted_bytes = self.fill * room_bytes
        return max(1, round(wanted_bytes / self.objects(1).mean_bytes))

    def excess(self, count: int) -> str:
        """Why `count` objects with their churn are too many to be written; empty if not."""
        ever = count + self.churn * self.turnover(count)
        return excess(self.containers * -(-ever // self.containers), self.objects(1).mean_bytes)

    def turnover(self, count: int) -> int:
        """How many of `count` objects each round replaces."""
        return round(self.share * count)

    def objects(self, count: int) -> Objects:
        """Containers with room for `count` objects."""
        return Objects(
            size=self.size, containers=self.containers, per_container=-(-count // self.containers)
        )

    def workload(self, count: int) -> Workload:
        """The workload that draws its objects, `count` at one time, each with its own number."""
        ever = count + self.churn * self.turnover(count)
        return Workload(
            name="age",
            objects=self.objects(ever),
            operations={"write": 1},
            workers=(1,),
            runtime=1.0,
        )
