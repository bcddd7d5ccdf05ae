from __future__ import annotations

from pathlib import Path

import click


@click.command("import-cosbench")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE.yaml",
    help="Write the suite to this new file instead of printing it.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Make a suite even if it measures something other than the file.",
)
@click.option(
    "--size",
    metavar="SIZE",
    help="Size of objects that the file reads but does not write, such as 64KB.",
)
@click.option(
    "--runtime",
    metavar="TIME",
    help="Runtime of works that end only by totalOps or totalBytes, such as 60s.",
)
def command(
    file: Path, out: Path | None, partial: bool, size: str | None, runtime: str | None
) -> None:
    """Convert a COSBench workload file to a suite, so that Locust can replay it.

    Parts of the file that are not in the suite are named with their lines, on stderr and in the
    suite. If the suite would measure something else, it is made only with --partial.
    """
    from weighbridge.common.errors import UsageError
    from weighbridge.common.quantities import parse_bytes, parse_seconds
    from weighbridge.suites import importer

    try:
        size_bytes = parse_bytes(size) if size is not None else None
        runtime_s = parse_seconds(runtime) if runtime is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if runtime_s is not None and (
        not isinstance(runtime_s, float) or runtime_s < 1 or runtime_s != int(runtime_s)
    ):
        raise UsageError(f"--runtime {runtime}: must be whole seconds, such as 60s")
    found = importer.from_cosbench(
        file,
        partial=partial,
        size=size_bytes if isinstance(size_bytes, int) else None,
        runtime_s=int(runtime_s) if isinstance(runtime_s, float) else None,
    )
    if out is None:
        click.echo(found.text, nl=False)
    else:
        try:
            with out.open("x", encoding="utf-8") as opened:
                opened.write(found.text)
        except FileExistsError:
            raise UsageError(
                f"{out} already exists", advice="Name another file, or delete this one first."
            ) from None
        except OSError as error:
            raise UsageError(f"{out}: {error.strerror}") from error
    for remark in found.remarks:
        click.echo(str(remark), err=True)
    if out is not None:
        click.echo(f"suite {found.suite.name} is in {out}", err=True)
