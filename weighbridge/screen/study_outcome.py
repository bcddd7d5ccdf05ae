"""A replayed study on a terminal: its tables, the map of what changed, its published figures beside
ours, and where they are.
"""

from __future__ import annotations

from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.results.analysis.study.recap import Recap, RecapCell
from weighbridge.results.analysis.study.study import StudyTable
from weighbridge.results.charts.change_map import study_maps
from weighbridge.results.report.study_page import StudyPage

_STYLES: Final = {"same": "dim", "missing": "dim", "provisional": "italic"}


def print_study(page: StudyPage, console: Console) -> None:
    """Print all tables of a study. In the map blue is faster and orange slower, as in its chart."""
    run = page.outcome.run
    _say(console, f"\n{run.study.about} ({run.scale} scale), after {run.study.source}")
    for sentence in run.chosen.about:
        console.print(f"  {sentence}", style="dim", markup=False, highlight=False)
    if page.outcome.conclusions:
        console.print(
            "\nWhat the study concluded, and what this run says to it",
            style="bold",
            markup=False,
            highlight=False,
        )
    for held in page.outcome.conclusions:
        _say(console, f"• {held.verdict}: {held.says} ({held.why})")
    for grid in page.outcome.tables:
        _show(console, grid.title, _grid(grid))
    for one in page.outcome.recaps:
        _show(console, f"Change of throughput, {one.title}", _recap(one))
    if page.outcome.recaps:
        chart = study_maps(page.outcome.recaps)
        _say(console, f"{chart.finding}. {chart.caption}")
    for grid in page.outcome.published:
        _show(console, grid.title, _grid(grid))
        _say(console, grid.note)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False)


def _show(console: Console, title: str, drawn: Table) -> None:
    """A title of its own line: that of a table would be broken to the table's width."""
    console.print(f"\n{title}", style="bold", markup=False, highlight=False)
    console.print(drawn)


def _table() -> Table:
    return Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)


def _grid(grid: StudyTable) -> Table:
    drawn = _table()
    for number, name in enumerate(grid.head):
        drawn.add_column(
            escape(name), justify="left" if number < grid.labels or name == "beside" else "right"
        )
    for line in grid.shown:
        drawn.add_row(*map(escape, line))
    return drawn


def _recap(one: Recap) -> Table:
    drawn = _table()
    drawn.add_column("")
    for name in one.across:
        drawn.add_column(escape(name.replace(" × ", "\n")), justify="right", no_wrap=True)
    for down in one.down:
        cells = [one.cell(down, across) for across in one.across]
        drawn.add_row(
            escape(down),
            *("" if cell is None else f"[{_style(cell)}]{escape(cell.text)}[/]" for cell in cells),
        )
    return drawn


def _style(cell: RecapCell) -> str:
    """Of the same colours as the chart; what makes no claim is in italics."""
    colour = (
        ""
        if cell.percent is None or cell.verdict == "same"
        else "#56b4e9"
        if cell.percent > 0
        else "#e69f00"
    )
    return f"{_STYLES.get(cell.verdict, 'bold')} {colour}".strip()
