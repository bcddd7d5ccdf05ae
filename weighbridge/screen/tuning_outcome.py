"""What a tuning came to, on a terminal: the ledger, what was chosen and whether that held, what has
no effect, and where all is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weighbridge.results.analysis.tuning.ledger_table import LedgerLine, ledger_lines, short_names
from weighbridge.results.analysis.tuning.tuning_result import TuningResult, could_be_shown
from weighbridge.results.derivation import WINNERS, Derived

_STYLES: Final = {
    "better": "bold blue",
    "worse": "dark_orange",
    "trade-off": "dark_orange",
    "not allowed": "red",
    "failed": "red",
}
WIDE: Final = 130
"""Columns that the table needs with the intervals of two objectives and what each setting needs."""
_LISTED: Final = 12
"""So many settings without an effect are told one by one."""


def print_tuning(derived: Derived, console: Console) -> None:
    """Print the ledger and its sentences. Raises ValueError where nothing was tuned."""
    result = derived.tuned
    if result is None:
        raise ValueError(f"{derived.folder}: is of no tuning")
    _say(console, f"{result.headline}.", "bold")
    lines = ledger_lines(result)
    if lines:
        console.print(_table(result, lines, console.width))
    for entry in result.refused:
        for note in entry.notes[:1]:
            _say(console, f"{entry.verdict}: {entry.name}: {note}", "yellow")
    _say(console, f"▲ {result.winner_words}" if result.winner is not None else result.winner_words)
    if result.winner is not None:
        good = result.confirmation is not None and result.confirmation.confirmed
        _say(
            console, f"{'▲' if good else '×'} {result.confirmation_words}", "" if good else "yellow"
        )
    _print_without_effect(result, console)
    for drift in result.ledger.drift:
        _say(console, f"  {drift.words[:1].upper()}{drift.words[1:].rstrip('.')}.", "dim")
    for sentence in derived.hosts:
        _say(console, f"  {sentence}", "dim")
    _say(console, f"\nledger  {derived.folder / 'ledger.csv'}")
    if result.winner is not None and result.winner.fragments:
        _say(
            console,
            "winner  "
            f"{', '.join(str(derived.folder / WINNERS / one.name) for one in result.winner.fragments)}",
        )
    if result.confirmation is not None:
        _say(console, f"confirmation  {result.confirmation.folder}")
    _say(console, f"report  {derived.report}")


def _print_without_effect(result: TuningResult, console: Console) -> None:
    """The settings that need not be set, each with the smallest effect that would have been
    shown.
    """
    none = result.ledger.without_effect
    if not none:
        return
    _say(console, result.without_effect_words)
    for entry in none[:_LISTED]:
        shown = [could_be_shown(one) or "unknown" for one in entry.effects]
        _say(
            console,
            f"  ~ {entry.name}: {entry.verdict} (an effect of {' and '.join(shown)} would be shown)",
            "dim",
        )
    if len(none) > _LISTED:
        _say(console, f"  ~ and {len(none) - _LISTED} more, in the report", "dim")


def _table(result: TuningResult, lines: Sequence[LedgerLine], width: int) -> Table:
    """The ledger in so many columns: where there is room for them with their intervals, and with
    what each setting needs.
    """
    objectives = result.run.objectives
    wide = width >= WIDE
    short = short_names([line.name for line in lines])
    intervals = len(objectives) == 1 or wide
    drawn = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    drawn.add_column("setting", overflow="fold", min_width=20)
    drawn.add_column("n", justify="right", no_wrap=True)
    for number, _ in enumerate(objectives):
        drawn.add_column(_head(result.called(number)), justify="right", no_wrap=True)
    drawn.add_column("verdict", no_wrap=True)
    recorded = any(value is not None for line in lines for value in line.cpu_values)
    for title in ("gw CPU", "st CPU") if recorded else ():
        drawn.add_column(title, justify="right", no_wrap=True)
    if wide:
        drawn.add_column("needs", no_wrap=True)
    for line in lines:
        style = _STYLES.get(line.verdict, "dim")
        drawn.add_row(
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
    return drawn


def _head(called: str) -> str:
    """`throughput of 64 kB reads at 16 workers` in three short lines."""
    what, _, rest = called.partition(" of ")
    for word in (" at ", " with "):
        rest = rest.replace(word, f"\n{word.strip()} ")
    return escape(f"{what}\n{rest}")


def _change(change: str, interval: str, tone: str) -> str:
    ends = f" ({interval.replace(' %', '')})" if interval else ""
    style = _STYLES.get(tone, "")
    return (
        f"[{style}]{escape(change)}[/]{escape(ends)}"
        if style
        else f"{escape(change)}{escape(ends)}"
    )


def _say(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style or None, markup=False, highlight=False, soft_wrap=True)
