"""How old a store is before it is measured: filled to a share of its disks, then churned for some
rounds.
"""

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

FULLEST: Final = 0.85
"""Ceph warns of an OSD that is fuller (mon_osd_nearfull_ratio), and moves no more data to it
(backfillfull) a little later.
"""


def _fill(value: object) -> object:
    """`5%` as 0.05, `2GB` as bytes."""
    found = parse_share(value)
    return parse_bytes(found) if isinstance(found, str) else found


Share = Annotated[float, BeforeValidator(parse_share), Field(gt=0, lt=1)]


class Age(Record):
    """Objects that are written before anything is measured, and stay until the deployment goes.

    Which objects there are, their sizes and which of them go follow from the seed alone: two stores
    of the same `fill` in bytes, or of the same disks, are given the same.
    """

    fill: Annotated[float | int, BeforeValidator(_fill)]
    """`5%` of what the disks hold, by replicas; or bytes of objects, such as `2GB`, where nobody
    can tell what they hold.
    """
    size: Bytes | Uniform | SizeHistogram = 64_000
    containers: Annotated[int, Field(ge=1, le=100_000)] = 4
    churn: Annotated[int, Field(ge=0, le=1000)] = 3
    """Rounds: in each, a share of the objects is deleted and as many new ones are written."""
    share: Share = 0.2
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """None: the suite's."""

    @model_validator(mode="after")
    def _fits(self) -> Age:
        if self.objects(1).mean_bytes <= 0:
            raise ValueError("objects of no size fill nothing")
        if isinstance(self.fill, int):
            if self.fill < 1:
                raise ValueError(f"fill {self.fill} is no size above 0")
            if self.fill > MOST_BYTES:
                raise ValueError(
                    f"fill: it is above {show_bytes(MOST_BYTES)} of objects; at most so many are "
                    "written"
                )
            too_much = self.excess(self.count(None))
            if too_much:
                raise ValueError(f"fill: {too_much}")
        elif not 0 < self.fill * self.swell <= FULLEST:
            # What is deleted is freed later (RGW's garbage collection, Swift's tombstones): all
            # that is ever written must fit.
            ever = (
                f"{self.fill:.0%} and {self.churn} rounds of {self.share:.0%} of it come to "
                f"{self.fill * self.swell:.0%}"
            )
            raise ValueError(
                f"fill: {ever} of the disks, which must be above 0 and at most {FULLEST:.0%}"
            )
        return self

    @property
    def swell(self) -> float:
        """All that is ever written, by what is there at one time."""
        return 1 + self.churn * self.share

    def count(self, room_bytes: float | None) -> int:
        """How many objects are there at one time, in a store that holds so many bytes of objects.

        Raises ValueError when that must be known and is not.
        """
        if isinstance(self.fill, int):
            wanted_bytes: float = self.fill
        elif room_bytes is None:
            raise ValueError("a share of disks of unknown size")
        else:
            wanted_bytes = self.fill * room_bytes
        return max(1, round(wanted_bytes / self.objects(1).mean_bytes))

    def excess(self, count: int) -> str:
        """Why `count` objects at one time, with all that come and go, are more than are ever
        written; empty where they are not.
        """
        ever = count + self.churn * self.turnover(count)
        return excess(self.containers * -(-ever // self.containers), self.objects(1).mean_bytes)

    def turnover(self, count: int) -> int:
        """How many of `count` objects go, and come, in each round."""
        return round(self.share * count)

    def objects(self, count: int) -> Objects:
        """Room for `count` objects."""
        return Objects(
            size=self.size, containers=self.containers, per_container=-(-count // self.containers)
        )

    def workload(self, count: int) -> Workload:
        """What its objects are drawn by, `count` at one time: each that is ever written has a
        number of its own.
        """
        ever = count + self.churn * self.turnover(count)
        return Workload(
            name="age",
            objects=self.objects(ever),
            operations={"write": 1},
            workers=(1,),
            runtime=1.0,
        )
