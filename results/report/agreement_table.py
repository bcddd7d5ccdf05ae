"""Two drivers' figures of the same steps side by side, for the report and a CSV file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.agreement import Agreement, causes, sentences
from weighbridge.results.analysis.leads import Lead
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms
from weighbridge.results.interval import show_latency
from weighbridge.results.record.driver_traits import driver_label
from weighbridge.results.report.tables import TableColumn
from weighbridge.suites import DriverName

_CSV_COLUMNS: Final = """
layout api workload operation workers {first}_ops_s {other}_ops_s
{other}_over_{first} {other}_over_{first}_low {other}_over_{first}_high
{first}_p90_ms {other}_p90_low_ms {other}_p90_high_ms p90_bins_off
{first}_max_ms {other}_max_low_ms {other}_max_high_ms max_bins_off
{first}_mean_ms {other}_mean_ms verdict
"""


class AgreementLine(Record):
    """One step; `known`: whether it could be compared."""

    cells: tuple[str, ...]
    known: bool


class AgreementTable(Record):
    """The report's section about two drivers; it is left out when there are no lines."""

    first: str = ""
    other: str = ""
    """Display names of the two drivers."""
    caption: str = ""
    sentences: tuple[str, ...]
    head: tuple[TableColumn, ...] = ()
    lines: tuple[AgreementLine, ...]
    causes: tuple[str, ...]


def csv_head(first: DriverName, other: DriverName) -> tuple[str, ...]:
    """Columns of `derived/agreement.csv` for these two drivers, in order."""
    return tuple(_CSV_COLUMNS.format(first=first, other=other).split())


def agreement_table(
    found: Sequence[Agreement], answers: Sequence[Lead], facts: Mapping[str, Mapping[str, str]]
) -> AgreementTable:
    """The section of a run; `facts` are those of its layouts, by name."""
    said, why = sentences(found, answers), causes(found, facts)
    if not found:
        return AgreementTable(sentences=said, lines=(), causes=why)
    first, other = driver_label(found[0].first), driver_label(found[0].other)
    return AgreementTable(
        first=first,
        other=other,
        caption=_caption(found[0], first, other),
        sentences=said,
        head=_head(first, other),
        lines=tuple(_line(one) for one in found),
        causes=why,
    )


def agreement_csv(found: Sequence[Agreement]) -> str:
    """The same figures as CSV; bins are given by both ends, unknown values are empty."""
    return csv_lines(csv_head(found[0].first, found[0].other), [_csv_cells(one) for one in found])


def _head(first: str, other: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn(title="Requests"),
        TableColumn(title="Workers", numeric=True),
        TableColumn(title="Layout"),
        TableColumn(title=first, unit="op/s", numeric=True),
        TableColumn(title=other, unit="op/s", numeric=True),
        TableColumn(title="Difference", numeric=True),
        TableColumn(title="p90 of both", unit="ms", numeric=True),
        TableColumn(title="Max of both", unit="ms", numeric=True),
        TableColumn(title="Means", unit="difference in ms", numeric=True),
        TableColumn(title="Verdict"),
    )


def _caption(one: Agreement, first: str, other: str) -> str:
    bins = (
        ", which counts latencies in bins: (10, 20] is more than 10 and up to 20 ms"
        if one.other_p90 or one.other_max
        else ""
    )
    return (
        f"Each step measured by both drivers: op/s and latencies of {first}, then of "
        f"{other}{bins}. Differences are {other} relative to {first}. Bins cannot explain a "
        "difference in throughput."
    )


def _line(one: Agreement) -> AgreementLine:
    return AgreementLine(
        cells=(
            one.about,
            str(one.workers),
            one.layout,
            show_figure(one.first_ops_s),
            show_figure(one.other_ops_s),
            UNKNOWN if one.ratio is None else _percent(one.ratio.value),
            f"{show_ms(one.first_p90_ms)} · {show_latency(one.other_p90_ms, one.other_p90)}",
            f"{show_ms(one.first_max_ms)} · {show_latency(one.other_max_ms, one.other_max)}",
            _difference(one.first_mean_ms, one.other_mean_ms),
            one.verdict,
        ),
        known=one.ratio is not None,
    )


def _percent(ratio: float) -> str:
    """How far a ratio is from 1, with its sign."""
    percent = round(100 * (ratio - 1))
    return f"{'+' if percent > 0 else '−' if percent < 0 else '±'}{abs(percent)} %"


def _difference(first_ms: float | None, other_ms: float | None) -> str:
    if first_ms is None or other_ms is None:
        return UNKNOWN
    apart_ms = other_ms - first_ms
    return f"{'+' if apart_ms >= 0 else '−'}{show_figure(abs(apart_ms), 2)}"


def _csv_cells(one: Agreement) -> tuple[object, ...]:
    ratio = one.ratio
    both = ((one.other_p90_ms, one.other_p90), (one.other_max_ms, one.other_max))
    p90, longest = ((value, value) if at is None else (at.low_ms, at.high_ms) for value, at in both)
    return (
        *(one.layout, one.api, one.workload, one.operation, one.workers),
        *(one.first_ops_s, one.other_ops_s),
        *((None, None, None) if ratio is None else (ratio.value, ratio.low, ratio.high)),
        *(one.first_p90_ms, *p90, one.p90_off),
        *(one.first_max_ms, *longest, one.max_off),
        *(one.first_mean_ms, one.other_mean_ms, one.verdict),
    )
