from __future__ import annotations

from pathlib import Path

import click

from weighbridge.cli import complete
from weighbridge.cli.options import named
from weighbridge.common.errors import UsageError


@click.command("init")
@click.argument("kind", type=click.Choice(["suite", "layout", "hardware"]))
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--of",
    "base",
    metavar="NAME",
    shell_complete=complete.bases,
    callback=named,
    help="The file that it starts from, or the name of one that ships (default: endpoints, "
    "rgw-beast, lab-cpu).",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def command(kind: str, file: Path | None, base: str | None, force: bool) -> None:
    """Write a suite, layout or hardware file to FILE, or print it: valid as it is, with every key
    and what it is for.
    """
    from weighbridge.results.record.writing import make_folder, write_atomically
    from weighbridge.starting_file import starting_file

    if file is not None and file.exists() and not force:
        raise UsageError(f"{file}: exists already", advice="Use --force to replace it.")
    text = starting_file(kind, base, file)
    if file is None:
        click.echo(text, nl=False)
        return
    make_folder(file.parent)
    write_atomically(file, text)
    click.echo(str(file))
