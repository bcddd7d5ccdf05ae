from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli.options import RUN_FOLDER


@click.command("slides")
@click.argument("run", type=RUN_FOLDER)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Output file (default: derived/slides.pptx in the run's folder).",
)
@click.option("--force", is_flag=True, help="Replace the file of --out even if it exists.")
@click.option("--dark", is_flag=True, help="Light on dark, for dark rooms.")
def command(run: Path, out: Path | None, *, force: bool, dark: bool) -> None:
    """Make a talk of a RUN folder: slides with editable charts and tables, numbers in the notes."""
    from weighbridge.common.errors import UsageError, need

    need("pptx", "lxml", "PIL")
    from weighbridge.results.charts.chart_theme import DARK, LIGHT
    from weighbridge.results.record.store import RunStore
    from weighbridge.results.record.writing import write_atomically
    from weighbridge.results.slides.evidence import evidence
    from weighbridge.results.slides.powerpoint import powerpoint
    from weighbridge.results.slides.talk import talk
    from weighbridge.results.slides.typeface import shown_here

    store = RunStore.open(run)
    path = store.derived / "slides.pptx" if out is None else out
    if out is None:
        store.make_derived()
    elif not path.absolute().parent.is_dir():
        raise UsageError(
            f"{path}: there is no folder {path.parent}",
            advice="Make it, or choose another file with --out.",
        )
    elif path.exists() and not force:
        raise UsageError(
            f"{path} already exists",
            advice="It may have been edited: choose another file, or replace it with --force.",
        )
    deck = talk(evidence(store), DARK if dark else LIGHT)
    write_atomically(path, powerpoint(deck))
    click.echo(f"{path}: {len(deck.slides)} slides, {shown_here()}")
