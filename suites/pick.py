"""How the objects of requests are picked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Literal

from pydantic import Field

from weighbridge.common.record import Record
from weighbridge.suites.operations import Operation


class Zipf(Record):
    """Objects picked by Zipf's law: the k-th most popular with a weight of 1 / k^zipf."""

    zipf: Annotated[float, Field(gt=0, le=5)]


Pick = Literal["uniform", "sequential", "once"] | Zipf
"""At random, by popularity, or in turn by all workers together: `sequential` begins again after the
last object, `once` ends the window there.
"""


def unfit_pick(
    pick: Pick, asked: Collection[Operation], object_count: int, workers: Sequence[int]
) -> str:
    """Why a workload cannot pick its objects so; empty if it can."""
    if pick != "once":
        return ""
    if set(asked) != {"read"}:
        return "pick: once is for reads alone: take `sequential` for a mix"
    if object_count < max(workers):
        return (
            f"pick: once: {max(workers)} workers have {object_count} objects to read: "
            "take at least one for each"
        )
    return ""
