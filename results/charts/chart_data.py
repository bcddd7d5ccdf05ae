"""What charts are drawn from: panels by workload, operation and API, with the marks of each layout placed by rule.

Lines join neighbouring worker counts that are both valid, and nothing else: a gap is left where a step is missing or not valid.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from statistics import fmean, stdev
from types import MappingProxyType

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.findings import Finding, kind_of, overall, subjects, told_apart
from weighbridge.results.analysis.steps.interval import Interval
from weighbridge.results.analysis.steps.service_level import may_rank
from weighbridge.results.analysis.steps.spreads import interval_ends, shown
from weighbridge.results.analysis.steps.summary import Row
from weighbridge.results.analysis.steps.validity import samples_needed
from weighbridge.results.doubt import graves, touching
from weighbridge.results.metrics import MetricKey
from weighbridge.results.statistics import CONFIDENCE, t_quantile


class Mark(Record):
    """One layout at one worker count. `stretch` numbers the runs of valid neighbours; None: not valid, not to be joined."""

    layout: str
    workers: int
    value: float | None
    """Throughput in op/s, or p90 in ms."""
    top: float | None = None
    """Max in ms, where that is drawn."""
    within: Interval | None = None
    """What p90 lies in where the driver tells bins: `value` is None then, and a bar is drawn from end to end."""
    top_within: Interval | None = None
    """The same of the max."""
    low: float | None = None
    high: float | None = None
    """The 95 % interval of what the repeats say of `value`, of throughput with at least two of them."""
    steady: bool | None = None
    """Whether it kept its level over the window; None: that cannot be told."""
    provisional: bool = False
    """Whether a mild doubt touches it: it is joined, and drawn hollow."""
    alone: bool = False
    """Whether no neighbour is joined to it."""
    valid: bool
    stretch: int | None
    note: str


class Dot(Record):
    """One repeat of one layout at one worker count."""

    layout: str
    workers: int
    repeat: int
    value: float
    valid: bool


class CeilingLine(Record):
    """What the layer below lets layouts do at most, in op/s: a line across a panel, or words where it is far above."""

    layouts: tuple[str, ...]
    layer: str
    label: str
    """The layer, with its layouts where others differ."""
    value: float


class Panel(Record):
    """One panel: `title` says which requests, `finding` what came of comparing them."""

    key: str
    """A slug that tells it from the other panels."""
    title: str
    finding: str
    sentences: tuple[str, ...]
    workers: tuple[int, ...]
    marks: tuple[Mark, ...]
    dots: tuple[Dot, ...] = ()
    ceilings: tuple[CeilingLine, ...] = ()


def throughput_panels(
    rows: Sequence[Row], findings: Sequence[Finding], ceilings: Mapping[str, tuple[CeilingLine, ...]] = MappingProxyType({})
) -> tuple[Panel, ...]:
    """Panels of throughput in op/s, with every repeat as a dot and the interval that they make; `ceilings` by the panels' keys."""
    panels = _panels(rows, findings, "throughput_ops_s", None)
    return tuple(panel.model_copy(update={"ceilings": ceilings.get(panel.key, ())}) for panel in panels)


def latency_panels(rows: Sequence[Row], findings: Sequence[Finding]) -> tuple[Panel, ...]:
    """Panels of p90 and max in ms. A p90 of too few samples is None; its max is there all the same.

    Each repeat's own p90 is a dot.
    """
    return _panels(rows, findings, "p90_ms", "max_ms")


def _panels(rows: Sequence[Row], findings: Sequence[Finding], field: str, top: str | None) -> tuple[Panel, ...]:
    names, pairs = subjects(rows), overall(findings)
    return tuple(
        _panel(list(cells), names[kind], pairs.get(kind, []), findings, field, top) for kind, cells in groupby(rows, key=kind_of)
    )


def in_doubt(row: Row, metric: MetricKey, findings: Sequence[Finding]) -> bool:
    """Whether something is in doubt of a figure of a row: of itself, or of all that it can be compared with."""
    if row.steady is False or touching(row.doubts, metric):
        return True
    mine = [
        one
        for one in findings
        if one.workers == row.workers and kind_of(one) == kind_of(row) and row.layout in (one.faster, one.slower)
    ]
    return bool(mine) and all(one.doubts and one.verdict in ("provisional", "not comparable") for one in mine)


def _panel(
    cells: Sequence[Row], about: str, mine: Sequence[Finding], findings: Sequence[Finding], field: str, top: str | None
) -> Panel:
    head = cells[0]
    marks: list[Mark] = []
    dots: list[Dot] = []
    metric: MetricKey = "throughput" if top is None else "p90"
    for layout in dict.fromkeys(row.layout for row in cells):
        stretch, joined = 0, True
        for row in (row for row in cells if row.layout == layout):
            value: float | None = getattr(row, field)
            within, top_within = (row.p90_in, row.max_in) if top is not None else (None, None)
            grave = graves(touching(row.doubts, metric))
            counts = row.valid and not row.condemned and not grave
            good = counts and value is not None
            if not good and joined:
                stretch += 1
            joined = good
            low, high = (None, None) if top is not None else interval_of([one.throughput_ops_s for one in row.used])
            marks.append(
                Mark(
                    layout=layout,
                    workers=row.workers,
                    value=value,
                    top=None if top is None else getattr(row, top),
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
            known = ((one, one.throughput_ops_s if top is None else one.p90_ms) for one in row.points)
            dots += [
                Dot(layout=layout, workers=row.workers, repeat=one.repeat + 1, value=figure, valid=one.valid)
                for one, figure in known
                if figure is not None
            ]
    sizes = Counter((mark.layout, mark.stretch) for mark in marks)
    return Panel(
        key="-".join(kind_of(head)),
        title=f"{about[:1].upper()}{about[1:]}",
        finding=_slowest(cells) if top is not None else mine[0].brief if len(mine) == 1 else _best(mine),
        sentences=tuple(finding.text for finding in mine),
        workers=tuple(dict.fromkeys(row.workers for row in cells)),
        marks=tuple(mark.model_copy(update={"alone": sizes[mark.layout, mark.stretch] == 1}) for mark in marks),
        dots=tuple(dots),
    )


def _slowest(cells: Sequence[Row]) -> str:
    """The lowest and the highest p90 at the largest worker count where there are two; nothing to say of one layout alone."""
    if any(row.p90_in is not None for row in cells):
        return _slowest_bins(cells)
    if all(row.p90_ms is None for row in cells):
        return f"too few samples for a p90: it needs {samples_needed(90)}"
    for workers in sorted({row.workers for row in cells}, reverse=True):
        ranked = [row for row in cells if row.workers == workers and may_rank(row, "p90")]
        known = sorted((row for row in ranked if row.p90_ms is not None), key=lambda row: (row.p90_ms or 0.0, row.layout))
        if len(known) > 1:
            fast, slow = known[0], known[-1]
            at = f"{workers} worker{'s' * (workers > 1)}"
            low, high = (shown(row, "p90", spread=False) for row in (fast, slow))
            return f"p90 at {at}: {low} ms {fast.layout}, {high} ms {slow.layout}"
    return "no p90 to compare" if len({row.layout for row in cells}) > 1 else ""


def _slowest_bins(cells: Sequence[Row]) -> str:
    """The same of latencies told in bins: the two that are farthest apart, told apart where their bins do not touch."""
    for workers in sorted({row.workers for row in cells}, reverse=True):
        known = [
            (row.p90_in, row.layout) for row in cells if row.workers == workers and may_rank(row, "p90") and row.p90_in is not None
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
    ahead = [finding for finding in findings if finding.ratio is not None and finding.faster != finding.baseline]
    if ahead:
        return max(ahead, key=lambda finding: finding.ratio.value if finding.ratio else 0).brief
    known = [finding for finding in findings if finding.ratio is not None]
    if not known:
        return "not comparable" if findings else ""
    return f"{known[0].baseline} {'is ahead of all' if all(one.shown for one in known) else 'did most, which is not claimed'}"


def interval_of(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """The 95 % interval of the geometric mean of repeats, by Student's t on their logarithms; of fewer than two, or of 0, none."""
    if len(values) < 2 or min(values) <= 0:
        return None, None
    logs = [math.log(value) for value in values]
    reach = t_quantile((1 + CONFIDENCE) / 2, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    # Nothing is known beyond e^300, and nothing beyond e^709 is a number.
    middle, reach = fmean(logs), min(reach, 300.0)
    return math.exp(middle - reach), math.exp(middle + reach)


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Places as near to those wanted as can be, in the same order, at least `gap` apart: labels that do not overlap.

    Neighbours that are too near are moved about their common middle (the pool-adjacent-violators rule).
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    pools: list[tuple[float, int]] = []  # mean of (wanted - rank * gap), size
    for rank, index in enumerate(order):
        pools.append((wanted[index] - rank * gap, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (mean_a, size_a), (mean_b, size_b) = pools[-2:]
            pools[-2:] = [((mean_a * size_a + mean_b * size_b) / (size_a + size_b), size_a + size_b)]
    flat = [mean for mean, size in pools for _ in range(size)]
    placed = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        placed[index] = flat[rank] + rank * gap
    return placed


def nice_top(largest: float) -> tuple[float, float]:
    """The end of a scale from 0 that holds `largest`, and the step of its ticks: 1, 2 or 5 times a power of ten."""
    if largest <= 0:
        return 1.0, 0.5
    step = next(
        unit * 10**power
        for power in range(math.floor(math.log10(largest)) - 1, math.ceil(math.log10(largest)) + 1)
        for unit in (1, 2, 5)
        if largest / (unit * 10**power) <= 5
    )
    return math.ceil(largest * 1.02 / step) * step, step


def log_ticks(low: float, high: float) -> tuple[float, float, list[float]]:
    """Ends and ticks of a logarithmic scale that holds both: 1, 2, 5 times powers of ten, or powers alone where those are many."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    fine = [unit * 10.0**power for power in powers for unit in (1, 2, 5)]
    start = max(tick for tick in fine if tick <= low)
    end = min(tick for tick in fine if tick >= high and tick > start)
    ticks = [tick for tick in fine if start <= tick <= end]
    if len(ticks) > 9:
        ticks = [tick for tick in ticks if abs(math.log10(tick) - round(math.log10(tick))) < 1e-9]
    return start, end, ticks


def throughput_csv(rows: Iterable[Row]) -> str:
    """The figures of the throughput chart: a line for each median (`repeat` empty, with its interval) and for each repeat."""
    lines: list[tuple[object, ...]] = []
    for row in rows:
        head = (row.layout, row.api, row.driver, row.workload, row.operation, row.object_size_bytes, row.workers)
        lines.append((*head, None, row.throughput_ops_s, *interval_of([point.throughput_ops_s for point in row.used]), row.valid))
        lines += [(*head, point.repeat + 1, point.throughput_ops_s, None, None, point.valid) for point in row.points]
    return csv_lines(
        (
            "layout",
            "api",
            "driver",
            "workload",
            "operation",
            "object_size_bytes",
            "workers",
            "repeat",
            "throughput_ops_s",
            "low_ops_s",
            "high_ops_s",
            "valid",
        ),
        lines,
    )


def latency_csv(rows: Iterable[Row]) -> str:
    """The figures of the latency chart."""
    names = (
        "layout",
        "api",
        "driver",
        "workload",
        "operation",
        "object_size_bytes",
        "workers",
        "repeats",
        "p90_ms",
        "max_ms",
        "p90_low_ms",
        "p90_high_ms",
        "max_low_ms",
        "max_high_ms",
        "samples",
        "valid",
    )
    found = [({**dict(row), **interval_ends(row)}) for row in rows]
    return csv_lines(names, [tuple(cells[name] for name in names) for cells in found])
