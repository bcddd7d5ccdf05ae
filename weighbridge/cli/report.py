from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli.options import RUN_FOLDER, as_json, pictures


@click.command("report")
@click.argument("run", type=RUN_FOLDER)
@pictures
@as_json
def command(run: Path, *, pictures: bool, as_json: bool) -> None:
    """Make summary.csv, charts and report.html of a RUN folder again, and print the table.

    What the folder lacks is printed, too.
    """
    from weighbridge.common.errors import EXIT_FINE, need
    from weighbridge.results import derive
    from weighbridge.results.charts.pictures import DRAWING
    from weighbridge.results.record.store import RunStore, gaps
    from weighbridge.results_output import show_results
    from weighbridge.screen.terminal import console

    need(DRAWING)
    derived, screen = derive(run, pictures=False), console(stderr=as_json)
    show_results(derived, screen, EXIT_FINE, pictures=pictures, as_json=as_json)
    store = RunStore.open(run)
    for gap in gaps(store, store.plan(), store.latest().values()):
        click.echo(f"weighbridge: {gap}", err=True)
