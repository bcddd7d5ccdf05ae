from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from weighbridge.cli.options import shown
from weighbridge.common.errors import UsageError

RUNS = Path("runs")

EXAMPLES: Final = (
    (
        "The fastest layout for each kind of request, where layouts may be ranked:",
        """select workload, operation, arg_max(layout, throughput_ops_s) as layout,
max(throughput_ops_s) as ops_s
from rows where ranked and layer is null group by all""",
    ),
    (
        "How far the repeats of a step differ:",
        """select run, layout, api, driver, layer, workload, operation, workers,
max(throughput_ops_s) / min(throughput_ops_s) as ratio from steps where ranked
group by all order by ratio desc limit 10""",
    ),
    (
        "The same step in all runs:",
        """select created_at, layout, p90_ms from rows join runs using (run)
where workload = 'small-read' and workers = 8 order by created_at""",
    ),
    (
        "What was worse than the first layout, and how sure that is:",
        "select about, metric, workers, subject, ratio, q from effects where verdict = 'worse'",
    ),
    (
        "Seconds in which nothing succeeded:",
        "select run, layout, workload, repeat, second from seconds where operations = 0",
    ),
    (
        "CPU use of the gateways while steps were measured, as a share of 1:",
        """select layout, workers, avg(cpu_s / span_s / cpus) as share from hosts
where tier = 'gateway' and phase = 'measure' group by all order by all""",
    ),
)


def _epilog() -> str:
    """The examples for the help, each with click's mark that keeps its lines."""
    parts = []
    for words, query in EXAMPLES:
        lines = "\n".join(f"    {line}" for line in query.splitlines())
        parts.append(f"\b\n{words}\n{lines}")
    return "\n\n".join(parts)


def _print_schema(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
    if not asked or context.resilient_parsing:
        return
    from weighbridge.results.export.query import schema_words

    click.echo(schema_words())
    context.exit()


@click.command("sql", epilog=_epilog())
@click.argument("query")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@shown(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="Output format.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the views and their columns.",
)
def command(query: str, runs: tuple[Path, ...], form: str) -> None:
    """Run a QUERY in DuckDB's SQL on the folders RUNS (default: all of runs/).

    Views: runs, rows (the table of the report), steps (every repeat), seconds (time series),
    effects (differences from the first layout), attestation (what hosts could do), hosts (what
    they did, second by second), events and facts. NULL is unknown. Only the views that a query
    names are read; it can change nothing and reach no file.
    """
    from weighbridge.results.export.query import ask, read_runs
    from weighbridge.screen.answer import ANSWERS

    found, left_out = read_runs(runs or _all_runs())
    for sentence in left_out:
        click.echo(f"weighbridge: {sentence}", err=True)
    if not found:
        raise UsageError(
            "none of these folders is a run that can be read",
            advice="Name run folders after the query.",
        )
    for one in found:
        for gap in one.gaps:
            click.echo(f"weighbridge: {one.manifest.run_id}: {gap}", err=True)
    click.echo(ANSWERS[form](ask(query, found)), nl=False)


def _all_runs() -> tuple[Path, ...]:
    try:
        return tuple(sorted(path for path in RUNS.iterdir() if path.is_dir()))
    except OSError as error:
        raise UsageError(
            f"{RUNS}: {error.strerror}", advice="Name run folders after the query."
        ) from error
