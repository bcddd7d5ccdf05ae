"""A replayed study on a terminal: its tables, what changed, and its published results."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape

from weighbridge.results.analysis.study.recap import Recap, RecapCell
from weighbridge.results.analysis.study.study import StudyTable
from weighbridge.results.charts.change_map import study_maps
from weighbridge.results.report.study_section import StudySection
from weighbridge.screen.terminal import print_grid, print_line

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
        _print_table(console, grid)
    for one in page.outcome.recaps:
        _print_recap(console, one)
    if page.outcome.recaps:
        chart = study_maps(page.outcome.recaps)
        print_line(console, f"{chart.finding}. {chart.caption}")
    for grid in page.outcome.published:
        _print_table(console, grid)
        print_line(console, grid.note)


def _print_table(console: Console, grid: StudyTable) -> None:
    print_line(console, f"\n{grid.title}", "bold")
    lines = [list(map(escape, line)) for line in grid.shown]
    head = list(map(escape, grid.head))
    print_grid(console, head, lines, labels=grid.labels, left=("beside",))


def _print_recap(console: Console, one: Recap) -> None:
    print_line(console, f"\nChange of throughput, {one.title}", "bold")
    lines = [
        [escape(down), *(_change(one.cell(down, across)) for across in one.across)]
        for down in one.down
    ]
    head = ["", *(escape(name.replace(" × ", "\n")) for name in one.across)]
    print_grid(console, head, lines, labels=1)


def _change(cell: RecapCell | None) -> str:
    return "" if cell is None else f"[{_style(cell)}]{escape(cell.text)}[/]"


def _style(cell: RecapCell) -> str:
    """The colours of the chart; cells without a claim in italics."""
    colour = ""
    if cell.percent is not None and cell.verdict != "same":
        colour = "#56b4e9" if cell.percent > 0 else "#e69f00"
    return f"{_STYLES.get(cell.verdict, 'bold')} {colour}".strip()
