"""The measurement: what one step of one repeat gave.

Everything after a driver reads this record and nothing else. Latencies are whole microseconds; a
histogram is an HdrHistogram (1 us to 1 h, 3 significant digits) in its V2 deflate base64 form, so
that other tools can read it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt, model_validator

from weighbridge.common.endpoint import MOST_ENDPOINTS
from weighbridge.common.quantities import Count
from weighbridge.common.record import Record
from weighbridge.common.registry import Registry
from weighbridge.suites import (
    DEFAULT_DRIVER,
    PARTS,
    Api,
    DriverName,
    Layer,
    Operation,
    RadosBenchOptions,
    Workload,
)

RAN_OUT: Final = "objects to delete ran out"
"""How a driver's note begins when workers had none left."""
LAST_ERROR: Final = "the last error: "
"""How a driver's note begins that says in the target's words why requests failed."""


SCHEMA_VERSION: Final = 1


ErrorClass = Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
"""`http-503`, `connect`, `reset`, `timeout`, `short-body`, `wrong-content`, `wrong-length` (of a
HEAD), `wrong-etag` (of a write), `bad-list`, `error-body` (a success that has one), `protocol`,
`ignored-range` (the complete object instead of a part), `wrong-range` (another part),
`ignored-part` (the complete object instead of the part of that number),
`ignored-condition` (an object that has not changed, or a write of one that exists), `not-deleted`
(of a request for several), `bad-result` (a success that does not say what was done), `unfinished`,
or another short slug."""


WindowSeconds = Annotated[float, Field(ge=1e-3, le=1e7)]
"""1 ms to four months: no window is shorter or longer, and rates over it stay finite."""


Cpus = Annotated[float, Field(ge=1e-6, le=1e6)]
"""How many CPUs may be used; a fraction for a quota."""


class Second(Record):
    """One second of one operation; `second` counts from the start of the window."""

    second: Count
    operation: Operation
    count: Count
    bytes: Count
    errors: Count
    max_us: Count
    sum_us: Count
    bands: tuple[tuple[Count, PositiveInt], ...] = ()
    """(band, count) pairs in order (results.run.histogram); empty if the driver keeps none."""
    in_flight: Count | None = None
    """Requests that were outstanding when this second began; None if the driver does not know."""
    failures: dict[ErrorClass, PositiveInt] = Field(default_factory=dict)
    """`errors` by class; empty also if the driver does not know."""


class Bins(Record):
    """Latency counts in bins of equal width, from a driver that keeps nothing finer.

    COSBench's bins are 10 ms wide. `counts` are (bin, count) pairs: bin n holds latencies from n to
    n + 1 times `width_us`. `beyond` counts those in the last bin, which starts at `beyond_us` and
    has no upper edge.
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
            raise ValueError("bins are repeated, out of order, or beyond the last one")
        return self

    @property
    def count(self) -> int:
        return sum(count for _, count in self.counts) + self.beyond


class Tally(Record):
    """One operation inside the window. Latencies and bytes are of successes; `errors` has the
    failures.

    `latency` and `first_byte` are None if nothing succeeded (`first_byte` also of operations other
    than reads and listings, and if the driver does not time it), and if the driver keeps no
    histogram: it then gives `bins`, or (`rados bench`) only the extremes and the sum. min and max
    are exact, or None if the driver does not report them; the sum is exact except for drivers that
    report the mean in few digits, and None for one that reports no latencies at all (`rbd bench`).
    In a closed loop latency is the service time; at a constant rate it counts from the intended
    start.

    The other fields are None if the driver does not know them. `in_flight` is a histogram of the
    ages of requests that were not seen to end: outstanding when the window closed, at a rate also
    those whose intended start had passed, or given up after the timeout. Their latencies are at
    least that long (results.figures.reading).
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
    """None also if there were none."""
    in_flight_max_us: Count | None = None
    """The oldest of them, exact."""
    awaiting: str | None = None
    """Ages of those that had no first byte yet; others are in `first_byte`. None: unknown."""
    outstanding_us: Count | None = None
    """Sum of the ages of requests that were sent and outstanding when the window closed."""
    failed_us: Count | None = None
    """Time that failures cost their workers: until the failure, and the pause after it."""
    before_us: Count | None = None
    """The part of `sum_us`, `failed_us` and `outstanding_us` before the window opened."""

    @property
    def busy_us(self) -> int | None:
        """Time in the window in which workers had a request outstanding or paused after failing."""
        parts = (self.sum_us, self.failed_us, self.outstanding_us, self.before_us)
        if any(part is None for part in parts):
            return None
        done, failed, outstanding, before = (part or 0 for part in parts)
        return done + failed + outstanding - before

    @model_validator(mode="after")
    def _coherent(self) -> Tally:
        if self.latency is not None and (self.min_us is None or self.max_us is None):
            raise ValueError(f"{self.operation}: a histogram without min and max")
        if (self.in_flight is None) != (self.in_flight_max_us is None):
            raise ValueError(
                f"{self.operation}: `in_flight` and `in_flight_max_us` must be given together"
            )
        has_latencies = self.latency is not None or self.bins is not None or self.max_us is not None
        if has_latencies != (self.count > 0 and self.sum_us is not None):
            raise ValueError(
                f"{self.operation}: {self.count} successes do not fit the latencies given"
            )
        return self

    @property
    def failed(self) -> int:
        """How many requests failed, over all classes."""
        return sum(self.errors.values())


class EndpointTally(Record):
    """One of several endpoints of a gateway inside the window, all operations together. It counts
    requests: each part of an upload and each page of a listing is one, as are their begin and end.
    """

    name: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,300}$")]
    """Its host or address, and its port."""
    count: Count
    errors: dict[ErrorClass, Annotated[int, Field(gt=0)]] = Field(default_factory=dict)
    latency: str | None = None
    """Histogram of the latencies of successes; None if nothing succeeded."""
    left_out: bool = False
    """Whether it was left out, since connections to it had failed in a row."""

    @model_validator(mode="after")
    def _coherent(self) -> EndpointTally:
        if (self.latency is None) != (self.count == 0):
            raise ValueError(f"{self.name}: {self.count} successes do not fit the latencies given")
        return self

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def words(self) -> str:
        return ", ".join(f"{count} {name}" for name, count in sorted(self.errors.items()))


class ClientLoad(Record):
    """What one of several load generators used inside the window."""

    client: str
    """Its name in the hardware file."""
    cpu_s: NonNegativeFloat
    cpu_limit: Cpus

    def share(self, window_s: float) -> float:
        """The share of its CPU limit that it used."""
        return self.cpu_s / (self.cpu_limit * window_s)


class Load(Record):
    """What the driver used inside the window: shows whether it was the bottleneck."""

    cpu_s: NonNegativeFloat
    """CPU seconds of all the driver's processes, on all clients."""
    cpu_limit: Cpus
    """CPUs they may use: their cgroup's quota, else the machine's; all clients together."""
    window_s: WindowSeconds
    clients: tuple[ClientLoad, ...] = ()
    """Each of several clients; empty for a single one."""

    @property
    def busiest(self) -> ClientLoad:
        """The client with the least CPU left; its name is empty if there is only one."""
        if not self.clients:
            return ClientLoad(client="", cpu_s=self.cpu_s, cpu_limit=self.cpu_limit)
        return max(self.clients, key=lambda one: one.share(self.window_s))

    @property
    def share(self) -> float:
        """Of the busiest client: from 0.8 of its CPU limit it may be the bottleneck."""
        return self.busiest.share(self.window_s)


class Measurement(Record):
    """What one step gave. `window_s` is the real length of the window, by a monotonic clock."""

    schema_version: Literal[1] = SCHEMA_VERSION
    api: Api
    workload: str
    workers: Annotated[int, Field(ge=1)]
    driver: DriverName
    """The driver, or the tool of it that made the figures: `DriverTraits.tools`."""
    started_at: str
    """Start of the window, UTC, ISO 8601; for people, never for arithmetic."""
    window_s: WindowSeconds
    warmup_s: NonNegativeFloat
    tallies: tuple[Tally, ...]
    seconds: tuple[Second, ...] = ()
    begun: Count | None = None
    """At a rate: requests sent inside the window; None in a closed loop, and if unknown."""
    behind_us: Count | None = None
    """At a rate: how far behind its schedule the latest worker was when the window closed."""
    connections: Count | None = None
    """Connections that were made inside the window; None if the driver does not count them."""
    stall_us: Count | None = None
    """The longest time in the window in which a worker got no success; None: unknown."""
    endpoints: Annotated[tuple[EndpointTally, ...], Field(max_length=MOST_ENDPOINTS)] = ()
    """What came of requests to each of several endpoints; empty if unknown."""
    load: Load | None
    """None: the driver's use is unknown."""
    notes: tuple[str, ...] = ()
    """What readers must know, such as "objects to delete ran out after 4.2 s": see RAN_OUT."""

    @model_validator(mode="after")
    def _distinct(self) -> Measurement:
        names = [tally.operation for tally in self.tallies]
        if len(set(names)) != len(names):
            raise ValueError("two tallies of one operation")
        places = [one.name for one in self.endpoints]
        if len(set(places)) != len(places):
            raise ValueError("two tallies of one endpoint")
        return self

    @property
    def complete(self) -> tuple[Tally, ...]:
        """Tallies without those of parts, which are the same time and bytes again."""
        return tuple(one for one in self.tallies if one.operation not in PARTS)

    @property
    def done(self) -> int:
        """Complete operations that succeeded, of any kind."""
        return sum(tally.count for tally in self.complete)

    @property
    def driver_cpu_us_per_op(self) -> float | None:
        """CPU microseconds of the driver for each of them; None: unknown."""
        if self.load is None or not self.load.cpu_s or not self.done:
            return None
        return self.load.cpu_s / self.done * 1e6

    @property
    def imbalance(self) -> float | None:
        """How many times the mean the busiest endpoint served; None for one, or without success."""
        counts = [one.count for one in self.endpoints]
        if len(counts) < 2 or not any(counts):
            return None
        return max(counts) * len(counts) / sum(counts)


STEP_VERSION: Final = 1

UNLIKE: Final = "unlike its layout"
"""What a note of an A/A control's step begins with if what came before it was not the same."""

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
"""Layouts' and workloads' names: safe as parts of file names."""


class Pass(Record):
    """One pass through workloads on a deployment: its API, driver and layer."""

    api: Api
    driver: DriverName = DEFAULT_DRIVER
    layer: Layer | None = None
    """None: the gateway as clients see it (or whatever a suite without a gateway measures)."""
    workloads: tuple[Workload, ...]
    prepared: tuple[Workload, ...] = ()
    """Workloads written without a step; none of those that use the objects of others."""
    rados: RadosBenchOptions | None = None
    """How `rados bench` runs on this layout; None: as the suite says."""


class StepKey(Record):
    """What identifies one step of one repeat within its run. Repeats count from 0."""

    layout: Slug
    api: Api
    workload: Slug
    workers: Annotated[int, Field(ge=1)]
    repeat: NonNegativeInt
    driver: DriverName = DEFAULT_DRIVER
    layer: Layer | None = None
    rate_per_s: Annotated[float, Field(gt=0, le=1e9)] | None = None
    """The rate of a step of a search, which its workload does not have; None: an ordinary step."""
    search_step: Annotated[int, Field(ge=1)] | None = None
    """Which step of that search it is: one that confirms another has the same rate."""

    @model_validator(mode="after")
    def _of_a_search(self) -> StepKey:
        if (self.rate_per_s is None) != (self.search_step is None):
            raise ValueError("`rate_per_s` and `search_step` must be given together")
        return self

    @property
    def file_name(self) -> str:
        """A base name for this step's files, without extension."""
        words = [self.layout, self.api, self.workload, f"w{self.workers}", f"r{self.repeat}"]
        words += [f"s{self.search_step}"] if self.search_step is not None else []
        words += [f"at-{self.layer}"] if self.layer is not None else []
        return ".".join([*words, self.driver] if self.driver != DEFAULT_DRIVER else words)

    def files_of(self, time: int) -> str:
        """The same for a result that is of a later `time`."""
        return f"{self.file_name}.again-{time}" if time else self.file_name

    def __str__(self) -> str:
        by = "" if self.driver == DEFAULT_DRIVER else f" by {self.driver}"
        at = "" if self.layer is None else f", layer {self.layer}"
        rate = "" if self.rate_per_s is None else f"{self.rate_per_s:g} requests/s, "
        return (
            f"{self.layout}, {self.api}{by}{at}, {self.workload}, {self.workers} workers, "
            f"{rate}repeat {self.repeat + 1}"
        )


class Again(Record):
    """Of a step that is measured once more because other programs disturbed it: which time that is,
    and the share of the machine's CPUs that they used in this window and in the one that counted.
    """

    time: Annotated[int, Field(ge=1)]
    others: Annotated[float, Field(ge=0, le=1)] | None = None
    """None: unknown, or nothing was measured."""
    before: Annotated[float, Field(ge=0, le=1)]

    @property
    def calmer(self) -> bool:
        """Whether it was disturbed less."""
        return self.others is not None and self.others < self.before


class StepResult(Record):
    """Invalid without a `measurement`; `notes` say why. `order` is the place in time, from 0."""

    schema_version: Literal[1] = STEP_VERSION
    key: StepKey
    measurement: Measurement | None
    valid: bool
    notes: tuple[str, ...] = ()
    order: NonNegativeInt
    spoilt: bool = False
    """Whether a daemon died in this step. The result is kept; `resume` measures the step again."""
    again: Again | None = None
    """None: it is the step's first measurement."""

    @property
    def complete(self) -> bool:
        """Whether it is measured, valid or not, and need not be measured again."""
        return self.measurement is not None and not self.spoilt

    @property
    def time(self) -> int:
        """How often it was measured again before, or 0: its files are named so."""
        return 0 if self.again is None else self.again.time

    @model_validator(mode="after")
    def _coherent(self) -> StepResult:
        if self.spoilt and self.valid:
            raise ValueError("a step in which a daemon died cannot be valid")
        if self.measurement is None:
            if self.valid:
                raise ValueError("a step without a measurement cannot be valid")
            if not self.notes:
                raise ValueError("a step without a measurement must say why in its notes")
        elif (self.measurement.api, self.measurement.workload, self.measurement.workers) != (
            self.key.api,
            self.key.workload,
            self.key.workers,
        ):
            raise ValueError(f"the measurement is not one of {self.key}")
        return self


def counting(steps: Iterable[StepResult]) -> dict[StepKey, StepResult]:
    """The result of each step that counts, in the order the steps were first given: the last, but
    of measurements of one step the least disturbed, whatever their figures.
    """
    found: dict[StepKey, StepResult] = {}
    for step in steps:
        again = step.again
        if again is None or step.key not in found or (step.complete and again.calmer):
            found[step.key] = step
    return found


class Caveat(Record):
    """A known reason why a driver's figures differ from those of other drivers, as a clause."""

    text: str
    api: str | None = None
    """The API that it applies to; None: all."""
    fact: str = ""
    """If set: only for layouts with a fact named so at its end and matching `like`."""
    like: str = ""
    """A regular expression, searched for."""

    def applies(self, facts: Mapping[str, str]) -> bool:
        """Whether it applies to a layout with these facts."""
        return not self.fact or any(
            name.endswith(self.fact) and re.search(self.like, value) is not None
            for name, value in facts.items()
        )


class DriverTraits(Record):
    """A driver's label, and how far its figures are off."""

    name: str
    label: str
    tools: dict[str, str] = Field(default_factory=dict)
    """Labels of its tools, by the other names found in `Measurement.driver`."""
    rounding_us: NonNegativeInt = 0
    """Each reported latency is too low by less than this: the driver rounds down to whole units."""
    uncounted_requests: PositiveInt = 1
    """Requests per worker that are not counted at the ends of the window."""
    beside_gateway: bool = False
    """Whether it runs on the gateway's host, within that host's limits."""
    caveats: tuple[Caveat, ...] = ()


class HasTraits(Protocol):
    """An entry of the driver registry, as far as results are concerned."""

    @property
    def traits(self) -> DriverTraits:
        """See DriverTraits."""


DRIVERS: Final[Registry[HasTraits]] = Registry("weighbridge.drivers", "driver")


@cache
def traits_of(name: str) -> DriverTraits:
    """A driver's traits, by its name or one in its measurements; if not installed its name."""
    if name in DRIVERS:
        return DRIVERS[name].traits
    known = (one.traits for one in DRIVERS.values())
    return next(
        (traits for traits in known if name in traits.tools), DriverTraits(name=name, label=name)
    )


def driver_label(name: str) -> str:
    """The label of a driver."""
    return traits_of(name).label


def tool_label(name: str) -> str:
    """The label of the tool that made a measurement, by `Measurement.driver`."""
    traits = traits_of(name)
    return traits.tools.get(name, traits.label)
