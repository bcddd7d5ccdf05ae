"""Tunings: the settings of a layout that are tried, the objectives, and the spaces that ship."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.quantities import Seconds, parse_bytes, show_bytes
from weighbridge.common.record import Record
from weighbridge.common.structure import Scope
from weighbridge.suites.operations import Operation
from weighbridge.suites.suite import DEFAULT_DRIVER, Bounds, Durability, Suite
from weighbridge.suites.workload import CachePolicy, Name, Workload, every


class Objective(Record):
    """One figure of one workload to improve: more throughput, or a shorter p90, p99, max ...

    With `p90_within`: the largest throughput over those of the workload's worker counts whose p90
    is within it.
    """

    of: Annotated[str, Field(min_length=1, max_length=80)] = "throughput"
    """The key of a metric that can be compared (`weighbridge.results.figures.metrics`)."""
    workload: Name
    """The workload whose figure it is."""
    operation: Operation | None = None
    """Of a mix, the operation that counts; None: the only one."""
    workers: Annotated[int, Field(ge=1)] | None = None
    """One of the workload's worker counts; None: its only one, or with `p90_within` all."""
    p90_within: Annotated[Seconds, Field(gt=0)] | None = None
    """Makes it the largest throughput, over all worker counts, whose p90 is within this time."""

    @model_validator(mode="after")
    def _sensible(self) -> Objective:
        if self.p90_within is not None and self.of != "throughput":
            raise ValueError(f"p90_within: applies to throughput only, not to {self.of}")
        if self.p90_within is not None and self.workers is not None:
            raise ValueError(
                "workers: not allowed with p90_within, which covers all of the workload's counts"
            )
        return self

    @property
    def words(self) -> str:
        """`throughput of small-read at 16 workers`."""
        what = f"{self.operation} of {self.workload}" if self.operation else self.workload
        if self.p90_within is not None:
            return f"largest throughput of {what} with p90 within {self.p90_within * 1000:g} ms"
        if self.workers is None:
            return f"{self.of} of {what}"
        return f"{self.of} of {what} at {self.workers} worker{'s' * (self.workers > 1)}"

    def resolved(self, suite: Suite) -> Objective:
        """With operation and count filled in. Raises ValueError unless there is one such step."""
        workload = next((one for one in suite.workloads if one.name == self.workload), None)
        if workload is None:
            known = ", ".join(one.name for one in suite.workloads)
            raise ValueError(f"the suite has no workload {self.workload!r}; it has {known}")
        return self.model_copy(
            update={"operation": self._operation(workload), "workers": self._workers(workload)}
        )

    def counts(self, workload: Workload) -> tuple[int, ...]:
        """The worker counts to measure for a resolved objective."""
        return workload.workers if self.workers is None else (self.workers,)

    def _operation(self, workload: Workload) -> Operation:
        if self.operation is not None and self.operation not in workload.operations:
            raise ValueError(
                f"{workload.name} has no {self.operation}; it has {', '.join(workload.operations)}"
            )
        if self.operation is None and len(workload.operations) > 1:
            raise ValueError(
                f"{workload.name} is a mix: name one of its operations "
                f"({', '.join(workload.operations)})"
            )
        only: Operation = next(iter(workload.operations))
        return self.operation or only

    def _workers(self, workload: Workload) -> int | None:
        if self.p90_within is not None:
            return None
        counts = ", ".join(map(str, workload.workers))
        if self.workers is not None and self.workers not in workload.workers:
            raise ValueError(
                f"{workload.name} is not replayed at {self.workers} workers, but at {counts}"
            )
        if self.workers is None and len(workload.workers) > 1:
            raise ValueError(f"{workload.name} is replayed at {counts} workers: name one of these")
        return self.workers if self.workers is not None else workload.workers[0]


_SMALLEST_SIZE = 64 * 2**10


def _plain(value: object) -> object:
    if isinstance(value, str | int | float):
        return value
    found = "nothing" if value is None else repr(value)
    raise ValueError(f"must be a plain value (text, a number, true or false), not {found}")


Setting = Annotated[str | int | float | bool, BeforeValidator(_plain)]
"""A value as in a layout's file: `16MiB`, `512`, `true`, `leastconn`."""
Key = Annotated[str, Field(pattern=r"^[a-z][A-Za-z0-9_]*(\.[A-Za-z0-9_:-]+)*$")]
"""Dotted, below `settings` of a layout: `radosgw.threads`, `options.client.debug_rgw`."""


class Level(Record):
    """One value to try, and what must be set with it (Apache: a server limit for its threads)."""

    value: Setting
    also: dict[Key, Setting] = Field(default_factory=dict)


def _tag(value: Any) -> str:
    """Which of two types a value in a file is meant to be, so that faults are about that one."""
    return "mapping" if isinstance(value, dict | Level) else "value"


Tried = Annotated[
    Annotated[Level, Tag("mapping")] | Annotated[Setting, Tag("value")], Discriminator(_tag)
]
"""A value, or one with what must be set with it."""
Default = Annotated[
    Annotated[dict[str, Setting], Tag("mapping")] | Annotated[Setting, Tag("value")],
    Discriminator(_tag),
]
"""The same for every release, or by release."""


class Range(Record):
    """A range: `search` draws from it; `screen` and `grid` try `steps` values, ends included."""

    low: int | float | str
    """Its lowest value; sizes may have units."""
    high: int | float | str
    """Both ends may be sizes with units."""
    steps: Annotated[int, Field(ge=2, le=100)] = 3
    """How many values a screen or a grid tries, both ends among them."""
    scale: Literal["linear", "log"] = "linear"
    """How these are spaced."""

    @field_validator("low", "high", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool):
            raise ValueError("a range needs numbers: for true and false use values")
        return value

    @model_validator(mode="after")
    def _sensible(self) -> Range:
        low, high = self.ends
        if low >= high:
            raise ValueError(f"the lowest {self.low} is not below the highest {self.high}")
        if self.scale == "log" and low <= 0:
            raise ValueError(f"a range on a log scale must begin above 0, not at {self.low}")
        return self

    @property
    def is_integral(self) -> bool:
        """Whether its values are integers (bytes are)."""
        return not isinstance(self.low, float) and not isinstance(self.high, float)

    @property
    def ends(self) -> tuple[float, float]:
        """As numbers; sizes in bytes. Raises ValueError if one is no quantity."""
        low, high = (parse_bytes(end) for end in (self.low, self.high))
        return float(low), float(high)  # type: ignore[arg-type]  # numbers, as the fields say

    @property
    def values(self) -> tuple[int | float, ...]:
        """`steps` distinct values from the lowest to the highest."""
        low, high = self.ends
        shares = [number / (self.steps - 1) for number in range(1, self.steps - 1)]
        # A product of powers: in a range from 5e-324 the ratio of two values may overflow.
        log = self.scale == "log"
        between = [
            low ** (1 - share) * high**share if log else low + (high - low) * share
            for share in shares
        ]
        # The ends are exactly as given: low**0 * high**1 could be off by rounding.
        values = [low, *between, high]
        if self.is_integral:
            return tuple(dict.fromkeys(round(value) for value in values))
        return tuple(dict.fromkeys(values))


class Parameter(Record):
    """One setting to try. Reports show its effect, trap and reference."""

    key: Key
    """Dotted, below `settings` of the layout: `radosgw.threads`."""
    values: tuple[Tried, ...] = ()
    """The values to try besides the layout's ..."""
    range: Range | None = None
    """... or their range."""
    scope: Scope | None = None
    """What a change restarts; None: what the gateway knows to suffice. Less is refused."""
    option: str = ""
    """The daemon's name for it: `rgw_thread_pool_size`, `ThreadsPerChild`."""
    default: Default | None = None
    """The daemon's default, by release where they differ; None: it has none, or computes it."""
    effect: str = ""
    """What it does, and when it matters."""
    trap: str = ""
    """What can go wrong with it."""
    reference: str = ""
    """The source of these statements."""

    @model_validator(mode="after")
    def _one_source(self) -> Parameter:
        if bool(self.values) == (self.range is not None):
            raise ValueError(f"{self.key}: needs either values or a range")
        tried = [_quantity(level.value) for level in self.levels]
        if len(set(tried)) != len(tried):
            raise ValueError(f"{self.key}: the same value twice")
        if any(self.key in level.also for level in self.levels):
            raise ValueError(f"{self.key}: also: sets the parameter itself")
        return self

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels to try, in order."""
        if self.range is not None:
            return tuple(Level(value=value) for value in self.range.values)
        return tuple(one if isinstance(one, Level) else Level(value=one) for one in self.values)

    def default_at(self, release: str) -> Setting | None:
        """The daemon's default at a release; None if unknown."""
        return self.default.get(release) if isinstance(self.default, dict) else self.default


def _quantity(value: Setting) -> str:
    """The same text for equal values, however they are written: `64KiB` and 65536."""
    try:
        found = parse_bytes(value)
    except ValueError:
        return str(value)
    if isinstance(found, float) and found.is_integer():
        found = int(found)  # not the other way: floats cannot hold all integers
    return str(found)


def show_setting(value: Setting | None) -> str:
    """`on`; `16 MiB` for a round size from 64 KiB: 4096 may be threads; else unchanged."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and value >= _SMALLEST_SIZE and math.log2(value).is_integer():
        return show_bytes(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "unset" if value is None else str(value)


Strategy = Literal["screen", "grid", "search"]
"""`screen`: each value vs the baseline. `grid`: all combinations. `search`: Optuna's proposals."""


MOST_VALUES: Final = 500
"""Of all parameters together."""


class Trials(Record):
    """How often a setting is tried."""

    least: Annotated[int, Field(ge=2, le=100)] = 5
    """Trials before a setting is first judged; a claim needs 5."""
    most: Annotated[int, Field(ge=2, le=100)] = 8
    """Trials after which a setting that is still unclear is left as it is."""
    baseline_every: Annotated[int, Field(ge=1, le=50)] = 5
    """The baseline is tried again after at most so many trials, and at both ends of each round."""

    @model_validator(mode="after")
    def _ordered(self) -> Trials:
        if self.least > self.most:
            raise ValueError(f"least {self.least} is above most {self.most}")
        return self

    @property
    def looks(self) -> int:
        """How often a setting can be judged; intervals are widened to avoid chance findings."""
        return self.most - self.least + 1


class SearchOptions(Record):
    """Options of the search by Optuna; after it, the best proposals continue as in a screen."""

    proposals: Annotated[int, Field(ge=1, le=10_000)] = 24
    """Combinations that are tried."""
    trials: Annotated[int, Field(ge=1, le=20)] = 3
    """Most trials of a proposal; fewer once its interval shows it no better than the best."""
    startup: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Random proposals before the sampler (TPE) learns from them."""
    finalists: Annotated[int, Field(ge=1, le=20)] = 3
    """Of these, how many go on to rounds as in a screen."""


class Constraints(Record):
    """Limits that every measured step of a setting must keep, or the setting is not allowed."""

    error_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Share of operations that may fail; None: the suite's bound."""
    p90: Annotated[Seconds, Field(gt=0)] | None = None
    """Limit of the median over its trials."""
    stall: Annotated[Seconds, Field(gt=0)] | None = None
    """Limit of the longest stall of a worker in any of its trials, of workloads with a `fault`."""
    lost: Literal[0] | None = None
    """0: the winner may lose nothing that it acknowledged, in any power cut of the confirmation."""
    cuts: Annotated[int, Field(ge=1, le=1000)] = Durability().cuts
    """Power cuts of the winner, and of the baseline, with `lost: 0`."""


class Tuning(Record):
    """The content of a tuning file.

    It replays either a `suite` (a file, or the name of a shipped one) or its own `workloads`.
    """

    name: Name
    """What runs and reports call it."""
    about: str
    """One sentence, shown in reports."""
    layout: str
    """The baseline, a reference as on a command line: `rgw-beast@ceph-18:radosgw.threads=64`."""
    hardware: str | None = None
    """None: lab-cpu."""
    strategy: Strategy = "screen"
    """`screen`: each value by itself; `grid`: every combination; `search`: what Optuna proposes."""
    suite: str | None = None
    """A suite file, or the name of one that ships, of which the objectives' steps are replayed."""
    api: ObjectApi | None = None
    """None: the suite's first, or S3 with its own workloads."""
    workloads: tuple[Workload, ...] = ()
    cache: CachePolicy = "before-step"
    """With its own workloads only."""
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1, max_length=4)]
    """Of several: a setting is better if it is better in one and worse in none."""
    constraints: Constraints = Constraints()
    threshold: Bounds = Bounds()
    """The ratios by which figures must differ to matter."""
    parameters: Annotated[tuple[Parameter, ...], Field(min_length=1)]
    trials: Trials = Trials()
    search: SearchOptions = SearchOptions()
    budget: Annotated[Seconds, Field(gt=0)] | None = None
    """Time limit of the complete tuning, with its confirmation; None: no limit."""
    confirm: Annotated[int, Field(ge=0, le=100)] = 5
    """Visits of the winner and of the baseline on fresh deployments at the end; 0: none."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014
    """For the order of trials, the search and the load."""

    @field_validator("cache", mode="before")
    @classmethod
    def _every(cls, value: object) -> object:
        return every(value)

    @field_validator("parameters")
    @classmethod
    def _tryable(cls, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        _refuse_twice("two parameters are", [one.key for one in parameters])
        count = sum(len(one.levels) for one in parameters)
        if count > MOST_VALUES:
            why = "five trials of 10 s each take seven hours"
            raise ValueError(f"{count:,} values are named; at most {MOST_VALUES} are tried: {why}")
        return parameters

    @field_validator("objectives")
    @classmethod
    def _different_objectives(cls, objectives: tuple[Objective, ...]) -> tuple[Objective, ...]:
        _refuse_twice("the same objective twice:", [one.words for one in objectives])
        return objectives

    @field_validator("workloads")
    @classmethod
    def _different_workloads(cls, workloads: tuple[Workload, ...]) -> tuple[Workload, ...]:
        _refuse_twice("two workloads are named", [one.name for one in workloads])
        return workloads

    @model_validator(mode="after")
    def _coherent(self) -> Tuning:
        if (self.suite is None) == (not self.workloads):
            raise ValueError("needs either a suite or its own workloads")
        # Compared by value: a record read from a file has all its fields set.
        if self.strategy != "search" and self.search != SearchOptions():
            raise ValueError(f"search: given, but the strategy is {self.strategy}")
        if self.constraints.lost is not None and not self.confirm:
            raise ValueError(
                "constraints: lost: power is cut in the confirmation, and `confirm` is 0"
            )
        if self.constraints.lost is None and self.constraints.cuts != Constraints().cuts:
            raise ValueError("constraints: cuts: given without `lost: 0`")
        if self.suite is not None and self.cache != "before-step":
            raise ValueError("cache: given, but the suite has its own")
        return self

    def parameter(self, key: str) -> Parameter | None:
        """The parameter of a key; None for a key that is only set with another."""
        return next((one for one in self.parameters if one.key == key), None)

    @property
    def own(self) -> Suite:
        """The suite of its own workloads, if it names no suite."""
        return Suite(
            name=self.name,
            about=self.about,
            api=(self.api or "s3",),
            workloads=self.workloads,
            cache=self.cache,
            seed=self.seed,
        )

    def api_of(self, base: Suite) -> ObjectApi:
        """The API by which a suite is replayed. Raises ValueError if there is no such API."""
        known: list[ObjectApi] = [
            api for one in base.api for api in get_args(ObjectApi) if api == one
        ]
        wanted = self.api or (known[0] if known else None)
        if wanted is None or wanted not in known:
            raise ValueError(
                f"suite {base.name} has no {self.api or 'API of gateways'}; it has "
                f"{', '.join(base.api)}"
            )
        return wanted

    def suite_of(self, base: Suite | None) -> Suite:
        """The steps of `base` that objectives need. Raises ValueError as these and `api_of` do."""
        base = base or self.own
        api = self.api_of(base)
        objectives = [one.resolved(base) for one in self.objectives]
        workloads = []
        for workload in base.workloads:
            about_it = [one for one in objectives if one.workload == workload.name]
            wanted = {count for one in about_it for count in one.counts(workload)}
            counts = tuple(count for count in workload.workers if count in wanted)
            if counts:
                workloads.append(workload.model_copy(update={"workers": counts}))
        bounds = self.threshold
        if self.constraints.error_share is not None:
            bounds = bounds.model_copy(update={"error_share": self.constraints.error_share})
        update = {
            "name": self.name,
            "about": self.about,
            "api": (api,),
            "workloads": tuple(workloads),
            "driver": DEFAULT_DRIVER,
            "layers": (),
            "age": None,
            "durability": None,
            "control": False,
            "further": None,
            "repeats": self.trials.most,
            "bounds": bounds,
            "layouts": (),
            "seed": self.seed,
        }
        return base.model_copy(update=update)

    def confirming(self, replayed: Suite) -> Suite:
        """What the confirmation measures, of what the trials replay."""
        cuts = Durability(cuts=self.constraints.cuts)
        durability = None if self.constraints.lost is None else cuts
        return replayed.model_copy(update={"repeats": self.confirm, "durability": durability})


def _refuse_twice(words: str, names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{words} {', '.join(twice)}")
