"""`weighbridge report`: table, charts and report of a run, from its folder alone."""

from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli.options import pictures


@click.command("report")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@pictures
def command(run: Path, *, pictures: bool) -> None:
    """Make derived/ of a RUN folder again: summary.csv, charts, report.html; print the table, and
    what the folder lacks.
    """
    from weighbridge.conclusion import conclude  # noqa: PLC0415
    from weighbridge.results import derive  # noqa: PLC0415
    from weighbridge.results.record.gaps import gaps  # noqa: PLC0415
    from weighbridge.results.record.store import RunStore  # noqa: PLC0415
    from weighbridge.screen.terminal import console  # noqa: PLC0415

    conclude(derive(run, pictures=False), console(), pictures=pictures)
    store = RunStore.open(run)
    for gap in gaps(store, store.plan(), store.latest().values()):
        click.echo(f"weighbridge: {gap}", err=True)
