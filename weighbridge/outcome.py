"""What a run came to, on a terminal: the table, one sentence a workload, and where everything is."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from results.derivation import Derived
from results.tables import Column, table

LEFT_OUT = ("API", "p99", "Mean", "Samples", "Repeats", "Valid")
"""Columns that a terminal has no room for; all of them are in summary.csv and in the report."""


def print_outcome(derived: Derived, console: Console) -> None:
    """Print table, findings and places. Lines that are not valid are dim, with their reasons below the table."""
    whole = table(derived.rows)
    several = len({row.api for row in derived.rows}) > 1
    shown = [
        number for number, column in enumerate(whole.columns) if column.title not in LEFT_OUT or (several and column.title == "API")
    ]
    drawn = Table(title=whole.title, header_style="bold", title_justify="left", title_style="bold")
    for number in shown:
        column = whole.columns[number]
        drawn.add_column(_heading(column), justify="right" if column.numeric else "left")
    reasons = []
    before = None
    for line in whole.lines:
        group = line.cells[:2]
        if before not in {None, group}:
            drawn.add_section()
        before = group
        drawn.add_row(*(escape(line.cells[number]) for number in shown), style="" if line.valid else "dim italic")
        if not line.valid:
            reasons.append(f"  not valid: {line.cells[5]}, {line.cells[0]}, {line.cells[4]} workers: {'; '.join(line.notes)}")
    console.print(drawn)
    for reason in reasons:
        console.print(reason, style="yellow", markup=False, highlight=False)
    for finding in derived.findings:
        if finding.workers is None:
            console.print(f"• {finding.text}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\ntable   {derived.summary}", markup=False, highlight=False, soft_wrap=True)
    if derived.report is not None:
        console.print(f"report  {derived.report}", markup=False, highlight=False, soft_wrap=True)


def _heading(column: Column) -> str:
    return f"{column.title}\n{column.unit}" if column.unit else column.title
