"""A replayed study on a terminal: its tables, what changed, and its published results."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.results.analysis.study.recap import Recap, RecapCell
from weighbridge.results.analysis.study.study import StudyTable
from weighbridge.results.charts.change_map import study_maps
from weighbridge.results.report.study_section import StudySection
from weighbridge.screen.terminal import new_table, print_line

_STYLES: Final = {"same": "dim", "missing": "dim", "provisional": "italic"}


def print_study(page: StudySection, console: Console) -> None:
    """Print all tables of a study. As in its chart, blue is faster and orange slower."""
    run = page.outcome.run
    print_line(console, f"\n{run.study.about} ({run.scale} scale), after {run.study.source}")
    for sentence in run.chosen.about:
        print_line(console, f"  {sentence}", "dim")
    for lacking in run.lacking:
        print_line(console, f"  not as in the study: {lacking}", "dim")
    if page.outcome.conclusions:
        print_line(console, "\nThe study's conclusions, and whether this run agrees", "bold")
    for held in page.outcome.conclusions:
        print_line(console, f"• {held.verdict}: {held.says} ({held.why})")
    for grid in page.outcome.tables:
        _print_table(console, grid.title, _grid(grid))
    for one in page.outcome.recaps:
        _print_table(console, f"Change of throughput, {one.title}", _recap(one))
    if page.outcome.recaps:
        chart = study_maps(page.outcome.recaps)
        print_line(console, f"{chart.finding}. {chart.caption}")
    for grid in page.outcome.published:
        _print_table(console, grid.title, _grid(grid))
        print_line(console, grid.note)


def _print_table(console: Console, title: str, table: Table) -> None:
    """The title is its own line: rich breaks the title of a table to the table's width."""
    print_line(console, f"\n{title}", "bold")
    console.print(table)


def _grid(grid: StudyTable) -> Table:
    table = new_table(show_edge=False)
    for number, name in enumerate(grid.head):
        left = number < grid.labels or name == "beside"
        table.add_column(escape(name), justify="left" if left else "right")
    for line in grid.shown:
        table.add_row(*map(escape, line))
    return table


def _recap(one: Recap) -> Table:
    table = new_table("", show_edge=False)
    for name in one.across:
        table.add_column(escape(name.replace(" × ", "\n")), justify="right", no_wrap=True)
    for down in one.down:
        cells = [one.cell(down, across) for across in one.across]
        table.add_row(
            escape(down),
            *("" if cell is None else f"[{_style(cell)}]{escape(cell.text)}[/]" for cell in cells),
        )
    return table


def _style(cell: RecapCell) -> str:
    """The colours of the chart; cells without a claim in italics."""
    colour = ""
    if cell.percent is not None and cell.verdict != "same":
        colour = "#56b4e9" if cell.percent > 0 else "#e69f00"
    return f"{_STYLES.get(cell.verdict, 'bold')} {colour}".strip()
