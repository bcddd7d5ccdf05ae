"""The records of a comparison: one cell for each metric, kind of requests and worker count, of one
side against a baseline.

`results.analysis.contrast` measures them, of the tables of one run or of two, and
`results.analysis.comparing` judges them; tables, maps, slides and exports read them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from weighbridge.common.record import Record
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.doubt import Doubt
from weighbridge.results.figures import show_ratio
from weighbridge.results.interval import Interval
from weighbridge.results.metrics import METRICS, MetricKey
from weighbridge.results.statistics import Ratio, TTest
from weighbridge.suites import DEFAULT_DRIVER, Api, DriverName, Operation

Verdict = Literal[
    "better", "worse", "too small to matter", "not shown", "provisional", "not comparable"
]
"""`better` and `worse`: the interval clears the practical threshold, corrected for all that is
tested, and the noise floor. `too small to matter`: the whole interval lies within the threshold, so
that the two are equivalent. `not shown`: neither; these repeats leave both open. `provisional`: a
mild doubt touches a side, such as fewer than 5 repeats. `not comparable`: a grave one does, or a
side is missing, not valid or not steady.
"""

Share = Annotated[float, Field(ge=0, le=1)]


class Effect(Record):
    """One metric of one kind of requests at one worker count, or over all of them (`workers` is
    None), of two sides.

    `ratio` is how many times the baseline's figure the subject's is: above 1 is good of throughput,
    and bad of a latency. Figures are geometric means of the repeats' own, as in the table: op/s of
    throughput, ms of latencies.
    """

    workload: str
    operation: Operation
    api: Api
    driver: DriverName = DEFAULT_DRIVER
    about: str
    """What the requests are called: `64 kB reads`."""
    workers: int | None
    metric: MetricKey
    baseline: str
    subject: str
    baseline_value: NonNegativeFloat | None = None
    subject_value: NonNegativeFloat | None = None
    ratio: Ratio | None = None
    """None where the sides cannot be compared; without an interval where a side has one repeat. Of
    latencies that are told in bins its ends are what the bins allow the ratio of the medians to be."""
    p: Share | None = None
    """Of Welch's test on the logarithms, two-sided; of latencies told in bins the largest that the
    rank test could come to.
    """
    q: Share | None = None
    """How often chance would put it as far beyond the practical threshold, after Benjamini and
    Hochberg's correction over all cells of the map."""
    rank_p: Share | None = None
    """Of the two-sided Mann-Whitney test."""
    delta: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Cliff's delta: the share of pairs in which the subject is higher less that in which it is
    lower.
    """
    smallest: PositiveFloat | None = None
    """The smallest ratio above 1 that so many repeats of such a spread show 8 times in 10; None
    where no spread is known.
    """
    noise: PositiveFloat | None = None
    """The rig's noise floor for this metric, as a ratio above 1; None where no A/A trial was made.
    """
    verdict: Verdict = "not shown"
    """Until it is judged (`results.analysis.comparing.judge`) no difference is."""
    doubts: tuple[Doubt, ...] = ()
    """What there is to doubt of either side, the grave first."""
    text: str = ""
    """The verdict in one sentence of plain words."""

    # What it was judged and worded by, which is no part of what is exported.
    sides: tuple[Row, Row] | None = Field(default=None, exclude=True, repr=False)
    """Baseline and subject; over all worker counts, those of the highest that can be compared.

    None of a tuning's.
    """
    tested: TTest | None = Field(default=None, exclude=True)
    """None of latencies in bins, and where a side has one repeat."""
    by_count: tuple[tuple[int, float], ...] = Field(default=(), exclude=True)
    """Over all worker counts: each that could be compared, and its ratio."""
    lacking: tuple[int, ...] = Field(default=(), exclude=True)
    """Over all worker counts: those that could not be compared."""
    reasons: str = Field(default="", exclude=True)
    """Why there is no ratio."""
    drift: float = Field(default=1.0, exclude=True)
    """By how much at most the ratio may be off for drifts within windows that are not ruled out, as
    a ratio from 1 up.
    """
    bound: float = Field(default=1.0, exclude=True)
    """The practical threshold, as a ratio."""
    tests: NonNegativeInt = Field(default=0, exclude=True)
    """How many were corrected together with it."""

    @property
    def rows(self) -> tuple[Row, Row]:
        """Its sides. Raises ValueError of one that has none."""
        if self.sides is None:
            raise ValueError(f"{self.subject} beside {self.baseline}: of no rows")
        return self.sides

    @property
    def bins(self) -> tuple[Interval, Interval] | None:
        """What the latencies of baseline and subject lie in, where they are told in bins."""
        if self.sides is None:
            return None
        base, sub = (row.within(self.metric) for row in self.sides)
        return (base, sub) if base is not None and sub is not None else None

    @property
    def least(self) -> float:
        """How far the two are apart, as a ratio above 1; of latencies in bins at the very least. 1
        where nothing is known.
        """
        if self.ratio is None:
            return 1.0
        if self.bins is None:
            return self.ratio.either_way
        return max(
            1.0, self.ratio.low or 0.0, 1 / self.ratio.high if self.ratio.high is not None else 0.0
        )

    @property
    def claimed(self) -> bool:
        """Whether something is claimed by it: that one is better, or that the two are
        equivalent.
        """
        return self.verdict in ("better", "worse", "too small to matter")


class NoiseFloor(Record):
    """What an A/A control gave for one metric: how far a layout is from itself, over all cells and
    pairs of repeats.

    Ratios are above 1. `ratio` is what 95 % of the differences between means of so many repeats
    stay below; `low` and `high` are the 95 % interval of that figure itself, since it is an
    estimate of `pairs` pairs.
    """

    metric: MetricKey
    layout: str
    twin: str
    ratio: PositiveFloat
    low: PositiveFloat
    high: PositiveFloat
    pairs: PositiveInt
    """Repeats of the layout beside repeats of its control, in all cells."""
    cells: PositiveInt
    shown: NonNegativeInt = 0
    """In how many cells a test shows a difference: where it is not 0, the machine or the statistics
    are not to be trusted.
    """
    repeats: PositiveInt

    @property
    def words(self) -> str:
        """One sentence about it."""
        many = f"{self.pairs} pairs of repeats in {self.cells} cell{'s' * (self.cells > 1)}"
        text = (
            f"Noise floor of {METRICS[self.metric].name}: {self.layout} beside itself, {many}: "
            "differences between means of "
            f"{self.repeats} stay below {show_ratio(self.ratio)} 95 times in 100 "
            f"({show_ratio(self.low)} to {show_ratio(self.high)})."
        )
        if self.shown:
            text += (
                f" In {self.shown} of the cells a difference was shown where there is none: "
                "take every verdict with care."
            )
        return text


class Comparison(Record):
    """All that was compared: of one run with its first layout as baseline, or of two runs."""

    baseline: str
    subjects: tuple[str, ...]
    effects: tuple[Effect, ...]
    rivals: tuple[Effect, ...] = ()
    """Throughput over all worker counts of each two layouts of which neither is the baseline: they
    decide who leads, too.
    """
    noise: tuple[NoiseFloor, ...] = ()
    unused: tuple[str, ...] = ()
    """Why controls that were made give no noise floor, a sentence each."""
    tests: NonNegativeInt
    """How many tests of cells there were, of all metrics; those of a metric are corrected for their
    number.
    """
    unlike: tuple[str, ...] = ()
    """Guard facts in which two runs differ that were compared all the same, in words; empty within
    a run.
    """
