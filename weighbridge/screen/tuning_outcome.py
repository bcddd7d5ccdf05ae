"""The results of a tuning on a terminal: each setting, the winner, its confirmation, the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.common.extras import missing
from weighbridge.results.analysis.tuning.setting_lines import (
    SettingLine,
    setting_lines,
    short_names,
)
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, could_be_shown
from weighbridge.results.charts.pictures import DRAWING
from weighbridge.results.derivation import WINNERS, Derived
from weighbridge.screen.terminal import new_table, print_line

_STYLES: Final = {
    "better": "bold blue",
    "worse": "dark_orange",
    "trade-off": "dark_orange",
    "not allowed": "red",
    "failed": "red",
}
WIDE: Final = 130
"""Columns for the table with intervals of two objectives and what each setting restarts."""
_LISTED: Final = 12
"""How many settings without an effect are listed."""


def print_tuning(result: TuningResult, derived: Derived, console: Console) -> None:
    """Print the table of trials and its sentences."""
    print_line(console, derived.answer, "bold")
    lines = setting_lines(result)
    if lines:
        console.print(_table(result, lines, console.width))
    for entry in result.refused:
        for note in entry.notes[:1]:
            print_line(console, f"{entry.verdict}: {entry.name}: {note}", "yellow")
    winner = result.winner
    print_line(console, result.winner_words if winner is None else f"▲ {result.winner_words}")
    if winner is not None:
        good = result.confirmation is not None and result.confirmation.confirmed
        print_line(
            console, f"{'▲' if good else '×'} {result.confirmation_words}", "" if good else "yellow"
        )
    _print_without_effect(result, console)
    for drift in result.table.drift:
        print_line(console, f"  {drift.words[:1].upper()}{drift.words[1:].rstrip('.')}.", "dim")
    for sentence in derived.hosts:
        print_line(console, f"  {sentence.rstrip('.')}.", "dim")
    print_line(console, f"\nledger  {derived.folder / 'ledger.csv'}")
    if result.to_paste:
        files = (str(derived.folder / WINNERS / one.name) for one in result.to_paste)
        print_line(console, f"winner  {', '.join(files)}")
    if result.confirmation is not None:
        print_line(console, f"confirmation  {result.confirmation.folder}")
    print_report_place(derived, console)


def print_report_place(derived: Derived, console: Console) -> None:
    """Print where the report is, or what makes one."""
    if derived.report is not None:
        print_line(console, f"report  {derived.report}")
        return
    print_line(console, f"report  {missing(DRAWING).message}")
    print_line(console, f"        and then weighbridge report {derived.folder.parent}")


def _print_without_effect(result: TuningResult, console: Console) -> None:
    """Settings for which no effect that matters was found, and what would have been found."""
    none = result.table.without_effect
    if not none:
        return
    print_line(console, result.without_effect_words)
    for entry in none[:_LISTED]:
        least = " and ".join(could_be_shown(one) or "unknown" for one in entry.effects)
        print_line(
            console,
            f"  ~ {entry.name}: {entry.verdict} (an effect of {least} would have been found)",
            "dim",
        )
    if len(none) > _LISTED:
        print_line(console, f"  ~ and {len(none) - _LISTED} more, in the report", "dim")


def _table(result: TuningResult, lines: Sequence[SettingLine], width: int) -> Table:
    """The trials in as many columns as fit: intervals, and what each setting restarts."""
    objectives = result.run.objectives
    wide = width >= WIDE
    short = short_names([line.name for line in lines])
    intervals = len(objectives) == 1 or wide
    table = new_table(show_edge=False)
    table.add_column("setting", overflow="fold", min_width=20)
    table.add_column("n", justify="right", no_wrap=True)
    for number, _ in enumerate(objectives):
        table.add_column(_head(result.called(number)), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    recorded = any(value is not None for line in lines for value in line.cpu_values)
    for title in ("gw CPU", "st CPU") if recorded else ():
        table.add_column(title, justify="right", no_wrap=True)
    if wide:
        table.add_column("restarts", no_wrap=True)
    for line in lines:
        style = _STYLES.get(line.verdict, "dim")
        table.add_row(
            escape(line.name if wide else short[line.name]),
            str(line.trials),
            *(
                _change(one.change, one.interval if intervals else "", one.tone)
                for one in line.changes
            ),
            f"[{style}]{line.sign} {line.verdict}[/]",
            *((line.gateway_cpu, line.storage_cpu) if recorded else ()),
            *([line.restarted] if wide else []),
        )
    return table


def _head(called: str) -> str:
    """`throughput of 64 kB reads at 16 workers` in three short lines."""
    what, _, rest = called.partition(" of ")
    for word in (" at ", " with "):
        rest = rest.replace(word, f"\n{word.strip()} ")
    return escape(f"{what}\n{rest}")


def _change(change: str, interval: str, tone: str) -> str:
    ends = f" ({interval.replace(' %', '')})" if interval else ""
    style = _STYLES.get(tone, "")
    change = f"[{style}]{escape(change)}[/]" if style else escape(change)
    return f"{change}{escape(ends)}"
