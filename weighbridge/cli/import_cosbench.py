"""`weighbridge import-cosbench FILE.xml`: a workload file of COSBench as a suite, and what of it is
not in the suite.
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command("import-cosbench")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE.yaml",
    help="Write the suite there instead of printing it.",
)
@click.option(
    "--partial",
    is_flag=True,
    help="Make a suite even of a file that says what would change what is measured.",
)
@click.option(
    "--size",
    metavar="SIZE",
    help="Size of objects that the file reads but does not write, such as 64KB.",
)
@click.option(
    "--runtime",
    metavar="TIME",
    help="Runtime of works that end by totalOps or totalBytes alone, such as 60s.",
)
def command(
    file: Path, out: Path | None, partial: bool, size: str | None, runtime: str | None
) -> None:
    """Make a suite of a workload file of COSBench, so that Locust can replay it.

    What of the file is not in the suite is named with its line, on stderr and in the suite. Where
    that would change what is measured no suite is made, unless --partial says so.
    """
    import_cosbench(file, out, partial=partial, size=size, runtime=runtime)


def import_cosbench(
    file: Path, out: Path | None, *, partial: bool, size: str | None, runtime: str | None
) -> None:
    """Print the suite or write it to `out`, which must not be there.

    Raises UsageError or DocumentError.
    """
    from weighbridge.common.errors import UsageError  # noqa: PLC0415 - heavy rooms are imported by what needs them
    from weighbridge.common.quantities import parse_bytes, parse_seconds  # noqa: PLC0415
    from weighbridge.suites import importer  # noqa: PLC0415

    try:
        size_bytes = parse_bytes(size) if size is not None else None
        runtime_s = parse_seconds(runtime) if runtime is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if runtime_s is not None and (
        not isinstance(runtime_s, float) or runtime_s < 1 or runtime_s != int(runtime_s)
    ):
        raise UsageError(f"--runtime {runtime}: whole seconds are wanted, such as 60s")
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
                f"{out} is there already", advice="Name another file, or take it away first."
            ) from None
        except OSError as error:
            raise UsageError(f"{out}: {error.strerror}") from error
    for remark in found.remarks:
        click.echo(str(remark), err=True)
    if out is not None:
        click.echo(f"suite {found.suite.name} is in {out}", err=True)
