"""`rados bench`: how it is asked, what it answers, and what several of it at once make together.

Its JSON, of 14.2, 16.2 and 18.2: a line `hints = 1` comes first, every value is a string, seconds
without an operation have no row in `datas`, reads lack what writes tell of bandwidths, and what is
told of one sample's deviation is garbage. Read from here are the totals alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from weighbridge.common.errors import DriverError
from weighbridge.common.printed import json_object
from weighbridge.common.record import Record
from weighbridge.results.record.measurement import Tally

Mode = Literal["write", "seq", "rand"]
"""New objects; those of a run before in their order, until they are at an end; and by chance."""

FOR_EVER_S: Final = 10**6
"""For a write that ends when its objects are there."""


class RadosBenchCommand(Record):
    """One `rados bench`.

    `run` names what it writes, for it and for reads of it: without a name they would read one
    another's.
    """

    pool: str
    mode: Mode
    seconds: Annotated[int, Field(ge=1)]
    workers: Annotated[int, Field(ge=1)]
    object_bytes: Annotated[int, Field(ge=1)]
    run: str
    objects: Annotated[int, Field(ge=1)] | None = None
    """A write ends with so many."""

    def argv(self) -> tuple[str, ...]:
        """The command."""
        words = [
            "rados",
            "--pool",
            self.pool,
            "bench",
            str(self.seconds),
            self.mode,
            "-t",
            str(self.workers),
        ]
        words += ["--run-name", self.run, "--format", "json"]
        if self.mode == "write":
            words += ["-b", str(self.object_bytes), "-O", str(self.object_bytes), "--no-cleanup"]
        if self.objects is not None:
            words += ["--max-objects", str(self.objects)]
        return tuple(words)

    def cleanup_argv(self) -> tuple[str, ...]:
        """The command that deletes what it wrote."""
        return "rados", "--pool", self.pool, "cleanup", "--run-name", self.run


Count = Annotated[int, Field(ge=0, lt=2**63)]
"""What rados counts in: 64 bits."""
Latency = Annotated[float, Field(ge=0, le=10 * FOR_EVER_S)]
"""In seconds: none is longer than the longest bench."""


class RadosBenchResult(Record):
    """What one `rados bench` told. Latencies are None when nothing was done."""

    seconds: Annotated[float, Field(gt=0)]
    count: Count
    object_bytes: Count
    mean_s: Latency | None = None
    min_s: Latency | None = None
    max_s: Latency | None = None

    @classmethod
    def of(cls, mode: Mode, told: str) -> RadosBenchResult:
        """What it printed. Raises DriverError when something that is read from it is missing."""
        found = json_object("rados bench", told, DriverError)
        kind = "write" if mode == "write" else "read"
        try:
            count = int(found[f"total_{kind}s_made"])
            # Of nothing, mean and extremes are what the variables of the program began with.
            times = (
                {f"{name}_s": float(found[word]) for name, word in _TIMES.items()} if count else {}
            )
            return cls(
                seconds=float(found["total_time_run"]),
                count=count,
                object_bytes=int(found[f"{kind}_size"]),
                **times,
            )
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise DriverError(
                f"rados bench {mode}: {error!r} in what it printed: {told[-300:]!r}"
            ) from error


_TIMES: Final = {"mean": "average_latency", "min": "min_latency", "max": "max_latency"}


def together(
    answers: Sequence[RadosBenchResult], operation: Literal["read", "write"]
) -> tuple[Tally, float]:
    """What several at once made, and the seconds of the window: theirs that took longest, since all
    began together.

    Operations and bytes add up, the mean is weighted by operations, the extremes are the extremes.
    Raises DriverError when they are more together than can be.
    """
    count = sum(one.count for one in answers)
    try:
        tally = _tally(answers, operation, count)
    except ValueError as error:
        raise DriverError(f"rados bench: {count} operations that cannot be: {error}") from error
    return tally, max(one.seconds for one in answers)


def _tally(
    answers: Sequence[RadosBenchResult], operation: Literal["read", "write"], count: int
) -> Tally:
    return Tally(
        operation=operation,
        count=count,
        bytes=sum(one.count * one.object_bytes for one in answers),
        min_us=min(
            (round(one.min_s * 1e6) for one in answers if one.min_s is not None), default=None
        ),
        max_us=max(
            (round(one.max_s * 1e6) for one in answers if one.max_s is not None), default=None
        ),
        sum_us=sum(
            round(one.mean_s * one.count * 1e6) for one in answers if one.mean_s is not None
        ),
    )
