from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeInt, model_validator

from weighbridge.common.record import Record
from weighbridge.results.record.measurement import Measurement
from weighbridge.suites import DEFAULT_DRIVER, Api, DriverName, Layer, RadosBenchOptions, Workload

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

    def __str__(self) -> str:
        by = "" if self.driver == DEFAULT_DRIVER else f" by {self.driver}"
        at = "" if self.layer is None else f", layer {self.layer}"
        rate = "" if self.rate_per_s is None else f"{self.rate_per_s:g} requests/s, "
        return (
            f"{self.layout}, {self.api}{by}{at}, {self.workload}, {self.workers} workers, "
            f"{rate}repeat {self.repeat + 1}"
        )


class StepResult(Record):
    """Without a `measurement` it is invalid; `notes` say why. `order` counts steps from 0 as they
    were made: to test for drift.
    """

    schema_version: Literal[1] = STEP_VERSION
    key: StepKey
    measurement: Measurement | None
    valid: bool
    notes: tuple[str, ...] = ()
    order: NonNegativeInt
    spoilt: bool = False
    """Whether a daemon died in this step. The result is kept; `resume` measures the step again."""

    @property
    def complete(self) -> bool:
        """Whether it is measured, valid or not, and need not be measured again."""
        return self.measurement is not None and not self.spoilt

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
