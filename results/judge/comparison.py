"""The records of a comparison: a cell for each metric, kind of requests and worker count.

`results.judge.comparing` computes them, from the tables of one or two runs, and
`results.judge.comparing` judges them; tables, maps, slides and exports read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.figures.doubt import Doubt, PowerMark, marks_of
from weighbridge.results.figures.metrics import METRICS, PRIMARY, WITH_BODIES, MetricKey
from weighbridge.results.figures.reading import Interval
from weighbridge.results.figures.statistics import Ratio, TTest
from weighbridge.results.figures.summary import Row
from weighbridge.results.numbers import show_ratio
from weighbridge.results.run.step import driver_label
from weighbridge.suites import DEFAULT_DRIVER, TRAITS, Api, DriverName, Operation

API_NAMES: Final[dict[Api, str]] = {
    "swift": "the Swift API",
    "s3": "the S3 API",
    "rados": "RADOS",
    "object-server": "Swift’s object servers",
    "rbd": "RBD",
    "cephfs": "CephFS",
}


Kind = tuple[str, Operation, Api, DriverName]
"""A kind of requests: workload, operation, API, and the driver that makes them."""


class OfAKind(Protocol):
    """A row, an effect or a finding: about one kind of requests."""

    @property
    def workload(self) -> str: ...
    @property
    def operation(self) -> Operation: ...
    @property
    def api(self) -> Api: ...
    @property
    def driver(self) -> DriverName: ...


def kind_of(one: OfAKind) -> Kind:
    """The kind of requests that a row, an effect or a finding is about."""
    return one.workload, one.operation, one.api, one.driver


def subjects(rows: Sequence[Row]) -> dict[Kind, str]:
    """The name of each kind of requests: `1 MB reads`; with API, driver, workload if needed."""
    return called({kind_of(row): requests_of(row.operation, row.object_size_bytes) for row in rows})


def called(requests: Mapping[Kind, str]) -> dict[Kind, str]:
    """What kinds of requests are called; no two are called the same."""
    apis, ways = {kind[2] for kind in requests}, {kind[2:] for kind in requests}
    names: dict[Kind, str] = {}
    for kind, name in requests.items():
        names[kind] = name + (f" over {API_NAMES[kind[2]]}" if len(apis) > 1 else "")
        names[kind] += f" by {driver_label(kind[3])}" if len(ways) > len(apis) else ""
    given = list(names.values())
    return {
        kind: f"{name} of {kind[0]}" if given.count(name) > 1 else name
        for kind, name in names.items()
    }


def requests_of(operation: Operation, object_size_bytes: float | None) -> str:
    """`64 kB reads`, `listings`: with the size of bodies, if known."""
    noun = TRAITS[operation].noun
    if operation in WITH_BODIES and object_size_bytes is not None:
        return f"{show_bytes(object_size_bytes)} {noun}"
    return noun


Verdict = Literal[
    "better", "worse", "too small to matter", "not significant", "provisional", "not comparable"
]
"""`better` and `worse`: the interval clears the practical threshold, corrected for all tests, and
the noise floor. `too small to matter`: the complete interval lies within the threshold, so the two
are equivalent. `not significant`: neither; these repeats leave both open. `provisional`: a mild
doubt touches a side, such as fewer than 5 repeats. `not comparable`: a grave one does, or a side
is missing, invalid or unsteady.
"""

Share = Annotated[float, Field(ge=0, le=1)]


class Effect(Record):
    """One metric of one kind of requests at one worker count, or over all (`workers` is None), of
    two sides.

    `ratio` is the subject's figure relative to the baseline's: above 1 is good for throughput and
    bad for latency. Figures are geometric means over the repeats, as in the table: op/s for
    throughput, ms for latencies.
    """

    workload: str
    operation: Operation
    api: Api
    driver: DriverName = DEFAULT_DRIVER
    about: str
    workers: int | None
    metric: MetricKey
    baseline: str
    subject: str
    baseline_value: NonNegativeFloat | None = None
    subject_value: NonNegativeFloat | None = None
    ratio: Ratio | None = None
    """None if not comparable; no interval if a side has one repeat; for bins the extremes of the
    ratio."""
    p: Share | None = None
    """Welch's two-sided test on logarithms; for latencies in bins the rank test's largest p."""
    q: Share | None = None
    """P-value of exceeding the practical threshold, after Benjamini and Hochberg's correction."""
    rank_p: Share | None = None
    """Two-sided Mann-Whitney test."""
    delta: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Cliff's delta: the share of pairs with the subject higher minus that with it lower."""
    smallest: PositiveFloat | None = None
    """The smallest ratio above 1 found 8 times in 10 with this spread and repeats; None if unknown.
    """
    noise: PositiveFloat | None = None
    """The machine's noise floor for this metric, as a ratio above 1; None: not known yet."""
    adjusted: PositiveFloat = 1.0
    """The factor in `ratio` by which other programs' load is taken out of it."""
    verdict: Verdict = "not significant"
    """Until judged by `results.judge.comparing.judge`."""
    doubts: tuple[Doubt, ...] = ()
    """Doubts about either side, grave ones first."""
    text: str = ""

    # What it is judged and worded by; not exported.
    sides: tuple[Row, Row] | None = Field(default=None, exclude=True, repr=False)
    """Baseline and subject, at the highest comparable worker count of several. None: a tuning."""
    tested: TTest | None = Field(default=None, exclude=True)
    """None for latencies in bins, and if a side has one repeat."""
    by_count: tuple[tuple[int, float], ...] = Field(default=(), exclude=True)
    """Over all worker counts: the comparable ones and their ratios."""
    reasons: str = Field(default="", exclude=True)
    """Why there is no ratio."""
    quiet: float | None = Field(default=None, exclude=True)
    """The ratio by windows that nobody disturbed, where some were."""
    bound: float = Field(default=1.0, exclude=True)
    """The practical threshold, as a ratio."""
    tests: NonNegativeInt = Field(default=0, exclude=True)
    """How many effects were corrected together with it."""

    @property
    def rows(self) -> tuple[Row, Row]:
        """Its sides. Raises ValueError if it has none."""
        if self.sides is None:
            raise ValueError(f"{self.subject} vs {self.baseline}: made without rows")
        return self.sides

    @property
    def power(self) -> tuple[PowerMark, ...]:
        """What power cuts did to its sides, if they write and a layout of the run was tried."""
        return marks_of([row.power for row in self.sides or ()])

    @property
    def bins(self) -> tuple[Interval, Interval] | None:
        """The bins of baseline and subject, for latencies in bins."""
        if self.sides is None:
            return None
        base, sub = (row.within(self.metric) for row in self.sides)
        return (base, sub) if base is not None and sub is not None else None

    @property
    def least(self) -> float:
        """How far apart the two are at least, as a ratio above 1; 1 if nothing is known."""
        if self.ratio is None:
            return 1.0
        if self.bins is None:
            return self.ratio.either_way
        return max(
            1.0, self.ratio.low or 0.0, 1 / self.ratio.high if self.ratio.high is not None else 0.0
        )

    @property
    def primary(self) -> bool:
        """Whether its metric is one of those that a run is made for: they are corrected by
        themselves.
        """
        return self.metric in PRIMARY

    @property
    def claimed(self) -> bool:
        return self.verdict in ("better", "worse", "too small to matter")


RUNS_FOR_A_FLOOR: Final = 3
"""Fewer runs of a machine say too little of how far its runs differ."""


class NoiseFloor(Record):
    """What an A/A control showed for one metric, and how far a layout differs from itself over the
    runs of this machine.
    """

    metric: MetricKey
    layout: str
    control: str
    ratio: Ratio
    """The control's figure relative to its layout's, which is the same: in truth 1."""
    cells: PositiveInt
    runs: PositiveInt
    """How many runs of this machine with its hardware had a control, this one included."""
    floor: PositiveFloat | None = None
    """95 % of these ratios are below it, either way; None for fewer than RUNS_FOR_A_FLOOR runs."""
    tested: TTest | None = Field(default=None, exclude=True)

    @property
    def shown(self) -> bool:
        """Whether the control differs from itself: distrust the machine or the statistics."""
        return self.ratio.shown

    @property
    def words(self) -> str:
        name = METRICS[self.metric].name
        ends = ""
        if self.ratio.low is not None and self.ratio.high is not None:
            low, high = (show_ratio(end) for end in (self.ratio.low, self.ratio.high))
            ends = f" ({low.removesuffix('×')} to {high.removesuffix('×')})"
        gave = f"gave {show_ratio(self.ratio.value)}{ends} of its own {name}"
        text = f"A/A control: {self.layout} measured again {gave}"
        text += ", which is not the same" if self.shown else ""
        if self.floor is None:
            left = RUNS_FOR_A_FLOOR - self.runs
            more = f"{left} more runs show" if left > 1 else "one more run shows"
            return f"{text}; how far runs of this machine differ is not known yet: {more} it."
        over = f"over {self.runs} runs of this machine {show_ratio(self.floor)}, in every interval"
        return f"{text}; noise floor {over}."


class Comparison(Record):
    """A complete comparison: of one run with its first layout as baseline, or of two runs."""

    baseline: str
    subjects: tuple[str, ...]
    effects: tuple[Effect, ...]
    rivals: tuple[Effect, ...] = ()
    """Throughput over all worker counts of pairs without the baseline: needed to find the leader.
    """
    noise: tuple[NoiseFloor, ...] = ()
    unused: tuple[str, ...] = ()
    """Why A/A controls gave no noise floor, a sentence each."""
    tests: NonNegativeInt
    unlike: tuple[str, ...] = ()
    """Guard facts in which compared runs differ, in words; empty within a run."""
