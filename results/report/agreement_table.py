"""Two drivers' figures of the same steps side by side, as a page and a CSV file show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weighbridge.common.csv_text import csv_lines
from weighbridge.common.record import Record
from weighbridge.results.analysis.agreement import Agreement, causes, sentences
from weighbridge.results.analysis.findings import Finding
from weighbridge.results.analysis.steps.interval import show_latency
from weighbridge.results.figures import UNKNOWN, show_figure, show_ms
from weighbridge.results.report.tables import TableColumn

CSV_HEAD: Final = (
    "layout",
    "api",
    "workload",
    "operation",
    "workers",
    "locust_ops_s",
    "cosbench_ops_s",
    "cosbench_over_locust",
    "cosbench_over_locust_low",
    "cosbench_over_locust_high",
    "foretold_low",
    "foretold_high",
    "explained",
    "locust_p90_ms",
    "cosbench_p90_low_ms",
    "cosbench_p90_high_ms",
    "p90_bins_off",
    "locust_max_ms",
    "cosbench_max_low_ms",
    "cosbench_max_high_ms",
    "max_bins_off",
    "locust_mean_ms",
    "cosbench_mean_ms",
    "verdict",
)
"""Columns of `derived/agreement.csv`, in order."""

HEAD: Final = (
    TableColumn(title="Requests"),
    TableColumn(title="Workers", numeric=True),
    TableColumn(title="Layout"),
    TableColumn(title="Locust", unit="op/s", numeric=True),
    TableColumn(title="COSBench", unit="op/s", numeric=True),
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

    sentences: tuple[str, ...]
    head: tuple[TableColumn, ...] = HEAD
    lines: tuple[AgreementLine, ...]
    causes: tuple[str, ...]


def agreement_table(
    found: Sequence[Agreement], findings: Sequence[Finding], facts: Mapping[str, Mapping[str, str]]
) -> AgreementTable:
    """The steps of a run side by side. `facts` are those of its layouts."""
    return AgreementTable(
        sentences=sentences(found, findings), lines=tuple(_line(one) for one in found), causes=causes(found, facts)
    )


def agreement_csv(found: Sequence[Agreement]) -> str:
    """The same as CSV; empty where unknown, COSBench's latencies by the ends of their intervals."""
    return csv_lines(CSV_HEAD, [_csv_cells(one) for one in found])


def _line(one: Agreement) -> AgreementLine:
    return AgreementLine(
        cells=(
            one.about,
            str(one.workers),
            one.layout,
            show_figure(one.locust_ops_s),
            show_figure(one.cosbench_ops_s),
            UNKNOWN if one.ratio is None else _percent(one.ratio.value),
            UNKNOWN if one.foretold is None else " to ".join(_percent(value) for value in one.foretold).replace(" %", "", 1),
            f"{show_ms(one.locust_p90_ms)} · {show_latency(None, one.cosbench_p90)}",
            f"{show_ms(one.locust_max_ms)} · {show_latency(None, one.cosbench_max)}",
            _difference(one.locust_mean_ms, one.cosbench_mean_ms),
            one.verdict,
        ),
        known=one.ratio is not None,
    )


def _percent(value: float) -> str:
    """How far a ratio is from 1, with its sign."""
    percent = round(100 * (value - 1))
    return f"{'+' if percent > 0 else '−' if percent < 0 else '±'}{abs(percent)} %"


def _difference(locust_ms: float | None, cosbench_ms: float | None) -> str:
    if locust_ms is None or cosbench_ms is None:
        return UNKNOWN
    apart = cosbench_ms - locust_ms
    return f"{'+' if apart >= 0 else '−'}{show_figure(abs(apart), 2)}"


def _csv_cells(one: Agreement) -> tuple[object, ...]:
    measure = (None, None, None) if one.ratio is None else (one.ratio.value, one.ratio.low, one.ratio.high)
    foretold = one.foretold or (None, None)
    p90, longest = ((None, None) if at is None else (at.low_ms, at.high_ms) for at in (one.cosbench_p90, one.cosbench_max))
    return (
        *(one.layout, one.api, one.workload, one.operation, one.workers, one.locust_ops_s, one.cosbench_ops_s),
        *(*measure, *foretold, one.explained),
        *(one.locust_p90_ms, *p90, one.p90_off),
        *(one.locust_max_ms, *longest, one.max_off),
        *(one.locust_mean_ms, one.cosbench_mean_ms, one.verdict),
    )
