"""What a run came to, on a terminal: the table, one sentence a workload, and where everything is."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from results.derivation import Derived
from results.figures import UNKNOWN, show_figure, show_ms


def print_outcome(derived: Derived, console: Console) -> None:
    """Print table, findings and places. Lines that are not valid are dim, with their reasons below the table.

    A terminal has no room for all columns: size, p99, mean, samples and repeats are in summary.csv and in the report.
    """
    rows = derived.rows
    several_apis = len({row.api for row in rows}) > 1
    drawn = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for title in ("workload", *(["api"] if several_apis else []), "layout"):
        drawn.add_column(title)
    for title in ("workers", "op/s", "MB/s", "p50 ms", "p90 ms", "max ms", "errors"):
        drawn.add_column(title, justify="right", no_wrap=True)
    reasons: list[str] = []
    before = None
    for row in rows:
        mixed = len({other.operation for other in rows if other.workload == row.workload}) > 1
        name = f"{row.workload}: {row.operation}" if mixed else row.workload
        if before not in {None, name}:
            drawn.add_section()
        before = name
        drawn.add_row(
            *(escape(word) for word in (name, *([row.api] if several_apis else []), row.layout)),
            str(row.workers),
            *(show_figure(value) for value in (row.throughput_ops_s, row.bandwidth_mb_s)),
            *(show_ms(value) for value in (row.p50_ms, row.p90_ms, row.max_ms)),
            UNKNOWN if row.errors is None else f"{row.errors:,}",
            style="" if row.valid else "dim italic",
        )
        if not row.valid:
            reasons.append(f"not valid: {row.layout}, {row.workload}, {row.workers} workers: {'; '.join(_faults(row.notes))}")
    console.print(drawn)
    for reason in dict.fromkeys(reasons):
        console.print(reason, style="yellow", markup=False, highlight=False)
    for finding in derived.findings:
        if finding.workers is None:
            console.print(f"• {finding.text}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\ntable   {derived.summary}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report  {derived.report}", markup=False, highlight=False, soft_wrap=True)


def _faults(notes: tuple[str, ...]) -> list[str]:
    """Why a line is not valid, without what is only to be known about it."""
    return [note for note in notes if "too few samples" not in note and note != "not valid"]
