"""`weighbridge init suite|layout|hardware|kubernetes [FILE]`: a commented file to edit.

Raises UsageError if FILE exists, there is no such file to start from, or Locust cannot replay it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from weighbridge.cli import complete
from weighbridge.cli.options import named
from weighbridge.common.errors import UsageError

if TYPE_CHECKING:
    from weighbridge.kubernetes_file import Operator


@click.command("init")
@click.argument("kind", type=click.Choice(["suite", "layout", "hardware", "kubernetes"]))
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--of",
    "base",
    metavar="NAME",
    shell_complete=complete.bases,
    callback=named,
    help="The file that it starts from, or the name of one that ships (default: endpoints, "
    "rgw-beast, lab-cpu; kubernetes: the suite endpoints).",
)
@click.option(
    "--operator",
    type=click.Choice(["community", "official", "chart"]),
    help="For kubernetes, who runs the test: AbdelrhmanHamouda's operator (the default), Locust's "
    "own, or deliveryhero's Helm chart, for which these are values.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def command(
    kind: str, file: Path | None, base: str | None, operator: Operator | None, force: bool
) -> None:
    """Write a suite, layout or hardware file to FILE, or print it: valid as it is, with every key
    and what it is for; or what Kubernetes needs to replay a suite with Locust.
    """
    from weighbridge.results.record.writing import make_folder, write_atomically

    if file is not None and file.exists() and not force:
        raise UsageError(f"{file}: exists already", advice="Use --force to replace it.")
    if kind == "kubernetes":
        from weighbridge.kubernetes_file import kubernetes_file

        text = kubernetes_file(operator or "community", base)
    elif operator is not None:
        raise UsageError(f"`--operator` is for kubernetes, and not for a {kind} file")
    else:
        from weighbridge.starting_file import starting_file

        text = starting_file(kind, base, file)
    if file is None:
        click.echo(text, nl=False)
        return
    make_folder(file.parent)
    write_atomically(file, text)
    click.echo(str(file))
