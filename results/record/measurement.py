"""The measurement: what one step of one repeat gave, as counts, bytes, errors by class, histograms
and per-second series.

Everything after a driver reads this record and nothing else. Latencies are whole microseconds; a
histogram is an HdrHistogram (1 us to 1 h, 3 significant digits) in its V2 deflate base64 form, so
that other tools can read it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt, model_validator

from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.suites import Api, DriverName, Operation

SCHEMA_VERSION: Final = 1
"""1: the first."""

ErrorClass = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
"""`http-503`, `connect`, `reset`, `timeout`, `short-body`, `wrong-content`, `wrong-length` (of a
HEAD), `wrong-etag` (of a write), `bad-list`, `error-body` (a success that has one), `protocol`,
`unfinished`, or another short slug."""

WindowSeconds = Annotated[float, Field(ge=1e-3, le=1e7)]
"""A millisecond to four months: outside it is no window that was measured, and rates by it are no
finite numbers.
"""
Cpus = Annotated[float, Field(ge=1e-6, le=1e6)]
"""How many CPUs may be used: of a quota a part of one."""


class Second(Record):
    """One second of one operation inside the window.

    `second` counts from the start of the window.
    """

    second: Count
    operation: Operation
    count: Count
    bytes: Count
    errors: Count
    max_us: Count
    sum_us: Count
    bands: tuple[tuple[Count, PositiveInt], ...] = ()
    """Counts of latencies by the number of their band (results.record.bands), in order; empty where
    the driver keeps none.
    """


class Bins(Record):
    """Latencies as a driver tells them that keeps no more than counts in bins of one width:
    COSBench's are 10 ms wide.

    `counts` are pairs of a bin's number and its count: bin n holds latencies from n to n + 1 times
    `width_us`. `beyond` counts those in the last bin, which has no upper edge and begins at
    `beyond_us`.
    """

    width_us: PositiveInt
    counts: tuple[tuple[Count, PositiveInt], ...]
    beyond_us: PositiveInt
    beyond: Count = 0

    @model_validator(mode="after")
    def _ordered(self) -> Bins:
        numbers = [number for number, _ in self.counts]
        if numbers != sorted(set(numbers)) or any(
            (number + 1) * self.width_us > self.beyond_us for number in numbers
        ):
            raise ValueError("bins are twice there, not in order, or beyond the last one")
        return self

    @property
    def count(self) -> int:
        """Samples in all bins."""
        return sum(count for _, count in self.counts) + self.beyond


class Tally(Record):
    """All of one operation inside the window. Latencies and bytes are of successes only; failures
    are in `errors`.

    `latency` and `first_byte` are None when nothing succeeded (or, for `first_byte`, when it is not
    a read), and where the driver keeps no histogram: then it tells `bins`, or (`rados bench`)
    nothing but the extremes and the sum. min and max are exact, or None where the driver does not
    tell them; the sum is exact but for drivers that tell the mean in few digits, and None for one
    that tells no latencies at all (`rbd bench`). In a closed loop latency is the service time; at a
    constant rate it counts from the intended start.

    Beside them stands what no latency tells: None where the driver does not know it, as all did
    before they recorded it. `in_flight` is a histogram of ages of requests that were not seen to
    end: outstanding when the window closed, at a rate also those whose intended start had passed,
    or given up after the timeout. Their latencies are at least that
    (results.analysis.steps.censoring).
    """

    operation: Operation
    count: Count
    bytes: Count
    errors: dict[ErrorClass, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    latency: str | None = None
    first_byte: str | None = None
    bins: Bins | None = None
    min_us: Count | None = None
    max_us: Count | None = None
    sum_us: Count | None = 0
    in_flight: str | None = None
    """None also where there were none."""
    in_flight_max_us: Count | None = None
    """The oldest of them, exactly."""
    outstanding_us: Count | None = None
    """Sum of the ages of requests that had been sent and were outstanding when the window closed.
    """
    failed_us: Count | None = None
    """Time that failures took their workers: from the start to the failure, and the rest after it.
    """
    before_us: Count | None = None
    """How much of `sum_us`, `failed_us` and `outstanding_us` lies before the opening of the window.
    """

    @property
    def busy_us(self) -> int | None:
        """Time inside the window for which workers had a request of this operation in hand, or
        rested after one that failed.
        """
        parts = (self.sum_us, self.failed_us, self.outstanding_us, self.before_us)
        if any(part is None for part in parts):
            return None
        done, failed, outstanding, before = (part or 0 for part in parts)
        return done + failed + outstanding - before

    @model_validator(mode="after")
    def _whole(self) -> Tally:
        if self.latency is not None and (self.min_us is None or self.max_us is None):
            raise ValueError(f"{self.operation}: a histogram without min and max")
        if (self.in_flight is None) != (self.in_flight_max_us is None):
            raise ValueError(
                f"{self.operation}: requests in flight without the age of the oldest, or the "
                "other way round"
            )
        told = self.latency is not None or self.bins is not None or self.max_us is not None
        if told != (self.count > 0 and self.sum_us is not None):
            raise ValueError(
                f"{self.operation}: {self.count} successes do not fit the latencies given"
            )
        return self

    @property
    def failed(self) -> int:
        """How many failed, over all classes."""
        return sum(self.errors.values())


class ClientLoad(Record):
    """What one of several hosts that made the load used for it inside the window."""

    client: str
    """Its name in the hardware file."""
    cpu_s: NonNegativeFloat
    cpu_limit: Cpus

    def share(self, window_s: float) -> float:
        """Share of the CPU it may use that it did use."""
        return self.cpu_s / (self.cpu_limit * window_s)


class Load(Record):
    """What the driver itself used inside the window, to tell whether it, not the gateway, was the
    limit.
    """

    cpu_s: NonNegativeFloat
    """CPU seconds of all processes of the driver, on all clients."""
    cpu_limit: Cpus
    """CPUs they may use: of their cgroup's quota, else of the machine; of several clients all
    together.
    """
    window_s: WindowSeconds
    clients: tuple[ClientLoad, ...] = ()
    """Each client's own, where several made the load; empty where one did, as in all measurements
    before there could be several.
    """

    @property
    def busiest(self) -> ClientLoad:
        """The client that had the least CPU left; without a name where there is one alone."""
        if not self.clients:
            return ClientLoad(client="", cpu_s=self.cpu_s, cpu_limit=self.cpu_limit)
        return max(self.clients, key=lambda one: one.share(self.window_s))

    @property
    def share(self) -> float:
        """Share of the CPU it may use that the driver did use, on its busiest client: from 0.8 on
        it may have been the limit.
        """
        return self.busiest.share(self.window_s)


class Measurement(Record):
    """What one step gave.

    `window_s` is the real length of the window in seconds, by a monotonic clock.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    api: Api
    workload: str
    workers: Annotated[int, Field(ge=1)]
    driver: DriverName
    """The driver, or the one of its tools that made the figures: `DriverTraits.tools`."""
    started_at: str
    """UTC, ISO 8601, of the start of the window; for people, never for arithmetic."""
    window_s: WindowSeconds
    warmup_s: NonNegativeFloat
    tallies: tuple[Tally, ...]
    seconds: tuple[Second, ...] = ()
    begun: Count | None = None
    """At a rate: requests sent inside the window; None in a closed loop, and where it is not known.
    """
    behind_us: Count | None = None
    """At a rate: how far the latest worker was behind its intended starts when the window closed.
    """
    load: Load | None
    """None: what the driver used is not known."""
    notes: tuple[str, ...] = ()
    """What a reader must know, such as "objects to delete ran out after 4.2 s"."""

    @model_validator(mode="after")
    def _distinct(self) -> Measurement:
        names = [tally.operation for tally in self.tallies]
        if len(set(names)) != len(names):
            raise ValueError("two tallies of one operation")
        return self
