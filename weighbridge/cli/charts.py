"""`weighbridge charts`: every picture of a run, for a bright room or for a dark one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli.options import named, seconds
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weighbridge.results.charts.panels import Figure


@click.command("charts")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--dark", is_flag=True, help="For a dark room: light on dark.")
@click.option(
    "--only",
    metavar="NAME,...",
    callback=named,
    help="Only these, by the names of their files; --list prints them.",
)
@click.option(
    "--slo",
    metavar="TIME",
    callback=seconds,
    help="The bound on p90 in the hockey stick, such as 50ms (default: one that tells).",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to (default: derived/charts in the run's folder, dark ones in charts/dark).",
)
@click.option(
    "--list", "listed", is_flag=True, help="Print what can be drawn of this run, and draw nothing."
)
def command(
    run: Path, dark: bool, only: str | None, slo: float | None, out: Path | None, listed: bool
) -> None:
    """Draw the charts of a RUN folder as PNG (2x), SVG and PDF, each with its data as CSV and its
    finding as text.
    """
    # The heavy rooms are imported here, so that `weighbridge --help` need not wait for them.
    from weighbridge.results.charts.chart_theme import DARK, LIGHT  # noqa: PLC0415
    from weighbridge.results.charts.gallery import gallery_of  # noqa: PLC0415
    from weighbridge.results.charts.pictures import write_charts  # noqa: PLC0415
    from weighbridge.results.record.store import RunStore  # noqa: PLC0415

    gallery = gallery_of(run, slo_ms=None if slo is None else slo * 1000)
    for said in gallery.left_out:
        click.echo(said, err=True)
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
    """The figures of these names, in the order asked for; all without any.

    Raises UsageError on a name that none has.
    """
    from weighbridge.common.document import did_you_mean  # noqa: PLC0415 - for a typing error

    by_name = {figure.name: figure for figure in figures}
    names = (
        list(by_name)
        if only is None
        else [name.strip() for name in only.split(",") if name.strip()]
    )
    for name in names:
        if name not in by_name:
            raise UsageError(
                f"no chart {name!r} in this run{did_you_mean(name, list(by_name))}",
                advice="--list says what each of them shows.",
            )
    return [by_name[name] for name in dict.fromkeys(names)]
