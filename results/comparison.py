"""The records of a comparison: one cell for each metric, kind of requests and worker count, of one side against a baseline.

`results.comparing` makes them of the tables of one run or of two; tables, maps, slides and exports read them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from ground.record import Record
from results.statistics import Ratio
from suites import Api, DriverName, Operation

Metric = Literal["throughput", "p90"]

Verdict = Literal["better", "worse", "too small to matter", "not shown", "no claim", "not comparable"]
"""`better` and `worse`: shown (the corrected p-value and the interval say so), beyond the practical threshold, of enough repeats.
`too small to matter`: shown, but within the threshold. `not shown`: this many repeats show no difference, or none that is beyond
the rig's noise floor, which is not the same as there being none. `no claim`: fewer than 5 repeats of a side. `not comparable`: a
side is missing, not valid or not steady.
"""

Share = Annotated[float, Field(ge=0, le=1)]


class Effect(Record):
    """One metric of one kind of requests at one worker count, or over all of them (`workers` is None), of two sides.

    `ratio` is how many times the baseline's figure the subject's is: above 1 is good of throughput, and bad of a latency. Figures
    are medians over the repeats, as in the table: op/s of throughput, ms of p90.
    """

    workload: str
    operation: Operation
    api: Api
    driver: DriverName = "locust"
    about: str
    """What the requests are called: `64 kB reads`."""
    workers: int | None
    metric: Metric
    baseline: str
    subject: str
    baseline_value: NonNegativeFloat | None = None
    subject_value: NonNegativeFloat | None = None
    ratio: Ratio | None = None
    """None where the sides cannot be compared; without an interval where a side has one repeat. Of latencies that are told in bins
    its ends are what the bins allow the ratio of the medians to be."""
    p: Share | None = None
    """Of Welch's test on the logarithms, two-sided; of latencies told in bins the largest that the rank test could come to."""
    q: Share | None = None
    """The same after Benjamini and Hochberg's correction over all cells of the map."""
    rank_p: Share | None = None
    """Of the two-sided Mann-Whitney test."""
    delta: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Cliff's delta: the share of pairs in which the subject is higher less that in which it is lower."""
    smallest: PositiveFloat | None = None
    """The smallest ratio above 1 that so many repeats of such a spread show 8 times in 10; None where no spread is known."""
    noise: PositiveFloat | None = None
    """The rig's noise floor for this metric, as a ratio above 1; None where no A/A trial was made."""
    verdict: Verdict
    text: str
    """The verdict in one sentence of plain words."""


class NoiseFloor(Record):
    """What an A/A trial gave for one metric: how far two arms of the same layout were apart."""

    metric: Metric
    layout: str
    twin: str
    ratio: PositiveFloat
    """The largest ratio either way, over all cells."""
    typical: PositiveFloat
    """The geometric mean of the cells' ratios either way."""
    overall: PositiveFloat | None = None
    """The largest of the ratios over all worker counts, either way; None where nothing is known of them."""
    cells: PositiveInt
    shown: NonNegativeInt
    """In how many cells a difference was shown: where it is not 0, the rig or the statistics are not to be trusted."""
    repeats: PositiveInt


class Comparison(Record):
    """All that was compared: of one run with its first layout as baseline, or of two runs."""

    baseline: str
    subjects: tuple[str, ...]
    effects: tuple[Effect, ...]
    noise: tuple[NoiseFloor, ...] = ()
    tests: NonNegativeInt
    """How many tests of cells there were, of all metrics; those of a metric are corrected for their number."""
    unlike: tuple[str, ...] = ()
    """Guard facts in which two runs differ that were compared all the same, in words; empty within a run."""
