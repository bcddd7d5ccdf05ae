"""What survived power cuts on a terminal: a table by layout, its controls, then sentences."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from weighbridge.results.analysis.durability import (
    FINDING_WORDS,
    CutSeries,
    LayoutDurability,
)
from weighbridge.results.figures import UNKNOWN, show_figure
from weighbridge.results.record.durability import FINDINGS, Finding
from weighbridge.screen.terminal import new_table, print_line


def print_durability(found: Sequence[LayoutDurability], console: Console) -> None:
    """Print them: only findings that there are have a column; nothing where no layout was tried."""
    if not found:
        return
    seen = [
        one
        for one in FINDINGS
        if one == "lost" or any(s.found[one].objects for each in found for s in _both(each))
    ]
    counts = ("cuts", "served", "acknowledged", *(FINDING_WORDS[one] for one in seen), "serves s")
    table = new_table("layout", "verdict", *counts, right=counts)
    for one in found:
        words = one.judgement.replace("-", " ")
        style = "red" if one.judgement == "lost" else ""
        table.add_row(one.layout, escape(words), *_cells(one.store, seen), style=style)
    controls = [one for one in found if one.control.made]
    if controls:
        table.add_section()
    for one in controls:
        name, verdict = f"{one.layout}, control", "lost" if one.control.losing else "lost nothing"
        table.add_row(name, verdict, *_cells(one.control, seen), style="dim")
    print_line(console, "What survives power cuts:", "bold")
    console.print(table)
    for one in found:
        print_line(console, f"• {one.sentence}")
    for one in found:
        for cut in (*one.store.cuts, *one.control.cuts):
            if cut.why_not:
                of = f"{one.layout}{', control' * cut.control}"
                print_line(console, f"  {of}, cut {cut.number}: {cut.why_not}", "yellow")


def _both(one: LayoutDurability) -> tuple[CutSeries, CutSeries]:
    return one.store, one.control


def _cells(series: CutSeries, seen: Sequence[Finding]) -> tuple[str, ...]:
    serves = UNKNOWN if series.serves_s is None else show_figure(series.serves_s[0], 2)
    return (
        str(series.made),
        str(series.served),
        f"{series.acknowledged:,}",
        *(f"{series.found[one].objects:,}" for one in seen),
        serves,
    )
