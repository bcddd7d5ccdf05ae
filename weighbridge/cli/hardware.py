from __future__ import annotations

import click

from weighbridge.cli.options import as_json


@click.command("hardware")
@as_json
def command(*, as_json: bool) -> None:
    """List the hardware files that ship: the hosts of each, and what they are for."""
    from rich.markup import escape

    from weighbridge.documents import shipped_hardware_files
    from weighbridge.results_output import print_document
    from weighbridge.screen.terminal import console, new_table

    found = shipped_hardware_files()
    if as_json:
        print_document(found)
        return
    table = new_table("hardware", "kind", "hosts", "what it is")
    for one in found.hardware:
        table.add_row(*map(escape, (one.name, one.kind, " ".join(one.hosts), one.about)))
    console().print(table)
