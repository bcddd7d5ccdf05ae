"""Published studies as plans that can be replayed: layouts, a suite, and the published figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field, PositiveFloat, PositiveInt, field_validator, model_validator

from weighbridge.common.document import did_you_mean
from weighbridge.common.quantities import BitsPerS
from weighbridge.common.record import Record
from weighbridge.suites.suite import RadosBenchOptions, Suite
from weighbridge.suites.workload import Name, Workload

Expectation = Literal["better", "not-better", "alike"]
"""Of one cell compared with another.

better: it is better. not-better: it is not better by more than `factor`. alike: they are within
`factor`.
"""

BANDWIDTH: Final = "bandwidth"
"""The throughput of complete bodies: it also compares requests of different sizes."""


class Cells(Record):
    """Cells of a replay: every combination of the named variants, workloads and worker counts.

    Worker counts are the study's.
    """

    variants: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    workers: tuple[PositiveInt, ...] = ()


class ConclusionCheck(Record):
    """One check of a replay: each cell of `of` is compared with the cells of `than`.

    What `than` leaves out is taken from the cell of `of`: `{variants: [swift]}` is Swift at the
    same workload and workers.
    """

    expect: Expectation
    metric: Annotated[str, Field(pattern=r"^[a-z0-9.-]{1,80}$")] = "throughput"
    """The key of a compared metric (`weighbridge.results.figures.metrics`), or BANDWIDTH."""
    of: Cells
    than: Cells
    factor: Annotated[float, Field(gt=1)] = 1.25
    """How far apart figures may be and still count as alike; `better` uses the suite's bounds."""

    @model_validator(mode="after")
    def _names_cells(self) -> ConclusionCheck:
        missing = [
            name for name in ("variants", "workloads", "workers") if not getattr(self.of, name)
        ]
        if missing:
            raise ValueError(f"of: {', '.join(missing)} must be named")
        if not (self.than.variants or self.than.workloads or self.than.workers):
            raise ValueError("than: at least one of variants, workloads and workers must be named")
        return self


class Conclusion(Record):
    """One of a study's conclusions; supported if all its checks hold in all their cells."""

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    says: str
    where: str = ""
    """Its place in the study, such as `Conclusion 7`."""
    checks: Annotated[tuple[ConclusionCheck, ...], Field(min_length=1)]
    note: str = ""
    """What of the conclusion no replay can check."""


# A study's own parameters at a scale: what layouts get, what hosts must have, what nothing gives.
#
# Each names its place in the study, so that a reader can check it.


HostRole = Literal["clients", "gateways", "stores", "all"]


class Parameter(Record):
    """A published parameter, and what of a layout or suite has its value."""

    says: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    """Its place in the study: a section, and a number or words to find it by."""
    variants: tuple[Name, ...] = ()
    """The variants that it is of; none: all."""
    set: Annotated[str, Field(pattern=r"^(:[a-z].*)?$")] = ""
    """Changes to their layouts, as the end of a reference: `:pools.data_pg_num=4096`."""
    rados: RadosBenchOptions | None = None
    """Options of `rados bench`, in place of the variant's own."""
    suite: str = ""
    """What of the scale's suite has its value, in words."""

    @property
    def here(self) -> str:
        """What has its value here."""
        words = [self.set.removeprefix(":").replace(":", ", "), self.suite]
        if self.rados is not None:
            given = self.rados.model_dump(exclude_unset=True)
            words.append(", ".join(f"rados bench: {key} {value}" for key, value in given.items()))
        return "; ".join(filter(None, words))

    @model_validator(mode="after")
    def _has_a_place(self) -> Parameter:
        if not (self.set or self.rados or self.suite):
            raise ValueError("needs at least one of set, rados and suite: what has its value?")
        return self


class HostNeed(Record):
    """Something that the study's hosts had, and that hardware must declare to replay it."""

    id: Name
    """For the command line, to accept that hosts lack it: `--despite disks`."""
    says: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    of: HostRole = "stores"
    hosts: PositiveInt | None = None
    """At least so many hosts of this role."""
    disks: PositiveInt | None = None
    """At least so many disks on each."""
    nic: BitsPerS | None = None
    """At least this rate of each NIC, as the hardware file describes it."""
    journal: bool = False
    """The last disk of each is another kind than the first, in a lab by its model."""
    mtu: PositiveInt | None = None
    """Of the network between all hosts."""
    profile: str | None = None
    """Kernel settings of all hosts, by the name of a profile."""

    @model_validator(mode="after")
    def _asks(self) -> HostNeed:
        asked = (self.hosts, self.disks, self.nic, self.mtu, self.profile)
        if not self.journal and all(one is None for one in asked):
            raise ValueError(
                f"{self.id} asks for nothing: hosts, disks, nic, journal, mtu, profile"
            )
        return self


class Lack(Record):
    """Something of the study that nothing here can give, and why."""

    says: Annotated[str, Field(min_length=1)]
    where: Annotated[str, Field(min_length=1)]
    why: Annotated[str, Field(min_length=1)]


class Beside(Record):
    """A pass by one of the study's own tools, on images or files in the same cluster."""

    driver: Name
    """`dd`, `bonnie` or any other driver of this API."""
    api: Literal["rbd", "cephfs"]
    workloads: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Names of workloads among the scale's `tools`."""
    variants: tuple[Name, ...] = ()
    """The variants that it is measured with; none: all that have the layer."""


ColumnName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,80}$")]
"""The column of `summary.csv` (`weighbridge.results.figures.metrics`); MB: 10^6 bytes."""

Where = Literal["variant", "workload", "workers"]


class PublishedColumn(Record):
    """One column of published figures; `ours` is our figure of the same kind, if any."""

    column: str
    title: str
    ours: ColumnName | None = None
    scale: PositiveFloat = 1.0
    """Factor from the published unit to ours: the MB of `rados bench` are MiB (1.048576)."""


class Replayed(Record):
    """The cell of a replay to show beside a published line; None: set by another rule, or none.

    `workers` are the study's.
    """

    variant: str | None = None
    workload: str | None = None
    workers: PositiveInt | None = None


class Rule(Record):
    """Published lines whose cells match `when` belong to a cell of the replay; later rules win."""

    when: dict[str, str]
    beside: Replayed

    def holds(self, line: dict[str, str]) -> bool:
        """Whether it applies to this line of the file."""
        return all(line.get(column) == value for column, value in self.when.items())


class Published(Record):
    """A file of published figures (results/published) and how it is read."""

    file: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,79}$")]
    """Its name without `.csv`."""
    title: str
    same: dict[Where, str] = Field(default_factory=dict)
    """Columns that directly hold the study's variants, workloads or worker counts."""
    rules: tuple[Rule, ...] = ()
    figures: Annotated[tuple[PublishedColumn, ...], Field(min_length=1)]
    note: str = ""
    """What a reader must know about these figures."""

    def beside(self, line: dict[str, str]) -> Replayed:
        """The cell of a replay to show beside a line. Raises ValueError if a cell is invalid."""
        found: dict[str, object] = {
            key: line[column] for key, column in self.same.items() if line.get(column)
        }
        for rule in self.rules:
            if rule.holds(line):
                found |= rule.beside.model_dump(exclude_none=True)
        return Replayed.model_validate(found)


ScaleName = Literal["lab", "full"]
"""lab: scaled to one machine of two cores. full: the study's numbers, on suitable hardware."""

OWN_DIMENSIONS = ("variant", "workload", "operation", "size", "workers", "api")
"""Dimensions of any study's figures, besides its own factors."""


class Source(Record):
    """Author, title, date and place of publication."""

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
    """One layout of the study: `layout` is a reference as on a command line."""

    name: Name
    layout: str
    factors: dict[str, str] = Field(default_factory=dict)
    rados: RadosBenchOptions | None = None
    """Options of `rados bench` for this variant; None: the suite's."""


WORKLOAD = "workload"
"""A factor of every study: the same variant with other workloads, such as reads from caches."""


class FactorComparison(Record):
    """A map of per cent change: each other level of a factor vs the baseline, all else equal.

    The factor is one of the variants', or `workload`.
    """

    factor: str
    baseline: str
    against: Annotated[tuple[str, ...], Field(min_length=1)]


class TableShape(Record):
    """A table as the study printed it: dimensions down and across, and the figures in its cells.

    Dimensions are variant, workload, operation, size, workers, api, and the study's factors.
    """

    title: str
    down: Annotated[tuple[str, ...], Field(min_length=1)]
    across: tuple[str, ...] = ()
    cells: dict[ColumnName, str]
    """Title of each figure, in order."""
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Levels of dimensions that the table covers; others are left out."""


class StudyScale(Record):
    """A size at which the study is replayed."""

    about: Annotated[tuple[str, ...], Field(min_length=1)]
    """How it differs from the study, and by how much, in sentences."""
    suite: Suite | None = None
    """The suite that is replayed ..."""
    suites: tuple[str, ...] = ()
    """... or the names of suites that ship, whose workloads are joined."""
    beneath: tuple[Workload, ...] = ()
    """Workloads that `rados bench` replays below the gateways of variants that have RADOS."""
    tools: tuple[Workload, ...] = ()
    """Workloads of the study's own tools on RBD and CephFS ..."""
    beside: tuple[Beside, ...] = ()
    """... and which tool replays which of them."""
    parameters: tuple[Parameter, ...] = ()
    """The study's parameters that layouts and suite have at this scale."""
    needs: tuple[HostNeed, ...] = ()
    """What hosts must have; others are refused."""
    lacks: tuple[Lack, ...] = ()
    """What of the study is not replayed at this scale, and why."""
    hardware: str | None = None
    """Hardware file, or the name of a shipped one; None: the command must name it."""
    variants: tuple[Name, ...] = ()
    """The study's variants that are replayed at this scale; none: all."""
    workers: dict[str, dict[int, PositiveInt]] = Field(default_factory=dict)
    """By workload: our worker count for each of the study's."""

    def study_workers(self, workload: str, workers: int) -> int:
        """The study's worker count for one of ours."""
        known = self.workers.get(workload, {})
        return next((theirs for theirs, ours in known.items() if ours == workers), workers)

    def our_workers(self, workload: str, workers: int) -> int:
        """Our worker count for one of the study's."""
        return self.workers.get(workload, {}).get(workers, workers)

    def of_variant(self, variant: str) -> tuple[Parameter, ...]:
        return tuple(one for one in self.parameters if not one.variants or variant in one.variants)

    @model_validator(mode="after")
    def _one_source(self) -> StudyScale:
        if (self.suite is None) == (not self.suites):
            raise ValueError("needs either a suite or the names of shipped suites")
        names = [one.name for one in self.tools]
        unknown = [
            f"no workload {name!r} among tools{did_you_mean(name, names)}"
            for one in self.beside
            for name in one.workloads
            if name not in names
        ]
        twice = _twice("two needs are named", [one.id for one in self.needs])
        if unknown or twice:
            raise ValueError("; ".join(dict.fromkeys([*unknown, *twice])))
        return self


class Study(Record):
    """A study: what it compared, how it is replayed, its tables and its published figures."""

    name: Name
    about: str
    source: Source
    common: str = ""
    """Changes to the layouts of all variants, as the end of a reference: `:osd.disks=5`."""
    variants: Annotated[tuple[Variant, ...], Field(min_length=1)]
    labels: dict[str, str] = Field(default_factory=dict)
    """What the study called levels of dimensions."""
    compares: tuple[FactorComparison, ...] = ()
    tables: Annotated[tuple[TableShape, ...], Field(min_length=1)]
    published: tuple[Published, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()
    """What the study concluded; each is checked against its replay."""
    scales: Annotated[dict[ScaleName, StudyScale], Field(min_length=1)]

    @property
    def factors(self) -> tuple[str, ...]:
        """Names of all factors, in the order of the variants."""
        return tuple(dict.fromkeys(name for variant in self.variants for name in variant.factors))

    def label(self, level: str) -> str:
        """What the study called a level."""
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
        known = [variant.name for variant in self.variants]
        ruled = {rule.beside.variant for one in self.published for rule in one.rules}
        faults = [
            *self._ambiguous_variants(),
            *self._unknown_factors(),
            *self._unknown_dimensions(),
            *_unknown("no variant", sorted(name for name in ruled if name is not None), known),
            *self._unknown_cells(),
            *self._unknown_variants(),
        ]
        if faults:
            raise ValueError("; ".join(dict.fromkeys(faults)))
        return self

    def _ambiguous_variants(self) -> list[str]:
        """Variants that cannot be told apart, or whose factors are incomplete."""
        faults = _twice("two variants are named", [variant.name for variant in self.variants])
        levels = [str(dict(sorted(variant.factors.items()))) for variant in self.variants]
        faults += _twice("two variants have the same factors:", levels)
        faults += [
            f"variant {variant.name} does not name {', '.join(missing)}"
            for variant in self.variants
            if (missing := [factor for factor in self.factors if factor not in variant.factors])
        ]
        return faults

    def _unknown_factors(self) -> list[str]:
        faults = []
        for one in self.compares:
            if one.factor == WORKLOAD:
                faults += self._unknown_workloads(one)
                continue
            if one.factor not in self.factors:
                faults.append(f"no factor {one.factor!r}{did_you_mean(one.factor, self.factors)}")
                continue
            levels = (one.baseline, *one.against)
            faults += _unknown(f"no variant has {one.factor}", levels, self.levels(one.factor))
        return faults

    def _unknown_workloads(self, one: FactorComparison) -> list[str]:
        """Workloads that no scale has; those of shipped suites are not known here."""
        if any(scale.suites for scale in self.scales.values()):
            return []
        known = [
            work.name
            for scale in self.scales.values()
            for work in (
                *(scale.suite.workloads if scale.suite else ()),
                *scale.beneath,
                *scale.tools,
            )
        ]
        return _unknown("no workload", (one.baseline, *one.against), known)

    def _unknown_dimensions(self) -> list[str]:
        known = (*OWN_DIMENSIONS, *self.factors)
        faults = []
        for table in self.tables:
            names = (*table.down, *table.across, *table.where)
            faults += _unknown(f"table {table.title!r} has no dimension", names, known)
        return faults

    def _unknown_cells(self) -> list[str]:
        """Conclusions about variants that the study does not have."""
        faults = _twice("two conclusions are named", [one.id for one in self.conclusions])
        variants = [variant.name for variant in self.variants]
        for one in self.conclusions:
            for check in one.checks:
                names = (*check.of.variants, *check.than.variants)
                faults += _unknown(f"conclusion {one.id}: no variant", names, variants)
        return faults

    def _unknown_variants(self) -> list[str]:
        """Variants of scales, parameters and tools that the study does not have."""
        variants = [variant.name for variant in self.variants]
        faults = []
        for name, scale in self.scales.items():
            named = list(scale.variants)
            for parameter in scale.parameters:
                named += parameter.variants
            for tool in scale.beside:
                named += tool.variants
            faults += _unknown(f"scale {name}: no variant", named, variants)
        return faults


def _unknown(what: str, names: Iterable[str], known: Sequence[str]) -> list[str]:
    return [f"{what} {name!r}{did_you_mean(name, known)}" for name in names if name not in known]


def _twice(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {name}" for name, count in Counter(names).items() if count > 1]
