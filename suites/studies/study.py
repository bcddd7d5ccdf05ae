"""A study that was published, as a plan that can be replayed on lab hosts or at its own size."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, PositiveInt, field_validator, model_validator

from weighbridge.common.document import did_you_mean
from weighbridge.common.record import Record
from weighbridge.suites.studies.conclusion import Conclusion
from weighbridge.suites.studies.published import Measured, Published
from weighbridge.suites.suite import RadosBenchOptions, Suite
from weighbridge.suites.workload import Name, Workload

ScaleName = Literal["lab", "full"]
"""lab: scaled to one machine of two cores. full: the study's own numbers, on hardware that can hold
them.
"""

OWN_DIMENSIONS = ("variant", "workload", "operation", "size", "workers")
"""What tells one figure of any study from another, beside the study's own factors."""


class Source(Record):
    """Who published it, what it is called, when, and where it stood."""

    author: str
    title: str
    date: Annotated[str, Field(pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
    where: str = ""

    @field_validator("date", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        """YAML reads 2012-12-20 as a date, and 2012 as a number."""
        return value if isinstance(value, str) or value is None else str(value)

    def __str__(self) -> str:
        return f"{self.author}, {self.title}, {self.where + ', ' if self.where else ''}{self.date}"


class Variant(Record):
    """One layout of the study.

    `layout` is a reference as a command line has it; `factors` say what it is in the study's words.
    """

    name: Name
    layout: str
    factors: dict[str, str] = Field(default_factory=dict)
    rados: RadosBenchOptions | None = None
    """How `rados bench` is run on it, where that is what it differs in; None: as the suite says."""


class FactorComparison(Record):
    """A map of per cent change: what each other level of a factor does against the baseline, all
    else being the same.
    """

    factor: str
    baseline: str
    against: Annotated[tuple[str, ...], Field(min_length=1)]


class TableShape(Record):
    """A table as the study printed it: which dimensions run down and across, and what stands in its
    cells.

    Dimensions are variant, workload, operation, size, workers, and the study's factors.
    """

    title: str
    down: Annotated[tuple[str, ...], Field(min_length=1)]
    across: tuple[str, ...] = ()
    cells: dict[Measured, str]
    """Title of each figure, in order."""
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Levels of dimensions that the table is about; all others are left out."""


class StudyScale(Record):
    """A size at which the study is replayed."""

    about: Annotated[tuple[str, ...], Field(min_length=1)]
    """What is smaller than in the study or otherwise, and by how much, in sentences."""
    suite: Suite | None = None
    """The suite that is replayed ..."""
    suites: tuple[str, ...] = ()
    """... or the names of suites that ship, whose workloads are joined."""
    beneath: tuple[Workload, ...] = ()
    """Workloads that `rados bench` replays beneath the gateways of those variants that have RADOS.
    """
    hardware: str | None = None
    """Hardware file, or the name of one that ships; None: it must be given with the command."""
    workers: dict[str, dict[int, PositiveInt]] = Field(default_factory=dict)
    """By workload, what stands here for each of the study's own numbers of workers."""

    def study_workers(self, workload: str, workers: int) -> int:
        """The study's own number of workers for one of ours."""
        known = self.workers.get(workload, {})
        return next((theirs for theirs, ours in known.items() if ours == workers), workers)

    def our_workers(self, workload: str, workers: int) -> int:
        """Our number of workers for one of the study's own."""
        return self.workers.get(workload, {}).get(workers, workers)

    @model_validator(mode="after")
    def _one(self) -> StudyScale:
        if (self.suite is None) == (not self.suites):
            raise ValueError("either a suite or the names of suites that ship are wanted")
        return self


class Study(Record):
    """A study: what it compared, how it is replayed, how its tables looked, and what it
    published.
    """

    name: Name
    about: str
    source: Source
    common: str = ""
    """Changes to the layouts of all variants, as the end of a reference: `:osd.disks=5`."""
    variants: Annotated[tuple[Variant, ...], Field(min_length=1)]
    labels: dict[str, str] = Field(default_factory=dict)
    """What levels of dimensions were called in the study."""
    compares: tuple[FactorComparison, ...] = ()
    tables: Annotated[tuple[TableShape, ...], Field(min_length=1)]
    published: tuple[Published, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    """What the study concluded, each of which is held against what its replay measured."""
    scales: Annotated[dict[ScaleName, StudyScale], Field(min_length=1)]

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of all factors, in the order in which variants name them."""
        return tuple(dict.fromkeys(name for variant in self.variants for name in variant.factors))

    def label(self, level: str) -> str:
        """What a level was called in the study."""
        return self.labels.get(level, level)

    def levels(self, factor: str) -> tuple[str, ...]:
        """All levels of a factor, in the order of the variants."""
        return tuple(
            dict.fromkeys(
                variant.factors[factor] for variant in self.variants if factor in variant.factors
            )
        )

    @model_validator(mode="after")
    def _coherent(self) -> Study:
        faults = [
            *self._unlike(),
            *self._strange_factors(),
            *self._strange_dimensions(),
            *self._strange_rules(),
        ]
        faults += self._strange_cells()
        if faults:
            raise ValueError("; ".join(dict.fromkeys(faults)))
        return self

    def _unlike(self) -> list[str]:
        """Variants that cannot be told apart."""
        names = Counter(variant.name for variant in self.variants)
        faults = [f"two variants are named {name}" for name, count in names.items() if count > 1]
        levels = Counter(tuple(sorted(variant.factors.items())) for variant in self.variants)
        faults += [
            f"two variants have the same factors: {dict(one)}"
            for one, count in levels.items()
            if count > 1
        ]
        lacking = [
            f"variant {variant.name} says nothing of {', '.join(missing)}"
            for variant in self.variants
            if (missing := [factor for factor in self.factors if factor not in variant.factors])
        ]
        return faults + lacking

    def _strange_factors(self) -> list[str]:
        faults = []
        for one in self.compares:
            if one.factor not in self.factors:
                faults.append(f"no factor {one.factor!r}{did_you_mean(one.factor, self.factors)}")
                continue
            known = self.levels(one.factor)
            faults += [
                f"no variant has {one.factor} {level!r}{did_you_mean(level, known)}"
                for level in (one.baseline, *one.against)
                if level not in known
            ]
        return faults

    def _strange_dimensions(self) -> list[str]:
        known = (*OWN_DIMENSIONS, *self.factors)
        return [
            f"table {table.title!r} has no dimension {name!r}{did_you_mean(name, known)}"
            for table in self.tables
            for name in (*table.down, *table.across, *table.where)
            if name not in known
        ]

    def _strange_rules(self) -> list[str]:
        known = [variant.name for variant in self.variants]
        named = {rule.beside.variant for one in self.published for rule in one.rules} - {None}
        return [
            f"no variant {name!r}{did_you_mean(str(name), known)}"
            for name in sorted(named - set(known), key=str)
        ]

    def _strange_cells(self) -> list[str]:
        """Conclusions about what the study does not have."""
        faults = [
            f"two conclusions are named {name}"
            for name, count in Counter(one.id for one in self.conclusions).items()
            if count > 1
        ]
        variants = [variant.name for variant in self.variants]
        for one in self.conclusions:
            for cells in (cells for check in one.checks for cells in (check.of, check.than)):
                strange = [name for name in cells.variants if name not in variants]
                faults += [
                    f"conclusion {one.id}: no variant {name!r}{did_you_mean(name, variants)}"
                    for name in strange
                ]
        return faults
