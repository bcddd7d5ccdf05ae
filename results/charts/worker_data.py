"""What the charts by workers are drawn from: by workload, operation and API each layout at each
worker count, judged.

Lines join neighbouring worker counts that are both valid, and nothing else: a gap is left where a
step is missing or not valid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, median_low, stdev
from types import MappingProxyType
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.layers import Level
from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import Finding, kind_of, overall, subjects, told_apart
from weighbridge.results.analysis.layers.staircase import LAYER_BOUND, PLAIN, Staircase
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import samples_needed
from weighbridge.results.charts.panels import Mark, Spot
from weighbridge.results.doubt import graves, touching
from weighbridge.results.figures import show_figure
from weighbridge.results.interval import Interval
from weighbridge.results.metrics import METRICS, MetricKey, by_column
from weighbridge.results.statistics import CONFIDENCE, t_quantile


class WorkerPoint(Record):
    """One layout at one worker count.

    `stretch` numbers the runs of valid neighbours; None: not valid, not to be joined.
    """

    layout: str
    workers: int
    value: float | None
    """Throughput in op/s, or p90 in ms."""
    top: float | None = None
    """Max in ms, where that is drawn."""
    within: Interval | None = None
    """What p90 lies in where the driver tells bins:

    `value` is None then, and a bar is drawn from end to end.
    """
    top_within: Interval | None = None
    """The same of the max."""
    low: float | None = None
    high: float | None = None
    """The 95 % interval of what the repeats say of `value`, of throughput with at least two of
    them.
    """
    steady: bool | None = None
    """Whether it kept its level over the window; None: that cannot be told."""
    provisional: bool = False
    """Whether a mild doubt touches it: it is joined, and drawn hollow."""
    alone: bool = False
    """Whether no neighbour is joined to it."""
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


class CeilingLine(Record):
    """What the layer below lets layouts do at most, in op/s: a line across a panel, or words where
    it is far above.
    """

    layouts: tuple[str, ...]
    layer: str
    label: str
    """The layer, with its layouts where others differ."""
    value: float


class WorkerPanel(Record):
    """One panel: `title` says which requests, `finding` what came of comparing them."""

    key: str
    """A slug that tells it from the other panels."""
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
    """Panels of throughput in op/s, with every repeat as a dot and the interval that they make;
    `ceilings` by the panels' keys.
    """
    panels = _panels(rows, findings, "throughput")
    return tuple(
        panel.model_copy(update={"ceilings": ceilings.get(panel.key, ())}) for panel in panels
    )


def latency_panels(rows: Sequence[Row], findings: Sequence[Finding]) -> tuple[WorkerPanel, ...]:
    """Panels of p90 and max in ms. A p90 of too few samples is None; its max is there all the same.

    Each repeat's own p90 is a dot.
    """
    return _panels(rows, findings, "p90")


def _panels(
    rows: Sequence[Row], findings: Sequence[Finding], metric: MetricKey
) -> tuple[WorkerPanel, ...]:
    names, pairs = subjects(rows), overall(findings)
    return tuple(
        _panel(list(cells), names[kind], pairs.get(kind, []), findings, metric)
        for kind, cells in groupby(rows, key=kind_of)
    )


def in_doubt(row: Row, metric: MetricKey, findings: Sequence[Finding]) -> bool:
    """Whether something is in doubt of a figure of a row: of itself, or of all that it can be
    compared with.
    """
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
    latency = metric == "p90"
    for layout in dict.fromkeys(row.layout for row in cells):
        stretch, joined = 0, True
        for row in (row for row in cells if row.layout == layout):
            value = row.value(metric)
            within, top_within = (row.within("p90"), row.within("max")) if latency else (None, None)
            grave = graves(touching(row.doubts, metric))
            counts = row.valid and not row.condemned and not grave
            good = counts and value is not None
            if not good and joined:
                stretch += 1
            joined = good
            low, high = (None, None) if latency else repeats_interval(row)
            marks.append(
                WorkerPoint(
                    layout=layout,
                    workers=row.workers,
                    value=value,
                    top=row.value("max") if latency else None,
                    within=within,
                    top_within=top_within,
                    low=low if good else None,
                    high=high if good else None,
                    steady=row.steady,
                    provisional=counts and in_doubt(row, metric, findings),
                    valid=counts,
                    stretch=stretch if good else None,
                    note="; ".join(dict.fromkeys((*(one.words for one in grave), *row.notes))),
                )
            )
            # A repeat of p90 that was told in a bin has no place of its own.
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
    sizes = Counter((mark.layout, mark.stretch) for mark in marks)
    return WorkerPanel(
        key="-".join(kind_of(head)),
        title=f"{about[:1].upper()}{about[1:]}",
        finding=_slowest(cells) if latency else mine[0].brief if len(mine) == 1 else _best(mine),
        sentences=tuple(finding.text for finding in mine),
        workers=tuple(dict.fromkeys(row.workers for row in cells)),
        marks=tuple(
            mark.model_copy(update={"alone": sizes[mark.layout, mark.stretch] == 1})
            for mark in marks
        ),
        dots=tuple(dots),
    )


def _slowest(cells: Sequence[Row]) -> str:
    """The lowest and the highest p90 at the largest worker count where there are two; nothing to
    say of one layout alone.
    """
    if any(row.within("p90") is not None for row in cells):
        return _slowest_bins(cells)
    if all(row.value("p90") is None for row in cells):
        return f"too few samples for a p90: it needs {samples_needed(90)}"
    for workers in sorted({row.workers for row in cells}, reverse=True):
        ranked = [row for row in cells if row.workers == workers and may_rank(row, "p90")]
        known = sorted(
            (row for row in ranked if row.value("p90") is not None),
            key=lambda row: (row.value("p90") or 0.0, row.layout),
        )
        if len(known) > 1:
            fast, slow = known[0], known[-1]
            at = f"{workers} worker{'s' * (workers > 1)}"
            low, high = (shown(row, "p90", spread=False) for row in (fast, slow))
            return f"p90 at {at}: {low} ms {fast.layout}, {high} ms {slow.layout}"
    return "no p90 to compare" if len({row.layout for row in cells}) > 1 else ""


def _slowest_bins(cells: Sequence[Row]) -> str:
    """The same of latencies told in bins: the two that are farthest apart, told apart where their
    bins do not touch.
    """
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
            at = f"{workers} worker{'s' * (workers > 1)}"
            names = f": {fast}, {slow}" if not low.touches(high) else ""
            return f"p90 at {at} {told_apart(low, high)}{names}"
    return "no p90 to compare" if len({row.layout for row in cells}) > 1 else ""


def _best(findings: Sequence[Finding]) -> str:
    """Of more than two layouts, the one farthest ahead of the first; nothing when there is none."""
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
    return (
        f"{known[0].baseline} "
        f"{'is ahead of all' if all(one.shown for one in known) else 'did most, which is not claimed'}"
    )


def repeats_interval(row: Row) -> tuple[float, float] | tuple[None, None]:
    """The interval of a row's throughput, of the repeats that are used."""
    return interval_of([one.ops_s for one in row.used])


def interval_of(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of the geometric mean of repeats, by Student's t on their logarithms; of
    fewer than two, or of 0, none.
    """
    if len(values) < 2 or min(values) <= 0:
        return None, None
    logs = [math.log(value) for value in values]
    reach = t_quantile((1 + CONFIDENCE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    # Nothing is known beyond e^300, and nothing beyond e^709 is a number.
    middle, reach = fmean(logs), min(reach, 300.0)
    return math.exp(middle - reach), math.exp(middle + reach)


KIND_COLUMNS: Final = ("layout", "api", "driver", "workload", "operation")
"""What the data of most charts begin with."""
_ROW_COLUMNS: Final = (*KIND_COLUMNS, "object_size_bytes", "workers")


def _place_of(row: Row) -> tuple[object, ...]:
    """The cells of a row by `_ROW_COLUMNS`."""
    return (
        row.layout,
        row.api,
        row.driver,
        row.workload,
        row.operation,
        row.object_size_bytes,
        row.workers,
    )


def throughput_csv(rows: Iterable[Row]) -> str:
    """The figures of the throughput chart: a line for each median (`repeat` empty, with its
    interval) and for each repeat.
    """
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


def latency_csv(rows: Iterable[Row]) -> str:
    """The figures of the latency chart."""
    p90, top, samples = (METRICS[key] for key in ("p90", "max", "samples"))
    columns = (p90.column, top.column, *p90.bin_columns, *top.bin_columns, samples.column)
    lines = []
    for row in rows:
        found = by_column(row)
        lines.append((*_place_of(row), row.repeats, *(found[name] for name in columns), row.valid))
    return csv_lines((*_ROW_COLUMNS, "repeats", *columns, "valid"), lines)


# ---- ceilings: what disks, network and store can do. The scale is the gateways' own: a line
# stretches it a little and never presses what was measured into a corner.

DRAWN: Final[tuple[Level, ...]] = ("disk", "network", "rados", "object-server")
NEAR: Final = 1.6
"""A ceiling up to so many times the highest mark is drawn; one above it is told in words."""


def ceiling_lines(stairs: Iterable[Staircase]) -> Mapping[str, tuple[CeilingLine, ...]]:
    """The lines by key of the panel.

    Layouts whose ceilings differ by no more than such figures do have one line together.
    """
    found = {}
    for kind, group in groupby(stairs, key=lambda stair: stair.kind):
        mine = list(group)
        lines: list[CeilingLine] = []
        for level in DRAWN:
            steps = [
                (step.throughput_ops_s or 0.0, stair.layout)
                for stair in mine
                if (step := stair.step(level)) is not None
            ]
            # What stands on top is the curve itself.
            below = [
                one
                for one in steps
                if any(stair.layout == one[1] and stair.top.level != level for stair in mine)
            ]
            lines += _merged(level, sorted(below), len(below))
        found["-".join(kind)] = tuple(lines)
    return found


def _merged(level: Level, steps: Sequence[tuple[float, str]], count: int) -> list[CeilingLine]:
    groups: list[list[tuple[float, str]]] = []
    for one in steps:
        if groups and one[0] <= groups[-1][0][0] * (1 + LAYER_BOUND):
            groups[-1].append(one)
        else:
            groups.append([one])
    lines = []
    for group in groups:
        layouts = tuple(layout for _, layout in group)
        named = ", ".join(layouts) if len(group) < 3 else f"{len(group)} layouts"
        whose = "" if len(group) == count else f" ({named})"
        value = median_low([value for value, _ in group])
        lines.append(
            CeilingLine(
                layouts=layouts, layer=PLAIN[level], label=f"{PLAIN[level]}{whose}", value=value
            )
        )
    return lines


def stretched(largest: float, lines: Iterable[CeilingLine]) -> float:
    """The largest value that the scale is to hold, with the ceilings that are near."""
    return max([largest, *(line.value for line in lines if line.value <= NEAR * largest)])


def ceiling_mark(lines: Sequence[CeilingLine], top: float, *, lone: bool) -> Mark:
    """The ceilings on a scale that ends at `top`; those of one layout of several have its
    colour.
    """
    spots = [
        Spot(
            y=line.value,
            text=f"{line.label} {show_figure(line.value)}",
            **(
                {"layout": line.layouts[0]}
                if len(line.layouts) == 1 and not lone
                else {"tone": "muted"}
            ),
        )
        for line in lines
        if line.value <= top
    ]
    return Mark(kind="ceiling", spots=tuple(spots))


def beyond(lines: Sequence[CeilingLine], top: float) -> str:
    """Those above the scale, all of one layer together:

    `↑ disks 9,370, network 6,250 to 18,900`; empty without any.
    """
    found: dict[str, list[float]] = {}
    for line in lines:
        if line.value > top:
            found.setdefault(line.layer, []).append(line.value)
    spans = []
    for layer, values in found.items():
        low, high = show_figure(min(values)), show_figure(max(values))
        spans.append(f"{layer} {low if low == high else f'{low} to {high}'}")
    return f"↑ {', '.join(spans)}" if spans else ""
