from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from weighbridge.cli.options import RUN_FOLDER
from weighbridge.common.errors import UsageError

STANDARD_OUTPUT: Final = "-"
INFLUX: Final = "influx"
_INFLUX: Final = "every point, to the InfluxDB that --influx names"


def _print_schema(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    import json

    from weighbridge.results.export.json_format import json_schema

    click.echo(json.dumps(json_schema(), indent=1, ensure_ascii=False))
    context.exit()


class _Export(click.Command):
    """Lists the formats in its help, those of other packages included."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from weighbridge.results.export.formats import FORMATS

        with formatter.section("Formats"):
            formatter.write_dl(
                [*((name, one.about) for name, one in FORMATS.items()), (INFLUX, _INFLUX)]
            )


@click.command("export", cls=_Export)
@click.argument("run", type=RUN_FOLDER)
@click.option("--to", "form", metavar="FORMAT", required=True, help="One of the formats below.")
@click.option(
    "--table",
    "tables",
    metavar="TABLE",
    multiple=True,
    help="summary, steps, seconds, effects; of a tuning also `ledger`, `trials`; may be repeated "
    "(default: summary; for json all).",
)
@click.option(
    "--out",
    metavar="PATH",
    help="A file, or a folder for several; - is standard output (default: derived/exports in the "
    "run's folder).",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.option(
    "--influx",
    metavar="URL",
    help="Where --to influx sends the points: http://HOST:8086[?bucket=B&org=O], token in "
    "$WEIGHBRIDGE_INFLUX_TOKEN.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON Schema of json.",
)
def command(
    run: Path, form: str, tables: tuple[str, ...], out: str | None, force: bool, influx: str | None
) -> None:
    """Write a RUN folder in another FORMAT.

    Tables: summary has a line for each layout, kind of request and worker count; steps one for
    each repeat; seconds the time series; effects the differences from the first layout, with the
    tests behind them. For a tuning, `ledger` has a line for each setting and objective, `trials`
    one for each trial. What the run's folder lacks is printed.
    """
    from weighbridge.results.export.export import export, produce, single

    if (form == INFLUX) != (influx is not None):
        raise UsageError(
            "--to influx and --influx URL go together",
            advice="The URL says where the points are sent.",
        )
    if influx is not None:
        if tables or out or force:
            raise UsageError(
                "influx takes the entire run and makes no files",
                advice="Leave out --table, --out and --force.",
            )
        click.echo(_send(run, influx))
        return
    if out == STANDARD_OUTPUT:
        _, produced = produce(run, form, tables)
        click.echo(single(form, produced).content, nl=False)
        remarks = produced.remarks
    else:
        done = export(run, form, tables, out=None if out is None else Path(out), force=force)
        remarks = done.remarks
        for path in done.paths:
            click.echo(str(path))
    for remark in remarks:
        click.echo(f"weighbridge: {remark}", err=True)


def _send(run: Path, url: str) -> str:
    from weighbridge.results.influx.export import send_run
    from weighbridge.results.influx.server import InfluxServer
    from weighbridge.results.record.store import RunStore

    return send_run(RunStore.open(run), InfluxServer.parse(url)).words
