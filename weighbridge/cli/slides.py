"""`weighbridge slides`: a talk from a run, as PowerPoint with native charts and tables, and as
Markdown.
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("slides")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file; derived/slides.pptx of the run if not given.",
)
@click.option(
    "--markdown",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the same talk into this folder as slides.md, too.",
)
@click.option(
    "--force", is_flag=True, help="Replace the file of --out: somebody may have worked on it."
)
@click.option("--dark", is_flag=True, help="Light on dark, for dark rooms.")
def command(run: Path, out: Path | None, markdown: Path | None, *, force: bool, dark: bool) -> None:
    """Make a talk of a RUN folder: slides with charts and tables that can be edited, and notes with
    every figure.
    """
    from weighbridge.common.errors import UsageError  # noqa: PLC0415
    from weighbridge.results.charts.chart_theme import DARK, LIGHT  # noqa: PLC0415
    from weighbridge.results.record.store import RunStore, write_whole  # noqa: PLC0415
    from weighbridge.results.slides.evidence import evidence  # noqa: PLC0415
    from weighbridge.results.slides.markdown import write_markdown  # noqa: PLC0415
    from weighbridge.results.slides.powerpoint import powerpoint  # noqa: PLC0415
    from weighbridge.results.slides.talk import talk  # noqa: PLC0415

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
            f"{path} is there",
            advice="Somebody may have worked on it: choose another file, or replace it with "
            "--force.",
        )
    deck = talk(evidence(store), DARK if dark else LIGHT)
    write_whole(path, powerpoint(deck))
    click.echo(f"{path}: {len(deck.slides)} slides")
    if markdown is not None:
        click.echo(f"{write_markdown(deck, markdown)[0]}")
