"""Two drivers' figures of the same steps side by side, as a page and a CSV file show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.agreement import Agreement, causes, sentences
from weighbridge.results.analysis.findings import Finding
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms
from weighbridge.results.interval import show_latency
from weighbridge.results.record.driver_traits import driver_label, traits_of
from weighbridge.results.report.tables import TableColumn
from weighbridge.suites import DriverName


def csv_head(first: DriverName, other: DriverName) -> tuple[str, ...]:
    """Columns of `derived/agreement.csv`, in order, by the names of its drivers."""
    bins = (
        (f"{other}_p90_low_ms", f"{other}_p90_high_ms"),
        (f"{other}_max_low_ms", f"{other}_max_high_ms"),
    )
    return (
        *("layout", "api", "workload", "operation", "workers", f"{first}_ops_s", f"{other}_ops_s"),
        *(f"{other}_over_{first}", f"{other}_over_{first}_low", f"{other}_over_{first}_high"),
        *("foretold_low", "foretold_high", "explained"),
        *(f"{first}_p90_ms", *bins[0], "p90_bins_off"),
        *(f"{first}_max_ms", *bins[1], "max_bins_off"),
        *(f"{first}_mean_ms", f"{other}_mean_ms", "verdict"),
    )


def _head(first: str, other: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn(title="Requests"),
        TableColumn(title="Workers", numeric=True),
        TableColumn(title="Layout"),
        TableColumn(title=first, unit="op/s", numeric=True),
        TableColumn(title=other, unit="op/s", numeric=True),
        TableColumn(title="Difference", numeric=True),
        TableColumn(title="Foretold", numeric=True),
        TableColumn(title="p90 of both", unit="ms", numeric=True),
        TableColumn(title="Max of both", unit="ms", numeric=True),
        TableColumn(title="Means", unit="ms apart", numeric=True),
        TableColumn(title="Verdict"),
    )


class AgreementLine(Record):
    """One step; not `known`: it could not be compared."""

    cells: tuple[str, ...]
    known: bool


class AgreementTable(Record):
    """What a page shows; without lines it shows nothing."""

    first: str = ""
    other: str = ""
    """What people call the two drivers."""
    caption: str = ""
    sentences: tuple[str, ...]
    head: tuple[TableColumn, ...] = ()
    lines: tuple[AgreementLine, ...]
    causes: tuple[str, ...]


def agreement_table(
    found: Sequence[Agreement], findings: Sequence[Finding], facts: Mapping[str, Mapping[str, str]]
) -> AgreementTable:
    """The steps of a run side by side. `facts` are those of its layouts."""
    first, other = (
        (driver_label(found[0].first), driver_label(found[0].other)) if found else ("", "")
    )
    return AgreementTable(
        first=first,
        other=other,
        caption=_caption(found[0], first, other) if found else "",
        sentences=sentences(found, findings),
        head=_head(first, other),
        lines=tuple(_line(one) for one in found),
        causes=causes(found, facts),
    )


def agreement_csv(found: Sequence[Agreement]) -> str:
    """The same as CSV; empty where unknown, latencies in bins by the ends of their intervals.

    There has to be one.
    """
    return csv_lines(csv_head(found[0].first, found[0].other), [_csv_cells(one) for one in found])


def _caption(one: Agreement, first: str, other: str) -> str:
    bins = (
        ", which counts latencies in bins: (10, 20] is more than 10 and up to 20 ms"
        if one.other_p90 or one.other_max
        else ""
    )
    cut = ", cut to whole milliseconds," if traits_of(one.other).cut_us == 1000 else ""
    return (
        f"Each step by both drivers: op/s and latencies of {first}, then of {other}{bins}. "
        f"Differences are {other}’s from {first}’s. "
        f"Of throughput the bins allow nothing; “foretold” is what {other}’s mean latency{cut} "
        f"makes of it beside {first}’s, "
        "since workers = throughput × mean latency."
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
            UNKNOWN
            if one.foretold is None
            else " to ".join(_percent(value) for value in one.foretold).replace(" %", "", 1),
            f"{show_ms(one.first_p90_ms)} · {show_latency(one.other_p90_ms, one.other_p90)}",
            f"{show_ms(one.first_max_ms)} · {show_latency(one.other_max_ms, one.other_max)}",
            _difference(one.first_mean_ms, one.other_mean_ms),
            one.verdict,
        ),
        known=one.ratio is not None,
    )


def _percent(value: float) -> str:
    """How far a ratio is from 1, with its sign."""
    percent = round(100 * (value - 1))
    return f"{'+' if percent > 0 else '−' if percent < 0 else '±'}{abs(percent)} %"


def _difference(first_ms: float | None, other_ms: float | None) -> str:
    if first_ms is None or other_ms is None:
        return UNKNOWN
    apart = other_ms - first_ms
    return f"{'+' if apart >= 0 else '−'}{show_figure(abs(apart), 2)}"


def _csv_cells(one: Agreement) -> tuple[object, ...]:
    measure = (
        (None, None, None)
        if one.ratio is None
        else (one.ratio.value, one.ratio.low, one.ratio.high)
    )
    foretold = one.foretold or (None, None)
    both = ((one.other_p90_ms, one.other_p90), (one.other_max_ms, one.other_max))
    p90, longest = ((value, value) if at is None else (at.low_ms, at.high_ms) for value, at in both)
    return (
        *(
            one.layout,
            one.api,
            one.workload,
            one.operation,
            one.workers,
            one.first_ops_s,
            one.other_ops_s,
        ),
        *(*measure, *foretold, one.explained),
        *(one.first_p90_ms, *p90, one.p90_off),
        *(one.first_max_ms, *longest, one.max_off),
        *(one.first_mean_ms, one.other_mean_ms, one.verdict),
    )
