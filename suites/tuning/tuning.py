"""A tuning: which settings of a layout are tried, how, and with which objectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, field_validator, model_validator

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.suites.cache_policy import CachePolicy, every
from weighbridge.suites.durability import Durability
from weighbridge.suites.suite import DEFAULT_DRIVER, Bounds, Suite
from weighbridge.suites.tuning.objective import Objective
from weighbridge.suites.tuning.parameter import Parameter
from weighbridge.suites.workload import Name, Workload

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
    def _different_parameters(cls, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        twice = _twice([one.key for one in parameters])
        if twice:
            raise ValueError(f"two parameters are {', '.join(twice)}")
        return parameters

    @field_validator("parameters")
    @classmethod
    def _not_too_many(cls, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        count = sum(len(one.levels) for one in parameters)
        if count > MOST_VALUES:
            why = "five trials of 10 s each take seven hours"
            raise ValueError(f"{count:,} values are named; at most {MOST_VALUES} are tried: {why}")
        return parameters

    @field_validator("objectives")
    @classmethod
    def _different_objectives(cls, objectives: tuple[Objective, ...]) -> tuple[Objective, ...]:
        twice = _twice([one.words for one in objectives])
        if twice:
            raise ValueError(f"the same objective twice: {', '.join(twice)}")
        return objectives

    @field_validator("workloads")
    @classmethod
    def _different_workloads(cls, workloads: tuple[Workload, ...]) -> tuple[Workload, ...]:
        twice = _twice([one.name for one in workloads])
        if twice:
            raise ValueError(f"two workloads are named {', '.join(twice)}")
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
        """The API by which a suite is replayed.

        Raises ValueError if the suite lacks the wanted API, or has no API of gateways.
        """
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
        """What is replayed: the steps of `base` (the named suite, or its own) that objectives need.

        Raises ValueError if an objective matches no step or several, and as `api_of` does.
        """
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


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
