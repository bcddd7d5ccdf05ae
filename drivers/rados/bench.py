"""`rados bench`: its command, its results, and the results of several in parallel.

Its JSON, in 14.2, 16.2 and 18.2: a line `hints = 1` comes first, every value is a string, seconds
without an operation have no row in `datas`, reads lack the bandwidths of writes, and the deviation
of a single sample is garbage. Only the totals are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from weighbridge.common.errors import DriverError
from weighbridge.common.record import Record
from weighbridge.common.tool_output import json_object
from weighbridge.results.record.measurement import Tally

Mode = Literal["write", "seq", "rand"]
"""Write new objects; read those of an earlier run in order, until they run out; or at random."""

FOR_EVER_S: Final = 10**6
"""For a write that ends when its objects exist."""


class BenchPlace(Record):
    """Where one `rados bench` keeps its objects. `client`: options of `rados`, such as its user and
    a namespace.
    """

    pool: str
    client: tuple[str, ...] = ()
    tag: str = ""
    """Ends names of its runs, where several share a place."""

    @property
    def rados(self) -> tuple[str, ...]:
        """The start of commands for this place."""
        return ("rados", *self.client, "--pool", self.pool)


class RadosBenchCommand(Record):
    """One `rados bench`. `run` names its objects: reads without it would use others' objects."""

    place: BenchPlace
    mode: Mode
    seconds: Annotated[int, Field(ge=1)]
    workers: Annotated[int, Field(ge=1)]
    object_bytes: Annotated[int, Field(ge=1)]
    run: str
    objects: Annotated[int, Field(ge=1)] | None = None
    """A write ends with this number."""

    def argv(self) -> tuple[str, ...]:
        """The command."""
        words = [*self.place.rados, "bench", str(self.seconds), self.mode]
        words += ["-t", str(self.workers), "--run-name", self.run, "--format", "json"]
        if self.mode == "write":
            words += ["-b", str(self.object_bytes), "-O", str(self.object_bytes), "--no-cleanup"]
        if self.objects is not None:
            words += ["--max-objects", str(self.objects)]
        return tuple(words)

    def cleanup_argv(self) -> tuple[str, ...]:
        """The command that deletes what it wrote."""
        return *self.place.rados, "cleanup", "--run-name", self.run


Count = Annotated[int, Field(ge=0, lt=2**63)]
"""rados counts in 64 bits."""
Latency = Annotated[float, Field(ge=0, le=10 * FOR_EVER_S)]
"""In seconds; none is longer than the longest benchmark."""


class RadosBenchResult(Record):
    """The result of one `rados bench`. Latencies are None without operations."""

    seconds: Annotated[float, Field(gt=0)]
    count: Count
    object_bytes: Count
    mean_s: Latency | None = None
    min_s: Latency | None = None
    max_s: Latency | None = None

    @classmethod
    def of(cls, mode: Mode, output: str) -> RadosBenchResult:
        """A result from its output. Raises DriverError when something is missing."""
        found = json_object("rados bench", output, DriverError)
        kind = "write" if mode == "write" else "read"
        try:
            count = int(found[f"total_{kind}s_made"])
            # Without operations, mean and extremes are uninitialised.
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
                f"rados bench {mode}: {error!r} in its output: {output[-300:]!r}"
            ) from error


_TIMES: Final = {"mean": "average_latency", "min": "min_latency", "max": "max_latency"}


def combined(
    results: Sequence[RadosBenchResult], operation: Literal["read", "write"]
) -> tuple[Tally, float]:
    """The result of several in parallel, and the seconds of the window: the longest, since they
    started together.

    Operations and bytes are added, the mean is weighted by operations, the extremes are exact.
    Raises DriverError when the sums are impossible.
    """
    count = sum(one.count for one in results)
    try:
        tally = Tally(
            operation=operation,
            count=count,
            bytes=sum(one.count * one.object_bytes for one in results),
            min_us=min(
                (round(one.min_s * 1e6) for one in results if one.min_s is not None), default=None
            ),
            max_us=max(
                (round(one.max_s * 1e6) for one in results if one.max_s is not None), default=None
            ),
            sum_us=sum(
                round(one.mean_s * one.count * 1e6) for one in results if one.mean_s is not None
            ),
        )
    except ValueError as error:
        raise DriverError(f"rados bench: {count} operations are impossible: {error}") from error
    return tally, max(one.seconds for one in results)
