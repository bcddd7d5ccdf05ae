from __future__ import annotations

import os
from pathlib import Path

import click

from weighbridge.cli.options import RUN_FOLDER

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Without any of these variables there is no browser to open, but perhaps one in the terminal."""


@click.command("open")
@click.argument("run", required=False, type=RUN_FOLDER)
def command(run: Path | None) -> None:
    """Open the report of RUN (default: the newest in runs) in a browser, and print its path."""
    import webbrowser

    from weighbridge.documents import newest_below, report_of

    report = report_of(run or newest_below(Path("runs"))).absolute()
    click.echo(str(report))
    if any(os.environ.get(name) for name in _SCREENS):
        webbrowser.open(report.as_uri())
