from __future__ import annotations

import click

from weighbridge.cli.options import as_json


@click.command("suites")
@as_json
def command(*, as_json: bool) -> None:
    """List the suites that ship: what each replays, over which APIs, and in how many steps."""
    from rich.markup import escape

    from weighbridge.documents import shipped_suites
    from weighbridge.results_output import print_document
    from weighbridge.screen.terminal import console, new_table

    found = shipped_suites()
    if as_json:
        print_document(found)
        return
    numbers = ("workloads", "repeats", "steps")
    table = new_table("suite", "what it replays", "api", *numbers, right=numbers)
    table.columns[0].no_wrap = True
    for one in found.suites:
        counts = (str(len(one.workloads)), str(one.repeats), str(one.steps))
        table.add_row(*map(escape, (one.name, one.about, " ".join(one.api), *counts)))
    console().print(table)
