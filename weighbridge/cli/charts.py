from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import RUN_FOLDER, named, seconds, split
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weighbridge.results.charts.panels import Figure


@click.command("charts")
@click.argument("run", type=RUN_FOLDER)
@click.option("--dark", is_flag=True, help="For a dark room: light on dark.")
@click.option(
    "--only",
    metavar="NAME,...",
    callback=named,
    help="Only these, by file name; --list prints the names.",
)
@click.option(
    "--slo",
    metavar="TIME",
    callback=seconds,
    help="Bound on p90 in the hockey stick, such as 50ms (default: one that separates layouts).",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Output folder (default: derived/charts in the run's folder; charts/dark with --dark).",
)
@click.option("--list", "listed", is_flag=True, help="List the charts of this run and draw none.")
def command(
    run: Path, dark: bool, only: str | None, slo: float | None, out: Path | None, listed: bool
) -> None:
    """Draw the charts of a RUN folder as PNG (2x), SVG and PDF, each with its CSV and finding."""
    from weighbridge.results.charts.chart_theme import DARK, LIGHT
    from weighbridge.results.charts.gallery import gallery_of
    from weighbridge.results.charts.pictures import write_charts
    from weighbridge.results.record.store import RunStore

    gallery = gallery_of(run, slo_ms=None if slo is None else slo * 1000)
    for reason in gallery.left_out:
        click.echo(reason, err=True)
    chosen = choose(gallery.figures, only)
    if listed:
        for figure in chosen:
            click.echo(f"{figure.name}: {figure.finding}")
        return
    folder = out or RunStore.open(run).make_derived("charts/dark" if dark else "charts")
    for path in write_charts(chosen, folder, DARK if dark else LIGHT):
        if path.suffix == ".png":
            click.echo(str(path))


def choose(figures: Sequence[Figure], only: str | None) -> list[Figure]:
    """The figures named in `only`, in that order; without it all. Raises UsageError."""
    from weighbridge.common.document import did_you_mean

    by_name = {figure.name: figure for figure in figures}
    names = tuple(by_name) if only is None else split(only)
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"no chart {name!r} in this run{did_you_mean(name, list(by_name))}",
                advice="--list names the charts and their findings.",
            )
    return [by_name[name] for name in dict.fromkeys(names)]
