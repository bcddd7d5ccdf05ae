from __future__ import annotations

from functools import partial
from importlib.metadata import version
from pathlib import Path

import click

from weighbridge.cli.options import as_json, fail_on, named, pictures, shown, split
from weighbridge.common.errors import EXIT_FINE, UsageError

RUNS = Path("runs")


@click.command("history")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--despite",
    metavar="FACT,...",
    callback=named,
    help="Guard facts in which comparable runs may differ anyway; `all`: any of them.",
)
@shown(
    "--out",
    default="history",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the page, the tables, the charts, and the database that keeps the figures.",
)
@pictures
@fail_on("the latest run is worse than those before it anywhere")
@as_json
def command(
    runs: tuple[Path, ...],
    despite: str | None,
    out: Path,
    fail_on: str | None,
    *,
    pictures: bool,
    as_json: bool,
) -> int:
    """Draw the figures of many runs over time, and find where they changed.

    RUNS are run folders, or folders of runs (default: runs). The judged figures of each run are
    kept in a DuckDB database, so a run is read only once, and is still known when its folder is
    deleted. Changes are found by Apache Otava in throughput and p90 of each cell, among comparable
    runs: those that `compare-runs --history` would take. Exits with 0; with --fail-on regression 1
    if the latest run is at a level that a change for the worse began, 4 if its throughput or p90
    could not be judged somewhere. Needs the extra `history`.
    """
    from weighbridge.common.errors import need
    from weighbridge.documents import HistoryDocument, run_folders
    from weighbridge.results.analysis.across_runs.guard import refuse_unknown
    from weighbridge.results.analysis.across_runs.runs_summary import RunsVerdict
    from weighbridge.results.analysis.history.change_points import OTAVA
    from weighbridge.results.analysis.history.history import history_of, latest_verdict
    from weighbridge.results.charts.history_chart import history_charts
    from weighbridge.results.charts.pictures import DRAWING
    from weighbridge.results.export.csv_format import csv_file
    from weighbridge.results.export.file import ExportFile
    from weighbridge.results.export.history_database import (
        DATABASE,
        history_database,
        keep_runs,
        replace_table,
    )
    from weighbridge.results.export.history_tables import history_tables
    from weighbridge.results.record.writing import make_folder, write_atomically
    from weighbridge.results.report.history_page import history_page
    from weighbridge.results_output import draw, print_document
    from weighbridge.screen.comparison_outcome import print_history, print_verdict
    from weighbridge.screen.terminal import console, print_line

    need(OTAVA, "duckdb", DRAWING)
    facts, program = split(despite), version("weighbridge")
    refuse_unknown(facts)
    folders = [each for path in runs or (RUNS,) for each in run_folders(path)]
    make_folder(out)
    with history_database(out / DATABASE) as database:
        kept = keep_runs(database, folders, program)
        if not kept.runs:
            raise UsageError(
                "\n".join(("there is no run that can be read", *kept.left_out)),
                advice="Name run folders, or a folder of runs.",
            )
        history = history_of(kept.runs, facts)
        tables = history_tables(history)
        for table in tables:
            replace_table(database, table)
    figures = history_charts(history)
    screen = console(stderr=as_json)
    print_history(history, screen, gone=kept.gone, left_out=kept.left_out)
    page = history_page(history, figures, version=program, gone=kept.gone, left_out=kept.left_out)
    for one in (ExportFile(name="history.html", content=page.encode()), *map(csv_file, tables)):
        write_atomically(out / one.name, one.content)
        print_line(screen, str(out / one.name))
    if pictures:
        draw(figures, out / "charts", partial(print_line, screen))
    verdict = RunsVerdict(exit_code=EXIT_FINE) if fail_on is None else latest_verdict(history)
    print_verdict(verdict, screen)
    if as_json:
        print_document(
            HistoryDocument(
                exit_code=verdict.exit_code,
                answer=history.headline,
                history=history,
                gone=kept.gone,
                left_out=kept.left_out,
            )
        )
    return verdict.exit_code
