"""A tuning: which settings of a layout are tried, how, and by what they are judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, get_args

from pydantic import Field, field_validator, model_validator

from weighbridge.common.endpoint import ObjectApi
from weighbridge.common.quantities import Seconds
from weighbridge.common.record import Record
from weighbridge.suites.suite import DEFAULT_DRIVER, Bounds, Every, Suite, every
from weighbridge.suites.tuning.objective import Objective
from weighbridge.suites.tuning.parameter import Parameter
from weighbridge.suites.workload import Name, Workload

Strategy = Literal["screen", "grid", "search"]
"""`screen`: each value by itself against the baseline.

`grid`: every combination. `search`: combinations that Optuna proposes.
"""


MOST_VALUES: Final = 500
"""Of all parameters together."""


class Trials(Record):
    """How often a setting is tried, and when it has been often enough."""

    least: Annotated[int, Field(ge=2, le=100)] = 5
    """Trials of a setting before it is judged for the first time; a claim needs 5."""
    most: Annotated[int, Field(ge=2, le=100)] = 8
    """Trials after which a setting that is still not clear is left at that."""
    baseline_every: Annotated[int, Field(ge=1, le=50)] = 5
    """After so many trials at the most the baseline is tried again; it also begins and ends each
    round.
    """

    @model_validator(mode="after")
    def _ordered(self) -> Trials:
        if self.least > self.most:
            raise ValueError(f"least {self.least} is above most {self.most}")
        return self

    @property
    def looks(self) -> int:
        """How often a setting is judged at the most; intervals are wider for it, so that looking
        often finds nothing by chance.
        """
        return self.most - self.least + 1


class SearchOptions(Record):
    """How Optuna's search goes.

    Each proposal is tried up to `trials` times; the best ones then go on as in a screen.
    """

    proposals: Annotated[int, Field(ge=1, le=10_000)] = 24
    trials: Annotated[int, Field(ge=1, le=20)] = 3
    """Of one proposal: fewer where the running interval says that it is no better than the best so
    far.
    """
    startup: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Proposals that are drawn at random before the sampler (TPE) learns from them."""
    finalists: Annotated[int, Field(ge=1, le=20)] = 3


class Constraints(Record):
    """What a setting must keep to on every step that is measured, or it is not allowed whatever it
    gains.
    """

    error_share: Annotated[float, Field(ge=0, le=1)] | None = None
    """Of operations that may fail; None: the suite's bound."""
    p90: Annotated[Seconds, Field(gt=0)] | None = None
    """The median over its trials may not be above this."""


class Tuning(Record):
    """What a tuning file says.

    Either a `suite` (a file, or the name of one that ships) or `workloads` of its own are replayed.
    """

    name: Name
    about: str
    layout: str
    """What is tuned, as it is (the baseline): a reference as a command line has it,
    `rgw-beast@ceph-18:radosgw.threads=64`.
    """
    hardware: str | None = None
    """None: what the command names, or lab-small."""
    strategy: Strategy = "screen"
    suite: str | None = None
    api: ObjectApi | None = None
    """None: the first that the suite has, or S3 with workloads of its own."""
    workloads: tuple[Workload, ...] = ()
    cache: Literal["none", "before-step"] | Every = "before-step"
    """With workloads of its own."""
    objectives: Annotated[tuple[Objective, ...], Field(min_length=1, max_length=4)]
    """Of several, a setting is better that is better in one and worse in none."""
    constraints: Constraints = Constraints()
    threshold: Bounds = Bounds()
    """By which ratio figures must differ for it to matter."""
    parameters: Annotated[tuple[Parameter, ...], Field(min_length=1)]
    trials: Trials = Trials()
    search: SearchOptions = SearchOptions()
    budget: Annotated[Seconds, Field(gt=0)] | None = None
    """What all of it may take, confirmation included; None: as long as it takes."""
    confirm: Annotated[int, Field(ge=0, le=100)] = 5
    """Visits of the winner and of the baseline on fresh deployments at the end; 0: none."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014

    @field_validator("cache", mode="before")
    @classmethod
    def _every(cls, value: object) -> object:
        return every(value)

    @field_validator("parameters")
    @classmethod
    def _different(cls, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        twice = _twice([one.key for one in parameters])
        if twice:
            raise ValueError(f"two parameters are {', '.join(twice)}")
        return parameters

    @field_validator("parameters")
    @classmethod
    def _countable(cls, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
        many = sum(len(one.levels) for one in parameters)
        if many > MOST_VALUES:
            why = "at five trials of 10 s each these take seven hours"
            raise ValueError(f"{many:,} values are named; at most {MOST_VALUES} are tried: {why}")
        return parameters

    @field_validator("objectives")
    @classmethod
    def _several(cls, objectives: tuple[Objective, ...]) -> tuple[Objective, ...]:
        twice = _twice([one.words for one in objectives])
        if twice:
            raise ValueError(f"the same objective twice: {', '.join(twice)}")
        return objectives

    @field_validator("workloads")
    @classmethod
    def _distinct(cls, workloads: tuple[Workload, ...]) -> tuple[Workload, ...]:
        twice = _twice([one.name for one in workloads])
        if twice:
            raise ValueError(f"two workloads are named {', '.join(twice)}")
        return workloads

    @model_validator(mode="after")
    def _coherent(self) -> Tuning:
        if (self.suite is None) == (not self.workloads):
            raise ValueError("either a suite or workloads of its own are wanted")
        # By their values: a record that was written down and is read again has all of its fields
        # given.
        if self.strategy != "search" and self.search != SearchOptions():
            raise ValueError(f"search: given, but the strategy is {self.strategy}")
        if self.suite is not None and self.cache != "before-step":
            raise ValueError("cache: given, but it is the suite's")
        return self

    def parameter(self, key: str) -> Parameter | None:
        """The parameter of a key; None for one that is only set with another."""
        return next((one for one in self.parameters if one.key == key), None)

    @property
    def own(self) -> Suite:
        """Its own workloads as a suite, of a tuning that names no suite."""
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

        Raises ValueError when it has not the one that is wanted, or none of gateways.
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
        """What is replayed: the steps of `base` (the suite that the file names), or of its own,
        that objectives are about.

        Raises ValueError when an objective is about no step of it, or it is not clear about which;
        and as `api_of` does.
        """
        base = base or self.own
        api = self.api_of(base)
        wanted: dict[str, set[int]] = {}
        for one in self.objectives:
            clear = one.resolved(base)
            workload = next(
                workload for workload in base.workloads if workload.name == clear.workload
            )
            wanted.setdefault(clear.workload, set()).update(clear.counts(workload))
        workloads = [
            workload.model_copy(
                update={
                    "workers": tuple(
                        count for count in workload.workers if count in wanted[workload.name]
                    )
                }
            )
            for workload in base.workloads
            if workload.name in wanted
        ]
        bounds = (
            self.threshold
            if self.constraints.error_share is None
            else self.threshold.model_copy(update={"error_share": self.constraints.error_share})
        )
        update = {
            "name": self.name,
            "about": self.about,
            "api": (api,),
            "workloads": tuple(workloads),
            "driver": DEFAULT_DRIVER,
            "layers": (),
            "age": None,
            "repeats": self.trials.most,
            "bounds": bounds,
            "layouts": (),
            "seed": self.seed,
        }
        return base.model_copy(update=update)


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
