"""One line of `steps.jsonl`: which step of which repeat on which layout, and what it gave."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, NonNegativeInt, model_validator

from weighbridge.common.record import Record
from weighbridge.results.record.measurement import Measurement
from weighbridge.suites import DEFAULT_DRIVER, Api, DriverName, Layer, RadosBenchOptions, Workload

STEP_VERSION: Final = 1
"""1: the first."""

Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
"""Names of layouts and workloads: lower case letters, digits and hyphens, so that they can be parts
of file names.
"""


class Pass(Record):
    """Going through workloads on one deployment once: over which API, by which driver, at which
    layer.
    """

    api: Api
    driver: DriverName = DEFAULT_DRIVER
    layer: Layer | None = None
    """None: the gateway as its clients find it, or what the suite is about where it is about none.
    """
    workloads: tuple[Workload, ...]
    rados: RadosBenchOptions | None = None
    """How `rados bench` is run on this layout alone; None: as the suite says."""


class StepKey(Record):
    """What tells one step of one repeat from every other of its run. Repeats count from 0."""

    layout: Slug
    api: Api
    workload: Slug
    workers: Annotated[int, Field(ge=1)]
    repeat: NonNegativeInt
    driver: DriverName = DEFAULT_DRIVER
    layer: Layer | None = None

    @property
    def file_name(self) -> str:
        """A name for files of this step alone, without an ending."""
        words = [self.layout, self.api, self.workload, f"w{self.workers}", f"r{self.repeat}"]
        words += [f"at-{self.layer}"] if self.layer is not None else []
        return ".".join([*words, self.driver] if self.driver != DEFAULT_DRIVER else words)

    def __str__(self) -> str:
        by = "" if self.driver == DEFAULT_DRIVER else f" by {self.driver}"
        at = "" if self.layer is None else f", layer {self.layer}"
        return (
            f"{self.layout}, {self.api}{by}{at}, {self.workload}, {self.workers} workers, "
            f"repeat {self.repeat + 1}"
        )


class StepResult(Record):
    """What a step gave. `measurement` is None when there is none, and `notes` say why; then it is
    not valid either.

    `order` counts the steps of the run from 0 as they were visited, to test for drift and effects
    of order.
    """

    schema_version: Literal[1] = STEP_VERSION
    key: StepKey
    measurement: Measurement | None
    valid: bool
    notes: tuple[str, ...] = ()
    order: NonNegativeInt
    spoilt: bool = False
    """Whether the gateway did not stay whole in it: a daemon died. What it gave is kept; when the
    run is gone on with, it is measured again.
    """

    @property
    def whole(self) -> bool:
        """Whether it is measured, valid or not, and need not be again."""
        return self.measurement is not None and not self.spoilt

    @model_validator(mode="after")
    def _coherent(self) -> StepResult:
        if self.spoilt and self.valid:
            raise ValueError("a step in which the gateway did not stay whole cannot be valid")
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
