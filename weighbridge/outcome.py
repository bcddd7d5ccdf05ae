"""What a run came to, on a terminal: the table, one sentence a workload, and where everything is."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from results.derivation import Derived
from results.tables import Column, table

LEFT_OUT = {"API", "Size", "p99", "Mean", "Samples", "Repeats", "Valid"}
"""Columns that a terminal has no room for; all of them are in summary.csv and in the report."""

LEAST_WIDTH = 100
"""Where no terminal says how wide it is (a pipe, a log), in characters."""


def print_outcome(derived: Derived, console: Console) -> None:
    """Print table, findings and places. Lines that are not valid are dim, with their reasons below the table."""
    whole = table(derived.rows)
    # A column that says the same in every line is worth its room in a file, not on a terminal.
    alike = {column.title for number, column in enumerate(whole.columns) if len({line.cells[number] for line in whole.lines}) == 1}
    left_out = (LEFT_OUT | (alike & {"Operation"})) - ({"API"} - alike)
    shown = [number for number, column in enumerate(whole.columns) if column.title not in left_out]
    drawn = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for number in shown:
        column = whole.columns[number]
        drawn.add_column(_heading(column), justify="right" if column.numeric else "left", no_wrap=True)
    reasons: list[str] = []
    before = None
    for line in whole.lines:
        group = line.cells[:2]
        if before not in {None, group}:
            drawn.add_section()
        before = group
        drawn.add_row(*(escape(line.cells[number]) for number in shown), style="" if line.valid else "dim italic")
        if not line.valid:
            reasons.append(
                f"not valid: {line.cells[5]}, {line.cells[0]}, {line.cells[4]} workers: {'; '.join(_faults(line.notes))}"
            )
    console.print(drawn, width=None if console.is_terminal else max(console.width, LEAST_WIDTH))
    for reason in dict.fromkeys(reasons):
        console.print(reason, style="yellow", markup=False, highlight=False)
    for finding in derived.findings:
        if finding.workers is None:
            console.print(f"• {finding.text}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"\ntable   {derived.summary}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"report  {derived.report}", markup=False, highlight=False, soft_wrap=True)


def _heading(column: Column) -> str:
    rates = {"Throughput", "Bandwidth"}  # their units say which is which
    return column.unit if column.title in rates else f"{column.title} {column.unit}".strip()


def _faults(notes: tuple[str, ...]) -> list[str]:
    """Why a line is not valid, without what is only to be known about it."""
    return [note for note in notes if "too few samples" not in note and note != "not valid"]
