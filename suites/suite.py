"""A suite: named workloads and how they are replayed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from ground.quantities import Seconds, parse_seconds
from ground.record import Record
from suites.workload import Name, Workload

Api = Literal["swift", "s3"]


class Every(Record):
    """Caches dropped again and again while a step runs; the 2014 study did so every minute."""

    every: Annotated[Seconds, Field(ge=1)]


class Bounds(Record):
    """What a step may show and still be valid."""

    error_share: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Share of operations that may fail (0.1 %: design rule 20)."""


class Suite(Record):
    """What is replayed against every gateway of a run."""

    name: Name
    about: str
    api: Annotated[tuple[Api, ...], Field(min_length=1)] = ("swift",)
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1)]
    layouts: tuple[str, ...] = ("rgw-beast", "swift")
    """Names of layouts compared when the command names none."""
    driver: Literal["locust"] = "locust"
    users: Literal["engine", "sdk"] = "engine"
    """Who makes the requests: the native engine, or boto3 / python-swiftclient as an application would."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """Locust worker processes a client host."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    cache: Literal["none", "before-step"] | Every = "before-step"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2014
    bounds: Bounds = Bounds()

    @field_validator("cache", mode="before")
    @classmethod
    def _every(cls, value: object) -> object:
        if isinstance(value, str) and value.startswith("every "):
            return {"every": parse_seconds(value.removeprefix("every ").strip())}
        return value

    @field_validator("layouts", "api")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("the same name twice")
        return value

    @model_validator(mode="after")
    def _distinct(self) -> Suite:
        names = [workload.name for workload in self.workloads]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two workloads are named {', '.join(twice)}")
        return self

    @property
    def steps(self) -> int:
        """How many steps one gateway is measured at in one repeat."""
        return len(self.api) * sum(len(workload.workers) for workload in self.workloads)
