"""The table as plain words, for a terminal or a page: what is shown is decided here, how it is drawn by who shows it."""

from __future__ import annotations

from collections.abc import Sequence

from weighbridge.common.quantities import show_bytes
from weighbridge.common.record import Record
from weighbridge.results.analysis.reasons import Reason, marks
from weighbridge.results.analysis.steps.interval import Interval
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.use import limit_brief
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms
from weighbridge.results.record.driver_traits import driver_label


class TableColumn(Record):
    """One column. `about` says what its figures are."""

    title: str
    unit: str = ""
    numeric: bool = False
    about: str = ""


class TableLine(Record):
    """One line: a cell for each column. Lines that are not ranked must not look like those that are."""

    cells: tuple[str, ...]
    values: tuple[float | str | None, ...]
    """What to sort by, a value a cell."""
    valid: bool
    ranked: bool
    provisional: bool = False
    """Whether it is ranked and something of it is in doubt."""
    notes: tuple[str, ...] = ()


class Table(Record):
    """A table with its title."""

    title: str
    columns: tuple[TableColumn, ...]
    lines: tuple[TableLine, ...]


_ABOUT = (
    TableColumn(title="Workload", about="The name of the workload in the suite."),
    TableColumn(title="Operation", about="What was done to objects: read, write, delete, list or head."),
    TableColumn(
        title="Size", numeric=True, about="Size of an object, or the expected mean where sizes are drawn from a distribution."
    ),
    TableColumn(title="API", about="The interface that the requests used: Swift or S3."),
    TableColumn(
        title="Driver",
        about="What made the requests: Locust with the native engine or an SDK, or COSBench, or a bench of the store’s own.",
    ),
    TableColumn(title="Workers", numeric=True, about="Clients that each kept exactly one request outstanding (a closed loop)."),
    TableColumn(title="Layout", about="What was weighed: the services and the hosts they ran on."),
    TableColumn(
        title="Throughput",
        unit="op/s",
        numeric=True,
        about="Operations that succeeded inside the window, by its length. Geometric mean of the repeats’ own, ± half of its 95 % "
        "interval.",
    ),
    TableColumn(
        title="Bandwidth",
        unit="MB/s",
        numeric=True,
        about="Bytes of complete bodies inside the window, in 10⁶ bytes a second. Geometric mean of the repeats’ own.",
    ),
    *(
        TableColumn(
            title=f"p{percent}",
            unit="ms",
            numeric=True,
            about=f"{percent} % of the operations that succeeded took at most so long. Geometric mean of the repeats’ own "
            "percentiles, of p90 and p99 ± half of its 95 % interval. Of one repeat with few samples beyond it: in square brackets "
            "what its order statistics allow. (10, 20]: the driver counts in bins, and it lies in this one.",
        )
        for percent in (50, 90, 99)
    ),
    TableColumn(
        title="Max",
        unit="ms",
        numeric=True,
        about="The slowest operation that succeeded, in any repeat, or the bin that it lies in. It grows with the samples. "
        "≥: requests that were not seen to end took at least so long.",
    ),
    TableColumn(
        title="First byte",
        unit="ms",
        numeric=True,
        about="The first byte of 90 % of the reads that succeeded came within so long. Geometric mean of the repeats’ own.",
    ),
    TableColumn(title="Mean", unit="ms", numeric=True, about="Total of all latencies by their number."),
    TableColumn(title="Samples", numeric=True, about="Operations that succeeded, over all repeats."),
    TableColumn(
        title="Errors",
        numeric=True,
        about="Operations that failed, over all repeats, also those left out. They are in no other figure.",
    ),
    TableColumn(
        title="Gateway CPU",
        unit="s/1000 op",
        numeric=True,
        about="CPU seconds of all gateway hosts in the window for 1000 operations of any kind that succeeded. A step of several "
        "operations shares it over all of them. Geometric mean of the repeats’ own; unknown where the hosts could not be sampled.",
    ),
    TableColumn(
        title="Storage CPU",
        unit="s/1000 op",
        numeric=True,
        about="The same of all hosts that keep data. Where one host does both, neither is known.",
    ),
    TableColumn(
        title="Saturated",
        about="The resource that may have been the limit: the most used of those used to 80 % or more of what they may be (memory: "
        "95 %), or whose CPU quota ran out in half of its periods; +1 where there is another. Of those below, the most used.",
    ),
    TableColumn(title="Repeats", numeric=True, about="How many repeats the figures are made of."),
    TableColumn(
        title="Steady",
        about="Whether throughput was the same all through the window: MSER-5 finds no warm-up left in it, and fifths of it and a "
        "fitted line stay within 20 % and 10 % of its mean or within the scatter. –: too short, or too much scatter, to tell.",
    ),
    TableColumn(
        title="Valid",
        about="Whether failures, CPU and NIC of the driver’s host and Little’s law were within bounds. Ranked is what is valid, "
        "not unsteady, and not above what it stands on.",
    ),
    TableColumn(
        title="In doubt",
        about="The letters of what is in doubt of these figures: under the headline each has its reason. What is provisional ranks "
        "nothing.",
    ),
)


def table(rows: Sequence[Row], found: Sequence[Reason] = (), *, title: str = "Throughput, latency and errors") -> Table:
    """The study's table, with the marks of these reasons. A column that would be the same empty word in all lines is kept: its
    absence would say less.
    """
    return Table(title=title, columns=_ABOUT, lines=tuple(_line(row, marks(row, found)) for row in rows))


def _line(row: Row, doubts: str) -> TableLine:
    counts = (row.samples, row.errors)
    cpu_s = (row.gateway_cpu_s_per_1000_ops, row.storage_cpu_s_per_1000_ops)
    limit = limit_brief(row.resources)
    latencies = ((row.p50_ms, row.p50_in), (row.p90_ms, row.p90_in), (row.p99_ms, row.p99_in), (row.max_ms, row.max_in))
    valid = "yes" if row.valid else "no"
    steady = None if row.steady is None else "yes" if row.steady else "no"
    return TableLine(
        cells=(
            row.workload,
            row.operation,
            UNKNOWN if row.object_size_bytes is None else show_bytes(row.object_size_bytes),
            row.api,
            driver_label(row.driver),
            str(row.workers),
            row.layout,
            shown(row, "throughput"),
            show_figure(row.bandwidth_mb_s),
            *(shown(row, key) for key in ("p50", "p90", "p99", "max", "first-byte")),
            show_ms(row.mean_ms),
            *(UNKNOWN if count is None else f"{count:,}" for count in counts),
            *(show_figure(value) for value in cpu_s),
            limit or UNKNOWN,
            str(row.repeats),
            steady or UNKNOWN,
            valid,
            doubts,
        ),
        values=(
            row.workload,
            row.operation,
            row.object_size_bytes,
            row.api,
            driver_label(row.driver),
            row.workers,
            row.layout,
            row.throughput_ops_s,
            row.bandwidth_mb_s,
            *(_sorted_by(value, within) for value, within in latencies),
            row.first_byte_ms,
            row.mean_ms,
            *counts,
            *cpu_s,
            limit,
            row.repeats,
            steady,
            valid,
            doubts,
        ),
        valid=row.valid,
        ranked=row.ranked,
        provisional=row.provisional,
        notes=row.notes,
    )


def _sorted_by(value_ms: float | None, within: Interval | None) -> float | None:
    """An interval is sorted by its upper end, as COSBench prints it; the last bin, which has none, by its lower."""
    if within is None:
        return value_ms
    return within.low_ms if within.high_ms is None else within.high_ms
