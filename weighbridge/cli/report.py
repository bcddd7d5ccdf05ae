"""`weighbridge report`: table, charts and report of a run, from its folder alone."""

from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli.options import RUN_FOLDER, pictures


@click.command("report")
@click.argument("run", type=RUN_FOLDER)
@pictures
def command(run: Path, *, pictures: bool) -> None:
    """Make summary.csv, charts and report.html of a RUN folder again, and print the table.

    What the folder lacks is printed, too.
    """
    from weighbridge.common.extras import need
    from weighbridge.results import derive
    from weighbridge.results.charts.pictures import DRAWING
    from weighbridge.results.record.gaps import gaps
    from weighbridge.results.record.store import RunStore
    from weighbridge.results_output import show_results
    from weighbridge.screen.terminal import console

    need(DRAWING)
    show_results(derive(run, pictures=False), console(), pictures=pictures)
    store = RunStore.open(run)
    for gap in gaps(store, store.plan(), store.latest().values()):
        click.echo(f"weighbridge: {gap}", err=True)
