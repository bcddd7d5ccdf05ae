"""The data of the charts by workers: for each kind of requests every layout at each worker count.

Lines join neighbouring worker counts that are both valid. A step that is missing or invalid leaves
a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, stdev
from types import MappingProxyType
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import Finding, overall
from weighbridge.results.analysis.kinds import kind_of, subjects
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import samples_needed
from weighbridge.results.analysis.words import distinguished
from weighbridge.results.charts.ceiling_lines import CeilingLine
from weighbridge.results.doubt import graves, touching
from weighbridge.results.figures import counted, upper
from weighbridge.results.interval import Interval
from weighbridge.results.metrics import METRICS, MetricKey, by_column
from weighbridge.results.statistics import CONFIDENCE, t_quantile

SECOND: Final[Mapping[MetricKey, MetricKey]] = MappingProxyType(
    {"p90": "max", "first-byte": "first-byte-p50"}
)
"""The metrics of charts of latency, with the one that each is shown with."""


class WorkerPoint(Record):
    """One layout at one worker count. `stretch` numbers the runs of valid neighbours."""

    layout: str
    workers: int
    value: float | None
    """Throughput in op/s, or a p90 in ms."""
    top: float | None = None
    """The second figure in ms, in charts of latency: see `SECOND`."""
    within: Interval | None = None
    """The bin that holds p90, where the driver reports bins: `value` is None then."""
    top_within: Interval | None = None
    """The bin that holds the max."""
    low: float | None = None
    high: float | None = None
    """The 95 % interval of throughput over at least two repeats."""
    provisional: bool = False
    """Whether a mild doubt applies: the point is joined, and drawn hollow."""
    valid: bool
    stretch: int | None
    note: str


class RepeatDot(Record):
    """One repeat of one layout at one worker count."""

    layout: str
    workers: int
    repeat: int
    value: float
    valid: bool


class WorkerPanel(Record):
    """One panel: `title` says which requests, `finding` the result of their comparison."""

    key: str
    """A slug that is unique among the panels."""
    title: str
    finding: str
    sentences: tuple[str, ...]
    workers: tuple[int, ...]
    marks: tuple[WorkerPoint, ...]
    dots: tuple[RepeatDot, ...] = ()
    ceilings: tuple[CeilingLine, ...] = ()


def throughput_panels(
    rows: Sequence[Row],
    findings: Sequence[Finding],
    ceilings: Mapping[str, tuple[CeilingLine, ...]] = MappingProxyType({}),
) -> tuple[WorkerPanel, ...]:
    """Panels of throughput in op/s: every repeat is a dot. `ceilings` are by the panels' keys."""
    panels = _panels(rows, findings, "throughput")
    return tuple(
        panel.model_copy(update={"ceilings": ceilings.get(panel.key, ())}) for panel in panels
    )


def latency_panels(rows: Sequence[Row], findings: Sequence[Finding]) -> tuple[WorkerPanel, ...]:
    """Panels of p90 and max in ms; each repeat's p90, if there are samples enough, is a dot."""
    return _panels(rows, findings, "p90")


def first_byte_panels(rows: Sequence[Row], findings: Sequence[Finding]) -> tuple[WorkerPanel, ...]:
    """Panels of p90 and p50 of the time to first byte in ms, of kinds of requests that have one."""
    timed = {kind_of(row) for row in rows if row.value("first-byte-p50") is not None}
    return _panels([row for row in rows if kind_of(row) in timed], findings, "first-byte")


def _panels(
    rows: Sequence[Row], findings: Sequence[Finding], metric: MetricKey
) -> tuple[WorkerPanel, ...]:
    names, pairs = subjects(rows), overall(findings)
    return tuple(
        _panel(list(cells), names[kind], pairs.get(kind, []), findings, metric)
        for kind, cells in groupby(rows, key=kind_of)
    )


def in_doubt(row: Row, metric: MetricKey, findings: Sequence[Finding]) -> bool:
    """Whether a row's figure is in doubt: itself, or all that it is compared with."""
    if row.steady is False or touching(row.doubts, metric):
        return True
    mine = [
        one
        for one in findings
        if one.workers == row.workers
        and kind_of(one) == kind_of(row)
        and row.layout in (one.faster, one.slower)
    ]
    return bool(mine) and all(
        one.doubts and one.verdict in ("provisional", "not comparable") for one in mine
    )


def _panel(
    cells: Sequence[Row],
    about: str,
    mine: Sequence[Finding],
    findings: Sequence[Finding],
    metric: MetricKey,
) -> WorkerPanel:
    head = cells[0]
    marks: list[WorkerPoint] = []
    dots: list[RepeatDot] = []
    second = SECOND.get(metric)
    for layout in dict.fromkeys(row.layout for row in cells):
        stretch, joined = 0, True
        for row in (row for row in cells if row.layout == layout):
            value = row.value(metric)
            within, top_within = (
                (row.within(metric), row.within(second)) if second else (None, None)
            )
            grave = graves(touching(row.doubts, metric))
            counts = row.valid and not row.condemned and not grave
            good = counts and value is not None
            if not good and joined:
                stretch += 1
            joined = good
            low, high = (None, None) if second else repeats_interval(row)
            marks.append(
                WorkerPoint(
                    layout=layout,
                    workers=row.workers,
                    value=value,
                    top=row.value(second) if second else None,
                    within=within,
                    top_within=top_within,
                    low=low if good else None,
                    high=high if good else None,
                    provisional=counts and in_doubt(row, metric, findings),
                    valid=counts,
                    stretch=stretch if good else None,
                    note="; ".join(dict.fromkeys((*(one.words for one in grave), *row.notes))),
                )
            )
            # A repeat's p90 that is known only as a bin has no dot.
            known = ((one, one.value(metric)) for one in row.points)
            dots += [
                RepeatDot(
                    layout=layout,
                    workers=row.workers,
                    repeat=one.repeat + 1,
                    value=figure,
                    valid=one.valid,
                )
                for one, figure in known
                if figure is not None
            ]
    return WorkerPanel(
        key="-".join(kind_of(head)),
        title=upper(about),
        finding=_slowest(cells, metric)
        if second
        else mine[0].brief
        if len(mine) == 1
        else _best(mine),
        sentences=tuple(finding.text for finding in mine),
        workers=tuple(dict.fromkeys(row.workers for row in cells)),
        marks=tuple(marks),
        dots=tuple(dots),
    )


def _slowest(cells: Sequence[Row], metric: MetricKey) -> str:
    """The lowest and the highest figure at the largest worker count that has two, if any."""
    name = METRICS[metric].name
    if any(row.within(metric) is not None for row in cells):
        return _slowest_bins(cells)
    if all(row.value(metric) is None for row in cells):
        return f"too few samples for a p90: it needs {samples_needed(90)}"
    for workers in sorted({row.workers for row in cells}, reverse=True):
        ranked = [row for row in cells if row.workers == workers and may_rank(row, metric)]
        known = sorted(
            (row for row in ranked if row.value(metric) is not None),
            key=lambda row: (row.value(metric) or 0.0, row.layout),
        )
        if len(known) > 1:
            fast, slow = known[0], known[-1]
            low, high = (shown(row, metric, spread=False) for row in (fast, slow))
            at = counted(workers, "worker")
            return f"{name} at {at}: {low} ms {fast.layout}, {high} ms {slow.layout}"
    return f"no {name} to compare" if len({row.layout for row in cells}) > 1 else ""


def _slowest_bins(cells: Sequence[Row]) -> str:
    """The two bins of p90 that are farthest apart, with their layouts, if not touching."""
    for workers in sorted({row.workers for row in cells}, reverse=True):
        known = [
            (within, row.layout)
            for row in cells
            if row.workers == workers
            and may_rank(row, "p90")
            and (within := row.within("p90")) is not None
        ]
        if len(known) > 1:
            known.sort(key=lambda one: (one[0].low_ms, one[0].top_ms))
            (low, fast), (high, slow) = known[0], known[-1]
            names = f": {fast}, {slow}" if not low.touches(high) else ""
            return f"p90 at {counted(workers, 'worker')} {distinguished(low, high)}{names}"
    return "no p90 to compare" if len({row.layout for row in cells}) > 1 else ""


def _best(findings: Sequence[Finding]) -> str:
    """The best of more than two layouts compared with the first; empty when none is comparable."""
    ahead = [
        finding
        for finding in findings
        if finding.ratio is not None and finding.faster != finding.baseline
    ]
    if ahead:
        return max(ahead, key=lambda finding: finding.ratio.value if finding.ratio else 0).brief
    known = [finding for finding in findings if finding.ratio is not None]
    if not known:
        return "not comparable" if findings else ""
    claimed = all(one.shown for one in known)
    return (
        f"{known[0].baseline} "
        f"{'is ahead of all' if claimed else 'had the most op/s, but not significantly'}"
    )


def repeats_interval(row: Row) -> tuple[float, float] | tuple[None, None]:
    """The interval of a row's throughput over its valid repeats."""
    return interval_of([one.ops_s for one in row.used])


def interval_of(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Student's 95 % interval of the repeats' logarithms; None of fewer than two, or with a 0."""
    if len(values) < 2 or min(values) <= 0:
        return None, None
    logs = [math.log(value) for value in values]
    reach = t_quantile((1 + CONFIDENCE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    # Beyond e^709 a float overflows; an interval of e^300 says nothing anyway.
    middle, reach = fmean(logs), min(reach, 300.0)
    return math.exp(middle - reach), math.exp(middle + reach)


KIND_COLUMNS: Final = ("layout", "api", "driver", "workload", "operation")
"""The first columns of most charts' data."""
_ROW_COLUMNS: Final = (*KIND_COLUMNS, "object_size_bytes", "workers")


def _place_of(row: Row) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in _ROW_COLUMNS)


def throughput_csv(rows: Iterable[Row]) -> str:
    """The throughput chart's data: a line for each mean (`repeat` empty) and each repeat."""
    lines: list[tuple[object, ...]] = []
    for row in rows:
        head = _place_of(row)
        lines.append((*head, None, row.value("throughput"), *repeats_interval(row), row.valid))
        lines += [
            (*head, one.repeat + 1, one.value("throughput"), None, None, one.valid)
            for one in row.points
        ]
    return csv_lines(
        (*_ROW_COLUMNS, "repeat", "throughput_ops_s", "low_ops_s", "high_ops_s", "valid"), lines
    )


def latency_csv(rows: Iterable[Row], metric: MetricKey = "p90") -> str:
    """The data of a chart of latency, by the first of its two metrics."""
    shown_two = [METRICS[key] for key in (metric, SECOND[metric])]
    columns = (
        *(one.column for one in shown_two),
        *(column for one in shown_two if one.binned for column in one.bin_columns),
        METRICS["samples"].column,
    )
    lines = []
    for row in rows:
        found = by_column(row)
        lines.append((*_place_of(row), row.repeats, *(found[name] for name in columns), row.valid))
    return csv_lines((*_ROW_COLUMNS, "repeats", *columns, "valid"), lines)
