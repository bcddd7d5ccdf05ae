from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli.options import as_json


@click.command("runs")
@click.argument("folder", default="runs", type=click.Path(file_okay=False, path_type=Path))
@as_json
def command(folder: Path, *, as_json: bool) -> None:
    """List the runs in FOLDER (default: runs): date, suite, layouts, state and answer."""
    from weighbridge.documents import runs_below
    from weighbridge.results_output import print_document
    from weighbridge.screen.terminal import console, print_line

    found = runs_below(folder)
    if as_json:
        print_document(found)
        return
    screen = console()
    for one in found.runs:
        begun = one.created_at[:16].replace("T", " ")
        print_line(screen, f"{begun} UTC  {one.suite}, {one.state}: {', '.join(one.layouts)}")
        print_line(screen, f"  {one.folder}", "dim")
        if one.answer:
            print_line(screen, f"  {one.answer}", "bold")
    if not found.runs:
        print_line(screen, f"no runs that can be read in {folder}")
    for text in found.unreadable:
        print_line(screen, text, "yellow")
