"""Verbs about the folder of a run: what it answers, in which form it is shown or written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from weighbridge.cli.options import (
    FOLDER,
    OUTPUT,
    OUTPUT_FILE,
    RUN_FOLDER,
    OutputPath,
    as_json,
    names_option,
    pictures,
    shown,
    split,
    time_option,
)
from weighbridge.common.errors import EXIT_FINE, UsageError, need

if TYPE_CHECKING:
    from collections.abc import Callable


@click.command("runs")
@click.argument("folder", default="runs", type=FOLDER)
@as_json
def runs_verb(folder: Path, *, as_json: bool) -> None:
    """List the runs in FOLDER (default: runs): date, suite, layouts, state and answer."""
    from weighbridge.documents import runs_below
    from weighbridge.results.show.terminal import console, print_line
    from weighbridge.results_output import print_document

    found = runs_below(folder)
    if as_json:
        print_document(found)
        return
    screen = console()
    for one in found.runs:
        begun = one.created_at[:16].replace("T", " ")
        print_line(screen, f"{begun} UTC  {one.suite}, {one.state}: {', '.join(one.layouts)}")
        print_line(screen, f"  {one.folder}", "dim")
        if one.answer:
            print_line(screen, f"  {one.answer}", "bold")
    if not found.runs:
        print_line(screen, f"no runs that can be read in {folder}")
    for text in found.unreadable:
        print_line(screen, text, "yellow")


_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Without any of these variables there is no browser to open, but perhaps one in the terminal."""


@click.command("open")
@click.argument("run", required=False, type=RUN_FOLDER)
def open_verb(run: Path | None) -> None:
    """Open the report of RUN (default: the newest in runs) in a browser, and print its path."""
    import webbrowser

    from weighbridge.documents import newest_below, report_of

    report = report_of(run or newest_below(Path("runs"))).absolute()
    click.echo(str(report))
    if any(os.environ.get(name) for name in _SCREENS):
        webbrowser.open(report.as_uri())


@click.command("report")
@click.argument("run", type=RUN_FOLDER)
@pictures
@as_json
def report_verb(run: Path, *, pictures: bool, as_json: bool) -> None:
    """Make summary.csv, charts and report.html of a RUN folder again, and print the table.

    What the folder lacks is printed, too.
    """
    from weighbridge.results import derive
    from weighbridge.results.run.store import RunStore, gaps
    from weighbridge.results.show.pictures import DRAWING
    from weighbridge.results.show.terminal import console
    from weighbridge.results_output import show_results

    need(DRAWING)
    derived, screen = derive(run, pictures=False), console(stderr=as_json)
    show_results(derived, screen, EXIT_FINE, pictures=pictures, as_json=as_json)
    store = RunStore.open(run)
    for gap in gaps(store, store.plan(), store.latest().values()):
        click.echo(f"weighbridge: {gap}", err=True)


@click.command("charts")
@click.argument("run", type=RUN_FOLDER)
@click.option("--dark", is_flag=True, help="For a dark room: light on dark.")
@names_option("--only", "NAME,...", "Only these, by file name; --list prints the names.")
@time_option(
    "--slo", "Bound on p90 in the hockey stick, such as 50ms (default: one that separates layouts)."
)
@click.option(
    "--out",
    type=OUTPUT,
    help="Output folder (default: derived/charts in the run's folder; charts/dark with --dark).",
)
@click.option("--title", default="", metavar="TEXT", help="The title instead of the finding.")
@click.option(
    "--size", metavar="WxH", help="Of a picture, in pixels (default: 1920x1080); text fits it."
)
@click.option("--panels", is_flag=True, help="A picture for each panel, instead of all together.")
@click.option("--list", "listed", is_flag=True, help="List the charts of this run and draw none.")
def charts_verb(
    run: Path,
    dark: bool,
    only: str | None,
    slo: float | None,
    out: Path | None,
    title: str,
    size: str | None,
    panels: bool,
    listed: bool,
) -> None:
    """Draw the charts of a RUN folder as PNG, SVG and PDF, each with its CSV and finding."""
    from weighbridge.results.features.open_run import open_run
    from weighbridge.results.show.chart import PictureStyle
    from weighbridge.results.show.feature import gallery
    from weighbridge.results.show.pictures import write_charts
    from weighbridge.results.show.scales import DARK, LIGHT

    data = open_run(run)
    drawn = gallery(data, slo_ms=None if slo is None else slo * 1000)
    for reason in drawn.left_out:
        click.echo(reason, err=True)
    chosen = drawn.charts if only is None else drawn.choose(split(only))
    if listed:
        for chart in chosen:
            click.echo(f"{chart.key}: {chart.finding}")
        return
    style = PictureStyle.of(size, title=title, single=panels)
    folder = out or data.store.make_derived("charts/dark" if dark else "charts")
    for path in write_charts(chosen, folder, DARK if dark else LIGHT, style):
        if path.suffix == ".png":
            click.echo(str(path))


@click.command("slides")
@click.argument("run", type=RUN_FOLDER)
@click.option(
    "--out",
    type=OUTPUT_FILE,
    help="Output file (default: derived/slides.pptx in the run's folder).",
)
@click.option("--force", is_flag=True, help="Replace the file of --out even if it exists.")
@click.option("--dark", is_flag=True, help="Light on dark, for dark rooms.")
def slides_verb(run: Path, out: Path | None, *, force: bool, dark: bool) -> None:
    """Make a talk of a RUN folder: at most eight slides with editable charts, and backup slides."""
    need("pptx", "lxml")
    from weighbridge.results.features.open_run import open_run
    from weighbridge.results.run.reading import refuse_existing, write_atomically
    from weighbridge.results.show.deck import powerpoint
    from weighbridge.results.show.scales import DARK, LIGHT
    from weighbridge.results.show.talk import talk

    data = open_run(run)
    store = data.store
    path = store.derived / "slides.pptx" if out is None else out
    if out is None:
        store.make_derived()
    elif not path.absolute().parent.is_dir():
        raise UsageError(
            f"{path}: there is no folder {path.parent}",
            advice="Make it, or choose another file with --out.",
        )
    else:
        refuse_existing((path,), force=force)
    deck = talk(data)
    write_atomically(path, powerpoint(deck, DARK if dark else LIGHT))
    count, backup = len(deck.slides), len(deck.pages) - len(deck.slides)
    click.echo(f"{path}: {count} slides and {backup} of backup")


STANDARD_OUTPUT: Final = Path("-")
INFLUX: Final = "influx"
_INFLUX: Final = "every point, to the InfluxDB that --influx names"


def _schema(
    words: str, text: Callable[[], str]
) -> Callable[[click.decorators.FC], click.decorators.FC]:

    def show(context: click.Context, _parameter: click.Parameter, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            click.echo(text())
            context.exit()

    return click.option(
        "--schema", is_flag=True, is_eager=True, expose_value=False, callback=show, help=words
    )


def _json_schema() -> str:
    import json

    from weighbridge.results.show.exports import json_schema

    return json.dumps(json_schema(), indent=1, ensure_ascii=False)


class _OfTables(click.Command):
    """Lists the tables in its help, those of other packages included."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from weighbridge.results.show.tables import tables

        with formatter.section("Tables"):
            formatter.write_dl([(name, one.about) for name, one in tables().items()])
        super().format_epilog(ctx, formatter)


class _Export(_OfTables):
    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from weighbridge.results.show.exports import FORMATS

        with formatter.section("Formats"):
            formatter.write_dl(
                [*((name, one.about) for name, one in FORMATS.items()), (INFLUX, _INFLUX)]
            )
        super().format_epilog(ctx, formatter)


@click.command("export", cls=_Export)
@click.argument("run", type=RUN_FOLDER)
@click.option("--to", "form", metavar="FORMAT", required=True, help="One of the formats below.")
@click.option(
    "--table",
    "tables",
    metavar="TABLE",
    multiple=True,
    help="One of the tables below; may be repeated (default: summary).",
)
@click.option(
    "--out",
    metavar="PATH",
    type=OutputPath(),
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
@_schema("Print the JSON Schema of json.", _json_schema)
def export_verb(
    run: Path, form: str, tables: tuple[str, ...], out: Path | None, force: bool, influx: str | None
) -> None:
    """Write a RUN folder in another FORMAT. What the folder lacks is printed."""
    from weighbridge.results.features.open_run import open_run
    from weighbridge.results.show.exports import export, produce, single

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
        from weighbridge.results.run.store import RunStore
        from weighbridge.results.show.influx import InfluxServer, send_run

        click.echo(send_run(RunStore.open(run), InfluxServer.parse(influx)).words)
        return
    if out == STANDARD_OUTPUT:
        produced = produce(open_run(run), form, tables)
        click.echo(single(form, produced).content, nl=False)
        remarks = produced.remarks
    else:
        done = export(open_run(run), form, tables, out=out, force=force)
        remarks = done.remarks
        for path in done.paths:
            click.echo(str(path))
    for remark in remarks:
        click.echo(f"weighbridge: {remark}", err=True)


RUNS = Path("runs")

EXAMPLES: Final = (
    (
        "The fastest layout for each kind of request, where layouts may be ranked:",
        """select workload, operation, arg_max(layout, throughput_ops_s) as layout,
max(throughput_ops_s) as ops_s
from summary where ranked and layer is null group by all""",
    ),
    (
        "How far the repeats of a step differ:",
        """select run, layout, api, driver, layer, workload, operation, workers,
max(throughput_ops_s) / min(throughput_ops_s) as ratio from steps where ranked
group by all order by ratio desc limit 10""",
    ),
    (
        "The same step in all runs:",
        """select created_at, layout, p90_ms from summary join runs using (run)
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


def _views() -> str:
    from weighbridge.results.show.query import schema_words

    return schema_words()


@click.command("sql", cls=_OfTables, epilog=_epilog())
@click.argument("query")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@shown(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    help="Output format.",
)
@_schema("Print the views and their columns.", _views)
def sql_verb(query: str, runs: tuple[Path, ...], form: str) -> None:
    """Run a QUERY in DuckDB's SQL on the folders RUNS (default: all of runs/).

    Each table below is a view. NULL is unknown. Only the views that a query names are read; it can
    change nothing and reach no file.
    """
    from weighbridge.results.features.open_run import read_runs
    from weighbridge.results.show.query import ANSWERS, ask

    try:
        folders = runs or sorted(path for path in RUNS.iterdir() if path.is_dir())
    except OSError as error:
        raise UsageError(
            f"{RUNS}: {error.strerror}", advice="Name run folders after the query."
        ) from error
    found, left_out = read_runs(folders)
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
